"""A model that was fitted before, rows that fit it, and folders of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dicoflex import Explainer, Request, load
from dicoflex.examples import rows_like

RECORDED = Path(__file__).resolve().parents[1] / "recording"
ROWS = 120
TwoFiles = Callable[[Path], Path]


@pytest.fixture(scope="session")
def explainer() -> Explainer:
    return load(RECORDED / "mixed.dicoflex")


@pytest.fixture(scope="session")
def people(explainer: Explainer) -> pd.DataFrame:
    """Rows of which about one in ten lacks the target `yes`, each with the number of a customer."""
    rows = rows_like(explainer.schema_, ROWS)
    return rows.assign(customer=[f"c{i:03d}" for i in range(ROWS)])


@pytest.fixture(scope="session")
def wish() -> Request:
    return Request(target="yes", n=2)


@pytest.fixture(scope="session")
def two_files(people: pd.DataFrame) -> TwoFiles:
    """Writes the rows as two Parquet files, the first with several row groups, and a file that is none of them."""

    def write(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        half = ROWS // 2
        pq.write_table(pa.Table.from_pandas(people[:half]), folder / "a.parquet", row_group_size=17)
        pq.write_table(pa.Table.from_pandas(people[half:]), folder / "b.parquet")
        (folder / "_SUCCESS").touch()
        (folder / "readme.txt").touch()
        return folder

    return write
