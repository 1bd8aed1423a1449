"""Fits from files: the sample does not depend on how the table is cut, and what is said of all rows is of all rows."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dicoflex import DiCoFlex, Schema, lake
from dicoflex.errors import DataError
from dicoflex.lake import Lake, fit_files, plan_fit
from dicoflex.learning import surrogate
from dicoflex.table.subsample import sample_parquet
from dicoflex.table.survey import take_rows

N, MOST = 6000, 400


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N),
            "gain": np.where(rng.random(N) < 0.5, 0.0, rng.gamma(2.0, 500.0, N)),
            "few": rng.choice([1.5, 2.5, 4.0], N),
            "job": rng.choice(["cook", "nurse", "pilot"], N, p=[0.6, 0.398, 0.002]),
            "visits": pd.array(rng.poisson(3.0, N), dtype="Int64"),
            # In order, so that a folder for each value holds the rows in their order.
            "year": np.repeat([2022, 2023, 2024], N // 3),
        }
    )
    frame.loc[rng.choice(N, 7, replace=False), "visits"] = pd.NA
    rare = rng.random(N) < 0.01
    label = np.where(rare, "rare", np.where(frame["age"] + frame["gain"] / 50 > 60, "yes", "no"))
    return frame.assign(label=label)


@pytest.fixture(scope="module")
def cuts(rows: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same rows as one file, as eight and as a hive folder."""
    folder = tmp_path_factory.mktemp("lake")
    rows.to_parquet(folder / "one.parquet", index=False, row_group_size=700)
    (folder / "eight").mkdir()
    for i, part in enumerate(np.array_split(np.arange(N), 8)):
        rows.iloc[part].to_parquet(folder / "eight" / f"{i}.parquet", index=False)
    for year, part in rows.groupby("year"):
        (folder / "hive" / f"year={year}").mkdir(parents=True)
        part.drop(columns="year").to_parquet(folder / "hive" / f"year={year}" / "x.parquet", index=False)
    return {"one": folder / "one.parquet", "eight": folder / "eight", "hive": folder / "hive"}


@pytest.mark.parametrize("each", [1, 5])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_sample_does_not_depend_on_the_cut(
    cuts: dict[str, Path], rows: pd.DataFrame, each: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for name, size in [("one", N), ("one", 321), ("eight", N), ("hive", 500)]:
        monkeypatch.setattr(lake, "PIECE_ROWS", size)
        monkeypatch.setattr(lake, "BATCH_ROWS", 100)
        found.append(Lake.of(cuts[name], "label").sample(MOST, seed=seed, each=each, workers=2))
    X, y = found[0]
    for other, labels in found[1:]:
        pd.testing.assert_frame_equal(other[X.columns], X)
        pd.testing.assert_series_equal(labels, y)
    # What stands in the sample is what stands in the table under the same number.
    pd.testing.assert_frame_equal(X, rows.loc[X.index, X.columns])
    assert len(X) < 2 * MOST
    if each == 1:
        whole, _ = sample_parquet(cuts["one"], "label", most_rows=MOST, seed=seed)
        pd.testing.assert_frame_equal(X, whole)


def test_the_schema_of_the_sample_is_that_of_all_rows(cuts: dict[str, Path], rows: pd.DataFrame) -> None:
    X, _ = Lake.of(cuts["eight"], "label").sample(MOST, seed=0, each=5, workers=2)
    assert Schema.infer(X, min_count=5) == Schema.infer(rows.drop(columns="label"), min_count=5)


def test_scales_and_counts_are_of_all_rows(cuts: dict[str, Path], rows: pd.DataFrame) -> None:
    schema = Schema.infer(rows.drop(columns="label"))
    found = Lake.of(cuts["eight"], "label")
    X, _ = found.sample(MOST, seed=0, each=1, workers=1)
    sampled = take_rows(X, schema, np.zeros(len(X), np.int64), most=MOST, seed=0, whole=found.frames)
    whole = take_rows(rows[schema.names], schema, np.zeros(N, np.int64), most=N, seed=0)
    assert (sampled.n, whole.n, sampled.left_out) == (N, N, 0)
    np.testing.assert_allclose(sampled.encoding.mean, whole.encoding.mean, rtol=1e-9)
    np.testing.assert_allclose(sampled.encoding.scale, whole.encoding.scale, rtol=1e-9)


def test_a_model_is_fitted_from_files(cuts: dict[str, Path], rows: pd.DataFrame) -> None:
    how = {"training": {"min_steps": 0, "epochs": 2}, "fit_config": {"passes": 2, "rounds": 0}, "coherence": False}
    with mock.patch.object(surrogate, "STEPS", 60), mock.patch.object(surrogate, "ROUNDS", 10):
        fitted = fit_files(
            cuts["hive"], label="label", explainer=DiCoFlex(random_state=0, marginals=False, **how), most_rows=MOST
        )
    assert fitted.report_["rows"] == N
    assert fitted.report_["label"] == "label"
    names = fitted.schema_.names
    limits = {f.name: (f.minimum, f.maximum) for f in fitted.schema_.features if f.is_number}
    for j, name in enumerate(names):
        if name in limits:
            column = rows[name].astype(float).clip(*limits[name])
            # A file tells three digits of them.
            assert fitted.model_.encoding.mean[j] == pytest.approx(column.mean(), rel=1e-2)
            assert fitted.model_.encoding.scale[j] == pytest.approx(column.std(ddof=0), rel=1e-2)
    assert len(fitted.explain(rows.head(5)[names], target="yes", n=1, random_state=0)) > 0


def test_a_plan_reads_the_first_rows_alone(cuts: dict[str, Path]) -> None:
    plan = plan_fit(cuts["eight"], label="label", drop=["few"], most_rows=MOST)
    assert (plan.files, plan.rows, plan.sampled) == (8, N, MOST)
    assert plan.features == ["age", "gain", "job", "visits", "year"]
    assert plan.seconds > 0
    assert plan.memory > 0
    assert "6,000 rows in 8 files" in str(plan)


def test_what_can_not_be_read_is_refused(cuts: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="column 'lable' is unknown; did you mean 'label'"):
        fit_files(cuts["eight"], label="lable")
    with pytest.raises(DataError, match="column 'jobs' is unknown"):
        fit_files(cuts["eight"], label="label", drop=["jobs"])
    (tmp_path / "x.csv").write_text("a,label\n1,2\n")
    with pytest.raises(DataError, match="reads Parquet"):
        fit_files(tmp_path, label="label")
    pq.write_table(
        pa.table({"a": pa.array([], pa.int64()), "label": pa.array([], pa.string())}), tmp_path / "x.parquet"
    )
    with pytest.raises(DataError, match="has no rows"):
        fit_files(tmp_path / "x.parquet", label="label")
