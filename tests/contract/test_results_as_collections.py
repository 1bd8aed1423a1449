"""A result by its queries: one query's answers, one answer, all in turn, and as Markdown."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import pandas as pd
import pytest

from dicoflex import Counterfactuals, DiCoFlex, Schema
from dicoflex.errors import QueryError


@pytest.fixture(scope="module")
def cfs(judged: DiCoFlex, queries: pd.DataFrame) -> Counterfactuals:
    return judged.explain(queries, target="yes", n=3, random_state=0)


def test_a_label_gives_the_answers_to_its_row(cfs: Counterfactuals) -> None:
    for place, label in enumerate(cfs.queries.index):
        pd.testing.assert_frame_equal(cfs[label], cfs.frame.iloc[cfs.positions == place].droplevel("row"))


def test_a_number_beside_the_label_gives_one_answer(cfs: Counterfactuals) -> None:
    label, number = cfs.frame.index[0]
    assert cfs[label, number].to_dict() == cfs.frame.iloc[0].to_dict()


def test_what_is_not_there_is_named(cfs: Counterfactuals) -> None:
    with pytest.raises(QueryError, match="nobody"):
        cfs["nobody"]
    with pytest.raises(QueryError, match="number 99"):
        cfs[cfs.queries.index[0], 99]


def test_every_query_comes_with_its_answers(cfs: Counterfactuals) -> None:
    pairs = list(cfs)
    assert [query.name for query, _ in pairs] == list(cfs.queries.index)
    assert sum(len(answers) for _, answers in pairs) == len(cfs)


def test_markdown_has_a_line_per_answer_and_reads_no_value_as_markup(cfs: Counterfactuals, tmp_path: Path) -> None:
    text = cfs.to_markdown()
    lines = [line for line in text.splitlines() if line.startswith("|")]
    asked = sum(len(answers) > 0 for _, answers in cfs)
    assert len(lines) == len(cfs) + 3 * asked
    odd = pd.DataFrame({"a|b": [1, 2, 3] * 20, "job": ["<b>x</b>", "*y*", "z"] * 20})
    index = pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"])
    answer = odd.iloc[[1]].set_axis(index)
    info = pd.DataFrame(
        {"target": "yes", "log_density": [-1.0], "n_changed": 2, "proximity": 0.5, "valid": True}, index
    )
    made = Counterfactuals(
        odd.head(1), answer, info, cfs.positions[:1] * 0, pd.DataFrame(columns=["row", "wanted", "got", "reason"]),
        Schema.infer(odd),
    )  # fmt: skip
    assert "a\\|b" in made.to_markdown()
    assert "\\*y\\*" in made.to_markdown()
    cfs.to_markdown(tmp_path / "answers.md")
    assert (tmp_path / "answers.md").read_text(encoding="utf-8") == text


def test_open_shows_the_page(cfs: Counterfactuals, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: shown.append(address))
    path = Path(cfs.open())
    try:
        assert shown == [path.as_uri()]
        assert "<html" in path.read_text(encoding="utf-8")
    finally:
        path.unlink()


def test_only_features_to_vary_change(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    free = ["gain", "member", "score"]
    cfs = judged.explain(queries, target="yes", n=4, features_to_vary=free, random_state=0)
    rest = [name for name in queries if name not in free]
    same = judged.explain(queries, target="yes", n=4, frozen=rest, random_state=0)
    assert len(cfs) > 0
    assert set(cfs.changes()["feature"]) <= set(free)
    pd.testing.assert_frame_equal(cfs.frame, same.frame)
    assert cfs.verify()["holds"].all()


@pytest.mark.parametrize(("free", "words"), [(["gian"], "gain"), ([], "empty"), ("gain", "features_to_vary=")])
def test_wrong_features_to_vary_are_refused(judged: DiCoFlex, queries: pd.DataFrame, free: object, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        judged.explain(queries, target="yes", features_to_vary=free)
