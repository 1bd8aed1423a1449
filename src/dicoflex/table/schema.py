"""What the columns of a table are: inferred, overridable, readable, JSON; with constraints that always bind."""

from __future__ import annotations

__all__ = ["Schema"]

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_serializer, model_validator

from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.constraints.reading import within
from dicoflex.constraints.rules.kinds import check_kinds, check_names, check_result, resolve
from dicoflex.constraints.rules.tree import Expression
from dicoflex.constraints.rules.tree import names as rule_names
from dicoflex.constraints.statement import has_multiple
from dicoflex.errors import ConstraintError, SchemaError, SettingError, named
from dicoflex.runtime import strict_json
from dicoflex.table.feature import Feature, Kind, Level
from dicoflex.table.inference import check_frame, describe
from dicoflex.table.native import Frame, as_pandas
from dicoflex.table.suggestions import suggested


class Schema(BaseModel):
    """The features of a table, in the order of its columns, and the constraints that bind every call unless overridden.

    min_count: levels and limits are such that at least so many of the table's rows have them, or lie at or beyond them.
    independent: features that answers may change by themselves, although they follow from others in every row.

    >>> frame = pd.DataFrame({"age": [31, 52, 47], "smoker": [True, False, True]})
    >>> schema = Schema.infer(frame)
    >>> schema["age"].kind.value, schema["smoker"].kind.value
    ('integer', 'boolean')
    >>> Schema.from_json(schema.to_json()) == schema
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    features: tuple[Feature, ...]
    constraints: Constraints = Constraints()
    min_count: int = Field(default=1, ge=1)
    independent: tuple[int | str, ...] = ()

    @field_validator("constraints", mode="before")
    @classmethod
    def _read_constraints(cls, given: Any) -> Any:
        return Constraints(**given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _unique(self) -> Schema:
        if not self.features or len(set(self.names)) < len(self.names):
            raise ValueError("a schema needs at least one feature, each with a name of its own")
        self._check_preset(self.constraints)
        for name in self.independent:
            self.position(name)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: Any) -> Any:
        """What says nothing is left out: no constraints, a count of one, nothing independent."""
        dumped = dump(self)
        if self.constraints == Constraints():
            del dumped["constraints"]
        if self.min_count == 1:
            del dumped["min_count"]
        if not self.independent:
            del dumped["independent"]
        return dumped

    @classmethod
    def infer(
        cls,
        frame: Frame,
        *,
        kinds: Mapping[Any, Kind | str] | None = None,
        orders: Mapping[Any, Sequence[Level]] | None = None,
        limits: Mapping[Any, tuple[float, float]] | None = None,
        min_count: int = 1,
        independent: Iterable[Any] = (),
        special: Mapping[Any, Sequence[float]] | None = None,
        suggest: bool = False,
        feature_names: Sequence[str] | None = None,
    ) -> Schema:
        """Describe every column of `frame`; each guess can be overridden.

        kinds: column to kind, for columns that are not what their dtype says (whole numbers that stand for categories).
        orders: column to its levels from lowest to highest; makes the column ordinal.
        limits: column to (lowest, highest); wider than seen is allowed, narrower is not.
        min_count: what fewer rows have is not named: their levels and missing values are left out, and limits are
        numbers that at least so many rows lie at or beyond. Orders and limits that are given stay as they are.
        independent: columns that need not follow from others in answers, although they do in every row.
        special: column to the numbers in it that stand for something, as -9 for no record; an empty list says that
        there are none. Without it, few negative whole numbers beside others that are not negative, and nines alone far
        above all others, are found. They have cells of their own where it is learned what goes together.
        suggest: take the constraints that the columns suggest; see `suggested`.
        feature_names: what the columns of an array are called; x0, x1, … by default.

        >>> frame = pd.DataFrame({"grade": ["b", "a", "c"], "sector": [3, 1, 3]})
        >>> print(Schema.infer(frame, kinds={"sector": "categorical"}, orders={"grade": ["a", "b", "c"]}))
        feature  kind         dtype  values
        grade    ordinal      str    a < b < c
        sector   categorical  int64  1, 3
        """
        table: pd.DataFrame = as_pandas(frame, feature_names=feature_names)
        check_frame(table)
        kinds, orders, limits = dict(kinds or {}), dict(orders or {}), dict(limits or {})
        free, coded = tuple(independent), dict(special or {})
        for given in (kinds, orders, limits, free, coded):
            for column in given:
                if column not in table.columns:
                    raise SchemaError(named("column", column, table.columns))
        if isinstance(min_count, bool) or not isinstance(min_count, int | np.integer) or min_count < 1:
            raise SettingError(f"min_count must be a whole number of at least 1, got {min_count!r}")
        features = [
            describe(
                table[column],
                kinds.get(column),
                orders.get(column),
                limits.get(column),
                int(min_count),
                coded.get(column),
            )
            for column in table.columns
        ]
        described = cls(features=tuple(features), min_count=int(min_count), independent=free)
        return described.with_constraints(described.suggested(table)) if suggest else described

    def suggested(self, rows: Frame | None = None) -> Constraints:
        """Constraints that the features suggest: age waits, sex, race, birth and nationality stay, nothing gets lost.

        What others say or what is past stays too: scores of bureaus, and what was "ever" so; time since something only
        passes.

        Parameters
        ----------
        rows : frame, optional
            Rows of the table. With them, rules such as `paid <= owed` are suggested where they hold in every row.

        >>> Schema.infer(pd.DataFrame({"age": [31, 52], "sex": ["f", "m"]})).suggested().frozen
        ('sex',)
        """
        return suggested(self.features, None if rows is None else as_pandas(rows, self.names)[self.names])

    def with_constraints(self, constraints: Constraints) -> Schema:
        """This schema with `constraints` in place of its own; they bind every call that does not override them.

        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 52], "sex": ["f", "m"]}))
        >>> schema.with_constraints(Constraints(increase=["age"], frozen=["sex"])).constraints.increase
        ('age',)
        """
        if not isinstance(constraints, Constraints):
            raise ConstraintError(f"constraints must be Constraints(...), got {type(constraints).__name__}")
        self._check_preset(constraints)
        return self.model_copy(update={"constraints": constraints})

    def _check_preset(self, constraints: Constraints) -> None:
        if constraints.override:
            raise ConstraintError(
                f"override {constraints.override[0]!r}: the constraints of a schema have none to override; leave it out"
            )
        self.check_constraints(constraints)

    def check_constraints(self, constraints: Constraints) -> None:
        """Refuse constraints that don't fit the features: a `ConstraintError` names feature, value and remedy.

        >>> schema = Schema.infer(pd.DataFrame({"age": [31, 52], "sex": ["f", "m"]}))
        >>> schema.check_constraints(Constraints(increase=["sex"]))
        Traceback (most recent call last):
        dicoflex.errors.ConstraintError: increase 'sex': it is categorical and has no order; use allowed or transitions
        """
        about = constraints.features()
        for kind, name in about:
            if isinstance(name, bool) or name not in self.places:
                raise ConstraintError(f"{kind}: {named('feature', name, self.names)}")
        for kind, name in about:
            check_suits(self[name], kind)
        for feature in self.features:
            check_numbers(feature, constraints)
            check_values(feature, constraints)
        self._check_rules(constraints)

    def _check_rules(self, constraints: Constraints) -> None:
        for rule in constraints.parsed_rules:
            check_names(rule, self.names)
            check_kinds(rule, *self._meant(rule_names(rule)))
        for name, made in constraints.parsed_consequences.items():
            within(name, "consequences", self._check_consequence, (name, made))

    def _check_consequence(self, given: tuple[Any, Expression]) -> None:
        name, made = given
        check_names(made, self.names)
        check_result(made, str(name), *self._meant([*rule_names(made), str(name)]))

    def _meant(self, names: Iterable[str]) -> tuple[dict[str, str], dict[str, tuple[Any, ...]]]:
        """The kinds of features as rules name them, and the levels of those that have some."""
        features = {name: self[resolve(name, self.names)] for name in names}
        levels = {name: feature.levels for name, feature in features.items() if not feature.is_number}
        return {name: feature.rule_kind for name, feature in features.items()}, levels

    @property
    def names(self) -> list[Any]:
        """The column names, in order."""
        return [feature.name for feature in self.features]

    @cached_property
    def places(self) -> dict[Any, int]:
        """Where each column stands, by its name."""
        return {name: i for i, name in enumerate(self.names)}

    # Kept as tuples: schemas are compared with all that they keep, and arrays have no truth of their own.

    @cached_property
    def _sorts(self) -> tuple[tuple[bool, bool, float], ...]:
        """Of each feature: whether it is a number, whether it has one value alone, and how far it reaches."""
        return tuple((f.is_number, _is_constant(f), _span(f)) for f in self.features)

    @property
    def is_number(self) -> np.ndarray:
        """Which features are numbers, as a boolean vector."""
        return np.array([number for number, _, _ in self._sorts], dtype=bool)

    @property
    def is_constant(self) -> np.ndarray:
        """Which features have one value alone, as a boolean vector."""
        return np.array([constant for _, constant, _ in self._sorts], dtype=bool)

    @property
    def spans(self) -> np.ndarray:
        """How far each number reaches from its least to its greatest; 0 for levels."""
        return np.array([span for _, _, span in self._sorts], dtype=np.float64)

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Any) -> Feature:
        return self.features[self.position(name)]

    def position(self, name: Any) -> int:
        """Where `name` stands among the columns; an unknown name is a `SchemaError`."""
        if isinstance(name, Hashable) and not isinstance(name, bool) and name in self.places:
            return self.places[name]
        raise SchemaError(named("feature", name, self.names))

    def mask(self, names: Sequence[Any]) -> np.ndarray:
        """A boolean vector over the features, True for those in `names`."""
        mask = np.zeros(len(self), dtype=bool)
        for name in names:
            mask[self.position(name)] = True
        return mask

    def table(self) -> pd.DataFrame:
        """The schema as a frame with one row per feature, to read or to print."""
        rows = [(f.name, f.kind.value, f.dtype, f.values_text()) for f in self.features]
        return pd.DataFrame(rows, columns=["feature", "kind", "dtype", "values"])

    def __str__(self) -> str:
        table = self.table().astype(str)
        rows = [list(table.columns), *table.to_numpy().tolist()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return self.table().to_html(index=False, border=0)

    def to_json(self) -> str:
        """The schema as JSON text; `from_json` reads it back unchanged."""
        return self.model_dump_json(indent=2)

    @classmethod
    def from_json(cls, text: str | bytes | Path) -> Schema:
        """Read a schema from JSON text or from a file's path."""
        try:
            raw = text.read_bytes() if isinstance(text, Path) else text
            _refuse_repeats(raw)
            return cls.model_validate_json(raw)
        except (ValidationError, OSError) as error:
            raise SchemaError(f"this is not a schema: {error}") from error


def _is_constant(feature: Feature) -> bool:
    if feature.is_number:
        return feature.minimum == feature.maximum and not feature.missing
    return feature.n_states < 2


def _span(feature: Feature) -> float:
    return (feature.maximum or 0.0) - (feature.minimum or 0.0) if feature.is_number else 0.0


def _refuse_repeats(text: str | bytes) -> None:
    """Refuse JSON in which an object has a name twice; whatever else is wrong is told by who reads it."""
    try:
        strict_json.loads(text)
    except strict_json.RepeatedNameError as error:
        raise SchemaError(f"this is not a schema: {error}; say it once") from None
    except ValueError:
        return


SUITS: dict[str, Callable[[Feature], bool]] = {
    "any": lambda feature: True,  # noqa: ARG005
    "ordered": lambda feature: feature.is_number or feature.kind is Kind.ORDINAL,
    "numbers": lambda feature: feature.is_number,
    "levels": lambda feature: not feature.is_number,
}


def check_suits(feature: Feature, field: str) -> None:
    """Refuse a kind of constraint that the feature can't have."""
    suits = KINDS[field].suits
    if not SUITS[suits](feature):
        raise ConstraintError(f"{field} {feature.name!r}: it is {feature.kind}{_why(feature, field, suits)}")


def _why(feature: Feature, field: str, suits: str) -> str:
    if suits == "ordered":
        return " and has no order; use allowed or transitions"
    remedy = "ranges, increase or decrease"
    if suits == "numbers":
        remedy = "allowed" if feature.kind is Kind.ORDINAL else "allowed or transitions"
    return f", and {field} are for {suits}; use {remedy}"


def check_numbers(feature: Feature, constraints: Constraints) -> None:
    """Refuse ranges and steps that leave a number no value, and costs per unit of anything else."""
    if not feature.is_number and isinstance(constraints.cost.get(feature.name), PerUnit):
        raise ConstraintError(
            f"cost {feature.name!r}: it is {feature.kind}, and a cost per unit is for numbers; "
            "use a plain number, the cost of any change"
        )
    step = constraints.steps.get(feature.name)
    if step is not None:
        _check_step(feature, step)
    for limits in constraints.ranges.get(feature.name, ()):
        if limits.kind == "absolute":
            _check_range(feature, limits, step)


def _check_step(feature: Feature, step: float) -> None:
    where = f"steps {feature.name!r}: the step {step:g}"
    if feature.is_whole and not step.is_integer():
        raise ConstraintError(f"{where} has a fraction, and the column holds whole numbers; use a whole step")
    if not has_multiple(feature.minimum, feature.maximum, step):
        raise ConstraintError(
            f"{where} has no multiple within the column's limits, {feature.values_text()}; choose a smaller one"
        )


def _check_range(feature: Feature, limits: Range, step: float | None) -> None:
    where = f"ranges {feature.name!r}: {limits.text}"
    least, most = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    low = least if limits.low is None else max(least, limits.low)
    high = most if limits.high is None else min(most, limits.high)
    if low > high:
        raise ConstraintError(f"{where} lies outside the column's limits, {least:g} to {most:g}; choose limits inside")
    if feature.is_whole and math.ceil(low) > high:
        raise ConstraintError(f"{where} holds no whole number, and the column holds no others; widen it")
    if step is not None and not has_multiple(low, high, step):
        raise ConstraintError(
            f"{where} holds no multiple of the step {step:g} within the limits {least:g} to {most:g}; widen it"
        )


def check_values(feature: Feature, constraints: Constraints) -> None:
    """Refuse allowed, forbidden, pinned and transitions with values that the feature does not have."""
    allowed, forbidden = (constraints.allowed.get(feature.name, ()), constraints.forbidden.get(feature.name, ()))
    for value in allowed:
        _check_value(feature, value, "allowed")
    for value in forbidden:
        _check_value(feature, value, "forbidden")
    if feature.name in constraints.pinned:
        _check_value(feature, constraints.pinned[feature.name], "pinned")
    states = [*feature.levels, *([None] if feature.missing else [])]
    if forbidden and not feature.is_number and set(states) <= set(forbidden):
        raise ConstraintError(
            f"forbidden {feature.name!r}: every value is forbidden; to keep it as it is, put it in frozen"
        )
    moves = constraints.transitions.get(feature.name, {})
    for value in [*moves, *(end for ends in moves.values() for end in ends)]:
        _check_value(feature, value, "transitions")


def _check_value(feature: Feature, value: Any, kind: str) -> None:
    where = f"{kind} {feature.name!r}"
    if value is None:
        if not feature.missing and kind != "forbidden":
            raise ConstraintError(f"{where}: missing values were never seen in this column; leave None out")
    elif feature.is_number:
        _check_number(feature, value, kind)
    elif not feature.is_level(value):
        raise ConstraintError(f"{where}: {named('value', value, feature.levels)}")


def _check_number(feature: Feature, value: Any, kind: str) -> None:
    where = f"{kind} {feature.name!r}: {value!r}"
    if isinstance(value, bool | str):
        raise ConstraintError(f"{where} is no number, and the column holds numbers; list numbers")
    if kind == "forbidden":
        return
    if feature.is_whole and value != math.floor(value):
        raise ConstraintError(f"{where} has a fraction, and the column holds whole numbers; list whole numbers")
    least, most = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
    if not least <= value <= most:
        raise ConstraintError(f"{where} lies outside the column's limits, {least:g} to {most:g}; list values inside")
