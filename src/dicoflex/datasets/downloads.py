"""Tables from files, folders and OpenML, cut to the rows that the benchmarks use, and into training and test rows."""

from __future__ import annotations

__all__ = ["digest_of", "fetch_pair", "find", "folders", "read_pair", "read_shipped", "split_rows"]

import os
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from dicoflex.datasets.recipes import RECIPES, Remote
from dicoflex.errors import DataError
from dicoflex.runtime.extras import extra

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


DIGEST_BYTES = 5  # two different rows of a table of 45,000 share one in one of a thousand such tables


def fetch_pair(
    name: str, remote: Remote, split: str | None, verify: bool, cache: str | os.PathLike[str] | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows of a table on OpenML: the paper's if `verify`, else all of them, split at random."""
    if split == "paper" and not verify:
        raise DataError(
            f"dataset {name!r}: verifying tells the paper's rows from the others; leave verify=True, or split=None"
        )
    table = _download(name, remote, cache)
    return _paper_rows(name, remote, table) if verify else split_rows(table)


def fetch_openml(**request: Any) -> Any:
    """As scikit-learn's, which is asked for when it is needed."""
    with extra("fit", to="fetch tables"):
        from sklearn import datasets

    return datasets.fetch_openml(**request)


def _download(name: str, remote: Remote, cache: str | os.PathLike[str] | None) -> pd.DataFrame:
    """The whole table as OpenML has it, with our names, labels and dtypes."""
    source = f"table {remote.data_id} of OpenML"
    try:
        raw = fetch_openml(data_id=remote.data_id, as_frame=True, data_home=cache).frame
    except (OSError, ValueError) as problem:
        raise DataError(
            f"dataset {name!r}, {source}, could not be fetched: {problem}; try again, or put train.csv and test.csv "
            f"into {folders()[0] / name}"
        ) from problem
    if raw.shape[1] != len(remote.columns):
        raise DataError(
            f"dataset {name!r}: {source} has {raw.shape[1]} columns instead of {len(remote.columns)}, so it is another "
            f"table; put train.csv and test.csv into {folders()[0] / name}"
        )
    table = raw.set_axis(list(remote.columns), axis=1).apply(_plain_column)
    if remote.labels:
        label = RECIPES[name].label
        table[label] = [remote.labels.get(text, text) for text in _texts(table[label])]
    return whole_to_int(table)


def _plain_column(column: pd.Series) -> pd.Series:
    """Numbers where every value reads as one, else stripped text; OpenML declares both as categories at times."""
    try:
        return pd.to_numeric(column.astype(object)).astype("float64")
    except (ValueError, TypeError):
        return column.astype("str").str.strip().where(column.notna())


def _paper_rows(name: str, remote: Remote, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The paper's training and test rows, found in `table` by their digests; any difference is a `DataError`."""
    n_train, wanted = _read_digests(name)
    place = {digest: i for i, digest in enumerate(_digests(table))}
    absent = [digest for digest in wanted if digest not in place]
    rows = table.iloc[[place[digest] for digest in wanted if digest in place]].reset_index(drop=True)
    train, test = rows[:n_train], rows[n_train:].reset_index(drop=True)
    if absent or digest_of(train, test) != RECIPES[name].sha256:
        reason = f"lacks {len(absent):,} of the paper's {len(wanted):,} rows" if absent else "fails the checksum"
        raise DataError(
            f"dataset {name!r}: table {remote.data_id} of OpenML {reason}, so it can't be verified and is refused; put "
            f"train.csv and test.csv into {folders()[0] / name}, or take it as it is with verify=False"
        )
    return train, test


def _read_digests(name: str) -> tuple[int, list[bytes]]:
    """How many rows the paper trains on, and the digests of its training and test rows, in their order."""
    raw = (files("dicoflex.datasets") / "data" / f"{name}.rows").read_bytes()
    n_train, digests = int.from_bytes(raw[:4], "big"), raw[4:]
    return n_train, [digests[i : i + DIGEST_BYTES] for i in range(0, len(digests), DIGEST_BYTES)]


def _pack_digests(train: pd.DataFrame, test: pd.DataFrame) -> bytes:
    """The content of a `.rows` file: the number of training rows, and the digests of all rows."""
    return len(train).to_bytes(4, "big") + b"".join([*_digests(train), *_digests(test)])


def _digests(table: pd.DataFrame) -> list[bytes]:
    return [sha256(line.encode()).digest()[:DIGEST_BYTES] for line in _lines(table)]


def digest_of(*tables: pd.DataFrame) -> str:
    """The SHA-256 checksum of tables one after the other, each with its column names."""
    whole = sha256()
    for table in tables:
        ordered = sorted(table.columns)
        whole.update("\n".join(["\t".join(ordered), *_lines(table), ""]).encode())
    return whole.hexdigest()


def _lines(table: pd.DataFrame) -> list[str]:
    """Each row as text, columns in the order of their names: the same for the same values in any dtype."""
    cells = [_texts(table[column]) for column in sorted(table.columns)]
    return ["\t".join(row) for row in zip(*cells, strict=True)]


def _texts(column: pd.Series) -> list[str]:
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype="float64", na_value=np.nan).tolist()
        return ["" if v != v else str(int(v)) if v.is_integer() else repr(v) for v in values]
    return ["" if missing else str(v).strip() for v, missing in zip(column, column.isna(), strict=True)]
