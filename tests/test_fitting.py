"""From a table to a trained density: what is held out, what confidence is supported, what a judge confirms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError

from dicoflex import DiCoFlex, fitting
from dicoflex.black_box import BlackBox
from dicoflex.encoding import Encoding
from dicoflex.errors import DataError
from dicoflex.fitting import FitConfig, Fitted, Setting, fit_judged, fit_plain
from dicoflex.generators import get
from dicoflex.generators.base import Table
from dicoflex.progress import Progress
from dicoflex.schema import Schema
from dicoflex.training import History, Lesson, TrainingConfig

pytestmark = pytest.mark.usefixtures("one_thread")

N = 400
Quickly = Callable[..., DiCoFlex]


def probabilities(frame: pd.DataFrame) -> np.ndarray:
    yes = 1 / (1 + np.exp(-3 * (frame["a"].to_numpy() + 0.3 * frame["d"].eq("x").to_numpy())))
    return np.column_stack([1 - yes, yes])


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=N), "b": rng.normal(size=N), "c": rng.integers(0, 9, N), "d": rng.choice(list("xyz"), N)}
    )
    encoding = Encoding.fit(frame, Schema.infer(frame))
    answers = probabilities(frame)
    return Table(encoding, encoding.encode(frame), answers.argmax(axis=1), 2, answers.max(axis=1))


def make_setting(table: Table, generator: str = "mixed", masks: np.ndarray | None = None, **config: Any) -> Setting:
    kind = get(generator)
    return Setting(
        table=table,
        generator=kind,
        generator_config=kind.Config(),
        config=FitConfig(**({"passes": 2, "rounds": 0, "own_draws": 800} | config)),
        training=TrainingConfig(epochs=2, batch_size=512, learning_rate=2e-3),
        masks=masks,
        seed=0,
        device=torch.device("cpu"),
        progress=Progress(False),
    )


@pytest.fixture
def lessons(monkeypatch: pytest.MonkeyPatch) -> list[Lesson]:
    """What the training loop is given, in the order of the stages; the loop itself is left out."""
    given: list[Lesson] = []

    def train(generator: Any, lesson: Lesson, config: TrainingConfig, **_: Any) -> History:
        given.append(lesson)
        return History([{"epoch": 0, "loss": 1.0, "held_out": 1.0, "seconds": 0.0}])

    monkeypatch.setattr(fitting, "train", train)
    monkeypatch.setattr("dicoflex.surrogate.Perceptron.STEPS", 300)
    monkeypatch.setattr("dicoflex.surrogate.Forest.ROUNDS", 20)
    return given


def judged(setting: Setting) -> Fitted:
    box = BlackBox(probabilities, setting.table.encoding, 2)
    return fit_judged(setting, box, box.probabilities(setting.table.values))


@pytest.mark.parametrize("way", [fit_plain, judged, lambda setting: fit_judged(setting, None, None)])
def test_held_out_anchors_are_never_seen_in_training(
    way: Callable[[Setting], Fitted], table: Table, lessons: list[Lesson]
) -> None:
    way(make_setting(table))
    lesson = lessons[0]
    held = set(lesson.held_out.anchor.tolist())
    seen = {int(i) for part in lesson.parts for i in (*part.anchor, *part.row)}
    assert len(held) > 20
    assert not held & seen
    assert len(lesson.parts) == 2


def test_own_draws_do_not_touch_held_out_rows(table: Table, lessons: list[Lesson]) -> None:
    judged(make_setting(table, rounds=1))
    first, second = lessons
    held = set(first.held_out.anchor.tolist())
    assert len(second.rows) > len(first.rows) == N
    for part in second.parts:
        assert not held & set(part.anchor.tolist())
    own = [part.take(part.row >= N) for part in second.parts]
    assert sum(map(len, own)) > 50
    assert second.held_out is first.held_out


def test_every_pair_has_the_verdict_of_the_black_box(table: Table, lessons: list[Lesson]) -> None:
    """After clamping, sparsifying and drawing: what is learned from is what the black box confirms."""
    judged(make_setting(table, rounds=1))
    for lesson in lessons:
        for part in lesson.parts:
            context, answers = part.batch(lesson.anchors, lesson.rows)
            sure = probabilities(table.encoding.decode(answers))[np.arange(len(answers)), context.target]
            assert (sure >= context.confidence - 1e-6).all()
            assert not (table.encoding.differs(answers, context.query) & context.frozen).any()
            assert table.encoding.differs(answers, context.query).any(axis=1).all()


def test_plain_pairs_are_rows_as_they_are(table: Table, lessons: list[Lesson]) -> None:
    fit_plain(make_setting(table, "maf"))
    for part in lessons[0].parts:
        assert not part.kept.any()
        assert (table.labels[part.row] == part.target).all()


def test_named_masks_reach_the_pairs(table: Table, lessons: list[Lesson]) -> None:
    mask = np.array([[False, True, True, False]])
    judged(make_setting(table, masks=mask))
    assert all((part.frozen == mask).all() for part in lessons[0].parts)


def test_more_anchors_than_allowed_are_thinned(table: Table, lessons: list[Lesson]) -> None:
    fit_plain(make_setting(table, "maf", most_anchors=50))
    assert {len(np.unique(part.anchor)) for part in lessons[0].parts} <= set(range(30, 51))


@pytest.mark.parametrize("own_draws", [1, 7, 9])
def test_hardly_any_own_draws(own_draws: int, table: Table, lessons: list[Lesson]) -> None:
    judged(make_setting(table, rounds=1, own_draws=own_draws))
    assert len(lessons) == 2


def test_black_box_is_asked_in_whole_batches(table: Table, lessons: list[Lesson]) -> None:
    counted = mock.Mock(side_effect=probabilities)
    box = BlackBox(counted, table.encoding, 2)
    fit_judged(make_setting(table, rounds=1), box, probabilities(table.encoding.decode(table.values)))
    assert box.calls == counted.call_count <= 8


def test_judge_that_refuses_everything_is_an_error(table: Table, lessons: list[Lesson]) -> None:
    """A black box that gives its labels up as soon as it is asked anew."""
    box = BlackBox(lambda frame: np.tile([0.5, 0.5], (len(frame), 1)), table.encoding, 2)
    with pytest.raises(DataError, match="labels may not belong to these rows"):
        fit_judged(make_setting(table), box, probabilities(table.encoding.decode(table.values)))
    assert not lessons


# -- confidence -------------------------------------------------------------------------------------------------------


def test_confidence_that_the_rows_support(lessons: list[Lesson]) -> None:
    """The hundredth surest row of a class; 0.7 by default, or what half of a class reaches where fewer reach that."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500)})
    labels = np.r_[np.zeros(380), np.ones(120)].astype(np.int64)
    sure = np.r_[np.linspace(0.5, 0.9999, 380), np.linspace(0.5, 0.65, 120)]
    answers = np.where(np.eye(2, dtype=bool)[labels], sure[:, None], 1 - sure[:, None])
    encoding = Encoding.fit(frame, Schema.infer(frame))
    table = Table(encoding, encoding.encode(frame), labels, 2, sure)
    rows = {row.tobytes(): answer for row, answer in zip(table.values, answers, strict=True)}

    def recall(asked: pd.DataFrame) -> np.ndarray:
        return np.stack([rows.get(row.tobytes(), np.array([0.5, 0.5])) for row in asked.to_numpy()])

    conditions = fit_judged(make_setting(table), BlackBox(recall, encoding, 2), answers).conditions
    assert conditions.highest[0] == pytest.approx(np.sort(sure[:380])[-100])
    assert conditions.highest[1] == pytest.approx(np.sort(sure[380:])[-60])
    assert conditions.usual.tolist() == [0.7, pytest.approx(np.sort(sure[380:])[-61])]
    assert (conditions.lowest <= conditions.usual).all()
    assert (conditions.highest <= 0.99).all()


def test_labels_alone_support_no_confidence(table: Table, lessons: list[Lesson]) -> None:
    for fitted in (fit_judged(make_setting(table), None, None), fit_plain(make_setting(table, "kde"))):
        conditions = fitted.conditions
        assert (conditions.lowest == conditions.highest).all()
        assert (conditions.lowest == conditions.usual).all()


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [{"passes": 0}, {"k": 0}, {"alpha": 0.0}, {"rounds": -1}, {"own_draws": 0}, {"undo_levels": 1.5}, {"pass": 1}],
)
def test_settings_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FitConfig(**bad)


# -- what it leads to -------------------------------------------------------------------------------------------------


def test_small_p_changes_fewer_features(quickly: Quickly) -> None:
    """One of six numbers decides and all go together: near rows differ in all, one change is enough."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(600, 1))
    frame = pd.DataFrame(0.9 * base + 0.45 * rng.normal(size=(600, 6)), columns=list("abcdef"))

    def predict_proba(rows: pd.DataFrame) -> np.ndarray:
        yes = 1 / (1 + np.exp(-5 * rows["c"].to_numpy()))
        return np.column_stack([1 - yes, yes])

    model = quickly(
        frame, predict_proba(frame).argmax(axis=1), predict_proba=predict_proba, steps=500,
        training={"min_steps": 0, "epochs": 25, "batch_size": 256}, fit_config={"passes": 5, "rounds": 0},
    )  # fmt: skip
    queries = frame[frame["c"] < -0.3].head(20)
    changed = {}
    for p in (0.01, 0.25, 2.0):
        draws = model.sample(queries, target=1, n=30, p=p, random_state=0)
        changed[p] = (draws.to_numpy() != queries.to_numpy().repeat(30, axis=0)).sum(axis=1).mean()
        assert (predict_proba(draws).argmax(axis=1) == 1).mean() > 0.8
    assert changed[0.01] < changed[0.25] < changed[2.0]
    assert changed[0.01] < 0.7 * changed[2.0]


def test_three_classes(three: DiCoFlex, queries: pd.DataFrame) -> None:
    def level(frame: pd.DataFrame) -> np.ndarray:
        found = np.digitize(frame["gain"] / 400 + frame["member"], [0.5, 1.6])
        return np.array(["low", "middle", "high"])[found]

    for target in ("low", "middle", "high"):
        draws = three.sample(queries, target=target, n=20, random_state=0)
        assert (level(draws) == target).mean() > 0.6
    each = np.array(["low", "middle", "high", "low"] * 2)
    cfs = three.explain(queries, target=each, n=2, random_state=0)
    assert cfs.info["target"].tolist() == [each[i] for i in cfs.positions]
