"""Two explorers: one of a model that refines its answers, one of a table with awkward names and no refinement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex
from dicoflex.answers.asking import probability
from dicoflex.examples import EXAMPLES, rows_like
from dicoflex.explorer import Explorer, Texts
from dicoflex.model import Model

NAMES = {
    "age": "the age",
    "gain": "gain 'net'",
    "price": 'price "€"',
    "score": "score 😀",
    "job": "<script>job</script>",
    "grade": 7,
}
TEXTS = {
    "name": "Loans",
    "word": "applicant",
    "wanted": "yes",
    "results": {"yes": "granted", "no": "refused"},
    "show": ["city"],
    "features": {
        "the age": {"text": "Age", "unit": "years", "help": "In full years.", "group": "You"},
        "city": {"levels": {"Ulm": "Ulm (Donau)"}},
    },
}


@pytest.fixture(scope="session")
def loans_file() -> Path:
    return next(path for path in EXAMPLES if path.stem == "perceptron")


@pytest.fixture(scope="session")
def loans(loans_file: Path) -> Explorer:
    """Forty people who lack the result, nobody hopelessly, and twenty who have it."""
    model = Model.load(loans_file)
    rows = rows_like(model.schema, 2000, seed=4)
    chance = probability(model, rows)["yes"]
    lacking = rows[chance.between(0.05, 0.5)].head(40)
    people = pd.concat([lacking, rows[chance > 0.6].head(20)], ignore_index=True)
    return Explorer(model, people, name="loans", target="yes")


@pytest.fixture(scope="session")
def awkward_rows(applicants: pd.DataFrame) -> pd.DataFrame:
    return applicants.rename(columns=NAMES)


@pytest.fixture(scope="session")
def awkward(
    applicants: pd.DataFrame,
    awkward_rows: pd.DataFrame,
    labels: np.ndarray,
    black_box: Callable[[pd.DataFrame], np.ndarray],
    quickly: Callable[..., DiCoFlex],
) -> Explorer:
    back = {new: old for old, new in NAMES.items()}
    fitted = quickly(awkward_rows, labels, predict_proba=lambda rows: black_box(rows.rename(columns=back)), steps=300)
    return Explorer(fitted.model_, awkward_rows.head(30), texts=Texts.model_validate(TEXTS), name="awkward")


@pytest.fixture(params=["loans", "awkward"])
def explorer(request: pytest.FixtureRequest) -> Explorer:
    return request.getfixturevalue(request.param)


@pytest.fixture
def refused(explorer: Explorer) -> list[str]:
    """People who lack the wanted result, the nearest to it first."""
    listed = explorer.answer("people", {"order": "near"})["people"]
    return [one["id"] for one in listed if one["result"] != explorer.model.labels[explorer.wanted]]


def ask(explorer: Explorer, person: str, **more: Any) -> dict[str, Any]:
    return explorer.answer("ask", {"person": person, "target": "yes", **more})


@pytest.fixture
def asked() -> Callable[..., dict[str, Any]]:
    return ask
