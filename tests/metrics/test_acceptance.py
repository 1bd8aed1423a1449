"""Measures of what a person would accept, against figures worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import metrics
from dicoflex.errors import DataError
from dicoflex.table.schema import Schema


def rows_of(*pairs: tuple[object, int]) -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples(pairs, names=["row", "cf"])


@pytest.fixture
def train() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [20, 30, 40, 50, 60, 70],
            "income": [0.0, 10.0, 20.0, 30.0, np.nan, 50.0],
            "job": pd.Categorical(["cook", "cook", "nurse", "nurse", "clerk", None]),
        }
    )


@pytest.fixture
def schema(train: pd.DataFrame) -> Schema:
    return Schema.infer(train)


@pytest.fixture
def queries(train: pd.DataFrame) -> pd.DataFrame:
    """Ann is 20, a cook without income; bob is 60, a clerk of unknown income."""
    return train.iloc[[0, 4]].set_axis(["ann", "bob"])


@pytest.fixture
def cfs(train: pd.DataFrame) -> pd.DataFrame:
    """Four answers, in an order unlike the queries'; the third changes nothing."""
    frame = train.iloc[[4, 0, 4, 0]].set_axis(rows_of(("bob", 0), ("ann", 0), ("bob", 1), ("ann", 1)))
    frame["age"] = [50, 60, 60, 20]
    frame["income"] = [30.0, 20.0, np.nan, 30.0]
    frame["job"] = pd.Categorical(["clerk", "nurse", "clerk", "cook"], categories=train["job"].cat.categories)
    return frame


def rich(rows: pd.DataFrame) -> pd.Series:
    return rows["income"] >= 15.0


# -- what could be undone -----------------------------------------------------------------------------------------


def test_a_change_is_undone_alone(queries: Any, cfs: Any, schema: Schema) -> None:
    flags = metrics.undoable(queries, cfs, schema, rich)
    assert flags.index.equals(cfs.index)
    assert flags.to_numpy(dtype=object, na_value=None).tolist() == [
        [True, False, None],  # 50 back to 60 keeps the income; the income back to missing loses it
        [True, False, True],
        [None, None, None],
        [None, False, None],
    ]
    assert metrics.needless(flags) == pytest.approx(3 / 6)
    assert metrics.reducible(flags) == 2 / 4


def test_rows_without_a_change_are_shown_as_they_would_be(queries: Any, cfs: Any, schema: Schema) -> None:
    shown: list[pd.DataFrame] = []

    def fine(rows: pd.DataFrame) -> list[bool]:
        shown.append(rows)
        return [False] * len(rows)

    metrics.undoable(queries, cfs, schema, fine)
    (rows,) = shown
    assert rows.dtypes.equals(cfs.dtypes)
    assert rows.index.tolist() == [("bob", 0), ("bob", 0), ("ann", 0), ("ann", 0), ("ann", 0), ("ann", 1)]
    assert rows["age"].tolist() == [60, 50, 20, 60, 60, 20]
    np.testing.assert_array_equal(rows["income"], [30.0, np.nan, 20.0, 0.0, 20.0, 0.0])
    assert rows["job"].tolist() == ["clerk", "clerk", "nurse", "nurse", "cook", "cook"]


def test_a_margin_asks_for_more_than_was_asked_for(schema: Schema, queries: Any, cfs: Any) -> None:
    """With a black box that is as sure as the income is high, an income of 20 is not .05 surer than .2."""
    flags = metrics.undoable(queries, cfs, schema, lambda rows: rows["income"] / 100 >= 0.2 + 0.05)
    assert flags.loc[("ann", 0)].tolist() == [False, False, False]
    assert flags.loc[("bob", 0), "age"]


def test_nothing_is_asked_about_answers_that_change_nothing(queries: Any, schema: Schema) -> None:
    same = queries.head(1).set_axis(rows_of(("ann", 0)))
    flags = metrics.undoable(queries, same, schema, lambda _: pytest.fail("nothing to judge"))
    assert math.isnan(metrics.needless(flags))
    assert metrics.reducible(flags) == 0.0
    assert math.isnan(metrics.reducible(flags.head(0)))


def test_a_judge_that_answers_too_little_is_refused(queries: Any, cfs: Any, schema: Schema) -> None:
    with pytest.raises(DataError, match=r"fine gave an array of shape \(1,\) for 6 rows"):
        metrics.undoable(queries, cfs, schema, lambda _: [True])


# -- what could be closer -----------------------------------------------------------------------------------------


def test_numbers_go_half_of_the_way_to_a_value_of_the_table(queries: Any, cfs: Any, schema: Schema, train: Any) -> None:
    shown: list[pd.DataFrame] = []

    def fine(rows: pd.DataFrame) -> pd.Series:
        shown.append(rows)
        return rich(rows)

    flags = metrics.halvable(queries, cfs, schema, fine, train)
    assert flags.columns.tolist() == ["age", "income"]
    assert flags.to_numpy(dtype=object, na_value=None).tolist() == [
        [False, None],  # half of 60 to 50 is 55; the lower of the two nearest is 50 itself. Missing has no half way
        [True, False],  # 60 to 40, and the income 20 to 10
        [None, None],
        [None, False],  # 30 to 15, of which the lower of the two nearest is 10
    ]
    assert metrics.closer(flags) == pytest.approx(1 / 4)
    (rows,) = shown
    assert rows.index.tolist() == [("ann", 0), ("ann", 0), ("ann", 1)]
    assert rows["age"].tolist() == [40, 60, 20]
    assert rows["income"].tolist() == [20.0, 10.0, 10.0]
    assert rows.dtypes.equals(cfs.dtypes)


def test_a_value_beyond_the_answer_is_not_nearer(schema: Schema, queries: Any, cfs: Any, train: Any) -> None:
    """From 20 to 21 there is no value of the table on the way but the query's own; from 20 to 24 back to 20."""
    few = cfs.iloc[[1, 3]].assign(age=[21, 24], income=[0.0, 0.0])
    flags = metrics.halvable(queries, few, schema, lambda rows: rows["age"] >= 20, train.iloc[1:])
    assert flags["age"].tolist() == [False, False]
    flags = metrics.halvable(queries, few, schema, lambda rows: rows["age"] >= 20, train)
    assert flags["age"].tolist() == [True, True]
    assert flags["income"].isna().all()


def test_of_no_changed_number_nothing_is_closer(schema: Schema, queries: Any, train: Any) -> None:
    same = queries.set_axis(rows_of(("ann", 0), ("bob", 0)))
    assert math.isnan(metrics.closer(metrics.halvable(queries, same, schema, rich, train)))


# -- what no row has together -------------------------------------------------------------------------------------


def test_pairs_of_levels_and_deciles() -> None:
    """Numbers 1 to 100 have the bounds 10.9, 20.8, …, 90.1; the colour is red up to 50 and blue above."""
    train = pd.DataFrame({"x": range(1, 101), "colour": ["red"] * 50 + ["blue"] * 50})
    known = metrics.KnownPairs(train, Schema.infer(train, kinds={"x": "integer"}))
    rows = pd.DataFrame({"x": [50, 50, 51, 51, 60, 1000], "colour": ["red", "blue", "red", "blue", "red", "blue"]})
    assert known.unseen(rows).tolist() == [False, True, True, False, True, False]


def test_a_value_on_a_bound_belongs_to_the_cell_below() -> None:
    """Of 0 to 10 the deciles are 1 to 9: 5 is in the cell of (4, 5], with red, and 5.5 in that of (5, 6]."""
    train = pd.DataFrame({"x": np.arange(11.0), "colour": ["red"] * 6 + ["blue"] * 5})
    known = metrics.KnownPairs(train, Schema.infer(train))
    rows = pd.DataFrame({"x": [5.0, 5.5, 5.0, 5.5], "colour": ["red", "red", "blue", "blue"]})
    assert known.unseen(rows).tolist() == [False, True, True, False]


def test_what_the_query_has_is_not_held_against_the_answer() -> None:
    train = pd.DataFrame({"sex": ["f", "m"], "role": ["wife", "husband"], "job": ["cook", "cook"]})
    schema = Schema.infer(pd.concat([train, train.assign(job="nurse")]))
    known = metrics.KnownPairs(train, schema)
    queries = pd.DataFrame({"sex": ["f"], "role": ["husband"], "job": ["cook"]})
    cfs = pd.concat([queries, queries.assign(role="wife"), queries.assign(sex="m"), queries.assign(job="nurse")])
    cfs = cfs.set_axis(rows_of(*((0, i) for i in range(4))))
    assert known.unseen(queries).tolist() == [True]
    assert known.unseen(cfs, queries).tolist() == [False, False, False, True]
    assert metrics.unseen(queries, cfs, known) == 0.25
    assert math.isnan(metrics.unseen(queries, cfs.head(0), known))


def test_missing_and_unknown_values_have_cells_of_their_own(train: pd.DataFrame, schema: Schema) -> None:
    known = metrics.KnownPairs(train, schema)
    columns = {"age": [60, 60, 70, 70, 20], "income": [np.nan, 10.0, 50.0, 50.0, 0.0]}
    rows = pd.DataFrame(columns | {"job": ["clerk", "clerk", None, "cook", "?"]})
    assert known.unseen(rows).tolist() == [False, True, False, True, True]
    assert not known.unseen(train).any()


# -- what is rare -------------------------------------------------------------------------------------------------


def test_the_floor_is_a_quantile_by_class() -> None:
    scores, labels = np.arange(101.0), np.where(np.arange(101) < 51, 0, 1)
    floor = metrics.RareFloor(scores, labels, share=0.1)
    assert floor.by_label == {0: 5.0, 1: 56.0 - 0.1}
    assert floor.below([4.9, 5.0, 55.8, 56.0], [0, 0, 1, 1]).tolist() == [True, False, True, False]


def test_rare_answers_are_less_likely_than_real_rows_of_the_target() -> None:
    real, labels = [*range(100), *range(1000, 1100)], ["no"] * 100 + ["yes"] * 100
    assert metrics.rare([4.0, 5.0, 4.0], ["no", "no", "yes"], real, labels) == pytest.approx(2 / 3)
    assert metrics.rare(real, labels, real, labels) == 0.05
    assert metrics.rare([500.0, 2000.0], "yes", real, labels, share=0.5) == 0.5


def test_rare_takes_any_log_density_of_rows(train: pd.DataFrame, cfs: pd.DataFrame) -> None:
    density = lambda rows: -np.abs(rows["age"] - 45.0)  # noqa: E731
    found = metrics.rare(cfs, "yes", train, ["yes"] * 6, log_density=density, share=0.4)
    assert found == metrics.rare([-5.0, -15.0, -15.0, -25.0], "yes", density(train), ["yes"] * 6, share=0.4) == 0.25


def test_rare_of_nothing_is_nan_and_an_unknown_target_is_refused() -> None:
    assert math.isnan(metrics.rare([], "yes", [1.0], ["yes"]))
    with pytest.raises(DataError, match="target 'yess' is unknown"):
        metrics.rare([1.0], "yess", [1.0], ["yes"])


# -- ways and shifts ----------------------------------------------------------------------------------------------


def test_additions_are_answers_that_hold_another(queries: Any, cfs: Any, schema: Schema) -> None:
    """Sets of changes by hand: {age}, {age, job} and {pay} of one query, {age} and {age} of another."""
    rows = pd.DataFrame({"age": [30, 40], "pay": [10, 20], "job": ["cook", "nurse"]}, index=["ann", "bob"])
    index = pd.MultiIndex.from_tuples([("ann", 0), ("ann", 1), ("bob", 0), ("ann", 2), ("bob", 1)], names=["row", "cf"])
    answers = pd.DataFrame(
        {"age": [31, 32, 41, 30, 42], "pay": [10, 10, 20, 11, 20], "job": ["cook", "nurse", "nurse", "cook", "nurse"]},
        index=index,
    )
    assert metrics.additions(rows, answers, Schema.infer(rows)) == pytest.approx(1 / 5)
    assert math.isnan(metrics.additions(queries, cfs.head(0), schema))


def test_routes_count_sets_of_changed_features(queries: Any, cfs: Any, schema: Schema) -> None:
    """Ann's two answers change three features and one; bob's change two and none."""
    assert metrics.routes(queries, cfs, schema) == 1.0
    more = pd.concat([cfs, cfs.iloc[[3, 3]].assign(income=[40.0, 50.0]).set_axis(rows_of(("ann", 2), ("ann", 3)))])
    assert metrics.routes(queries, more, schema) == pytest.approx((2 / 4 + 2 / 2) / 2)
    assert math.isnan(metrics.routes(queries, cfs.head(0), schema))


def test_percentile_shift_counts_rows_up_to_a_value(queries: Any, cfs: Any, schema: Schema, train: Any) -> None:
    """Six ages, 20 to 70, and five incomes that are known: 0, 10, 20, 30, 50."""
    found = metrics.percentile_shift(queries, cfs, schema, train)
    np.testing.assert_allclose(found["total"], [1 / 6 + 1, 4 / 6 + 2 / 5, 0, 3 / 5])
    np.testing.assert_allclose(found["largest"], [1, 4 / 6, 0, 3 / 5])
    assert found.index.equals(cfs.index)


def test_percentile_shift_without_numbers_is_none(queries: Any, cfs: Any, train: Any) -> None:
    schema = Schema.infer(train[["job"]])
    assert metrics.percentile_shift(queries, cfs, schema, train).to_numpy().tolist() == [[0.0, 0.0]] * 4
