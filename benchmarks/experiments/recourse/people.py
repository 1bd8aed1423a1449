"""The people of an audit, their judges, and what each person may do: as constraints, and as a plain list of rows."""

from __future__ import annotations

__all__ = [
    "ACTIONS", "AGE", "EMPLOYED", "FLAGS", "FOLDS", "GOOD", "JUDGES", "LAST_YEAR", "MOST_YEARS", "RESIDENCE", "TABLE",
    "Fold", "folds", "is_there", "reachable",
]  # fmt: skip

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.tasks import Task
from dicoflex import Constraints, Schema, delta
from dicoflex.datasets import Dataset
from dicoflex.datasets.downloads import find, folders
from dicoflex.errors import DataError

TABLE, FILE, LABEL, GOOD, BAD = "reach-german", "german.csv", "good", 1, 0
FOLDS = 5
AGE, RESIDENCE, EMPLOYED = "Age", "YearsAtResidence", "YearsEmployedGeq1"
NEEDS = {"CheckingAcctGeq0": "CheckingAcctExists", "SavingsAcctGeq100": "SavingsAcctExists"}
FLAGS = (
    EMPLOYED,
    "HasGuarantor",
    "HistoryOfBankInstallments",
    "HistoryOfStoreInstallments",
    *(name for pair in NEEDS.items() for name in reversed(pair)),
)
MOST_YEARS, LAST_YEAR, OLDEST = 2, 7, 100
# What the README beside the table lets a person do, as a lender would state it; other features are frozen in the call.
ACTIONS = Constraints(
    ranges={RESIDENCE: [delta(0, MOST_YEARS), (None, LAST_YEAR)]},
    allowed={name: [GOOD] for name in FLAGS},
    rules=[f"if {more} == 1 then {account} == 1" for more, account in NEEDS.items()],
    consequences={
        AGE: f"was.{AGE} + ({RESIDENCE} - was.{RESIDENCE}) + (if changed({EMPLOYED}) then 1 else 0)",
    },
)
JUDGES: dict[str, Callable[[int], Any]] = {
    "logistic regression": lambda _seed: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    "boosted trees": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "random forest": lambda seed: RandomForestClassifier(random_state=seed),
}


@dataclass(frozen=True, eq=False)
class Fold:
    """A fifth of the people, judged by a model that learned from the others.

    people: those whom the model refuses. truly: which of them are bad by the label, too.
    """

    number: int
    data: Dataset
    judge: Any
    people: pd.DataFrame
    truly: NDArray[np.bool_]

    @cached_property
    def ways(self) -> list[pd.DataFrame]:
        """Per person every row that is allowed, with what the model says of it; nothing of the library has a part."""
        lists = [reachable(person) for _, person in self.people.iterrows()]
        said = np.asarray(self.judge.predict(pd.concat(lists, ignore_index=True)))
        ends = np.cumsum([0, *map(len, lists)])
        return [rows.assign(said=said[ends[i] : ends[i + 1]]) for i, rows in enumerate(lists)]

    @cached_property
    def has_way(self) -> NDArray[np.bool_]:
        """Who has a way."""
        return np.array([bool((rows["said"] == GOOD).any()) for rows in self.ways])

    def first(self, n: int) -> Fold:
        """The fold with so many of its people at most."""
        return replace(self, people=self.people.head(n), truly=self.truly[:n])

    @property
    def frozen(self) -> list[str]:
        """What stays as it is."""
        return [name for name in self.data.schema.names if name not in (AGE, RESIDENCE, *FLAGS)]

    @cached_property
    def task(self) -> Task:
        """The fold as the benchmarks' methods see it."""
        return Task(self.data, self.judge, self.people, np.full(len(self.people), GOOD))


def reachable(person: pd.Series) -> pd.DataFrame:
    """Every row that a person may go to, but the own one: plain loops over what the README says."""
    own = {name: int(value) for name, value in person.items()}
    years = [own[RESIDENCE] + more for more in range(MOST_YEARS + 1) if more == 0 or own[RESIDENCE] + more <= LAST_YEAR]
    flags = [[value] if value == 1 else [0, 1] for value in (own[name] for name in FLAGS)]
    rows = []
    for year, *chosen in product(years, *flags):
        row = own | {RESIDENCE: year} | dict(zip(FLAGS, chosen, strict=True))
        if any(row[more] == 1 and row[account] == 0 for more, account in NEEDS.items()) or row == own:
            continue
        row[AGE] = own[AGE] + (row[RESIDENCE] - own[RESIDENCE]) + (row[EMPLOYED] - own[EMPLOYED])
        rows.append(row)
    return pd.DataFrame(rows, columns=list(own))


@lru_cache(maxsize=8)
def folds(judge: str, seed: int, n: int = FOLDS) -> list[Fold]:
    """The first `n` of five folds, each judged by a model of the others."""
    table = _table()
    X, y = table.drop(columns=LABEL), table[LABEL]
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=seed).split(X, y)
    return [_fold(k, X, y, train, test, JUDGES[judge](seed)) for k, (train, test) in enumerate(parts) if k < n]


def is_there() -> bool:
    """Whether the table is in the folder of tables."""
    return find(TABLE, FILE) is not None


def _table() -> pd.DataFrame:
    path = find(TABLE, FILE)
    if path is None:
        raise DataError(f"the audit of recourse needs the file {folders()[0] / TABLE / FILE}, which is not there")
    return pd.read_csv(path)


def _fold(number: int, X: pd.DataFrame, y: pd.Series, train: Any, test: Any, judge: Any) -> Fold:
    judge.fit(X.iloc[train], y.iloc[train])
    flags = [name for name in X.columns if set(X[name]) <= {0, 1}]
    # The table ends where nobody lived longer; the action set goes on.
    schema = Schema.infer(
        X,
        kinds=dict.fromkeys(flags, "boolean"),
        limits={AGE: (float(X[AGE].min()), OLDEST), RESIDENCE: (float(X[RESIDENCE].min()), LAST_YEAR)},
    )
    data = Dataset(TABLE, X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test], schema, label=LABEL, positive=GOOD)
    refused = np.asarray(judge.predict(data.X_test)) == BAD
    people = data.X_test[refused].reset_index(drop=True)
    return Fold(number, data, judge, people, np.asarray(data.y_test[refused] == BAD))
