"""The certificate: every answer checked against its query, its constraints and its schema, from decoded values.

Plain Python on the values of the frames, one cell after another; it shares nothing with the code that draws. What
each constraint means is said in `dicoflex.constraints.statement` and `dicoflex.constraints.rules`.
"""

from __future__ import annotations

__all__ = ["Row", "holding", "verify"]

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.constraints.parts import PerUnit, Range
from dicoflex.constraints.rules.kinds import resolve
from dicoflex.constraints.rules.meaning import evaluate, worked_out
from dicoflex.constraints.rules.parser import parse, parse_value
from dicoflex.constraints.rules.tree import Expression, Rule, names
from dicoflex.table.columns import column_dtype, same_dtype
from dicoflex.table.feature import Feature, Kind, dtype_of
from dicoflex.table.plain_rows import cells_of
from dicoflex.table.schema import Schema
from dicoflex.values import equal, is_missing

ROUNDING = 1e-14  # of limits that are calculated from the query, as a share of their size
STEP_ROUNDING = 1e-12  # of multiples of a step, as a share of their size
COST_ROUNDING = 1e-9

Row = dict[Any, Any]


def verify(
    queries: pd.DataFrame,
    frame: pd.DataFrame,
    positions: Sequence[int] | np.ndarray,
    constraints: Constraints,
    schema: Schema,
    *,
    frozen: Sequence[Any] = (),
    dependent: Sequence[Any] = (),
    others: Mapping[str, np.ndarray] | None = None,
) -> pd.DataFrame:
    """Whether each answer obeys each constraint: a frame with the columns row, cf, constraint, holds.

    queries: the rows explained; frame: the answers, index (row, cf); positions: the place of each answer's query.
    frozen: features that may not change besides those of `constraints`. dependent: features that follow from others in
    the table, so that, as those of consequences, they count neither as a change nor as cost. The line "schema" says
    that the columns and dtypes are the query's, and every changed value is one that the schema knows. others: further
    lines, with whether they hold of each answer.

    >>> queries = pd.DataFrame({"age": [30], "hours": [40]})
    >>> index = pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"])
    >>> answers = pd.DataFrame({"age": [29], "hours": [45]}, index=index)
    >>> schema = Schema.infer(pd.DataFrame({"age": [20, 60], "hours": [10, 60]}))
    >>> wish = Constraints(increase=["age"], ranges={"hours": (20, 50)})
    >>> print(verify(queries, answers, [0], wish, schema).to_string(index=False))
     row  cf           constraint  holds
       0   0 range hours 20 to 50   True
       0   0         increase age  False
       0   0               schema   True
    """
    wanted = constraints.merge(Constraints(frozen=list(dict.fromkeys(frozen))))
    # A column that an answer lacks counts as missing in it.
    before, after = _rows(queries), _rows(frame.reindex(columns=queries.columns))
    own = [before[place] for place in positions]
    names, table = holding(own, after, wanted, schema, typed=_same_types(queries, frame, schema), dependent=dependent)
    labels = [*names, *(others or {})]
    return pd.DataFrame(
        {
            "row": frame.index.get_level_values(0).repeat(len(labels)),
            "cf": frame.index.get_level_values(1).repeat(len(labels)),
            "constraint": pd.Series(labels * len(after), dtype="str"),
            "holds": np.column_stack([table, *(others or {}).values()]).astype(bool).reshape(-1),
        }
    )


def holding(
    own: Sequence[Row],
    answers: Sequence[Row],
    constraints: Constraints,
    schema: Schema,
    *,
    typed: bool,
    dependent: Iterable[Any] = (),
) -> tuple[list[str], np.ndarray]:
    """What is checked, and whether it holds of each answer to the row at the same place (answers, checks).

    typed: whether the answers' columns and dtypes are the rows'. dependent: see `verify`.
    """
    checks = _checks(constraints, schema, {*constraints.consequences, *dependent})
    holds = [_verdicts(checks, query, row, typed) for query, row in zip(own, answers, strict=True)]
    return [label for label, _ in checks], np.array(holds, dtype=bool).reshape(len(answers), len(checks))


class _Pair:
    """A query and an answer to it; `changed` are the features in which they differ."""

    def __init__(self, query: Row, answer: Row, *, typed: bool) -> None:
        self.query, self.answer, self.typed = query, answer, typed
        self.changed = {name for name in query if name in answer and not _same(query[name], answer[name])}


Check = Callable[[_Pair], bool]


def _verdicts(checks: list[tuple[str, Check]], query: Row, answer: Row, typed: bool) -> list[bool]:
    pair = _Pair(query, answer, typed=typed)
    return [check(pair) for _, check in checks]


def _checks(constraints: Constraints, schema: Schema, uncounted: set[Any]) -> list[tuple[str, Check]]:
    """A check per single constraint, with its label; weights and manners are met or not through the others."""
    limits = [one for one in constraints.one_by_one() if KINDS[one.kind].role == "limit"]
    checks = [(one.label, _check(one, constraints, schema, uncounted)) for one in limits]
    return [*checks, ("schema", _fits(schema))]


def _check(one: OneConstraint, constraints: Constraints, schema: Schema, uncounted: set[Any]) -> Check:
    name, strict = one.feature, constraints.strict
    match one.kind:
        case "frozen":
            return lambda pair: _identical(pair.query[name], pair.answer[name])
        case "ranges":
            return _range(name, *one.args, strict=strict)
        case "increase" | "decrease":
            return _direction(schema[name], up=one.kind == "increase")
        case "allowed" | "forbidden":
            return _listed(schema[name], *one.args, wanted=one.kind == "allowed", strict=strict)
        case "pinned":
            return _listed(schema[name], one.args, wanted=True, strict=True)
        case "transitions":
            return _transition(schema[name], *one.args)
        case "steps":
            return _step(schema[name], *one.args)
        case "max_changes":
            return lambda pair: len(pair.changed - uncounted) <= one.args[0]
        case "rules":
            return _rule(parse(*one.args), schema)
        case "max_cost":
            return lambda pair: _cost(pair, constraints, uncounted) <= one.args[0] + COST_ROUNDING
        case "consequences":
            return _consequence(schema[name], parse_value(*one.args), schema)
        case _:
            raise NotImplementedError(f"{one.kind} has no check")


# -- one check per kind ------------------------------------------------------------------------------------------


def _range(name: Any, limits: Range, *, strict: bool) -> Check:
    def holds(pair: _Pair) -> bool:
        query, answer = pair.query[name], pair.answer[name]
        if name not in pair.changed and (not strict or (limits.kind != "absolute" and is_missing(query))):
            return True
        if is_missing(answer) or (limits.kind != "absolute" and is_missing(query)):
            return False
        low, high = _ends(limits, query)
        return bool(low <= answer <= high)

    return holds


def _ends(limits: Range, query: Any) -> tuple[float, float]:
    """The least and the greatest value that the limits let through for a query."""
    low = -math.inf if limits.low is None else limits.low
    high = math.inf if limits.high is None else limits.high
    if limits.kind == "absolute":
        return low, high
    unit = abs(float(query)) if limits.kind == "relative" else 1.0
    # An open end stays open also where the query is 0.
    low, high = (query + end * unit if math.isfinite(end) else end for end in (low, high))
    slack = [ROUNDING * max(abs(float(query)), abs(end)) if math.isfinite(end) else 0.0 for end in (low, high)]
    return low - slack[0], high + slack[1]


def _direction(feature: Feature, *, up: bool) -> Check:
    def holds(pair: _Pair) -> bool:
        query, answer = pair.query[feature.name], pair.answer[feature.name]
        if feature.name not in pair.changed:
            return True
        if is_missing(query) or is_missing(answer):
            return False
        before, after = _rank(feature, query), _rank(feature, answer)
        return after > before if up else after < before

    return holds


def _rank(feature: Feature, value: Any) -> float:
    """A number itself, or a level's place in the order; NaN, which is neither more nor less, for an unknown one."""
    if feature.is_number:
        return float(value)
    return next((float(i) for i, level in enumerate(feature.levels) if _same(level, value)), math.nan)


def _listed(feature: Feature, values: Sequence[Any], *, wanted: bool, strict: bool) -> Check:
    known = [_stored(feature, value) for value in values]

    def holds(pair: _Pair) -> bool:
        if feature.name not in pair.changed and not strict:
            return True
        return any(_means(value, pair.answer[feature.name]) for value in known) == wanted

    return holds


def _transition(feature: Feature, moves: dict[Any, tuple[Any, ...]]) -> Check:
    def holds(pair: _Pair) -> bool:
        if feature.name not in pair.changed:
            return True
        query, answer = pair.query[feature.name], pair.answer[feature.name]
        listed = [ends for origin, ends in moves.items() if _means(origin, query)]
        return all(any(_means(end, answer) for end in ends) for ends in listed)

    return holds


def _step(feature: Feature, step: float) -> Check:
    def holds(pair: _Pair) -> bool:
        value = pair.answer[feature.name]
        if feature.name not in pair.changed:
            return True
        if is_missing(value):
            return False
        nearest = round(value / step)
        near = abs(value / step - nearest) <= STEP_ROUNDING * max(1, abs(nearest))
        return near or bool(_stored(feature, nearest * step) == value)

    return holds


def _cost(pair: _Pair, constraints: Constraints, uncounted: set[Any]) -> float:
    """What the changes of an answer cost; a value that appears or vanishes counts as one unit."""
    total = 0.0
    for name in pair.changed - uncounted:
        weight = constraints.cost.get(name, 0.0)
        if isinstance(weight, PerUnit):
            query, answer = pair.query[name], pair.answer[name]
            units = 1.0 if is_missing(query) or is_missing(answer) else abs(float(answer) - float(query))
            total += weight.weight * units
        else:
            total += weight
    return total


def _rule(rule: Rule, schema: Schema) -> Check:
    columns, orders = _named(rule, schema)

    def holds(pair: _Pair) -> bool:
        now, before = ({name: row[c] for name, c in columns.items()} for row in (pair.answer, pair.query))
        return evaluate(rule, now, was=before, orders=orders)

    return holds


def _consequence(feature: Feature, made: Expression, schema: Schema) -> Check:
    columns, orders = _named(made, schema)

    def holds(pair: _Pair) -> bool:
        now, before = ({name: row[c] for name, c in columns.items()} for row in (pair.answer, pair.query))
        meant = worked_out(made, now, was=before, orders=orders)
        found = pair.answer[feature.name]
        if meant is None or is_missing(found):
            return meant is None and is_missing(found)
        if feature.is_number:
            return bool(found == (np.rint(meant) if feature.is_whole else _stored(feature, meant)))
        return equal(meant, found)

    return holds


def _named(rule: Rule | Expression, schema: Schema) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns that a rule's names mean, and the levels of those that are ordinals."""
    columns = {name: resolve(name, schema.names) for name in names(rule)}
    return columns, {name: schema[c].levels for name, c in columns.items() if schema[c].kind is Kind.ORDINAL}


def _fits(schema: Schema) -> Check:
    known = {feature.name: _known(feature) for feature in schema.features}
    return lambda pair: pair.typed and all(known[name](pair.answer[name]) for name in pair.changed)


def _known(feature: Feature) -> Callable[[Any], bool]:
    """Whether the schema knows a value that the query does not have."""
    whole = feature.is_whole
    low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)

    def known(value: Any) -> bool:
        if is_missing(value):
            return feature.missing
        if not feature.is_number:
            return any(_same(level, value) for level in feature.levels)
        return bool(low <= value <= high) and (not whole or float(value).is_integer())

    return known


# -- values ------------------------------------------------------------------------------------------------------


def _rows(frame: pd.DataFrame) -> list[Row]:
    """The rows as dicts of plain Python values."""
    return [dict(zip(frame.columns, row, strict=True)) for row in cells_of(frame)]


def _same_types(queries: pd.DataFrame, frame: pd.DataFrame, schema: Schema) -> bool:
    """Whether the columns and dtypes of answers are the queries', or those that the schema has.

    A column of queries that holds a value which training never had may be of another dtype.
    """
    if list(queries.columns) != list(frame.columns):
        return False
    return all(
        own == dtype or same_dtype(dtype, column_dtype(schema[name]))
        for name, own, dtype in zip(frame.columns, queries.dtypes, frame.dtypes, strict=True)
    )


def _same(one: Any, other: Any) -> bool:
    """Whether two values are one: missing equals missing, and 1, 1.0 and True are different levels."""
    if type(one) is type(other) and isinstance(one, str | int | float) and one == other:
        return True
    return is_missing(one) and is_missing(other)


def _identical(one: Any, other: Any) -> bool:
    """Whether two values are one to the last bit, the sign of zero included."""
    if isinstance(one, float) and isinstance(other, float) and not is_missing(one):
        return struct.pack("<d", one) == struct.pack("<d", other)
    return _same(one, other)


def _means(listed: Any, value: Any) -> bool:
    """Whether a listed value stands for `value`; None stands for missing, 1 also for 1.0 and True."""
    if listed is None or is_missing(value):
        return listed is None and is_missing(value)
    return isinstance(listed, str) == isinstance(value, str) and bool(listed == value)


def _stored(feature: Feature, value: Any) -> Any:
    """A number as a column of the feature's dtype holds it: narrow floats round."""
    if not feature.is_number or value is None:
        return value
    dtype = dtype_of(feature.dtype)
    plain = getattr(dtype, "numpy_dtype", dtype)
    return float(np.asarray(value, dtype=plain)) if np.issubdtype(plain, np.floating) else value
