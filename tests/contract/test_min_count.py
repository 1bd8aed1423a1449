"""By default a model file names nothing that fewer than five rows have; all densities answer as well without it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comparing import LABELS, ROWS, BlackBox, Quickly, assert_within
from dicoflex import DiCoFlex, Schema, load, model_file
from dicoflex.errors import DataError, QueryError, SettingError
from dicoflex.generators import GENERATORS

N = 400
ODD_PAY, ODD_AGE = 7_654_321.25, 97


def people() -> pd.DataFrame:
    """A table in which a few have what nobody else has."""
    rng = np.random.default_rng(0)
    job = rng.choice(["cook", "nurse", "smith"], N).astype(object)
    job[[5, 6]] = "astronaut"
    pay = rng.normal(3000.0, 700.0, N).round(2)
    pay[11] = ODD_PAY
    age = rng.integers(20, 60, N)
    age[17] = ODD_AGE
    town = rng.choice(["Rome", "Ulm"], N).astype(object)
    town[23] = "Atlantis"
    return pd.DataFrame({"job": job, "pay": pay, "age": age, "town": pd.Categorical(town), "fit": rng.random(N) < 0.5})


PEOPLE = people()
ORDINARY = PEOPLE.drop(index=[5, 6, 23])


def says(rows: pd.DataFrame) -> np.ndarray:
    return np.where(rows["pay"] + 20 * rows["age"] > 3800, "yes", "no")


def proba(rows: pd.DataFrame) -> np.ndarray:
    yes = 1 / (1 + np.exp(-(rows["pay"] + 20 * rows["age"] - 3800).to_numpy(float) / 400))
    return np.column_stack([1 - yes, yes])


@pytest.fixture(scope="module")
def fitted(quickly: Quickly) -> Callable[[str], DiCoFlex]:
    made: dict[str, DiCoFlex] = {}

    def get(name: str) -> DiCoFlex:
        if name not in made:
            judge = {"predict_proba": proba} if GENERATORS[name].is_judged else {}
            made[name] = quickly(PEOPLE, says(PEOPLE), name, min_count=5, **judge)
        return made[name]

    return get


def test_five_is_the_default() -> None:
    assert DiCoFlex().min_count == 5


@pytest.mark.parametrize("name", GENERATORS)
def test_rare_levels_and_extremes_are_not_in_the_file(
    name: str, fitted: Callable[[str], DiCoFlex], tmp_path: Path
) -> None:
    model = fitted(name)
    model.save(tmp_path / "m.dicoflex")
    data = (tmp_path / "m.dicoflex").read_bytes()
    for word in (b"astronaut", b"Atlantis", b"7654321", b"97.0"):
        assert word not in data
    _, arrays = model_file.read(tmp_path / "m.dicoflex")
    for array in arrays.values():
        assert not np.isin([ODD_PAY, np.float64(ODD_AGE)], array[np.isfinite(array)]).any()
    assert model.schema_["job"].levels == ("cook", "nurse", "smith")
    assert model.report_["min_count"] == 5


@pytest.mark.parametrize("name", GENERATORS)
def test_answers_fit_the_schema_and_obey(name: str, fitted: Callable[[str], DiCoFlex], tmp_path: Path) -> None:
    """For rows beyond the limits too, whose own values stay where they are frozen."""
    model = fitted(name)
    rows = ORDINARY.loc[[0, 1, 11, 17]]
    target = np.where(says(rows) == "yes", "no", "yes")
    draws = model.sample(rows, target=target, n=20, frozen=["age"], random_state=0)
    assert (draws["age"].to_numpy() == np.repeat(rows["age"].to_numpy(), 20)).all()
    assert_within(
        draws.drop(columns="age"), Schema(features=tuple(f for f in model.schema_.features if f.name != "age"))
    )
    cfs = model.explain(rows, target=target, n=3, frozen=["age"], random_state=0)
    assert cfs.verify()["holds"].all()
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    pd.testing.assert_frame_equal(again.sample(rows, target=target, n=20, frozen=["age"], random_state=0), draws)
    assert np.isfinite(model.log_density(rows.iloc[:1], draws.iloc[:5], target=target[0], frozen=["age"])).all()


def test_rows_with_rare_values_are_refused_like_unseen_ones(fitted: Callable[[str], DiCoFlex]) -> None:
    model = fitted("mixed")
    for index, word in ((5, "astronaut"), (23, "Atlantis")):
        with pytest.raises(QueryError, match=rf"value '{word}', never seen in training or in fewer than 5 rows; known"):
            model.explain(PEOPLE.loc[[index]], target="yes", handle_unknown="error")
    with pytest.raises(QueryError, match=r"none were seen in training or in fewer than 5 rows; fill them in"):
        model.explain(PEOPLE.loc[[0]].assign(job=None), target="yes", handle_unknown="error")


def test_numbers_that_the_report_has_are_merged(fitted: Callable[[str], DiCoFlex]) -> None:
    report = fitted("mixed").report_
    assert report["rows"] == 400
    assert report["rows_left_out"] == 5
    assert report["rows_used"] == 400
    for count in ("rows", "rows_used", "pairs", "black_box_rows"):
        assert re.fullmatch(r"\d{1,2}0*", str(report[count]))
    for share in ("surrogate_agreement", "held_out_loss"):
        assert round(report[share], 4) == report[share]
    for sure in report["confidence"].values():
        assert round(sure["highest"], 2) == sure["highest"]


def test_means_deviations_and_confidences_are_rounded(fitted: Callable[[str], DiCoFlex]) -> None:
    model = fitted("mixed").model_
    for number in (*model.encoding.mean, *model.encoding.scale):
        assert float(f"{number:.4g}") == number
    for array in (model.confidence.highest, model.confidence.default, model.confidence.lowest):
        np.testing.assert_allclose(array * 100, np.rint(array * 100), atol=1e-9)


def test_one_tells_all_as_before(quickly: Quickly) -> None:
    model = quickly(PEOPLE, says(PEOPLE), min_count=1)
    assert model.schema_ == Schema.infer(PEOPLE)
    assert "astronaut" in model.schema_["job"].levels
    assert model.schema_["pay"].maximum == ODD_PAY
    header, arrays = model.model_.content()
    assert ODD_PAY in arrays["generator.grid.high"]
    assert header["report"]["rows_used"] == N
    assert len(model.explain(PEOPLE.loc[[5]], target="yes", n=2, random_state=0)) == 2


def test_a_schema_that_is_given_is_taken_as_stated(quickly: Quickly) -> None:
    model = quickly(PEOPLE, says(PEOPLE), min_count=5, schema=Schema.infer(PEOPLE))
    assert "astronaut" in model.schema_["job"].levels
    assert model.report_["rows_left_out"] == 0
    blurred = quickly(PEOPLE, says(PEOPLE), min_count=5, schema=Schema.infer(PEOPLE, min_count=5))
    assert blurred.schema_["job"].levels == ("cook", "nurse", "smith")
    assert blurred.report_["rows_left_out"] == 5


def test_the_black_box_is_asked_for_rows_within_the_limits(quickly: Quickly) -> None:
    asked: list[pd.DataFrame] = []

    def listening(rows: pd.DataFrame) -> np.ndarray:
        asked.append(rows)
        return proba(rows)

    quickly(PEOPLE, says(PEOPLE), min_count=5, predict_proba=listening)
    everything = pd.concat(asked)
    assert everything["pay"].max() < 6000
    assert not everything["job"].eq("astronaut").any()


def test_a_class_of_rare_rows_alone_is_refused(quickly: Quickly) -> None:
    labels = np.where(PEOPLE["job"] == "astronaut", "moon", says(PEOPLE))
    with pytest.raises(DataError, match=r"label 'moon' has no row left to learn from.*min_count=1"):
        quickly(PEOPLE, labels, min_count=5)


def test_settings_of_it(quickly: Quickly) -> None:
    with pytest.raises(SettingError, match="min_count"):
        quickly(ROWS, LABELS, min_count=0)
    given = quickly(ROWS, LABELS, min_count=1, fit_config={"passes": 1, "rounds": 0, "min_count": 3})
    assert given.report_["min_count"] == 3


def test_the_header_says_it(fitted: Callable[[str], DiCoFlex]) -> None:
    header, _ = fitted("mixed").model_.content()
    assert header["encoding"]["schema"]["min_count"] == 5
    assert json.dumps(header)


def test_validity_does_not_suffer(quickly: Quickly, says: BlackBox, applicants: pd.DataFrame, labels: np.ndarray,
                                  black_box: BlackBox) -> None:  # fmt: skip
    """A small table, hardly trained: as a guard against a break, not as a measurement."""
    given = {"predict_proba": black_box, "steps": 400, "training": {"min_steps": 0, "epochs": 8}}
    queries = applicants[labels == "no"].head(30)
    shares = []
    for min_count in (1, 5):
        model = quickly(applicants, labels, min_count=min_count, **given)
        shares.append((says(model.sample(queries, target="yes", n=50, random_state=0)) == "yes").mean())
    assert shares[1] > shares[0] - 0.05
