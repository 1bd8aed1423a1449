"""DiCE (Mothilal, Sharma and Tan 2020): the library `dice-ml` itself, shown our tables and black boxes.

DiCE sees a table of its own: numbers first, since it counts its number columns from the left; levels as the text of
their codes, with missing as one of them, since it takes text alone and no missing values.
"""

from __future__ import annotations

__all__ = ["DICE", "Dice", "DiceGenetic", "DiceGradient", "DiceKdtree", "DiceRandom"]

import io
import logging
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from benchmarks.baselines.base import Answers, Clock, Needs, Problem, answer_in_batches
from dicoflex.errors import DataError
from dicoflex.table.encoding import Values

OUTCOME = "outcome"
MOST_DECIMALS = 4
# Numbers go back towards the query by halves. The default goes by the smallest step, thousands of calls for an amount.
BINARY = {"posthoc_sparsity_algorithm": "binary"}


class CodeTable:
    """The two-way map between the encoding's matrix and the frames that DiCE is shown."""

    def __init__(self, problem: Problem) -> None:
        features = problem.encoding.schema.features
        lacking = [f.name for f in features if f.is_number and f.missing]
        if lacking:
            raise DataError(f"number {lacking[0]!r} has missing values, which DiCE refuses; fill them in")
        self.numbers = {f"f{j}": j for j, f in enumerate(features) if f.is_number}
        self.levels = {f"f{j}": j for j, f in enumerate(features) if not f.is_number}
        self.whole = {name: features[j].is_whole for name, j in self.numbers.items()}
        self.seen = {name: np.unique(problem.values[:, j]) for name, j in self.levels.items()}
        self.free = [f"f{j}" for j in (*self.numbers.values(), *self.levels.values()) if not problem.kept[j]]

    def frame(self, values: Values) -> pd.DataFrame:
        """What DiCE sees of a matrix."""
        numbers = {c: values[:, j].astype(np.int64 if self.whole[c] else float) for c, j in self.numbers.items()}
        levels = {c: pd.Series(values[:, j].astype(int)).astype(str).astype(object) for c, j in self.levels.items()}
        return pd.DataFrame(numbers | levels)

    def values(self, frame: pd.DataFrame) -> Values:
        """The matrix of a frame that DiCE made."""
        values = np.empty((len(frame), len(self.numbers) + len(self.levels)))
        for column, j in (self.numbers | self.levels).items():
            values[:, j] = frame[column].astype(float)
        return values

    def decimals(self, values: Values) -> dict[str, int]:
        """How many decimals each number has; DiCE rounds to them."""
        return {c: 0 if self.whole[c] else _decimals(values[:, j]) for c, j in self.numbers.items()}

    def knows(self, query: Values) -> bool:
        """Whether the training rows have the query's levels; DiCE refuses it otherwise."""
        return all(query[j] in self.seen[column] for column, j in self.levels.items())


def _decimals(column: NDArray[np.float64]) -> int:
    """The fewest decimals that most values are written with."""
    exact = [np.mean(np.isclose(np.round(column, k), column, atol=1e-9)) for k in range(MOST_DECIMALS)]
    return next((k for k, share in enumerate(exact) if share > 0.95), MOST_DECIMALS)


class OutOfTimeError(Exception):
    """Raised inside DiCE's own search, which knows no budget, when time is up."""


class Judge:
    """The black box as DiCE calls it; `look` stops the search when time is up."""

    def __init__(self, problem: Problem, table: CodeTable, look: Callable[[], None]) -> None:
        self.problem, self.table, self.look = problem, table, look

    def predict_proba(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The probabilities of rows as DiCE sees them."""
        self.look()
        problem = self.problem
        return problem.judge(problem.encoding.snap(self.table.values(frame)))

    def predict(self, frame: pd.DataFrame) -> NDArray[np.int64]:
        """The class numbers of rows as DiCE sees them."""
        return self.predict_proba(frame).argmax(axis=1)


@dataclass
class Dice:
    """One of DiCE's methods, with its own settings but for `options`, asked for `most` answers at most."""

    name: ClassVar[str]
    method: ClassVar[str]
    needs: ClassVar[Needs] = "predictions"
    many: ClassVar[bool] = True
    most: ClassVar[int | None] = None

    options: dict[str, Any] = field(default_factory=lambda: dict(BINARY))

    def fit(self, problem: Problem, *, seed: int = 0, seconds: float | None = None) -> Self:  # noqa: ARG002
        """Give DiCE the training rows and the black box."""
        dice_ml = _dice()
        self.problem_, self.seed_, self.table_ = problem, seed, CodeTable(problem)
        rows = self.table_.frame(problem.values)
        rows[OUTCOME] = problem.class_numbers(problem.labels, len(rows))
        data = dice_ml.Data(
            dataframe=rows,
            continuous_features=list(self.table_.numbers),
            outcome_name=OUTCOME,
            continuous_features_precision=self.table_.decimals(problem.values),
        )
        self.clock_ = Clock()
        self.explainer_ = dice_ml.Dice(data, self._model(data), method=self.method)
        return self

    def answer(self, queries: pd.DataFrame, targets: Any, *, n: int = 1, seconds: float | None = None) -> Answers:
        """Up to `n` answers for each query, after DiCE's own step that undoes small changes of numbers."""

        def solve(values: Values, wanted: NDArray[np.int64], clock: Clock) -> list[Values] | None:
            self.clock_ = clock
            try:
                return [self._ask(values[0], int(wanted[0]), min(n, self.most or n))]
            except OutOfTimeError:
                return None
            finally:
                self.clock_ = Clock()

        with _quiet(self.seed_):
            return answer_in_batches(self.problem_, queries, targets, solve, size=1, seconds=seconds)

    def _look(self) -> None:
        if self.clock_.is_out:
            raise OutOfTimeError

    def _model(self, data: Any) -> Any:  # noqa: ARG002
        return _dice().Model(model=Judge(self.problem_, self.table_, self._look), backend="sklearn")

    def _ask(self, query: Values, target: int, n: int) -> Values:
        from raiutils.exceptions import UserConfigValidationException

        if not self.table_.knows(query):
            return np.empty((0, len(query)))
        row, free = self.table_.frame(query[None]), self.table_.free
        vary = "all" if len(free) == len(query) else free
        try:
            said = self.explainer_.generate_counterfactuals(
                row, total_CFs=n, desired_class=target, features_to_vary=vary, **self.options
            )
        except UserConfigValidationException:  # how DiCE says that it found nothing
            return np.empty((0, len(query)))
        return self._read(said.cf_examples_list[0], target)

    def _read(self, example: Any, target: int) -> Values:
        """The rows after DiCE's last step, or before it where the step went a value too far and lost the target."""
        snap = self.problem_.encoding.snap
        found = snap(self.table_.values(example.final_cfs_df))
        if example.final_cfs_df_sparse is None:
            return found
        sparse = snap(self.table_.values(example.final_cfs_df_sparse))
        lost = self.problem_.judge(sparse).argmax(axis=1) != target
        return np.where(lost[:, None], found, sparse)


@dataclass
class DiceRandom(Dice):
    """Random changes of one feature, then two, and so on."""

    name: ClassVar[str] = "dice-random"
    method: ClassVar[str] = "random"


@dataclass
class DiceGenetic(Dice):
    """A genetic search that starts from near training rows of the target class."""

    name: ClassVar[str] = "dice-genetic"
    method: ClassVar[str] = "genetic"

    # It stops when its best rows are all valid. For a few queries they never are, and the default of 500 rounds then
    # takes minutes; those that stop by themselves have done so long before 50.
    options: dict[str, Any] = field(default_factory=lambda: {"maxiterations": 50})


@dataclass
class DiceKdtree(Dice):
    """Near training rows of the target class."""

    name: ClassVar[str] = "dice-kdtree"
    method: ClassVar[str] = "kdtree"


@dataclass
class DiceGradient(Dice):
    """Gradient search for all answers together, with a determinant that rewards diversity; two classes only.

    It is asked for four answers at most, as in DiCE's own examples: ten take more than a minute for one query.
    """

    name: ClassVar[str] = "dice-gradient"
    method: ClassVar[str] = "gradient"
    needs: ClassVar[Needs] = "gradients"
    most: ClassVar[int | None] = 4

    def _model(self, data: Any) -> Any:
        network = self.problem_.gradients(self.name)
        if len(self.problem_.classes) != 2:
            raise DataError(f"DiCE's gradient search is for two classes, found {len(self.problem_.classes)}")
        shown = ShownNetwork(network, self.problem_, self.table_, data, self._look)
        return _dice().Model(model=shown, backend="PYT", func="ohe-min-max")


class ShownNetwork(nn.Module):
    """The chance of the second class, from DiCE's own reals: numbers scaled to 0..1, then its one-hot columns."""

    def __init__(
        self, network: nn.Module, problem: Problem, table: CodeTable, data: Any, look: Callable[[], None]
    ) -> None:
        super().__init__()
        self.network, self.look = network, look
        shown = data.get_ohe_min_max_normalized_data(table.frame(problem.values[:1])).columns.tolist()
        weight, bias = np.zeros((len(shown), problem.encoding.n_reals)), np.zeros(problem.encoding.n_reals)
        for column, j in table.numbers.items():
            at, column_values = problem.encoding.blocks[j].start, problem.values[:, j]
            low, high = column_values.min(), column_values.max()
            weight[shown.index(column), at] = (high - low) / problem.encoding.scale[j]
            bias[at] = (low - problem.encoding.mean[j]) / problem.encoding.scale[j]
        for column, j in table.levels.items():
            for code in table.seen[column].astype(int):
                weight[shown.index(f"{column}_{code}"), problem.encoding.blocks[j].start + code] = 1.0
        self.register_buffer("weight", torch.from_numpy(weight).float())
        self.register_buffer("bias", torch.from_numpy(bias).float())

    def forward(self, shown: Tensor) -> Tensor:
        """The chance of each row, or of one row without its first axis."""
        self.look()
        rows = torch.atleast_2d(shown)
        chance = self.network(rows @ self.weight + self.bias).softmax(dim=1)[:, 1:]
        return chance[0] if shown.dim() == 1 else chance


DICE: tuple[type[Dice], ...] = (DiceRandom, DiceGenetic, DiceKdtree, DiceGradient)


def _dice() -> Any:
    try:
        import dice_ml
    except ImportError as error:
        raise DataError(
            f"the DiCE baselines need the package dice-ml, and it can't be imported ({error}); install dice-ml, "
            "raiutils, jsonschema and tqdm"
        ) from error
    return dice_ml


@contextmanager
def _quiet(seed: int) -> Iterator[None]:
    """DiCE without its output, drawing from `seed`; the global generators, which it uses, are put back after."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    level = logging.root.level
    logging.root.setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="dice_ml")
            yield
    finally:
        logging.root.setLevel(level)
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
