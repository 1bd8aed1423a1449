"""Several floats at a time, as processors add and multiply them: numbers that compiled loops keep in registers.

A compiler that does not know how long rows are, nor that they don't overlap, makes of a short loop over two of them
mostly checks. Lanes leave it nothing to find out; they become whatever registers the processor has.
"""

from __future__ import annotations

__all__ = ["LANES", "add_scaled", "joined", "lanes_at", "no_lanes", "put_lanes"]

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel import models, register_default
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

LANES = 8
_FLOATS = ir.VectorType(ir.FloatType(), LANES)


class Lanes(types.Type):
    """So many floats of 32 bits at once."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_lanes = Lanes()


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Lanes) -> None:
        super().__init__(manager, kind, _FLOATS)


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """A pointer to the lanes of a contiguous array from its entry `at` on, as if it had one axis."""
    data = make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _FLOATS.as_pointer())


def _spread(builder: Any, number: Any) -> Any:
    """One number in all lanes."""
    one = builder.insert_element(ir.Constant(_FLOATS, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(_FLOATS, ir.Undefined), mask)


@intrinsic
def no_lanes(typing: Any) -> Any:  # noqa: ARG001
    """Zeros."""

    def make(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return ir.Constant(_FLOATS, [0.0] * LANES)

    return _lanes(), make


@intrinsic
def lanes_at(typing: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """The floats of a contiguous array from `at` on."""

    def make(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *values), align=4)

    return _lanes(array, types.int64), make


@intrinsic
def put_lanes(typing: Any, array: Any, at: Any, lanes: Any) -> Any:  # noqa: ARG001
    """Write the floats to a contiguous array from `at` on."""

    def make(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        array, at, lanes = values
        builder.store(lanes, _place(context, builder, signature.args[0], array, at), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, _lanes), make


@intrinsic
def add_scaled(typing: Any, lanes: Any, number: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """The lanes, plus a number times the floats of a contiguous array from `at` on."""

    def make(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        lanes, number, array, at = values
        found = builder.load(_place(context, builder, signature.args[2], array, at), align=4)
        return builder.fadd(
            lanes, builder.fmul(_spread(builder, number), found, flags=("contract",)), flags=("contract",)
        )

    return _lanes(_lanes, types.float32, array, types.int64), make


@intrinsic
def joined(typing: Any, one: Any, other: Any) -> Any:  # noqa: ARG001
    """The sums of two lanes."""

    def make(context: Any, builder: Any, signature: Any, values: Any) -> Any:  # noqa: ARG001
        return builder.fadd(*values)

    return _lanes(_lanes, _lanes), make
