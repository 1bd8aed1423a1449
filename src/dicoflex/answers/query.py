"""One call of `explain` or `sample`: what was asked, and the words for what could not be had."""

from __future__ import annotations

__all__ = ["Query", "exponent", "hardest", "index_of", "limited", "numbers_within", "shortfall", "wish"]

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.constraints import Constraints
from dicoflex.constraints.joining import combine
from dicoflex.constraints.kinds import KINDS
from dicoflex.errors import ConstraintError, QueryError, named
from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Values
from dicoflex.table.schema import Schema
from dicoflex.values import is_number, plain

Ints = NDArray[np.int64]
USUAL_EXPONENT = 2.0
NOTHING = Constraints()
NO_SHORTFALL = pd.DataFrame(columns=["row", "wanted", "got", "reason"])


@dataclass(frozen=True)
class Query:
    """The rows in the training dtypes, what they are conditioned on, their keys, and what was asked.

    wish: the constraints that bind, the schema's own among them; limits: the same, compiled for these rows, or None
    where nothing but frozen features is asked for.
    """

    frame: pd.DataFrame
    context: Context
    keys: NDArray[np.uint64]
    settings: dict[str, Any]
    wish: Constraints
    limits: Limits | None

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which rows the constraints leave a chance."""
        if self.limits is None:
            return np.ones(len(self.frame), dtype=bool)
        return np.array([reason is None for reason in self.limits.reasons])

    def cost(self, values: Values, own: Values) -> NDArray[np.float64] | None:
        """What the changes of some rows cost, None where nothing was priced."""
        return None if self.limits is None or not self.wish.cost else self.limits.cost(values, own)

    def label(self, i: int) -> str:
        """The index label of row `i`, as it is shown in messages."""
        label = self.frame.index[i]
        return repr(plain(label))

    @property
    def is_hopeless(self) -> bool:
        """Whether no row can be answered."""
        return not self.feasible.any()

    def able(self, *, refuse: bool) -> Ints:
        """The rows that can be answered; with `refuse`, one that can't is a `ConstraintError`."""
        unable = np.flatnonzero(~self.feasible)
        if refuse and len(unable) and self.limits is not None:
            first = unable[0]
            raise ConstraintError(f"row {self.label(int(first))}: {self.limits.reasons[first]}")
        return np.flatnonzero(self.feasible)


def wish(schema: Schema, frozen: Any, constraints: Any) -> Constraints:
    """The constraints that bind a call: the schema's, the call's, and the features in `frozen`.

    What the call overrides stays written in them, so that a record of them can be asked for again.
    """
    names = _names(frozen, schema)
    if constraints is None and schema.constraints == NOTHING:
        return NOTHING.model_copy(update={"frozen": tuple(names)})
    given = _constraints(constraints)
    names = list(dict.fromkeys([*given.frozen, *names]))
    bound = combine(schema.constraints, given.model_copy(update={"frozen": tuple(names)}))
    schema.check_constraints(bound)
    return bound.model_copy(update={"override": given.override})


def _constraints(given: Any) -> Constraints:
    if given is None:
        return Constraints()
    if isinstance(given, Constraints):
        return given
    if isinstance(given, Mapping):
        return Constraints(**given)
    raise QueryError(f"constraints must be Constraints(...) or a dict of its fields, got {type(given).__name__}")


def _names(frozen: Any, schema: Schema) -> list[Any]:
    if isinstance(frozen, str) or not isinstance(frozen, Iterable):
        name = frozen if frozen in schema.names else schema.names[0]
        raise QueryError(f"frozen must be a list of features, got {frozen!r}; write frozen=[{name!r}]")
    names = [plain(name) for name in frozen]
    for name in names:
        if name not in schema.names:
            raise QueryError(named("frozen feature", name, schema.names))
    return list(dict.fromkeys(names))


def limited(bound: Constraints) -> bool:
    """Whether more is asked for than frozen features; weights alone rule nothing out, but rank."""
    return bound.model_copy(update={"frozen": (), "strict": False, "override": ()}) != NOTHING


def exponent(p: Any, trained: tuple[float, ...], *, sparse: bool) -> float:
    """The exponent to ask for; by default the usual one, or the least where few features may change."""
    low, high = min(trained), max(trained)
    if p is None:
        return low if sparse else min(max(USUAL_EXPONENT, low), high)
    if not is_number(p) or not low <= p <= high:
        raise QueryError(f"p must lie in the trained range, {low:g} to {high:g}, got {p!r}")
    return float(p)


def hardest(query: Query, which: Ints, rows: Values) -> dict[int, str]:
    """For each query in `which`, in words, the constraint that most of its unbound draws break.

    rows: equally many encoded draws for each of them, one query after the other.
    """
    assert query.limits is not None
    each = len(rows) // len(which)
    own = query.context.query[which]
    frozen = query.limits.encoding.schema.mask(list(query.wish.frozen))
    entry = np.repeat(np.arange(len(which)), each)
    # What is frozen binds the draws without limits too.
    ones = [one for one in query.wish.one_by_one() if KINDS[one.kind].role == "limit" and one.kind != "frozen"]
    shares = []
    for one in ones:
        limits = Limits.build(query.wish.only(one), query.limits.encoding, own, np.tile(frozen, (len(own), 1)))
        shares.append(limits.broken(rows, own[entry], entry).reshape(len(which), each).mean(axis=1))
    if not ones:
        return {}
    worst = np.argmax(shares, axis=0)
    return {
        int(i): f"{ones[worst[k]].text} ({shares[worst[k]][k]:.0%} of the draws without it break it)"
        for k, i in enumerate(which)
    }


def shortfall(query: Query, got: Ints, refused: Ints, blamed: dict[int, str], *, rounds: int) -> pd.DataFrame:
    """Who got fewer than asked for, and why: row, wanted, got, reason."""
    n = query.settings["n"]
    if (got >= n).all():
        return NO_SHORTFALL.copy()
    labels = query.frame.index.to_flat_index()
    entries = [(labels[int(i)], n, int(got[i]), _reason(query, int(i), refused, blamed, rounds))
               for i in np.flatnonzero(got < n)]  # fmt: skip
    return pd.DataFrame(entries, columns=NO_SHORTFALL.columns)


def _reason(query: Query, i: int, refused: Ints, blamed: dict[int, str], rounds: int) -> str:
    if query.limits is not None and query.limits.reasons[i] is not None:
        return str(query.limits.reasons[i])
    if refused[i]:
        return f"check refused {refused[i]} candidates in {rounds} rounds"
    if i in blamed:
        return f"too few different rows obey the constraints and pass; the hardest: {blamed[i]}"
    return "no more different rows that pass under these conditions; free a feature, raise p or lower confidence"


def index_of(labels: pd.Index, query: Ints) -> pd.MultiIndex:
    """The index (row, cf) of answers to the queries with these numbers, in order, whose rows have these labels.

    >>> index_of(pd.Index([7, 9]), np.array([0, 0, 1])).tolist()
    [(7, 0), (7, 1), (9, 0)]
    """
    number = numbers_within(query)
    names = ["row", "cf"]
    if _is_level(labels) and len(query) and (np.diff(query, prepend=-1, append=len(labels)) <= 1).all():
        levels: list[Any] = [labels, np.arange(number.max() + 1)]
        codes: list[Any] = [query, number]
        return pd.MultiIndex(levels, codes, names=names, verify_integrity=False)
    flat = pd.Index(labels.to_flat_index().take(query), tupleize_cols=False)
    return pd.MultiIndex.from_arrays([flat, number], names=names)


def _is_level(labels: pd.Index) -> bool:
    """Whether the labels can be a level of an index as they are, which saves looking for the distinct ones."""
    return labels.nlevels == 1 and labels.is_monotonic_increasing and labels.is_unique and not labels.hasnans


def numbers_within(query: Ints) -> Ints:
    """0, 1, 2, … within each run of equal query numbers.

    >>> numbers_within(np.array([4, 4, 7]))
    array([0, 1, 0])
    """
    start = np.flatnonzero(np.diff(query, prepend=-1))
    return np.arange(len(query)) - np.repeat(start, np.diff(np.append(start, len(query))))
