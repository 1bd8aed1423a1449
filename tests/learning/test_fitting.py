"""From a table to a trained density: what is held out, what confidence is supported, what a judge confirms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError

from dicoflex import DiCoFlex
from dicoflex.errors import DataError, SchemaError
from dicoflex.generators.base import Table
from dicoflex.learning import judged as judged_way
from dicoflex.learning import steps
from dicoflex.learning.black_box import BlackBox
from dicoflex.learning.config import FitConfig, FitSettings, TrainingConfig
from dicoflex.learning.judged import fit_judged
from dicoflex.learning.plain import fit_plain
from dicoflex.learning.steps import Fitted, Task
from dicoflex.learning.training import History, TrainingSet
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.randomness import row_keys
from dicoflex.table import survey
from dicoflex.table.encoding import Encoding
from dicoflex.table.remembered import row_hashes
from dicoflex.table.schema import Schema
from dicoflex.table.survey import take_rows

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

N = 400
KEY = bytes(range(32))
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


def make_task(table: Table, generator: str = "mixed", masks: np.ndarray | None = None, **config: Any) -> Task:
    settings = FitSettings.resolve(
        generator,
        shared={},
        fit_config=FitConfig(**({"passes": 2, "rounds": 0, "own_draws": 800} | config)),
        training=TrainingConfig(epochs=2, batch_size=512, learning_rate=2e-3),
    )
    return Task(table, settings, masks, seed=0, device=torch.device("cpu"), progress=Progress(False))


@pytest.fixture
def lessons(monkeypatch: pytest.MonkeyPatch) -> list[TrainingSet]:
    """What the training loop is given, in the order of the stages; the loop itself is left out."""
    given: list[TrainingSet] = []

    def train(generator: Any, lesson: TrainingSet, config: TrainingConfig, **_: Any) -> History:
        given.append(lesson)
        return History([{"epoch": 0, "loss": 1.0, "held_out": 1.0, "seconds": 0.0}])

    monkeypatch.setattr(steps, "train", train)
    monkeypatch.setattr("dicoflex.learning.surrogate.STEPS", 300)
    monkeypatch.setattr("dicoflex.learning.surrogate.ROUNDS", 20)
    return given


def judged(task: Task, box: BlackBox | None = None) -> Fitted:
    """The default way, with a black box at hand."""
    box = box or BlackBox(probabilities, task.table.encoding, 2)
    known = probabilities(task.table.encoding.decode(task.table.values))
    return fit_judged(replace(task, black_box=box, probabilities=known))


@pytest.mark.parametrize("way", [fit_plain, judged, fit_judged])
def test_held_out_anchors_are_never_seen_in_training(
    way: Callable[[Task], Fitted], table: Table, lessons: list[TrainingSet]
) -> None:
    way(make_task(table))
    lesson = lessons[0]
    held = set(lesson.held_out.anchor.tolist())
    seen = {int(i) for part in lesson.parts for i in (*part.anchor, *part.row)}
    assert len(held) > 20
    assert not held & seen
    assert len(lesson.parts) == 2


def test_own_draws_do_not_touch_held_out_rows(table: Table, lessons: list[TrainingSet]) -> None:
    judged(make_task(table, rounds=1))
    first, second = lessons
    held = set(first.held_out.anchor.tolist())
    known = len(first.rows)
    assert len(second.rows) > known >= N
    for part in second.parts:
        assert not held & set(part.anchor.tolist())
    own = [part.take(part.row >= known) for part in second.parts]
    assert sum(map(len, own)) > 50
    assert second.held_out is first.held_out


def test_every_pair_has_the_verdict_of_the_black_box(table: Table, lessons: list[TrainingSet]) -> None:
    """After clamping, sparsifying and drawing: what is learned from is what the black box confirms."""
    judged(make_task(table, rounds=1))
    for lesson in lessons:
        for part in lesson.parts:
            batch = part.batch(lesson.anchors, lesson.rows)
            context, answers = batch.context, batch.answers
            sure = probabilities(table.encoding.decode(answers))[np.arange(len(answers)), context.target]
            assert (sure >= context.confidence - 1e-6).all()
            assert not (table.encoding.differs(answers, context.query) & context.frozen).any()
            assert table.encoding.differs(answers, context.query).any(axis=1).all()


def test_plain_pairs_are_rows_as_they_are(table: Table, lessons: list[TrainingSet]) -> None:
    fit_plain(make_task(table, "maf"))
    for part in lessons[0].parts:
        assert not part.kept.any()
        assert (table.labels[part.row] == part.target).all()


def test_named_masks_reach_the_pairs(table: Table, lessons: list[TrainingSet]) -> None:
    mask = np.array([[False, True, True, False]])
    judged(make_task(table, masks=mask))
    assert all((part.frozen == mask).all() for part in lessons[0].parts)


def test_more_anchors_than_allowed_are_thinned(table: Table, lessons: list[TrainingSet]) -> None:
    fit_plain(make_task(table, "maf", most_anchors=50))
    assert {len(np.unique(part.anchor)) for part in lessons[0].parts} <= set(range(30, 51))


def rare(table: Table) -> Table:
    """The table with one class in twenty rows: those with the greatest `a`."""
    labels = (table.values[:, 0] >= np.sort(table.values[:, 0])[-N // 20]).astype(np.int64)
    return Table(table.encoding, table.values, labels, 2)


def test_judged_anchors_are_balanced_over_the_classes(table: Table, lessons: list[TrainingSet]) -> None:
    """Half by the classes' shares, half evenly; the paper's way takes the rows as they are."""
    few = rare(table)
    fit_judged(make_task(few, passes=1))
    fit_plain(make_task(few, "maf", passes=1))
    balanced, plain = (np.concatenate([part.target for part in lesson.parts]) for lesson in lessons)
    assert 0.15 < (balanced == 0).mean() < 0.4
    assert (plain == 0).mean() < 0.08


@pytest.mark.parametrize("n", [1, 30, 400, 1500])
def test_balanced_rows_are_spread_evenly(n: int) -> None:
    labels = np.repeat([0, 1, 2], [300, 90, 0]).astype(np.int64)
    found = judged_way._balanced(labels, np.arange(390), 3, n, np.random.default_rng(0))
    counts = np.bincount(labels[found], minlength=3)
    assert n <= len(found) <= n + 1
    assert counts[2] == 0
    assert counts[1] == np.ceil(n * (0.5 * 90 / 390 + 0.25))
    for label in (0, 1):
        times = np.bincount(found[labels[found] == label], minlength=390)[labels == label]
        assert times.max() - times.min() <= 1


def test_of_many_neighbours_some_are_taken(table: Table, lessons: list[TrainingSet]) -> None:
    fit_judged(make_task(table, passes=1, k=24, each=2))
    taken = np.concatenate([part.anchor for part in lessons[0].parts])
    assert np.unique(taken, return_counts=True)[1].max() <= 4
    assert FitConfig().k == 24


@pytest.mark.parametrize("own_draws", [1, 7, 9])
def test_hardly_any_own_draws(own_draws: int, table: Table, lessons: list[TrainingSet]) -> None:
    judged(make_task(table, rounds=1, own_draws=own_draws))
    assert len(lessons) == 2


def test_black_box_is_asked_in_whole_batches(table: Table, lessons: list[TrainingSet]) -> None:
    counted = mock.Mock(side_effect=probabilities)
    box = BlackBox(counted, table.encoding, 2)
    judged(make_task(table, rounds=1), box)
    assert box.caller.calls == counted.call_count <= 8


def test_judge_that_refuses_everything_is_an_error(table: Table, lessons: list[TrainingSet]) -> None:
    """A black box that gives its labels up as soon as it is asked anew."""
    box = BlackBox(lambda frame: np.tile([0.5, 0.5], (len(frame), 1)), table.encoding, 2)
    with pytest.raises(DataError, match="labels may not belong to these rows"):
        judged(make_task(table), box)
    assert not lessons


# -- confidence -------------------------------------------------------------------------------------------------------


def test_confidence_that_the_rows_support(lessons: list[TrainingSet]) -> None:
    """The hundredth surest row of a class; 0.7 by default, or what half of a class reaches where fewer reach that."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=500), "b": rng.normal(size=500)})
    labels = np.r_[np.zeros(380), np.ones(120)].astype(np.int64)
    sure = np.r_[np.linspace(0.5, 0.9999, 380), np.linspace(0.5, 0.65, 120)]
    answers = np.where(np.eye(2, dtype=bool)[labels], sure[:, None], 1 - sure[:, None])
    encoding = Encoding.fit(frame, Schema.infer(frame))
    table = Table(encoding, encoding.encode(frame), labels, 2, sure)

    def recall(asked: pd.DataFrame) -> np.ndarray:
        """What the nearest row has: rows to learn from lie between two of them."""
        apart = np.abs(asked.to_numpy()[:, None] - table.values[None]).sum(axis=2)
        return answers[apart.argmin(axis=1)]

    task = replace(make_task(table), black_box=BlackBox(recall, encoding, 2), probabilities=answers)
    sure_of = fit_judged(task).confidence
    assert sure_of.highest[0] == pytest.approx(np.sort(sure[:380])[-100])
    assert sure_of.highest[1] == pytest.approx(np.sort(sure[380:])[-60])
    assert sure_of.default.tolist() == [0.7, pytest.approx(np.sort(sure[380:])[-61])]
    assert (sure_of.lowest <= sure_of.default).all()
    assert (sure_of.highest <= 0.99).all()


def test_labels_alone_support_no_confidence(table: Table, lessons: list[TrainingSet]) -> None:
    for fitted in (fit_judged(make_task(table)), fit_plain(make_task(table, "kde"))):
        sure_of = fitted.confidence
        assert (sure_of.lowest == sure_of.highest).all()
        assert (sure_of.lowest == sure_of.default).all()


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"passes": 0},
        {"k": 0},
        {"alpha": 0.0},
        {"rounds": -1},
        {"own_draws": 0},
        {"undo_levels": 1.5},
        {"each": 0},
        {"level_weight": 0.0},
        {"pass": 1},
    ],
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


# -- more rows than are learned from ----------------------------------------------------------------------------------


def large_table() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of which single ones hold the limits, a level, a missing number and a missing level."""
    rng = np.random.default_rng(0)
    n = 5000
    frame = pd.DataFrame(
        {
            "gain": rng.gamma(2.0, 500.0, n),
            "age": pd.array(rng.integers(18, 80, n), dtype="Int64"),
            "one": np.full(n, 3),
            "city": rng.choice(["Rome", "Ulm"], n).astype(object),
        }
    )
    frame.loc[4321, "gain"] = 1e6
    frame.loc[1234, "age"] = pd.NA
    frame.loc[3210, "city"] = "Oslo"
    frame.loc[2345, "city"] = None
    return frame, (rng.random(n) < 0.004).astype(np.int64)


def test_tables_within_the_budget_are_taken_whole() -> None:
    frame, labels = large_table()
    schema = Schema.infer(frame)
    rows = take_rows(frame, schema, labels, most=len(frame), seed=0, row_key=KEY)
    encoding = Encoding.fit(frame, schema)
    assert rows.encoding.state() == encoding.state()
    np.testing.assert_array_equal(rows.values, encoding.encode(frame))
    assert rows.labels is labels
    assert rows.remembered is not None
    np.testing.assert_array_equal(rows.remembered.hashes, np.unique(row_hashes(rows.values, KEY)))


def test_sample_of_a_larger_table_knows_what_all_rows_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "CHUNK", 700)
    frame, labels = large_table()
    schema = Schema.infer(frame)
    rows = take_rows(frame, schema, labels, most=300, seed=0, row_key=KEY)
    encoding = Encoding.fit(frame, schema)
    every = encoding.encode(frame)
    assert len(rows.values) == len(rows.labels) == 300
    assert rows.encoding.schema == schema
    np.testing.assert_allclose(rows.encoding.mean, encoding.mean, rtol=1e-12)
    np.testing.assert_allclose(rows.encoding.scale, encoding.scale, rtol=1e-12)
    assert rows.remembered is not None
    assert rows.remembered.hold(every).all()
    assert len(rows.remembered.hashes) == len(frame.drop_duplicates())
    for j in range(every.shape[1]):
        assert np.nanmin(rows.values[:, j]) == np.nanmin(every[:, j])
        assert np.nanmax(rows.values[:, j]) == np.nanmax(every[:, j])
        assert np.isnan(rows.values[:, j]).any() == np.isnan(every[:, j]).any()
    assert set(rows.values[:, 3]) == set(every[:, 3])


def test_sampled_rows_keep_their_labels_and_rare_classes_their_rows() -> None:
    frame, labels = large_table()
    rows = take_rows(frame, Schema.infer(frame), labels, most=300, seed=0)
    label_of = dict(zip(row_keys(Encoding.fit(frame, Schema.infer(frame)).encode(frame), 0), labels, strict=True))
    assert [label_of[key] for key in row_keys(rows.values, 0)] == rows.labels.tolist()
    assert rows.labels.sum() == labels.sum() > 10


def test_row_beyond_the_schema_is_refused_although_few_rows_are_taken() -> None:
    frame, labels = large_table()
    schema = Schema.infer(frame.drop(index=4321))
    with pytest.raises(SchemaError, match=r"column 'gain' holds .* beyond its schema's"):
        take_rows(frame, schema, labels, most=100, seed=0)


def test_fit_of_a_larger_table_asks_the_black_box_for_the_sample_alone(quickly: Quickly) -> None:
    frame, _ = large_table()
    labels = np.where(frame["gain"] > 900, "yes", "no")
    asked: list[int] = []

    def predict_proba(rows: pd.DataFrame) -> np.ndarray:
        asked.append(len(rows))
        yes = np.where(rows["gain"] > 900, 0.9, 0.1)
        return np.column_stack([1 - yes, yes])

    config = {"most_rows": 400, "passes": 1, "rounds": 0, "most_anchors": 100}
    model = quickly(frame, labels, predict_proba=predict_proba, fit_config=config)
    assert model.report_["rows"] == 5000
    assert model.report_["rows_used"] == asked[0] == 400
    assert sum(asked) < 2500
    assert model.schema_ == Schema.infer(frame)


def test_sampled_fit_is_repeatable(quickly: Quickly) -> None:
    frame, _ = large_table()
    labels = np.where(frame["gain"] > 900, "yes", "no")
    config = {"most_rows": 300, "passes": 1, "rounds": 0}
    first, second = (quickly(frame, labels, fit_config=config) for _ in range(2))
    draws = [model.sample(frame.head(3), n=5, random_state=0) for model in (first, second)]
    pd.testing.assert_frame_equal(*draws)


# -- sharpening --------------------------------------------------------------------------------------------------------


def steps_of(frame: pd.DataFrame) -> np.ndarray:
    """A black box of many small steps, which a surrogate learned from rows alone gets wrong between them."""
    at = frame["a"].to_numpy() + 0.4 * np.sign(np.sin(9 * frame["b"].to_numpy())) * (frame["c"].to_numpy() > 3)
    yes = 1 / (1 + np.exp(-3 * np.round(4 * at) / 4))
    return np.column_stack([1 - yes, yes])


def stepped(table: Table) -> tuple[Task, BlackBox]:
    box = BlackBox(steps_of, table.encoding, 2)
    known = steps_of(table.encoding.decode(table.values))
    own = replace(table, labels=known.argmax(axis=1), confidence=known.max(axis=1))
    return replace(make_task(own), black_box=box, probabilities=known, coherence=mock.Mock(strays=None)), box


@pytest.mark.usefixtures("lessons")
def test_the_surrogate_is_sharpened_where_it_is_barely_sure(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_way, "SHARPENED_ROWS", 1500)
    task, box = stepped(table)
    fitted = fit_judged(task)
    found = fitted.facts["sharpened"]
    assert len(found) == judged_way.SHARPENED
    # New rows each time, on which it errs less.
    assert found[-1] < found[0]
    monkeypatch.setattr(judged_way, "SHARPENED", 0)
    without, other = stepped(table)
    assert fit_judged(without).facts["sharpened"] == []
    assert box.caller.rows - other.caller.rows <= judged_way.SHARPENED_ROWS * 3


@pytest.mark.usefixtures("lessons")
def test_a_surrogate_that_is_sharp_is_left_alone(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_way, "SHARP_ENOUGH", 1.0)
    task, _ = stepped(table)
    assert len(fit_judged(task).facts["sharpened"]) == 1
    # Without refinement answers don't go to the edge.
    assert fit_judged(replace(task, coherence=None)).facts["sharpened"] == []
