"""Plain rows get the answers that frames get, to the last bit."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest

from dicoflex import Constraints, DiCoFlex, load, relative
from dicoflex.answers.plain import answer_plain
from dicoflex.errors import UserError
from dicoflex.examples import EXAMPLES, rows_like
from dicoflex.explainer import Explainer
from dicoflex.request import Request
from dicoflex.table.plain_rows import plain_row

pytestmark = pytest.mark.usefixtures("one_thread")

WISHES: dict[str, dict[str, Any]] = {
    "free": {},
    "as drawn": {"refine": False},
    "few": {"constraints": Constraints(max_changes=1), "n": 6},
    "none": {"constraints": Constraints(max_changes=1, max_cost=0.5, cost={"gain": 1, "job": 1, "age": 1})},
    "several": {
        "frozen": ["score"],
        "constraints": Constraints(
            max_changes=4, increase=["grade"], ranges={"gain": (0, 4000), "age": relative(-0.2, 0.2)},
            steps={"price": 0.5}, forbidden={"job": ["smith"]}, rules=["gain >= price"], cost={"visits": 1},
        ),
    },
}  # fmt: skip


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    return [plain_row(row) for row in frame.astype(object).to_numpy(dtype=object).tolist()]


def assert_same(explainer: Explainer, rows: pd.DataFrame, **wish: Any) -> None:
    """What plain rows get is the record of what a frame gets."""
    request = Request.of(**{"target": "yes", "n": 4, "random_state": 3, **wish})
    found = answer_plain(explainer.model_, cells(rows), request, verify=True).rows
    direct = explainer.explain(rows.reset_index(drop=True), **{"target": "yes", "n": 4, "random_state": 3, **wish})
    record = json.loads(direct.to_json())
    holds = direct.verify().groupby(["row", "cf"])["holds"].all()
    for i, (row, query) in enumerate(zip(found, record["queries"], strict=True)):
        assert [one["values"] for one in row["counterfactuals"]] == [one["values"] for one in query["counterfactuals"]]
        assert [one["changes"] for one in row["counterfactuals"]] == [
            one["changes"] for one in query["counterfactuals"]
        ]
        for k, (one, other) in enumerate(zip(row["counterfactuals"], query["counterfactuals"], strict=True)):
            told = {name: value for name, value in other["info"].items() if name not in ("target", "valid")}
            assert one["scores"] == told
            assert one["verified"] == holds[i, k]
            assert row["target"] == other["info"]["target"]
        short = direct.reasons.get(i)
        assert row["status"] == direct.status[i]
        assert row.get("search") == query.get("search")
        assert ("reason" in row) == (short is not None)
        assert short is None or short == (row["wanted"], row["got"], row["reason"])


@pytest.mark.parametrize("wish", WISHES)
def test_answers_are_those_to_frames(mixed: DiCoFlex, queries: pd.DataFrame, wish: str) -> None:
    assert_same(mixed, queries, **WISHES[wish])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("wish", [{}, {"constraints": Constraints(max_changes=2)}, {"coherent": False}], ids=str)
def test_refined_answers_are_those_to_frames(path: Any, wish: dict[str, Any]) -> None:
    explainer = load(path)
    target = explainer.model_.labels[-1]
    assert_same(explainer, rows_like(explainer.schema_, 6, seed=2), target=target, **wish)


def test_a_row_asks_for_the_other_of_two(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = cells(queries)
    asked = Request.of(random_state=0, n=2).model_copy(update={"target": (None, "no", *[None] * (len(rows) - 2))})
    found = answer_plain(mixed.model_, rows, asked).rows
    direct = mixed.explain(queries, n=2, random_state=0)
    assert [row["target"] for row in found] == [direct.targets[0], "no", *direct.targets[2:]]


@pytest.mark.parametrize(
    "wish",
    [{"p": 50.0}, {"target": "maybe"}, {"frozen": ["king"]}, {"n": 20_000}, {"novel": True}, {"confidence": 0.9}],
    ids=str,
)
def test_what_can_not_be_asked_is_refused_in_the_same_words(
    mixed: DiCoFlex, queries: pd.DataFrame, wish: dict[str, Any]
) -> None:
    given = {"target": "yes", "n": 2, "random_state": 0, **wish}
    with pytest.raises(UserError) as told:
        answer_plain(mixed.model_, cells(queries), Request.of(**given))
    with pytest.raises(UserError) as expected:
        mixed.explain(queries, **given)
    assert (type(told.value), str(told.value)) == (type(expected.value), str(expected.value))


def test_no_rows_are_refused(mixed: DiCoFlex) -> None:
    with pytest.raises(UserError, match="rows is empty"):
        answer_plain(mixed.model_, [], Request.of(target="yes"))


def test_constraints_that_were_changed_since_are_read_anew(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    wish = Constraints(ranges={"gain": (0, 4000)})
    mixed.explain(queries, target="yes", n=1, constraints=wish, random_state=0)
    wish.ranges["price"] = Constraints(ranges={"price": (9, 10)}).ranges["price"]
    found = mixed.explain(queries, target="yes", n=1, constraints=wish, random_state=0)
    assert "price" in found.constraints.ranges
    assert found.verify()["holds"].all()
