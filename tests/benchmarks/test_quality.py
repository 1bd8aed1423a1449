"""Quality, and draws under constraints: what a quick run finds, and what its pages say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.experiments import constraints, quality
from benchmarks.experiments.quality.page import ROWS
from benchmarks.options import Options
from benchmarks.tables import ADULT, BANK, MAIN


def test_the_page_has_a_column_per_method(page: Any) -> None:
    assert "|  | mixed, seed 0 | oracle, seed 0 | maf, seed 0 |" in page("quality")
    assert page("quality").count("\n|") == len(ROWS) + 2


def test_the_figures_are_sane(stored: Any) -> None:
    mixed, oracle, maf = (result.figures for result in stored("quality"))
    assert oracle["validity"] == oracle["copies"] == 1.0
    assert mixed["validity"] > 0.9
    assert mixed["violations"] == maf["violations"] == 0
    assert mixed["copies"] < 0.5
    assert oracle["violations"] > 0
    assert mixed["changed"]["0.01"] < mixed["changed"]["2.0"]
    assert "validity_high" in mixed
    assert "validity_high" not in maf


def test_variants_are_measured_on_the_first_table_and_seed_alone() -> None:
    cells = quality.cells(Options(tables=(ADULT, BANK)))
    where = {method: {(c.table, c.seed) for c in cells if c.method == method} for method in quality.METHODS}
    assert where["mixed"] == where["oracle"] == {(ADULT, 0), (ADULT, 1), (BANK, 0), (BANK, 1)}
    assert where["maf"] == {(ADULT, 0), (BANK, 0)}
    assert all(places == {(ADULT, 0)} for method, places in where.items() if "," in method)


def test_the_paper_flow_alone_has_limited_time() -> None:
    seconds = {cell.method: cell.size.learning for cell in quality.cells(Options(tables=MAIN[:1]))}
    assert seconds.pop("maf") == 600.0
    assert set(seconds.values()) == {None}


# -- constraints ------------------------------------------------------------------------------------------------------


def test_draws_under_constraints_break_none_and_stay_valid(stored: Any) -> None:
    (result,) = stored("constraints")
    found = result.figures
    assert found["queries"] == 12
    assert found["checks"] == 12 * 20 * 6  # queries, draws, and five constraints with the schema
    assert found["violations"] == found["answer_violations"] == 0
    assert found["validity_possible"] >= found["validity_all"]
    assert 0 < found["possible"] <= 1
    assert found["share_all"] <= found["share_enough"] <= 1


def test_times_are_medians_of_all_repeats(stored: Any) -> None:
    for seen in stored("constraints")[0].figures["seconds"].values():
        free, five = seen["repeats"]["free"], seen["repeats"]["five constraints"]
        assert len(free) == len(five) == 3
        assert seen["ratio"] == pytest.approx(np.median(five) / np.median(free), rel=1e-5)


def test_the_page_of_constraints_names_what_bound_the_draws(page: Any) -> None:
    assert "- education may only increase\n" in page("constraints")
    assert page("constraints").count("\n|") == len(constraints.ROWS) + 2 + 4
