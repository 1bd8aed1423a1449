from __future__ import annotations

import math
import sys
import tracemalloc
from collections.abc import Callable
from itertools import combinations
from unittest import mock

import moocore
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor

from dicoflex import metrics
from dicoflex.errors import DataError, UserError
from dicoflex.metrics import diversity
from dicoflex.table.schema import Schema


def rows_of(*pairs: tuple[object, int]) -> pd.MultiIndex:
    return pd.MultiIndex.from_tuples(pairs, names=["row", "cf"])


@pytest.fixture
def schema() -> Schema:
    train = pd.DataFrame(
        {
            "age": [20, 120, 60],
            "income": [0.0, 10.0, np.nan],
            "job": ["cook", "nurse", None],
            "sex": ["f", "m", "f"],
        }
    )
    return Schema.infer(train)


@pytest.fixture
def queries() -> pd.DataFrame:
    frame = {"age": [30, 50], "income": [1.0, np.nan], "job": ["cook", None], "sex": ["f", "m"]}
    return pd.DataFrame(frame, index=["ann", "bob"])


@pytest.fixture
def cfs() -> pd.DataFrame:
    """Three answers, in an order unlike the queries'."""
    frame = {
        "age": [50, 30, 36],
        "income": [np.nan, 1.5, 1.0],
        "job": ["cook", "cook", "nurse"],
        "sex": ["m", "f", "m"],
    }
    return pd.DataFrame(frame, index=rows_of(("bob", 0), ("ann", 0), ("ann", 1)))


EXPECTED = {
    "age": [False, False, True],
    "income": [False, True, False],
    "job": [True, False, True],
    "sex": [False, False, True],
}


# -- validity ---------------------------------------------------------------------------------------------------


def test_validity_by_position():
    predicted = pd.Series(["a", "b", "b"], index=[7, 8, 9])
    assert metrics.validity(predicted, pd.Series(["a", "a", "b"])) == pytest.approx(2 / 3)
    assert metrics.validity(predicted, "b") == pytest.approx(2 / 3)
    assert metrics.validity(np.array([1, 0]), [1.0, 0.0]) == 1.0


@pytest.mark.parametrize("dtype", ["category", "str", "object"])
def test_validity_of_any_dtype(dtype):
    assert metrics.validity(pd.Series(["a", "b"], dtype=dtype), ["a", "a"]) == 0.5


def test_validity_never_counts_missing():
    assert metrics.validity(pd.Series([1, None], dtype="Int64"), [1, None]) == 0.5


def test_validity_of_nothing_is_nan():
    assert math.isnan(metrics.validity([], []))
    assert math.isnan(metrics.validity([], "a"))


def test_validity_refuses_another_length():
    with pytest.raises(DataError, match="2 predicted labels but 3 targets"):
        metrics.validity([1, 2], [1, 2, 3])


# -- changes ----------------------------------------------------------------------------------------------------


def test_changed(queries, cfs, schema):
    expected = pd.DataFrame(EXPECTED, index=cfs.index)
    pd.testing.assert_frame_equal(metrics.changed(queries, cfs, schema), expected)


@pytest.mark.parametrize(
    "dtypes",
    [
        {"age": "float64", "job": "category", "sex": "category"},
        {"age": "Int64", "income": "Float64", "job": "string", "sex": "object"},
        {"age": "object", "income": "object", "job": "object"},
        {"age": "category", "income": "Float32"},
    ],
)
@pytest.mark.parametrize("side", ["queries", "cfs", "both"])
def test_changed_compares_values_not_dtypes(queries, cfs, schema, dtypes, side):
    if side != "cfs":
        queries = queries.astype(dtypes)
    if side != "queries":
        cfs = cfs.astype(dtypes)
    assert metrics.changed(queries, cfs, schema).to_dict("list") == EXPECTED


def test_changed_sees_the_smallest_step(queries, cfs, schema):
    cfs["income"] = [np.nan, np.nextafter(1.0, 2.0), 1.0]
    assert metrics.changed(queries, cfs, schema)["income"].tolist() == [False, True, False]


def test_changed_takes_columns_in_any_order(queries, cfs, schema):
    flags = metrics.changed(queries, cfs[["sex", "job", "age", "income"]], schema)
    assert flags.to_dict("list") == EXPECTED


def test_changed_tells_mixed_levels_apart():
    train = pd.DataFrame({"code": pd.Series([1, True, 1.0, "1", None], dtype=object)})
    schema = Schema.infer(train)
    answers = train.set_axis(rows_of(*((0, i) for i in range(5))))
    flags = metrics.changed(train.iloc[[1]].set_axis([0]), answers, schema)
    assert flags["code"].tolist() == [True, False, True, True, True]


def test_changed_booleans_with_missing():
    queries = pd.DataFrame({"member": pd.Series([True, None], dtype="boolean")})
    answers = pd.DataFrame(
        {"member": pd.Series([True, False, None, None, True], dtype="boolean").to_numpy(object)},
        index=rows_of((0, 0), (0, 1), (0, 2), (1, 0), (1, 1)),
    )
    flags = metrics.changed(queries, answers, Schema.infer(queries))
    assert flags["member"].tolist() == [False, True, True, False, True]


def test_shares_of_changes(queries, cfs, schema):
    assert metrics.share_categories_changed(queries, cfs, schema) == pytest.approx(3 / 6)
    assert metrics.share_numbers_changed(queries, cfs, schema) == pytest.approx(2 / 6)


def test_epsilon_sparsity(queries, cfs, schema):
    # Ranges are 100 and 10: age moved by 6 (> 5), income by 0.5 (not > 0.5).
    assert metrics.epsilon_sparsity(queries, cfs, schema) == pytest.approx(1 / 6)
    assert metrics.epsilon_sparsity(queries, cfs, schema, epsilon=0.06) == 0.0
    assert metrics.epsilon_sparsity(queries, cfs, schema, epsilon=0.04) == pytest.approx(2 / 6)
    exact = metrics.share_numbers_changed(queries, cfs, schema)
    assert metrics.epsilon_sparsity(queries, cfs, schema, epsilon=0.0) == exact


def test_epsilon_sparsity_counts_missing_as_moved(queries, cfs, schema):
    cfs["income"] = [3.0, np.nan, 1.0]
    assert metrics.epsilon_sparsity(queries, cfs, schema) == pytest.approx(3 / 6)


def test_shares_without_such_features_are_nan():
    frame = pd.DataFrame({"x": [0.5, 1.5]})
    answers = frame.set_axis(rows_of((0, 0), (1, 0)))
    schema = Schema.infer(frame)
    assert math.isnan(metrics.share_categories_changed(frame, answers, schema))
    assert metrics.share_numbers_changed(frame, answers, schema) == 0.0
    assert math.isnan(metrics.share_numbers_changed(frame, answers.iloc[:0], schema))


def test_violations(queries, cfs):
    assert metrics.violations(queries, cfs, ["sex"]) == 1
    assert metrics.violations(queries, cfs, ["age", "job", "sex"]) == 4
    assert metrics.violations(queries, cfs, ["income"]) == 1
    assert metrics.violations(queries, cfs, []) == 0
    assert metrics.violations(queries.astype({"sex": "category"}), cfs.astype({"age": "Float64"}), ["age", "sex"]) == 2


# -- proximity --------------------------------------------------------------------------------------------------


def test_number_scale():
    train = pd.DataFrame({"a": [1.0, 3.0, np.nan], "b": pd.Series([2, 2, None], dtype="Int64"), "c": ["x", "y", "x"]})
    scale = metrics.number_scale(train, Schema.infer(train))
    assert scale.to_dict("index") == {"a": {"mean": 2.0, "std": 1.0}, "b": {"mean": 2.0, "std": 1.0}}


def test_proximity(schema, queries, cfs):
    cfs["income"] = [4.0, 9.0, 1.0]
    scale = pd.DataFrame({"mean": [2.0, 40.0], "std": [2.0, 3.0]}, index=["income", "age"])
    found = metrics.proximity(queries, cfs, schema, scale)
    assert found.index.equals(cfs.index)
    # bob: missing stands at the mean 2, so income moved by (4 - 2) / 2; ann: 8 / 2, and 6 / 3.
    assert found["euclidean"].tolist() == pytest.approx([1.0, 4.0, 2.0])
    assert found["l1"].tolist() == pytest.approx([1.0, 4.0, 2.0])


def test_proximity_in_two_directions():
    queries = pd.DataFrame({"a": [0.5], "b": [0.5]})
    answers = pd.DataFrame({"a": [3.5], "b": [-3.5]}, index=rows_of((0, 0)))
    schema = Schema.infer(queries)
    found = metrics.proximity(queries, answers, schema, metrics.number_scale(queries, schema))
    assert found.iloc[0].to_dict() == {"euclidean": 5.0, "l1": 7.0}


def test_proximity_needs_every_scale(queries, cfs, schema):
    scale = pd.DataFrame({"mean": [2.0], "std": [2.0]}, index=["age"])
    with pytest.raises(DataError, match=r"scale lacks the number feature 'income'.*number_scale"):
        metrics.proximity(queries, cfs, schema, scale)


# -- diversity --------------------------------------------------------------------------------------------------


def slow_gower(frame: pd.DataFrame, schema: Schema) -> float:
    """The definition, pair by pair."""
    distances = []
    for a, b in combinations(range(len(frame)), 2):
        parts = []
        for f in schema.features:
            u, v = frame[f.name].iloc[a], frame[f.name].iloc[b]
            if pd.isna(u) or pd.isna(v):
                parts.append(float(pd.isna(u) != pd.isna(v)))
            elif f.is_number and f.maximum > f.minimum:
                parts.append(abs(u - v) / (f.maximum - f.minimum))
            else:
                parts.append(float(u != v))
        distances.append(sum(parts) / len(parts))
    return sum(distances) / len(distances)


def test_gower_by_hand(schema):
    frame = pd.DataFrame({"age": [20, 70], "income": [1.0, np.nan], "job": [None, None], "sex": ["f", "m"]})
    assert metrics.gower(frame, schema) == pytest.approx((0.5 + 1 + 0 + 1) / 4)


def test_gower_of_equal_rows_is_zero(schema, queries):
    assert metrics.gower(queries.iloc[[0, 0, 0]], schema) == pytest.approx(0.0, abs=1e-12)


def test_gower_of_fewer_than_two_rows_is_nan(schema, queries):
    assert math.isnan(metrics.gower(queries.iloc[:1], schema))
    assert math.isnan(metrics.gower(queries.iloc[:0], schema))


def test_gower_of_a_constant_number_is_a_mismatch():
    schema = Schema.infer(pd.DataFrame({"x": [3, 3]}))
    assert metrics.gower(pd.DataFrame({"x": [3, 3, 8]}), schema) == pytest.approx(2 / 3)


cells = st.tuples(
    st.one_of(st.none(), st.integers(20, 120)),
    st.one_of(st.none(), st.floats(0, 10)),
    st.sampled_from(["cook", "nurse", None]),
    st.sampled_from(["f", "m"]),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), cells), min_size=2, max_size=25))
def test_gower_equals_the_definition(labelled):
    train = pd.DataFrame({"age": [20, 120], "income": [0.0, 10.0], "job": ["cook", "nurse"], "sex": ["f", "m"]})
    schema = Schema.infer(train)
    frame = pd.DataFrame([row for _, row in labelled], columns=train.columns).astype({"age": "Int64"})
    assert metrics.gower(frame, schema) == pytest.approx(slow_gower(frame, schema), abs=1e-9)
    answers = frame.set_axis(rows_of(*((row, i) for i, (row, _) in enumerate(labelled))))
    sets = [part for _, part in answers.groupby(level="row") if len(part) > 1]
    found = metrics.mean_pairwise_gower(answers, schema)
    if sets:
        assert found == pytest.approx(np.mean([slow_gower(part, schema) for part in sets]), abs=1e-9)
    else:
        assert math.isnan(found)


def test_mean_pairwise_gower_by_hand(schema, cfs):
    # bob has one answer and is left out; ann's two differ in age by 6/100, income by 0.5/10, job and sex.
    assert metrics.mean_pairwise_gower(cfs, schema) == pytest.approx((0.06 + 0.05 + 1 + 1) / 4)


def work_of(call: Callable[[], object]) -> tuple[int, int]:
    """How many functions a call runs through, and how many bytes it holds at most at one time."""
    called = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal called
        called += event in ("call", "c_call")

    tracemalloc.start()
    sys.setprofile(count)
    try:
        call()
        return called, tracemalloc.get_traced_memory()[1]
    finally:
        sys.setprofile(None)
        tracemalloc.stop()


def test_mean_pairwise_gower_does_not_go_pair_by_pair(schema):
    """Ten times as many answers have a hundred times as many pairs."""
    generator = np.random.default_rng(0)

    def answers(each: int) -> pd.DataFrame:
        n = 50 * each
        columns = {
            "age": generator.integers(20, 121, n),
            "income": generator.uniform(0, 10, n),
            "job": generator.choice(["cook", "nurse"], n),
            "sex": generator.choice(["f", "m"], n),
        }
        return pd.DataFrame(columns, index=pd.MultiIndex.from_product([range(50), range(each)], names=["row", "cf"]))

    few, many = answers(20), answers(200)
    assert 0.3 < metrics.mean_pairwise_gower(many, schema) < 0.5
    calls, memory = work_of(lambda: metrics.mean_pairwise_gower(few, schema))
    more_calls, more_memory = work_of(lambda: metrics.mean_pairwise_gower(many, schema))
    assert more_calls < 2 * calls
    assert more_memory < 20 * memory


# -- plausibility -----------------------------------------------------------------------------------------------


def test_log_lof_is_that_of_scikit_learn():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"x": generator.normal(size=200), "job": generator.choice(["a", "b"], 200)})
    schema = Schema.infer(frame)
    x = (frame["x"] - frame["x"].min()) / (frame["x"].max() - frame["x"].min())
    points = np.column_stack([x, frame["job"] == "a", frame["job"] == "b"])
    lof = LocalOutlierFactor(n_neighbors=20, novelty=True).fit(points[:150])
    found = metrics.LogLof(frame[:150], schema).score(frame[150:])
    np.testing.assert_allclose(found, np.log(-lof.score_samples(points[150:])), atol=1e-9)


def test_log_lof_by_hand():
    # k=1 on 0, 1, 3 (of a range of 3): the query 5 reaches 3 over 2 and 3 reaches 1 over 2, so both are equally dense.
    train = pd.DataFrame({"x": [0.0, 1.0, 3.0]})
    lof = metrics.LogLof(train, Schema.infer(train), k=1)
    assert lof.score(pd.DataFrame({"x": [5.0]})) == pytest.approx([0.0], abs=1e-6)
    # The query 9 reaches 3 over 6: three times as sparse.
    assert lof.score(pd.DataFrame({"x": [9.0]})) == pytest.approx([math.log(3)], abs=1e-6)


def test_log_lof_takes_missing_and_unseen_values():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"x": generator.normal(size=300), "job": generator.choice(["a", "b"], 300)})
    frame.loc[:99, "x"] = np.nan
    frame.loc[50:149, "job"] = None
    schema = Schema.infer(frame)
    lof = metrics.LogLof(frame, schema)
    probes = pd.DataFrame({"x": [0.0, np.nan, 0.0], "job": ["a", None, "zebra"]})
    known, missing, unseen = lof.score(probes)
    assert np.isfinite([known, missing, unseen]).all()
    assert unseen > max(known, 0.5)
    np.testing.assert_allclose(lof.score(probes.astype({"x": "Float64", "job": "category"})), [known, missing, unseen])


def test_log_lof_of_nothing_is_empty():
    train = pd.DataFrame({"x": np.linspace(0, 1, 30)})
    assert metrics.LogLof(train, Schema.infer(train)).score(train[:0]).shape == (0,)


def test_log_lof_needs_more_rows_than_neighbours():
    train = pd.DataFrame({"x": [0.5, 1.0]})
    with pytest.raises(DataError, match="needs more than 20 rows, got 2"):
        metrics.LogLof(train, Schema.infer(train))


def test_share_of_copies(schema, queries, cfs):
    train = pd.concat([queries, queries]).astype({"age": "Float64", "sex": "category", "job": "object"})
    assert metrics.share_of_copies(queries, train, schema) == 1.0
    assert metrics.share_of_copies(cfs, train, schema) == 0.0
    mixed = pd.concat([cfs.reset_index(drop=True), queries.iloc[[1]]])
    assert metrics.share_of_copies(mixed, train, schema) == 0.25
    assert metrics.share_of_copies(queries, train.iloc[:0], schema) == 0.0
    assert math.isnan(metrics.share_of_copies(queries.iloc[:0], train, schema))


def test_share_of_copies_on_many_rows():
    generator = np.random.default_rng(0)
    train = pd.DataFrame(generator.integers(0, 4, (5_000, 8)), columns=list("abcdefgh"))
    probes = pd.DataFrame(generator.integers(0, 4, (1_000, 8)), columns=list("abcdefgh"))
    known = set(map(tuple, train.to_numpy().tolist()))
    expected = np.mean([tuple(row) in known for row in probes.to_numpy().tolist()])
    assert metrics.share_of_copies(probes, train, Schema.infer(train)) == pytest.approx(expected)


# -- the black box's probability --------------------------------------------------------------------------------


def test_target_probability_picks_the_column_of_the_target():
    table = [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]
    assert metrics.target_probability(table, ["b", "c", "a"], ["a", "b"]).tolist() == [0.7, 0.5]
    assert metrics.target_probability(table, [2, 0, 1], 0).tolist() == [0.2, 0.3]
    assert metrics.target_probability(np.empty((0, 2)), ["a", "b"], []).shape == (0,)


def test_target_probability_refuses_an_unknown_target():
    with pytest.raises(DataError, match="target 'yess' is unknown; did you mean 'yes'"):
        metrics.target_probability([[0.5, 0.5]], ["no", "yes"], ["yess"])
    with pytest.raises(DataError, match="1 targets for 2 rows"):
        metrics.target_probability([[0.5, 0.5]] * 2, ["no", "yes"], ["yes"])


# -- conditions -------------------------------------------------------------------------------------------------


@pytest.fixture
def ladder() -> Schema:
    train = pd.DataFrame({"age": [20.0, 60.0, np.nan], "step": ["low", "high", "middle"], "vip": [True, False, True]})
    return Schema.infer(train, orders={"step": ["low", "middle", "high"]})


def climbs(*rows: tuple[object, object, object]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["age", "step", "vip"])
    return frame.set_axis(rows_of(*((0, i) for i in range(len(rows)))))


def test_broken_directions_of_numbers_ordered_levels_and_booleans(ladder):
    queries = pd.DataFrame({"age": [30.0], "step": ["middle"], "vip": [False]})
    answers = climbs((31, "high", True), (30, "middle", False), (29, "low", False), (np.nan, None, False))
    up = metrics.broken(queries, answers, ladder, increase=["age", "step", "vip"])
    assert up.to_dict("list") == {
        "age": [False, False, True, True],
        "step": [False, False, True, True],
        "vip": [False, False, False, False],
    }
    down = metrics.broken(queries, answers, ladder, decrease=["age", "step", "vip"])
    assert down["age"].tolist() == down["step"].tolist() == [True, False, False, True]
    assert down["vip"].tolist() == [True, False, False, False]


def test_broken_takes_missing_for_unchanged_where_both_are_missing(ladder):
    queries = pd.DataFrame({"age": [np.nan], "step": ["low"], "vip": [False]})
    answers = climbs((np.nan, "low", False), (40, "low", False))
    assert metrics.broken(queries, answers, ladder, increase=["age"])["age"].tolist() == [False, True]
    assert metrics.broken(queries, answers, ladder, frozen=["age"])["age"].tolist() == [False, True]


def test_broken_joins_both_conditions_of_a_feature(ladder):
    queries = pd.DataFrame({"age": [30.0], "step": ["low"], "vip": [False]})
    flags = metrics.broken(
        queries, climbs((31, "low", False), (30, "low", False)), ladder, frozen=["age"], increase=["age"]
    )
    assert flags.to_dict("list") == {"age": [True, False]}


def test_broken_without_conditions_has_no_columns(queries, cfs, schema):
    assert metrics.broken(queries, cfs, schema).shape == (3, 0)


def test_broken_counts_the_cells_of_violations(queries, cfs, schema):
    flags = metrics.broken(queries, cfs, schema, frozen=["age", "job", "sex"])
    assert int(flags.to_numpy().sum()) == metrics.violations(queries, cfs, ["age", "job", "sex"])


def test_broken_refuses_a_direction_of_unordered_levels(queries, cfs, schema):
    with pytest.raises(DataError, match="'job' has levels without order"):
        metrics.broken(queries, cfs, schema, increase=["job"])


def test_impossible_values(ladder):
    answers = climbs((61, "low", True), (30.5, "top", True), (np.nan, None, None), (20, "high", False))
    assert metrics.impossible(answers, ladder).to_dict("list") == {
        "age": [True, True, False, False],  # above the limits; not whole; may be missing
        "step": [False, True, True, False],  # unknown; never missing
        "vip": [False, False, True, False],
    }


# -- closest training rows --------------------------------------------------------------------------------------


def test_nearest_by_hand():
    train = pd.DataFrame({"x": [0.0, 4.0, 10.0], "job": ["a", "b", "a"]})
    lof = metrics.LogLof(train, Schema.infer(train), k=1)
    probes = pd.DataFrame({"x": [4.0, 3.0, 10.0, 13.0], "job": ["b", "b", "b", "a"]})
    # Scaled by 10; another job alone is sqrt(2) away, so the third row is closer to x = 4 with its own job.
    assert lof.nearest(probes) == pytest.approx([0.0, 0.1, 0.6, 0.3])
    assert lof.nearest(probes)[0] == 0.0
    assert lof.nearest(probes[:0]).shape == (0,)


def test_nearest_is_zero_exactly_for_copies():
    generator = np.random.default_rng(0)
    train = pd.DataFrame(generator.normal(size=(500, 30)) * 1e6 + 1e7).rename(columns=str)
    train.iloc[::7, 3] = np.nan
    schema = Schema.infer(train)
    probes = train[:50].copy()
    probes.iloc[25:, 0] += 1.0
    found = metrics.LogLof(train, schema).nearest(probes)
    np.testing.assert_array_equal(found == 0.0, metrics.copies(probes, train, schema))


# -- diameter and separation ------------------------------------------------------------------------------------


def test_pairwise_extremes_by_hand():
    train = pd.DataFrame({"x": [0.0, 10.0], "job": ["a", "b"]})
    answers = pd.DataFrame(
        {"x": [1.0, 4.0, 5.0, 7.0, 2.0], "job": ["a", "a", "b", "a", "a"]},
        index=rows_of(("kim", 0), ("kim", 1), ("bob", 0), ("kim", 2), ("ann", 0)),
    )
    found = metrics.pairwise_extremes(answers, Schema.infer(train))
    assert found.index.tolist() == ["kim", "bob", "ann"]
    assert found["minimum"].tolist() == pytest.approx([0.3, np.nan, np.nan], nan_ok=True)
    assert found["maximum"].tolist() == pytest.approx([0.6, np.nan, np.nan], nan_ok=True)


def test_pairwise_extremes_of_levels_and_repeats():
    train = pd.DataFrame({"x": [0.0, 1.0], "job": ["a", "b"]})
    answers = pd.DataFrame({"x": [0.0, 1.0, 0.0], "job": ["a", "b", "a"]}, index=rows_of((0, 0), (0, 1), (0, 2)))
    found = metrics.pairwise_extremes(answers, Schema.infer(train)).loc[0]
    assert found.to_dict() == {"minimum": 0.0, "maximum": pytest.approx(math.sqrt(3))}
    assert metrics.pairwise_extremes(answers[:0], Schema.infer(train)).shape == (0, 2)


# -- hypervolume ------------------------------------------------------------------------------------------------


def volumes(changes: list[tuple[float, ...]], *, width: float = 10.0, unit_free: bool = False) -> float:
    """The hypervolume of one query at 5 whose answers are off by `changes`, on features of the range `width`."""
    names = [f"x{j}" for j in range(len(changes[0]))]
    train = pd.DataFrame([[0.0] * len(names), [width] * len(names)], columns=names)
    queries = pd.DataFrame([[5.0] * len(names)], columns=names)
    answers = pd.DataFrame(
        np.array(changes) + 5.0, columns=names, index=rows_of(*((0, i) for i in range(len(changes))))
    )
    found = metrics.hypervolume(queries, answers, Schema.infer(train), unit_free=unit_free)
    assert found.index.tolist() == [0]
    return float(found[0])


def test_hypervolume_in_one_dimension_is_the_largest_change():
    assert volumes([(2.0,), (-3.0,), (0.0,)]) == pytest.approx(3.0)


def test_hypervolume_in_two_dimensions():
    # Boxes 3 x 1 and 2 x 2 share 2 x 1; the third lies inside; the fourth has no extent along x1.
    assert volumes([(3.0, -1.0), (2.0, 2.0), (-1.0, 1.0), (4.0, 0.0)]) == pytest.approx(3 + 4 - 2)


def test_hypervolume_in_three_dimensions():
    # 1 x 2 x 3, 3 x 2 x 1 and 2 x 2 x 2, less the overlaps 1·2·1, 1·2·2, 2·2·1, plus the joint 1·2·1.
    assert volumes([(1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (2.0, 2.0, 2.0)]) == pytest.approx(6 + 6 + 8 - 2 - 4 - 4 + 2)


def test_hypervolume_of_unchanged_numbers_is_zero():
    assert volumes([(0.0, 0.0)]) == 0.0
    assert volumes([(3.0, 0.0), (0.0, 3.0)]) == 0.0


def test_hypervolume_without_units_divides_by_the_ranges():
    assert volumes([(3.0, 1.0), (2.0, 2.0)], unit_free=True) == pytest.approx(0.05)
    assert volumes([(3.0, 1.0), (2.0, 2.0)], width=100.0, unit_free=True) == pytest.approx(0.0005)


@pytest.mark.parametrize(("n", "dimensions"), [(10, 14), (10, 8), (30, 7), (100, 4), (100, 2)])
def test_hypervolume_is_that_of_moocore(n, dimensions):
    changes = np.random.default_rng(n).uniform(0.01, 5, (n, dimensions))
    expected = moocore.hypervolume(changes, ref=0, maximise=True)
    assert volumes([tuple(row) for row in changes]) == pytest.approx(expected, rel=1e-9)


def test_hypervolume_of_units_that_are_far_apart():
    changes = [(1e-9, 1e12), (2e-9, 0.5e12)]
    assert volumes(changes) == pytest.approx(1e3 + 1e3 - 0.5e3, rel=1e-6)


@pytest.mark.parametrize(("n", "dimensions"), [(13, 10), (40, 8)])
def test_estimated_volume_is_near_the_exact_one(n, dimensions):
    changes = np.random.default_rng(1).uniform(0.2, 5, (n, dimensions))
    assert not diversity._is_quick(n, dimensions)
    expected = moocore.hypervolume(changes, ref=0, maximise=True)
    found = volumes([tuple(row) for row in changes])
    assert found == pytest.approx(expected, rel=0.05)
    assert found == volumes([tuple(row) for row in changes])


@pytest.mark.parametrize(("n", "exact"), [(10, 20), (100, 0)])
def test_hypervolume_of_fourteen_numbers_is_exact_for_few_answers_only(n, exact, monkeypatch):
    """The exact volume of a hundred boxes in fourteen dimensions would take hours."""
    called = mock.Mock(side_effect=moocore.hypervolume)
    monkeypatch.setattr(moocore, "hypervolume", called)
    generator = np.random.default_rng(0)
    names = [f"x{j}" for j in range(14)]
    queries = pd.DataFrame(generator.normal(size=(20, 14)), columns=names)
    index = pd.MultiIndex.from_product([range(20), range(n)], names=["row", "cf"])
    answers = pd.DataFrame(generator.normal(size=(20 * n, 14)), columns=names, index=index)
    assert (metrics.hypervolume(queries, answers, Schema.infer(queries)) > 0).all()
    assert called.call_count == exact


def test_hypervolume_with_missing_constant_and_other_features():
    train = pd.DataFrame({"a": [0.0, 8.0, np.nan], "b": [0.0, 4.0, 1.0], "same": [7, 7, 7], "job": ["x", "y", "x"]})
    schema = Schema.infer(train)
    queries = pd.DataFrame(
        {"a": [1.0, np.nan], "b": [1.0, 1.0], "same": [7, 7], "job": ["x", "x"]}, index=["ann", "bob"]
    )
    answers = pd.DataFrame(
        {"a": [np.nan, np.nan, 2.0], "b": [3.0, 2.0, 2.0], "same": [7, 7, 7], "job": ["x", "y", "x"]},
        index=rows_of(("bob", 0), ("ann", 0), ("bob", 1)),
    )
    # ann: to missing is a move by the range 8, times 1. bob: missing to missing has no extent, missing to 2 has 8.
    assert metrics.hypervolume(queries, answers, schema).to_dict() == {"bob": 8.0, "ann": 8.0}
    assert metrics.hypervolume(queries, answers[:0], schema).shape == (0,)


def test_hypervolume_without_numbers_is_nan():
    frame = pd.DataFrame({"job": ["x", "y"]})
    assert metrics.hypervolume(frame, frame.set_axis(rows_of((0, 0), (1, 0))), Schema.infer(frame)).isna().all()


def test_hypervolume_names_the_extra_that_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "moocore", None)
    with pytest.raises(UserError, match=r'needs the package moocore.*pip install "dicoflex\[bench\]"'):
        volumes([(1.0, 1.0)])


# -- means and deviations ---------------------------------------------------------------------------------------


def test_by_query_weighs_queries_alike():
    values = pd.DataFrame(
        {"a": [1.0, 9.0, 3.0, 5.0], "b": [np.nan] * 4},
        index=rows_of(("ann", 0), ("bob", 0), ("ann", 1), ("ann", 2)),
    )
    table = metrics.by_query(values)
    assert table.loc["a", "mean"] == pytest.approx((3 + 9) / 2)
    assert table.loc["a", "std"] == pytest.approx(math.sqrt(8 / 3))
    assert table.loc["b"].isna().all()
    assert metrics.by_query(values[:0]).isna().all(axis=None)


def test_by_query_of_single_answers_has_no_deviation():
    table = metrics.by_query(pd.DataFrame({"a": [1.0, 2.0]}, index=rows_of((0, 0), (1, 0))))
    assert table.loc["a", "mean"] == 1.5
    assert math.isnan(table.loc["a", "std"])


# -- score ------------------------------------------------------------------------------------------------------


@pytest.fixture
def people() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    n = 60
    return pd.DataFrame(
        {
            "age": generator.integers(20, 81, n),
            "income": np.where(generator.random(n) < 0.2, np.nan, generator.uniform(0, 10, n).round(2)),
            "rooms": np.full(n, 3),
            "job": generator.choice(["cook", "nurse", "pilot"], n),
        }
    )


@pytest.fixture
def reference(people) -> metrics.Reference:
    return metrics.Reference(people, Schema.infer(people, limits={"age": (20, 120), "income": (0, 10)}))


def answers_to(people: pd.DataFrame, per_query: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    queries = people.iloc[:4].set_axis(list("abcd"))
    index = pd.MultiIndex.from_product([list("dbca"), range(per_query)], names=["row", "cf"])
    return queries, people.iloc[10 : 10 + len(index)].set_axis(index)


def test_score_agrees_with_the_single_measures(people, reference):
    queries, answers = answers_to(people, 3)
    schema = reference.schema
    figures = metrics.score(
        queries, answers, reference, targets="yes", predicted=["yes"] * 12, probability=np.linspace(0.5, 1, 12),
        log_density=np.arange(12), raw_valid=[True, False, True, True], frozen=["job"], increase=["age"], seconds=2.0,
    )  # fmt: skip
    distance = metrics.proximity(queries, answers, schema, reference.scale)
    conditions = metrics.broken(queries, answers, schema, frozen=["job"], increase=["age"])
    volume = metrics.hypervolume(queries, answers, schema)
    free = metrics.hypervolume(queries, answers, schema, unit_free=True)
    expected = {
        "queries": 4, "answers": 12, "answered": 1, "validity": 1, "validity_std": 0, "validity_raw": 0.75,
        "probability": 0.75, "log_density": 5.5, "log_density_std": math.sqrt(2 / 3),
        "proximity": distance["euclidean"].mean(), "proximity_l1": distance["l1"].mean(),
        "proximity_std": distance["euclidean"].groupby(level="row").std(ddof=0).mean(),
        "sparsity_categories": metrics.share_categories_changed(queries, answers, schema),
        "sparsity_numbers": metrics.share_numbers_changed(queries, answers, schema),
        "epsilon_sparsity": metrics.epsilon_sparsity(queries, answers, schema),
        "log_lof": reference.lof.score(answers).mean(), "training_distance": 0.0, "copies": 1.0, "impossible": 0.0,
        "violations": conditions.any(axis=1).mean(),
        "gower": metrics.mean_pairwise_gower(answers, schema),
        "minimum_distance": metrics.pairwise_extremes(answers, schema)["minimum"].mean(),
        "hypervolume_log10": np.log10(1 + volume).mean(), "hypervolume_unit_free_log10": np.log10(free.mean()),
        "hypervolume_side": np.sqrt(free).mean(), "seconds": 2.0, "seconds_per_query": 0.5,
    }  # fmt: skip
    assert {name: figures[name] for name in expected} == pytest.approx(expected)
    assert all(type(value) is float for value in figures.values())


def test_score_measures_valid_answers_alone(people, reference):
    queries, answers = answers_to(people, 3)
    targets = ["yes", "no", "yes", "no"]  # of a, b, c, d; the answers come in the order d, b, c, a
    predicted = ["no", "no", "yes", "no", "no", "no", "yes", "no", "no", "no", "no", "no"]
    kept = [0, 1, 3, 4, 5, 6]
    figures = metrics.score(
        queries, answers, reference, targets=targets, predicted=predicted, probability=np.arange(12)
    )
    assert figures["validity"] == pytest.approx((2 / 3 + 1 + 1 / 3 + 0) / 4)
    assert figures["validity_std"] == pytest.approx((math.sqrt(2) / 3 + 0 + math.sqrt(2) / 3 + 0) / 4)
    assert figures["answered"] == 0.75
    assert figures["answers"] == 12
    assert figures["probability"] == pytest.approx((0.5 + 4 + 6) / 3)
    assert figures["probability_std"] == pytest.approx((0.5 + math.sqrt(2 / 3)) / 2)
    expected = metrics.mean_pairwise_gower(answers.iloc[kept], reference.schema)
    assert figures["gower"] == pytest.approx(expected)


def test_score_counts_queries_without_answers_as_failed(people, reference):
    queries, answers = answers_to(people, 2)
    some = answers.loc[["a", "b"]]
    figures = metrics.score(queries, some, reference, targets=1, predicted=[1, 1, 1, 1])
    assert figures["validity"] == figures["answered"] == 0.5
    assert math.isnan(figures["validity_raw"])
    assert math.isnan(figures["probability"])
    assert math.isnan(figures["seconds_per_query"])
    assert figures["violations"] == 0.0


def test_score_of_no_answers(people, reference):
    queries, answers = answers_to(people, 2)
    figures = metrics.score(queries, answers[:0], reference, targets=1, predicted=[], probability=[], frozen=["job"])
    assert figures["validity"] == figures["answered"] == figures["answers"] == 0.0
    for name in ("proximity", "log_lof", "gower", "hypervolume_log10", "hypervolume_unit_free_log10", "violations"):
        assert math.isnan(figures[name])


def test_score_of_single_answers(people, reference):
    queries, answers = answers_to(people, 1)
    figures = metrics.score(queries, answers, reference, targets=1, predicted=[1, 1, 1, 1])
    assert figures["validity"] == 1.0
    assert figures["proximity"] > 0
    assert figures["hypervolume_log10"] > 0
    for name in ("gower", "minimum_distance", "proximity_std", "validity_std"):
        assert math.isnan(figures[name])


def test_score_has_the_same_keys_whatever_is_given(people, reference):
    queries, answers = answers_to(people, 2)
    few = metrics.score(queries, answers[:0], reference, targets=1, predicted=[])
    many = metrics.score(
        queries, answers, reference, targets=1, predicted=[1] * 8, probability=[0.5] * 8, log_density=[0.0] * 8,
        raw_valid=[True], frozen=["job"], seconds=1.0,
    )  # fmt: skip
    assert list(few) == list(many)


def test_score_says_which_input_has_the_wrong_length(people, reference):
    queries, answers = answers_to(people, 2)
    with pytest.raises(DataError, match=r"probability has shape \(3,\); give one number for each of 8"):
        metrics.score(queries, answers, reference, targets=1, predicted=[1] * 8, probability=[0.5] * 3)
    with pytest.raises(DataError, match="3 predicted labels but 8 targets"):
        metrics.score(queries, answers, reference, targets=1, predicted=[1] * 3)
    with pytest.raises(DataError, match="3 targets for 4 rows"):
        metrics.score(queries, answers, reference, targets=[1, 0, 1], predicted=[1] * 8)


def test_score_of_a_table_without_numbers_or_without_levels():
    letters = pd.DataFrame({"job": list("abcabc") * 5})
    numbers = pd.DataFrame({"x": np.linspace(0, 1, 30)})
    for frame, absent, present in (
        (letters, "sparsity_numbers", "sparsity_categories"),
        (numbers, "sparsity_categories", "sparsity_numbers"),
    ):
        reference = metrics.Reference(frame, Schema.infer(frame))
        answers = frame.iloc[[1, 2]].set_axis(rows_of((0, 0), (0, 1)))
        figures = metrics.score(frame.iloc[[0]], answers, reference, targets=1, predicted=[1, 1])
        assert math.isnan(figures[absent])
        assert figures[present] == 1.0
        assert math.isnan(figures["hypervolume_side"]) == (frame is letters)


# -- wrong calls ------------------------------------------------------------------------------------------------


def test_plain_index_is_refused(queries, schema):
    with pytest.raises(DataError, match=r"two levels \(row, cf\)"):
        metrics.changed(queries, queries, schema)


def test_stray_row_is_refused(queries, cfs, schema):
    with pytest.raises(DataError, match="for row 'bob', which the queries' index lacks"):
        metrics.changed(queries.iloc[:1], cfs, schema)


def test_repeated_query_index_is_refused(queries, cfs, schema):
    with pytest.raises(DataError, match="index repeats"):
        metrics.changed(queries.iloc[[0, 0, 1]], cfs, schema)


def test_unknown_features_are_refused(queries, cfs, schema):
    with pytest.raises(DataError, match="did you mean 'age'"):
        metrics.violations(queries, cfs, ["agee"])
    with pytest.raises(DataError, match="feature 'job' is unknown"):
        metrics.changed(queries, cfs.drop(columns="job"), schema)
    with pytest.raises(DataError, match="feature 'job' is unknown"):
        metrics.gower(cfs.drop(columns="job"), schema)


def test_unnamed_levels_count_by_position(queries, cfs, schema):
    unnamed = cfs.set_axis(cfs.index.set_names([None, None]))
    assert metrics.share_numbers_changed(queries, unnamed, schema) == pytest.approx(2 / 6)
