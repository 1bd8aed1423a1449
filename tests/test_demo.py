"""The demo runs from end to end on few rows and leaves a report, a model and the people's rows."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from threadpoolctl import threadpool_limits

from dicoflex import datasets, demo
from dicoflex.explainer import load
from dicoflex.learning import surrogate

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, few_steps: None) -> tuple[Path, str]:
    """The folder that the demo filled and what it printed."""
    out = tmp_path_factory.mktemp("demo") / "made"
    console = Console(file=io.StringIO(), width=110)
    # One thread: on a busy machine, threads that wait for each other take longer than the work itself.
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setattr(surrogate, "STEPS", 300)
        page = demo.run(out, rows=1500, seconds=12.0, seed=0, answers=2, console=console)
    assert page == out / "report.html"
    assert isinstance(console.file, io.StringIO)
    return out, console.file.getvalue()


def test_the_report_shows_every_way_with_pictures(ran: tuple[Path, str]) -> None:
    page = (ran[0] / "report.html").read_text()
    for way in demo.WAYS:
        assert page.count(f"· {way.name}") == 3
    assert 1 <= page.count("data:image/png;base64,") <= 9
    assert sorted(path.name for path in ran[0].iterdir()) == ["income.dicoflex", "people.csv", "report.html"]


def test_the_terminal_tells_the_story(ran: tuple[Path, str]) -> None:
    said = ran[1]
    assert "1,500 people" in said
    assert said.count("so refused") == 3
    for way in demo.WAYS:
        assert said.count(way.name) >= 5
    assert " ms" in said
    assert "dicoflex explain" in said
    assert "dicoflex explore" in said


def test_the_people_are_refused_and_different(ran: tuple[Path, str]) -> None:
    people = pd.read_csv(ran[0] / "people.csv", index_col="person")
    assert len(people) == 3
    assert people["occupation"].is_unique
    assert set(people["sex"]) == {"Female", "Male"}
    assert set(people.index) <= set(datasets.load("adult").X_test.index)


def test_the_saved_model_answers_again(ran: tuple[Path, str]) -> None:
    people = pd.read_csv(ran[0] / "people.csv", index_col="person")
    frozen = ["age", "race", "sex"]
    found = load(ran[0] / "income.dicoflex").explain(people, target=">50K", n=2, frozen=frozen, random_state=0)
    again = people.loc[found.frame.index.get_level_values("row"), frozen]
    assert (found.frame[frozen].to_numpy() == again.to_numpy()).all()
