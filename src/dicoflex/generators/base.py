"""What every conditional density p(x' | x, y', p, m, c) has to offer, and the arrays that it is given.

A new density is a class with the attributes and methods of `Generator` in a file of its own, and a line in the
registry of `dicoflex.generators`. Everything else is found there: settings from the command line and from Python, its
file, its tests (every property is tested on all densities of the registry), and its place in the benchmarks.
"""

from __future__ import annotations

__all__ = ["PAPER_FIT", "PAPER_TRAINING", "Context", "Generator", "GeneratorConfig", "Table", "one_hot"]

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from dicoflex.limits.limits import Limits
from dicoflex.runtime.columns import Columns
from dicoflex.table.encoding import Encoding, Values

if TYPE_CHECKING:
    import torch

PAPER_FIT: dict[str, Any] = {"k": 16, "passes": 8, "coherence": False}
PAPER_TRAINING: dict[str, Any] = {"epochs": 1000, "batch_size": 1024, "learning_rate": 1e-4, "patience": 300}


class GeneratorConfig(BaseModel):
    """Base of each generator's settings: frozen, and an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Table:
    """The training rows as a generator sees them: encoded values, class numbers, and how sure the black box was.

    min_count: what fewer rows have is not to be read out of what was learned.
    """

    encoding: Encoding
    values: Values
    labels: NDArray[np.int64]
    n_classes: int
    confidence: NDArray[np.float64] | None = None
    min_count: int = 1


@dataclass(frozen=True)
class Context(Columns):
    """What a density is conditioned on, one entry per query.

    query: encoded values (n, d). target: class numbers. p: sparsity exponents. frozen: features that may not change
    (n, d). confidence: how sure the black box should be of the target (0 where the model was fitted on labels alone).
    """

    query: Values
    target: NDArray[np.int64]
    p: NDArray[np.float64]
    frozen: NDArray[np.bool_]
    confidence: NDArray[np.float64]


def one_hot(target: NDArray[np.int64], n_classes: int) -> NDArray[np.float32]:
    """A one at the place of each target, zeros elsewhere (n, classes)."""
    rows = np.zeros((len(target), n_classes), dtype=np.float32)
    rows[np.arange(len(target)), target] = 1.0
    return rows


class Generator(Protocol):
    """One conditional density. All arrays are encoded values; frames are not known here.

    name: what it is called in settings and files. Config: its settings. is_judged: whether it learns from pairs that a
    judge confirmed, and can be asked for a confidence; else it learns from the neighbours as they are, the paper's way.
    fit_defaults, training_defaults: what it wants of the making of pairs and of the training loop, where nothing else
    is asked for. keeps_rows: whether it needs its training rows to answer, so that its file holds them for all to read.
    """

    name: ClassVar[str]
    Config: ClassVar[type[GeneratorConfig]]
    is_judged: ClassVar[bool]
    keeps_rows: ClassVar[bool]
    fit_defaults: ClassVar[dict[str, Any]]
    training_defaults: ClassVar[dict[str, Any]]

    @property
    def config(self) -> GeneratorConfig:
        """The settings it was made with."""

    @classmethod
    def create(cls, table: Table, config: GeneratorConfig, *, seed: int) -> Self:
        """An untrained density for `table`; everything but the weights is settled here."""

    @classmethod
    def restore(
        cls, encoding: Encoding, n_classes: int, config: GeneratorConfig, state: dict[str, NDArray[Any]]
    ) -> Self:
        """The density that `state` was taken from; wrong names or shapes are a `ModelFileError`."""

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `restore` needs besides the encoding and the config: plain arrays."""

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """What the training loop optimises."""

    def to(self, device: torch.device) -> Self:
        """Move the weights to `device`."""

    def loss(self, context: Context, answers: Values, generator: torch.Generator) -> torch.Tensor:
        """The mean negative log likelihood of `answers` (n, d), with a gradient; may add dequantisation noise."""

    def log_prob(
        self, context: Context, answers: Values, of: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:  # fmt: skip
        """The log density of `answers` (n, d), one per entry of `context`, or each of the entry that `of` names."""

    def sample(
        self,
        context: Context,
        n: int,
        keys: NDArray[np.uint64],
        first: int | NDArray[np.int64],
        limits: Limits | None = None,
    ) -> tuple[Values, NDArray[np.float64] | None]:
        """Draws numbered `first` to `first + n` for every entry: (len(context), n, d), finite and within the schema.

        `first` is one number, or one per entry.

        With them their log densities (len(context), n) where the sampler knows them without further work, else None.

        `keys` (one per entry) is all the randomness there is, by way of `runtime.randomness`; an entry's draws depend
        on its own key and context alone, never on its neighbours in the batch. Under limits a draw obeys as far as
        the generator can see to it; the caller drops what still breaks one. Log densities are then those of the
        restricted steps.
        """
