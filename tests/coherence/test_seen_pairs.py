"""Pairs of values that occur together, and the rule for what is called unseen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dicoflex.coherence.seen_pairs import FALSE_ALARMS, LEFT_ASIDE, Bins, SeenPairs
from dicoflex.errors import ModelFileError
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema


def people(n: int, seed: int) -> pd.DataFrame:
    """Nobody under 25 is married or widowed, and everybody over 60 is retired."""
    rng = np.random.default_rng(seed)
    age = rng.integers(15, 80, n)
    marital = np.where(age < 25, "single", rng.choice(["single", "married", "widowed"], n))
    work = np.where(age > 60, "retired", rng.choice(["office", "field"], n))
    return pd.DataFrame({"age": age, "marital": marital, "work": work, "income": rng.gamma(2.0, 900.0, n)})


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    frame = people(3000, 0)
    return Encoding.fit(frame, Schema.infer(frame))


@pytest.fixture(scope="module")
def pairs(encoding: Encoding) -> SeenPairs:
    return SeenPairs.learn(encoding.schema, encoding.encode(people(3000, 0)))


def row(encoding: Encoding, **changed: object) -> np.ndarray:
    given = {"age": 40, "marital": "married", "work": "office", "income": 1500.0} | changed
    return encoding.encode(pd.DataFrame({name: [value] for name, value in given.items()}))


def test_what_no_row_has_is_unseen_and_what_rows_have_is_not(encoding: Encoding, pairs: SeenPairs) -> None:
    assert pairs.broken(row(encoding, age=16, marital="widowed")).all()
    assert pairs.broken(row(encoding, age=70, work="field")).all()
    assert not pairs.broken(row(encoding)).any()


def test_a_pair_that_the_query_has_may_stay(encoding: Encoding, pairs: SeenPairs) -> None:
    odd = row(encoding, age=16, marital="widowed")
    richer = row(encoding, age=16, marital="widowed", income=4000.0)
    assert pairs.broken(richer).all()
    assert not pairs.broken(richer, odd).any()
    assert pairs.broken(odd, row(encoding)).all()


def test_held_out_rows_are_hardly_ever_called_incoherent(encoding: Encoding, pairs: SeenPairs) -> None:
    fresh = people(4000, 1)
    fresh = fresh[fresh["income"].between(*encoding.schema["income"].bounds)]
    assert pairs.broken(encoding.encode(fresh)).mean() <= 0.02
    assert pairs.alarms <= FALSE_ALARMS + np.sqrt(FALSE_ALARMS / 3000)


def test_few_rows_prove_little() -> None:
    """In a small table a pair is unseen only where it would have been expected."""
    frame = people(60, 2)
    encoding = Encoding.fit(frame, Schema.infer(frame))
    small = SeenPairs.learn(encoding.schema, encoding.encode(frame))
    assert small.expected > 0
    assert small.unseen.sum() < 0.2 * small.unseen.size


def test_rare_pairs_count_as_unseen_where_privacy_asks_for_it(encoding: Encoding) -> None:
    values = encoding.encode(people(3000, 0))
    plain, private = (SeenPairs.learn(encoding.schema, values, min_count=count) for count in (1, 5))
    assert private.alarms <= FALSE_ALARMS + np.sqrt(FALSE_ALARMS / 3000)
    assert private.expected >= plain.expected


def test_answers_keep_away_from_more_than_is_called_incoherent() -> None:
    """What is avoided holds what is unseen, and still leaves nearly all real rows alone."""
    frame = people(900, 0)
    encoding = Encoding.fit(frame, Schema.infer(frame))
    strict = SeenPairs.learn(encoding.schema, encoding.encode(frame), min_count=5)
    fresh = people(4000, 1)
    fresh = encoding.encode(fresh[fresh["income"].between(*encoding.schema["income"].bounds)])
    assert (strict.avoided >= strict.unseen).all()
    assert strict.avoided.sum() > strict.unseen.sum()
    assert 0 < strict.strays(fresh).mean() <= LEFT_ASIDE
    odd = row(encoding, age=16, marital="widowed")
    assert strict.strays(odd, row(encoding)).all()
    assert not strict.strays(odd, odd).any()


def test_what_a_file_keeps_is_all_there_is(encoding: Encoding, pairs: SeenPairs) -> None:
    again = SeenPairs.restore(encoding.schema, pairs.arrays())
    np.testing.assert_array_equal(again.unseen, pairs.unseen)
    np.testing.assert_array_equal(again.avoided, pairs.avoided)
    assert (again.expected, again.alarms) == (pairs.expected, pairs.alarms)
    assert max(array.size for array in pairs.arrays().values()) < 3000


@pytest.mark.parametrize("name", ["edge", "edge_at", "unseen", "avoided", "rule"])
def test_arrays_that_do_not_fit_are_refused(encoding: Encoding, pairs: SeenPairs, name: str) -> None:
    arrays = pairs.arrays()
    with pytest.raises(ModelFileError, match="the model file's array"):
        SeenPairs.restore(encoding.schema, arrays | {name: arrays[name][:-1]})


def test_no_edge_is_one_persons_value() -> None:
    values = np.random.default_rng(0).normal(50.0, 7.0, (500, 1))
    frame = pd.DataFrame(values, columns=["x"])
    bins = Bins.build(Schema.infer(frame), values, n=20)
    assert len(bins.edge) == 19
    assert not np.isin(bins.edge, values).any()


def test_special_values_have_cells_of_their_own() -> None:
    """HELOC's -7, "never delinquent", stood in answers beside months of delinquency, which no row has."""
    rng = np.random.default_rng(0)
    n = 1000
    never, record = rng.random(n) < 0.3, rng.random(n) < 0.95
    months = np.where(never, -7, rng.integers(0, 80, n))
    worst = np.where(never, 7, rng.integers(0, 6, n))
    frame = pd.DataFrame({"months": np.where(record, months, -9), "worst": np.where(record, worst, -9)})
    for min_count in (1, 5):
        schema = Schema.infer(frame, min_count=min_count)
        assert schema["months"].special == (-9.0, -7.0)
        assert "special: -9, -7" in schema["months"].values_text()
        pairs = SeenPairs.learn(schema, frame.to_numpy(dtype=float), min_count=min_count)
        told = SeenPairs.restore(schema, pairs.arrays())
        query = np.array([[20.0, 3.0]])
        for odd in ([-7, 3], [20, -9], [-9, 3]):
            assert told.broken(np.array([odd], dtype=float), query)[0], odd
        assert not told.broken(np.array([[-7.0, 7.0]]), query)[0]
        assert len(set(pairs.bins.locate(np.array([[-9.0, 0], [-7.0, 0], [0.0, 0], [70.0, 0]]))[:, 0])) == 4
        none = Schema.infer(frame, min_count=min_count, special={"months": [], "worst": []})
        assert none["months"].special == ()
