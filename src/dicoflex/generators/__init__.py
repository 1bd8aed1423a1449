"""Every conditional density by its name."""

from __future__ import annotations

__all__ = ["GENERATORS", "get"]

from dicoflex.errors import SettingError, named
from dicoflex.generators.base import Generator
from dicoflex.generators.flows import Maf, Nice, RealNvp
from dicoflex.generators.kde import Kde
from dicoflex.generators.mixed import Mixed

GENERATORS: dict[str, type[Generator]] = {"mixed": Mixed, "maf": Maf, "nice": Nice, "realnvp": RealNvp, "kde": Kde}


def get(name: str) -> type[Generator]:
    """The density called `name`; an unknown one is a `SettingError`.

    >>> get("maf").Config().layers
    5
    """
    if name not in GENERATORS:
        raise SettingError(named("generator", name, GENERATORS))
    return GENERATORS[name]
