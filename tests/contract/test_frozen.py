"""Frozen features are those of the query, bit for bit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from comparing import LABELS, ROWS, N, Quickly, assert_layout, assert_within, same_bits
from dicoflex import DiCoFlex
from dicoflex.errors import QueryError, UserError

FROZEN = [["gain", "score"], ["job", "city", "grade", "area", "member"], ["age", "price", "visits", "score"]]


def odd_queries(queries: pd.DataFrame) -> pd.DataFrame:
    """Missing values, zeros with a sign, numbers far outside of what training saw."""
    age = queries["age"].copy()
    age.iloc[:3] = [pd.NA, 0, 150]
    job = queries["job"].copy()
    job.iloc[0] = None
    score = queries["score"].copy()
    score.iloc[:3] = np.array([-0.0, 1e30, -1e30], dtype="float32")
    visits = queries["visits"].copy()
    visits.iloc[:2] = np.array([-128, 127], dtype="int8")
    return queries.assign(
        age=age, job=job, score=score, visits=visits, gain=[-0.0, 0.0, -1e9, 1e300, 5e-324, 0.1, 1 / 3, 2e5],
        price=[-0.0, 0.0, 7.123456789, -5.0, 1e15, 5.25, 24.75, 100.0],
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("frozen", FROZEN, ids=str)
def test_frozen_columns_are_equal_bit_for_bit(frozen: list[str], model: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = odd_queries(queries)
    draws = model.sample(rows, target="yes", n=6, frozen=frozen, random_state=0)
    cfs = model.explain(rows, target="yes", n=3, frozen=frozen, random_state=0)
    for frame in (draws, cfs.frame):
        assert_layout(frame, queries)
        own = rows.loc[frame.index.get_level_values("row")]
        assert all(same_bits(frame[name], own[name]) for name in frozen)
        assert_within(frame, model.schema_, own)
    assert not set(cfs.changes()["feature"]) & set(frozen)
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()
    assert cfs.settings["frozen"] == frozen


def test_frozen_numbers_beyond_the_limits_are_not_counted_as_changes(model: DiCoFlex, queries: pd.DataFrame) -> None:
    rows = queries.assign(price=1e6)
    cfs = model.explain(rows, target="other", n=3, frozen=["price"], random_state=0)
    number = [f.name for f in model.schema_.features if f.is_number]
    assert len(cfs.frame)
    assert (cfs.info["proximity"] < 10 * len(number)).all()
    assert (cfs.info["n_changed"] >= 1).all()
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()


def test_frozen_takes_any_collection_of_names(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    expected = mixed.sample(queries, target="yes", n=3, frozen=["age", "city"], random_state=0)
    for frozen in (("age", "city"), {"age": 1, "city": 2}, pd.Index(["city", "age"]), np.array(["age", "city", "age"])):
        got = mixed.sample(queries, target="yes", n=3, frozen=frozen, random_state=0)
        pd.testing.assert_frame_equal(got, expected)


def test_columns_named_by_numbers(quickly: Quickly) -> None:
    rows = ROWS.set_axis([0, 1, 2], axis=1)
    model = quickly(rows, LABELS)
    for frozen in ([0, 2], np.array([0, 2])):
        draws = model.sample(rows.head(4), n=3, frozen=frozen, random_state=0)
        assert (draws[0].to_numpy() == np.repeat(rows[0].head(4).to_numpy(), 3)).all()
    with pytest.raises(UserError, match="'0' is unknown"):
        model.sample(rows, frozen=["0"])


def test_missing_objects_keep_their_kind(quickly: Quickly) -> None:
    """None, nan and NA in object columns: frozen ones are the query's, drawn ones those of training."""
    kinds = {"none": None, "nan": np.nan, "na": pd.NA}
    rng = np.random.default_rng(0)
    columns = {
        k: pd.Series(["x" if rng.random() < 0.5 else m for _ in range(N)], dtype=object) for k, m in kinds.items()
    }
    rows = ROWS[["pay"]].assign(**columns)
    model = quickly(rows, LABELS)
    draws = model.sample(rows.head(10), n=5, random_state=0)
    frozen = model.sample(rows.head(10), n=5, frozen=list(kinds), random_state=0)
    for name, missing in kinds.items():
        assert draws[name].dtype == object
        assert {id(v) for v in draws[name][draws[name].isna()]} <= {id(missing)}
        assert same_bits(frozen[name], rows[name].loc[frozen.index.get_level_values("row")])


def test_a_frozen_number_that_would_be_rounded_is_refused(judged: DiCoFlex, queries: pd.DataFrame) -> None:
    """0.1.0 (9aa4d8c) gave back 9007199254740992 for it, and `verify` held."""
    for rows in (queries, queries.head(1)):
        with pytest.raises(QueryError, match=r"holds 9007199254740993, which is kept as 9007199254740992; round"):
            judged.explain(rows.assign(gain=2**53 + 1), target="yes", frozen=["gain"])
    cfs = judged.explain(queries.assign(gain=2**53 + 2), target="yes", frozen=["gain"], n=1, random_state=0)
    assert (cfs.frame["gain"] == 2**53 + 2).all()


@pytest.mark.parametrize("huge", [10**400, -(10**400)], ids=["great", "small"])
def test_a_number_that_no_float_can_hold_is_refused(judged: DiCoFlex, queries: pd.DataFrame, huge: int) -> None:
    """0.1.0 (9aa4d8c) failed with an OverflowError."""
    for rows in (queries, queries.head(1)):
        odd = rows.assign(gain=pd.Series([huge] * len(rows), index=rows.index, dtype=object))
        with pytest.raises(QueryError, match="'gain' holds numbers that no float can hold; replace them"):
            judged.explain(odd, target="yes")
