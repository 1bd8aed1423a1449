"""The training loop: the best weights stay, whatever ends it."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from dicoflex.errors import SettingError
from dicoflex.learning import training
from dicoflex.learning.config import TrainingConfig
from dicoflex.learning.pairs import Pairs
from dicoflex.learning.training import History, TrainingSet, pick_device, train
from dicoflex.runtime.progress import Progress


class Slope:
    """A density with one weight. Its training loss falls for ever; its held-out loss is `held_out(weight)`."""

    def __init__(self, held_out: Callable[[float], float] = lambda w: -w) -> None:
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.held_out = held_out
        self.seen: list[float] = []
        self.sizes: list[int] = []
        self.before_step: Callable[[int], torch.Tensor | None] = lambda _: None

    def parameters(self) -> list[torch.nn.Parameter]:
        return [self.weight]

    def to(self, _: torch.device) -> Slope:
        return self

    def loss(self, _: Any, answers: np.ndarray, __: torch.Generator) -> torch.Tensor:
        if not torch.is_grad_enabled():
            return torch.tensor(self.held_out(float(self.weight.detach())))
        special = self.before_step(len(self.seen))
        self.seen.append(float(self.weight.detach()))
        self.sizes.append(len(answers))
        return -self.weight.sum() if special is None else special * self.weight.sum()


def lesson(n: int = 40, parts: int = 1, held_out: int = 4) -> TrainingSet:
    def pairs(count: int) -> Pairs:
        zeros = np.zeros(count, dtype=np.int32)
        mask = np.zeros((count, 1), dtype=bool)
        ones = np.ones(count, dtype=np.float32)
        return Pairs(zeros, zeros, mask, mask, np.zeros(count, dtype=np.int16), ones, ones)

    values = np.zeros((1, 1))
    return TrainingSet([pairs(n) for _ in range(parts)], pairs(held_out), values, values)


def run(model: Any, given: TrainingSet | None = None, **config: Any) -> History:
    settings = TrainingConfig(**({"epochs": 10, "batch_size": 10, "learning_rate": 0.1} | config))
    return train(model, given or lesson(), settings, seed=0, device=torch.device("cpu"), progress=Progress(False))


# -- the best weights -------------------------------------------------------------------------------------------------


def test_weights_of_the_best_held_out_loss_are_kept() -> None:
    model = Slope(held_out=lambda w: abs(w - 1.2))
    history = run(model, epochs=10)
    best = min(range(10), key=lambda i: history.epochs[i]["held_out"])
    assert 0 < best < 9
    assert float(model.weight.detach()) == pytest.approx(0.4 * (best + 1), abs=1e-3)
    assert history.best == pytest.approx(abs(float(model.weight.detach()) - 1.2), abs=1e-4)
    assert history.stopped == "all epochs done"
    assert not history.interrupted


def test_history_has_an_entry_per_epoch() -> None:
    history = run(Slope(), epochs=3)
    assert [e["epoch"] for e in history.epochs] == [0, 1, 2]
    assert [e["held_out"] for e in history.epochs] == sorted((e["held_out"] for e in history.epochs), reverse=True)
    seconds = [e["seconds"] for e in history.epochs]
    assert seconds == sorted(seconds)


def test_patience_ends_training() -> None:
    model = Slope(held_out=lambda w: abs(w - 0.8))
    history = run(model, epochs=100, patience=3)
    assert len(history.epochs) == 2 + 3
    assert history.stopped == "no better for 3 epochs"
    assert float(model.weight.detach()) == pytest.approx(0.8, abs=1e-3)


def test_patience_also_ends_training_that_never_was_any_good() -> None:
    history = run(Slope(held_out=lambda _: math.nan), epochs=100, patience=4)
    assert len(history.epochs) == 4
    assert history.best == math.inf


def test_parts_take_turns() -> None:
    model = Slope()
    given = lesson(parts=2)
    run(
        model,
        TrainingSet([given.parts[0], given.parts[1].take(slice(0, 5))], given.held_out, given.anchors, given.rows),
        epochs=3,
    )
    assert model.sizes == [10] * 4 + [5] + [10] * 4


def test_table_without_held_out_pairs() -> None:
    model = Slope()
    history = run(model, lesson(held_out=0), epochs=4)
    assert len(history.epochs) == 4
    assert float(model.weight.detach()) > 0


# -- what ends it early -----------------------------------------------------------------------------------------------


class Clock:
    """A clock that the training loop reads and that each step moves on by 1/32 s."""

    def __init__(self, model: Slope, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 5.0
        model.before_step = self.move
        monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=lambda: self.now))

    def move(self, _: int) -> None:
        self.now += 1 / 32


def test_time_budget_holds_within_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Slope()
    Clock(model, monkeypatch)
    history = run(model, lesson(n=100_000), epochs=100, max_seconds=0.25)
    assert len(model.seen) == 8 + 1
    assert history.stopped == "the 0.25 s were used up"
    assert [e["seconds"] for e in history.epochs] == [9 / 32]
    assert float(model.weight.detach()) > 0


def test_least_time_budget_still_trains_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Slope()
    Clock(model, monkeypatch)
    run(model, epochs=100, max_seconds=1e-9)
    assert len(model.seen) == 1
    assert float(model.weight.detach()) > 0


def interrupt_at(step: int) -> Callable[[int], None]:
    def before(now: int) -> None:
        if now == step:
            raise KeyboardInterrupt

    return before


def test_interruption_keeps_the_best_weights() -> None:
    model = Slope(held_out=lambda w: abs(w - 0.8))
    model.before_step = interrupt_at(18)
    history = run(model, epochs=100)
    assert history.interrupted
    assert history.stopped == "interrupted; the best weights so far were kept"
    assert len(history.epochs) == 4
    assert float(model.weight.detach()) == pytest.approx(0.8, abs=1e-3)


def test_interruption_before_anything_was_measured_goes_back_to_the_weights_at_the_start() -> None:
    """0.1.0 (9aa4d8c) kept those of a few steps, and called them the best so far."""
    model = Slope()
    model.before_step = interrupt_at(2)
    history = run(model)
    assert history.interrupted
    assert history.epochs == []
    assert history.stopped == "interrupted; the weights before this stage were kept"
    assert float(model.weight.detach()) == 0.0


def test_interruption_restores_the_number_of_threads() -> None:
    before = torch.get_num_threads()
    model = Slope()
    model.before_step = interrupt_at(0)
    run(model)
    assert torch.get_num_threads() == before


def test_other_errors_are_not_swallowed() -> None:
    model = Slope()

    def fail(step: int) -> None:
        raise ZeroDivisionError

    model.before_step = fail
    with pytest.raises(ZeroDivisionError):
        run(model)


# -- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_steps_that_are_not_finite_are_passed_over(bad: float) -> None:
    model = Slope()
    model.before_step = lambda step: torch.tensor(bad) if step % 3 == 1 else None
    history = run(model, epochs=6)
    assert math.isfinite(float(model.weight.detach()))
    assert float(model.weight.detach()) > 1.0
    assert math.isfinite(history.best)


def test_held_out_loss_that_turns_bad_is_survived() -> None:
    model = Slope(held_out=lambda w: -w if w < 1.5 else math.nan)
    history = run(model, epochs=10)
    assert float(model.weight.detach()) == pytest.approx(1.2, abs=1e-3)
    assert history.best == pytest.approx(-1.2, abs=1e-3)


def step_sizes(model: Slope) -> np.ndarray:
    """With a gradient that never changes, Adam's steps are as long as the learning rate says."""
    return np.diff(model.seen)


def test_constant_schedule() -> None:
    model = Slope()
    run(model, epochs=5)
    np.testing.assert_allclose(step_sizes(model), 0.1, rtol=1e-3)


def test_cosine_schedule() -> None:
    model = Slope()
    run(model, epochs=5, schedule="cosine")
    done = np.arange(19) / 20
    np.testing.assert_allclose(step_sizes(model), 0.1 * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * done))), rtol=1e-3)


def test_cosine_schedule_follows_the_clock_when_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Slope()
    Clock(model, monkeypatch)
    run(model, epochs=10_000, schedule="cosine", max_seconds=1.0)
    done = np.arange(32) / 32
    np.testing.assert_allclose(step_sizes(model), 0.1 * (0.01 + 0.99 * 0.5 * (1 + np.cos(np.pi * done))), rtol=1e-3)


def test_weight_decay_pulls_to_zero() -> None:
    free, bound = Slope(), Slope()
    run(free, epochs=20)
    run(bound, epochs=20, weight_decay=1.0)
    assert 0 < float(bound.weight.detach()) < float(free.weight.detach())


def test_same_seed_gives_the_same_order_and_noise() -> None:
    class Noisy(Slope):
        def loss(self, _: Any, __: np.ndarray, generator: torch.Generator) -> torch.Tensor:
            noise = torch.rand(1, generator=generator)
            self.seen.append(float(noise))
            return -(self.weight * noise).sum()

    a, b = Noisy(), Noisy()
    run(a, epochs=2)
    torch.manual_seed(123)
    run(b, epochs=2)
    assert a.seen == b.seen
    assert torch.equal(a.weight, b.weight)


def test_gradients_are_clipped() -> None:
    model = Slope()
    model.before_step = lambda step: torch.tensor(1e12) if step == 0 else torch.tensor(-1e-3)
    run(model, epochs=1)
    assert abs(float(model.weight.detach())) < 1.0


# -- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"epochs": 0},
        {"batch_size": 0},
        {"learning_rate": 0},
        {"patience": 0},
        {"max_seconds": 0},
        {"weight_decay": -1},
        {"schedule": "up"},
        {"steps": 3},
    ],
)
def test_settings_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        TrainingConfig(**bad)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        TrainingConfig().epochs = 5  # type: ignore[misc]


@pytest.mark.parametrize("device", ["gpu", "meta", 7.5, None])
def test_devices_that_are_refused(device: Any) -> None:
    with pytest.raises(SettingError, match="use 'auto', 'cpu' or 'cuda'"):
        pick_device(device)


def test_device() -> None:
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(SettingError, match="this machine offers no CUDA; use 'auto' or 'cpu'"):
            pick_device("cuda")


def test_history_of_nothing() -> None:
    assert History().best == math.inf
