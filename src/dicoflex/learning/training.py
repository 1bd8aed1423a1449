"""The loop: batches, held-out loss, early stopping, the best weights kept whatever happens."""

from __future__ import annotations

__all__ = ["History", "TrainingSet", "pick_device", "train"]

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dicoflex.errors import SettingError
from dicoflex.generators.base import Generator
from dicoflex.learning.config import TrainingConfig
from dicoflex.learning.pairs import Pairs
from dicoflex.runtime.own_torch import with_gradients
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.threads import one_torch_thread
from dicoflex.table.encoding import Values


@dataclass
class History:
    """What happened: one entry per epoch, and why the loop ended."""

    epochs: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "all epochs done"
    interrupted: bool = False

    @property
    def best(self) -> float:
        """The least held-out loss."""
        return min((e["held_out"] for e in self.epochs if not math.isnan(e["held_out"])), default=math.inf)


@dataclass(frozen=True)
class TrainingSet:
    """Pairs and the tables that they point into."""

    parts: Sequence[Pairs]
    held_out: Pairs
    anchors: Values
    rows: Values


@with_gradients()
def train(
    generator: Generator,
    training_set: TrainingSet,
    config: TrainingConfig,
    *,
    seed: int,
    device: torch.device,
    progress: Progress,
    name: str = "training",
) -> History:
    """Fit `generator` by maximum likelihood and leave it with the weights that did best on the held-out pairs.

    Ctrl-C ends the loop as the time budget does: the best weights so far stay, or those that it began with.
    """
    with one_torch_thread():
        generator.to(device)
        loop = _Loop(generator, training_set, config, seed, device)
        with progress.stage(name, loop.epochs) as advance:
            try:
                loop.run(advance)
            except KeyboardInterrupt:
                loop.history.interrupted = True
                kept = "the best weights so far" if loop.history.epochs else "the weights before this stage"
                loop.history.stopped = f"interrupted; {kept} were kept"
        loop.restore_best()
        generator.to(torch.device("cpu"))
    return loop.history


class _Loop:
    def __init__(
        self, generator: Generator, training_set: TrainingSet, config: TrainingConfig, seed: int, device: torch.device
    ) -> None:
        self.generator, self.training_set, self.config = generator, training_set, config
        self.parameters = list(generator.parameters())
        self.optimizer = torch.optim.AdamW(
            self.parameters, lr=config.learning_rate, weight_decay=config.weight_decay, fused=True
        )
        self.order = np.random.default_rng(seed)
        self.noise = torch.Generator(device=device).manual_seed(seed)
        self.history = History()
        self.best = self._weights()
        self.best_loss, self.best_epoch = math.inf, -1
        self.started = time.monotonic()
        self.steps = 0
        mean = int(np.mean([len(part) for part in training_set.parts]))
        self.batch_size = min(config.batch_size, max(64, mean // 8)) if config.min_steps else config.batch_size
        steps = max(1, math.ceil(mean / self.batch_size))
        self.epochs = max(config.epochs, math.ceil(config.min_steps / steps))
        self.planned = self.epochs * steps

    def run(self, advance: Callable[..., None]) -> None:
        for epoch in range(self.epochs):
            loss = self._epoch(self.training_set.parts[epoch % len(self.training_set.parts)])
            held_out = self._held_out_loss()
            self._remember(epoch, loss, held_out)
            advance(1, f"loss {loss:.3f}  held-out {held_out:.3f}")
            if epoch - self.best_epoch >= self.config.patience:
                self.history.stopped = f"no better for {self.config.patience} epochs"
                return
            if self._out_of_time():
                self.history.stopped = f"the {self.config.max_seconds:g} s were used up"
                return

    def _epoch(self, pairs: Pairs) -> float:
        order = self.order.permutation(len(pairs))
        total, seen = 0.0, 0
        for low in range(0, len(order), self.batch_size):
            index = order[low : low + self.batch_size]
            total += self._step(pairs.take(index)) * len(index)
            seen += len(index)
            if self._out_of_time():
                break
        return total / max(seen, 1)

    def _step(self, pairs: Pairs) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = self._rate()
        batch = pairs.batch(self.training_set.anchors, self.training_set.rows)
        loss = self.generator.loss(batch.context, batch.answers, self.noise)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.steps += 1
        # A batch whose gradient is not finite would poison every weight; it is passed over.
        if bool(torch.isfinite(norm)):
            self.optimizer.step()
        return float(loss.detach())

    def _rate(self) -> float:
        if self.config.schedule == "constant":
            return self.config.learning_rate
        done = min(1.0, self.steps / self.planned)
        if self.config.max_seconds is not None:
            done = max(done, min(1.0, (time.monotonic() - self.started) / self.config.max_seconds))
        return self.config.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * done)))

    def _held_out_loss(self) -> float:
        pairs = self.training_set.held_out
        if len(pairs) == 0:
            return self.history.epochs[-1]["loss"] if self.history.epochs else math.inf
        noise = torch.Generator(device=self.noise.device).manual_seed(0)
        total = 0.0
        size = 4 * self.config.batch_size
        with torch.no_grad():
            for low in range(0, len(pairs), size):
                part = pairs.take(slice(low, low + size))
                batch = part.batch(self.training_set.anchors, self.training_set.rows)
                total += float(self.generator.loss(batch.context, batch.answers, noise)) * len(part)
        return total / len(pairs)

    def _remember(self, epoch: int, loss: float, held_out: float) -> None:
        seconds = time.monotonic() - self.started
        self.history.epochs.append({"epoch": epoch, "loss": loss, "held_out": held_out, "seconds": seconds})
        if held_out < self.best_loss:
            # In one assignment, so that an interruption can't leave weights of two epochs.
            self.best, self.best_loss, self.best_epoch = self._weights(), held_out, epoch

    def _weights(self) -> list[torch.Tensor]:
        return [p.detach().clone() for p in self.parameters]

    def restore_best(self) -> None:
        if self.best_epoch < 0 and not self.history.interrupted:
            return
        with torch.no_grad():
            for kept, now in zip(self.best, self.parameters, strict=True):
                now.copy_(kept)

    def _out_of_time(self) -> bool:
        limit = self.config.max_seconds
        return limit is not None and time.monotonic() - self.started > limit


def pick_device(device: Any) -> torch.device:
    """The device to train on: "auto" takes CUDA where there is one.

    >>> pick_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError):
        raise SettingError(f"device {device!r} is unknown; use 'auto', 'cpu' or 'cuda'") from None
    if chosen.type not in ("cpu", "cuda"):
        raise SettingError(f"device {device!r} is not supported; use 'auto', 'cpu' or 'cuda'")
    if chosen.type == "cuda" and not torch.cuda.is_available():
        raise SettingError(f"device is {device!r}, but this machine offers no CUDA; use 'auto' or 'cpu'")
    return chosen
