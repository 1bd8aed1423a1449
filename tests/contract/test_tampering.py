"""What is altered in a result after it was made is found by `verify`; 0.1.0 (9aa4d8c) missed 3 of 24 tamperings."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.errors import QueryError


@pytest.fixture(scope="module")
def found(judged: DiCoFlex, queries: pd.DataFrame) -> Counterfactuals:
    return judged.explain(queries, target="yes", n=4, frozen=["price", "city"], random_state=0)


def cell(found: Counterfactuals, name: str, value: Any, at: int = 0) -> Counterfactuals:
    frame = found.frame.copy()
    frame.iloc[at, frame.columns.get_loc(name)] = value
    return replace(found, frame=frame, changed=None)


def told(name: str, value: Any) -> Callable[[Counterfactuals], Counterfactuals]:
    """One answer of which `info` says something else."""

    def tamper(found: Counterfactuals) -> Counterfactuals:
        info = found.info.copy()
        info[name] = info[name].astype(object).where(np.arange(len(info)) != 1, value).astype(info[name].dtype)
        return replace(found, info=info)

    return tamper


def swapped_labels(found: Counterfactuals) -> Counterfactuals:
    labels = found.frame.index.to_frame(index=False)
    first, other = labels["row"].iloc[0], labels["row"].iloc[-1]
    labels["row"] = labels["row"].replace({first: other, other: first})
    index = pd.MultiIndex.from_frame(labels)
    return replace(found, frame=found.frame.set_axis(index), info=found.info.set_axis(index))


def swapped_answers(found: Counterfactuals) -> Counterfactuals:
    """The answers of two rows change places; all that is told of them stays."""
    frame = found.frame.iloc[np.r_[4:8, 0:4, 8 : len(found)]].set_axis(found.frame.index)
    return replace(found, frame=frame, changed=None)


def doubled(found: Counterfactuals) -> Counterfactuals:
    order = np.arange(len(found))
    order[1] = 0
    parts = {"frame": found.frame, "info": found.info}
    taken = {name: part.iloc[order].set_axis(part.index) for name, part in parts.items()}
    return replace(found, **taken, changed=None)


def like_the_row(found: Counterfactuals) -> Counterfactuals:
    frame = found.frame.copy()
    frame.iloc[0] = found.queries.iloc[found.positions[0]]
    return replace(found, frame=frame.astype(found.frame.dtypes), changed=None)


def other_queries(found: Counterfactuals) -> Counterfactuals:
    """Rows and frozen cells are altered alike, as a callable could once do."""
    queries, frame = found.queries.assign(price=1.0), found.frame.assign(price=1.0)
    return replace(found, queries=queries, frame=frame, changed=None)


TAMPERINGS: dict[str, tuple[Callable[[Counterfactuals], Counterfactuals], str]] = {
    "a frozen number": (lambda f: cell(f, "price", f.frame["price"].iloc[0] + 0.25), "frozen price"),
    "a frozen number, by a bit": (
        lambda f: cell(f, "price", np.nextafter(f.frame["price"].iloc[0], 99)),
        "frozen price",
    ),
    "a frozen level": (
        lambda f: cell(f, "city", {"Ulm": "Rome", "Rome": "Ulm"}[f.frame["city"].iloc[0]]),
        "frozen city",
    ),
    "a number that is out of range": (lambda f: cell(f, "gain", 1e9), "schema"),
    "a level that nobody has": (lambda f: cell(f, "job", "queen"), "schema"),
    "a dtype": (lambda f: replace(f, frame=f.frame.astype({"score": "float64"})), "schema"),
    "a column": (lambda f: replace(f, frame=f.frame.drop(columns="age"), changed=None), "schema"),
    "row labels": (swapped_labels, "record: row"),
    "whose answers they are": (swapped_answers, "record: numbers"),
    "an answer twice": (doubled, "record: distinct"),
    "an answer that changes nothing": (like_the_row, "record: changed"),
    "the target": (told("target", "no"), "record: target"),
    "the probability": (told("probability", 0.999), "record: numbers"),
    "the number of changes": (told("n_changed", 1), "record: numbers"),
    "the density": (told("log_density", 3.0), "record: numbers"),
    "how near it is": (told("proximity", 0.01), "record: numbers"),
    "that it was checked": (told("valid", True), "record: numbers"),
    "what was asked for": (lambda f: replace(f, targets=["no"] * len(f.queries)), "record: target"),
}


@pytest.mark.parametrize("case", TAMPERINGS)
def test_tampering_is_found(case: str, found: Counterfactuals, queries: pd.DataFrame) -> None:
    tamper, line = TAMPERINGS[case]
    for verdicts in (tamper(found).verify(), tamper(found).verify(queries)):
        assert line in set(verdicts[~verdicts["holds"]]["constraint"])


def test_what_was_not_tampered_with_holds(found: Counterfactuals, queries: pd.DataFrame) -> None:
    for result in (found, pickle.loads(pickle.dumps(found))):
        verdicts = result.verify(queries)
        assert verdicts["holds"].all()
        assert list(dict.fromkeys(verdicts["constraint"])) == ["frozen price", "frozen city", "schema", "record"]
        assert len(verdicts) == 4 * len(found)


def test_the_callers_rows_tell_what_kept_ones_can_not(found: Counterfactuals, queries: pd.DataFrame) -> None:
    """In 0.1.0 (9aa4d8c) frozen was compared with what the library kept, and held."""
    altered = other_queries(found)
    kept, given = altered.verify(), altered.verify(queries)
    assert kept.query("constraint == 'frozen price'")["holds"].all()
    assert kept.attrs["compared_with"] == "the rows that the result kept"
    assert not given.query("constraint == 'frozen price'")["holds"].any()
    assert not given.query("constraint == 'record: row'")["holds"].any()
    assert given.attrs["compared_with"] == "the rows given to verify"


def test_rows_in_other_types_and_another_order_of_columns_are_the_same_rows(
    judged: DiCoFlex, queries: pd.DataFrame
) -> None:
    rows = queries.astype({"visits": "int64", "price": object, "score": "float64"})[queries.columns[::-1]]
    verdicts = judged.explain(rows, target="yes", n=2, frozen=["price"], random_state=0).verify(rows)
    assert verdicts["holds"].all()


def test_other_rows_are_refused(found: Counterfactuals, queries: pd.DataFrame) -> None:
    with pytest.raises(QueryError, match=r"rows has 3 rows and 10 columns, and 8 rows of .* were explained"):
        found.verify(queries.head(3))
    with pytest.raises(QueryError, match="8 rows and 9 columns"):
        found.verify(queries.drop(columns="age"))
    with pytest.raises(QueryError, match="must be the DataFrame that was explained, got list"):
        found.verify([1, 2])


def test_numbers_hold_under_constraints_and_checks(
    judged: DiCoFlex, queries: pd.DataFrame, says: Callable[[pd.DataFrame], np.ndarray]
) -> None:
    wish = {"max_changes": 3, "increase": ["gain"], "cost": {"gain": 1.0}}
    cfs = judged.explain(queries, target="yes", n=3, constraints=wish, check=says, random_state=0)
    assert cfs.verify(queries)["holds"].all()
    unmarked = replace(cfs, info=cfs.info.assign(valid=pd.array([None] * len(cfs), dtype="boolean")))
    assert not unmarked.verify()["holds"].all()
