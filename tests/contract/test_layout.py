"""The layout of what is returned: columns, dtypes, index labels and targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comparing import ROWS, BlackBox, Quickly, assert_layout, assert_within, differences
from dicoflex import DiCoFlex, load


def test_sample_gives_exactly_n_in_the_layout_of_the_rows(
    model: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame
) -> None:
    draws = model.sample(queries, target="yes", n=12, random_state=0)
    assert_layout(draws, applicants)
    assert_within(draws, model.schema_, queries.iloc[np.repeat(range(8), 12)])
    assert draws.index.get_level_values("row").tolist() == np.repeat(queries.index, 12).tolist()
    assert draws.index.get_level_values("cf").tolist() == list(range(12)) * len(queries)


def test_explain_gives_up_to_n_in_the_layout_of_the_rows(
    model: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame
) -> None:
    cfs = model.explain(queries, target="yes", n=4, random_state=0)
    assert_layout(cfs.frame, applicants)
    assert_within(cfs.frame, model.schema_, queries.iloc[cfs.positions])
    pd.testing.assert_frame_equal(cfs.queries, queries)
    assert cfs.info.index.equals(cfs.frame.index)
    counts = pd.Series(cfs.positions).value_counts().reindex(range(len(queries)), fill_value=0)
    assert (counts <= 4).all()
    short = cfs.shortfall.set_index("row")["got"]
    assert counts[counts < 4].tolist() == short.loc[queries.index[counts < 4]].tolist()


def test_draws_are_distinct_and_never_the_query(model: DiCoFlex, queries: pd.DataFrame) -> None:
    for draws in (
        model.sample(queries, target="yes", n=20, random_state=0),
        model.sample(queries, target="yes", n=20, p=0.01, filter=False, random_state=0),
        model.explain(queries, target="yes", n=5, random_state=0).frame,
    ):
        assert not draws.assign(row=draws.index.get_level_values("row")).duplicated().any()
        assert differences(draws, queries.loc[draws.index.get_level_values("row")]).any(axis=1).all()


INDEXES = {
    "numbers": pd.RangeIndex(10, 18),
    "text": pd.Index(list("hgfedcba"), name="who"),
    "repeated": pd.Index([7, 7, 7, 1, 1, 2, 2, 2]),
    "all the same": pd.Index(["x"] * 8),
    "fractions": pd.Index(np.linspace(0, 1, 8)),
    "dates": pd.date_range("2024-01-01", periods=8, name="day"),
    "dates with zone": pd.date_range("2024-01-01", periods=8, tz="Europe/Berlin"),
    "categories": pd.CategoricalIndex(list("abcdabcd")),
    "tuples": pd.MultiIndex.from_product([["a", "b"], range(4)], names=["site", "case"]),
    "repeated tuples": pd.MultiIndex.from_tuples([("a", 1)] * 8),
    "mixed": pd.Index([1, "1", 2.5, True, "x", (1, 2), None, 3], dtype=object, tupleize_cols=False),
}


@pytest.mark.parametrize("case", INDEXES)
def test_index_labels_are_kept(case: str, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.set_axis(INDEXES[case])
    labels = list(rows.index)
    draws = mixed.sample(rows, target="yes", n=3, random_state=0)
    plain = mixed.sample(queries, target="yes", n=3, random_state=0)
    pd.testing.assert_frame_equal(draws.reset_index(drop=True), plain.reset_index(drop=True))
    assert draws.index.names == ["row", "cf"]
    found = draws.index.get_level_values("row").tolist()
    assert [None if pd.api.types.is_scalar(v) and pd.isna(v) else v for v in found] == [
        v for v in labels for _ in "123"
    ]
    assert draws.index.get_level_values("cf").tolist() == [0, 1, 2] * 8
    cfs = mixed.explain(rows, target="yes", n=2, random_state=0)
    assert cfs.positions.tolist() == sorted(cfs.positions.tolist())
    assert cfs.queries.index.equals(rows.index)
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()


def test_rows_of_other_dtypes_come_back_in_those_of_training(
    mixed: DiCoFlex, applicants: pd.DataFrame, queries: pd.DataFrame
) -> None:
    """As read from a CSV file: wider numbers, text for categories, columns in another order."""
    rows = queries.astype({"score": "float64", "visits": "int64", "age": "float64", "area": "int64", "grade": str})
    shuffled = rows[rows.columns[::-1]]
    draws = mixed.sample(shuffled, target="yes", n=3, random_state=0)
    assert_layout(draws, applicants)
    pd.testing.assert_frame_equal(draws, mixed.sample(queries, target="yes", n=3, random_state=0))


def test_value_that_its_dtype_rounds_is_not_a_change(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(score=0.1)
    cfs = mixed.explain(rows, target="yes", n=5, p=0.01, frozen=["score"], random_state=0)
    assert (cfs.frame["score"] == np.float32(0.1)).all()
    assert "score" not in set(cfs.changes()["feature"])
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()


def test_what_a_narrow_column_holds_is_the_callers_value(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """`verify` said of rows from a file, whose .1 is a float64, that answers were made for other rows."""
    rows = queries.assign(score=0.1)
    cfs = mixed.explain(rows, target="yes", n=2, frozen=["score"], random_state=0)
    as_objects = rows.astype({"score": object})
    for same in (rows, as_objects, rows.astype({"score": "float32"})):
        assert cfs.verify(same)["holds"].all()
    for other in (0.1000001, 0.2, None, "0.1", np.inf, 1j, 10**400):
        found = cfs.verify(as_objects.assign(score=pd.Series([other] * len(rows), rows.index, dtype=object)))
        assert not found.loc[found["constraint"] == "record: row", "holds"].any()
        assert (found["constraint"] == "record: row").any()


@pytest.mark.parametrize("labels", [[False, True], [0, 1], [-1.0, 1.0], ["no", "yes"], [2, "two"]])
def test_labels_of_any_type(labels: list[Any], quickly: Quickly, tmp_path: Path) -> None:
    rows = ROWS[["age", "pay"]]
    model = quickly(rows, pd.Series([labels[int(v > 0)] for v in rows["pay"]], dtype=object))
    assert model.classes_.tolist() == sorted(labels, key=lambda v: (type(v).__name__, v))
    cfs = model.explain(rows.head(3), target=labels[1], n=2, random_state=0)
    assert set(cfs.info["target"]) == {labels[1]}
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex").explain(rows.head(3), target=labels[1], n=2, random_state=0)
    pd.testing.assert_frame_equal(cfs.info, again.info)
    assert [type(t) for t in json.loads(cfs.to_json())["settings"]["targets"]] == [type(labels[1])] * 3


@pytest.mark.parametrize("kind", [list, np.array, pd.Series, pd.Categorical])
def test_target_per_row(kind: Any, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    targets = ["yes", "no"] * 4
    cfs = mixed.explain(queries, target=kind(targets), n=2, random_state=0)
    assert cfs.info["target"].tolist() == [targets[i] for i in cfs.positions]
    assert cfs.settings["targets"] == targets


def test_other_class_is_the_default_target(judged: DiCoFlex, queries: pd.DataFrame, says: BlackBox) -> None:
    now = says(queries)
    by_surrogate = judged.explain(queries, n=2, random_state=0).settings["targets"]
    assert np.mean(np.array(by_surrogate) != now) > 0.8
    assert judged.explain(queries, n=2, check=says, random_state=0).settings["targets"] == [
        "no" if label == "yes" else "yes" for label in now
    ]


def test_codes_of_categories_are_those_of_the_training_frame(quickly: Quickly, tmp_path: Path) -> None:
    """Levels that few rows have are in no answer and in no file; the dtype that declares them is the caller's own."""
    rng = np.random.default_rng(0)
    dtype = pd.CategoricalDtype(["aa rare", "b", "c", "d rare", "e"])
    job = np.where(np.arange(200) < 2, "aa rare", np.where(np.arange(200) < 4, "d rare", rng.choice(list("bce"), 200)))
    rows = pd.DataFrame({"job": pd.Series(job, dtype=dtype), "pay": rng.integers(0, 40, 200)})
    seen: list[Any] = []

    def reads_codes(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame["job"].dtype)
        sure = 1 / (1 + np.exp(-(frame["job"].cat.codes.to_numpy() - 2.5 + (frame["pay"].to_numpy() - 20) / 5)))
        return np.column_stack([1 - sure, sure])

    labels = reads_codes(rows).argmax(axis=1)
    fitted = quickly(rows, labels, predict_proba=reads_codes, min_count=5)
    fitted.save(tmp_path / "codes.dicoflex")
    assert b"rare" not in (tmp_path / "codes.dicoflex").read_bytes()
    loaded = load(tmp_path / "codes.dicoflex")
    queries = rows[(labels == 0) & ~rows["job"].str.contains("rare")].head(6)
    for model in (fitted, loaded):
        cfs = model.explain(queries, target=1, n=2, check=lambda f: reads_codes(f).argmax(axis=1), random_state=0)
        drawn = model.sample(queries, target=1, n=2, random_state=0)
        for frame in (cfs.frame, cfs.queries, drawn):
            assert frame["job"].dtype.categories.tolist() == dtype.categories.tolist()
        assert cfs.verify()["holds"].all()
        assert reads_codes(cfs.frame).argmax(axis=1).all()
        odd = model.explain(rows.head(4), target=1, n=1, random_state=0)
        assert odd.frame["job"].dtype.categories.tolist() == dtype.categories.tolist()
        assert odd.queries["job"].tolist() == rows["job"].head(4).tolist()
    assert all(one.categories.tolist() == dtype.categories.tolist() for one in seen)
    written = fitted.explain(queries.astype({"job": str}), target=1, n=1, random_state=0)
    assert written.frame["job"].dtype.categories.tolist() == dtype.categories.tolist()
