"""All that judges a row while it is refined, as kernels read it: the stand-in, what goes together, and the limits."""

from __future__ import annotations

__all__ = ["Judges", "lay_out", "least", "locate", "new_desk", "settle", "sure_of", "weigh"]

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dicoflex.coherence import Coherence
from dicoflex.coherence.bins import Places, cell_of
from dicoflex.coherence.dependencies import Steps
from dicoflex.coherence.row_density import Factors, Room, edited, new_room, whole
from dicoflex.limits.programs import STACK
from dicoflex.refinement.bounds import differ
from dicoflex.runtime.compiled import compiled, lean
from dicoflex.runtime.products import Actives, add_rectified, new_actives
from dicoflex.stand_in import Both, Forest, Perceptron, StandIn
from dicoflex.stand_in.perceptron import BOUND
from dicoflex.table.encoding import Encoding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Weights = NDArray[np.float32]


class Net(NamedTuple):
    """A perceptron: where each feature stands among its reals, and its layers, the last one turned."""

    mean: Floats  # (d,)
    scale: Floats
    number_at: Ints  # (d,): where its number stands, -1 where it has none
    level_at: Ints  # (d,): where its levels start, -1 where it has none
    is_pair: Bools  # (d,): whether the levels are those of a number: there, or missing
    w0: Weights
    b0: Weights
    w1: Weights
    b1: Weights
    w2: Weights  # (classes, hidden)
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
    numbers, levels = encoding.places[0], encoding.places[1]
    d, codes = len(encoding.schema), encoding.code_feature
    number_at, level_at, is_pair = np.full(d, -1), np.full(d, -1), np.zeros(d, dtype=bool)
    number_at[encoding.number_feature] = numbers
    level_at[codes], is_pair[codes] = levels, encoding.places[2]
    layers = _NO_LAYERS if net is None else [a for layer in net.layers for a in layer]
    w0, b0, w1, b1, w2, b2 = layers
    return Net(
        mean=encoding.mean, scale=encoding.scale, number_at=number_at, level_at=level_at, is_pair=is_pair,
        w0=w0, b0=b0, w1=w1, b1=b1, w2=np.ascontiguousarray(w2.T), b2=b2,
    )  # fmt: skip


_NO_LAYERS = [np.zeros((0, 0), np.float32), np.zeros(0, np.float32)] * 3


def _trees(forest: Forest | None) -> Trees:
    if forest is not None:
        return Trees(*(getattr(forest, name) for name in Trees._fields))
    ints, reals, links = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int32)
    return Trees(
        start=ints, feature=links, threshold=reals, missing_left=np.zeros(0, bool), left=links, right=links,
        value=reals, baseline=reals,
    )  # fmt: skip


class Desk(NamedTuple):
    """Room to work in: what is known of the query, of the row and of a trial, by both judges' cells.

    A row is judged by what it changes: all that its query tells is worked out once.
    """

    loaded: Ints  # (1,): which query lies on the desk, -1 for none
    order: Ints  # (d,): the features in the order in which their changes are tried
    rank: Floats
    alone: Floats  # (d,): how sure the stand-in was without a feature's change, when that order was made
    skipped: Bools  # (d,): what mending tried in vain
    trying: Floats  # what a trial must be while a row is mended, or made less
    trial: Floats
    kept: Floats  # the row as it was before it was made less
    pair: Ints
    pair_trial: Ints
    pair_query: Ints
    cell: Ints
    cell_trial: Ints
    cell_query: Ints
    heard: Weights
    heard_trial: Weights
    heard_query: Weights
    factor: Floats
    factor_trial: Floats
    factor_query: Floats
    room: Room
    base: Weights  # the query's first layer
    first: Weights
    second: Weights
    actives: Actives
    votes: Floats  # (classes,): the trees' scores
    now: Floats  # the row's probability, log density and weakest factor
    stack: Floats
    moves: Ints  # how often the row moved, how often a change was undone, and after how many moves `alone` held
    tried: Ints  # (d,): the number of moves when undoing a feature's change was last tried in vain


@compiled()
def new_desk(d, judges):  # type: ignore[no-untyped-def]
    """A desk for rows of `d` features."""
    n_hidden, n_first, n_second = len(judges.factors.start), len(judges.net.b0), len(judges.net.b1)
    ints, reals = np.zeros((8, d), dtype=np.int64), np.empty((7, d))
    heard, bases = np.empty((3, d, n_hidden), dtype=np.float32), np.empty((2, n_first), dtype=np.float32)
    return Desk(
        np.full(1, -1), ints[0], reals[0], reals[1], np.zeros(d, dtype=np.bool_), np.empty(5), reals[2], reals[3],
        ints[1], ints[2], ints[3], ints[4], ints[5], ints[6], heard[0], heard[1], heard[2], reals[4], reals[5],
        reals[6], new_room(judges.factors), bases[0], bases[1], np.empty(n_second, dtype=np.float32),
        new_actives(n_first), np.empty(len(judges.trees.baseline)), np.empty(3), np.empty(STACK),
        np.zeros(3, dtype=np.int64), ints[7],
    )  # fmt: skip


@lean()
def sure_of(row, query, target, judges, desk):  # type: ignore[no-untyped-def]
    """The probability that the stand-in gives the target; the query must lie on the desk."""
    if not judges.has_trees:
        return _net_sure(row, query, target, judges.net, desk)
    if not judges.has_net:
        return _trees_sure(row, target, judges.trees, desk.votes)
    both = _net_sure(row, query, target, judges.net, desk) + _trees_sure(row, target, judges.trees, desk.votes)
    return 0.5 * both


@lean(error_model="numpy", inline="always")
def _standard(j, value, net):  # type: ignore[no-untyped-def]
    """A number as the network takes it: standardised, held within bounds, 0 where it is missing."""
    x, bound = np.float32(0.0), np.float32(BOUND)
    if not np.isnan(value):
        x = min(max(np.float32((value - net.mean[j]) / net.scale[j]), -bound), bound)
    return x


@lean(error_model="numpy", inline="always")
def _level(j, value, net):  # type: ignore[no-untyped-def]
    """Where a level stands among the reals, or whether a number is missing."""
    return net.level_at[j] + (np.int64(np.isnan(value)) if net.is_pair[j] else np.int64(value))


@lean(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _hear_all(row, net, first):  # type: ignore[no-untyped-def]
    """The first layer of a row, before it is rectified."""
    w0, b0 = net.w0, net.b0
    for k in range(len(first)):
        first[k] = b0[k]
    for j in range(len(row)):
        if net.number_at[j] >= 0:
            x, at = _standard(j, row[j], net), net.number_at[j]
            for k in range(len(first)):
                first[k] += x * w0[at, k]
        if net.level_at[j] >= 0:
            at = _level(j, row[j], net)
            for k in range(len(first)):
                first[k] += w0[at, k]


@lean(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _hear_changes(row, query, net, base, first):  # type: ignore[no-untyped-def]
    """The first layer of a row from that of its query, whatever way the row was come by."""
    w0 = net.w0
    for k in range(len(first)):
        first[k] = base[k]
    for j in range(len(row)):
        if not differ(row[j], query[j]):
            continue
        if net.number_at[j] >= 0:
            x, at = _standard(j, row[j], net) - _standard(j, query[j], net), net.number_at[j]
            for k in range(len(first)):
                first[k] += x * w0[at, k]
        if net.level_at[j] >= 0:
            at, own = _level(j, row[j], net), _level(j, query[j], net)
            for k in range(len(first)):
                first[k] += w0[at, k] - w0[own, k]


@lean(fastmath={"reassoc", "contract", "nsz", "arcp"}, error_model="numpy")
def _net_sure(row, query, target, net, desk):  # type: ignore[no-untyped-def]
    first, second, b1, zero = desk.first, desk.second, net.b1, np.float32(0.0)
    _hear_changes(row, query, net, desk.base, first)
    for k in range(len(second)):
        second[k] = b1[k]
    add_rectified(first, net.w1, second, len(second), desk.actives)
    for k in range(len(second)):
        second[k] = max(second[k], zero)
    mine, total = _score(target, second, net), 1.0
    for k in range(len(net.b2)):
        if k != target:
            total += np.exp(_score(k, second, net) - mine)
    return 1.0 / total


@lean(fastmath={"reassoc", "contract", "nsz"}, error_model="numpy")
def _score(k, second, net):  # type: ignore[no-untyped-def]
    """What the last layer gives a class."""
    score, w2 = net.b2[k], net.w2
    for i in range(len(second)):
        score += second[i] * w2[k, i]
    return np.float64(score)


@lean(error_model="numpy")
def _trees_sure(row, target, t, scores):  # type: ignore[no-untyped-def]
    n = len(t.baseline)
    for k in range(n):
        scores[k] = t.baseline[k]
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


@lean()
def lay_out(at, query, judges, desk):  # type: ignore[no-untyped-def]
    """Put query `at` on the desk, if another lies there."""
    if desk.loaded[0] == at:
        return
    desk.loaded[0] = at
    for j in range(len(query)):
        desk.pair_query[j] = cell_of(j, query[j], judges.pairs)
        desk.cell_query[j] = cell_of(j, query[j], judges.rows)
    if judges.has_net:
        _hear_all(query, judges.net, desk.base)
    whole(desk.cell_query, judges.factors, desk.heard_query, desk.factor_query, desk.room)


@lean()
def settle(row, query, target, judges, desk):  # type: ignore[no-untyped-def]
    """Work out all that is known of a row whose query lies on the desk."""
    locate(row, query, target, judges, desk)
    weigh(-np.inf, -np.inf, judges, desk)


@lean()
def locate(row, query, target, judges, desk):  # type: ignore[no-untyped-def]
    """The cells of a row whose query lies on the desk, and what the stand-in says of it."""
    for j in range(len(row)):
        desk.pair[j], desk.cell[j] = desk.pair_query[j], desk.cell_query[j]
        if differ(row[j], query[j]):
            desk.pair[j], desk.cell[j] = cell_of(j, row[j], judges.pairs), cell_of(j, row[j], judges.rows)
    desk.now[0] = sure_of(row, query, target, judges, desk)


@lean()
def weigh(floor, weak, judges, desk):  # type: ignore[no-untyped-def]
    """The log density and the weakest factor of the row's cells; whether neither lies below its floor.

    Where one does, the work is cut short, and what the desk holds of them is worth nothing.
    """
    first = len(desk.cell)
    for j in range(len(desk.cell)):
        if desk.cell[j] != desk.cell_query[j]:
            first = min(first, judges.factors.rank[j])
    heard, heard_query = desk.heard, desk.heard_query
    for k in range(first):
        desk.factor[k] = desk.factor_query[k]
        if desk.factor[k] < weak:
            return False
        for i in range(heard.shape[1]):
            heard[k, i] = heard_query[k, i]
    desk.now[1] = 0.0
    if first < len(desk.cell):
        desk.now[1] = edited(
            desk.cell, first, floor, weak, judges.factors, desk.heard_query, desk.factor_query, desk.heard,
            desk.factor, desk.room,
        )  # fmt: skip
    else:
        for k in range(first):
            desk.now[1] += desk.factor[k]
    desk.now[2] = least(desk.factor)
    return desk.now[1] >= floor


@lean()
def least(values):  # type: ignore[no-untyped-def]
    """The least of some values."""
    found = values[0]
    for i in range(1, len(values)):
        found = min(found, values[i])
    return found
