"""What names suggest: ages grow, what is fixed or protected stays, and nothing is imposed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dicoflex import Constraints, Schema, cli, datasets


def frame(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({name: values * 3 for name, values in columns.items()})


@pytest.mark.parametrize("name", ["age", "Age", "AGE", "customer_age", "ageAtEntry", "age.years"])
def test_ages_grow_whatever_their_spelling(name: str) -> None:
    assert Schema.infer(frame(**{name: [31, 52]})).suggested() == Constraints(increase=[name])


@pytest.mark.parametrize("name", ["mortgage", "usage", "agency", "sexton", "racecar", "country", "wages"])
def test_words_inside_other_words_suggest_nothing(name: str) -> None:
    assert Schema.infer(frame(**{name: [1.5, 2.5]})).suggested().is_empty


@pytest.mark.parametrize("name", ["sex", "Gender", "race", "native_country", "foreign-worker", "yearOfBirth", "SEX"])
def test_what_is_fixed_or_protected_stays(name: str) -> None:
    assert Schema.infer(frame(**{name: ["a", "b"]})).suggested() == Constraints(frozen=[name])


def test_an_age_without_an_order_stays() -> None:
    schema = Schema.infer(frame(age_group=["young", "old"]))
    assert schema.suggested() == Constraints(frozen=["age_group"])
    ordered = Schema.infer(frame(age_group=["young", "old"]), orders={"age_group": ["young", "old"]})
    assert ordered.suggested() == Constraints(increase=["age_group"])


def test_suggestions_are_taken_where_that_is_asked_for() -> None:
    rows = frame(age=[31, 52], sex=["f", "m"])
    assert Schema.infer(rows).constraints.is_empty
    assert Schema.infer(rows, suggest=True).constraints == Constraints(frozen=["sex"], increase=["age"])


def test_the_command_line_shows_and_takes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "s.json"
    frame(age=[31, 52], sex=["f", "m"], pay=[1.5, 2.5]).to_csv(table, index=False)
    assert cli.main(["schema", str(table), "--min-count", "1", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "--suggest" in said
    assert "sex may not change" in said
    assert Schema.from_json(out).constraints.is_empty
    assert cli.main(["schema", str(table), "--min-count", "1", "--suggest", "--out", str(out)]) == 0
    assert "--suggest" not in capsys.readouterr().out
    assert Schema.from_json(out).constraints == Constraints(frozen=["sex"], increase=["age"])
    assert cli.main(["fit", str(table), "--label", "pay", "--schema", str(out), "--suggest", "-o", str(out)]) == 2


def test_what_a_person_of_the_census_can_do() -> None:
    """Nobody unmarries, and what names suggest is among it."""
    adult = datasets.load("adult")
    preset = adult.preset
    assert set(adult.schema.suggested().frozen) <= set(preset.frozen)
    assert set(adult.schema.suggested().increase) <= set(preset.increase)
    moves = preset.transitions["marital_status"]
    assert "Never-married" not in moves
    assert moves["Widowed"]
    assert all("Never-married" not in after for after in moves.values())
    adult.schema.with_constraints(preset)
