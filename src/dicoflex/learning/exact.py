"""The exact surrogate: a model that is given as an object, copied as arrays.

What a model reads is found out by asking its own fitted encoders and scalers, one feature at a time: each column that
they make depends on one feature alone. A test of a tree becomes a threshold on the feature's own value, found by
bisection over the floats that its column can hold, so that single precision, scaling and imputing all count as they do
in the model; for levels every code is tried. Linear models and networks need columns that are affine in a number.
Trees are read from what the libraries write themselves; no private field is read.
"""

from __future__ import annotations

__all__ = ["agreement_of", "copied"]

import json
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import SettingError
from dicoflex.learning.black_box import BlackBox
from dicoflex.surrogate import Forest, Network, Surrogate, Votes
from dicoflex.surrogate.perceptron import ACTIVATIONS
from dicoflex.table.columns import column_dtype
from dicoflex.table.encoding import Encoding, Values

RECOGNISED = (
    "scikit-learn's LogisticRegression, LogisticRegressionCV, SGDClassifier(loss='log_loss'), MLPClassifier, "
    "DecisionTreeClassifier, ExtraTreeClassifier, RandomForestClassifier, ExtraTreesClassifier, "
    "GradientBoostingClassifier and HistGradientBoostingClassifier (with treelite), XGBClassifier, LGBMClassifier and "
    "CatBoostClassifier; in a Pipeline with ColumnTransformer, StandardScaler, MinMaxScaler, MaxAbsScaler, "
    "RobustScaler, OneHotEncoder, OrdinalEncoder and SimpleImputer"
)
SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
FARTHEST = 1e150
"""Beyond what a table may hold; within what scalers take without going infinite."""
MOST_WHOLE = 2**53
TOLERANCE = 1e-4
"""How far probabilities may lie apart: XGBoost adds in single precision. A wrong copy is off by far more."""
TIES = 1e-6
CROSSED = 5000
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def copied(model: Any, encoding: Encoding, values: Values, order: Sequence[int]) -> Surrogate:
    """The surrogate that computes what `model` computes.

    Parameters
    ----------
    model : a fitted classifier, or a pipeline that ends in one
    encoding : how the table's frames become values
    values : encoded rows; the first one is what features are changed in, one at a time
    order : which of the model's classes each of the sorted labels is

    Raises
    ------
    SettingError
        Where the model, or a step of its pipeline, is not recognised; it names what is.
    """
    steps, estimator = _split(model)
    library, name = type(estimator).__module__.partition(".")[0], type(estimator).__name__
    reader = READERS.get((library, name))
    if reader is None:
        _refuse(f"is a {name} of {library}")
    sources = _traced(steps, encoding)
    inputs = Inputs(encoding, values[:1], steps, sources)
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = reader(estimator, inputs)
        return _forest(read, order) if isinstance(read, Ensemble) else _network(read, order)


def agreement_of(surrogate: Surrogate, black_box: BlackBox, values: Values, answers: Floats, seed: int) -> float:
    """The share of rows on which a copy and its model decide alike; a copy that is none is refused.

    Looked at are the table's rows with the model's `answers`, and rows whose cells are from different ones of them.
    Where the model is torn between two classes to a millionth, rounding decides, and either decision counts as alike.
    """
    rng = np.random.default_rng(seed)
    picks = rng.integers(len(values), size=(CROSSED, values.shape[1]))
    crossed = np.take_along_axis(values, picks, axis=0)
    ours = np.concatenate([surrogate.probabilities(rows) for rows in (values, crossed)])
    theirs = np.concatenate([answers, black_box.answers(crossed)])
    clear = np.diff(np.sort(theirs, axis=1)[:, -2:], axis=1)[:, 0] > TIES
    same = (ours.argmax(axis=1) == theirs.argmax(axis=1)) | ~clear
    if np.abs(ours - theirs).max() > TOLERANCE or not same.all():
        apart = np.abs(ours - theirs).max()
        raise SettingError(
            f"surrogate='exact': the copy of the model differs from it by up to {apart:.2g} and decides otherwise on "
            f"{(~same).sum()} of {len(same)} rows, so that it is no copy; leave surrogate= out and one is learned"
        )
    return float(same.mean())


def _refuse(what: str) -> NoReturn:
    raise SettingError(
        f"surrogate='exact' can't copy this model: it {what}; recognised are {RECOGNISED}. Leave surrogate= out and a "
        "surrogate is learned from the model's answers"
    )


def _split(model: Any) -> tuple[list[Any], Any]:
    """The steps before the classifier, and the classifier."""
    if hasattr(model, "best_estimator_"):
        return _split(model.best_estimator_)
    if type(model).__name__ != "Pipeline":
        return [], model
    *before, (_, last) = model.steps
    steps, estimator = _split(last)
    return [step for _, step in before if not _passes(step)] + steps, estimator


def _passes(step: Any) -> bool:
    """Whether a step changes nothing."""
    is_function = type(step).__name__ == "FunctionTransformer"
    return step is None or (isinstance(step, str) and step == "passthrough") or (is_function and step.func is None)


# -- what the classifier reads ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """Where a column that the classifier reads comes from.

    feature: the one feature that it depends on. slope, offset: the column of a number that is there is slope * number +
    offset; NaN where it only rises with the number, or where the feature is picked from levels.
    """

    feature: int
    slope: float = 1.0
    offset: float = 0.0

    def scaled(self, slope: float, offset: float) -> Source:
        """The source of slope * column + offset."""
        return Source(self.feature, slope * self.slope, slope * self.offset + offset)


def _traced(steps: list[Any], encoding: Encoding) -> list[Source]:
    """The source of every column behind some steps."""
    features = encoding.schema.features
    sources = [Source(j) if f.is_number else Source(j, np.nan) for j, f in enumerate(features)]
    names: list[Any] | None = [f.name for f in features]
    for step in steps:
        sources, names = _through(step, sources, names, encoding), None
    return sources


def _through(step: Any, sources: list[Source], names: list[Any] | None, encoding: Encoding) -> list[Source]:
    kind = type(step).__name__
    if _passes(step):
        return sources
    if kind == "Pipeline":
        for _, one in step.steps:
            sources, names = _through(one, sources, names, encoding), None
        return sources
    if kind == "ColumnTransformer":
        return _of_columns(step, sources, names, encoding)
    if kind in SCALERS:
        slopes, offsets = _scaling(step, kind, len(sources))
        return [one.scaled(float(a), float(b)) for one, a, b in zip(sources, slopes, offsets, strict=True)]
    if kind == "SimpleImputer":
        return _imputed(step, sources)
    if kind in ("OneHotEncoder", "OrdinalEncoder"):
        for one in sources:
            feature = encoding.schema.features[one.feature]
            if feature.is_number:
                name = feature.name
                raise SettingError(
                    f"surrogate='exact': the model's {kind} takes {name!r} as a category, and the schema as a number; "
                    f"state it with schema=Schema.infer(X, kinds={{{name!r}: 'categorical'}})"
                )
        return sources if kind == "OrdinalEncoder" else _one_hot(step, sources)
    return _refuse(f"has the step {kind}")


def _of_columns(step: Any, sources: list[Source], names: list[Any] | None, encoding: Encoding) -> list[Source]:
    """The sources of a ColumnTransformer's columns, in the order of its output."""
    known = list(step.feature_names_in_) if names is None and hasattr(step, "feature_names_in_") else names
    found: dict[int, Source] = {}
    for name, one, columns in step.transformers_:
        if isinstance(one, str) and one == "drop":
            continue
        places = _places(columns, known, len(sources))
        if not places:
            continue
        inner = None if names is None else [names[i] for i in places]
        parts = _through(one, [sources[i] for i in places], inner, encoding)
        at = step.output_indices_[name]
        if at.stop - at.start != len(parts):
            _refuse(f"has a ColumnTransformer whose part {name!r} makes columns of unknown sources")
        found |= dict(zip(range(at.start, at.stop), parts, strict=True))
    return [found[i] for i in sorted(found)]


def _places(columns: Any, names: list[Any] | None, n: int) -> list[int]:
    """The places of columns that are given by name, by number, by mask or by slice."""
    if isinstance(columns, slice):
        first, last = columns.start, columns.stop
        if names is not None and isinstance(first, str):
            first = names.index(first)
        if names is not None and isinstance(last, str):
            last = names.index(last) + 1
        return list(range(n))[first : last : columns.step]
    one_by_one = [columns] if isinstance(columns, str | int) else list(columns)
    if one_by_one and all(isinstance(c, bool | np.bool_) for c in one_by_one):
        return [i for i, c in enumerate(one_by_one) if c]
    return [names.index(c) if names is not None and c in names else int(c) for c in one_by_one]


def _scaling(step: Any, kind: str, n: int) -> tuple[Any, Any]:
    """The slopes and offsets of a scaler; one that cuts off is not affine."""
    ones, zeros = np.ones(n), np.zeros(n)
    if kind == "MinMaxScaler":
        return np.full(n, np.nan) if step.clip else step.scale_, step.min_
    if kind == "MaxAbsScaler":
        return 1.0 / step.scale_, zeros
    centre = step.mean_ if kind == "StandardScaler" and step.with_mean else zeros
    centre = step.center_ if kind == "RobustScaler" and step.center_ is not None else centre
    slope = ones if step.scale_ is None else 1.0 / step.scale_
    return slope, -centre * slope


def _imputed(step: Any, sources: list[Source]) -> list[Source]:
    if not (step.missing_values is None or step.missing_values is pd.NA or step.missing_values != step.missing_values):
        _refuse(f"has a SimpleImputer that takes {step.missing_values!r} for missing")
    outputs = len(step.get_feature_names_out())
    flagged = [] if step.indicator_ is None else [sources[i].scaled(0.0, 0.0) for i in step.indicator_.features_]
    if outputs != len(sources) + len(flagged):
        _refuse("has a SimpleImputer that drops a column without values")
    return [*sources, *flagged]


def _one_hot(step: Any, sources: list[Source]) -> list[Source]:
    rare = getattr(step, "infrequent_categories_", [None] * len(sources))
    dropped = [None] * len(sources) if step.drop_idx_ is None else step.drop_idx_
    counts = [
        len(own) - (0 if few is None else len(few) - 1) - (out is not None)
        for own, few, out in zip(step.categories_, rare, dropped, strict=True)
    ]
    return [one for one, n in zip(sources, counts, strict=True) for _ in range(n)]


@dataclass
class Inputs:
    """The columns that the classifier reads, as a function of the table's features.

    base: an encoded row (1, d) that features are changed in. codes: where the classifier reads a frame itself, what it
    takes each level of a category for, by feature. absent: what cells stand for that a sparse matrix leaves out.
    """

    encoding: Encoding
    base: Values
    steps: list[Any]
    sources: list[Source]
    codes: dict[int, dict[Any, float]] = field(default_factory=dict)
    absent: float = 0.0

    def read(self, frame: pd.DataFrame) -> Floats:
        """The columns for a frame of the table's features."""
        if not self.steps:
            return np.column_stack([self._column(j, frame.iloc[:, j]) for j in range(frame.shape[1])])
        read: Any = frame
        for step in self.steps:
            read = step.transform(read)
        if hasattr(read, "tocoo"):
            cells, read = read.tocoo(), np.full(read.shape, self.absent)
            read[cells.row, cells.col] = cells.data
        try:
            return np.asarray(read, dtype=np.float64)
        except (TypeError, ValueError):
            return _refuse("reads columns that are not numbers behind its pipeline")

    @property
    def is_sparse(self) -> bool:
        """Whether the classifier reads a sparse matrix."""
        read: Any = self.frame(1)
        for step in self.steps:
            read = step.transform(read)
        return hasattr(read, "tocoo")

    def _column(self, j: int, column: pd.Series) -> Floats:
        feature = self.encoding.schema.features[j]
        if j in self.codes:
            own = self.codes[j]
            return np.array([np.nan if pd.isna(v) else own.get(v, np.nan) for v in column])
        try:
            return pd.to_numeric(column.astype(object).where(column.notna(), np.nan)).to_numpy(np.float64)
        except (TypeError, ValueError):
            return _refuse(f"reads {feature.name!r}, which is not a number, in a way that is not known")

    def frame(self, n: int) -> pd.DataFrame:
        """The base row `n` times, as a frame."""
        return self.encoding.decode(np.repeat(self.base, n, axis=0))

    @cached_property
    def levels(self) -> list[Floats]:
        """Per feature the columns for each of its levels, or for a number that is missing."""
        found = []
        for j, feature in enumerate(self.encoding.schema.features):
            states = np.arange(feature.n_states, dtype=float) if not feature.is_number else np.full(1, np.nan)
            if feature.is_number and not feature.missing:
                found.append(np.full((1, len(self.sources)), np.nan))
                continue
            rows = np.repeat(self.base, len(states), axis=0)
            rows[:, j] = states
            found.append(self.read(self.encoding.decode(rows)))
        return found

    def highest_left(self, column: Ints, is_left: Callable[[Floats], Bools]) -> Floats:
        """The highest number of its feature that goes left, test by test: of all that its dtype holds.

        column: the column that each test reads, of a number. is_left: whether tests go left at these columns' values,
        one per test; what goes left must lie below what does not.
        """
        feature = np.array([self.sources[c].feature for c in column], dtype=np.int64)
        # Features don't meddle with each other, so one row holds a test of each.
        place = np.zeros(len(column), dtype=np.int64)
        for j in np.unique(feature):
            place[feature == j] = np.arange((feature == j).sum())
        grids = {int(j): _Grid.of(column_dtype(self.encoding.schema.features[j])) for j in np.unique(feature)}
        low, high = (
            np.array([getattr(grids[int(j)], end) for j in feature], dtype=np.int64) for end in ("low", "high")
        )
        frame = self.frame(int(place.max()) + 1 if len(place) else 0)

        def left_at(key: Ints) -> Bools:
            for j, grid in grids.items():
                mine, number = feature == j, np.full(len(frame), self.base[0, j])
                number[place[mine]] = grid.values(key[mine])
                number = np.where(np.isnan(number), grid.values(np.zeros(1, np.int64)), number)
                name = self.encoding.schema.names[j]
                frame[name] = pd.Series(number, frame.index).astype(column_dtype(self.encoding.schema.features[j]))
            return is_left(self.read(frame)[place, column])

        none, all_ = ~left_at(low), left_at(high)
        while (low + 1 < high).any():
            # Neither high - low nor low + high: they may have more bits than there are.
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            left = left_at(middle)
            low, high = np.where(left, middle, low), np.where(left, high, middle)
        found = np.empty(len(column))
        for j, grid in grids.items():
            found[feature == j] = grid.values(low[feature == j])
        return np.where(none, -np.inf, np.where(all_, np.inf, found))


@dataclass(frozen=True)
class _Grid:
    """The numbers that a dtype holds, in order, by whole keys from `low` to `high`."""

    kind: str
    low: int
    high: int

    @classmethod
    def of(cls, dtype: Any) -> _Grid:
        plain = np.dtype(getattr(dtype, "numpy_dtype", dtype) if dtype != object else np.float64)
        if plain.kind in "iu":
            info = np.iinfo(plain)
            return cls("whole", max(int(info.min), -MOST_WHOLE), min(int(info.max), MOST_WHOLE))
        single = plain.itemsize < 8
        end = np.array([np.finfo(np.float32).max if single else FARTHEST])
        top = int(_keys(end, single)[0])
        return cls("single" if single else "double", -top, top)

    def values(self, key: Ints) -> Floats:
        if self.kind == "whole":
            return key.astype(np.float64)
        if self.kind == "single":
            short = key.astype(np.int32)
            return (short ^ ((short >> 31) & np.int32(2**31 - 1))).view(np.float32).astype(np.float64)
        return (key ^ ((key >> 63) & np.int64(2**63 - 1))).view(np.float64)


def _keys(numbers: Floats, single: bool) -> Ints:
    """The keys of positive numbers."""
    return numbers.astype(np.float32).view(np.int32).astype(np.int64) if single else numbers.view(np.int64)


# -- trees -----------------------------------------------------------------------------------------------------------


@dataclass
class Tree:
    """A tree as arrays, one entry per node; the first is the root. A leaf has column -1.

    sets: codes of a category by node, and whether it is they that go left. value: (nodes, scores or 1).
    """

    column: Ints
    threshold: Floats
    missing_left: Bools
    left: Ints
    right: Ints
    value: Floats
    sets: dict[int, tuple[Floats, bool]] = field(default_factory=dict)


@dataclass
class Ensemble:
    """Trees and how they count together.

    score: which score each tree adds to; None where each adds to all of them. strict: whether what equals a threshold
    goes right. single: whether columns are rounded to single precision first. averaged: whether values are
    probabilities, of which the mean is taken; else their sum and the baseline are logits.
    """

    inputs: Inputs
    trees: list[Tree]
    n_classes: int
    baseline: Floats
    score: list[int] | None = None
    strict: bool = False
    single: bool = True
    averaged: bool = False


@dataclass
class _Nodes:
    """All nodes of all trees, and where trees start."""

    start: Ints
    column: Ints
    threshold: Floats
    missing_left: Bools
    left: Ints
    right: Ints
    sets: dict[int, tuple[Floats, bool]]

    @classmethod
    def of(cls, trees: list[Tree]) -> _Nodes:
        start = np.cumsum([0, *(len(tree.column) for tree in trees)])[:-1]
        sets = {int(s) + node: one for s, tree in zip(start, trees, strict=True) for node, one in tree.sets.items()}

        def joined(name: str, shift: bool = False) -> NDArray[Any]:
            parts = zip(start, trees, strict=True)
            return np.concatenate([getattr(tree, name) + (s if shift else 0) for s, tree in parts])

        missing = np.concatenate([tree.missing_left for tree in trees])
        return cls(start, joined("column"), joined("threshold"), missing, joined("left", True), joined("right", True),
                   sets)  # fmt: skip


def _forest(read: Ensemble, order: Sequence[int]) -> Forest:
    """The ensemble with tests of the table's own features, and its scores in the order of the labels."""
    trees = [_ordered(tree) for tree in read.trees]
    nodes = _Nodes.of(trees)
    place, arrays = _laid_out(read, nodes)
    edges = np.append(nodes.start, len(nodes.column))
    ends = np.append(place, len(arrays["feature"]))
    two = read.n_classes == 2
    per_class = [1] if two and read.averaged else list(range(1 if two else read.n_classes))
    chosen = []  # per tree of the copy: which tree, and the values of its nodes
    for i in per_class:
        theirs = order[i] if len(order) == read.n_classes and (not two or read.averaged) else 0
        own = [t for t in range(len(trees)) if read.score is None or read.score[t] == theirs]
        chosen.append([(t, trees[t].value[:, theirs if read.score is None else 0]) for t in own])
    if len({len(own) for own in chosen}) != 1:
        _refuse("has more trees for one class than for another")
    sign = -1.0 if two and not read.averaged and list(order) == [1, 0] else 1.0
    parts: dict[str, list[Any]] = {name: [] for name in (*arrays, "value")}
    start, total = [], 0
    for together in zip(*chosen, strict=True):
        for t, value in together:
            span = slice(ends[edges[t]], ends[edges[t + 1]] if edges[t + 1] < len(place) else ends[-1])
            start.append(total)
            for name, array in arrays.items():
                parts[name].append(array[span] + (total - span.start if name in ("left", "right") else 0))
            spread = np.zeros(span.stop - span.start)
            spread[place[edges[t] : edges[t + 1]] - span.start] = np.where(trees[t].column < 0, value, 0.0)
            parts["value"].append(sign * spread)
            total += span.stop - span.start
    joined = {name: np.concatenate(found) for name, found in parts.items()}
    baseline = sign * read.baseline if two else read.baseline[list(order)]
    return (Votes if read.averaged else Forest)(
        start=np.array(start, dtype=np.int64), feature=joined["feature"].astype(np.int32),
        threshold=joined["threshold"], missing_left=joined["missing_left"].astype(bool),
        left=joined["left"].astype(np.int32), right=joined["right"].astype(np.int32), value=joined["value"],
        baseline=np.asarray(baseline, dtype=np.float64),
    )  # fmt: skip


def _ordered(tree: Tree) -> Tree:
    """The tree with every node after its parent, as a model file must have it."""
    inner = np.flatnonzero(tree.column >= 0)
    if (tree.left[inner] > inner).all() and (tree.right[inner] > inner).all():
        return tree
    line = [0]
    for node in line:
        if tree.column[node] >= 0:
            line += [int(tree.left[node]), int(tree.right[node])]
    old = np.array(line)
    new = np.zeros(len(tree.column), dtype=np.int64)
    new[old] = np.arange(len(old))
    return Tree(
        tree.column[old], tree.threshold[old], tree.missing_left[old], new[tree.left[old]], new[tree.right[old]],
        tree.value[old], {int(new[node]): one for node, one in tree.sets.items() if node in set(line)},
    )  # fmt: skip


def _laid_out(read: Ensemble, nodes: _Nodes) -> tuple[Ints, dict[str, NDArray[Any]]]:
    """The place of every node among those of the copy, and their arrays; a test of levels may need several in a row."""
    features, inner = read.inputs.encoding.schema.features, nodes.column >= 0
    source = np.array([one.feature for one in read.inputs.sources], dtype=np.int64)
    feature = np.where(inner, source[nodes.column], -1)
    is_number = np.array([f.is_number for f in features])
    picked = np.flatnonzero(inner & ~is_number[feature])
    known: dict[Any, tuple[bool, list[int]]] = {}
    runs = {int(n): _runs(read, nodes, int(n), int(feature[n]), known) for n in picked}
    slots = np.ones(len(feature), dtype=np.int64)
    for node, (_, ends) in runs.items():
        slots[node] = max(1, len(ends))
    place = np.cumsum(slots) - slots
    out: dict[str, NDArray[Any]] = {
        "feature": np.repeat(feature, slots), "threshold": np.zeros(slots.sum()),
        "missing_left": np.zeros(slots.sum(), dtype=bool), "left": np.zeros(slots.sum(), dtype=np.int64),
        "right": np.zeros(slots.sum(), dtype=np.int64),
    }  # fmt: skip
    numbers = np.flatnonzero(inner & is_number[feature])
    at = place[numbers]
    out["threshold"][at] = _thresholds(read, nodes, numbers)
    at_missing = np.array(
        [read.inputs.levels[j][0, c] for j, c in zip(feature[numbers], nodes.column[numbers], strict=True)]
    )
    out["missing_left"][at] = _goes_left(read, nodes, numbers, at_missing)
    out["left"][at], out["right"][at] = place[nodes.left[numbers]], place[nodes.right[numbers]]
    for node, (first, ends) in runs.items():
        sides = place[nodes.right[node]], place[nodes.left[node]]
        if not ends:
            out["threshold"][place[node]] = np.inf
            out["left"][place[node]] = out["right"][place[node]] = sides[first]
            continue
        for i, end in enumerate(ends):
            here = place[node] + i
            out["threshold"][here] = end + 0.5
            out["left"][here] = sides[first ^ (i % 2 == 1)]
            out["right"][here] = here + 1 if i + 1 < len(ends) else sides[first ^ (i % 2 == 0)]
    return place, out


def _runs(
    read: Ensemble, nodes: _Nodes, node: int, feature: int, known: dict[Any, tuple[bool, list[int]]]
) -> tuple[bool, list[int]]:
    """Whether the first level goes left, and the levels after which that changes; `known` keeps it for equal tests."""
    test = nodes.column[node], nodes.threshold[node], nodes.missing_left[node], node if node in nodes.sets else -1
    if test not in known:
        column = read.inputs.levels[feature][:, nodes.column[node]]
        left = _goes_left(read, nodes, np.full(len(column), node), column)
        known[test] = bool(left[0]), np.flatnonzero(left[1:] != left[:-1]).tolist()
    return known[test]


def _goes_left(read: Ensemble, nodes: _Nodes, node: Ints, column: Floats) -> Bools:
    """Whether nodes send these values of their columns left."""
    seen = column.astype(np.float32).astype(np.float64) if read.single else column
    threshold = nodes.threshold[node]
    left = np.where(np.isnan(seen), nodes.missing_left[node], seen < threshold if read.strict else seen <= threshold)
    for one in set(node.tolist()) & nodes.sets.keys():
        own, inside_left = nodes.sets[one]
        mine = node == one
        among = np.isin(column[mine], own) == inside_left
        left[mine] = np.where(np.isnan(column[mine]), nodes.missing_left[one], among)
    return left.astype(bool)


def _thresholds(read: Ensemble, nodes: _Nodes, numbers: Ints) -> Floats:
    """The highest number that goes left, node by node; nodes with the same test are looked at once."""
    tests = np.column_stack([nodes.column[numbers].astype(np.float64), nodes.threshold[numbers]])
    unique, where = np.unique(tests, axis=0, return_inverse=True)
    threshold = unique[:, 1]

    def is_left(column: Floats) -> Bools:
        seen = column.astype(np.float32) if read.single else column
        return np.asarray(seen < threshold if read.strict else seen <= threshold)

    return read.inputs.highest_left(unique[:, 0].astype(np.int64), is_left)[where.reshape(-1)]


# -- networks --------------------------------------------------------------------------------------------------------


@dataclass
class Layers:
    """Weights (read, units) and biases of a network on the classifier's columns, and what hidden units do."""

    inputs: Inputs
    layers: list[tuple[Floats, Floats]]
    activation: str = "identity"


def _network(read: Layers, order: Sequence[int]) -> Network:
    """The network on the one-hot table with numbers as they are, and its scores in the order of the labels."""
    inputs, encoding = read.inputs, read.inputs.encoding
    (weight, bias), *others = read.layers
    first, sums = np.zeros((encoding.n_reals, weight.shape[1])), np.array(bias, dtype=np.float64)
    number_at = dict(zip(encoding.number_feature.tolist(), encoding.places[0].tolist(), strict=True))
    level_at = dict(zip(encoding.code_feature.tolist(), encoding.places[1].tolist(), strict=True))
    for c, source in enumerate(inputs.sources):
        j = source.feature
        if j in number_at:
            if np.isnan(source.slope):
                _refuse(f"reads {encoding.schema.names[j]!r} cut off at both ends, in a way that is not linear")
            first[number_at[j]] += source.slope * weight[c]
            sums += source.offset * weight[c]
            if j in level_at:
                first[level_at[j] + 1] += (inputs.levels[j][0, c] - source.offset) * weight[c]
        else:
            states = inputs.levels[j][:, c]
            first[level_at[j] : level_at[j] + len(states)] += states[:, None] * weight[c]
    layers = [(first, sums), *others]
    last, end = layers[-1]
    if last.shape[1] == 1:
        sign = -1.0 if list(order) == [1, 0] else 1.0
        layers[-1] = sign * last, sign * end
    else:
        layers[-1] = last[:, list(order)], end[list(order)]
    if not all(np.isfinite(array).all() for layer in layers for array in layer):
        _refuse("has weights, or reads missing values, that are not finite")
    return Network(
        encoding, np.array([encoding.n_reals, *(len(b) for _, b in layers)], dtype=np.int64),
        np.concatenate([np.asarray(w, dtype=np.float64).ravel() for w, _ in layers]),
        np.concatenate([np.asarray(b, dtype=np.float64) for _, b in layers]),
        np.array([ACTIVATIONS.index(read.activation)], dtype=np.int64),
    )  # fmt: skip


# -- scikit-learn ----------------------------------------------------------------------------------------------------


def _linear(model: Any, inputs: Inputs) -> Layers:
    many = len(model.classes_) > 2
    solver, loss = getattr(model, "solver", None), getattr(model, "loss", "log_loss")
    if loss != "log_loss" or (many and (solver in ("liblinear", None) or getattr(model, "multi_class", None) == "ovr")):
        _refuse(f"is a {type(model).__name__} whose probabilities are not those of a logistic function or a softmax")
    return Layers(inputs, [(np.asarray(model.coef_).T, np.asarray(model.intercept_) * np.ones(len(model.coef_)))])


def _perceptron(model: Any, inputs: Inputs) -> Layers:
    if model.out_activation_ not in ("logistic", "softmax"):
        _refuse(f"is an MLPClassifier with the output {model.out_activation_!r}")
    return Layers(inputs, list(zip(model.coefs_, model.intercepts_, strict=True)), model.activation)


def _tree(model: Any) -> Tree:
    """A tree of scikit-learn's, by its public arrays."""
    one = model.tree_
    leaf, nodes = one.children_left < 0, len(one.children_left)
    missing = getattr(one, "missing_go_to_left", np.zeros(nodes))
    return Tree(
        np.where(leaf, -1, one.feature), one.threshold.astype(np.float64), np.asarray(missing).astype(bool),
        np.where(leaf, 0, one.children_left), np.where(leaf, 0, one.children_right), one.value[:, 0, :],
    )  # fmt: skip


def _single_tree(model: Any, inputs: Inputs) -> Ensemble:
    return _averaged([model], model, inputs)


def _tree_votes(model: Any, inputs: Inputs) -> Ensemble:
    return _averaged(model.estimators_, model, inputs)


def _averaged(trees: Iterable[Any], model: Any, inputs: Inputs) -> Ensemble:
    if getattr(model, "n_outputs_", 1) != 1:
        _refuse("gives several outputs")
    n = len(model.classes_)
    read = [_tree(one) for one in trees]
    read = [replace(one, value=one.value / one.value.sum(axis=1, keepdims=True)) for one in read]
    return Ensemble(inputs, read, n, np.zeros(1 if n == 2 else n), averaged=True)


def _gradient_boosting(model: Any, inputs: Inputs) -> Ensemble:
    n = len(model.classes_)
    scale = 2.0 if model.loss == "exponential" else 1.0
    baseline = np.zeros(1 if n == 2 else n)
    if type(model.init_).__name__ == "DummyClassifier":
        prior = np.clip(model.init_.class_prior_, np.finfo(np.float32).eps, 1 - np.finfo(np.float32).eps)
        baseline = np.log(prior) if n > 2 else np.log(prior[1:] / prior[:1])
    elif model.init != "zero":
        _refuse("is a GradientBoostingClassifier that starts from another model")
    trees, score = [], []
    for round_ in model.estimators_:
        for k, one in enumerate(round_):
            own = _tree(one)
            trees.append(replace(own, value=scale * model.learning_rate * own.value[:, :1]))
            score.append(k)
    return Ensemble(inputs, trees, n, baseline, score)


def _hist_gradient_boosting(model: Any, inputs: Inputs) -> Ensemble:
    """Its trees stand in private fields alone; treelite, where it is installed, knows its way about them."""
    try:
        import treelite  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        _refuse("is a HistGradientBoostingClassifier, whose trees are read by treelite (pip install treelite)")
    try:
        found = json.loads(treelite.sklearn.import_model(model).dump_as_json())
    except Exception as error:
        _refuse(f"is a HistGradientBoostingClassifier that treelite does not read ({type(error).__name__}: {error})")
    trees = [_of_records(one["nodes"], _of_treelite) for one in found["trees"]]
    n = len(model.classes_)
    score = [0] * len(trees) if n == 2 else [int(k) for k in found["class_id"]]
    return Ensemble(inputs, trees, n, np.asarray(found["base_scores"], dtype=np.float64), score, single=False)


@dataclass
class _Record:
    """A node: a leaf's value, or a test and the keys of its children."""

    value: float = 0.0
    column: int = -1
    threshold: float = 0.0
    missing_left: bool = False
    children: tuple[Any, Any] | None = None
    codes: tuple[Floats, bool] | None = None


def _of_treelite(node: dict[str, Any], place: dict[Any, int]) -> _Record:
    if "leaf_value" in node:
        return _Record(value=float(node["leaf_value"]))
    children = place[node["left_child"]], place[node["right_child"]]
    record = _Record(0.0, node["split_feature_id"], 0.0, bool(node["default_left"]), children)
    if node["node_type"] == "numerical_test_node":
        if node["comparison_op"] != "<=":
            _refuse(f"has tests by {node['comparison_op']!r}")
        return replace(record, threshold=float(node["threshold"]))
    own = np.asarray(node["category_list"], dtype=np.float64)
    return replace(record, codes=(own, not node["category_list_right_child"]))


def _of_records(nodes: list[Any], record: Callable[[Any, dict[Any, int]], _Record]) -> Tree:
    place = {node.get("node_id", i) if isinstance(node, dict) else i: i for i, node in enumerate(nodes)}
    return _tree_of([record(node, place) for node in nodes])


def _tree_of(read: list[_Record]) -> Tree:
    """The tree of some records; children are places among them."""
    children = [one.children or (0, 0) for one in read]
    return Tree(
        np.array([one.column for one in read], dtype=np.int64), np.array([one.threshold for one in read], dtype=float),
        np.array([one.missing_left for one in read], dtype=bool), np.array([a for a, _ in children], dtype=np.int64),
        np.array([b for _, b in children], dtype=np.int64), np.array([[one.value] for one in read], dtype=float),
        {i: one.codes for i, one in enumerate(read) if one.codes is not None},
    )  # fmt: skip


# -- boosting libraries ----------------------------------------------------------------------------------------------


def _xgboost(model: Any, inputs: Inputs) -> Ensemble:
    learner = json.loads(model.get_booster().save_raw("json"))["learner"]
    objective, booster = learner["objective"]["name"], learner["gradient_booster"]
    if objective not in ("binary:logistic", "multi:softprob", "multi:softmax") or model.missing == model.missing:
        _refuse(f"is an XGBClassifier with the objective {objective!r} and missing={model.missing!r}")
    if booster["name"] not in ("gbtree", "dart"):
        _refuse(f"is an XGBClassifier with the booster {booster['name']!r}")
    forest = booster["gbtree"]["model"] if booster["name"] == "dart" else booster["model"]
    drop = booster.get("weight_drop") or [1.0] * len(forest["trees"])
    best = getattr(model, "best_iteration", None)
    n_trees = len(forest["trees"]) if best is None else forest["iteration_indptr"][best + 1]
    n = len(model.classes_)
    scores = [float(x) for x in learner["learner_model_param"]["base_score"].strip("[]").split(",")]
    base = np.array(scores, dtype=np.float32).astype(np.float64)
    baseline = np.log(base / (1 - base)) if n == 2 else np.broadcast_to(base, n).copy()
    inputs.absent = np.nan
    if inputs.is_sparse and any(encoded.is_number for encoded in inputs.encoding.schema.features):
        _refuse(
            "is an XGBClassifier behind a sparse matrix, in which numbers that are 0 count as missing; say "
            "sparse_threshold=0 in the ColumnTransformer"
        )
    inputs.codes = _categories(inputs, [_xgboost_categories(one) for one in forest.get("cats", {}).get("enc", [])])
    trees = [_xgboost_tree(one, by) for one, by in zip(forest["trees"][:n_trees], drop[:n_trees], strict=True)]
    return Ensemble(inputs, trees, n, baseline, list(forest["tree_info"][:n_trees]), strict=True)


def _xgboost_categories(one: dict[str, Any]) -> list[Any] | None:
    if not one.get("values"):
        return None
    if not one.get("offsets"):
        return list(one["values"])
    text, at = bytes(b % 256 for b in one["values"]), one["offsets"]
    return [text[a:b].decode() for a, b in pairwise(at)]


def _xgboost_tree(one: dict[str, Any], by: float) -> Tree:
    if one["tree_param"]["size_leaf_vector"] not in ("0", "1"):
        _refuse("is an XGBClassifier whose leaves are vectors")
    left = np.array(one["left_children"], dtype=np.int64)
    condition = np.array(one["split_conditions"], dtype=np.float32).astype(np.float64)
    leaf = left < 0
    segments = zip(one["categories_nodes"], one["categories_segments"], one["categories_sizes"], strict=True)
    codes = np.array(one["categories"], dtype=np.float64)
    return Tree(
        np.where(leaf, -1, one["split_indices"]), condition, np.array(one["default_left"], dtype=bool),
        np.where(leaf, 0, left), np.where(leaf, 0, one["right_children"]),
        (np.where(leaf, condition, 0.0) * by)[:, None],
        {int(node): (codes[at : at + size], False) for node, at, size in segments},
    )  # fmt: skip


def _categories(inputs: Inputs, known: list[list[Any] | None]) -> dict[int, dict[Any, float]]:
    """What a library takes a category's values for where it reads a frame itself: their places among its categories."""
    if inputs.steps:
        return {}
    codes = {}
    for j, feature in enumerate(inputs.encoding.schema.features):
        if feature.categories is not None:
            own = known[j] if j < len(known) and known[j] is not None else list(feature.categories)
            codes[j] = {value: float(i) for i, value in enumerate(own or [])}
    return codes


def _lightgbm(model: Any, inputs: Inputs) -> Ensemble:
    found = model.booster_.dump_model()
    objective, *settings = found["objective"].split()
    if objective not in ("binary", "multiclass"):
        _refuse(f"is an LGBMClassifier with the objective {objective!r}")
    known = dict(one.split(":") for one in settings if ":" in one)
    scale = float(known.get("sigmoid", 1.0)) if objective == "binary" else 1.0
    k = found["num_tree_per_iteration"]
    if found["average_output"]:
        scale /= max(1, len(found["tree_info"]) // k)
    frame_categories = iter(found.get("pandas_categorical") or [])
    features = inputs.encoding.schema.features
    inputs.codes = _categories(
        inputs, [None if f.categories is None else next(frame_categories, None) for f in features]
    )
    trees = [_lightgbm_tree(one["tree_structure"], scale) for one in found["tree_info"]]
    return Ensemble(inputs, trees, len(model.classes_), np.zeros(k), [i % k for i in range(len(trees))], single=False)


def _lightgbm_tree(root: dict[str, Any], scale: float) -> Tree:
    nodes, read = [root], list[_Record]()
    for node in nodes:
        if "split_feature" not in node:
            if "leaf_coeff" in node:
                _refuse("is an LGBMClassifier with linear models in its leaves")
            read.append(_Record(value=scale * float(node["leaf_value"])))
            continue
        children = len(nodes), len(nodes) + 1
        nodes += [node["left_child"], node["right_child"]]
        if node["decision_type"] == "==":
            own = np.array([float(code) for code in str(node["threshold"]).split("||")])
            read.append(_Record(0.0, node["split_feature"], 0.0, False, children, (own, True)))
            continue
        if node["missing_type"] == "Zero":
            _refuse("is an LGBMClassifier that takes zeros for missing")
        threshold = float(node["threshold"])
        # Where training had nothing missing, LightGBM takes what is for 0.
        missing = bool(node["default_left"]) if node["missing_type"] == "NaN" else threshold >= 0.0
        read.append(_Record(0.0, node["split_feature"], threshold, missing, children))
    return _tree_of(read)


def _catboost(model: Any, inputs: Inputs) -> Ensemble:
    import catboost  # type: ignore[import-untyped, import-not-found, unused-ignore]

    loss, n = model.get_all_params().get("loss_function"), len(model.classes_)
    if loss not in ("Logloss", "CrossEntropy", "MultiClass"):
        _refuse(f"is a CatBoostClassifier with the loss {loss!r}")
    categories = [int(j) for j in model.get_cat_feature_indices()]
    if categories and inputs.steps:
        _refuse("is a CatBoostClassifier with categories behind other steps of a pipeline")
    pool = catboost.Pool(_all_levels(inputs), cat_features=categories) if categories else None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json", pool=pool)
        found = json.loads(path.read_text(encoding="utf-8"))
    info = found["features_info"]
    hashes = {one["value"]: float(np.uint32(one["hash"])) for one in info.get("cat_features_hash", [])}
    for j in categories:
        inputs.codes[j] = {v: hashes[str(v)] for v in inputs.encoding.schema.features[j].levels if str(v) in hashes}
    scale, bias = found["scale_and_bias"]
    reader = _Oblivious(info, scale)
    trees = [reader.tree(one) for one in found.get("oblivious_trees", [])]
    trees += [reader.nested(one) for one in found.get("trees", [])]
    return Ensemble(inputs, trees, n, np.broadcast_to(np.asarray(bias, dtype=float), 1 if n == 2 else n).copy())


def _all_levels(inputs: Inputs) -> pd.DataFrame:
    """A frame that has every level."""
    features = inputs.encoding.schema.features
    rows = np.repeat(inputs.base, max(f.n_states if not f.is_number else 1 for f in features), axis=0)
    for j, feature in enumerate(features):
        if not feature.is_number:
            rows[:, j] = np.arange(len(rows)) % feature.n_states
    return inputs.encoding.decode(rows)


@dataclass
class _Oblivious:
    """Trees of CatBoost's: by default all nodes of a level have the same test, and what exceeds a border goes right."""

    info: dict[str, Any]
    scale: float

    def record(self, split: dict[str, Any]) -> _Record:
        if split["split_type"] == "FloatFeature":
            own = self.info["float_features"][split["float_feature_index"]]
            missing = own["nan_value_treatment"] != "AsTrue"
            return _Record(0.0, own["flat_feature_index"], float(split["border"]), missing)
        if split["split_type"] != "OneHotFeature":
            _refuse(
                "is a CatBoostClassifier that replaces categories by statistics of the target, which one_hot_max_size= "
                "as high as the most levels avoids"
            )
        own = self.info["categorical_features"][split["cat_feature_index"]]
        code = np.array([float(np.uint32(split["value"] % 2**32))])
        return _Record(0.0, own["flat_feature_index"], 0.0, True, None, (code, False))

    def tree(self, one: dict[str, Any]) -> Tree:
        tests = [self.record(split) for split in one.get("splits") or []]
        depth = len(tests)
        level = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
        path = np.concatenate([np.arange(2**k) for k in range(depth + 1)])
        leaf = level == depth
        own = np.where(leaf, 0, level)
        below = 2 ** (level + 1) - 1 + path
        values = np.zeros((len(level), len(one["leaf_values"]) // 2**depth))
        values[leaf] = self.scale * np.reshape(one["leaf_values"], (2**depth, -1))
        nothing = [_Record()]
        column, threshold, missing = (
            np.array([getattr(test, name) for test in tests or nothing])
            for name in ("column", "threshold", "missing_left")
        )
        sets = {int(i): tests[level[i]].codes for i in np.flatnonzero(~leaf) if tests[level[i]].codes is not None}
        return Tree(
            np.where(leaf, -1, column[own]), threshold[own].astype(float), missing[own].astype(bool),
            np.where(leaf, 0, below), np.where(leaf, 0, below + 2**level), values, sets,
        )  # fmt: skip

    def nested(self, root: dict[str, Any]) -> Tree:
        nodes, read, values = [root], list[_Record](), list[Any]()
        for node in nodes:
            if "split" not in node:
                own = node["value"]
                read.append(_Record())
                values.append(own if isinstance(own, list) else [own])
                continue
            read.append(replace(self.record(node["split"]), children=(len(nodes), len(nodes) + 1)))
            values.append(None)
            nodes += [node["left"], node["right"]]
        width = max(len(own) for own in values if own is not None)
        table = np.array([[0.0] * width if own is None else own for own in values])
        return replace(_tree_of(read), value=self.scale * table)


READERS: dict[tuple[str, str], Callable[[Any, Inputs], Ensemble | Layers]] = {
    ("sklearn", "LogisticRegression"): _linear,
    ("sklearn", "LogisticRegressionCV"): _linear,
    ("sklearn", "SGDClassifier"): _linear,
    ("sklearn", "MLPClassifier"): _perceptron,
    ("sklearn", "DecisionTreeClassifier"): _single_tree,
    ("sklearn", "ExtraTreeClassifier"): _single_tree,
    ("sklearn", "RandomForestClassifier"): _tree_votes,
    ("sklearn", "ExtraTreesClassifier"): _tree_votes,
    ("sklearn", "GradientBoostingClassifier"): _gradient_boosting,
    ("sklearn", "HistGradientBoostingClassifier"): _hist_gradient_boosting,
    ("xgboost", "XGBClassifier"): _xgboost,
    ("xgboost", "XGBRFClassifier"): _xgboost,
    ("lightgbm", "LGBMClassifier"): _lightgbm,
    ("catboost", "CatBoostClassifier"): _catboost,
}
