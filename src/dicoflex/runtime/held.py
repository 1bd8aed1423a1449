"""Records of many arrays handed to compiled steps as one pointer.

Numba spreads a tuple of arrays over the arguments of every call, seven numbers for each array. A step that is given a
hundred arrays copies thousands of bytes to be called, which takes longer than most steps' work, and longer to compile.
"""

from __future__ import annotations

__all__ = ["held"]

from typing import Any

from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import impl_ret_borrowed
from numba.core.types.containers import NamedTuple
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic


class Held(types.Type):
    """The type of a pointer to a named tuple that lies in the memory of the step that holds it."""

    def __init__(self, whole: NamedTuple) -> None:
        self.whole = whole
        super().__init__(name=f"Held({whole})")

    def field(self, name: str) -> tuple[int, types.Type]:
        """Where a field stands, and its type."""
        at = self.whole.fields.index(name)
        return at, self.whole.types[at]


@register_default(Held)
class _HeldModel(models.PrimitiveModel):
    """A pointer to the values of the tuple."""

    def __init__(self, manager: Any, kind: Held) -> None:
        super().__init__(manager, kind, manager[kind.whole].get_value_type().as_pointer())


@infer_getattr
class _HeldFields(AttributeTemplate):
    """A field is what the tuple has; one that is a tuple itself is held as well."""

    key = Held

    def generic_resolve(self, kind: Held, name: str) -> types.Type | None:
        if name not in kind.whole.fields:
            return None
        found = kind.field(name)[1]
        return Held(found) if isinstance(found, NamedTuple) else found


@lower_getattr_generic(Held)
def _field(context: Any, builder: Any, kind: Held, value: Any, name: str) -> Any:
    at, found = kind.field(name)
    place = cgutils.gep_inbounds(builder, value, 0, at)
    if isinstance(found, NamedTuple):
        return place
    return impl_ret_borrowed(context, builder, found, builder.load(place))


@intrinsic
def held(typing: Any, whole: NamedTuple) -> Any:  # noqa: ARG001
    """A named tuple of arrays, as a pointer that lasts as long as the step that asks for it; its fields are read as
    before. Loops that write should look their arrays up before: a write might change the tuple, for all that is known.
    """

    def make(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return cgutils.alloca_once_value(builder, values[0])

    return Held(whole)(whole), make
