"""Verdicts: what draws miss is found, what can't be is proved, and what is too much to look at has a bound."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints, DiCoFlex
from dicoflex.answers import search

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


def make_table(n: int, seed: int) -> pd.DataFrame:
    """Few values each, so that all rows can be counted."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "debts": rng.integers(0, 6, n),
            "years": rng.integers(0, 12, n),
            "home": rng.choice(["own", "rent", "free"], n),
            "phone": rng.random(n) < 0.5,
            "rate": rng.normal(size=n),
        }
    )


def says(frame: pd.DataFrame) -> np.ndarray:
    """One lucky corner besides the plain rule: a debtor who rents, without a phone, after exactly 11 years."""
    plain = frame["years"] - 2 * frame["debts"] + 2 * (frame["home"] == "own") > 6
    corner = (frame["debts"] == 5) & (frame["years"] == 11) & (frame["home"] == "rent") & ~frame["phone"]
    return np.where(plain | corner, "yes", "no")


@pytest.fixture(scope="module")
def fitted(quickly: Callable[..., DiCoFlex]) -> DiCoFlex:
    table = make_table(600, seed=0)
    return quickly(table, says(table), steps=400)


@pytest.fixture(scope="module")
def coherent(quickly: Callable[..., DiCoFlex]) -> DiCoFlex:
    """A model that has learned what goes together, so that it refines."""
    table = make_table(600, seed=0)
    return quickly(table, says(table), steps=400, coherence=True)


@pytest.fixture(scope="module")
def person() -> pd.DataFrame:
    return pd.DataFrame({"debts": [5], "years": [3], "home": ["rent"], "phone": [True], "rate": [0.25]})


def every(person: pd.DataFrame, **values: list[Any]) -> pd.DataFrame:
    """All rows with these values in place of the person's own, but the person's."""
    rows = [{**person.iloc[0].to_dict(), **dict(zip(values, row, strict=True))} for row in product(*values.values())]
    frame = pd.DataFrame(rows).astype(person.dtypes)
    return frame[(frame != person.iloc[0]).any(axis=1)]


def test_that_there_is_no_way_is_proved(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    wish = Constraints(frozen=["debts", "rate", "home"], ranges={"years": (0, 10)})
    cfs = fitted.explain(person, target="yes", constraints=wish, check=says, random_state=0)
    rows = every(person, years=list(range(11)), phone=[True, False])
    assert list(cfs.status) == ["infeasible"]
    assert not (says(rows) == "yes").any()
    assert cfs.searches[0].looked_at == len(rows) == 21
    assert cfs.searches[0].all
    assert (
        cfs.shortfall["reason"]
        .item()
        .startswith("there is no way: all 21 rows that the constraints allow were looked at, and check accepts none; ")
    )
    told = json.loads(cfs.to_json())["queries"][0]
    assert told["status"] == "infeasible"
    assert told["search"] == {
        "judge": "check", "sure": None, "looked_at": 21, "tried": 21, "all": True, "accepted": 0, "usual": 0,
    }  # fmt: skip


def test_what_draws_hardly_ever_are_is_found(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    """One row of the 71 that are allowed will do, and it is the answer."""
    wish = Constraints(frozen=["debts", "rate"], forbidden={"home": ["own"]})
    rows = every(person, years=list(range(12)), home=["rent", "free"], phone=[True, False])
    assert (says(rows) == "yes").sum() == 1
    cfs = fitted.explain(person, target="yes", constraints=wish, check=says, n=3, random_state=0)
    assert list(cfs.status) == ["short"]
    assert cfs.frame[["years", "home", "phone"]].to_numpy().tolist() == [[11, "rent", False]]
    assert cfs.verify()["holds"].all()


def test_without_a_search_it_is_only_not_found(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    wish = Constraints(frozen=["debts", "rate", "home"], ranges={"years": (0, 10)})
    cfs = fitted.explain(
        person, target="yes", constraints=wish, check=says, exhaustive=False, random_state=0
    )  # fmt: skip
    assert list(cfs.status) == ["not_found"]
    assert cfs.searches == {}


def test_what_is_too_much_to_look_at_has_a_bound(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    wish = Constraints(ranges={"years": (0, 5)}, frozen=["debts"])
    cfs = fitted.explain(person, target="yes", constraints=wish, check=says, random_state=0)
    assert list(cfs.status) == ["not_found"]
    found = cfs.searches[0]
    assert not found.all
    assert search.EVENLY * 0.9 < found.looked_at <= search.EVENLY
    assert (
        cfs.shortfall["reason"]
        .item()
        .endswith(
            f"check accepts none of {found.looked_at:,} rows drawn evenly from what is allowed: "
            "at 95 % at most 0.015 % of what is allowed is a way"
        )
    )


def test_the_judge_is_the_surrogate_where_nobody_checks(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    wish = Constraints(frozen=["debts", "rate", "home"], ranges={"years": (0, 10)})
    cfs = fitted.explain(person, target="yes", constraints=wish, random_state=0)
    assert cfs.searches[0].judge == "surrogate"
    assert cfs.searches[0].sure == pytest.approx(fitted.model_.confidence.default[1])
    asked = f"the surrogate, asked to be {100 * cfs.searches[0].sure:.3g} % sure, accepts none"
    assert asked in cfs.shortfall["reason"].item()
    rows = every(person, years=list(range(11)), phone=[True, False])
    assert (fitted.probability(rows)["yes"] < 0.5).all()


def test_a_row_that_constraints_leave_no_change_is_impossible_before_any_search(
    fitted: DiCoFlex, person: pd.DataFrame
) -> None:
    two = pd.concat([person, person.assign(years=0)], ignore_index=True)
    wish = Constraints(frozen=["debts", "rate", "home", "phone"], decrease=["years"])
    cfs = fitted.explain(two, target="yes", constraints=wish, check=says, random_state=0)
    assert list(cfs.status) == ["infeasible", "contradictory"]
    assert list(cfs.searches) == [0]


def test_consequences_and_rules_hold_in_what_is_looked_at(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    wish = Constraints(
        frozen=["rate", "phone"], rules=["debts <= was.debts", "if home != was.home then debts == was.debts"],
        consequences={"years": "was.years + (was.debts - debts)"},
    )  # fmt: skip
    cfs = fitted.explain(person, target="yes", constraints=wish, check=says, n=5, random_state=0)
    rows = every(person, debts=list(range(6)), home=["own", "rent", "free"])
    rows["years"] = 3 + 5 - rows["debts"]
    rows = rows[(rows["home"] == "rent") | (rows["debts"] == 5)]
    accepted = rows[says(rows) == "yes"]
    assert len(accepted) > 0
    assert len(cfs) > 0
    assert cfs.verify()["holds"].all()
    known = {tuple(row) for row in accepted[["debts", "years", "home"]].to_numpy().tolist()}
    assert {tuple(row) for row in cfs.frame[["debts", "years", "home"]].to_numpy().tolist()} <= known


def test_the_same_search_however_rows_are_batched(fitted: DiCoFlex, person: pd.DataFrame) -> None:
    rows = pd.concat([person, person.assign(years=7), person.assign(debts=4)], ignore_index=True)
    wish = Constraints(ranges={"years": (0, 5)}, frozen=["debts", "home"])
    together = fitted.explain(rows, target="yes", constraints=wish, check=says, random_state=0)
    alone = [
        fitted.explain(rows.iloc[[i]], target="yes", constraints=wish, check=says, random_state=0) for i in (0, 1, 2)
    ]
    assert [one.status[0] for one in alone] == list(together.status)
    assert [one.searches.get(0) for one in alone] == [together.searches.get(i) for i in (0, 1, 2)]


def test_what_is_merely_unusual_is_a_way_still(coherent: DiCoFlex, person: pd.DataFrame) -> None:
    """The one row that will do is rarer than asked for: it is no answer, and that there is no way is not said."""
    wish = Constraints(frozen=["debts", "rate"], forbidden={"home": ["own"]})
    asked = {"target": "yes", "constraints": wish, "check": says, "n": 3, "random_state": 0}
    cfs = coherent.explain(person, min_plausibility=0.99, **asked)
    assert list(cfs.status) == ["not_found"]
    assert cfs.searches[0].all
    assert (cfs.searches[0].accepted, cfs.searches[0].usual) == (1, 0)
    assert cfs.shortfall["reason"].item().endswith(
        "all 47 rows that the constraints allow were looked at, and check accepts 1, "
        "of which none goes together or is usual enough; coherent=False lets them be answers"
    )  # fmt: skip
    assert list(coherent.explain(person, coherent=False, **asked).status) == ["short"]


def test_where_few_rows_are_allowed_all_that_will_do_are_found(coherent: DiCoFlex, person: pd.DataFrame) -> None:
    wish = Constraints(frozen=["rate", "phone", "home"], increase=["years"], decrease=["debts"])
    rows = every(person, debts=list(range(6)), years=list(range(3, 12)))
    accepted = rows[says(rows) == "yes"]
    cfs = coherent.explain(person, target="yes", constraints=wish, check=says, coherent=False, n=50, random_state=0)
    known = {tuple(row) for row in accepted[["debts", "years"]].to_numpy().tolist()}
    found = {tuple(row) for row in cfs.frame[["debts", "years"]].to_numpy().tolist()}
    assert found == known
    assert cfs.shortfall["reason"].item() == (
        f"all {len(rows)} rows that the constraints allow were looked at, and check accepts no others"
    )
