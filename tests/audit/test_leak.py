"""The leak audit finds what there is to find: copies, few people, members that were learned by heart, planted rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, cli
from dicoflex.attacks import Told, attack, attacks_on, guesses_of
from dicoflex.audit import Effort, leak, odd_rows
from dicoflex.audit.leaking import NO_PROOF, copies, crowd, told_of_few
from dicoflex.errors import DataError, SettingError
from dicoflex.learning import row_density
from dicoflex.runtime.progress import Deadline

KEY = bytes(range(32))


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 60, n)
    return pd.DataFrame(
        {
            "age": age,
            "pay": (100 * age + rng.normal(0.0, 300.0, n)).round(2),
            "job": rng.choice(["cook", "nurse", "smith"], n),
            "town": rng.choice(["Rome", "Ulm"], n),
        }
    )


TRAIN, OTHERS = people(400, 0), people(400, 1)
LABELS = np.where(TRAIN["age"] > 40, "yes", "no")


@pytest.fixture(scope="module")
def mixed(quickly: Any) -> DiCoFlex:
    return quickly(TRAIN, LABELS, min_count=5, remember_rows=KEY)


@pytest.fixture
def no_decay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A density of rows whose weights nothing holds back."""
    monkeypatch.setattr(row_density, "DECAY", 0.5)


def with_rows(quickly: Any, rows: pd.DataFrame, min_count: int = 1) -> DiCoFlex:
    """A model with a density of rows; a count of one trains it to the end."""
    return quickly(rows, np.where(rows["age"] > 40, "yes", "no"), coherence=True, min_count=min_count)


def by_rows(model: DiCoFlex) -> float:
    """The AUC of the attack by the density of rows."""
    effort = Effort(queries=10, attacks=("rows",), guessed=0)
    return leak(model, TRAIN, OTHERS, effort=effort, random_state=0).worst


def test_an_attack_tells_members_from_others_or_does_not() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=4000)
    nothing = attack(scores[:2000], scores[2000:])
    assert abs(nothing.auc - 0.5) < 4 * nothing.error
    assert nothing.found < 0.03
    assert attack(scores + 10, scores).auc == 1.0
    assert attack(scores + 10, scores).found > 0.99
    assert attack(np.zeros(50), np.zeros(70)).auc == 0.5


@pytest.mark.usefixtures("no_decay")
def test_rows_learned_by_heart_are_found(quickly: Any) -> None:
    """A count of five ends the training where held-out rows gain no more."""
    found, kept = (by_rows(with_rows(quickly, TRAIN, min_count)) for min_count in (1, 5))
    assert found > 0.7
    assert kept < found - 0.05


def test_the_density_of_few_rows_does_not_learn_them_by_heart(quickly: Any) -> None:
    assert by_rows(with_rows(quickly, TRAIN, 5)) < 0.58


class ByNeighbours:
    """A density that knows its rows, but only tells those who ask from near by."""

    def __init__(self, rows: np.ndarray, scale: np.ndarray) -> None:
        self.rows, self.scale = {tuple(row) for row in rows.tolist()}, scale

    def log_prob(self, context: Any, values: np.ndarray) -> np.ndarray:
        near = (np.abs(context.query - values) / self.scale)[:, :2].max(axis=1) < 1.0
        known = np.array([tuple(row) in self.rows for row in values.tolist()])
        return np.where(near & known, 0.0, -10.0)


def test_a_density_that_tells_neighbours_is_found_by_them(mixed: DiCoFlex) -> None:
    model = mixed.model_
    keeps = replace(model, generator=ByNeighbours(model.encoding.encode(TRAIN), model.encoding.scale))
    members, others = (model.encoding.encode(rows) for rows in (TRAIN, OTHERS))
    told = Told(keeps, others[:200], members[:0], 0)
    assert attacks_on(told, members, others[200:], ("neighbours",))["neighbours"].auc > 0.6


def test_a_smooth_density_keeps_its_rows(mixed: DiCoFlex) -> None:
    kept = leak(mixed, TRAIN, OTHERS, effort=Effort(queries=40, guessed=0), random_state=0)
    assert set(kept.attacks) == {"density", "neighbours", "contrast", "surrogate", "distance"}
    assert all(abs(one.auc - 0.5) < 4 * one.error for one in kept.attacks.values())
    assert (kept.members, kept.others, kept.left_out) == (400, 300, 0)


class Knows:
    """A density that gives rows of its own a mass of their own."""

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = rows

    def log_prob(self, context: Any, values: np.ndarray) -> np.ndarray:  # noqa: ARG002
        apart = np.abs(values[:, None, :] - self.rows[None]) / self.rows.std(axis=0)
        return -20.0 * apart.sum(axis=2).min(axis=1)


def test_values_of_rows_known_by_heart_are_found(mixed: DiCoFlex) -> None:
    model = mixed.model_
    members, others = (model.encoding.encode(rows) for rows in (TRAIN, OTHERS))
    keeps = replace(model, generator=Knows(members))
    told = Told(keeps, others[:200], members[:0], 0)
    found = guesses_of(told, members, others[200:], wanted=("density", "rows"), rows=40)["density"]
    assert list(found.features) == ["pay", "age", "job", "town"]
    pay = found.features["pay"]
    assert not pay.exact
    assert pay.members > 3 * pay.others
    assert pay.surest_members >= pay.members
    assert found.features["job"].exact
    assert found.times > 2
    assert found.excess > 2
    nobody = guesses_of(told, others[200:300], others[300:], wanted=("density",), rows=40)["density"]
    assert abs(nobody.excess) < 3


def test_values_are_guessed_of_as_many_features_as_there_is_time_for(mixed: DiCoFlex) -> None:
    model = mixed.model_
    members, others = (model.encoding.encode(rows) for rows in (TRAIN, OTHERS))
    told = Told(model, others[:200], members[:0], 0)
    given = {"wanted": ("density",), "rows": 5}
    assert list(guesses_of(told, members, others[200:], **given, features=1)["density"].features) == ["pay"]
    assert guesses_of(told, members, others[200:], **given, deadline=Deadline(0.0)) == {}


def test_values_found_are_reported(mixed: DiCoFlex) -> None:
    found = leak(mixed, TRAIN, OTHERS, effort=Effort(queries=10, attacks=("density",), guessed=30), random_state=0)
    plain = json.loads(json.dumps(found.to_dict()))["attributes"]["density"]
    assert plain["rows"] == 30
    assert set(plain["features"]) == set(TRAIN)
    assert plain["mean"]["members"] == plain["features"]["pay"]["members"]


def test_copies_are_counted_beside_those_of_held_out_rows() -> None:
    rows = np.arange(60.0).reshape(30, 2)
    found = copies(rows[:10], rows[:8], rows[8:12], seed=0)
    assert (found.answers, found.of_members, found.of_others) == (10, 0.8, 0.2)
    assert found.of_as_many_members == 0.4


def test_people_behind_quasi_identifiers_are_counted() -> None:
    members = np.array([[1.0, 5.0]] * 7 + [[2.0, 5.0]] * 2)
    found = crowd(np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), members, [0])
    assert (found.nobody, found.few, found.more) == (0.25, 0.5, 0.25)


def test_novel_answers_are_no_copies(mixed: DiCoFlex) -> None:
    found = leak(mixed, TRAIN, OTHERS, novel=True, effort=Effort(queries=30, attacks=()), random_state=0)
    assert found.copies.of_members == 0.0
    assert found.attacks == {}
    assert found.worst == 0.5


def test_odd_rows_are_of_usual_values_and_nobody_s() -> None:
    odd = odd_rows(TRAIN, 25, random_state=0)
    assert odd.dtypes.equals(TRAIN.dtypes)
    assert len(odd) == 25
    assert odd.merge(TRAIN).empty
    for name in TRAIN:
        assert odd[name].isin(TRAIN[name]).all()


@pytest.mark.usefixtures("no_decay")
def test_planted_rows_that_come_back_are_found(quickly: Any) -> None:
    odd = odd_rows(TRAIN, 8, random_state=0)
    rows = pd.concat([TRAIN, *[odd] * 5], ignore_index=True)
    effort = Effort(queries=20, attacks=("rows",), guessed=0)
    found = leak(with_rows(quickly, rows), rows, OTHERS, planted={"odd": odd}, effort=effort).planted["odd"]
    assert found.rows == 8
    assert found.attacks["rows"].auc > 0.9


def test_what_is_told_of_few_rows_is_counted(quickly: Any) -> None:
    rows = TRAIN.assign(job=["pilot", *TRAIN["job"][1:]])
    few = told_of_few(quickly(rows, LABELS, min_count=1).model_, rows)
    assert few["levels"] == 1
    assert few["extremes"] >= 2
    assert few["single values"] >= 0
    assert told_of_few(quickly(rows, LABELS, min_count=5).model_, rows) == {
        "levels": 0, "single values": 0, "extremes": 0,
    }  # fmt: skip


def test_what_is_asked_wrongly_is_refused(mixed: DiCoFlex) -> None:
    with pytest.raises(SettingError, match=r"quasi: .*'zip'"):
        leak(mixed, TRAIN, OTHERS, quasi=["zip"])
    with pytest.raises(SettingError, match="attack"):
        leak(mixed, TRAIN, OTHERS, effort=Effort(queries=10, attacks=("guess",)))
    with pytest.raises(DataError, match="needs 100 training"):
        leak(mixed, TRAIN.head(50), OTHERS)
    with pytest.raises(DataError, match="lack the column 'job'"):
        leak(mixed, TRAIN.drop(columns="job"), OTHERS)


def test_rows_with_values_that_the_model_does_not_know_are_left_out(mixed: DiCoFlex) -> None:
    strange = OTHERS.assign(job=["pilot"] * 30 + OTHERS["job"].tolist()[30:])
    found = leak(mixed, TRAIN, strange, effort=Effort(queries=10, attacks=()))
    assert found.left_out == 30


def test_the_command_prints_a_table_and_writes_json(
    mixed: DiCoFlex, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed.save(tmp_path / "m.dicoflex")
    TRAIN.to_csv(tmp_path / "train.csv", index=False)
    OTHERS.to_csv(tmp_path / "others.csv", index=False)
    odd_rows(TRAIN, 5, random_state=0).to_csv(tmp_path / "odd.csv", index=False)
    paths = [str(tmp_path / name) for name in ("m.dicoflex", "train.csv", "others.csv")]
    out = tmp_path / "leak.json"
    given = ["--quasi", "age,town", "--queries", "20", "--planted", str(tmp_path / "odd.csv"), "-o", str(out)]
    assert cli.main(["audit", "leak", *paths, *given]) == 0
    text = capsys.readouterr().out
    for words in (
        "membership by density",
        "AUC 0.",
        "a value found by density",
        "surest quarter",
        "training row",
        NO_PROOF,
    ):
        assert words in " ".join(text.split())
    found = json.loads(out.read_text())
    assert found["note"] == NO_PROOF
    assert found["quasi_identifiers"] == ["age", "town"]
    assert 0 <= found["attacks"]["distance"]["auc"] <= 1
    assert found["planted"]["odd"]["rows"] == 5
    assert cli.main(["audit", "leak", *paths, "--quasi", "zip"]) == 2
