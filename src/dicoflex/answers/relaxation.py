"""The smallest relaxation: which single constraint, relaxed how far, would give a row answers that it has not.

Each constraint is first opened; where its feature then lands says how far it must be relaxed, and the row is asked for
once more under that. What is told has been tried."""

from __future__ import annotations

__all__ = ["Look", "Relaxation", "confidence_relaxed", "relaxations", "relaxed", "sentence_of"]

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.answers.check import Check
from dicoflex.answers.engine import Pool, pool
from dicoflex.answers.query import Query
from dicoflex.answers.recorded import Origin
from dicoflex.answers.tasks import labelling
from dicoflex.constraints import Constraints
from dicoflex.constraints.kinds import KINDS, OneConstraint
from dicoflex.constraints.parts import Range
from dicoflex.constraints.rules.tree import names as rule_names
from dicoflex.constraints.words import percent, plain, shown, signed
from dicoflex.errors import QueryError
from dicoflex.limits.limits import Limits
from dicoflex.request import Request
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.rarity import outwards
from dicoflex.table.suggestions import is_growing, stays
from dicoflex.values import differ

Look = Callable[[Constraints], Pool | None]
"""What is found under other constraints: None where they leave nothing."""
DIGITS = 2
TIMES = 3
STEP = 0.05
KEEPS_AGES = ("frozen", "increase", "pinned")
"""Constraints of an age that are never relaxed; how long somebody may wait can be."""


@dataclass(frozen=True, repr=False)
class Relaxation:
    """One constraint relaxed: its kind and feature, what it was, what would do, and how many answers there are then.

    before, after: an end of a range, a budget, a list of values, or None where the constraint goes altogether. end:
    which end of a range, and `of`: what it limits, the value or its change. constraints: the whole set with it
    relaxed. confidence: what to ask for, where that is it.
    """

    kind: str
    feature: Any
    before: Any
    after: Any
    found: int
    constraints: Constraints
    end: str = ""
    of: str = "absolute"
    confidence: float | None = None

    def __repr__(self) -> str:
        return f"Relaxation({self.sentence!r}, found={self.found})"

    @property
    def sentence(self) -> str:
        """What to relax, in words."""
        return sentence_of(self, str(self.feature), lambda value: plain(value) if _is_float(value) else shown(value))

    def to_dict(self) -> dict[str, Any]:
        """The relaxation as plain data."""
        return {
            "kind": self.kind,
            "feature": self.feature,
            "from": self.before,
            "to": self.after,
            "found": self.found,
            "sentence": self.sentence,
            "constraints": self.constraints,
            "confidence": self.confidence,
        }


def relaxed(
    given: Constraints,
    ones: Sequence[OneConstraint],
    own: Values,
    encoding: Encoding,
    look: Look,
    *,
    more_than: int = 0,
) -> list[Relaxation]:
    """For each constraint of `ones`, which are in `given`, the least relaxation that gives more than so many answers.

    own: the row, encoded. Those that don't help alone are left out; the ones that help most come first. What keeps a
    feature that people can't or must not be asked to change, and what keeps an age from falling, is never relaxed.
    """
    tries = _Tries(given, own, encoding, look, more_than)
    features = encoding.schema.features
    ages = {f.name for f in features if is_growing(f)}
    kept = {f.name for f in features if stays(f)}
    found = [
        step
        for one in ones
        if not kept & _features(given, one) and not (one.feature in ages and one.kind in KEEPS_AGES)
        for step in tries.of(one)
        if not (one.feature in ages and step.end == "low")
    ]
    return sorted(found, key=lambda step: -step.found)


def _features(given: Constraints, one: OneConstraint) -> set[Any]:
    """The features that one constraint of a set is about."""
    if one.kind != "rules":
        return {one.feature}
    told = dict(zip(given.rules, given.parsed_rules, strict=True))
    return set(rule_names(told[one.args[0]])) if one.args and one.args[0] in told else set()


def confidence_relaxed(
    given: Constraints, sure: float, lowest: float, look: Callable[[float], Pool | None], *, more_than: int = 0
) -> list[Relaxation]:
    """The greatest confidence below `sure`, in steps of 5 %, that gives more than so many answers, if one does."""
    first = int(np.ceil(lowest / STEP - 1e-9))
    levels = [
        lowest,
        *(round(k * STEP, 2) for k in range(first, int(np.ceil(sure / STEP - 1e-9))) if k * STEP > lowest),
    ]
    if lowest >= sure or (count := _count(look(lowest))) <= more_than:
        return []
    low, high, best = 0, len(levels) - 1, count
    while low < high:
        middle = (low + high + 1) // 2
        count = _count(look(levels[middle]))
        if count > more_than:
            low, best = middle, count
        else:
            high = middle - 1
    return [Relaxation("confidence", None, sure, levels[low], found=best, constraints=given, confidence=levels[low])]


def sentence_of(step: Relaxation, name: str, show: Callable[[Any], str]) -> str:
    """A relaxation in words, with a name for its feature and a text for its values."""
    match step.kind:
        case "ranges" if step.of != "absolute":
            by = percent(step.after) if step.of == "relative" else signed(step.after)
            return f"let {name} change by {'up to' if step.end == 'high' else 'down to'} {by}"
        case "ranges":
            return f"allow {name} {'up to' if step.end == 'high' else 'down to'} {show(step.after)}"
        case "max_changes":
            return f"allow {step.after} changes instead of {step.before}"
        case "max_cost":
            return f"allow a cost of {plain(step.after)} instead of {plain(step.before)}"
        case "confidence":
            return f"ask for {step.after:.0%} instead of {step.before:.0%}".replace("%", " %")
        case "allowed" | "forbidden":
            return f"let {name} become {show(_difference(step))}"
        case "frozen":
            return f"let {name} change"
        case "increase" | "decrease":
            return f"let {name} go {'down' if step.kind == 'increase' else 'up'} as well"
        case "pinned":
            return f"don't pin {name} to {show(step.before)}"
        case "rules":
            return f"leave out the rule {step.before}"
        case "consequences":
            return f"don't let {name} follow from other values"
    return f"leave out {step.kind} of {name}"


def _difference(step: Relaxation) -> Any:
    """The value by which a list of values was relaxed."""
    longer, shorter = (step.after, step.before) if step.kind == "allowed" else (step.before, step.after)
    return next(value for value in longer if value not in shorter)


def _count(found: Pool | None) -> int:
    return 0 if found is None else len(found)


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


@dataclass(frozen=True)
class _Tries:
    """Tries to relax constraints of one set for one row."""

    given: Constraints
    own: Values
    encoding: Encoding
    look: Look
    more_than: int

    def of(self, one: OneConstraint) -> Iterator[Relaxation]:
        """The relaxations of one constraint that help."""
        match one.kind:
            case "ranges":
                yield from self._ranges(one, *one.args)
            case "max_changes":
                yield from self._max_changes(one, *one.args)
            case "max_cost":
                yield from self._max_cost(one, *one.args)
            case "allowed" | "forbidden":
                yield from self._listed(one, *one.args)
            case _:
                before = one.args[0] if one.args else None
                yield from self._tried(one, before, None, self.given.without([one.entry]))

    def _tried(
        self, one: OneConstraint, before: Any, after: Any, constraints: Constraints, *, end: str = ""
    ) -> Iterator[Relaxation]:
        count = _count(self.look(constraints))
        of = one.args[0].kind if one.kind == "ranges" else "absolute"
        if count > self.more_than:
            yield Relaxation(one.kind, one.feature, before, after, found=count, constraints=constraints, end=end, of=of)

    # -- numbers ------------------------------------------------------------------------------------------------

    def _ranges(self, one: OneConstraint, limits: Range) -> Iterator[Relaxation]:
        j = self.encoding.schema.position(one.feature)
        for end in ("low", "high"):
            if getattr(limits, end) is None:
                continue
            open_ = self._with_range(one, limits, **{end: None})
            found = self.look(open_)
            if _count(found) <= self.more_than or found is None:
                continue
            landed = self._in_units(limits, found.values[:, j], j)
            for after in _steps(landed, getattr(limits, end), self._ends(limits, j)[end == "high"], up=end == "high"):
                tried = list(self._tried(
                    one, getattr(limits, end), after, self._with_range(one, limits, **{end: after}), end=end
                ))  # fmt: skip
                yield from tried
                if tried:
                    break

    def _with_range(self, one: OneConstraint, limits: Range, **ends: float | None) -> Constraints:
        """The set with other ends of one range; one without any is left out."""
        low, high = ends.get("low", limits.low), ends.get("high", limits.high)
        others = [r for r in self.given.ranges[one.feature] if r != limits]
        kept = [*others, Range(low=low, high=high, kind=limits.kind)] if low is not None or high is not None else others
        ranges = {name: list(own) for name, own in self.given.ranges.items() if name != one.feature}
        return _replaced(self.given, ranges=ranges | ({one.feature: kept} if kept else {}))

    def _in_units(self, limits: Range, values: Values, j: int) -> Values:
        """Values as a range measures them: as they are, or from the row's own, perhaps in shares of it."""
        own = float(self.own[j])
        values = values[~np.isnan(values)]
        if limits.kind == "absolute":
            return values
        return (values - own) / (abs(own) or 1.0) if limits.kind == "relative" else values - own

    def _ends(self, limits: Range, j: int) -> tuple[float, float]:
        feature = self.encoding.schema.features[j]
        ends = self._in_units(limits, np.array([feature.minimum, feature.maximum], dtype=float), j)
        return float(ends[0]), float(ends[1])

    # -- budgets ------------------------------------------------------------------------------------------------

    def _max_changes(self, one: OneConstraint, most: int) -> Iterator[Relaxation]:
        # Without any budget another exponent would be taken.
        found = self.look(_replaced(self.given, max_changes=len(self.own)))
        if _count(found) <= self.more_than or found is None:
            return
        needed = np.unique(differ(found.values, self.own).sum(axis=1))
        for count in needed[needed > most][:TIMES].tolist():
            tried = list(self._tried(one, most, int(count), _replaced(self.given, max_changes=int(count))))
            yield from tried
            if tried:
                return

    def _max_cost(self, one: OneConstraint, most: float) -> Iterator[Relaxation]:
        found = self.look(_replaced(self.given, max_cost=None))
        if _count(found) <= self.more_than or found is None:
            return
        priced = Limits.build(
            Constraints(cost=self.given.cost), self.encoding, self.own[None], np.zeros((1, len(self.own)), dtype=bool)
        )
        costs = np.unique(priced.cost(found.values, self.own))
        for cost in costs[costs > most][:TIMES].tolist():
            after = outwards(cost, up=True, digits=DIGITS)
            tried = list(self._tried(one, most, after, _replaced(self.given, max_cost=after)))
            yield from tried
            if tried:
                return

    # -- lists --------------------------------------------------------------------------------------------------

    def _listed(self, one: OneConstraint, values: tuple[Any, ...]) -> Iterator[Relaxation]:
        """One value more that is allowed, or one less that is forbidden: those that most answers take first."""
        found = self.look(self.given.without([one.entry]))
        if _count(found) <= self.more_than or found is None:
            return
        landed = [value for value in self._landed(one.feature, found) if (value in values) != (one.kind == "allowed")]
        for value in landed[:TIMES]:
            after = (*values, value) if one.kind == "allowed" else tuple(v for v in values if v != value)
            lists = {**getattr(self.given, one.kind), one.feature: after}
            lists = {name: own for name, own in lists.items() if own}
            tried = list(self._tried(one, values, after, _replaced(self.given, **{one.kind: lists})))
            yield from tried
            if tried:
                return

    def _landed(self, name: Any, found: Pool) -> list[Any]:
        """The values to which answers change a feature, the commonest first."""
        j = self.encoding.schema.position(name)
        feature, column = self.encoding.schema.features[j], found.values[:, j]
        moved = column[differ(column, np.full(len(column), self.own[j]))]
        values, counts = np.unique(moved, return_counts=True)
        ordered = values[np.argsort(-counts, kind="stable")].tolist()
        if feature.is_number:
            return [None if value != value else value for value in ordered]
        return [feature.levels[int(code)] if code < len(feature.levels) else None for code in ordered]


def _replaced(given: Constraints, **fields: Any) -> Constraints:
    """The set with other values of some fields, checked anew."""
    left = {name: getattr(given, name) for name in type(given).model_fields}
    return type(given)(**left | fields)


def _steps(landed: Values, end: float, farthest: float, *, up: bool) -> Iterator[float]:
    """Where an end may be moved to: to the nearest value beyond it, rounded outwards, then to others further out."""
    beyond = np.sort(landed[landed > end] if up else -landed[landed < end])
    if len(beyond) == 0:
        return
    places = dict.fromkeys([0, len(beyond) // 2, len(beyond) - 1])
    for at in places:
        value = float(beyond[at] if up else -beyond[at])
        rounded = outwards(value, up=up, digits=DIGITS)
        yield min(rounded, max(farthest, value)) if up else max(rounded, min(farthest, value))


def relaxations(
    origin: Origin, request: Request, position: int, row: pd.DataFrame, *, check: Check | None = None
) -> list[Relaxation]:  # fmt: skip
    """What would give the query at `position`, which is `row`, more answers; `request` as it bound."""
    source, position = origin.of_query(position)
    if source.has_unseen:
        raise QueryError("the row holds a value that training never had, and nothing is tried for it; give one it had")
    model, context = source.model, source.context.take(slice(position, position + 1))
    given, own = request.constraints, context.query
    if check is not None and origin.model.score is not None:
        check = labelling(check, model.labels[context.target[0]])
    owner = {one.entry: one for one in model.schema.constraints.one_by_one()}

    def look(constraints: Constraints, sure: Any = request.confidence) -> Pool | None:
        asked = request.model_copy(
            update={"constraints": constraints, "frozen": constraints.frozen, "confidence": sure}
        )
        query = replace(Query.of_values(model, own, context.target, asked), given=row)
        return pool(model, query, check) if query.feasible[0] and not query.frozen.all() else None

    ones = [one for one in given.one_by_one() if KINDS[one.kind].role == "limit" and owner.get(one.entry) != one]
    present = look(given)
    count = 0 if present is None else len(present)
    found = relaxed(given, ones, own[0], model.encoding, look, more_than=count)
    if model.has_confidence:
        sure, lowest = float(context.confidence[0]), float(model.confidence.lowest[context.target[0]])
        found += confidence_relaxed(given, sure, lowest, lambda c: look(given, c), more_than=count)
    return sorted(found, key=lambda step: -step.found)
