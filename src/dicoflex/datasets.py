"""Named tables with their schema, split and label: two ship inside the package, four are read from a folder.

The folder is the one that the environment variable `DICOFLEX_DATA` names, or `../shared/data` beside the current
directory or the project. It holds one folder per table with `train.csv` and `test.csv`.
"""

from __future__ import annotations

__all__ = ["Dataset", "load", "names", "two_moons"]

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd
from sklearn.datasets import make_moons

from dicoflex.errors import DataError, named
from dicoflex.schema import Kind, Schema

FOLDER_VARIABLE = "DICOFLEX_DATA"
TEST_SHARE = 0.2

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


@dataclass(frozen=True, eq=False)
class Dataset:
    """A table split in two, with what a method must know about it.

    The schema describes the whole table, so that every test row fits it. `positive` is the label that a person hopes
    for; `immutable` names what people can't or may not be asked to change.
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


@dataclass(frozen=True)
class Recipe:
    """How one table is read: its label, the columns that are numbers, and what can't be seen from the values."""

    label: str
    positive: int | str
    numbers: tuple[str, ...]
    immutable: tuple[str, ...] = ()
    orders: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ships: bool = False
    in_folder: bool = True


RECIPES: dict[str, Recipe] = {
    "adult": Recipe(
        label="income",
        positive=">50K",
        numbers=("age", "capital_gain", "capital_loss", "hours_per_week"),
        immutable=("age", "race", "sex", "native_country"),
        orders={"education": EDUCATION},
        ships=True,
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
        immutable=("personal_status_sex", "age", "foreign_worker"),
        ships=True,
        in_folder=False,
    ),
    "bank": Recipe(
        label="y",
        positive="yes",
        numbers=("age", "balance", "day", "duration", "campaign", "pdays", "previous"),
        immutable=("age", "marital"),
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
        immutable=("SEX", "MARRIAGE", "AGE"),
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
        immutable=("age", "NumberOfDependents"),
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
    ),
}


def names() -> list[str]:
    """The names that `load` knows; the first two ship inside the package.

    >>> names()
    ['adult', 'german', 'bank', 'default', 'gmc', 'lending-club']
    """
    return list(RECIPES)


def load(name: str, *, split: str | None = None) -> Dataset:
    """The table called `name`, split in training and test rows; the same rows at every call.

    Shipped tables are split at random, 80 to 20; the others come in the split of the DiCoFlex paper. `split="paper"`
    asks for that split by name, which matters for Adult: its two files are then read from the folder.

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
    else:
        train, test = _read_pair(name)
    return _dataset(name, recipe, train, test)


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
    with (files("dicoflex") / "data" / f"{name}.csv.gz").open("rb") as file:
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


def _locate(name: str, part: str) -> Path:
    """The path of one file of a table; if no folder has it, a `DataError` says where to put it."""
    folders = _folders()
    for folder in folders:
        path = folder / name / part
        if path.is_file():
            return path
    raise DataError(
        f"dataset {name!r} needs the file {folders[0] / name / part}, which is not there; put it there, or set the "
        f"environment variable {FOLDER_VARIABLE} to the folder that holds {name}/{part}"
    )


def _folders() -> list[Path]:
    given = os.environ.get(FOLDER_VARIABLE)
    if given:
        return [Path(given)]
    beside = [Path.cwd(), Path(__file__).resolve().parents[2]]
    return [place.parent / "shared" / "data" for place in beside]
