"""What a call computes for each of its queries is computed once."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints, DiCoFlex
from dicoflex.limits.limits import Limits
from dicoflex.limits.once import Once

pytestmark = pytest.mark.usefixtures("one_thread")


def test_entries_are_made_when_first_asked_for_and_in_any_order() -> None:
    asked: list[list[int]] = []
    known = Once(5)

    def get(key: object, *rows: int) -> tuple[Any, ...]:
        numbers = np.array(rows)

        def make(places: np.ndarray) -> tuple[np.ndarray, ...]:
            asked.append(numbers[places].tolist())
            return numbers[places] * 10.0, np.stack([numbers[places]] * 2, axis=1) > 2

        return tuple(array.tolist() for array in known.get(key, numbers, make))

    first, second = object(), object()
    assert get(first, 4, 1, 4) == ([40, 10, 40], [[True, True], [False, False], [True, True]])
    assert get(first, 1, 3) == ([10, 30], [[False, False], [True, True]])
    assert get(first, 3, 4)[0] == [30, 40]
    assert get(second, 1)[0] == [10]
    assert asked == [[1, 4], [3], [1]]


def test_entries_follow_their_queries() -> None:
    known, seen = Once(4), []
    numbers = np.array([2, 0, 3, 1])
    known.get("x", numbers, lambda places: (numbers[places] + 100,))
    for some in (np.array([1]), np.array([3, 3, 0])):
        seen.append(known.get("x", some, lambda _: pytest.fail("made again"))[0].tolist())
    assert seen == [[101], [103, 103, 100]]


@pytest.mark.parametrize("check", [False, True])
def test_an_explanation_looks_ahead_once_for_each_query(mixed: DiCoFlex, queries: pd.DataFrame, check: bool) -> None:
    """However many rounds of draws there are, and whichever queries are still short."""
    seen: dict[str, list[int]] = {"reserved": [], "_domain": [], "rounds": []}

    def counting(name: str, method: Any) -> Any:
        def counted(self: Limits, *args: Any) -> Any:
            seen[name] += self.number.tolist()
            return method(self, *args)

        return mock.patch.object(Limits, name, counted)

    def sample(context: Any, *args: Any) -> Any:
        seen["rounds"].append(len(context))
        return drawn(context, *args)

    drawn = mixed.model_.generator.sample
    wish = Constraints(max_changes=2, rules=["visits <= price", "if member == true then gain >= 100"])
    with (
        counting("reserved", Limits.reserved),
        counting("_domain", Limits._domain),
        mock.patch.object(mixed.model_.generator, "sample", sample),
    ):
        cfs = mixed.explain(
            queries, target="yes", n=60, constraints=wish, random_state=0,
            check=(lambda rows: np.where(rows["gain"] > 500, "yes", "no")) if check else None,
        )  # fmt: skip
    assert len(seen["rounds"]) > 1
    lacking = [i for i, word in enumerate(cfs.status) if word != "already"]
    assert len(lacking) > 1
    assert sorted(seen["reserved"]) == lacking
    assert sorted(seen["_domain"]) == list(range(len(queries)))
