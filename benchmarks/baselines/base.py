"""The protocol of all baselines: what they are told about a problem, what they answer, and when they must stop."""

from __future__ import annotations

__all__ = ["Answers", "Baseline", "Clock", "Needs", "Now", "Problem", "Solve", "answer_in_batches", "one_thread"]

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.baselines.gradients import NoGradientError, network_of
from dicoflex.errors import QueryError, named
from dicoflex.table.encoding import Encoding, Values
from dicoflex.table.schema import Schema

Needs = Literal["gradients", "predictions", "labels"]
Now = Callable[[], float]


@dataclass(frozen=True, eq=False)
class Problem:
    """A black box and the rows that it judged; each method takes from it no more than it needs.

    labels: what the black box said of the training rows. classes: the labels in the order of `predict_proba`'s columns.
    network: the black box as a torch module, reals of the encoding to logits, or None if it has no gradient.
    immutable: features that an answer may not change. now: the clock that budgets of time go by.
    """

    train: pd.DataFrame
    labels: NDArray[Any]
    classes: NDArray[Any]
    encoding: Encoding
    predict_proba: Callable[[pd.DataFrame], NDArray[np.float64]]
    network: nn.Module | None = None
    immutable: tuple[Any, ...] = ()
    now: Now = time.monotonic

    @classmethod
    def of(cls, black_box: Any, train: pd.DataFrame, schema: Schema, *, now: Now = time.monotonic) -> Problem:
        """The problem of a fitted scikit-learn classifier, with its gradient where it has one."""
        encoding = Encoding.fit(train, schema)
        classes = np.asarray(black_box.classes_)
        try:
            network = network_of(black_box, encoding, train)
        except NoGradientError:
            network = None
        labels = classes[np.asarray(black_box.predict_proba(train)).argmax(axis=1)]
        return cls(train, labels, classes, encoding, black_box.predict_proba, network, now=now)

    @cached_property
    def values(self) -> Values:
        """The training rows as the encoding's matrix."""
        return self.encoding.encode(self.train)

    @cached_property
    def reals(self) -> Tensor:
        """The training rows as scaled numbers and one-hot blocks."""
        return torch.from_numpy(self.encoding.to_reals(self.values))

    @cached_property
    def kept(self) -> NDArray[np.bool_]:
        """Which features may not change."""
        return self.encoding.schema.mask(list(self.immutable))

    @cached_property
    def kept_reals(self) -> NDArray[np.bool_]:
        """Which reals belong to features that may not change."""
        return self.encoding.real_mask(self.kept[None])[0]

    def class_numbers(self, labels: Any, n: int) -> NDArray[np.int64]:
        """The positions among `classes` of one label per row, or of one label for all `n`."""
        wanted = [labels] * n if pd.api.types.is_scalar(labels) else list(labels)
        place = {label: i for i, label in enumerate(self.classes.tolist())}
        unknown = [label for label in wanted if label not in place]
        if unknown:
            raise QueryError(named("target", unknown[0], place))
        if len(wanted) != n:
            raise QueryError(f"{n} queries but {len(wanted)} targets; give one target each, or one for all")
        return np.array([place[label] for label in wanted], dtype=np.int64)

    def gradients(self, method: str) -> nn.Module:
        """The black box as a torch module; a method that needs it refuses a black box without one."""
        if self.network is None:
            raise NoGradientError(
                f"{method} needs the gradient of the black box, and this one has none; give a pipeline of affine "
                "preprocessing and an MLPClassifier, or use a baseline that needs predictions or labels alone"
            )
        return self.network

    def judge(self, values: Values) -> NDArray[np.float64]:
        """The black box's probabilities for the rows of a matrix, shown to it as a frame of the training dtypes."""
        return np.asarray(self.predict_proba(self.encoding.decode(values)))

    def settle(self, reals: Tensor, query: Values) -> Values:
        """The rows nearest to some reals, as a frame would hold them, with the query's immutable values."""
        values = self.encoding.from_reals(reals.detach().numpy())
        return np.where(self.kept, query, values if self._holds_any else self.encoding.snap(values))

    @cached_property
    def _holds_any(self) -> bool:
        """Whether the number columns hold any value of their grid, so that there is nothing to snap."""
        dtypes = {feature.dtype for feature in self.encoding.schema.features if feature.is_number}
        return dtypes <= {"int64", "float64"}


@dataclass(frozen=True, eq=False)
class Answers:
    """What a baseline answered: rows with the training columns and dtypes under a MultiIndex (row, cf).

    seconds: how long it took. done: per query, whether the method got to its end before time was up; the frame holds
    answers to such queries alone, and a query that is done without an answer is one that the method can't answer.
    """

    frame: pd.DataFrame
    seconds: float
    done: NDArray[np.bool_]


class Baseline(Protocol):
    """A method to compare with: what it needs of the black box, and whether it gives several answers per query."""

    name: ClassVar[str]
    needs: ClassVar[Needs]
    many: ClassVar[bool]

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:
        """Prepare for the queries of `problem`, in about so many seconds at most."""
        ...

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:
        """Up to `n` answers for each query; those that are left when time is up are not done."""
        ...


@dataclass(frozen=True)
class Clock:
    """A budget of time that runs from when the clock is made; None never runs out."""

    seconds: float | None = None
    now: Now = time.monotonic
    started: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "started", self.now())

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return self.now() - self.started

    @property
    def share(self) -> float:
        """How much of the budget is spent, 0 to 1."""
        if self.seconds is None:
            return 0.0
        elapsed = self.elapsed
        return 1.0 if elapsed >= self.seconds else elapsed / self.seconds

    @property
    def is_out(self) -> bool:
        """Whether the budget is spent."""
        return self.share >= 1.0


Solve = Callable[[Values, NDArray[np.int64], Clock], list[Values] | None]


def answer_in_batches(
    problem: Problem, queries: pd.DataFrame, targets: Any, solve: Solve, *, size: int, seconds: float | None
) -> Answers:
    """The answers of `solve`, `size` queries at a time, until all are done or time is up.

    solve: from queries, target classes and the clock to one matrix of answers per query, or None if time ran out.
    """
    clock = Clock(seconds, problem.now)
    values, wanted = problem.encoding.encode(queries), problem.class_numbers(targets, len(queries))
    done = np.zeros(len(queries), dtype=bool)
    found: list[Values] = []
    with one_thread():
        for low in range(0, len(queries), size):
            at = slice(low, low + size)
            part = None if clock.is_out else solve(values[at], wanted[at], clock)
            if part is None:
                break
            done[at] = True
            found += part
    return Answers(_frame(problem, queries, found), clock.elapsed, done)


def _frame(problem: Problem, queries: pd.DataFrame, found: list[Values]) -> pd.DataFrame:
    counts = [len(part) for part in found]
    row = queries.index[np.repeat(np.arange(len(found)), counts)]
    cf = np.concatenate([np.arange(0), *(np.arange(count) for count in counts)])
    index = pd.MultiIndex.from_arrays([row, cf], names=["row", "cf"])
    return problem.encoding.decode(np.concatenate([np.empty((0, len(problem.kept))), *found]), index)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread inside: what is compared is methods, not how they share a machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
