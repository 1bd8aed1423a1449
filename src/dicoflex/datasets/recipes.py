"""The named tables: where each comes from, its label, kinds, orders and split."""

from __future__ import annotations

__all__ = ["RECIPES", "Recipe", "Remote"]

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class Remote:
    """A public copy of a whole table on OpenML: our names for its columns, in their order there, and for its labels."""

    data_id: int
    columns: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Recipe:
    """How one table is read: its label, the columns that are numbers, and what can't be seen from the values.

    never_again: feature to the level that nobody comes back to.
    sha256: the checksum of the paper's training and test rows, as `checksum` takes it.
    """

    label: str
    positive: int | str
    numbers: tuple[str, ...]
    immutable: tuple[str, ...] = ()
    increase: tuple[str, ...] = ()
    decrease: tuple[str, ...] = ()
    never_again: Mapping[str, str] = field(default_factory=dict)
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
        decrease=("capital_loss",),
        never_again={"marital_status": "Never-married"},
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
