"""Answers: what a quick run finds, how rows are judged, and how figures are held against their bars."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.cells import QUICK, Cell, Result
from benchmarks.experiments import answers
from benchmarks.experiments.answers import certified, dependencies
from benchmarks.experiments.answers.bars import BARS, JUDGED, bar, misses
from benchmarks.experiments.answers.measuring import ASKED, EXPLAIN, Standard
from benchmarks.options import Options
from benchmarks.row_judge import RowJudge
from benchmarks.tables import ADULT, GERMAN, GMC, LENDING_CLUB, MAIN
from benchmarks.tasks import Task, prepare
from dicoflex import Schema, metrics
from dicoflex.coherence.dependencies import Dependency
from dicoflex.generators import GENERATORS


@pytest.fixture(scope="module")
def task() -> Task:
    return prepare(Cell("answers", ADULT, "oracle", size=QUICK))


# -- a quick run ------------------------------------------------------------------------------------------------------


def test_refined_answers_are_more_acceptable_than_draws(stored: Any) -> None:
    refined, drawn, nearest, sure = (result.figures for result in stored("answers")[:4])
    for name in ("needless", "reducible", "closer", "unseen", "rare", "l1", "shift_total"):
        assert refined[name] < drawn[name]
    assert refined["validity"] > 0.9
    assert refined["queries"] == drawn["queries"] == nearest["queries"] == 12
    assert nearest["answers"] == 12 * 10
    assert nearest["validity"] == nearest["enough"] == 1.0
    assert nearest["unseen"] == nearest["none"] == 0.0
    assert sure["validity"] == sure["sure"] == 1.0 > nearest["sure"]
    assert sure["needless"] > nearest["needless"]
    assert refined["file_mb"] == drawn["file_mb"] > 0
    assert refined["fit_seconds"] == drawn["fit_seconds"]


def test_figures_are_shares_of_what_they_say(stored: Any) -> None:
    for result in stored("answers")[:4]:
        found = result.figures
        assert 0 <= found["needless"] <= found["reducible"] <= 1
        assert 0.1 <= found["routes"] <= 1
        assert 0 <= found["shift_largest"] <= found["shift_total"]
        assert found["real"]["rare"] == pytest.approx(0.05, abs=0.01)


def test_all_methods_are_held_to_the_same_confidence(stored: Any) -> None:
    asked = [result.figures["asked"] for result in stored("answers")[:4]]
    assert asked[0] == asked[1] == asked[2] == asked[3]
    assert all(0.5 <= sure <= 0.7 for sure in asked[0].values())


def test_the_page_has_bars_and_a_row_for_each_method(page: Any) -> None:
    text = page("answers")
    assert text.count("\n|") == (2 + len(JUDGED)) + (2 + 3 * 2) + (2 + 4 + 1)
    assert "\n| real test rows | –" in text
    assert f"of {len(JUDGED)} are met" in text


def test_cells_come_table_by_table_and_seed_by_seed() -> None:
    cells = [cell for cell in answers.cells(Options()) if cell.method in ASKED]
    assert len(cells) == 6 * 2 * len(ASKED)
    assert [(c.table, c.seed) for c in cells[:: len(ASKED)]] == [(t, s) for t in (*MAIN, GERMAN) for s in (1, 2)]
    assert not {cell.seed for cell in cells} & {7, 11}
    (one,) = answers.cells(Options(tables=(GMC,), methods=("explain (p=0.01)",), seeds=(1,), queries=5))
    assert (one.table, one.method, one.seed, one.size.queries) == (GMC, "explain (p=0.01)", 1, 5)


def test_what_is_promised_has_cells_of_its_own() -> None:
    cells = [cell for cell in answers.cells(Options()) if cell.method not in ASKED]
    refits = [cell for cell in cells if cell.method == certified.NAME]
    assert [cell.setting("refit") for cell in refits] == list(range(100))
    assert {(c.table, c.seed) for c in refits} == {(ADULT, 1)}
    others = cells[len(refits) :]
    assert [dependencies.METHODS[cell.method] for cell in others] == list(GENERATORS)
    assert {(c.table, c.seed) for c in others} == {(LENDING_CLUB, 1)}
    assert answers.cells(Options(methods=(certified.NAME,), tables=(GMC,))) == []


# -- judging ----------------------------------------------------------------------------------------------------------


def test_a_row_is_fine_if_every_test_is_passed(task: Task) -> None:
    """Each test alone, on draws far from the rows: columns shuffled one by one."""
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([task.queries.index, range(40)], names=["row", "cf"])
    rows = task.data.X_train.sample(len(index), random_state=0)
    rows = rows.assign(age=rng.permutation(rows["age"]), occupation=rng.permutation(rows["occupation"].array))
    rows = rows.set_axis(index)
    standard = Standard(task, dict.fromkeys(task.black_box.classes_, 0.6))
    tests = [
        task.sureness(rows) >= 0.65,
        ~task.pairs.unseen(rows, task.queries),
        ~standard.is_rare(rows),
    ]
    assert all(0 < test.mean() < 1 for test in tests)
    fine = standard.fine(rows)
    assert fine.tolist() == np.logical_and.reduce(tests).tolist()
    assert 0 < fine.sum() < min(test.sum() for test in tests)


def test_a_confidence_is_asked_for_by_target(task: Task) -> None:
    rows = task.queries.set_axis(pd.MultiIndex.from_product([task.queries.index, [0]], names=["row", "cf"]))
    first, second = task.black_box.classes_
    wanted = Standard(task, {first: 0.5, second: 0.7}).wanted(rows)
    assert wanted.tolist() == np.where(task.targets == first, 0.5, 0.7).tolist()


def test_sureness_is_the_black_boxs_word_on_the_target(task: Task) -> None:
    rows = task.queries.set_axis(pd.MultiIndex.from_product([task.queries.index, [0]], names=["row", "cf"]))
    assert (task.sureness(rows) <= 0.5).all()
    assert task.sureness(rows.head(0)).shape == (0,)


# -- the judge of rows ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def coupled() -> pd.DataFrame:
    """A level that follows from another in nine of ten rows, a rare level, and a number that goes with the first."""
    rng = np.random.default_rng(0)
    first = rng.choice(["a", "b", "c"], 1500)
    second = np.where(rng.random(1500) < 0.9, np.char.upper(first), rng.choice(["A", "B", "C"], 1500))
    second[:5] = "D"
    x = rng.normal(size=1500) + 5.0 * (first == "a")
    x[::50] = np.nan
    return pd.DataFrame({"x": x, "first": first, "second": second})


def test_chances_add_up_to_one(coupled: pd.DataFrame) -> None:
    levels = coupled[["first", "second"]]
    judge = RowJudge(levels, Schema.infer(levels))
    every = pd.DataFrame(list(product("abc", "ABCD")), columns=["first", "second"])
    assert np.exp(judge.log_density(every)).sum() == pytest.approx(1.0, abs=1e-9)
    # A level of five rows has its plain share, whatever comes before.
    rare = np.exp(judge.log_density(every[every["second"] == "D"])).sum()
    assert rare == pytest.approx(5 / 1500)


def test_numbers_count_by_bins_and_add_up_too(coupled: pd.DataFrame) -> None:
    judge = RowJudge(coupled, Schema.infer(coupled))
    edges = judge.edges[0]
    assert len(edges) == 19
    middles = [edges[0] - 1.0, *((edges[1:] + edges[:-1]) / 2), edges[-1] + 1.0, np.nan]
    every = pd.DataFrame(list(product(middles, "abc", "ABCD")), columns=["x", "first", "second"])
    assert np.exp(judge.log_density(every)).sum() == pytest.approx(1.0, abs=1e-6)


def test_the_judge_knows_what_goes_together(coupled: pd.DataFrame) -> None:
    judge = RowJudge(coupled, Schema.infer(coupled))
    usual = pd.DataFrame({"x": [5.0, 0.0], "first": ["a", "b"], "second": ["A", "B"]})
    odd = pd.DataFrame({"x": [-1.0, 0.0], "first": ["a", "b"], "second": ["A", "C"]})
    assert (judge.log_density(usual) > judge.log_density(odd) + 1.5).all()
    fresh = coupled.sample(400, random_state=1)
    shuffled = fresh.assign(first=fresh["first"].sample(frac=1.0, random_state=2).to_numpy())
    labels = ["any"] * len(fresh)
    real = judge.log_density(fresh)
    assert metrics.rare(judge.log_density(shuffled), "any", real, labels) > 0.2


def test_what_no_row_has_is_next_to_impossible(coupled: pd.DataFrame) -> None:
    schema = Schema.infer(coupled)
    judge = RowJudge(coupled[coupled["second"] != "D"], schema)
    rows = pd.DataFrame({"x": [0.0, 0.0], "first": ["b", "b"], "second": ["B", "D"]})
    likely, never = judge.log_density(rows)
    assert never < likely - 8.0


# -- bars -------------------------------------------------------------------------------------------------------------


def test_bars_are_for_refined_answers() -> None:
    assert bar("l1", GMC, "explain (p=2.0)") == 4.2
    assert bar("l1", GMC, "explain (p=0.01)") is None
    assert bar("enough", GMC, "explain (p=0.01)") == 0.9
    assert bar("needless", ADULT, "explain, unrefined (p=2.0)") is None
    assert bar("needless", ADULT, "oracle") is None
    assert bar("needless", GERMAN, "explain (p=2.0)") is None
    assert [score.name for score in JUDGED] == list(BARS)
    assert {len(each) for each in BARS.values()} == {len(MAIN)}


@pytest.mark.parametrize(("name", "fair", "foul"), [("needless", 0.02, 0.0201), ("routes", 0.75, 0.7499)])
def test_a_miss_is_on_the_wrong_side(name: str, fair: float, foul: float) -> None:
    score = next(score for score in JUDGED if score.name == name)
    wanted = bar(name, ADULT, "explain (p=2.0)")
    assert not misses(score, fair, wanted)
    assert misses(score, foul, wanted)
    assert misses(score, None, wanted)
    assert not misses(score, foul, None)


def test_the_page_marks_misses_and_puts_seeds_side_by_side(stored: Any) -> None:
    (drawn,) = (r for r in stored("answers") if r.cell.method == "explain, unrefined (p=2.0)")
    figures = drawn.figures | {score.name: 0.0 if not score.higher else 1.0 for score in JUDGED}
    cells = [Cell("answers", ADULT, "explain (p=0.01)", seed) for seed in (1, 2)]
    results = [Result(cells[0], figures | {"rare": 0.2}), Result(cells[1], figures | {"rare": 0.05, "l1": 9.0})]
    text = answers.page(results, "dicoflex bench answers")
    assert "| rare ↓ | **0.200** / 0.050 (0.1) |" in text
    assert "| L1 ↓ | 0.000 / 9.000 |" in text
    assert "19 of 20 are met" in text


def test_what_is_asked_of_explain_differs_by_method() -> None:
    assert len({tuple(sorted(asked.items())) for asked in EXPLAIN.values()}) == len(EXPLAIN)


# -- what is promised -------------------------------------------------------------------------------------------------


def test_refits_tell_rates_by_question_and_target(stored: Any) -> None:
    (result,) = (result for result in stored("answers") if result.cell.method == certified.NAME)
    rates = result.figures["rates"]
    assert [rate["sort"] for rate in rates] == ["free", "free", "few", "few", "frozen", "frozen"]
    assert all(0 <= rate["certified"] <= 1 and 0 <= rate["valid"] <= 1 for rate in rates)
    assert all(0 < rate["answers"] <= 10 * certified.ANSWERS for rate in rates)


def test_a_rate_that_does_not_hold_is_bold() -> None:
    def result(refit: int, valid: float) -> Result:
        rates = [{"sort": "few", "target": "yes", "answers": 9, "certified": 0.9, "valid": valid}]
        return Result(Cell("answers", ADULT, certified.NAME, 1, QUICK, (("refit", refit),)), {"rates": rates})

    good = [result(k, 0.95) for k in range(19)]
    assert "| few | yes | 20 | 19 | 0.9000 | 0.9425 | 0.1000 |" in answers.page([*good, result(19, 0.8)], "x")
    assert "| few | yes | 20 | **18** |" in answers.page([*good[1:], result(19, 0.8), result(0, 0.8)], "x")


LINEAR = Dependency(kind="linear", follows=1, of=(0,), weights=(1.0,), constant=4.0)
PRODUCT = Dependency(kind="product", follows=2, of=(0, 1))
LOOKUP = Dependency(kind="lookup", follows=1, of=(0,), keys=(0.0, 1.0), values=(1.0, 2.0))
RATE = Dependency(kind="rate", follows=2, of=(0, 1), keys=(8.0, 9.0), values=(8.0, 9.0), levels=(0, 0))


@pytest.mark.parametrize(
    ("one", "rows"),
    [
        (LINEAR, [[1, 5], [1, 5.5]]),
        (PRODUCT, [[2, 3, 6], [2, 3, 7]]),
        (LOOKUP, [[7, 8], [7, 9]]),
        (RATE, [[10, 8.5, 85], [10, 8.5, 90]]),
    ],
)
def test_dependencies_are_told_from_values_and_training_rows(one: Dependency, rows: list[list[float]]) -> None:
    train = np.array([[7.0, 8.0, 56.0], [6.0, 9.0, 54.0]])
    assert dependencies.odd_rows(one, np.array(rows, dtype=float), train).tolist() == [False, True]


def test_broken_dependencies_are_bold() -> None:
    figures = {"dependencies": ["b = a + 4"], "queries": 2, "answers": 12345, "broken": 0}
    cell = Cell("answers", LENDING_CLUB, "dependencies, maf", 1)
    assert "| maf | b = a + 4 | 12,345 | 0 |" in answers.page([Result(cell, figures)], "x")
    assert "| 12,345 | **3** |" in answers.page([Result(cell, figures | {"broken": 3})], "x")
