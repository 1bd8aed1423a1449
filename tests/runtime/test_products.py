"""A rectified vector times a matrix: what numpy says, for any sizes."""

from __future__ import annotations

import numpy as np
import pytest

from dicoflex.runtime.products import add_rectified, new_actives


@pytest.mark.parametrize("length", [1, 2, 7, 32])
@pytest.mark.parametrize("width", [1, 7, 8, 15, 16, 24, 31, 48, 56])
def test_products_are_those_of_numpy(length: int, width: int) -> None:
    rng = np.random.default_rng(length * 100 + width)
    x, weight = rng.normal(size=length).astype(np.float32), rng.normal(size=(length, width)).astype(np.float32)
    start = rng.normal(size=width).astype(np.float32)
    out = start.copy()
    add_rectified(x, weight, out, width, new_actives(length))
    np.testing.assert_allclose(out, start + np.maximum(x, 0.0) @ weight, rtol=1e-4, atol=1e-5)


def test_columns_beyond_are_left_alone() -> None:
    x, weight, out = np.ones(4, dtype=np.float32), np.ones((4, 24), dtype=np.float32), np.zeros(24, dtype=np.float32)
    add_rectified(x, weight, out, 16, new_actives(4))
    assert out.tolist() == [4.0] * 16 + [0.0] * 8
