"""All that judges a row while it is refined, as kernels read it: the stand-in, what goes together, and the limits."""

from __future__ import annotations

__all__ = ["Bounds", "Judges", "allowed", "differ", "new_desk", "settle", "sure_of"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.coherence import Coherence
from dicoflex.coherence.bins import Places, cell_of
from dicoflex.coherence.dependencies import Steps
from dicoflex.coherence.row_density import Factors, whole
from dicoflex.limits.consequences import Consequences
from dicoflex.limits.limits import Limits
from dicoflex.limits.programs import STACK, Programs, run, write
from dicoflex.runtime.compiled import compiled
from dicoflex.stand_in import Both, Forest, Perceptron, StandIn
from dicoflex.stand_in.perceptron import BOUND
from dicoflex.table.encoding import Encoding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Weights = NDArray[np.float32]
SLACK = 1e-9


class Net(NamedTuple):
    """A perceptron: where features stand among its reals, and its layers."""

    numbers: Ints
    mean: Floats
    scale: Floats
    codes: Ints
    number_at: Ints
    level_at: Ints
    is_pair: Bools
    w0: Weights
    b0: Weights
    w1: Weights
    b1: Weights
    w2: Weights
    b2: Weights


class Trees(NamedTuple):
    """Boosted trees as flat arrays."""

    start: Ints
    feature: NDArray[np.int32]
    threshold: Floats
    missing_left: Bools
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Floats
    baseline: Floats


class Judges(NamedTuple):
    """A model's judges. has_net, has_trees: which of the two stand-ins count; one that does not is empty."""

    has_net: bool
    has_trees: bool
    net: Net
    trees: Trees
    pairs: Places
    avoided: Bools
    rows: Places
    factors: Factors
    steps: Steps
    follower: Bools
    scale: Floats  # (d,): a number's standard deviation
    step: Floats  # (d,): how far a number's values are apart, 0 where that can't be told
    digits: Floats  # (d,): ten to the power of a number's decimals
    stop_at: Ints
    stop: Floats
    typical: Floats

    @classmethod
    def of(cls, encoding: Encoding, stand_in: StandIn, coherence: Coherence) -> Judges:
        """The judges of a model with this encoding and this stand-in."""
        stops = coherence.stops
        net = stand_in.net if isinstance(stand_in, Both) else stand_in if isinstance(stand_in, Perceptron) else None
        trees = stand_in.trees if isinstance(stand_in, Both) else stand_in if isinstance(stand_in, Forest) else None
        return cls(
            has_net=net is not None,
            has_trees=trees is not None,
            net=_net(encoding, net),
            trees=_trees(trees),
            pairs=coherence.pairs.bins.places,
            avoided=coherence.pairs.avoided,
            rows=coherence.density.bins.places,
            factors=coherence.density.factors,
            steps=coherence.dependencies.steps,
            follower=coherence.dependencies.followers,
            scale=encoding.scale,
            step=stops.step,
            digits=np.power(10.0, stops.decimals),
            stop_at=stops.at,
            stop=stops.value,
            typical=stops.typical,
        )


def _net(encoding: Encoding, net: Perceptron | None) -> Net:
    numbers = encoding.number_feature
    layers = _NO_LAYERS if net is None else [a for layer in net.layers for a in layer]
    number_at, level_at, is_pair = encoding.places
    placed = numbers, encoding.mean[numbers], encoding.scale[numbers], encoding.code_feature
    return Net(*placed, number_at, level_at, is_pair, *layers)


_NO_LAYERS = [np.zeros((0, 0), np.float32), np.zeros(0, np.float32)] * 3


def _trees(forest: Forest | None) -> Trees:
    if forest is not None:
        return Trees(*(getattr(forest, name) for name in Trees._fields))
    ints, reals, links = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int32)
    return Trees(
        start=ints, feature=links, threshold=reals, missing_left=np.zeros(0, bool), left=links, right=links,
        value=reals, baseline=reals,
    )  # fmt: skip


class Bounds(NamedTuple):
    """What constraints allow; the first five have an entry per query."""

    frozen: Bools  # (n, d)
    low: Floats  # (n, d): between which a changed number lies
    high: Floats
    states: Bools  # (n, states): codes that a changed level may have; of a number, whether it may become missing
    may_keep: Bools  # (n, d)
    offset: Ints
    has_points: Bools  # (d,): whether a changed number may take listed values alone
    point_at: Ints
    point: Floats
    banned_at: Ints
    banned: Floats
    fixed: Floats
    unit: Floats
    most_changes: int
    most_cost: float
    uncounted: Bools  # (d,): what counts neither as a change nor as cost
    follows: Bools  # (d,): what refinement does not choose, as it follows from others
    rules: Programs
    consequences: Consequences

    @classmethod
    def of(cls, encoding: Encoding, frozen: Bools, limits: Limits | None) -> Bounds:
        """The limits of some queries, or what the schema allows where there are none."""
        d = frozen.shape[1]
        if limits is None:
            return cls._of_schema(encoding, frozen)
        points, banned = _end_to_end(list(limits.points)), _end_to_end([limits.banned.get(j) for j in range(d)])
        return cls(
            frozen=(limits.frozen | frozen) & ~limits.follows,
            low=limits.low,
            high=limits.high,
            states=limits.states,
            may_keep=limits.may_keep,
            offset=limits.offset,
            has_points=np.array([points is not None for points in limits.points]),
            point_at=points[0],
            point=points[1],
            banned_at=banned[0],
            banned=banned[1],
            fixed=limits.fixed,
            unit=limits.unit,
            most_changes=int(limits.most_changes),
            most_cost=float(limits.most_cost),
            uncounted=limits.uncounted,
            follows=limits.follows,
            rules=limits.rules,
            consequences=limits.consequences,
        )

    @classmethod
    def _of_schema(cls, encoding: Encoding, frozen: Bools) -> Bounds:
        """What the schema allows."""
        features, (n, d) = encoding.schema.features, frozen.shape
        sizes = [int(f.missing) if f.is_number else f.n_states for f in features]
        least = [f.minimum if f.is_number and f.minimum is not None else -np.inf for f in features]
        most = [f.maximum if f.is_number and f.maximum is not None else np.inf for f in features]
        nothing = _end_to_end([None] * d)
        return cls(
            frozen=frozen,
            low=np.tile(np.array(least), (n, 1)),
            high=np.tile(np.array(most), (n, 1)),
            states=np.ones((n, sum(sizes)), dtype=bool),
            may_keep=np.ones((n, d), dtype=bool),
            offset=np.cumsum([0, *sizes]),
            has_points=np.zeros(d, dtype=bool),
            point_at=nothing[0],
            point=nothing[1],
            banned_at=nothing[0],
            banned=nothing[1],
            fixed=np.zeros(d),
            unit=np.zeros(d),
            most_changes=d,
            most_cost=np.inf,
            uncounted=np.zeros(d, dtype=bool),
            follows=np.zeros(d, dtype=bool),
            rules=write([], encoding.schema),
            consequences=Consequences.of({}, encoding.schema),
        )


def _end_to_end(lists: list[Floats | None]) -> tuple[Ints, Floats]:
    arrays = [np.zeros(0) if array is None else np.asarray(array, dtype=np.float64) for array in lists]
    return np.cumsum([0, *map(len, arrays)]), np.concatenate(arrays)


class Desk(NamedTuple):
    """Room to work in: the row's cells under both judges, the query's, those of a trial, and the density's layers."""

    trial: Floats
    kept: Floats  # the row as it was before it was made less
    pair: Ints
    pair_trial: Ints
    pair_query: Ints
    cell: Ints
    cell_trial: Ints
    heard: Weights
    heard_trial: Weights
    factor: Floats
    factor_trial: Floats
    hidden: Weights
    logits: Weights
    first: Weights
    second: Weights
    now: Floats  # the row's probability, log density and weakest factor
    stack: Floats
    moves: Ints  # how often the row moved, and how often a change was undone
    tried: Ints  # (d,): the number of moves when undoing a feature's change was last tried in vain


@compiled()
def new_desk(d, judges):  # type: ignore[no-untyped-def]
    """A desk for rows of `d` features."""
    f = judges.factors
    n_hidden, n_head, n_state = len(f.start), f.inner.shape[2], f.outer.shape[2]
    ints = np.zeros((5, d), dtype=np.int64)
    return Desk(
        np.empty(d), np.empty(d), ints[0], ints[1], ints[2], ints[3], ints[4],
        np.empty((d, n_hidden), dtype=np.float32), np.empty((d, n_hidden), dtype=np.float32), np.empty(d), np.empty(d),
        np.empty(n_head, dtype=np.float32), np.empty(n_state, dtype=np.float32),
        np.empty(len(judges.net.b0), dtype=np.float32), np.empty(len(judges.net.b1), dtype=np.float32), np.empty(3),
        np.empty(STACK), np.zeros(2, dtype=np.int64), np.full(d, -1, dtype=np.int64),
    )  # fmt: skip


@compiled(inline="always")
def differ(a, b):  # type: ignore[no-untyped-def]
    """Whether two values differ; missing equals missing."""
    return not (a == b or (np.isnan(a) and np.isnan(b)))


@compiled()
def sure_of(row, target, judges, desk):  # type: ignore[no-untyped-def]
    """The probability that the stand-in gives the target."""
    if not judges.has_trees:
        return _net_sure(row, target, judges.net, desk.first, desk.second)
    if not judges.has_net:
        return _trees_sure(row, target, judges.trees)
    both = _net_sure(row, target, judges.net, desk.first, desk.second) + _trees_sure(row, target, judges.trees)
    return 0.5 * both


@compiled(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def _net_sure(row, target, m, first, second):  # type: ignore[no-untyped-def]
    zero, bound = np.float32(0.0), np.float32(BOUND)
    for k in range(len(m.b0)):
        first[k] = m.b0[k]
    for c in range(len(m.numbers)):
        v = row[m.numbers[c]]
        if np.isnan(v):
            continue
        x = min(max(np.float32((v - m.mean[c]) / m.scale[c]), -bound), bound)
        at = m.number_at[c]
        for k in range(len(m.b0)):
            first[k] += x * m.w0[at, k]
    for c in range(len(m.codes)):
        code = row[m.codes[c]]
        at = m.level_at[c] + (np.int64(np.isnan(code)) if m.is_pair[c] else np.int64(code))
        for k in range(len(m.b0)):
            first[k] += m.w0[at, k]
    for k in range(len(m.b1)):
        second[k] = m.b1[k]
    for i in range(len(m.b0)):
        x = first[i]
        if x > zero:
            for k in range(len(m.b1)):
                second[k] += x * m.w1[i, k]
    mine = np.float64(m.b2[target])
    for i in range(len(m.b1)):
        if second[i] > zero:
            mine += np.float64(second[i] * m.w2[i, target])
    total = 1.0
    for k in range(len(m.b2)):
        if k == target:
            continue
        score = np.float64(m.b2[k])
        for i in range(len(m.b1)):
            if second[i] > zero:
                score += np.float64(second[i] * m.w2[i, k])
        total += np.exp(score - mine)
    return 1.0 / total


@compiled(error_model="numpy")
def _trees_sure(row, target, t):  # type: ignore[no-untyped-def]
    n = len(t.baseline)
    scores = t.baseline.copy()
    for tree in range(len(t.start)):
        node = t.start[tree]
        while t.feature[node] >= 0:
            x = row[t.feature[node]]
            go_left = t.missing_left[node] if np.isnan(x) else x <= t.threshold[node]
            node = t.left[node] if go_left else t.right[node]
        scores[tree % n] += t.value[node]
    if n == 1:
        return 1.0 / (1.0 + np.exp(-scores[0] if target == 1 else scores[0]))
    total = 0.0
    for k in range(n):
        total += np.exp(scores[k] - scores[target])
    return 1.0 / total


@compiled()
def settle(row, target, judges, desk):  # type: ignore[no-untyped-def]
    """Work out all that is known of a row."""
    for j in range(len(row)):
        desk.pair[j] = cell_of(j, row[j], judges.pairs)
        desk.cell[j] = cell_of(j, row[j], judges.rows)
    desk.now[0] = sure_of(row, target, judges, desk)
    desk.now[1] = whole(desk.cell, judges.factors, desk.heard, desk.factor, desk.hidden, desk.logits)
    desk.now[2] = desk.factor.min()


@compiled(inline="always")
def _listed(value, values, first, last):  # type: ignore[no-untyped-def]
    """Whether a sorted stretch of values holds one, up to rounding."""
    at = first + np.searchsorted(values[first:last], value)
    slack = SLACK * max(1.0, abs(value))
    near = at < last and abs(values[at] - value) <= slack
    return near or (at > first and abs(values[at - 1] - value) <= slack)


@compiled()
def allowed(row, query, at, number, bounds, stack):  # type: ignore[no-untyped-def]
    """Whether query `at` may have `row` as an answer; features that follow are taken to do so."""
    changes, cost = 0, 0.0
    for j in range(len(row)):
        x, q = row[j], query[j]
        if not differ(x, q):
            if not bounds.may_keep[at, j]:
                return False
            continue
        if bounds.frozen[at, j]:
            return False
        if not bounds.uncounted[j]:
            changes += 1
            cost += bounds.fixed[j] + bounds.unit[j] * (1.0 if np.isnan(x - q) else abs(x - q))
        first, last = bounds.offset[j], bounds.offset[j + 1]
        if not number[j]:
            if not bounds.states[at, first + np.int64(x)]:
                return False
        elif np.isnan(x):
            if last == first or not bounds.states[at, first]:
                return False
        else:
            if not bounds.low[at, j] <= x <= bounds.high[at, j]:
                return False
            if bounds.has_points[j] and not _listed(x, bounds.point, bounds.point_at[j], bounds.point_at[j + 1]):
                return False
            if _listed(x, bounds.banned, bounds.banned_at[j], bounds.banned_at[j + 1]):
                return False
    if changes == 0 or changes > bounds.most_changes or cost > bounds.most_cost + SLACK:
        return False
    for k in range(len(bounds.rules.at) - 1):  # noqa: SIM110 - numba has no generators that end early
        if run(k, row, query, bounds.rules, stack) == 0.0:
            return False
    return True
