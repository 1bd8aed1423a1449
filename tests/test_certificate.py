"""The certified rate: counts, and the bound that they give."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest

from dicoflex.certificate import SORTS, Certificate, Survival
from dicoflex.errors import ModelFileError


def certificate(valid: int, total: int) -> Certificate:
    counts = np.zeros((2, len(SORTS), 2), dtype=np.int64)
    counts[1, 0] = valid, total
    return Certificate(np.full((2, 2), 0.02), counts, "the black box")


@pytest.mark.parametrize(("valid", "total"), [(30, 30), (98, 100), (1, 40), (3990, 4000)])
def test_the_bound_is_that_of_clopper_and_pearson(valid: int, total: int) -> None:
    theirs = binomtest(valid, total).proportion_ci(confidence_level=0.9, method="exact").low
    assert certificate(valid, total).valid_at_least(1, "free") == pytest.approx(theirs)


def test_of_few_answers_nothing_is_said() -> None:
    """Bounds of .49, .16 and .00 stood beside answers of which 90 to 97 % were valid."""
    for valid, total in [(0, 0), (5, 5), (29, 29)]:
        assert np.isnan(certificate(valid, total).valid_at_least(1, "free"))
    assert certificate(0, 30).valid_at_least(1, "free") == 0.0


def test_what_is_no_certificate_is_refused() -> None:
    good = certificate(9, 10)
    again = Certificate.restore(2, good.judge, good.arrays())
    np.testing.assert_array_equal(again.counts, good.counts)
    with pytest.raises(ModelFileError, match=r"not float64 of shape \(3, any\)"):
        Certificate.restore(3, good.judge, good.arrays())
    with pytest.raises(ModelFileError, match="more valid answers than answers"):
        Certificate.restore(2, good.judge, good.arrays() | {"counts": good.counts[..., ::-1].copy()})
    with pytest.raises(ModelFileError, match="is no share"):
        Certificate.restore(2, good.judge, good.arrays() | {"margin": good.margin + 2})
    with pytest.raises(ModelFileError, match="names no judge"):
        Certificate.restore(2, "an oracle", good.arrays())
    with pytest.raises(ModelFileError, match="neither for all confidences nor for each"):
        Certificate.restore(2, good.judge, good.arrays() | {"margin": np.full((2, 4), 0.1)})


def test_a_margin_may_be_of_each_confidence() -> None:
    one = certificate(9, 10)
    labels, sure = np.array([0, 1, 1]), np.array([0.5, 0.75, 0.99])
    np.testing.assert_array_equal(one.margin_at(labels, sure), one.margin[labels, 0])
    several = replace(one, margin=np.array([[0.2] * 6 + [0.3], [0.3, 0.2, 0.2, 0.1, 0.04, 0.02, 0.5]]))
    again = Certificate.restore(2, several.judge, several.arrays())
    np.testing.assert_allclose(again.margin_at(labels, sure), [0.2, 0.15, 0.02])
    np.testing.assert_allclose(again.margin_far_out(labels), [0.3, 0.5, 0.5])


# -- survival ------------------------------------------------------------------------------------------------------


def survival() -> Survival:
    sure = np.array([[0.5, 0.7, 0.9], [0.4, 0.6, 0.8]])
    return Survival(sure, np.array([[0.6, 0.8, 0.9], [0.9, 0.9, 0.92]]), np.array([[1.0, 1.5, 2.5], [2.0, 2.0, 3.0]]))


def test_the_least_confidence_is_where_so_many_accept_first() -> None:
    found = survival()
    np.testing.assert_allclose(found.least(0.85), [0.8, 0.4])
    np.testing.assert_allclose(found.least(0.91), [0.9, 0.7])
    for share in (0.6, 0.7, 0.85, 0.9):
        assert found.share_at(0, float(found.least(share)[0])) == pytest.approx(share)


def test_what_is_no_survival_is_refused() -> None:
    good = survival()
    again = Survival.restore(2, good.arrays())
    np.testing.assert_array_equal(again.share, good.share)
    with pytest.raises(ModelFileError, match=r"not float64 of shape \(3, any\)"):
        Survival.restore(3, good.arrays())
    with pytest.raises(ModelFileError, match="not between 0 and 1, rising"):
        Survival.restore(2, good.arrays() | {"share": good.share[:, ::-1].copy()})
    with pytest.raises(ModelFileError, match="not between 0 and 1, rising"):
        Survival.restore(2, good.arrays() | {"confidence": good.confidence + 1})
    with pytest.raises(ModelFileError, match="is negative"):
        Survival.restore(2, good.arrays() | {"distance": -good.distance})
