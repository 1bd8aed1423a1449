from __future__ import annotations

import math
from itertools import combinations
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import LocalOutlierFactor

from dicoflex import metrics
from dicoflex.errors import DataError
from dicoflex.schema import Schema


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


def test_mean_pairwise_gower_is_fast(schema):
    generator = np.random.default_rng(0)
    n = 20_000
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 121, n),
            "income": generator.uniform(0, 10, n),
            "job": generator.choice(["cook", "nurse"], n),
            "sex": generator.choice(["f", "m"], n),
        },
        index=pd.MultiIndex.from_product([range(200), range(100)], names=["row", "cf"]),
    )
    start = perf_counter()
    assert 0.3 < metrics.mean_pairwise_gower(frame, schema) < 0.5
    assert perf_counter() - start < 2.0  # 0.02 s on a free core; pair by pair it would be minutes


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
