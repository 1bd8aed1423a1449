"""Named levels of confidence: how they are estimated, what they ask for, and who says which was used."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from conftest import fit_quickly, make_applicants, predict, predict_proba
from dicoflex import DiCoFlex, load
from dicoflex.certificate import ASKED_AT, SURVIVES
from dicoflex.learning import certifying, surviving
from dicoflex.learning.reporting import warn_of_weak
from dicoflex.runtime.progress import Deadline

ROWS = 400


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    with (
        mock.patch.object(surviving, "RETRAINED", 3),
        mock.patch.object(surviving, "ANSWERED", 140),
        mock.patch.object(certifying, "ROWS", 6),
    ):
        yield


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return make_applicants(ROWS, seed=11)


@pytest.fixture(scope="module")
def levelled(people: pd.DataFrame, few: None) -> DiCoFlex:
    return fit_quickly(people, predict(people), predict_proba=predict_proba, coherence=True, steps=300)


@pytest.fixture(scope="module")
def refused(people: pd.DataFrame) -> pd.DataFrame:
    return people[predict(people) == "no"].head(12)


def test_levels_rise_and_are_reported(levelled: DiCoFlex) -> None:
    sure = levelled.model_.confidence
    for i, label in enumerate(levelled.classes_):
        told = levelled.report_["confidence"][label]
        levels = [told[name] for name in ("just", "safe", "sure")]
        for name in ("confidence", "survival", "distance"):
            numbers = [one[name] for one in levels]
            assert numbers == sorted(numbers)
        assert levels[0]["confidence"] == pytest.approx(sure.lowest[i], abs=1e-4)
        assert levels[1]["confidence"] == pytest.approx(sure.default[i], abs=1e-4)
        assert levels[2]["confidence"] <= sure.highest[i] + 1e-4
        # The least that is enough, or all that can be asked for.
        for name, one in zip(SURVIVES, levels[1:], strict=True):
            assert one["survival"] >= SURVIVES[name] - 0.02 or one["confidence"] >= sure.highest[i] - 0.01


def test_safe_is_the_default(levelled: DiCoFlex, refused: pd.DataFrame) -> None:
    one, other = (
        levelled.explain(refused, target="yes", n=2, random_state=0, **given) for given in ({}, {"confidence": "safe"})
    )
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert one.status == other.status


def test_surer_levels_are_farther_and_say_so(levelled: DiCoFlex, refused: pd.DataFrame) -> None:
    found = {
        name: levelled.explain(refused, target="yes", n=1, confidence=name, random_state=0) for name in ("just", "sure")
    }
    least = levelled.report_["confidence"]["yes"]
    for name, cfs in found.items():
        needed = least[name]["confidence"]
        assert (cfs.info["probability"] >= needed - 1e-9).all()
        assert set(cfs.needed["level"]) == {name}
        np.testing.assert_allclose(cfs.needed["confidence"], needed, atol=1e-4)
        np.testing.assert_allclose(cfs.needed["survival"], least[name]["survival"], atol=1e-4)
        assert json.loads(cfs.to_json())["settings"]["needed"][0]["level"] == name
        asked = dict(cfs.cards()[0]["asked"])
        assert asked["confidence"].startswith(f"{name}, at least ")
        assert asked["confidence"].endswith("of retrained models would agree")
    assert found["just"].info["probability"].mean() < found["sure"].info["probability"].mean()


def test_a_number_has_no_level(levelled: DiCoFlex, refused: pd.DataFrame) -> None:
    cfs = levelled.explain(refused, target="yes", n=1, confidence=0.6, random_state=0)
    assert cfs.needed["level"].isna().all()
    np.testing.assert_allclose(cfs.needed["confidence"], 0.6)


def test_levels_are_part_of_the_file(levelled: DiCoFlex, tmp_path: Path) -> None:
    levelled.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    for name in ("just", "safe", "sure"):
        np.testing.assert_array_equal(again.model_.level(name), levelled.model_.level(name))
    assert again.fingerprint_ == levelled.fingerprint_


def test_there_are_levels_however_little_time_is_left(levelled: DiCoFlex, people: pd.DataFrame) -> None:
    model, late = replace(levelled.model_, survival=None), Deadline(0.0)
    values, labels = model.encoding.encode(people), predict_proba(people).argmax(axis=1)
    found = surviving.with_survival(model, values, labels, [model.surrogate], seed=0, deadline=late)
    assert late.cuts == ["survival"]
    assert found.survival is not None
    # Of both classes: they differ.
    assert not np.array_equal(found.survival.distance[0], found.survival.distance[1])


def test_retrained_surrogates_differ(levelled: DiCoFlex, people: pd.DataFrame) -> None:
    model = levelled.model_
    values = model.encoding.encode(people)
    table = mock.Mock(values=values, encoding=model.encoding)
    made = surviving.retrained(model, table, predict_proba(people), seed=0)
    said = [one.probabilities(values) for one in made]
    assert len(made) == 3
    assert not np.allclose(said[0], said[1])
    truth = predict_proba(people).argmax(axis=1)
    assert all((one.argmax(axis=1) == truth).mean() > 0.7 for one in said)


def test_what_will_not_last_and_what_was_not_understood_is_warned_of(levelled: DiCoFlex) -> None:
    model = levelled.model_
    assert model.survival is not None
    lasting = replace(model, survival=replace(model.survival, share=np.ones_like(model.survival.share)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_weak(lasting, 0.99)
    with pytest.warns(UserWarning, match="follows only 40% of the labels"):
        warn_of_weak(lasting, 0.4)
    weak = replace(model, survival=replace(model.survival, share=np.full_like(model.survival.share, 0.33)))
    with pytest.warns(UserWarning, match="an estimated 33% of retrained models, and 85% are meant"):
        warn_of_weak(weak, 0.99)


def test_a_surrogate_that_is_too_sure_gets_the_margin_that_each_confidence_needs(
    levelled: DiCoFlex, people: pd.DataFrame
) -> None:
    model = levelled.model_
    values = model.encoding.encode(people)

    def judge(rows: np.ndarray) -> np.ndarray:
        """Less sure than the surrogate by a factor of two in odds."""
        said = np.clip(model.surrogate.probabilities(rows), 1e-9, 1.0)
        odds = said[:, 1] / said[:, 0]
        # Of either class: what is likelier is likely by half the odds.
        odds = np.where(odds > 1, np.maximum(odds / 2, 1.0), np.minimum(odds * 2, 1.0))
        return np.column_stack([1 / (1 + odds), odds / (1 + odds)])

    labels = predict_proba(people).argmax(axis=1)
    margin = certifying._margins_by_level(model, values, labels, judge, np.random.default_rng(0), Deadline())
    assert margin.shape == (2, len(ASKED_AT) + 1)
    asked = np.array(ASKED_AT)
    needed = 2 * asked / (1 + asked)
    below = asked < 0.9  # surer than .97 the surrogate was not asked to be
    for mine in margin:
        np.testing.assert_allclose(mine[:-1][below][1:], (needed - asked)[below][1:], atol=0.03)
        assert mine[-2] <= 0.05
