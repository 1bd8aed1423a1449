"""What features suggest: ages wait, what is fixed or protected stays, nothing is withheld, and nothing is imposed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dicoflex import Constraints, Schema, cli, datasets, delta


def frame(**columns: list[object]) -> pd.DataFrame:
    return pd.DataFrame({name: values * 3 for name, values in columns.items()})


@pytest.mark.parametrize("name", ["age", "Age", "AGE", "customer_age", "ageAtEntry", "age.years"])
def test_ages_grow_whatever_their_spelling(name: str) -> None:
    wait = {name: delta(0, 5)}
    assert Schema.infer(frame(**{name: [31, 52]})).suggested() == Constraints(increase=[name], ranges=wait)


@pytest.mark.parametrize("values", [[3, 400], [2, 12]])
def test_an_age_that_is_told_in_other_units_grows_without_end(values: list[int]) -> None:
    """Of an account's age in months, or a child's in years, five more are no long wait."""
    assert Schema.infer(frame(age=values)).suggested() == Constraints(increase=["age"])


def test_nothing_becomes_missing() -> None:
    rows = frame(job=["cook", None], pay=[1.5, None], town=["Ulm", "Rome"], sex=["f", None])
    suggested = Schema.infer(rows).suggested()
    assert suggested == Constraints(frozen=["sex"], forbidden={"job": [None], "pay": [None]})
    assert [text for kind, _, text in suggested.describe() if kind == "forbidden"] == [
        "job may not become missing",
        "pay may not become missing",
    ]


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
    taken = Constraints(frozen=["sex"], increase=["age"], ranges={"age": delta(0, 5)})
    assert Schema.infer(rows, suggest=True).constraints == taken


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
    taken = Constraints(frozen=["sex"], increase=["age"], ranges={"age": delta(0, 5)})
    assert Schema.from_json(out).constraints == taken
    assert cli.main(["fit", str(table), "--label", "pay", "--schema", str(out), "--suggest", "-o", str(out)]) == 2


def test_what_a_person_of_the_census_can_do() -> None:
    """Nobody unmarries, withholds a value, loses capital or waits for long, and what names suggest is among it."""
    adult = datasets.load("adult")
    preset = adult.preset
    assert set(adult.schema.suggested().frozen) <= set(preset.frozen)
    assert set(adult.schema.suggested().increase) <= set(preset.increase)
    assert preset.forbidden == {"workclass": (None,), "occupation": (None,)}
    assert preset.ranges == adult.schema.suggested().ranges != {}
    assert preset.decrease == ("capital_loss",)
    moves = preset.transitions["marital_status"]
    assert "Never-married" not in moves
    assert moves["Widowed"]
    assert all("Never-married" not in after for after in moves.values())
    adult.schema.with_constraints(preset)
