"""Samples of large tables: by class, the same for any chunks, and with all that the columns can hold."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex.errors import DataError, SettingError
from dicoflex.table import subsample as streaming
from dicoflex.table.schema import Schema
from dicoflex.table.subsample import count_rows, sample_parquet, stratified

N = 12_000
MOST = 500


def make_table() -> pd.DataFrame:
    """Columns of every kind; what is rare in a column is in one row alone."""
    rng = np.random.default_rng(0)
    city = rng.choice(["Ulm", "Rome"], N).astype(object)
    city[1111] = "Oslo"
    city[2222] = None
    visits = pd.array(rng.integers(0, 700, N), dtype="Int64")
    visits[3333] = pd.NA
    visits[4444] = 9000
    half = rng.integers(0, 500, N).astype(float)
    half[5555] = 0.5
    area = rng.choice([1, 2, 5], N).astype("int16")
    area[6666] = 4
    member = pd.array(rng.random(N) < 0.4, dtype="boolean")
    member[7777] = pd.NA
    score = rng.normal(size=N).astype("float32")
    score[8888] = -50.0
    grades = rng.choice(list("abc"), N)
    grades[9999] = "z"
    return pd.DataFrame(
        {
            "city": city,
            "visits": visits,
            "half": half,
            "area": area,
            "member": member,
            "score": score,
            "grade": pd.Categorical(grades, categories=list("zdcba"), ordered=True),
            "label": np.where(rng.random(N) < 0.002, "rare", np.where(rng.random(N) < 0.3, "yes", "no")),
        }
    )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("streaming") / "large.parquet"
    make_table().to_parquet(path, row_group_size=3000)
    return path


@pytest.fixture(scope="module")
def whole(path: Path) -> pd.DataFrame:
    return pd.read_parquet(path)


# -- by class ---------------------------------------------------------------------------------------------------------


def test_common_classes_keep_their_shares() -> None:
    labels = np.repeat([0, 1], [80_000, 20_000])
    chosen = stratified(labels, most=50_000, seed=0)
    assert len(chosen) == 50_000
    assert (np.diff(chosen) > 0).all()
    assert labels[chosen].sum() == pytest.approx(10_000, abs=400)


def test_rare_classes_keep_more_than_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "ROWS_OF_A_CLASS", 100)
    labels = np.repeat([0, 1, 2], [100_000, 2_000, 7])
    counts = np.bincount(labels[stratified(labels, most=1_000, seed=0)])
    assert counts.tolist() == [893, 100, 7]


def test_no_class_is_lost_when_there_are_more_classes_than_rows_to_take() -> None:
    labels = np.arange(300) % 60
    assert set(labels[stratified(labels, most=20, seed=0)]) == set(range(60))


def test_needed_rows_are_within_the_number_asked_for() -> None:
    labels = np.zeros(1000, dtype=np.int64)
    chosen = stratified(labels, most=50, seed=0, needed=range(900, 940))
    assert len(chosen) == 50
    assert set(range(900, 940)) <= set(chosen.tolist())
    assert len(stratified(labels, most=50, seed=0, needed=range(80))) == 80


def test_another_seed_takes_other_rows() -> None:
    labels = np.zeros(1000, dtype=np.int64)
    first, again, other = (set(stratified(labels, most=100, seed=seed).tolist()) for seed in (0, 0, 1))
    assert first == again
    assert 0 < len(first & other) < 40


def test_rows_of_a_class_are_taken_evenly_over_the_table() -> None:
    chosen = stratified(np.zeros(100_000, dtype=np.int64), most=10_000, seed=3)
    counts = np.histogram(chosen, bins=10, range=(0, 100_000))[0]
    assert abs(counts - 1000).max() < 150


# -- from Parquet -----------------------------------------------------------------------------------------------------


def test_sample_is_rows_of_the_file_in_order(path: Path, whole: pd.DataFrame) -> None:
    X, y = sample_parquet(path, "label", most_rows=MOST)
    assert len(X) == len(y) == MOST
    assert X.index.is_monotonic_increasing
    pd.testing.assert_frame_equal(X, whole.drop(columns="label").loc[X.index])
    pd.testing.assert_series_equal(y, whole["label"].loc[X.index])


def test_schema_of_the_sample_is_that_of_the_table(path: Path, whole: pd.DataFrame) -> None:
    X, _ = sample_parquet(path, "label", most_rows=MOST)
    assert Schema.infer(X) == Schema.infer(whole.drop(columns="label"))
    kinds = {"area": "categorical"}
    assert Schema.infer(X, kinds=kinds) == Schema.infer(whole.drop(columns="label"), kinds=kinds)


@pytest.mark.parametrize("seed", [0, 1])
def test_rows_do_not_depend_on_the_chunks(path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for chunk in (97, 1000, 100_000):
        monkeypatch.setattr(streaming, "CHUNK", chunk)
        found.append(sample_parquet(path, "label", most_rows=MOST, seed=seed)[0])
    for other in found[1:]:
        pd.testing.assert_frame_equal(found[0], other)


def test_rows_are_those_that_a_look_at_the_whole_table_takes(path: Path, whole: pd.DataFrame) -> None:
    """Streaming forgets nothing that would have been taken; here no column needs a row of its own."""
    X, _ = sample_parquet(path, "label", columns=["score"], most_rows=MOST, seed=5)
    codes = pd.factorize(whole["label"])[0].astype(np.int64)
    extremes = [whole["score"].argmin(), whole["score"].argmax(), int((whole["score"] % 1 != 0).argmax())]
    assert X.index.tolist() == stratified(codes, most=MOST, seed=5, needed=extremes).tolist()


def test_rare_labels_are_all_there(path: Path, whole: pd.DataFrame) -> None:
    _, y = sample_parquet(path, "label", most_rows=MOST)
    assert (y == "rare").sum() == (whole["label"] == "rare").sum() > 10


def test_few_rows_are_held_at_a_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = []
    add = streaming._Reservoir.add

    def watched(self: Any, batch: Any) -> None:
        add(self, batch)
        assert len(self.rows) == sum(part.num_rows for part in self.parts)
        held.append(len(self.rows))

    monkeypatch.setattr(streaming, "CHUNK", 100)
    monkeypatch.setattr(streaming._Reservoir, "add", watched)
    sample_parquet(path, "label", most_rows=MOST)
    assert len(held) == 120
    assert max(held) <= 2 * MOST + 100


def test_small_file_comes_whole(path: Path, whole: pd.DataFrame) -> None:
    X, y = sample_parquet(path, "label", most_rows=N)
    pd.testing.assert_frame_equal(X.assign(label=y), whole, check_index_type=False)


def test_columns_are_read_in_the_order_asked_for(path: Path, whole: pd.DataFrame) -> None:
    X, y = sample_parquet(path, "label", columns=["score", "city"], most_rows=MOST)
    assert X.columns.tolist() == ["score", "city"]
    assert y.name == "label"
    assert "Oslo" in set(X["city"])


def test_index_and_numbered_columns_are_kept(whole: pd.DataFrame, tmp_path: Path) -> None:
    whole[["score", "label"]].set_index(whole["visits"].astype(str)).to_parquet(tmp_path / "index.parquet")
    X, _ = sample_parquet(tmp_path / "index.parquet", "label", most_rows=MOST)
    assert X.columns.tolist() == ["score"]
    assert X.index.name == "visits"
    whole[["score", "label"]].set_axis([0, 1], axis=1).to_parquet(tmp_path / "numbered.parquet")
    X, y = sample_parquet(tmp_path / "numbered.parquet", 1, columns=[0], most_rows=MOST)
    assert X.columns.tolist() == [0]
    assert y.name == 1


@pytest.mark.parametrize("labels", [[True, False], [0, 1], [0.0, 2.0]])
def test_labels_of_any_kind(labels: list[Any], tmp_path: Path) -> None:
    table = pd.DataFrame({"a": np.arange(1000), "y": np.resize(labels, 1000)})
    table.to_parquet(tmp_path / "t.parquet")
    _, y = sample_parquet(tmp_path / "t.parquet", "y", most_rows=100)
    assert y.dtype == table["y"].dtype
    assert y.value_counts().to_dict() == pytest.approx(dict.fromkeys(labels, 50), abs=25)


def test_rows_are_counted_from_the_footer(path: Path) -> None:
    assert count_rows(path) == N


def test_a_fit_takes_the_sample_as_it_is(path: Path, quickly: Callable[..., Any]) -> None:
    X, y = sample_parquet(path, "label", most_rows=MOST)
    model = quickly(X, y, training={"min_steps": 0, "epochs": 1}, fit_config={"most_rows": MOST, "passes": 1})
    assert model.report_["rows"] == model.report_["rows_used"] == MOST


# -- refusals ---------------------------------------------------------------------------------------------------------


def written(folder: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def test_without_pyarrow_the_remedy_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SettingError, match=r"pip install 'dicoflex\[parquet\]'"):
        sample_parquet(path, "label")
    with pytest.raises(SettingError, match="needs pyarrow"):
        count_rows(path)


def test_unknown_columns_are_named(path: Path) -> None:
    with pytest.raises(DataError, match="label column 'labl' is unknown; did you mean 'label'"):
        sample_parquet(path, "labl")
    with pytest.raises(DataError, match="column 'scores' is unknown; did you mean 'score'"):
        sample_parquet(path, "label", columns=["scores"])
    with pytest.raises(DataError, match="'label' is the label; leave it out"):
        sample_parquet(path, "label", columns=["score", "label"])


@pytest.mark.parametrize("most", [0, -3, 2.5, True])
def test_senseless_numbers_of_rows_are_refused(path: Path, most: Any) -> None:
    with pytest.raises(SettingError, match="most_rows must be a whole number of at least 1"):
        sample_parquet(path, "label", most_rows=most)


def test_files_that_are_no_parquet_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is not there"):
        sample_parquet(tmp_path / "none.parquet", "y")
    (tmp_path / "broken.parquet").write_text("a,y\n1,2\n")
    with pytest.raises(DataError, match="Parquet failed"):
        sample_parquet(tmp_path / "broken.parquet", "y")
    with pytest.raises(DataError, match="Parquet failed"):
        count_rows(tmp_path / "broken.parquet")


def test_empty_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no rows"):
        sample_parquet(written(tmp_path, a=np.zeros(0), y=np.zeros(0)), "y")


@pytest.mark.parametrize("absent", [None, np.nan])
def test_missing_labels_are_refused(absent: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="label column 'y' has missing labels; drop those rows"):
        sample_parquet(written(tmp_path, a=[1, 2, 3], y=[0.0, 1.0, absent]), "y")


def test_scores_are_sampled_evenly(tmp_path: Path) -> None:
    path = written(tmp_path, a=np.arange(4000), y=np.arange(4000.0))
    _, scores = sample_parquet(path, "y", most_rows=500)
    assert len(scores) == 500
    assert np.quantile(scores, [0.25, 0.5, 0.75]) == pytest.approx([1000, 2000, 3000], abs=300)


def test_a_label_per_row_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="more than 1000 different values; labels are fewer, and scores are numbers"):
        sample_parquet(written(tmp_path, a=np.zeros(1500), y=[f"{i}" for i in range(1500)]), "y")


def test_column_with_a_value_per_row_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    names = [f"person {i}" for i in range(2500)]
    path = written(tmp_path, name=names, a=np.arange(2500), y=np.arange(2500) % 2)
    with pytest.raises(DataError, match="column 'name' has more than 2000 categories"):
        sample_parquet(path, "y", most_rows=100)
    assert len(sample_parquet(path, "y", columns=["a"], most_rows=100)[0]) == 100
