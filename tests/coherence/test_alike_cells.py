"""Cells of a number that lie side by side are alike before a row is seen; levels and missing values are not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dicoflex import Schema
from dicoflex.coherence.seen_pairs import Bins
from dicoflex.learning import row_density
from dicoflex.learning.row_density import learn_row_density
from dicoflex.table.encoding import Encoding

FRAME = pd.DataFrame({"job": ["cook", "nurse", "pilot"] * 100, "pay": [None, *(37 * i % 299 // 2 for i in range(299))]})
SCHEMA = Schema.infer(FRAME)
VALUES = Encoding.fit(FRAME, SCHEMA).encode(FRAME)


def test_the_covariance_is_what_is_said() -> None:
    """The root of it, times itself, hand by hand: a on the diagonal, b where cells meet, less with every step apart."""
    bins = Bins.build(SCHEMA, VALUES, n=4)
    root = row_density._alike(bins, 1).numpy()
    found, n = root @ root.T, 4
    assert found.shape == (5, 5)
    apart = np.abs(np.arange(n)[:, None] - np.arange(n)[None, :])
    np.testing.assert_allclose(found[:n, :n], 0.1 * np.eye(n) + 3.0 * np.exp(-apart), atol=1e-5)
    np.testing.assert_array_equal(found[n], [0, 0, 0, 0, 1])
    np.testing.assert_array_equal(row_density._alike(bins, 0).numpy(), np.eye(3))


def test_what_is_kept_is_what_was_trained() -> None:
    """The arrays of a file, told by the kernels, give the likelihood that the network was trained by."""
    bins = Bins.build(SCHEMA, VALUES, n=8)
    cells, order = bins.locate(VALUES), np.array([0, 1])
    net = row_density._Net(bins, order, cells)
    density = learn_row_density(SCHEMA, VALUES, np.zeros(len(VALUES), dtype=np.int64), 1, seed=0)
    kept = type(density)(bins, row_density.factors_of(order, net.arrays()), density.held, density.weakest)
    state = row_density.torch.from_numpy(np.ascontiguousarray(cells))
    assert -kept.judge(VALUES)[0].mean() == pytest.approx(net.loss(state).item(), abs=1e-3)


def test_few_rows_teach_more_of_rows_that_were_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two numbers that go together: from 240 rows of them, others like them are likelier than without likeness."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=3000)
    frame = pd.DataFrame({"a": first, "b": first + 0.3 * rng.normal(size=3000)})
    schema = Schema.infer(frame)
    values = Encoding.fit(frame, schema).encode(frame)
    labels = np.zeros(240, dtype=np.int64)

    def of_others() -> float:
        density = learn_row_density(schema, values[:240], labels, 1, seed=0, min_count=5)
        return float(density.judge(values[240:])[0].mean())

    alike = of_others()
    monkeypatch.setattr(row_density, "OWN", 1.0)
    monkeypatch.setattr(row_density, "SHARED", 0.0)
    assert alike > of_others() + 0.05
