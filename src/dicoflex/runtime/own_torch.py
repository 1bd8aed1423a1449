"""Torch as a fit needs it, whatever the caller has set: its own random numbers, float32, gradients, the processor.

Nothing here is left behind: torch's own random numbers, default dtype and default device are neither read nor set.
Networks are made on one thread: torch's others wait for ever in a process that was forked after they were used.
"""

from __future__ import annotations

__all__ = ["own_numbers", "with_gradients"]

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode

from dicoflex.runtime.threads import one_torch_thread

RANDOM = {
    *(torch.randn, torch.rand, torch.randperm, torch.Tensor.uniform_, torch.Tensor.normal_),
    *(init.uniform_, init.normal_, init.kaiming_uniform_, init.kaiming_normal_, init.xavier_uniform_),
}
FLOATS = {torch.randn, torch.rand, torch.empty, torch.zeros, torch.ones, torch.full, torch.linspace}


class _OwnNumbers(TorchFunctionMode):
    """Calls of this thread that draw take a generator of their own, and those that make tensors make float32."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = torch.Generator("cpu").manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(kwargs or {})
        if func in RANDOM:
            given["generator"] = self.generator
        if func in FLOATS and given.get("dtype") is None:
            given["dtype"] = torch.float32
        return func(*args, **given)


@contextmanager
def own_numbers(seed: int) -> Iterator[None]:
    """Inside the block, networks are made with weights that depend on `seed` alone.

    >>> with own_numbers(3):
    ...     first = torch.nn.Linear(2, 2)
    >>> with own_numbers(3):
    ...     again = torch.nn.Linear(2, 2)
    >>> torch.equal(first.weight, again.weight), first.weight.dtype
    (True, torch.float32)
    """
    with one_torch_thread(), with_gradients(), torch.device("cpu"), _OwnNumbers(seed):
        yield


@contextmanager
def with_gradients() -> Iterator[None]:
    """Inside the block gradients are kept, also where the caller has switched them off."""
    with torch.inference_mode(False), torch.enable_grad():
        yield
