"""Scale: what is measured of a fit, and the tables that it is measured on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.cells import Cell, Result
from benchmarks.experiments.scale.page import LINES, medians, slope
from benchmarks.experiments.scale.rows import synthetic_adult
from benchmarks.tables import ADULT
from dicoflex import datasets
from dicoflex.table.schema import Schema


def test_scale_measures_every_size(stored: Any) -> None:
    small, large = (result.figures for result in stored("scale"))
    assert (small["rows_used"], large["rows_used"]) == (500, 600)
    assert small["overlap_2"] == small["ratio_2"] == 1.0
    assert 0 < large["overlap_2"] < 1 < large["ratio_2"] < 2
    for found in (small, large):
        assert found["fit_seconds"] > 0
        # The system counts memory in steps, and a peak may lag behind a little.
        assert 100 < found["before_mb"] < found["peak_mb"] + 10
        assert found["validity_2"] > 0.7


def test_scale_writes_its_page(page: Any, stored: Any) -> None:
    assert "| rows | 500 | 2,000 |" in page("scale")
    assert page("scale").count("\n|") == len(LINES) + 2
    assert f"to the power of {slope(medians(stored('scale'))):.2f}. 2,000 rows" in page("scale")


def test_synthetic_rows_follow_adult() -> None:
    real = datasets.load(ADULT).X_train
    rows = synthetic_adult(30_000, seed=0)
    assert rows.dtypes.equals(real.dtypes)
    for feature in Schema.infer(real).features:
        ours, theirs = (frame[feature.name] for frame in (rows, real))
        assert set(ours.dropna()) <= set(theirs.dropna())
        if feature.is_number:
            assert ours.mean() == pytest.approx(theirs.mean(), rel=0.1)
            assert (ours == theirs.mode()[0]).mean() == pytest.approx((theirs == theirs.mode()[0]).mean(), abs=0.05)
        else:
            shares = [frame.value_counts(normalize=True) for frame in (ours, theirs)]
            assert (shares[0] - shares[1]).abs().max() < 0.01
    assert not rows.head(1000).equals(synthetic_adult(30_000, seed=1).head(1000))
    assert 0.1 < rows.duplicated().mean() < 0.5


def test_slope_of_proportional_cost_is_one() -> None:
    sizes = [{"rows": n, "fit_seconds": 3e-4 * n} for n in (10, 100, 1000)]
    assert slope(sizes) == pytest.approx(1.0)
    assert slope([size | {"fit_seconds": 5.0} for size in sizes]) == pytest.approx(0.0)


def test_medians_are_taken_over_the_seeds() -> None:
    def result(rows: int, seed: int) -> Result:
        return Result(Cell("scale", ADULT, "mixed", seed, settings=(("rows", rows),)), {"fit_seconds": rows + seed})

    found = medians([result(n, seed) for seed in (0, 5, 1) for n in (20, 10)])
    assert [(size["rows"], size["fit_seconds"]) for size in found] == [(10, 11), (20, 21)]
    assert np.isfinite(slope(found))
