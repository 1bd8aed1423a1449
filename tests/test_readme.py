"""The README's Python examples run, in their order and in one namespace, on a table like the one that they speak of."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import dicoflex
from dicoflex import DiCoFlex, datasets

pytestmark = pytest.mark.slow

README = Path(__file__).resolve().parents[1] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
QUICK = {"training": {"epochs": 1, "min_steps": 100}, "fit_config": {"passes": 2, "rounds": 0}, "verbose": False}


def given() -> dict[str, Any]:
    """What the README takes for granted: rows, a classifier, rows that it refused, and the people behind them."""
    adult = datasets.load("adult")
    ordered = pd.CategoricalDtype(adult.schema["education"].levels, ordered=True)
    X, others = (frame.astype({"education": ordered}) for frame in (adult.X_train.head(3000), adult.X_test))
    scaled = (StandardScaler(), make_column_selector(dtype_include="number"))
    one_hot = (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number"))
    clf = make_pipeline(make_column_transformer(scaled, one_hot), LogisticRegression(max_iter=1000))
    clf.fit(X, adult.y_train.head(3000))
    refused = others[clf.predict(others) == "<=50K"]
    return {"X": X, "clf": clf, "rows": refused.head(3), "people": refused.loc[[1248]]}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The names that the examples leave, and the folder in which they ran."""
    folder, names = tmp_path_factory.mktemp("readme"), given()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(dicoflex, "DiCoFlex", partial(DiCoFlex, **QUICK), raising=False)
        for number, example in enumerate(EXAMPLES, 1):
            exec(compile(example, f"README.md, example {number}", "exec"), names)
    return names, folder


def test_every_example_is_found() -> None:
    assert len(EXAMPLES) == README.read_text(encoding="utf-8").count("```python") >= 1


def test_files_are_written(ran: tuple[dict[str, Any], Path]) -> None:
    assert sorted(path.name for path in ran[1].iterdir()) == ["answers.html", "income.dicoflex"]


def test_answers_obey_the_wish(ran: tuple[dict[str, Any], Path]) -> None:
    cfs, people = ran[0]["cfs"], ran[0]["people"]
    assert len(cfs) > 0
    assert cfs.verify()["holds"].all()
    assert (cfs.frame["sex"] == people["sex"].iloc[0]).all()
    assert isinstance(cfs.changes(), pd.DataFrame)
