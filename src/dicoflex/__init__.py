"""Diverse counterfactual explanations for any classifier of tables, under conditions set at the moment of asking."""

from __future__ import annotations

__all__ = [
    "Client",
    "Constraints",
    "Counterfactuals",
    "DiCoFlex",
    "Explainer",
    "Feature",
    "Kind",
    "Request",
    "Schema",
    "__version__",
    "at_least",
    "at_most",
    "between",
    "by",
    "delta",
    "explain",
    "load",
    "one_of",
    "per_unit",
    "relative",
]

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dicoflex.answers.counterfactuals import Counterfactuals
    from dicoflex.client import Client
    from dicoflex.constraints import Constraints, delta, per_unit, relative
    from dicoflex.estimator import DiCoFlex, explain
    from dicoflex.explainer import Explainer, load
    from dicoflex.request import Request
    from dicoflex.table.feature import Feature, Kind
    from dicoflex.table.schema import Schema
    from dicoflex.targets import at_least, at_most, between, by, one_of

__version__ = version("dicoflex")

# Names are imported when first used: answering needs less than learning, and nothing of it is imported to answer.
_HOME = {
    "Constraints": "constraints",
    "delta": "constraints",
    "per_unit": "constraints",
    "relative": "constraints",
    "Counterfactuals": "answers.counterfactuals",
    "Client": "client",
    "Request": "request",
    "DiCoFlex": "estimator",
    "explain": "estimator",
    "Explainer": "explainer",
    "load": "explainer",
    "Feature": "table.schema",
    "Kind": "table.schema",
    "Schema": "table.schema",
    "at_least": "targets",
    "at_most": "targets",
    "between": "targets",
    "by": "targets",
    "one_of": "targets",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'dicoflex' has no attribute {name!r}")
    return getattr(import_module(f"dicoflex.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
