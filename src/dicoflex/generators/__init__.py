"""Every conditional density by its name, imported when first asked for; none of them needs torch to answer."""

from __future__ import annotations

__all__ = ["GENERATORS", "get"]

from collections.abc import Iterator, Mapping
from importlib import import_module

from dicoflex.errors import SettingError, named
from dicoflex.generators.base import Generator


class _Registry(Mapping[str, type[Generator]]):
    """Names to classes; `homes` says in which module of this package each class stands."""

    def __init__(self, homes: dict[str, tuple[str, str]]) -> None:
        self.homes = homes

    def __getitem__(self, name: str) -> type[Generator]:
        module, kind = self.homes[name]
        found: type[Generator] = getattr(import_module(f"{__name__}.{module}"), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


GENERATORS = _Registry(
    {
        "mixed": ("mixed", "Mixed"),
        "maf": ("flows", "Maf"),
        "nice": ("flows", "Nice"),
        "realnvp": ("flows", "RealNvp"),
        "kde": ("kde", "Kde"),
    }
)


def get(name: str) -> type[Generator]:
    """The density called `name`; an unknown one is a `SettingError`.

    >>> get("maf").Config().layers
    5
    """
    if name not in GENERATORS:
        raise SettingError(named("generator", name, GENERATORS))
    return GENERATORS[name]
