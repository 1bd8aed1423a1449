"""Fewer answers than were asked for: never padded, checked, and told with the reason."""

from __future__ import annotations

import json
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from comparing import BlackBox, Quickly, assert_layout, rows_of
from dicoflex import DiCoFlex
from dicoflex.answers.explain import CHECK_ROUNDS
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
    """All combinations are training rows, so none is novel."""
    model, rows = narrow
    cfs = model.explain(rows, target="on", n=3, novel=True, random_state=0)
    assert len(cfs.frame) == len(cfs.info) == len(cfs.changes()) == 0
    assert_layout(cfs.frame, rows)
    assert cfs.shortfall["got"].tolist() == [0] * 4
    assert str(cfs)
    assert json.loads(cfs.to_json())["shortfall"]
    with pytest.raises(
        QueryError, match=r"row 0: every draw equals the row itself or a training row; .*leave novel out"
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
    assert 1 <= len(seen) <= CHECK_ROUNDS
    pd.testing.assert_series_equal(seen[0].dtypes, queries.dtypes)
    assert set(rows_of(cfs.frame)) <= set(rows_of(pd.concat(seen)))


def test_check_sees_frozen_values_as_they_are(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    def check(frame: pd.DataFrame) -> np.ndarray:
        assert (frame["gain"] == 1e6).all()
        return np.full(len(frame), "yes")

    assert judged.explain(queries.assign(gain=1e6), target="yes", frozen=["gain"], check=check).info["valid"].all()


def test_check_that_always_says_no(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    check = mock.Mock(side_effect=lambda frame: np.full(len(frame), "no"))
    cfs = judged.explain(queries, target="yes", n=3, check=check, random_state=0)
    assert check.call_count == CHECK_ROUNDS
    assert len(cfs.frame) == 0
    assert cfs.shortfall["row"].tolist() == queries.index.tolist()
    refused = cfs.shortfall["reason"].str.extract(r"check refused (\d+) candidates in 5 rounds")[0].astype(int)
    assert refused.sum() == sum(len(c.args[0]) for c in check.call_args_list)


def test_check_asks_again_only_for_rows_that_are_short(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    sizes = []

    def check(frame: pd.DataFrame) -> np.ndarray:
        sizes.append(len(frame))
        return np.where(frame["city"] == "Ulm", "yes", "no")

    rows = queries.assign(city=["Rome"] + ["Ulm"] * 7)
    cfs = judged.explain(rows, target="yes", n=3, frozen=["city"], check=check, random_state=0)
    assert cfs.shortfall["row"].tolist() == [rows.index[0]]
    assert len(sizes) == CHECK_ROUNDS
    assert max(sizes[1:]) < sizes[0] / 4
