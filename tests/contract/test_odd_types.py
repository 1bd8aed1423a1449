"""Values of odd types and sizes are taken for what they are, or refused in words."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comparing import LABELS, ROWS, Quickly
from dicoflex import DiCoFlex, Schema, load
from dicoflex.answers.engine import MOST_ANSWERS
from dicoflex.answers.ways import ranges_of, select
from dicoflex.errors import BlackBoxError, ConstraintError, ModelFileError, QueryError, SchemaError


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int64])
def test_small_whole_numbers_count_like_others(kind: Any, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """In 0.1.0 (9aa4d8c) four times an int8 overflowed: too few answers and a false reason, and no draws at all."""
    rows = queries.head(2)
    asked, plain = (mixed.explain(rows, target="yes", n=n, random_state=0) for n in (kind(100), 100))
    pd.testing.assert_frame_equal(asked.frame, plain.frame)
    assert len(mixed.sample(rows, target="yes", n=kind(100), random_state=0)) == 200


@pytest.mark.parametrize("most", [2**63, 2**64, 10**400], ids=["2^63", "2^64", "10^400"])
def test_a_budget_that_no_table_has_is_refused(most: int, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """0.1.0 (9aa4d8c) compiled for 22 s and then found nothing, or failed with a TypingError."""
    with pytest.raises(ConstraintError, match="max_changes is more than 1,000,000, which no table has features"):
        mixed.explain(queries, constraints={"max_changes": most})


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({"constraints": {"forbidden": {"gain": [10**400]}}}, ConstraintError, "a value is text, a finite number"),
        ({"constraints": {"max_changes": True}}, ConstraintError, "a whole number of at least 1, got True"),
        ({"constraints": {"ranges": {"gain": (False, True)}}}, ConstraintError, "must be a number or None, got False"),
        ({"constraints": {1: 2}}, ConstraintError, "constraints has the field 1, which is not a name"),
        ({"p": 10**400}, QueryError, "p must lie in the trained range, and be a number, got 1000"),
        ({"p": True}, QueryError, "p must lie in the trained range, and be a number, got True"),
        ({"confidence": 10**400}, QueryError, "confidence must lie between 0 and 1, or be one of .*, got 1000"),
        ({"confidence": np.True_}, QueryError, "confidence must lie between 0 and 1"),
        ({"novel": "no"}, QueryError, "novel must be True or False, got 'no'"),
        ({"refine": "no"}, QueryError, "refine must be True or False, got 'no'"),
        ({"coherent": 0}, QueryError, "coherent must be True or False, got 0"),
        ({"n": True}, QueryError, "n must be a whole number of at least 1, got True"),
        ({"n": np.float64(3)}, QueryError, "n must be a whole number of at least 1"),
        ({"min_plausibility": 1}, QueryError, "min_plausibility must be at least 0 and below 1, got 1"),
        ({"check": lambda f: [{} for _ in range(len(f))]}, BlackBoxError, r"check gave a dict; .*such as clf\.predict"),
    ],
)  # fmt: skip
def test_what_is_refused(
    given: dict[str, Any], error: type[Exception], match: str, mixed: DiCoFlex, queries: pd.DataFrame
) -> None:
    """0.1.0 (9aa4d8c) failed with errors of Python's own, or took a text for true."""
    with pytest.raises(error, match=match):
        mixed.explain(queries, target="yes", **given)


def test_filter_is_a_switch(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """In 0.1.0 (9aa4d8c) "no" counted as true."""
    with pytest.raises(QueryError, match="filter must be True or False, got 'no'"):
        mixed.sample(queries, target="yes", filter="no")  # type: ignore[arg-type]
    assert len(mixed.sample(queries, target="yes", n=2, filter=np.False_, random_state=0)) == 16


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1, 2**64 + 5, 10**50, np.uint64(2**64 - 1)])
def test_seeds_of_any_size(seed: Any, mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    one, other = (mixed.explain(queries, target="yes", n=2, random_state=seed).frame for _ in range(2))
    pd.testing.assert_frame_equal(one, other)


def test_a_fit_takes_seeds_of_any_size(quickly: Quickly) -> None:
    """0.1.0 (9aa4d8c) failed after it had read the data."""
    assert quickly(ROWS, LABELS, random_state=10**30).sample(ROWS.head(2), n=2, random_state=0).shape == (4, 3)


@pytest.mark.parametrize("kind", ["float16", "float32"])
def test_limits_at_the_end_of_a_narrow_dtype(kind: str, quickly: Quickly) -> None:
    """0.1.0 (9aa4d8c) warned of an overflow in nextafter."""
    top = np.finfo(kind).max
    rows = ROWS.assign(pay=ROWS["pay"].astype(kind).where(ROWS["pay"] < 1.5, top))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = quickly(rows, LABELS)
        wish = {"ranges": {"pay": (0, float(top))}}
        cfs = model.explain(rows.head(2), target="yes", n=2, constraints=wish, random_state=0)
    assert cfs.frame["pay"].dtype == kind


def test_more_neighbours_than_rows_are_all_of_them(quickly: Quickly) -> None:
    """In 0.1.0 (9aa4d8c) a million took minutes."""
    many, all_ = (quickly(ROWS, LABELS, k=k).sample(ROWS.head(3), n=3, random_state=0) for k in (10**6, len(ROWS)))
    pd.testing.assert_frame_equal(many, all_)


def test_results_of_two_number_features_can_be_pickled(quickly: Quickly) -> None:
    """0.1.0 (9aa4d8c) kept a closure in them."""
    rows = ROWS[["age", "pay"]]
    cfs = quickly(rows, LABELS).explain(rows.head(2), target="yes", n=2, random_state=0)
    again = pickle.loads(pickle.dumps(cfs))
    pd.testing.assert_frame_equal(again.frame, cfs.frame)
    assert again.verify(rows.head(2))["holds"].all()
    assert again.plot(position=0).get_legend()


def test_a_schema_with_a_key_twice_is_refused() -> None:
    """0.1.0 (9aa4d8c) took the last of them."""
    text = Schema.infer(ROWS).to_json()
    with pytest.raises(SchemaError, match="it names 'features' twice"):
        Schema.from_json(text.replace('"features"', '"features": [], "features"', 1))


def test_an_error_does_not_repeat_a_cell_of_any_length(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """0.1.0 (9aa4d8c) printed 200 kB."""
    with pytest.raises(QueryError, match=r"(?s)column 'job' has the value 'xx.*known: 'cook'") as caught:
        mixed.explain(queries.assign(job="x" * 200_000), target="yes", handle_unknown="error")
    assert len(str(caught.value)) < 5000
    assert len(str(pickle.loads(pickle.dumps(caught.value)))) < 5000


@pytest.mark.parametrize("path", ["", "a\0b", 5])
def test_paths_that_are_none(path: Any, mixed: DiCoFlex) -> None:
    """0.1.0 (9aa4d8c) failed with errors of Python's own."""
    with pytest.raises(ModelFileError, match="can't be read"):
        load(path)
    with pytest.raises(ModelFileError, match=r"can't be written|a file's path is text"):
        mixed.save(path)


# -- what one call may cost --------------------------------------------------------------------------------------


def test_asking_has_ceilings(mixed: DiCoFlex, queries: pd.DataFrame) -> None:
    """In 0.1.0 (9aa4d8c) n=20,000 took 6.6 GB for one row, and a million ended in a MemoryError."""
    with pytest.raises(QueryError, match="n is 20,000, and at most 10,000 can be asked for a row in one call; lower n"):
        mixed.explain(queries, target="yes", n=2 * MOST_ANSWERS)
    many = pd.concat([queries] * 500)
    with pytest.raises(QueryError, match=r"n=1,000 for 4,000 rows takes 16,000,000 draws.*at most 2,500 rows at once"):
        mixed.explain(many, target="yes", n=1000)
    with pytest.raises(QueryError, match="n=10,000 for 4,000 rows takes 40,000,000 draws"):
        mixed.sample(many, target="yes", n=10_000)


def test_choosing_takes_memory_that_grows_with_n() -> None:
    """0.1.0 (9aa4d8c) kept the distances between all candidates: 1.8 GB for these."""
    import resource

    frame = pd.DataFrame({"x": [0.0, 1 / 3, 1.0], "y": [0.25, 0.5, 7.5]})
    candidates = np.random.default_rng(0).random((15_000, 2))
    chosen = select(ranges_of(Schema.infer(frame)), np.zeros(2), candidates[:100], np.zeros(100), 5)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = select(ranges_of(Schema.infer(frame)), np.zeros(2), candidates, np.zeros(15_000), 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
    assert len(set(many.tolist())) == 20
    assert len(chosen) == 5
