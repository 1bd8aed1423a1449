"""Probabilities, models and checks on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicoflex import cli, load
from dicoflex.learning import surrogate

MODULE = """
import numpy as np

def predict_proba(rows):
    yes = 1 / (1 + np.exp(-(rows["age"] - 50) / 5))
    return np.column_stack([1 - yes, yes])

def predict(rows):
    return np.where(rows["age"] > 50, "yes", "no")

class Model:
    classes_ = ["no", "yes"]
    predict_proba = staticmethod(predict_proba)
    predict = staticmethod(predict)

model = Model()
number = 3
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 80, 200), "job": rng.choice(["cook", "nurse"], 200)})
    rows["p"] = (1 / (1 + np.exp(-(rows["age"] - 50) / 5))).round(3)
    rows["answer"] = np.where(rows["age"] > 50, "yes", "no")
    rows.to_csv(tmp_path / "data.csv", index=False)
    rows[rows["answer"] == "no"].head(4).to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "scoring_here.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(surrogate, "STEPS", 60)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def fit(*options: str) -> int:
    return cli.main(["fit", "data.csv", "-o", "m.dicoflex", "--max-seconds", "1", "--seed", "0", *options])


def test_a_column_of_probabilities(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit("--proba", "p", "--drop", "answer", "--no-coherence") == 0
    assert "a score such as '>= 0." in capsys.readouterr().err
    model = load("m.dicoflex")
    assert model.schema_.names == ["age", "job"]
    assert 0 <= model.report_["score"]["least"] < model.report_["score"]["greatest"] <= 1
    asked = ["explain", "m.dicoflex", "rows.csv", "--drop", "answer", "--target", ">=0.5", "--out", "found.json"]
    assert cli.main([*asked, "--seed", "0"]) == 0
    assert all("status" in query for query in json.loads(Path("found.json").read_text())["queries"])


def test_a_model_from_a_module_and_a_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit("--model", "scoring_here:model", "--drop", "p,answer", "--no-coherence") == 0
    said = capsys.readouterr().err
    assert "warning: answers may change 'age'" in said
    assert "UserWarning" not in said
    assert load("m.dicoflex").report_["black_box_rows"] > 200
    asked = ["explain", "m.dicoflex", "rows.csv", "--drop", "p,answer", "--target", "yes", "--out", "found.csv"]
    assert cli.main([*asked, "--check", "scoring_here:predict", "--seed", "0"]) == 0
    found = pd.read_csv("found.csv")
    assert found["valid"].all()
    assert (found["age"] > 50).all()
    assert set(found["status"]) <= {"found", "short"}


def test_a_function_for_probabilities_needs_labels(capsys: pytest.CaptureFixture[str]) -> None:
    assert fit("--model", "scoring_here:predict_proba", "--drop", "p,answer") == 2
    assert "give --label COLUMN as well, or a fitted model" in capsys.readouterr().err
    assert fit("--model", "scoring_here:predict_proba", "--label", "answer", "--drop", "p", "--no-coherence") == 0
    assert load("m.dicoflex").report_["black_box_rows"] > 200


WRONG = {
    "nothing": ([], "give --label COLUMN, --proba COLUMN or --model MODULE:NAME"),
    "both": (["--proba", "p", "--label", "answer"], "--proba goes in place of --label and --model"),
    "no probabilities": (["--proba", "age", "--drop", "answer"], "must hold numbers from 0 to 1"),
    "no colon": (["--model", "scoring_here"], "must read MODULE:NAME, as in --model scoring:predict_proba"),
    "no module": (["--model", "scoring_there:model"], "there is no module 'scoring_there'"),
    "no name": (["--model", "scoring_here:modle"], "did you mean 'model'?"),
    "no callable": (["--model", "scoring_here:number", "--label", "answer"], "is of type int, which can't be called"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_can_not_be_used_is_told(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, said = WRONG[case]
    assert fit(*options) == 2
    assert said in capsys.readouterr().err
