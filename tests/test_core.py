"""The compiled core by itself: its functions are accurate, and arrays that do not fit are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dicoflex import _core

INF = np.inf
BITS = {
    "log": ["-0x1.26bb1bbb55515p+1", "0x1.0fae81914a991p-1", "-0x1.58d6a52bb2934p+9", "0x1.2d79559791e31p+3"],
    "exp": ["0x1.1aec7b35a00d4p+0", "0x1.7622c78a98a07p-3", "0x1.8f5aab3a871d0p+43", "0x1.4ff475c68ca02p-1011"],
}


def applied(function: Callable[[Any, Any], None], x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    function(x, out)
    return out


def units_off(found: np.ndarray, exact: np.ndarray) -> float:
    """The greatest error, in units of the last place."""
    return float(np.max(np.abs(found - exact) / np.spacing(np.abs(found))))


def test_exp_is_accurate() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-708, 709, 50_000), rng.normal(size=50_000), rng.normal(size=5_000) * 1e-6])
    assert units_off(applied(_core.exp, x), np.exp(x.astype(np.longdouble))) < 1.0


def test_log_is_accurate() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate([10.0 ** rng.uniform(-320, 308, 50_000), 1 + rng.normal(size=50_000) * 1e-3, rng.random(50_000)])
    x = x[(x > 0) & (x != 1.0)]
    assert units_off(applied(_core.log, x), np.log(x.astype(np.longdouble))) < 1.0


def test_tanh_is_accurate() -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-25, 25, 50_000), rng.normal(size=50_000), rng.normal(size=50_000) * 1e-3])
    assert units_off(applied(_core.tanh, x), np.tanh(x.astype(np.longdouble))) < 2.5
    ends = np.array([0.0, -0.0, INF, -INF, np.nan, 1e-310])
    np.testing.assert_array_equal(applied(_core.tanh, ends), [0.0, -0.0, 1.0, -1.0, np.nan, 1e-310])


def test_what_is_outside_the_range() -> None:
    x = np.array([0.0, -1.0, INF, np.nan, 1.0])
    np.testing.assert_array_equal(applied(_core.log, x), [-INF, np.nan, INF, np.nan, 0.0])
    x = np.array([0.0, -INF, INF, np.nan, 710.0, -746.0])
    np.testing.assert_array_equal(applied(_core.exp, x), [1.0, 0.0, INF, np.nan, INF, 0.0])


def test_bits_are_the_same_on_every_machine() -> None:
    """Written down once: another compiler or processor must give the same bytes."""
    x = np.array([0.1, 1.7, 3e-300, 12345.678])
    assert [float(v).hex() for v in applied(_core.log, x)] == BITS["log"]
    assert [float(v).hex() for v in applied(_core.exp, np.array([0.1, -1.7, 30.25, -700.5]))] == BITS["exp"]


def leaves(**other: Any) -> _core.Leaves:
    n = 1
    fields: dict[str, Any] = {
        "first": np.array([0, 1]), "positions": np.zeros((n, _core.LEAF), np.int32), "last": np.zeros(n, np.int32),
        "keys": np.zeros((n, 2, _core.LEAF), np.int16), "near": np.zeros((n, 1, _core.LEAF), np.float32),
        "codes": np.zeros((n * _core.LEAF, 1), np.int32), "numbers": np.zeros((n * _core.LEAF, 1)),
        "levels": np.zeros((1, n), np.uint32), "low": np.zeros((1, n), np.float32),
        "high": np.zeros((1, n), np.float32), "values": np.zeros(1), "edges": np.array([[0, 1]]),
    }  # fmt: skip
    return _core.Leaves(**(fields | other))


@pytest.mark.parametrize(
    "other",
    [
        {"first": np.array([0, 2])},
        {"first": np.array([1, 0])},
        {"edges": np.array([[0, 2]])},
        {"edges": np.array([[1, 0]])},
        {"near": np.zeros((1, 2, _core.LEAF), np.float32)},
        {"codes": np.zeros((3, 1), np.int32)},
        {"low": np.zeros((1, 2), np.float32)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(other: dict[str, Any]) -> None:
    leaves()
    with pytest.raises(ValueError, match=next(iter(other))):
        leaves(**other)


@pytest.mark.parametrize(("at", "target"), [((0, 2), 0), ((-1, 1), 0), ((0, 1), 1), ((0, 1), -1)])
def test_anchors_outside_are_refused(at: tuple[int, int], target: int) -> None:
    anchors = {
        "codes": np.zeros((1, 1), np.int32), "numbers": np.zeros((1, 1)), "keys": np.zeros((1, 2), np.int16),
        "target": np.array([target]), "stop": np.array([1]), "p": np.array([2.0]),
        "code_weight": np.ones((1, 1)), "number_weight": np.ones((1, 1)),
        "positions": np.zeros((1, 3), np.int64), "distances": np.full((1, 3), INF),
    }  # fmt: skip
    with pytest.raises(ValueError, match="fit each other"):
        _core.search(leaves(), **anchors, low=at[0], high=at[1])
