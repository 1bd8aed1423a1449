"""Fewer answers than were asked for: never padded, checked, and told with the reason."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from comparing import BlackBox, Quickly, assert_layout, rows_of
from dicoflex import DiCoFlex
from dicoflex.answers.confirming import CHECK_ROUNDS
from dicoflex.errors import QueryError


@pytest.fixture(scope="module")
def narrow(quickly: Quickly) -> tuple[DiCoFlex, pd.DataFrame]:
    """A table of which only a switch is free once the number is frozen."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"level": rng.integers(0, 5, 200), "switch": rng.random(200) < 0.5})
    model = quickly(rows, np.where(rows["switch"], "on", "off"), steps=300, remember_rows=True)
    return model, rows.head(4)


def test_explain_never_pads(narrow: tuple[DiCoFlex, pd.DataFrame]) -> None:
    model, rows = narrow
    targets = np.where(rows["switch"], "off", "on")
    cfs = model.explain(rows, target=targets, n=10, frozen=["level"], random_state=0)
    assert len(cfs.frame) == 4
    assert (cfs.frame["switch"].to_numpy() != rows["switch"].to_numpy()).all()
    assert list(cfs.shortfall.columns) == ["row", "wanted", "got", "reason"]
    assert cfs.shortfall[["row", "wanted", "got"]].to_numpy().tolist() == [[i, 10, 1] for i in range(4)]
    assert cfs.shortfall["reason"].str.contains("no more different rows .*; free a feature").all()


def test_sample_repeats_rather_than_return_fewer(narrow: tuple[DiCoFlex, pd.DataFrame]) -> None:
    model, rows = narrow
    draws = model.sample(rows, target="on", n=10, frozen=["level"], random_state=0)
    assert len(draws) == 40
    assert (draws["switch"].to_numpy() != np.repeat(rows["switch"].to_numpy(), 10)).all()


def test_nothing_to_return(narrow: tuple[DiCoFlex, pd.DataFrame], says: BlackBox) -> None:
    """All combinations are training rows, so none is novel; 0.1.0 (9aa4d8c) never blamed `novel`."""
    model, rows = narrow
    rows = rows[model.probability(rows)["on"] < 0.5]
    cfs = model.explain(rows, target="on", n=3, novel=True, exhaustive=False, random_state=0)
    assert len(cfs.frame) == len(cfs.info) == len(cfs.changes()) == 0
    assert_layout(cfs.frame, rows)
    assert cfs.shortfall["got"].tolist() == [0] * len(rows)
    assert cfs.shortfall["reason"].str.fullmatch(r"\d+% of the draws are training rows; leave novel out").all()
    assert str(cfs)
    assert json.loads(cfs.to_json())["shortfall"]
    with pytest.raises(
        QueryError, match=r"row \d: every draw equals the row itself or a training row; .*leave novel out"
    ):
        model.sample(rows, target="on", n=3, novel=True, random_state=0)


def test_check_keeps_only_what_it_confirms(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    seen: list[pd.DataFrame] = []

    def check(frame: pd.DataFrame) -> np.ndarray:
        seen.append(frame)
        return np.where(frame["member"], "yes", "no")

    cfs = judged.explain(queries, target="yes", n=3, frozen=["gain"], check=check, random_state=0)
    assert len(cfs.frame)
    assert cfs.frame["member"].all()
    assert cfs.info["valid"].all()
    assert 2 <= len(seen) <= 1 + CHECK_ROUNDS, "the rows themselves, and then candidates"
    pd.testing.assert_frame_equal(seen[0], queries)
    pd.testing.assert_series_equal(seen[0].dtypes, queries.dtypes)
    assert set(rows_of(cfs.frame)) <= set(rows_of(pd.concat(seen)))


def test_check_sees_frozen_values_as_they_are(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    def check(frame: pd.DataFrame) -> np.ndarray:
        assert (frame["gain"] == 1e6).all()
        return np.full(len(frame), "yes")

    assert judged.explain(queries.assign(gain=1e6), target="yes", frozen=["gain"], check=check).info["valid"].all()


def test_check_that_always_says_no(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    check = mock.Mock(side_effect=lambda frame: np.full(len(frame), "no"))
    cfs = judged.explain(queries, target="yes", n=3, check=check, exhaustive=False, random_state=0)
    assert check.call_count == 1 + CHECK_ROUNDS
    assert len(cfs.frame) == 0
    assert list(cfs.status) == ["not_found"] * len(queries)
    assert cfs.shortfall["row"].tolist() == queries.index.tolist()
    refused = cfs.shortfall["reason"].str.extract(r"check refused (\d+) candidates in 5 rounds")[0].astype(int)
    shown = [c.args[0] for c in check.call_args_list[1:]]
    assert len(set(rows_of(pd.concat(shown)))) <= refused.sum() <= sum(map(len, shown))


def test_check_asks_again_only_for_rows_that_are_short(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    sizes = []

    def check(frame: pd.DataFrame) -> np.ndarray:
        sizes.append(len(frame))
        # Nobody has the target yet.
        return np.where((frame["city"] == "Ulm") & (len(sizes) > 1), "yes", "no")

    rows = queries.assign(city=["Rome"] + ["Ulm"] * 7)
    cfs = judged.explain(
        rows, target="yes", n=3, frozen=["city"], check=check, exhaustive=False, random_state=0
    )  # fmt: skip
    assert cfs.shortfall["row"].tolist() == [rows.index[0]]
    assert len(sizes) == 1 + CHECK_ROUNDS
    assert max(sizes[2:]) < sizes[1] / 4


# -- reasons, and one word per query -----------------------------------------------------------------------------


def test_rows_that_ran_out_are_told_as_such(narrow: tuple[DiCoFlex, pd.DataFrame]) -> None:
    """0.1.0 (9aa4d8c) said "free a feature, raise p or lower confidence" with nothing frozen, p at its top and none."""
    model, rows = narrow
    cfs = model.explain(rows[model.probability(rows)["on"] < 0.5], target="on", n=30, random_state=0)
    assert (cfs.shortfall["got"] <= 5).all()
    told = r"no more different rows were found.*; there may be no more, as nothing is left to relax"
    assert cfs.shortfall["reason"].str.fullmatch(told).all()
    sparse = model.explain(rows[~rows["switch"]], target="on", n=30, p=0.5, frozen=["level"], random_state=0)
    assert set(sparse.shortfall["reason"]) == {"no more different rows were found; free a feature or raise p"}


def test_a_check_is_blamed_for_no_more_than_it_refused(narrow: tuple[DiCoFlex, pd.DataFrame]) -> None:
    """0.1.0 (9aa4d8c) said "check refused 4 candidates" where all rows that there are had been found."""
    model, rows = narrow
    rows = rows[~rows["switch"]]

    def check(frame: pd.DataFrame) -> np.ndarray:
        return np.where(frame["switch"] & (frame["level"] != 2), "on", "off")

    cfs = model.explain(rows, target="on", n=30, check=check, exhaustive=False, random_state=0)
    assert (cfs.shortfall["got"] == 4).all()
    told = "check refused 1 of the 5 different rows that were found; no more different rows were found.*"
    assert cfs.shortfall["reason"].str.fullmatch(told).all()
    every = model.explain(rows, target="on", n=30, check=check, random_state=0)
    assert (every.shortfall["got"] == 4).all()
    told = "all 9 rows that the constraints allow were looked at, and check accepts no others"
    assert (every.shortfall["reason"] == told).all()


def test_the_surrogate_is_blamed_where_it_doubts(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    frozen = [name for name in queries if name != "visits"]
    rows = queries.assign(gain=0.0, member=False)
    cfs = judged.explain(rows, target="yes", n=3, frozen=frozen, exhaustive=False, random_state=0)
    assert len(cfs) == 0
    assert cfs.shortfall["reason"].str.match(r"the surrogate doubts \d+% of the draws; free a feature").all()
    assert cfs.shortfall["reason"].str.endswith("or lower confidence").all()


def test_doubt_is_told_beside_the_hardest_constraint(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(gain=0.0, member=False, score=np.float32(-1.0))
    wish = {"max_changes": 1, "forbidden": {"member": [True]}, "ranges": {"gain": (0, 1), "score": (-2, -1)}}
    cfs = judged.explain(rows, target="yes", n=3, constraints=wish, exhaustive=False, random_state=0)
    told = r"too few different rows .*; the hardest: .* break it\); of the draws with it, the surrogate doubts \d+%"
    assert cfs.shortfall["reason"].str.fullmatch(told).all()


def test_a_row_that_has_the_target_gets_no_answers(judged: DiCoFlex, queries: pd.DataFrame, says: BlackBox) -> None:
    """They were answered with other rows of the class that they have, in CSV and JSON without a word."""
    cfs = judged.explain(queries, target="yes", n=2, check=says, random_state=0)
    already = says(queries) == "yes"
    assert 0 < already.sum() < len(queries)
    assert [word == "already" for word in cfs.status] == already.tolist()
    assert [query["status"] for query in json.loads(cfs.to_json())["queries"]] == list(cfs.status)
    assert not already[cfs.positions].any()
    told = json.loads(cfs.to_json())["queries"]
    assert all(bool(query["counterfactuals"]) == (query["status"] in ("found", "short")) for query in told)
    assert set(cfs.table()["status"]) <= {"found", "short"}
    short = cfs.shortfall.set_index("row")["reason"]
    assert (short[queries.index[already]] == "the row has the target already").all()
    alone = judged.explain(queries[already], target="yes", n=2, check=says, random_state=0)
    assert len(alone) == 0
    assert list(alone.status) == ["already"] * already.sum()
    assert list(alone.info.columns) == list(cfs.info.columns)
    for view in (str(cfs), cfs.to_html()):
        assert view.count("this row is yes already") == already.sum()
    surrogate = judged.explain(queries, target="yes", n=2, random_state=0)
    said = judged.model_.surrogate.probabilities(judged.model_.encoding.encode(queries)).argmax(axis=1) == 1
    assert [word == "already" for word in surrogate.status] == said.tolist()
    assert "already" not in judged.explain(queries, n=2, check=says, random_state=0).status
    both = judged.explain(queries, target={"yes", "no"}, n=2, random_state=0)
    assert list(both.status) == ["already"] * len(queries)
    assert len(both) == 0


def test_a_row_that_is_less_sure_than_asked_for_is_answered(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    sure = judged.probability(queries)["yes"].to_numpy()
    least = min(float(np.sort(sure[sure > 0.5])[-2:].mean()), 0.9)
    found = judged.explain(queries, target="yes", n=1, confidence=least, random_state=0)
    assert [word == "already" for word in found.status] == (sure >= least).tolist()


def test_the_other_words_of_a_status(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(gain=0.0, member=False, price=[20.0] + [6.0] * 7)
    wish = {"ranges": {"price": (5, 10)}, "strict": True, "frozen": ["price"]}
    cfs = judged.explain(rows, target="yes", n=2, constraints=wish, random_state=0)
    assert cfs.status[0] == "contradictory"
    assert set(cfs.status[1:]) <= {"found", "short"}
    assert [word == "short" for word in cfs.status[1:]] == (np.bincount(cfs.positions, minlength=8)[1:] == 1).tolist()


@pytest.mark.parametrize("confidence", [0.0, 0.3, 0.4999])
def test_confidence_that_makes_no_counterfactual_is_refused(
    confidence: float, judged: DiCoFlex, queries: pd.DataFrame
) -> None:
    """0.1.0 (9aa4d8c) gave rows that the classifier refuses: at 0, one in fourteen."""
    with pytest.raises(QueryError, match=r"no counterfactual: below 0\.5 another class may be likelier than"):
        judged.explain(queries, target="yes", confidence=confidence)
    assert len(judged.explain(queries, target="yes", confidence=0.5, n=1, random_state=0))
