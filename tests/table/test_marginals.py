"""Marginals tell how many rows have what, no small count, and nothing that a forged file says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, Schema, load
from dicoflex.audit import reveals
from dicoflex.errors import ModelFileError
from dicoflex.model import Model
from dicoflex.table.encoding import Encoding
from dicoflex.table.marginals import LEAST_COUNT, Marginals, by_factors, is_skewed

ROWS = pd.DataFrame(
    {
        "age": np.arange(300) % 70 + 18,
        "gain": np.where(np.arange(300) % 3, 0.0, np.arange(300) ** 2.0),
        "far": [0] * 299 + [10_000],
        "job": ["cook"] * 200 + ["nurse"] * 95 + ["smith"] * 5,
        "city": pd.Series(["Ulm"] * 150 + [None] * 150, dtype=object),
    }
)


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Encoding.fit(ROWS, Schema.infer(ROWS))


def test_counts_are_those_of_the_rows(encoding: Encoding) -> None:
    found = Marginals.of(encoding, encoding.encode(ROWS))
    assert found.counts(3).tolist() == [200, 95, 0]
    assert found.counts(4).tolist() == [150]
    for j in range(3):
        edges, counts = found.edges(j), found.counts(j)
        assert len(edges) == len(counts) + 1 <= 41
        column = ROWS.iloc[:, j].to_numpy(dtype=float)
        direct = [((column >= a) & (column < b)).sum() for a, b in pairwise(edges)]
        direct[-1] += (column == edges[-1]).sum()
        assert counts.tolist() == [0 if count < LEAST_COUNT else count for count in direct]


@pytest.mark.parametrize("min_count", [1, 5, 30])
def test_no_small_count_is_told(encoding: Encoding, min_count: int) -> None:
    found = Marginals.of(encoding, encoding.encode(ROWS), min_count)
    told = found.count[found.count > 0]
    assert (told >= max(LEAST_COUNT, min_count)).all()
    if min_count > 1:
        assert (told % min_count == 0).all()


def test_edges_follow_from_the_limits_alone(encoding: Encoding) -> None:
    whole, some = encoding.encode(ROWS), encoding.encode(ROWS.head(40))
    assert np.array_equal(Marginals.of(encoding, whole).edge, Marginals.of(encoding, some).edge)


def test_far_reaching_numbers_have_bins_that_grow(encoding: Encoding) -> None:
    features = encoding.schema.features
    assert [is_skewed(f, float(encoding.scale[j])) for j, f in enumerate(features)][:3] == [False, False, True]
    steps = np.diff(by_factors(0.0, 10_000.0, 20, 50.0))
    assert (np.diff(steps) > 0).all()


def test_files_carry_them_or_not(quickly: Callable[..., DiCoFlex], tmp_path: Path) -> None:
    labels = np.where(ROWS["age"] > 50, "yes", "no")
    with_them = quickly(ROWS, labels)
    without = quickly(ROWS, labels, marginals=False)
    assert without.model_.marginals is None
    assert with_them.model_.marginals is not None
    with_them.save(tmp_path / "with.dicoflex")
    without.save(tmp_path / "without.dicoflex")
    again = load(tmp_path / "with.dicoflex").model_.marginals
    assert again is not None
    assert all(np.array_equal(a, with_them.model_.marginals.arrays()[k]) for k, a in again.arrays().items())
    assert load(tmp_path / "without.dicoflex").model_.marginals is None
    told = {one.what: one for one in reveals(with_them.model_)}
    job = told["how many rows have which job"]
    assert job.values == (200, 95, 0)
    assert "under 10 are told as 0" in job.guarantee
    assert not any("how many rows" in one.what for one in reveals(without.model_))


@pytest.mark.parametrize(
    ("name", "forge", "why"),
    [
        ("count", lambda a: np.where(a == 95, 3, a), "counts below 10"),
        ("count", lambda a: -a, "counts below 10"),
        ("count", lambda a: a[:-1], "does not rise"),
        ("count", lambda a: a.astype(np.float64), "is float64"),
        ("edge", lambda a: a[::-1].copy(), "none of 'age'"),
        ("edge", lambda a: a * np.nan, "not finite"),
        ("edge_at", lambda a: a + 1, "does not rise"),
        ("count_at", lambda a: np.where(np.arange(len(a)) == 1, a + 1, a), "none of 'age'"),
    ],
)
def test_forged_ones_are_refused(
    encoding: Encoding, name: str, forge: Callable[[np.ndarray], np.ndarray], why: str
) -> None:
    arrays = Marginals.of(encoding, encoding.encode(ROWS)).arrays()
    with pytest.raises(ModelFileError, match=why):
        Marginals.restore(encoding.schema, {**arrays, name: forge(arrays[name])})


def test_lacking_and_superfluous_ones_are_refused(encoding: Encoding) -> None:
    arrays = Marginals.of(encoding, encoding.encode(ROWS)).arrays()
    with pytest.raises(ModelFileError, match="lacks the array"):
        Marginals.restore(encoding.schema, {k: v for k, v in arrays.items() if k != "edge"})
    with pytest.raises(ModelFileError, match="an array too many"):
        Marginals.restore(encoding.schema, {**arrays, "more": arrays["edge"]})


def test_a_file_without_them_loads() -> None:
    from dicoflex.examples import EXAMPLES

    header, arrays = Model.load(EXAMPLES[0]).content()
    without = {name: array for name, array in arrays.items() if not name.startswith("marginals.")}
    assert len(without) < len(arrays)
    assert Model.from_content(header, without).marginals is None
