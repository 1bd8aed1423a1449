"""The paper's baseline: a kernel density on the nearest rows of the target class.

The paper learns from q-hat, which puts 1/K on each of the K rows N(x, y', d_{p,m}, K) of class y' that are nearest to
the query. This density smooths it with a product of Gaussian kernels on the reals,

    p(x' | x, y', p, m) = 1/K * sum_{k in N} prod_j N(x'_j; x^k_j, h_j^2)

where h_j is one of two learned bandwidths, for standardised numbers and for one-hot columns. It needs its training
rows at every call and learns nothing but the two bandwidths.
"""

from __future__ import annotations

__all__ = ["Kde", "KdeConfig"]

from collections.abc import Iterable
from math import log, pi
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.special import logsumexp, ndtri

from dicoflex.generators.base import PAPER_FIT, PAPER_TRAINING, Context, GeneratorConfig, Table
from dicoflex.generators.on_reals import blocks, dequantise, settle
from dicoflex.limits.limits import Limits
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.neighbours import Pool, nearest
from dicoflex.runtime.randomness import uniforms
from dicoflex.table.encoding import Encoding, Values

if TYPE_CHECKING:
    import torch

BLOCK = 4096
START = 0.3
PACE = 10.0
WIDEST = log(1000.0)


class KdeConfig(GeneratorConfig):
    """Settings of the kernel density.

    k: neighbours per query. alpha: how much a change of a frozen feature weighs in the distance.
    noise, number_noise: as for the flows, so that the likelihoods compare.
    """

    k: int = Field(16, ge=1)
    alpha: float = Field(10.0, gt=0.0)
    noise: float = Field(0.1, ge=0.0)
    number_noise: float = Field(0.01, ge=0.0)


class Kde:
    """A kernel density on the K nearest rows of the target class, with two learned bandwidths."""

    name: ClassVar[str] = "kde"
    Config: ClassVar[type[GeneratorConfig]] = KdeConfig
    is_judged: ClassVar[bool] = False
    keeps_rows: ClassVar[bool] = True
    fit_defaults: ClassVar[dict[str, Any]] = PAPER_FIT
    training_defaults: ClassVar[dict[str, Any]] = PAPER_TRAINING

    def __init__(
        self, encoding: Encoding, n_classes: int, config: GeneratorConfig, values: Values, labels: NDArray[np.int64]
    ) -> None:
        if not isinstance(config, KdeConfig):
            raise TypeError(f"the settings of {self.name!r} are a KdeConfig, got {type(config).__name__}")
        self.config: GeneratorConfig = config
        self.encoding = encoding
        self._settings = config
        self._values, self._labels = values, labels
        self._pool = Pool.group(encoding.parts(values), labels, n_classes)
        # No class has more rows than this; to look for more would only take room.
        self._k = min(config.k, int(np.bincount(labels, minlength=1).max()))
        # log h = log START + PACE * theta: two numbers may go faster than the many weights that step sizes are set for.
        # A plain array, or torch's while it is trained.
        self._plain: NDArray[np.float32] = np.zeros(2, dtype=np.float32)
        self._trained: torch.nn.Parameter | None = None

    @classmethod
    def create(cls, table: Table, config: GeneratorConfig, *, seed: int) -> Self:  # noqa: ARG003
        """An untrained density on the rows of `table`; nothing in it is random, whatever the seed."""
        return cls(table.encoding, table.n_classes, config, table.values, table.labels)

    @classmethod
    def restore(
        cls, encoding: Encoding, n_classes: int, config: GeneratorConfig, state: dict[str, NDArray[Any]]
    ) -> Self:
        """The density that `state` was taken from; wrong names, shapes or codes are a `ModelFileError`."""
        labels = taken(state, "labels", np.int64, (None,))
        values = taken(state, "values", np.float64, (len(labels), len(encoding.schema)), finite=False)
        theta = taken(state, "theta", np.float32, (2,))
        refuse_others(state, ("values", "labels", "theta"))
        if len(labels) == 0 or labels.min() < 0 or labels.max() >= n_classes:
            refuse("labels", "names classes that the model does not have")
        _check_codes(encoding, values)
        restored = cls(encoding, n_classes, config, values, labels)
        restored._plain = theta.copy()
        return restored

    def state(self) -> dict[str, NDArray[Any]]:
        """The training rows, their classes and the parameters of the two bandwidths."""
        return {"values": self._values.copy(), "labels": self._labels.copy(), "theta": self._present().copy()}

    def _present(self) -> NDArray[np.float32]:
        return self._plain if self._trained is None else self._trained.detach().cpu().numpy()

    # -- training -----------------------------------------------------------------------------------------------

    @property
    def _theta(self) -> torch.nn.Parameter:
        """The parameters as torch's; from now on it holds them. To answer, it is not needed."""
        if self._trained is None:
            from torch import from_numpy, nn

            from dicoflex.runtime.own_torch import own_numbers

            with own_numbers(seed=0):
                self._trained = nn.Parameter(from_numpy(self._plain.copy()))
        return self._trained

    def parameters(self) -> Iterable[torch.nn.Parameter]:
        """The parameters of the two bandwidths."""
        return [self._theta]

    def to(self, device: torch.device) -> Self:
        """Move the parameters to `device`; densities and draws are computed on the CPU wherever they are."""
        self._theta.data = self._theta.data.to(device)
        return self

    def _log_bandwidth(self) -> torch.Tensor:
        """As `_bandwidths`, with a gradient."""
        import torch

        two = (log(START) + PACE * torch.nan_to_num(self._theta)).clamp(-WIDEST, WIDEST)
        return two[torch.from_numpy(self.encoding.is_onehot.astype(np.int64)).to(two.device)]

    def loss(self, context: Context, answers: Values, generator: torch.Generator) -> torch.Tensor:
        """The mean negative log likelihood of the answers' reals plus noise, each without the kernels on itself.

        The answers to learn from are neighbours, hence centres. With its own kernel in the sum an answer is the
        likelier the narrower the kernels are, and the bandwidths would fall to nothing; without it this is the
        leave-one-out likelihood. Answers that have no other centre say nothing about the bandwidths and don't count.
        """
        import torch

        rows, centres = self._neighbours(context)
        others = (rows >= 0) & self.encoding.differs(self._values[rows], answers[:, None, :]).any(axis=2)
        noise, number_noise = self._settings.noise, self._settings.number_noise
        x = dequantise(self.encoding, answers, noise, number_noise, generator=generator)
        device, log_h = self._theta.device, self._log_bandwidth()
        apart = x.to(device)[:, None, :] - torch.from_numpy(centres).to(device)
        log_kernels = (-0.5 * (apart / log_h.exp()) ** 2 - log_h - 0.5 * log(2 * pi)).sum(-1)
        kept = torch.from_numpy(others).to(device)
        some = kept.any(dim=1)
        if not some.any():
            return 0.0 * log_h.sum()
        log_sums = torch.logsumexp(log_kernels.masked_fill(~kept, -torch.inf)[some], dim=1)
        return -(log_sums - kept.sum(dim=1)[some].float().log()).mean()

    # -- answering ----------------------------------------------------------------------------------------------

    def _bandwidths(self) -> NDArray[np.float64]:
        """log h_j of every real; kept within reason, so that no parameter, not even NaN, breaks the density."""
        with np.errstate(over="ignore"):
            two: NDArray[np.float32] = np.clip(log(START) + PACE * np.nan_to_num(self._present()), -WIDEST, WIDEST)
        return two[self.encoding.is_onehot.astype(np.int64)].astype(np.float64)

    def log_prob(
        self, context: Context, answers: Values, of: NDArray[np.int64] | None = None
    ) -> NDArray[np.float64]:  # fmt: skip
        """The log density at the answers' reals without noise, per unit of standardised numbers and one-hot columns."""
        log_h = self._bandwidths()
        context, density = context if of is None else context.take(of), np.empty(len(answers))
        for at, _ in blocks(len(context), 1, size=BLOCK):
            rows, centres = self._neighbours(context.take(at))
            apart = self.encoding.to_reals(answers[at])[:, None, :] - centres.astype(np.float64)
            log_kernels = (-0.5 * (apart / np.exp(log_h)) ** 2 - log_h - 0.5 * log(2 * pi)).sum(axis=2)
            log_kernels[rows < 0] = -np.inf
            found = np.maximum((rows >= 0).sum(axis=1), 1)
            density[at] = logsumexp(log_kernels, axis=1) - np.log(found)
        return density

    def sample(
        self,
        context: Context,
        n: int,
        keys: NDArray[np.uint64],
        first: int | NDArray[np.int64],
        limits: Limits | None = None,
    ) -> tuple[Values, None]:
        """Draws: a neighbour picked by the first number of a draw's stream, plus h times noise from the next D.

        Their densities are left to `log_prob`: a draw is decoded to a row, which is another point of the reals.
        """
        width = self.encoding.n_reals
        h = np.exp(self._bandwidths())
        start = np.broadcast_to(first, len(context))
        draws = np.empty((len(context), n, len(self.encoding.schema)))
        for at, turn in blocks(len(context), n, size=BLOCK):
            some, count = context.take(at), turn.stop - turn.start
            rows, centres = self._neighbours(some)
            numbers = uniforms(keys[at], (start[at] + turn.start) * (width + 1), count * (width + 1))
            numbers = numbers.reshape(len(some), count, width + 1)
            pick = (numbers[:, :, 0] * (rows >= 0).sum(axis=1)[:, None]).astype(np.int64)
            reals = np.take_along_axis(centres, pick[:, :, None], axis=1) + h * ndtri(numbers[:, :, 1:])
            draws[at, turn] = settle(self.encoding, some, reals, None if limits is None else limits.take(at))
        return draws, None

    def _neighbours(self, context: Context) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows (n, K) nearest to each query, -1 where its class has fewer, and their reals (n, K, D).

        A query stands in for the rows that its class lacks; they count in no sum.
        """
        encoding, settings = self.encoding, self._settings
        rows = nearest(
            encoding.parts(context.query),
            self._pool,
            target=context.target,
            p=context.p,
            mask=context.frozen,
            k=self._k,
            alpha=settings.alpha,
        ).rows
        centres = np.where((rows >= 0)[:, :, None], self._values[rows], context.query[:, None, :])
        return rows, encoding.to_reals(centres.reshape(rows.size, -1)).reshape(*rows.shape, -1)


def _check_codes(encoding: Encoding, values: Values) -> None:
    """Refuse rows with codes that their feature does not have, or numbers that are none where none is missing."""
    for feature, column in zip(encoding.schema.features, values.T, strict=True):
        if not feature.is_number:
            fits = np.isin(column, np.arange(feature.n_states)).all()
        else:
            fits = np.isfinite(column[~np.isnan(column)] if feature.missing else column).all()
        if not fits:
            refuse("values", f"has values that {feature.name!r} does not have")
