"""Turn the raw UCI files of Adult and German Credit into the two tables that ship in the package.

    python benchmarks/embed_data.py FOLDER

FOLDER holds `adult/adult.data`, `adult/adult.test` and `german/german.data` as UCI publishes them. The same input gives
the same bytes. `src/dicoflex/datasets/data/README.md` tells what is changed.
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import pandas as pd

from dicoflex.runtime.whole_files import replacing

DATA = Path(__file__).resolve().parents[1] / "src" / "dicoflex" / "datasets" / "data"

ADULT_RAW = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
]
ADULT_DROPPED = ["fnlwgt", "education_num"]

GERMAN_RAW = [
    "account_check_status",
    "duration_in_month",
    "credit_history",
    "purpose",
    "credit_amount",
    "savings",
    "present_emp_since",
    "installment_as_income_perc",
    "personal_status_sex",
    "other_debtors",
    "present_res_since",
    "property",
    "age",
    "other_installment_plans",
    "housing",
    "credits_this_bank",
    "job",
    "people_under_maintenance",
    "telephone",
    "foreign_worker",
    "default",
]
GERMAN_LEVELS = {
    "account_check_status": {
        "A11": "< 0 DM",
        "A12": "0 <= ... < 200 DM",
        "A13": ">= 200 DM / salary assignments for at least 1 year",
        "A14": "no checking account",
    },
    "credit_history": {
        "A30": "no credits taken/ all credits paid back duly",
        "A31": "all credits at this bank paid back duly",
        "A32": "existing credits paid back duly till now",
        "A33": "delay in paying off in the past",
        "A34": "critical account/ other credits existing (not at this bank)",
    },
    "purpose": {
        "A40": "car (new)",
        "A41": "car (used)",
        "A42": "furniture/equipment",
        "A43": "radio/television",
        "A44": "domestic appliances",
        "A45": "repairs",
        "A46": "education",
        "A47": "vacation",
        "A48": "retraining",
        "A49": "business",
        "A410": "others",
    },
    "savings": {
        "A61": "< 100 DM",
        "A62": "100 <= ... < 500 DM",
        "A63": "500 <= ... < 1000 DM",
        "A64": ">= 1000 DM",
        "A65": "unknown/ no savings account",
    },
    "present_emp_since": {
        "A71": "unemployed",
        "A72": "< 1 year",
        "A73": "1 <= ... < 4 years",
        "A74": "4 <= ... < 7 years",
        "A75": ">= 7 years",
    },
    "personal_status_sex": {
        "A91": "male : divorced/separated",
        "A92": "female : divorced/separated/married",
        "A93": "male : single",
        "A94": "male : married/widowed",
        "A95": "female : single",
    },
    "other_debtors": {"A101": "none", "A102": "co-applicant", "A103": "guarantor"},
    "property": {
        "A121": "real estate",
        "A122": "building society savings agreement/ life insurance",
        "A123": "car or other",
        "A124": "unknown / no property",
    },
    "other_installment_plans": {"A141": "bank", "A142": "stores", "A143": "none"},
    "housing": {"A151": "rent", "A152": "own", "A153": "for free"},
    "job": {
        "A171": "unemployed/ unskilled - non-resident",
        "A172": "unskilled - resident",
        "A173": "skilled employee / official",
        "A174": "management/ self-employed/ highly qualified employee/ officer",
    },
    "telephone": {"A191": "none", "A192": "yes"},
    "foreign_worker": {"A201": "yes", "A202": "no"},
    "default": {1: 0, 2: 1},
}


def adult(raw: Path) -> pd.DataFrame:
    """The 48,842 rows of UCI's training and test file in one table, in UCI's order."""
    parts = [
        pd.read_csv(raw / "adult.data", names=ADULT_RAW, skipinitialspace=True),
        pd.read_csv(raw / "adult.test", names=ADULT_RAW, skipinitialspace=True, skiprows=1),
    ]
    table = pd.concat(parts, ignore_index=True).drop(columns=ADULT_DROPPED)
    table["income"] = table["income"].str.rstrip(".")
    is_american = table["native_country"] == "United-States"
    table["native_country"] = table["native_country"].where(is_american, "Other")
    return table.replace("?", None)


def german(raw: Path) -> pd.DataFrame:
    """The 1,000 rows of German Credit with UCI's codes spelled out."""
    table = pd.read_csv(raw / "german.data", names=GERMAN_RAW, sep=" ")
    for column, levels in GERMAN_LEVELS.items():
        table[column] = table[column].map(levels)
    if table.isna().any(axis=None):
        raise SystemExit("german.data holds a code that GERMAN_LEVELS lacks")
    return table


def write(table: pd.DataFrame, path: Path) -> None:
    """Write `table` as compressed CSV; no time stamp, so that the bytes depend on the rows alone."""
    text = table.to_csv(index=False, lineterminator="\n").encode()
    with replacing(path) as draft:
        draft.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))
    print(f"{path.name}: {len(table):,} rows, {path.stat().st_size:,} bytes")


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit(__doc__)
    raw = Path(arguments[0])
    write(adult(raw / "adult"), DATA / "adult.csv.gz")
    write(german(raw / "german"), DATA / "german.csv.gz")


if __name__ == "__main__":
    main(sys.argv[1:])
