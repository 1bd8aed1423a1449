"""What the columns of a table are: kind, limits, order, levels and dtype; inferred, overridable, readable, JSON."""

from __future__ import annotations

__all__ = ["Feature", "Kind", "Schema"]

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator, model_serializer, model_validator

from dicoflex.constraints import Constraints
from dicoflex.constraints.rules import check_kinds, check_names, resolve
from dicoflex.constraints.rules import names as rule_names
from dicoflex.constraints.statement import PerUnit, Range, has_multiple
from dicoflex.errors import ConstraintError, DataError, SchemaError, named

Level = bool | int | float | str
Name = int | str

MAX_EXACT_INTEGER = 2**53 - 1
MAX_NUMBER = 1e150  # its square, and so a standard deviation, is still finite
IDENTIFIER_SHARE = 0.9
IDENTIFIER_ROWS = 50
MAX_LEVELS = 2000


class Kind(StrEnum):
    """The kinds of feature that the library tells apart."""

    CONTINUOUS = "continuous"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"
    BOOLEAN = "boolean"

    @property
    def is_number(self) -> bool:
        """Whether values are measured (True) or picked from levels (False)."""
        return self in (Kind.CONTINUOUS, Kind.INTEGER)


class Feature(BaseModel):
    """One column: its kind, its pandas dtype and the values it may take."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: Name
    kind: Kind
    dtype: str
    levels: tuple[Level, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    missing: bool = False
    categories: tuple[Level, ...] | None = None
    ordered: bool = False
    categories_dtype: str | None = None
    missing_object: Literal["None", "nan", "NA"] = "nan"

    @model_validator(mode="after")
    def _consistent(self) -> Feature:
        for dtype in (self.dtype, self.categories_dtype):
            if dtype is not None and not _is_dtype(dtype):
                raise ValueError(f"feature {self.name!r}: dtype {dtype!r} is unknown")
        if self.kind.is_number:
            limits = (self.minimum, self.maximum)
            if None in limits or not -math.inf < self.minimum <= self.maximum < math.inf:  # type: ignore[operator]
                raise ValueError(f"feature {self.name!r}: minimum must be at most maximum")
        elif len({typed(v) for v in self.levels}) != len(self.levels):
            raise ValueError(f"feature {self.name!r}: levels repeat")
        elif not {typed(v) for v in self.levels} <= {typed(v) for v in self.categories or self.levels}:
            raise ValueError(f"feature {self.name!r}: levels must be among the categories")
        return self

    @cached_property
    def is_number(self) -> bool:
        """Whether the feature is measured rather than picked from levels."""
        return self.kind.is_number

    @cached_property
    def is_whole(self) -> bool:
        """Whether values are whole numbers: by kind, or because the dtype holds no others."""
        return self.kind is Kind.INTEGER or (self.is_number and pd.api.types.is_integer_dtype(dtype_of(self.dtype)))

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """The least and greatest number that the dtype holds."""
        return dtype_bounds(dtype_of(self.dtype))

    @property
    def n_states(self) -> int:
        """How many codes a picked feature has: its levels, and one for missing."""
        return len(self.levels) + int(self.missing)

    @property
    def rule_kind(self) -> str:
        """What the feature is in a rule: 'number', 'ordinal', 'boolean' or 'level'."""
        if self.is_number or self.kind is Kind.ORDINAL:
            return "number" if self.is_number else "ordinal"
        truths = self.kind is Kind.BOOLEAN and not any(isinstance(v, str) or v not in (0, 1) for v in self.levels)
        return "boolean" if truths else "level"

    def is_level(self, value: Any) -> bool:
        """Whether one of the levels equals `value`."""
        return any(isinstance(level, str) == isinstance(value, str) and level == value for level in self.levels)

    def values_text(self, most: int = 6) -> str:
        """The values that the feature may take, in one short line."""
        if self.is_number:
            text = f"{self.minimum:g} to {self.maximum:g}"
        else:
            joint = " < " if self.kind is Kind.ORDINAL else ", "
            text = joint.join(map(str, self.levels[:most]))
            if len(self.levels) > most:
                text += f"{joint}… ({len(self.levels)})"
        return text + (" or missing" if self.missing else "")


class Schema(BaseModel):
    """The features of a table, in the order of its columns, and the constraints that bind every call unless overridden.

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

    @field_validator("constraints", mode="before")
    @classmethod
    def _read_constraints(cls, given: Any) -> Any:
        return Constraints(**given) if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _unique(self) -> Schema:
        if not self.features or len(set(self.names)) < len(self.names):
            raise ValueError("a schema needs at least one feature, each with a name of its own")
        self._check_preset(self.constraints)
        return self

    @model_serializer(mode="wrap")
    def _dump(self, dump: Any) -> Any:
        """Without constraints the schema is written as it was before schemas could carry them."""
        dumped = dump(self)
        if self.constraints == Constraints():
            del dumped["constraints"]
        return dumped

    @classmethod
    def infer(
        cls,
        frame: pd.DataFrame,
        *,
        kinds: Mapping[Any, Kind | str] | None = None,
        orders: Mapping[Any, Sequence[Level]] | None = None,
        limits: Mapping[Any, tuple[float, float]] | None = None,
    ) -> Schema:
        """Describe every column of `frame`; each guess can be overridden.

        kinds: column to kind, for columns that are not what their dtype says (whole numbers that stand for categories).
        orders: column to its levels from lowest to highest; makes the column ordinal.
        limits: column to (lowest, highest); wider than seen is allowed, narrower is not.

        >>> frame = pd.DataFrame({"grade": ["b", "a", "c"], "sector": [3, 1, 3]})
        >>> print(Schema.infer(frame, kinds={"sector": "categorical"}, orders={"grade": ["a", "b", "c"]}))
        feature  kind         dtype  values
        grade    ordinal      str    a < b < c
        sector   categorical  int64  1, 3
        """
        check_frame(frame)
        kinds, orders, limits = dict(kinds or {}), dict(orders or {}), dict(limits or {})
        for given in (kinds, orders, limits):
            for column in given:
                if column not in frame.columns:
                    raise SchemaError(named("column", column, frame.columns))
        features = [
            _describe(frame[column], kinds.get(column), orders.get(column), limits.get(column))
            for column in frame.columns
        ]
        return cls(features=tuple(features))

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
        for kind, name in constraints.features():
            if isinstance(name, bool) or name not in self.names:
                raise ConstraintError(f"{kind}: {named('feature', name, self.names)}")
        for feature in self.features:
            _check_directions(feature, constraints)
            _check_numbers(feature, constraints)
            _check_values(feature, constraints)
        self._check_rules(constraints)

    def _check_rules(self, constraints: Constraints) -> None:
        for rule in constraints.parsed_rules:
            check_names(rule, self.names)
            features = {name: self[resolve(name, self.names)] for name in rule_names(rule)}
            levels = {name: feature.levels for name, feature in features.items() if not feature.is_number}
            check_kinds(rule, {name: feature.rule_kind for name, feature in features.items()}, levels)

    @property
    def names(self) -> list[Any]:
        """The column names, in order."""
        return [feature.name for feature in self.features]

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, name: Any) -> Feature:
        return self.features[self.position(name)]

    def position(self, name: Any) -> int:
        """Where `name` stands among the columns; an unknown name is a `SchemaError`."""
        for i, feature in enumerate(self.features):
            if feature.name == name and not isinstance(name, bool):
                return i
        raise SchemaError(named("feature", name, self.names))

    def mask(self, names: Sequence[Any]) -> np.ndarray:
        """A boolean vector over the features, True for those in `names`."""
        mask = np.zeros(len(self), dtype=bool)
        mask[[self.position(name) for name in names]] = True
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
            return cls.model_validate_json(raw)
        except (ValidationError, OSError) as error:
            raise SchemaError(f"this is not a schema: {error}") from error


def _check_directions(feature: Feature, constraints: Constraints) -> None:
    ordered = feature.is_number or feature.kind is Kind.ORDINAL
    for kind in ("increase", "decrease"):
        if feature.name in getattr(constraints, kind) and not ordered:
            raise ConstraintError(
                f"{kind} {feature.name!r}: it is {feature.kind} and has no order; use allowed or transitions"
            )


def _check_numbers(feature: Feature, constraints: Constraints) -> None:
    """Refuse ranges, steps and costs per unit that the feature can't have or that leave it no value."""
    name = feature.name
    weight = constraints.cost.get(name)
    kinds = [kind for kind in ("ranges", "steps") if name in getattr(constraints, kind)]
    if not feature.is_number:
        kinds += ["cost"] if isinstance(weight, PerUnit) else []
        if kinds:
            remedy = "a plain number, the cost of any change" if kinds[0] == "cost" else _levels_remedy(feature)
            what = "a cost per unit is" if kinds[0] == "cost" else f"{kinds[0]} are"
            raise ConstraintError(f"{kinds[0]} {name!r}: it is {feature.kind}, and {what} for numbers; use {remedy}")
        return
    step = constraints.steps.get(name)
    if step is not None:
        _check_step(feature, step)
    for limits in constraints.ranges.get(name, ()):
        if limits.kind == "absolute":
            _check_range(feature, limits, step)


def _levels_remedy(feature: Feature) -> str:
    return "allowed" if feature.kind is Kind.ORDINAL else "allowed or transitions"


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


def _check_values(feature: Feature, constraints: Constraints) -> None:
    """Refuse allowed, forbidden and transitions with values that the feature does not have."""
    allowed, forbidden = (constraints.allowed.get(feature.name, ()), constraints.forbidden.get(feature.name, ()))
    for value in allowed:
        _check_value(feature, value, "allowed")
    for value in forbidden:
        _check_value(feature, value, "forbidden")
    states = [*feature.levels, *([None] if feature.missing else [])]
    if forbidden and not feature.is_number and all(state in forbidden for state in states):
        raise ConstraintError(
            f"forbidden {feature.name!r}: every value is forbidden; to keep it as it is, put it in frozen"
        )
    moves = constraints.transitions.get(feature.name, {})
    if moves and feature.is_number:
        raise ConstraintError(
            f"transitions {feature.name!r}: it is {feature.kind}, and transitions are for levels; "
            "use ranges, increase or decrease"
        )
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


def check_frame(frame: Any) -> None:
    """Refuse what can't be a table of features, before anything is learned from it."""
    if not isinstance(frame, pd.DataFrame):
        raise DataError(
            f"rows must be a pandas DataFrame, got {type(frame).__name__}; wrap arrays with pd.DataFrame(...)"
        )
    if frame.shape[0] == 0 or frame.shape[1] == 0:
        raise DataError(
            f"the frame is empty: {frame.shape[0]} rows and {frame.shape[1]} columns; give at least one of each"
        )
    repeated = frame.columns[frame.columns.duplicated()].unique().tolist()
    if repeated:
        raise DataError(f"column names repeat: {repeated}; rename them so that each is unique")
    odd = [c for c in frame.columns if not isinstance(_plain(c), str) and type(_plain(c)) is not int]
    if odd:
        raise DataError(
            f"column names must be text or whole numbers, found {odd[0]!r}; rename with frame.columns = [...]"
        )


def _describe(
    column: pd.Series,
    kind: Kind | str | None,
    order: Sequence[Level] | None,
    limits: tuple[float, float] | None,
) -> Feature:
    """One column's feature, from its dtype and values and from what the caller overrides."""
    _refuse_dtype(column)
    chosen = _kind_of(column, None if kind is None else _known_kind(column, kind), order)
    common = {
        "name": _plain(column.name),
        "kind": chosen,
        "dtype": dtype_text(column.dtype),
        "missing": bool(column.isna().any()),
        "missing_object": _missing_object(column),
        **_category_facts(column),
    }
    if chosen.is_number:
        low, high = _limits(column, limits, whole=chosen is Kind.INTEGER)
        return Feature(**common, minimum=low, maximum=high)
    if limits is not None:
        raise SchemaError(f"column {column.name!r} is {chosen}: limits are for numbers; drop it from limits")
    levels = _levels(column, order)
    _refuse_identifier(column, len(levels), overridden=kind is not None or order is not None)
    return Feature(**common, levels=levels)


def _known_kind(column: pd.Series, kind: Kind | str) -> Kind:
    try:
        return Kind(kind)
    except ValueError:
        raise SchemaError(f"column {column.name!r}: " + named("kind", kind, [k.value for k in Kind])) from None


def _kind_of(column: pd.Series, chosen: Kind | None, order: Sequence[Level] | None) -> Kind:
    if order is not None:
        if chosen not in (None, Kind.ORDINAL):
            raise SchemaError(
                f"column {column.name!r} has an order, which makes it ordinal, and kind {str(chosen)!r}; drop one"
            )
        return Kind.ORDINAL
    guess = _guess(column)
    if chosen is None:
        return guess
    if chosen.is_number and not guess.is_number:
        raise SchemaError(
            f"column {column.name!r} holds {column.dtype} values and can't be {chosen}; convert it to numbers first"
        )
    if chosen is Kind.INTEGER and guess is Kind.CONTINUOUS:
        raise SchemaError(
            f"column {column.name!r} has fractions and can't be integer; round it first or leave it continuous"
        )
    if chosen is Kind.BOOLEAN and column.dropna().nunique() > 2:
        raise SchemaError(f"column {column.name!r} has more than two values and can't be boolean; use categorical")
    return chosen


def _guess(column: pd.Series) -> Kind:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Kind.ORDINAL if dtype.ordered else Kind.CATEGORICAL
    if pd.api.types.is_bool_dtype(dtype):
        return Kind.BOOLEAN
    if pd.api.types.is_integer_dtype(dtype):
        return Kind.INTEGER
    if pd.api.types.is_float_dtype(dtype):
        values = column.dropna().to_numpy(dtype=float)
        whole = len(values) > 0 and bool(np.all(np.mod(values, 1.0) == 0.0))
        return Kind.INTEGER if whole else Kind.CONTINUOUS
    return Kind.CATEGORICAL


def _refuse_dtype(column: pd.Series) -> None:
    dtype = column.dtype
    name = column.name
    kinds = pd.api.types
    timelike = (
        kinds.is_datetime64_any_dtype(dtype) or kinds.is_timedelta64_dtype(dtype) or isinstance(dtype, pd.PeriodDtype)
    )
    if timelike:
        raise DataError(
            f"column {name!r} holds dates or times ({dtype}); turn it into numbers (age in days, month) or drop it"
        )
    odd = kinds.is_complex_dtype(dtype) or isinstance(dtype, pd.SparseDtype | pd.IntervalDtype)
    if odd or not _is_dtype(dtype_text(dtype)):
        raise DataError(f"column {name!r} has dtype {dtype}, which is not supported; convert it to numbers or text")
    if kinds.is_numeric_dtype(dtype) and not kinds.is_bool_dtype(dtype):
        _refuse_numbers(column)
    if dtype == object:
        _refuse_objects(column)


def _refuse_numbers(column: pd.Series) -> None:
    values = column.dropna().to_numpy(dtype=float)
    bad = ~np.isfinite(values)
    if bad.any():
        raise DataError(
            f"column {column.name!r} holds {int(bad.sum())} infinite numbers; replace them with NaN or a limit"
        )
    largest = np.abs(values).max(initial=0.0)
    if largest > MAX_NUMBER:
        raise DataError(
            f"column {column.name!r} holds {largest:g}, beyond {MAX_NUMBER:g}; replace it with NaN or a limit"
        )
    if pd.api.types.is_integer_dtype(column.dtype) and largest > MAX_EXACT_INTEGER:
        raise DataError(
            f"column {column.name!r} holds whole numbers beyond 2**53, as identifiers do; drop it or convert it to text"
        )
    if getattr(column.dtype, "itemsize", 8) > 8:
        raise DataError(f"column {column.name!r} has dtype {column.dtype}; convert it with .astype('float64')")


def _refuse_objects(column: pd.Series) -> None:
    for value in column.array:
        if value is None or value is pd.NA:
            continue
        if not isinstance(value, str | bool | int | float | np.bool_ | np.integer | np.floating):
            raise DataError(
                f"column {column.name!r} holds a {type(value).__name__} ({str(value)[:60]}); categories may be text, "
                "numbers or booleans: convert it with .astype(str)"
            )
        if isinstance(value, float | np.floating) and math.isinf(value):
            raise DataError(f"column {column.name!r} holds an infinite number; replace it with NaN or a limit")


def _refuse_identifier(column: pd.Series, n_levels: int, *, overridden: bool) -> None:
    rows = len(column)
    looks_like_text = not isinstance(column.dtype, pd.CategoricalDtype) and not overridden
    if looks_like_text and rows >= IDENTIFIER_ROWS and n_levels > IDENTIFIER_SHARE * rows:
        raise DataError(
            f"column {column.name!r} has {n_levels} different values in {rows} rows, as identifiers do; drop it, "
            "or say kinds={...: 'categorical'} if it really is a category"
        )
    if n_levels > MAX_LEVELS:
        raise DataError(
            f"column {column.name!r} has {n_levels} categories, more than {MAX_LEVELS}; group the rare ones or drop it"
        )


def _limits(column: pd.Series, limits: tuple[float, float] | None, *, whole: bool) -> tuple[float, float]:
    values = column.dropna().to_numpy(dtype=float)
    if len(values) == 0:
        raise DataError(f"column {column.name!r} is a number column without any number; drop it")
    low, high = float(values.min()), float(values.max())
    if limits is None:
        return low, high
    lowest, highest = _two_numbers(column, limits)
    if not (lowest <= low and high <= highest):
        raise SchemaError(
            f"column {column.name!r}: limits {lowest:g} to {highest:g} are narrower than the values seen, {low:g} to "
            f"{high:g}; widen them, or drop the rows beyond"
        )
    least, greatest = dtype_bounds(column.dtype)
    if lowest < least or highest > greatest:
        raise SchemaError(
            f"column {column.name!r}: limits {lowest:g} to {highest:g} are beyond what {column.dtype} can hold, "
            f"{least:g} to {greatest:g}; narrow them, or convert the column"
        )
    return (float(math.ceil(lowest)), float(math.floor(highest))) if whole else (lowest, highest)


def _two_numbers(column: pd.Series, limits: Any) -> tuple[float, float]:
    try:
        lowest, highest = (float(limit) for limit in limits)
    except (TypeError, ValueError):
        raise SchemaError(
            f"column {column.name!r}: limits must be two numbers, (lowest, highest), got {limits!r}"
        ) from None
    if not max(abs(lowest), abs(highest)) <= MAX_NUMBER:
        raise SchemaError(f"column {column.name!r}: limits must be finite, got {lowest:g} to {highest:g}; give numbers")
    return lowest, highest


def _levels(column: pd.Series, order: Sequence[Level] | None) -> tuple[Level, ...]:
    """The levels in their order: given, the dtype's own, or sorted."""
    seen = distinct(column)
    if order is not None:
        given = _ordered(column, order)
        known = {typed(v) for v in given}
        absent = [v for v in seen if typed(v) not in known]
        if absent:
            raise SchemaError(f"column {column.name!r}: the order lacks {absent[0]!r}; list every value of the column")
        return given
    if isinstance(column.dtype, pd.CategoricalDtype):
        present = {typed(v) for v in seen}
        return tuple(v for v in map(_plain, column.dtype.categories) if typed(v) in present)
    return tuple(sorted(seen, key=lambda v: (type(v).__name__, v)))


def _ordered(column: pd.Series, order: Sequence[Level]) -> tuple[Level, ...]:
    """The order as values of the column's own dtype; what the dtype can't hold, or holds twice, is refused."""
    given = _held(column, list(order))
    where = f"column {column.name!r}: the order"
    if given is None:
        held = f"a value that the column ({column.dtype}) can't hold"
        raise SchemaError(f"{where} {list(order)} has {held}; list the values of the column, lowest first")
    if len({typed(v) for v in given}) < len(given):
        raise SchemaError(f"{where} {list(order)} repeats a value; list each once, lowest first")
    return given


def _held(column: pd.Series, values: list[Any]) -> tuple[Level, ...] | None:
    """`values` as the column's dtype holds them, or None where it can't."""
    plain = [_plain(v) for v in values]
    if isinstance(column.dtype, pd.CategoricalDtype):
        known = {typed(_plain(v)) for v in column.dtype.categories}
        return tuple(plain) if all(typed(v) in known for v in plain) else None
    try:
        cast = tuple(_plain(v) for v in pd.Series(plain, dtype=column.dtype))
    except (TypeError, ValueError, OverflowError):
        return None
    finite = all(isinstance(v, Level) and not (isinstance(v, float) and not math.isfinite(v)) for v in cast)
    rounded = pd.api.types.is_float_dtype(column.dtype)
    return cast if finite and (rounded or list(cast) == plain) else None


def distinct(column: pd.Series) -> list[Level]:
    """The values that occur, as plain Python values, without missing ones; 1, 1.0 and True stay three values."""
    values = column.dropna()
    if column.dtype == object:
        return list({typed(_plain(v)): _plain(v) for v in values}.values())
    return [_plain(v) for v in values.unique()]


def typed(value: Any) -> tuple[str, Any]:
    """A key under which 1, 1.0 and True differ, as they do in a column of mixed objects."""
    return type(value).__name__, value


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _missing_object(column: pd.Series) -> str:
    """Which of None, nan and NA an object column uses, so that decoding gives it back."""
    if column.dtype != object or not column.isna().any():
        return "nan"
    first = column[column.isna()].iloc[0]
    return "None" if first is None else "NA" if first is pd.NA else "nan"


def _category_facts(column: pd.Series) -> dict[str, Any]:
    dtype = column.dtype
    if not isinstance(dtype, pd.CategoricalDtype):
        return {}
    categories = tuple(_plain(v) for v in dtype.categories)
    odd = [v for v in categories if not isinstance(v, str | bool | int | float)]
    if any(isinstance(v, float) and math.isinf(v) for v in categories):
        raise DataError(f"column {column.name!r} has an infinite category; replace it with NaN or a limit")
    if odd:
        raise DataError(
            f"column {column.name!r} has a category {odd[0]!r} of type {type(odd[0]).__name__}; categories may be "
            "text, numbers or booleans: rename them with .cat.rename_categories(str)"
        )
    return {
        "categories": categories,
        "ordered": bool(dtype.ordered),
        "categories_dtype": dtype_text(dtype.categories.dtype),
    }


def dtype_text(dtype: Any) -> str:
    """The dtype as text that `dtype_of` reads back; pandas' own text does not say how text is stored.

    >>> dtype_text(pd.Series([1, None], dtype="Int64").dtype)
    'Int64'
    """
    text = str(dtype)
    if isinstance(dtype, pd.StringDtype) and dtype != pd.api.types.pandas_dtype(text):
        return f"{text}[{dtype.storage}]"
    if isinstance(dtype, pd.ArrowDtype) and text == "string[pyarrow]":
        return "utf8[pyarrow]"  # the same type; pandas reads the other name as its own StringDtype
    return text


def dtype_of(text: str) -> Any:
    """The dtype that `dtype_text` described."""
    if text.startswith("str["):
        return pd.StringDtype(text[4:-1], na_value=np.nan)
    return pd.api.types.pandas_dtype(text)


def dtype_bounds(dtype: Any) -> tuple[float, float]:
    """The least and the greatest number that a column of `dtype` can hold and a float64 can tell apart."""
    plain = getattr(dtype, "numpy_dtype", dtype)
    if pd.api.types.is_integer_dtype(plain):
        held = np.iinfo(plain)
        return float(max(held.min, -MAX_EXACT_INTEGER)), float(min(held.max, MAX_EXACT_INTEGER))
    return -float(np.finfo(plain).max), float(np.finfo(plain).max)


def _is_dtype(text: str) -> bool:
    """Whether pandas reads `text` as a dtype; some of Arrow's can't be read back from their text."""
    try:
        dtype_of(text)
    except (TypeError, ValueError, NotImplementedError):
        return False
    return True
