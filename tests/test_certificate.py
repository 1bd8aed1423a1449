"""The certified rate: counts, and the bound that they give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from dicoflex.certificate import SORTS, Certificate
from dicoflex.errors import ModelFileError


def certificate(valid: int, total: int) -> Certificate:
    counts = np.zeros((2, len(SORTS), 2), dtype=np.int64)
    counts[1, 0] = valid, total
    return Certificate(np.full((2, 2), 0.02), counts, "the black box")


@pytest.mark.parametrize(("valid", "total"), [(10, 10), (98, 100), (1, 40), (3990, 4000)])
def test_the_bound_is_that_of_clopper_and_pearson(valid: int, total: int) -> None:
    theirs = binomtest(valid, total).proportion_ci(confidence_level=0.9, method="exact").low
    assert certificate(valid, total).valid_at_least(1, "free") == pytest.approx(theirs)


def test_without_counts_nothing_is_promised() -> None:
    assert certificate(0, 0).valid_at_least(1, "free") == 0.0
    assert certificate(5, 5).valid_at_least(0, "few") == 0.0


def test_what_is_no_certificate_is_refused() -> None:
    good = certificate(9, 10)
    again = Certificate.restore(2, good.judge, good.arrays())
    np.testing.assert_array_equal(again.counts, good.counts)
    with pytest.raises(ModelFileError, match=r"not float64 of shape \(3, 2\)"):
        Certificate.restore(3, good.judge, good.arrays())
    with pytest.raises(ModelFileError, match="more valid answers than answers"):
        Certificate.restore(2, good.judge, good.arrays() | {"counts": good.counts[..., ::-1].copy()})
    with pytest.raises(ModelFileError, match="is no share"):
        Certificate.restore(2, good.judge, good.arrays() | {"margin": good.margin + 2})
    with pytest.raises(ModelFileError, match="names no judge"):
        Certificate.restore(2, "an oracle", good.arrays())
