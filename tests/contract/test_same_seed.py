"""The same seed gives the same rows: for any batching, any threads, and in `fit`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from comparing import LABELS, ROWS, BlackBox, Quickly, explained, sampled
from dicoflex import DiCoFlex
from dicoflex.generators import GENERATORS
from dicoflex.runtime.threads import use_threads


@pytest.mark.slow
@pytest.mark.parametrize("how", [explained, sampled])
def test_batching_does_not_matter(how: Callable[..., pd.DataFrame], model: DiCoFlex, queries: pd.DataFrame) -> None:
    given = {"p": 0.25, "frozen": ["age"], "random_state": 5}
    together = how(model, queries, **given)
    alone = pd.concat([how(model, queries.iloc[[i]], **given) for i in range(len(queries))])
    pd.testing.assert_frame_equal(alone, together, check_exact=True)
    shuffle = np.random.default_rng(0).permutation(len(queries))
    for order in (np.arange(len(queries))[::-1], shuffle, np.array([0, 0, 3])):
        of = together.index.get_level_values("row")
        expected = pd.concat([together[of == queries.index[i]] for i in order])
        pd.testing.assert_frame_equal(how(model, queries.iloc[order], **given), expected, check_exact=True)


def test_batching_does_not_matter_with_check(judged: DiCoFlex, queries: pd.DataFrame, says: BlackBox) -> None:
    given = {"check": says, "confidence": 0.6, "random_state": 5}
    together = explained(judged, queries, **given)
    alone = pd.concat([explained(judged, queries.iloc[[i]], **given) for i in range(len(queries))])
    pd.testing.assert_frame_equal(alone, together, check_exact=True)


def test_seeds_differ(model: DiCoFlex, queries: pd.DataFrame) -> None:
    a, b, c = (sampled(model, queries, random_state=seed) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(a, b)
    assert not a.equals(c)
    assert not sampled(model, queries).equals(sampled(model, queries))


def test_threads_do_not_matter(model: DiCoFlex, queries: pd.DataFrame) -> None:
    expected = sampled(model, queries, random_state=0)
    before = torch.get_num_threads()
    try:
        use_threads(4)
        torch.set_num_threads(before + 1)
        pd.testing.assert_frame_equal(sampled(model, queries, random_state=0), expected)
    finally:
        use_threads(1)
        torch.set_num_threads(before)


@pytest.mark.parametrize("name", GENERATORS)
def test_fit_is_repeatable(name: str, applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame,
                           models: Callable[[str], DiCoFlex], quickly: Quickly) -> None:  # fmt: skip
    np.random.seed(7)  # noqa: NPY002  the state of the callers' generators must not matter, nor be touched
    torch.manual_seed(7)
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    again = quickly(applicants, labels, name)
    assert (np.random.get_state()[1] == before[0]).all()  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), before[1])
    first = models(name)
    for key, array in first.model_.content()[1].items():
        np.testing.assert_array_equal(array, again.model_.content()[1][key])
    pd.testing.assert_frame_equal(sampled(first, queries, random_state=0), sampled(again, queries, random_state=0))


def test_other_seed_gives_another_model(applicants: pd.DataFrame, labels: np.ndarray, mixed: DiCoFlex,
                                        queries: pd.DataFrame, quickly: Quickly) -> None:  # fmt: skip
    other = quickly(applicants, labels, random_state=1)
    assert other.fingerprint_ != mixed.fingerprint_
    assert not sampled(other, queries, random_state=0).equals(sampled(mixed, queries, random_state=0))


def test_fit_with_a_black_box_is_repeatable(quickly: Quickly) -> None:
    def predict_proba(frame: pd.DataFrame) -> np.ndarray:
        yes = 1 / (1 + np.exp(-4 * frame["pay"].to_numpy()))
        return np.column_stack([1 - yes, yes])

    given = {"predict_proba": predict_proba, "fit_config": {"passes": 1, "rounds": 1, "own_draws": 400}}
    a, b = (quickly(ROWS, LABELS, **given) for _ in range(2))
    pd.testing.assert_frame_equal(a.sample(ROWS, n=3, random_state=0), b.sample(ROWS, n=3, random_state=0))
