"""The audit of recourse: its plain list of rows, what it counts, and what a quick run finds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.cells import Cell, Result
from benchmarks.command import RESULTS
from benchmarks.experiments.recourse import audit, linked, people
from benchmarks.experiments.recourse.page import page as written
from dicoflex import datasets

needs_table = pytest.mark.skipif(not people.is_there(), reason="the table is in no folder")
OTHERS = {"Male": 1, "LoanRate": 4}


def person(**values: int) -> pd.Series:
    """Somebody who may do everything, but for what is given."""
    start = {people.AGE: 30, people.RESIDENCE: 1, **dict.fromkeys(people.FLAGS, 0), **OTHERS}
    return pd.Series({**start, **values})


def test_the_plain_list_has_every_row_that_may_be_reached() -> None:
    rows = people.reachable(person())
    assert len(rows) == 3 * 2**4 * 3 * 3 - 1
    assert not rows.duplicated().any()
    assert (rows[list(OTHERS)] == pd.Series(OTHERS)).all().all()
    assert not ((rows["CheckingAcctGeq0"] == 1) & (rows["CheckingAcctExists"] == 0)).any()
    older = (rows[people.RESIDENCE] - 1) + rows[people.EMPLOYED]
    assert (rows[people.AGE] == 30 + older).all()


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ({people.RESIDENCE: 6}, 2 * 144 - 1),
        ({people.RESIDENCE: 7}, 144 - 1),
        (dict.fromkeys(people.FLAGS, 1), 3 - 1),
        ({**dict.fromkeys(people.FLAGS, 1), people.RESIDENCE: 7}, 0),
    ],
)
def test_what_is_at_its_end_stays(values: dict[str, int], count: int) -> None:
    assert len(people.reachable(person(**values))) == count


def fold(judge: Any, *rows: pd.Series) -> people.Fold:
    frame = pd.DataFrame(list(rows)).reset_index(drop=True)
    return people.Fold(0, None, judge, frame, np.ones(len(frame), dtype=bool))  # type: ignore[arg-type]


class Guarantors:
    """A judge who asks for a guarantor alone."""

    @staticmethod
    def predict(frame: pd.DataFrame) -> np.ndarray:
        return frame["HasGuarantor"].to_numpy()


def told(frame: pd.DataFrame, owner: list[int], status: list[str], **looked_at: int) -> audit.Told:
    places = {int(name[1:]): n for name, n in looked_at.items()}
    return audit.Told(frame, np.array(owner), status, places, 1.0, np.ones(len(status), dtype=bool))


def test_loopholes_blind_spots_and_wrong_proofs_are_counted() -> None:
    """Five people with a way: a good answer, a row out of reach, a refused one, nothing, and a wrong proof."""
    own = person()
    good, stray, refused = own.copy(), own.copy(), own.copy()
    good["HasGuarantor"] = 1
    stray[["HasGuarantor", "SavingsAcctGeq100"]] = 1
    refused["CheckingAcctExists"] = 1
    answers = pd.DataFrame([good, stray, refused]).reset_index(drop=True)
    said = told(answers, [0, 1, 2], ["found", "found", "found", "not_found", "infeasible"], p4=431)
    counted = audit._counted(audit._lines(fold(Guarantors, *[own] * 5), said))
    assert counted == {
        "people": 5, "without_way": 0, "loopholes": 1, "loopholes_followed": 2, "refused": 1, "blind": 2, "proofs": 1,
        "wrong_proofs": 1, "unproved": 0, "miscounted": 0,
    }  # fmt: skip


def test_an_age_that_does_not_follow_is_a_loophole_that_can_be_set_right() -> None:
    answer = person(HasGuarantor=1, **{people.RESIDENCE: 3})
    lines = audit._lines(fold(Guarantors, person()), told(pd.DataFrame([answer]), [0], ["found"]))
    assert lines[["strays", "strays_followed"]].iloc[0].tolist() == [1, 0]


def test_a_proof_that_looked_at_fewer_rows_is_told() -> None:
    class Nobody:
        @staticmethod
        def predict(frame: pd.DataFrame) -> np.ndarray:
            return np.zeros(len(frame), dtype=int)

    said = told(pd.DataFrame(columns=person().index), [], ["infeasible", "infeasible", "not_found"], p0=431, p1=430)
    counted = audit._counted(audit._lines(fold(Nobody, *[person()] * 3), said))
    assert (counted["without_way"], counted["proofs"], counted["wrong_proofs"]) == (3, 2, 0)
    assert (counted["miscounted"], counted["unproved"]) == (1, 1)


def test_plain_checks_tell_what_breaks_a_rule_or_a_consequence() -> None:
    adult = datasets.load("adult")
    rng, broken = np.random.default_rng(0), 0
    rows = linked._plain(adult.X_test.head(40))
    for _ in range(20):
        one = linked.linked(adult.schema, adult.X_train, rng)
        adult.schema.check_constraints(one.constraints)
        assert len(one.checks) == len(one.constraints.rules) + len(one.constraints.consequences)
        broken += sum(not all(check(own, row) for check in one.checks) for own, row in pairwise(rows))
    assert broken > 400  # two different people are hardly ever an answer to each other


# -- the quick run ----------------------------------------------------------------------------------------------------


def of_part(results: list[Result], part: str) -> list[Result]:
    return [result for result in results if result.cell.setting("part") == part and not result.failed]


@needs_table
def test_nobody_is_misled(stored: Any) -> None:
    found = {result.cell.method: result.figures for result in of_part(stored("recourse"), "audit")}
    assert set(found) == {*audit.ASKED, "DiCE, random"}
    for method in audit.ASKED:
        counts = found[method]["groups"][audit.ALL]
        assert counts["people"] > 0
        assert counts["loopholes"] == counts["miscounted"] == 0
        if method != "explain, unchecked":
            assert counts["wrong_proofs"] == counts["refused"] == 0
    assert found["explain"]["groups"][audit.ALL]["blind"] == 0


def test_rules_hold_on_every_draw(stored: Any) -> None:
    (ladder,) = of_part(stored("recourse"), "ladder")
    assert ladder.figures["answers"] > 0
    assert ladder.figures["violations_verify"] == ladder.figures["violations_plain"] == 0
    for result in of_part(stored("recourse"), "linked"):
        assert result.figures["draws"] >= result.cell.setting("draws")
        assert result.figures["verify"] == result.figures["plain"] == 0
        assert result.figures["changed_followers"] > 0


def test_importance_is_held_against_a_sweep(stored: Any) -> None:
    (found,) = of_part(stored("recourse"), "sufficiency")
    assert set(found.figures["shares"]) == set(datasets.load("adult").schema.names)
    assert all(0 <= share <= 1 for shares in found.figures["shares"].values() for share in shares)


def test_by_default_importance_ranks_features_as_a_sweep_does() -> None:
    """The bar of the page that is shown: a full run on Adult, asked with the default arguments."""
    shown = json.loads((RESULTS / "recourse.json").read_text(encoding="utf-8"))["results"]
    (found,) = of_part([Result.of(result) for result in shown], "sufficiency")
    assert found.figures["people"] >= 200
    assert found.figures["spearman"] >= 0.9 > found.figures["spearman_usual"]


def test_the_page_has_the_papers_figures_beside_ours(page: Any) -> None:
    text = page("recourse")
    assert "## For whom one feature is enough" in text
    assert "`age - was.age >= 2 * (education - was.education)`" in text
    if people.is_there():
        assert "as printed there* | – | 8.5 % | 13.1 % | – | 1.3 % |" in text


def test_a_page_without_the_table_says_what_is_missing() -> None:
    cell = Cell("recourse", people.TABLE, "explain", settings=(("part", "audit"), ("judge", "random forest")))
    assert "needs the file" in written([Result(cell, failed="DataError: the audit needs the file")], "bench")
