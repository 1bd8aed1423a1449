"""The leak audit as a benchmark: every model is attacked, and the page says what its figures are no proof of."""

from __future__ import annotations

from typing import Any

from benchmarks.experiments import leak


def test_every_model_is_audited(stored: Any) -> None:
    results = stored("leak")
    assert [result.cell.setting("model") for result in results] == [*leak.MODELS, "600 rows"]
    for result in results:
        usual, novel = (result.figures["audits"][way] for way in ("as usual", "novel"))
        assert usual["members"] == novel["members"] > 500
        assert novel["copies"]["of_members"] == 0
        assert {"density", "contrast", "surrogate", "distance"} <= set(usual["attacks"])
        assert ("rows" in usual["attacks"]) == result.cell.setting("coherence")
        assert set(usual["planted"]) == (set(leak.TIMES) if result.cell.setting("planted") else set())


def test_values_are_guessed_of_members_and_others(stored: Any) -> None:
    for result in stored("leak"):
        found = result.figures["audits"]["as usual"]["attributes"]
        assert set(found) == ({"density", "rows"} if result.cell.setting("coherence") else {"density"})
        assert all(0 <= one["mean"]["members"] <= 1 for one in found.values())
    assert result.figures["audits"]["novel"]["attributes"] == {}


def test_less_is_told_with_a_count_of_five(stored: Any) -> None:
    told = {r.cell.setting("model"): r.figures["audits"]["as usual"]["told"] for r in stored("leak")}
    assert told["min_count=5"] == {"levels": 0, "single values": 0, "extremes": 0}
    assert told["min_count=1"]["single values"] > 0
    assert told["min_count=1"]["extremes"] > 0


def test_the_page_says_that_nothing_is_proved(page: Any) -> None:
    text = page("leak")
    assert "not that there is nothing to find" in " ".join(text.split())
    assert text.count("\n| min_count=5 |") == 4
    assert "| 600 rows | rows |" in text
    assert "| ten times |" in text
