"""Frames of Arrow, polars and others that convert to pandas are taken wherever a pandas frame is."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from dicoflex import DiCoFlex

COLUMNS = ["gain", "price", "visits", "city", "member"]


def test_a_table_of_arrow_is_learned_from_and_explained(applicants: pd.DataFrame, says: Any, quickly: Any) -> None:
    labels = says(applicants)
    plain = applicants[COLUMNS].reset_index(drop=True)
    table = pa.Table.from_pandas(plain)
    fitted: DiCoFlex = quickly(table, pa.array(labels), coherence=False)
    asked: dict[str, Any] = {"n": 2, "random_state": 0}
    expected = fitted.explain(table.to_pandas().head(3), **asked)
    found = fitted.explain(table.slice(0, 3), **asked)
    pd.testing.assert_frame_equal(found.frame, expected.frame)
    assert found.verify(table.slice(0, 3))["holds"].all()
    assert len(fitted.probability(table.slice(0, 3))) == 3
    assert len(fitted.sample(table.slice(0, 1), n=2, random_state=0)) == 2


def test_frames_of_polars_are_taken(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    polars = pytest.importorskip("polars")
    rows = mixed.explain(queries, n=1, random_state=0).queries.reset_index(drop=True)
    assert len(mixed.probability(polars.from_pandas(rows))) == len(rows)
