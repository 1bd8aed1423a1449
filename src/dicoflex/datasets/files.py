"""Tables in files and folders, cut into training and test rows."""

from __future__ import annotations

__all__ = ["find", "folders", "read_pair", "read_shipped", "split_rows", "whole_to_int"]

import os
from importlib.resources import files
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from dicoflex.datasets.recipes import RECIPES
from dicoflex.errors import DataError

FOLDER_VARIABLE = "DICOFLEX_DATA"
TEST_SHARE = 0.2


def split_rows(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows at random, each in the table's order and with its row numbers."""
    # NumPy promises the raw stream of a bit generator for ever, but not what `permutation` makes of it.
    order = np.argsort(np.random.PCG64(0).random_raw(len(table)), kind="stable")
    is_test = np.zeros(len(table), dtype=bool)
    is_test[order[: round(TEST_SHARE * len(table))]] = True
    return table[~is_test], table[is_test]


def read_shipped(name: str) -> pd.DataFrame:
    with (files("dicoflex.datasets") / "data" / f"{name}.csv.gz").open("rb") as file:
        return _read(file, compression="gzip")


def read_pair(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two files of a table in the folder, with the same dtypes in both."""
    train, test = (_read_part(name, f"{part}.csv") for part in ("train", "test"))
    both = whole_to_int(pd.concat([train, test], ignore_index=True))
    return both[: len(train)], both[len(train) :].reset_index(drop=True)


def _read_part(name: str, part: str) -> pd.DataFrame:
    path = _locate(name, part)
    table = _read(path)
    recipe = RECIPES[name]
    absent = [c for c in (recipe.label, *recipe.numbers) if c not in table.columns]
    if absent:
        raise DataError(f"{path} lacks the column {absent[0]!r} of dataset {name!r}; replace it by the full table")
    return table


def _read(source: Path | IO[bytes], *, compression: str | None = None) -> pd.DataFrame:
    """The rows of a CSV file; an empty cell or `?` is missing, and every other word is itself ("none", "NA")."""
    return pd.read_csv(
        source,
        compression=compression,  # type: ignore[arg-type]
        skipinitialspace=True,
        keep_default_na=False,
        na_values=["", "?"],
    )


def whole_to_int(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with its float columns as int64 where every value is whole."""
    floats = table.select_dtypes("float64")
    whole = [c for c in floats.columns if floats[c].notna().all() and (floats[c] % 1 == 0).all()]
    return table.astype(dict.fromkeys(whole, "int64"))


def find(name: str, part: str) -> Path | None:
    paths = [folder / name / part for folder in folders()]
    return next((path for path in paths if path.is_file()), None)


def _locate(name: str, part: str) -> Path:
    """The path of one file of a table; if no folder has it, a `DataError` says where to put it."""
    path = find(name, part)
    if path is not None:
        return path
    remote = RECIPES[name].remote
    if remote is None:
        download = "; no public copy is known that could be fetched"
    else:
        download = f", or allow the download of table {remote.data_id} of OpenML with load({name!r}, fetch=True)"
    raise DataError(
        f"dataset {name!r} needs the file {folders()[0] / name / part}, which is not there; put it there, or set the "
        f"environment variable {FOLDER_VARIABLE} to the folder that holds {name}/{part}{download}"
    )


def folders() -> list[Path]:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return [Path(given)]
    beside = [Path.cwd(), Path(__file__).resolve().parents[3]]
    return [place.parent / "shared" / "data" for place in beside]
