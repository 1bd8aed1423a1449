"""Named tables with their schema, split and label: two ship inside the package, four are read from a folder.

The folder is the one that the environment variable `DICOFLEX_DATA` names, or `../shared/data` beside the current
directory or the project. It holds one folder per table with `train.csv` and `test.csv`.

Bank and Default can be fetched from OpenML instead, if the caller asks for it. OpenML has the whole tables, of which
the DiCoFlex paper takes a part: `data/NAME.rows` holds a short digest of each of the paper's rows, by which they are
found and put in order, and a SHA-256 checksum of the result must be the one in the recipe.
"""

from __future__ import annotations

__all__ = ["Dataset", "checksum", "load", "names", "two_moons"]

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml, make_moons

from dicoflex.errors import DataError, named
from dicoflex.table.schema import Kind, Schema

FOLDER_VARIABLE = "DICOFLEX_DATA"
TEST_SHARE = 0.2
DIGEST_BYTES = 5  # two different rows of a table of 45,000 share one in one of a thousand such tables

EDUCATION = (
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
)
BANK = (
    "age",
    "job",
    "marital",
    "education",
    "default",
    "balance",
    "housing",
    "loan",
    "contact",
    "day",
    "month",
    "duration",
    "campaign",
    "pdays",
    "previous",
    "poutcome",
    "y",
)
DEFAULT = (
    *("LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE"),
    *(f"PAY_{month}" for month in (0, 2, 3, 4, 5, 6)),
    *(f"BILL_AMT{month}" for month in range(1, 7)),
    *(f"PAY_AMT{month}" for month in range(1, 7)),
    "default payment next month",
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table split in two, with what a method must know about it.

    The schema describes the whole table, so that every test row fits it. `positive` is the label that a person hopes
    for. `immutable` and `increase` are sensible conditions on answers: what people can't or may not be asked to change
    (protected features among it), and what only ever grows, such as age.
    """

    name: str
    X_train: pd.DataFrame
    y_train: pd.Series
    X_test: pd.DataFrame
    y_test: pd.Series
    schema: Schema
    label: str
    positive: int | str
    immutable: tuple[str, ...] = ()
    increase: tuple[str, ...] = ()


@dataclass(frozen=True)
class Remote:
    """A public copy of a whole table on OpenML: our names for its columns, in their order there, and for its labels."""

    data_id: int
    columns: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How one table is read: its label, the columns that are numbers, and what can't be seen from the values.

    sha256: the checksum of the paper's training and test rows, as `checksum` takes it.
    """

    label: str
    positive: int | str
    numbers: tuple[str, ...]
    immutable: tuple[str, ...] = ()
    increase: tuple[str, ...] = ()
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ships: bool = False
    in_folder: bool = True
    sha256: str = ""
    remote: Remote | None = None


RECIPES: dict[str, Recipe] = {
    "adult": Recipe(
        label="income",
        positive=">50K",
        numbers=("age", "capital_gain", "capital_loss", "hours_per_week"),
        immutable=("race", "sex", "native_country"),
        increase=("age", "education"),
        orders={"education": EDUCATION},
        ships=True,
        sha256="66b7617213912c3c2cb578421d2be40ad42367443ed5ae671cca25c8ab18d613",
    ),
    "german": Recipe(
        label="default",
        positive=0,
        numbers=(
            "duration_in_month",
            "credit_amount",
            "installment_as_income_perc",
            "present_res_since",
            "age",
            "credits_this_bank",
            "people_under_maintenance",
        ),
        immutable=("personal_status_sex", "foreign_worker"),
        increase=("age",),
        ships=True,
        in_folder=False,
    ),
    "bank": Recipe(
        label="y",
        positive="yes",
        numbers=("age", "balance", "day", "duration", "campaign", "pdays", "previous"),
        immutable=("marital",),
        increase=("age",),
        sha256="fc55b438b59a47c405d5b28c7cb714bf8a926e4b055fced50341a29e40367903",
        remote=Remote(1461, BANK, labels={"1": "no", "2": "yes"}),
    ),
    "default": Recipe(
        label="default payment next month",
        positive=0,
        numbers=(
            "LIMIT_BAL",
            "AGE",
            *(f"BILL_AMT{month}" for month in range(1, 7)),
            *(f"PAY_AMT{month}" for month in range(1, 7)),
        ),
        immutable=("SEX", "MARRIAGE"),
        increase=("AGE",),
        sha256="bf71236c9ee0f1b8b4cd81aaf8b6d53ad8c71016ee6dda8dafd5de198470ad4d",
        remote=Remote(42477, DEFAULT),
    ),
    "gmc": Recipe(
        label="SeriousDlqin2yrs",
        positive=0,
        numbers=(
            "RevolvingUtilizationOfUnsecuredLines",
            "age",
            "DebtRatio",
            "MonthlyIncome",
            "NumberOfOpenCreditLinesAndLoans",
            "NumberOfTimes90DaysLate",
            "NumberRealEstateLoansOrLines",
        ),
        immutable=("NumberOfDependents",),
        increase=("age",),
        sha256="0f65d41c4e5064a1418a6f81a57819c814e879a1e581f68a325967d541dcc98c",
    ),
    "lending-club": Recipe(
        label="loan_status",
        positive="Fully Paid",
        numbers=(
            "loan_amnt",
            "int_rate",
            "installment",
            "annual_inc",
            "dti",
            "delinq_2yrs",
            "fico_range_low",
            "fico_range_high",
        ),
        sha256="1b809c1ce42a1e7e890a4b2651e8e02046c8628fd1554c867cdbcaab06d59037",
    ),
}


def names() -> list[str]:
    """The names that `load` knows; the first two ship inside the package.

    >>> names()
    ['adult', 'german', 'bank', 'default', 'gmc', 'lending-club']
    """
    return list(RECIPES)


def load(
    name: str,
    *,
    split: str | None = None,
    fetch: bool = False,
    verify: bool = True,
    cache: str | os.PathLike[str] | None = None,
) -> Dataset:
    """The table called `name`, split in training and test rows; the same rows at every call.

    Shipped tables are split at random, 80 to 20; the others come in the split of the DiCoFlex paper. `split="paper"`
    asks for that split by name, which matters for Adult: its two files are then read from the folder.

    fetch: whether a table that is in no folder may be downloaded from OpenML; nothing is downloaded otherwise.
    verify: whether a download must hold the paper's rows, by their checksum, which are then returned in the paper's
    split. With False, whatever OpenML has is returned whole, split at random, 80 to 20.
    cache: the folder that keeps downloads for the next call; None is scikit-learn's data folder.

    >>> adult = load("adult")
    >>> adult.X_train.shape, adult.X_test.shape, adult.positive
    ((39074, 12), (9768, 12), '>50K')
    """
    if name not in RECIPES:
        raise DataError(named("dataset", name, RECIPES))
    recipe = RECIPES[name]
    if split not in (None, "paper"):
        raise DataError(f"split {split!r} is unknown; give 'paper', or None for the usual split of {name!r}")
    if split == "paper" and not recipe.in_folder:
        raise DataError(f"dataset {name!r} has no split of the paper; leave split=None for the usual one")
    if recipe.ships and split is None:
        train, test = _split(_read_shipped(name))
    elif fetch and recipe.remote and not _find(name, "train.csv"):
        train, test = _fetch_pair(name, recipe.remote, split, verify, cache)
    else:
        train, test = _read_pair(name)
    return _dataset(name, recipe, train, test)


def checksum(data: Dataset) -> str:
    """The SHA-256 checksum of the training and test rows with their labels: 64 hexadecimal digits.

    It depends on names, values and order, and not on dtypes: 36 and 36.0 count as the same.
    """
    parts = [X.assign(**{data.label: y}) for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test))]
    return _checksum(*parts)


def two_moons(n: int = 2000, *, noise: float = 0.1, random_state: int = 0) -> Dataset:
    """Two interleaved half circles in the plane: features `x1` and `x2`, label `moon` (0 or 1), split 80 to 20.

    >>> moons = two_moons(100)
    >>> moons.X_train.shape, moons.schema.names
    ((80, 2), ['x1', 'x2'])
    """
    points, moon = make_moons(n, noise=noise, random_state=random_state)
    table = pd.DataFrame(points, columns=["x1", "x2"]).assign(moon=moon)
    recipe = Recipe(label="moon", positive=1, numbers=("x1", "x2"))
    return _dataset("two-moons", recipe, *_split(table))


def _dataset(name: str, recipe: Recipe, train: pd.DataFrame, test: pd.DataFrame) -> Dataset:
    X_train, X_test = train.drop(columns=recipe.label), test.drop(columns=recipe.label)
    return Dataset(
        name=name,
        X_train=X_train,
        y_train=train[recipe.label],
        X_test=X_test,
        y_test=test[recipe.label],
        schema=_schema(pd.concat([X_train, X_test]), recipe),
        label=recipe.label,
        positive=recipe.positive,
        immutable=recipe.immutable,
        increase=recipe.increase,
    )


def _schema(rows: pd.DataFrame, recipe: Recipe) -> Schema:
    """The schema of `rows`, in which whole numbers that are no numbers of the recipe stand for categories."""
    picked = [c for c in rows.columns if c not in recipe.numbers and c not in recipe.orders]
    return Schema.infer(rows, kinds=dict.fromkeys(picked, Kind.CATEGORICAL), orders=recipe.orders)


def _split(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows at random, each in the table's order and with its row numbers."""
    # NumPy promises the raw stream of a bit generator for ever, but not what `permutation` makes of it.
    order = np.argsort(np.random.PCG64(0).random_raw(len(table)), kind="stable")
    is_test = np.zeros(len(table), dtype=bool)
    is_test[order[: round(TEST_SHARE * len(table))]] = True
    return table[~is_test], table[is_test]


def _read_shipped(name: str) -> pd.DataFrame:
    with (files("dicoflex.datasets") / "data" / f"{name}.csv.gz").open("rb") as file:
        return _read(file, compression="gzip")


def _read_pair(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The two files of a table in the folder, with the same dtypes in both."""
    train, test = (_read_part(name, f"{part}.csv") for part in ("train", "test"))
    both = _whole_to_int(pd.concat([train, test], ignore_index=True))
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


def _whole_to_int(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with its float columns as int64 where every value is whole."""
    floats = table.select_dtypes("float64")
    whole = [c for c in floats.columns if floats[c].notna().all() and (floats[c] % 1 == 0).all()]
    return table.astype(dict.fromkeys(whole, "int64"))


def _find(name: str, part: str) -> Path | None:
    paths = [folder / name / part for folder in _folders()]
    return next((path for path in paths if path.is_file()), None)


def _locate(name: str, part: str) -> Path:
    """The path of one file of a table; if no folder has it, a `DataError` says where to put it."""
    path = _find(name, part)
    if path is not None:
        return path
    remote = RECIPES[name].remote
    if remote is None:
        download = "; no public copy is known that could be fetched"
    else:
        download = f", or allow the download of table {remote.data_id} of OpenML with load({name!r}, fetch=True)"
    raise DataError(
        f"dataset {name!r} needs the file {_folders()[0] / name / part}, which is not there; put it there, or set the "
        f"environment variable {FOLDER_VARIABLE} to the folder that holds {name}/{part}{download}"
    )


def _folders() -> list[Path]:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return [Path(given)]
    beside = [Path.cwd(), Path(__file__).resolve().parents[3]]
    return [place.parent / "shared" / "data" for place in beside]


# -- from OpenML ------------------------------------------------------------------------------------------------


def _fetch_pair(
    name: str, remote: Remote, split: str | None, verify: bool, cache: str | os.PathLike[str] | None
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows of a table on OpenML: the paper's if `verify`, else all of them, split at random."""
    if split == "paper" and not verify:
        raise DataError(
            f"dataset {name!r}: verifying tells the paper's rows from the others; leave verify=True, or split=None"
        )
    table = _download(name, remote, cache)
    return _paper_rows(name, remote, table) if verify else _split(table)


def _download(name: str, remote: Remote, cache: str | os.PathLike[str] | None) -> pd.DataFrame:
    """The whole table as OpenML has it, with our names, labels and dtypes."""
    source = f"table {remote.data_id} of OpenML"
    try:
        raw = fetch_openml(data_id=remote.data_id, as_frame=True, data_home=cache).frame
    except (OSError, ValueError) as problem:
        raise DataError(
            f"dataset {name!r}, {source}, could not be fetched: {problem}; try again, or put train.csv and test.csv "
            f"into {_folders()[0] / name}"
        ) from problem
    if raw.shape[1] != len(remote.columns):
        raise DataError(
            f"dataset {name!r}: {source} has {raw.shape[1]} columns instead of {len(remote.columns)}, so it is another "
            f"table; put train.csv and test.csv into {_folders()[0] / name}"
        )
    table = raw.set_axis(list(remote.columns), axis=1).apply(_plain_column)
    if remote.labels:
        label = RECIPES[name].label
        table[label] = [remote.labels.get(text, text) for text in _texts(table[label])]
    return _whole_to_int(table)


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
    if absent or _checksum(train, test) != RECIPES[name].sha256:
        reason = f"lacks {len(absent):,} of the paper's {len(wanted):,} rows" if absent else "fails the checksum"
        raise DataError(
            f"dataset {name!r}: table {remote.data_id} of OpenML {reason}, so it can't be verified and is refused; put "
            f"train.csv and test.csv into {_folders()[0] / name}, or take it as it is with verify=False"
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


def _checksum(*tables: pd.DataFrame) -> str:
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
