"""What densities on scaled numbers and one-hot levels share: noise, the way back, and work in blocks."""

from __future__ import annotations

__all__ = ["blocks", "dequantise", "settle"]

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.table.encoding import Encoding, Values

if TYPE_CHECKING:
    import torch

BLOCK = 2**16
FAR = 1e12


def dequantise(
    encoding: Encoding, answers: Values, noise: float, number_noise: float, *, generator: torch.Generator
) -> torch.Tensor:
    """The answers' reals plus Gaussian noise: `noise` on one-hot columns, `number_noise` on numbers."""
    import torch

    reals = torch.from_numpy(encoding.to_reals(answers)).to(generator.device)
    scale = torch.from_numpy(np.where(encoding.is_onehot, noise, number_noise).astype(np.float32))
    shocks = torch.randn(reals.shape, generator=generator, device=generator.device, dtype=torch.float32)
    return reals + scale.to(generator.device) * shocks


def settle(encoding: Encoding, context: Context, reals: NDArray[np.float64], limits: Limits | None) -> Values:
    """The rows (n, draws, d) nearest to some reals (n, draws, D): finite, within the schema, frozen as in the query.

    Under limits they are moved inside, one feature at a time; see `Limits.project`.

    Whatever the density did: a real that is no number is the query's own, and one too large to decode is cut off.
    """
    own = encoding.to_reals(context.query)[:, None, :]
    sane = np.clip(np.where(np.isnan(reals), own, reals), -FAR, FAR)
    values = encoding.from_reals(sane.reshape(-1, encoding.n_reals))
    which = np.repeat(np.arange(len(context)), reals.shape[1])
    values = np.where(context.frozen[which], context.query[which], values)
    if limits is not None:
        values = limits.project(values, context.query[which], which)
    return values.reshape(*reals.shape[:2], -1)


def blocks(n: int, draws: int, *, size: int = BLOCK) -> Iterator[tuple[slice, slice]]:
    """Slices of queries and of draws that cover all n * draws, at most `size` at a time, so that memory is bounded.

    >>> list(blocks(3, 2, size=4))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(2, 3, None), slice(0, 2, None))]
    """
    count = max(1, min(draws, size))
    step = max(1, size // count)
    for low in range(0, n, step):
        for start in range(0, draws, count):
            yield slice(low, min(low + step, n)), slice(start, min(start + count, draws))
