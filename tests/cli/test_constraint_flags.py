"""Words of the command line become the constraints that they read as, in the names and levels of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dicoflex.cli.constraint_flags import Flags, constraints, features, matches
from dicoflex.constraints import Constraints, delta, per_unit, relative
from dicoflex.errors import ConstraintError, QueryError, SettingError, UserError
from dicoflex.table.schema import Schema

ODD = "a=b, c"
TABLE = pd.DataFrame(
    {
        "hours": [20, 60, 40, 30],
        "income": [1000.5, 2000.0, -500.0, 10.0],
        "housing": ["own", "rent", "free, or so", "own"],
        "degree": pd.Categorical(["Bachelor", "Master", "PhD", ">PhD"], ordered=True),
        "area": pd.Categorical([1, 2, 5, 1]),
        "mixed": pd.Series([1, "1", 2, None], dtype=object),
        "member": [True, False, True, True],
        ODD: [1, 2, 3, 4],
        7: [1.0, 2.0, 3.0, 4.5],
    }
)
SCHEMA = Schema.infer(TABLE)


def said(**words: Any) -> Constraints:
    return constraints(Flags(**words), SCHEMA)


MEANINGS: dict[str, tuple[dict[str, Any], Constraints]] = {
    "nothing": ({}, Constraints()),
    "directions": (
        {"increase": ["hours,income", ODD], "decrease": ["degree", "7"]},
        Constraints(increase=["hours", "income", ODD], decrease=["degree", 7]),
    ),
    "frozen": ({"frozen": ["hours,7", "hours"]}, Constraints(frozen=["hours", 7])),
    "range": ({"ranges": ["hours=20:50"]}, Constraints(ranges={"hours": (20, 50)})),
    "negative range": ({"ranges": ["income=-500:1e3"]}, Constraints(ranges={"income": (-500, 1000)})),
    "range open above": ({"ranges": ["hours=20:"]}, Constraints(ranges={"hours": (20, None)})),
    "range open below": ({"ranges": ["hours=:50"]}, Constraints(ranges={"hours": (None, 50)})),
    "percent": ({"ranges": ["income=-10%:+25%"]}, Constraints(ranges={"income": relative(-0.1, 0.25)})),
    "percent from zero": ({"ranges": ["income=0:25%"]}, Constraints(ranges={"income": relative(0, 0.25)})),
    "percent open": ({"ranges": ["income=-7%:"]}, Constraints(ranges={"income": relative(-0.07, None)})),
    "difference": ({"ranges": ["hours=+0:+5"]}, Constraints(ranges={"hours": delta(0, 5)})),
    "difference downwards": ({"ranges": ["hours=-5:+0"]}, Constraints(ranges={"hours": delta(-5, 0)})),
    "difference open": ({"ranges": ["hours=+1:"]}, Constraints(ranges={"hours": delta(1, None)})),
    "two ranges": (
        {"ranges": ["hours=20:50", "hours=+0:+5"]},
        Constraints(ranges={"hours": [(20, 50), delta(0, 5)]}),
    ),
    "blanks": ({"ranges": [" hours = 20 : 50 "]}, Constraints(ranges={"hours": (20, 50)})),
    "a name with an equals sign": ({"ranges": [f"{ODD}=1:2"]}, Constraints(ranges={ODD: (1, 2)})),
    "a name that is a number": ({"ranges": ["7=1:2"]}, Constraints(ranges={7: (1, 2)})),
    "allowed": ({"allowed": ["housing=own,rent"]}, Constraints(allowed={"housing": ["own", "rent"]})),
    "allowed in two words": (
        {"allowed": ["housing=own", "housing=rent"]},
        Constraints(allowed={"housing": ["own", "rent"]}),
    ),
    "a level with a comma": (
        {"forbidden": ["housing=own, free, or so"]},
        Constraints(forbidden={"housing": ["own", "free, or so"]}),
    ),
    "a level that is a number": ({"allowed": ["area=1,5.0"]}, Constraints(allowed={"area": [1, 5]})),
    "a level that is a truth": ({"allowed": ["member=true"]}, Constraints(allowed={"member": [True]})),
    "numbers": ({"allowed": ["hours=20,40"]}, Constraints(allowed={"hours": [20, 40]})),
    "missing": ({"forbidden": ["mixed=2,missing"]}, Constraints(forbidden={"mixed": [2, None]})),
    "transition": ({"transitions": ["degree=Master>PhD"]}, Constraints(transitions={"degree": {"Master": ["PhD"]}})),
    "transition to nowhere": ({"transitions": ["degree=PhD>"]}, Constraints(transitions={"degree": {"PhD": []}})),
    "transitions of one feature": (
        {"transitions": ["degree=Bachelor>Master,PhD", "degree=Master>PhD", "degree=Master>Bachelor"]},
        Constraints(transitions={"degree": {"Bachelor": ["Master", "PhD"], "Master": ["PhD", "Bachelor"]}}),
    ),
    "a level with the sign of a transition": (
        {"transitions": ["degree=>PhD>>PhD,PhD"]},
        Constraints(transitions={"degree": {">PhD": [">PhD", "PhD"]}}),
    ),
    "steps": ({"steps": ["income=2.5", "hours=5"]}, Constraints(steps={"income": 2.5, "hours": 5})),
    "budget": ({"max_changes": 3}, Constraints(max_changes=3)),
    "costs": (
        {"cost": ["housing=5", "hours=0.5/unit", "income= 2 /unit"], "max_cost": 8.0},
        Constraints(cost={"housing": 5, "hours": per_unit(0.5), "income": per_unit(2)}, max_cost=8),
    ),
    "rules": (
        {"rules": ["hours <= 50", "housing in ['own', 'rent']"]},
        Constraints(rules=["hours <= 50", "housing in ['own', 'rent']"]),
    ),
    "strict": ({"strict": True}, Constraints(strict=True)),
}


@pytest.mark.parametrize("name", MEANINGS)
def test_words_mean(name: str) -> None:
    words, meant = MEANINGS[name]
    assert said(**words).model_dump() == meant.model_dump()


def test_a_level_keeps_its_type() -> None:
    assert type(said(allowed=["area=1"]).allowed["area"][0]) is int
    assert said(allowed=["member=False"]).allowed["member"] == (False,)
    assert matches("1", ["1", 2]) == ["1"]


REFUSALS: dict[str, tuple[type[UserError], str, dict[str, Any]]] = {
    "unknown feature": (
        QueryError,
        "--increase: feature 'hour' is unknown; did you mean 'hours'?",
        {"increase": ["hour"]},
    ),
    "unknown feature with a value": (QueryError, "--step 'hour=5': feature 'hour' is unknown", {"steps": ["hour=5"]}),
    "no equals sign": (
        SettingError,
        "--range 'hours' must read feature=..., as in --range hours=20:50",
        {"ranges": ["hours"]},
    ),
    "no feature": (SettingError, "must read feature=", {"allowed": ["=own"]}),
    "no value": (SettingError, "must read feature=", {"allowed": ["housing="]}),
    "no colon": (SettingError, "--range 'hours=20' must read", {"ranges": ["hours=20"]}),
    "two colons": (SettingError, "must read", {"ranges": ["hours=20:30:40"]}),
    "no number": (SettingError, "must read", {"ranges": ["hours=few:many"]}),
    "mixed percent": (SettingError, "mixes two kinds of limits", {"ranges": ["income=-10%:25"]}),
    "mixed sign": (SettingError, "mixes two kinds of limits", {"ranges": ["hours=20:+5"]}),
    "wrong way round": (
        ConstraintError,
        "ranges 'hours': the low limit 50 is above the high limit 20",
        {"ranges": ["hours=50:20"]},
    ),
    "no limit": (ConstraintError, "ranges 'hours': a range needs a low or a high limit", {"ranges": ["hours=:"]}),
    "no sign of a transition": (
        SettingError,
        "--transition 'degree=Master' must read",
        {"transitions": ["degree=Master"]},
    ),
    "no step": (SettingError, "--step 'hours=big' must read", {"steps": ["hours=big"]}),
    "step twice": (ConstraintError, "steps names 'hours' twice", {"steps": ["hours=5", "hours=10"]}),
    "no cost": (SettingError, "--cost 'hours=/unit' must read", {"cost": ["hours=/unit"]}),
    "cost below zero": (
        ConstraintError,
        "cost 'hours': the cost must be a finite number above 0",
        {"cost": ["hours=-1"]},
    ),
    "budget without cost": (ConstraintError, "max_cost is 8 and cost is empty", {"max_cost": 8.0}),
    "no budget": (ConstraintError, "max_changes must be a whole number of at least 1", {"max_changes": 0}),
    "ambiguous level": (
        SettingError,
        "can mean the levels 1 and '1'; say which in a --constraints file",
        {"allowed": ["mixed=1"]},
    ),
    "both ways": (
        ConstraintError,
        "increase and decrease both name 'hours'",
        {"increase": ["hours"], "decrease": ["hours"]},
    ),
    "broken rule": (ConstraintError, "rule 'hours <='", {"rules": ["hours <="]}),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_words_are_refused(name: str) -> None:
    kind, message, words = REFUSALS[name]
    with pytest.raises(kind) as refusal:
        said(**words)
    assert message in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"allowed": ["housing=owm"]}, "allowed 'housing': value 'owm' is unknown; did you mean 'own'?"),
        ({"allowed": ["area=3"]}, "allowed 'area': value '3' is unknown"),
        ({"allowed": ["hours=few"]}, "allowed 'hours': 'few' is no number"),
        ({"allowed": ["housing=missing"]}, "missing values were never seen in this column"),
        ({"transitions": ["degree=Doctor>PhD"]}, "transitions 'degree': value 'Doctor' is unknown"),
        ({"ranges": ["housing=1:2"]}, "ranges 'housing': it is categorical"),
    ],
)
def test_what_the_table_does_not_have_is_left_for_its_schema_to_refuse(words: dict[str, Any], message: str) -> None:
    with pytest.raises(ConstraintError) as refusal:
        SCHEMA.check_constraints(said(**words))
    assert message in str(refusal.value)


def filed(tmp_path: Path, **fields: Any) -> Path:
    path = tmp_path / "wish.json"
    path.write_text(json.dumps(fields))
    return path


def test_flags_tighten_the_file(tmp_path: Path) -> None:
    path = filed(tmp_path, ranges={"hours": [20, 60]}, allowed={"housing": ["own", "rent"]}, max_changes=4)
    flags = Flags(file=path, ranges=["hours=:50"], allowed=["housing=own"], max_changes=5, increase=["income"])
    meant = Constraints(ranges={"hours": (20, 50)}, allowed={"housing": ["own"]}, max_changes=4, increase=["income"])
    assert constraints(flags, SCHEMA) == meant


def test_a_budget_bounds_the_costs_of_the_file(tmp_path: Path) -> None:
    found = constraints(
        Flags(file=filed(tmp_path, cost={"hours": {"per_unit": 0.5}}, max_cost=9), max_cost=8.0), SCHEMA
    )
    assert found == Constraints(cost={"hours": per_unit(0.5)}, max_cost=8)


def test_flags_that_contradict_the_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConstraintError, match="increase and decrease both name 'hours'"):
        constraints(Flags(file=filed(tmp_path, decrease=["hours"]), increase=["hours"]), SCHEMA)


def test_a_file_that_is_no_set_of_constraints_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConstraintError, match=r"wish\.json: constraint 'frosen' is unknown; did you mean 'frozen'"):
        constraints(Flags(file=filed(tmp_path, frosen=["hours"])), SCHEMA)
    with pytest.raises(ConstraintError, match=r"absent\.json can't be read"):
        constraints(Flags(file=tmp_path / "absent.json"), SCHEMA)


def test_overrides_keep_rules_and_names_with_commas_whole() -> None:
    rule = "housing in ['own', 'rent']"
    schema = SCHEMA.with_constraints(Constraints(rules=[rule], increase=["hours", ODD]))
    found = constraints(Flags(override=[f"hours,rules:{rule}", f"increase:{ODD}"]), schema)
    assert found.override == ("hours", f"rules:{rule}", f"increase:{ODD}")


def test_columns_may_have_commas() -> None:
    assert features([f"hours,{ODD},7"], TABLE.columns) == ["hours", ODD, 7]
