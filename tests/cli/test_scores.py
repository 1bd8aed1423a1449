"""A table with a column of scores, from the command line: fit, inspect, explain, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from dicoflex import cli, load
from dicoflex.learning import surrogate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data.csv, whose column `points` holds scores, rows.csv, and the model m.dicoflex."""
    place = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"age": rng.integers(18, 70, 400), "job": rng.choice(["cook", "nurse"], 400)})
    rows["debt"] = rng.integers(0, 60, 400)
    points = 500 + 2 * rows["age"] + 40 * (rows["job"] == "nurse") - 3 * rows["debt"]
    rows.assign(points=points).to_csv(place / "data.csv", index=False)
    rows.head(3).to_csv(place / "rows.csv", index=False)
    words = ["fit", str(place / "data.csv"), "--label", "points", "--task", "scores", "--seed", "0"]
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setattr(surrogate, "STEPS", 300)
        assert cli.main([*words, "-o", str(place / "m.dicoflex"), "--max-seconds", "30", "--quiet"]) == 0
    return place


def explain(folder: Path, *more: str) -> int:
    return cli.main(["explain", str(folder / "m.dicoflex"), str(folder / "rows.csv"), "--seed", "0", *more])


def test_inspect_says_which_scores_can_be_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["inspect", str(folder / "m.dicoflex")]) == 0
    told = capsys.readouterr().out
    assert "an interval must hold about" in " ".join(told.split())
    assert "of how scores differ" in " ".join(told.split())
    assert cli.main(["inspect", str(folder / "m.dicoflex"), "--reveals"]) == 0
    assert "how scores are spread" in capsys.readouterr().out


@pytest.mark.parametrize("target", [">=620", "<=480", "+40", "520..600"])
def test_explain(folder: Path, target: str) -> None:
    assert explain(folder, "--target", target, "--n", "2", "--verify", "--out", str(folder / "found.json")) == 0
    record = json.loads((folder / "found.json").read_text())
    answers = [one for query in record["queries"] for one in query["counterfactuals"]]
    assert len(answers) == 2 * sum(query["status"] != "already" for query in record["queries"]) > 0
    assert all(isinstance(one["info"]["score"], float) for one in answers)


def test_what_is_no_score_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder, "--target", "yes") == 2
    assert "asks for no score; write '>=620'" in capsys.readouterr().err
    assert explain(folder, "--target", ">=600", "--target", ">=700") == 2
    assert "is one too many" in " ".join(capsys.readouterr().err.split())
    assert explain(folder) == 2
    assert "this model explains scores" in " ".join(capsys.readouterr().err.split())


def test_the_explorer_is_told_which_scores_are_hoped_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["explore", str(folder / "m.dicoflex"), str(folder / "rows.csv")]
    assert cli.main(words) == 2
    assert "say which are hoped for" in " ".join(capsys.readouterr().err.split())
    assert cli.main([*words, "--target", "+40"]) == 2
    assert "give an interval" in " ".join(capsys.readouterr().err.split())


def test_a_model_of_scores_is_audited_no_further(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(folder / name) for name in ("m.dicoflex", "data.csv", "rows.csv")]
    assert cli.main(["audit", "leak", *paths]) == 2
    assert "this one explains scores" in " ".join(capsys.readouterr().err.split())
    assert load(folder / "m.dicoflex").report_["score"]["greatest"] > 600
