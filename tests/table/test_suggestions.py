"""What features suggest: ages wait, what is fixed or protected stays, nothing is withheld, and nothing is imposed."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints, Schema, cli, datasets, delta
from dicoflex.answers.relaxation import relaxed
from dicoflex.learning.plan import schema_for
from dicoflex.table.encoding import Encoding


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


PROTECTED = ["sex", "Gender", "race", "native_country", "foreign-worker", "yearOfBirth", "SEX", "is_male", "race1"]


@pytest.mark.parametrize("name", PROTECTED)
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
    assert preset.forbidden == {"workclass": (None,), "occupation": (None,), "capital_gain": (99999,)}
    assert preset.ranges == adult.schema.suggested().ranges != {}
    assert preset.decrease == ("capital_loss",)
    moves = preset.transitions["marital_status"]
    assert "Never-married" not in moves
    assert moves["Widowed"]
    assert all("Never-married" not in after for after in moves.values())
    adult.schema.with_constraints(preset)


def test_what_is_past_or_said_by_others_stays_and_time_only_passes() -> None:
    """On HELOC nothing was suggested: 89 % of answers changed the bureau's score, 25 % lowered an "ever" counter."""
    names = ["ExternalRiskEstimate", "NumTrades60Ever2DerogPubRec", "MSinceOldestTradeOpen", "days_since_login", "fico"]
    found = Schema.infer(frame(**{name: [1, 52] for name in names})).suggested()
    assert set(found.frozen) == {"ExternalRiskEstimate", "NumTrades60Ever2DerogPubRec", "fico"}
    assert set(found.increase) == {"MSinceOldestTradeOpen", "days_since_login"}
    assert found.ranges["MSinceOldestTradeOpen"][0].high == 60
    assert found.ranges["days_since_login"][0].high == 5 * 365


def test_rules_between_columns_that_hold_in_every_row_are_offered() -> None:
    rng = np.random.default_rng(0)
    total = rng.integers(1, 40, 300)
    rows = pd.DataFrame({"good trades": rng.integers(0, total + 1), "total": total, "far": rng.integers(500, 900, 300)})
    schema = Schema.infer(rows)
    assert schema.suggested(rows).rules == ("`good trades` <= total",)
    assert not schema.suggested().rules
    assert Schema.infer(rows, suggest=True).constraints.rules == ("`good trades` <= total",)


def test_rules_between_columns_leave_out_what_is_not_measured() -> None:
    """HELOC's counters hold -9 where there is no record, and one of three orders follows from the other two."""
    rng = np.random.default_rng(0)
    total = rng.integers(1, 40, 400)
    good = rng.integers(0, total + 1)
    rows = pd.DataFrame({"good": good, "total": total, "best": np.minimum(good, rng.integers(0, 40, 400))})
    rows.loc[rng.random(400) < 0.05, :] = -9
    rows["limit"] = rng.integers(500, 900, 400)
    rows["debt"] = np.where(rng.random(400) < 0.1, np.nan, rows["limit"] * rng.random(400))
    found = Schema.infer(rows).suggested(rows).rules
    assert found == (
        "good in [-9] or total in [-9] or good <= total",
        "best in [-9] or good in [-9] or best <= good",
        "debt is missing or debt <= limit",
    )
    assert Constraints(rules=found).parsed_rules


def test_the_command_line_offers_rules_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    total = rng.integers(1, 40, 300)
    pd.DataFrame({"good": rng.integers(0, total + 1), "total": total}).to_csv(tmp_path / "t.csv", index=False)
    assert cli.main(["schema", str(tmp_path / "t.csv")]) == 0
    assert "good <= total must hold" in capsys.readouterr().out


def test_a_fit_warns_of_protected_features_that_may_change() -> None:
    rows = frame(age=[31, 52], sex=["f", "m"], pay=[1.5, 2.5])
    with pytest.warns(UserWarning, match=r"answers may change 'sex', 'age'.*Schema.infer\(X, suggest=True\)"):
        schema_for(rows, None, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schema_for(rows, Schema.infer(rows, suggest=True), 1)
        schema_for(rows[["pay"]], None, 1)


def test_no_protected_feature_is_relaxed() -> None:
    rows = frame(sex=["f", "m"], pay=[1, 2])
    given = Constraints(frozen=["sex", "pay"], rules=["sex == was.sex or pay > 1", "pay > 0"])
    tried: list[Constraints] = []
    relaxed(given, given.one_by_one(), np.array([0.0, 1.0]), Encoding.unit(Schema.infer(rows)), tried.append)
    assert {(one.frozen, one.rules) for one in tried} == {
        (("sex",), given.rules),
        (given.frozen, given.rules[:1]),
    }


def test_what_was_suggested_to_stay_is_never_offered_to_go() -> None:
    """After `suggested()` froze them, it was offered to free race or sex; nor does anybody grow younger."""
    rows = frame(fico=[600, 700], age_group=["young", "old"], age=[31, 52], pay=[1, 2])
    schema = Schema.infer(rows)
    given = schema.suggested().merge(Constraints(frozen=["pay"]))
    assert given.frozen == ("fico", "age_group", "pay")
    tried: list[Constraints] = []
    own = Encoding.unit(schema).encode(rows)[0]
    steps = relaxed(given, given.one_by_one(), own, Encoding.unit(schema), tried.append)
    assert not steps
    assert all({"fico", "age_group"} <= set(one.frozen) and one.increase == ("age",) for one in tried)
