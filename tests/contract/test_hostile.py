"""What a file from a stranger, or a callable that alters what it is given, can't do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, load, model_file
from dicoflex.errors import ModelFileError


def test_a_cell_of_a_level_that_the_schema_has_not_is_refused(mixed: DiCoFlex, tmp_path: Path) -> None:
    """Such a cell would be an index into the weights; the checksum of the forged file is right."""
    header, arrays = mixed.model_.content()
    offset = arrays["generator.grid.offset"]
    level = mixed.schema_.position("city")
    low = arrays["generator.grid.low"].copy()
    low[offset[level]] = 1e12
    model_file.write(tmp_path / "forged.dicoflex", header, arrays | {"generator.grid.low": low})
    with pytest.raises(ModelFileError, match="has other cells for 'city' than levels"):
        load(tmp_path / "forged.dicoflex")


@pytest.mark.parametrize(
    ("name", "dtype"), [("grid.count", np.int32), ("grid.low", np.float32), ("grid.decimals", np.float64)]
)
def test_arrays_of_other_dtypes_are_refused(mixed: DiCoFlex, tmp_path: Path, name: str, dtype: Any) -> None:
    header, arrays = mixed.model_.content()
    other = {f"generator.{name}": arrays[f"generator.{name}"].astype(dtype)}
    model_file.write(tmp_path / "forged.dicoflex", header, arrays | other)
    with pytest.raises(ModelFileError, match=r"is \w+ of shape .* not \w+ of shape"):
        load(tmp_path / "forged.dicoflex")


def test_a_header_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "bomb.dicoflex"
    with path.open("wb") as file:
        file.write((2**32).to_bytes(8, "little"))
        file.truncate(2**33)
    with pytest.raises(ModelFileError, match="more than 1,073,741,824"):
        model_file.read_header(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.dicoflex")
    with pytest.raises(ModelFileError, match="a pipe or a device, and no file"):
        load(tmp_path / "pipe.dicoflex")


def test_a_check_that_alters_its_rows_moves_no_frozen_feature(
    judged: DiCoFlex, queries: pd.DataFrame, says: Any
) -> None:
    def evil(rows: pd.DataFrame) -> np.ndarray:
        labels = says(rows)
        rows["price"] = 0.0
        return labels

    before = queries.copy()
    cfs = judged.explain(queries, n=3, frozen=["price", "age"], check=evil, random_state=0)
    pd.testing.assert_frame_equal(queries, before)
    own = before.iloc[cfs.positions]
    np.testing.assert_array_equal(cfs.frame["price"].to_numpy(), own["price"].to_numpy())
    assert cfs.verify()["holds"].all()
