"""Refinement in the core: what is remembered from row to row changes nothing, and nothing needless is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dicoflex import _core
from dicoflex.values import differ
from refinement.made_judges import KINDS, Case, make


def wanted(case: Case, *, share: float | None = None) -> np.ndarray:
    """Of each query the class that it has less, as probable as of half of its draws, and floors that a share of all
    draws lies below."""
    floors: tuple[float, ...] = (-np.inf, -np.inf, -np.inf)
    if share is not None:
        scores = np.empty((2, len(case.draws)))
        case.density.judge(case.draws, 0, len(case.draws), scores)
        floors = tuple(float(np.quantile(scores[k], part)) for k, part in ((0, share), (1, share / 4), (0, share / 2)))
    target = 1 - case.probabilities(case.query).argmax(axis=1)
    said = case.probabilities(case.draws)
    least = [np.median(said[case.which == i, target[i]]) for i in range(4)]
    return np.column_stack([target, least, *(np.full(4, floor) for floor in floors)])


@pytest.mark.parametrize("share", [None, 0.5])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_the_rows_from_nothing(kind: str, turned: bool, share: float | None) -> None:
    """Bit for bit: sums are kept, trees are skipped and pairs are not looked at again only where that is the same."""
    for seed in range(3):
        case = make(kind, seed)
        want = wanted(case, share=share)
        rows, kept, scores = case.refined(want, case.bounds(), turned=turned)
        assert kept.sum() > 10
        which, refined, judged = case.which[kept], rows[kept], np.empty((2, int(kept.sum())))
        said = case.probabilities(refined)[np.arange(len(refined)), want[which, 0].astype(int)]
        np.testing.assert_array_equal(scores[kept, 0], said)
        case.density.judge(refined, 0, len(refined), judged)
        np.testing.assert_array_equal(scores[kept, 1:3], judged.T)
        assert case.judged(refined, which, want, case.bounds()).all()


@pytest.mark.parametrize("kind", KINDS)
def test_no_change_of_a_refined_row_can_be_undone(kind: str) -> None:
    for seed in range(3):
        case = make(kind, seed)
        want, bounds = wanted(case), case.bounds()
        rows, kept, _ = case.refined(want, bounds)
        trials, owners = [], []
        for row, at in zip(rows[kept], case.which[kept], strict=True):
            for j in np.flatnonzero(differ(row, case.query[at])):
                trials.append(np.where(np.arange(len(row)) == j, case.query[at], row))
                owners.append(at)
        assert len(trials) > 10
        assert not case.judged(np.array(trials), owners, want, bounds).any()


def test_refined_rows_have_no_pair_that_is_avoided_and_keep_what_is_frozen() -> None:
    case = make("both", 1)
    frozen = np.zeros(case.query.shape, bool)
    frozen[:, [0, 6]] = True
    rows, kept, _ = case.refined(wanted(case), case.bounds(frozen=frozen))
    own, strays = case.query[case.which[kept]], np.empty(int(kept.sum()), bool)
    case.avoided.find(rows[kept], own, strays)
    assert kept.any()
    assert not strays.any()
    np.testing.assert_array_equal(rows[kept][:, [0, 6]], own[:, [0, 6]])


def test_the_same_rows_whatever_stands_beside_them() -> None:
    case = make("both", 2)
    want, bounds = wanted(case, share=0.5), case.bounds()
    n, steps = len(case.draws), _core.LESS
    results = []
    for size in (n, 7):
        rows, stands, kept, scores = case.draws.copy(), np.zeros(n, bool), np.zeros(n, bool), np.zeros((n, 4))
        for low in range(0, n, size):
            _core.refine_rows(
                case.judges, bounds, rows=rows, query=case.query, which=case.which, wanted=want, turned=False, most=n,
                steps=steps, low=low, high=min(low + size, n), stands=stands, kept=kept, scores=scores,
            )  # fmt: skip
        results.append((rows[stands], stands, scores))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("low", np.zeros((4, 3))),
        ("offset", np.arange(9)),
        ("point_at", np.ones(9, np.int64)),
        ("banned_at", np.zeros(8, np.int64)),
        ("fixed", np.zeros(3)),
        ("follows", np.zeros(9, bool)),
    ],
)
def test_limits_that_do_not_fit_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        make("trees", 0).bounds(**{name: value})


@pytest.mark.parametrize(("name", "at"), [("rows", 0), ("query", 0), ("which", 4), ("wanted", 2)])
def test_rows_with_codes_classes_or_queries_that_there_are_not_are_refused(name: str, at: float) -> None:
    case = make("perceptron", 0)
    given: dict[str, Any] = {
        "rows": case.draws.copy(), "query": case.query.copy(), "which": case.which.copy(), "wanted": wanted(case),
    }  # fmt: skip
    if name in ("rows", "query"):
        given[name][0, 5] = 3.0  # a code after the last
    elif name == "which":
        given[name][3] = at
    else:
        given[name][1, 0] = at
    n = len(case.draws)
    room = {"stands": np.zeros(n, bool), "kept": np.zeros(n, bool), "scores": np.zeros((n, 4))}
    with pytest.raises(ValueError, match=name):
        _core.refine_rows(case.judges, case.bounds(), **given, turned=False, most=9, steps=7, low=0, high=n, **room)


def test_trees_whose_links_leave_them_are_refused() -> None:
    one = {
        "start": np.zeros(1, np.int64), "feature": np.array([0, -1, -1], np.int32), "threshold": np.zeros(3),
        "missing_left": np.zeros(3, bool), "left": np.array([1, 0, 0], np.int32),
        "right": np.array([2, 0, 0], np.int32), "value": np.zeros(3), "baseline": np.zeros(1), "averaged": 0.0,
    }  # fmt: skip
    _core.Trees(**one)
    for name, links in (("left", [0, 0, 0]), ("right", [3, 0, 0])):
        with pytest.raises(ValueError, match=name):
            _core.Trees(**(one | {name: np.array(links, np.int32)}))
    with pytest.raises(ValueError, match="start"):
        _core.Trees(**(one | {"start": np.array([1])}))
