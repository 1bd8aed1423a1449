"""Calls of a black box: in chunks, counted, repeated where they fail, within a budget of rows."""

from __future__ import annotations

__all__ = ["BudgetError", "CallConfig", "Caller", "caller_of"]

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.table.native import PANDAS, Native

LONGEST_WAIT = 60.0
FOR_CERTIFICATE = 0.2
"""The share of a budget that is kept for certifying answers on held-out rows."""


class BudgetError(BlackBoxError):
    """A call would ask for more rows than the budget allows."""


class CallConfig(BaseModel):
    """How `fit` calls the black box.

    Parameters
    ----------
    chunk : int
        How many rows one call has at most.
    most_rows : int, optional
        How many rows all calls may have together. What would exceed it is judged by the surrogate instead, and
        `report_["cut"]` says so. The table itself is always asked, so it must be less than four fifths of it.
    retries : int
        How often a call that raised an exception is repeated.
    wait : float
        Seconds before the first repetition; each further one waits twice as long, a minute at most.

    Examples
    --------
    >>> CallConfig(chunk=500, retries=5).most_rows is None
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    chunk: int = Field(default=100_000, ge=1)
    most_rows: int | None = Field(default=None, ge=1)
    retries: int = Field(default=0, ge=0)
    wait: float = Field(default=1.0, ge=0)


class Caller:
    """A callable for frames that is called as `config` says; `calls` and `rows` count what was asked.

    Parameters
    ----------
    function : callable
        Gives an array of numbers for a frame, one row each.
    name : str
        What messages call it.
    config : CallConfig
        Chunks, budget and repetitions.
    native : Native
        The kind of frame that the callable takes.

    Examples
    --------
    >>> caller = Caller(lambda frame: frame["age"] / 100, "predict", CallConfig(chunk=2))
    >>> caller(pd.DataFrame({"age": [20, 30, 40]})).tolist(), caller.calls, caller.rows
    ([0.2, 0.3, 0.4], 2, 3)
    """

    def __init__(
        self, function: Callable[[Any], Any], name: str, config: CallConfig | None = None, native: Native = PANDAS
    ) -> None:
        self.function, self.name = native.calling(function), name
        self.config = CallConfig() if config is None else config
        self.calls = 0
        self.rows = 0

    def __call__(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        """The numbers for all rows of a frame."""
        size = self.config.chunk
        if len(frame) <= size:
            return self._one(frame)
        return np.concatenate([self._one(frame.iloc[i : i + size]) for i in range(0, len(frame), size)])

    @property
    def affordable(self) -> float:
        """How many more rows may be asked now, less what is kept for the certificate."""
        most = self.config.most_rows
        return math.inf if most is None else max(0.0, math.floor((1 - FOR_CERTIFICATE) * most) - self.rows)

    def check_budget(self, n_rows: int) -> None:
        """Refuse, before any work starts, a budget that does not even have room for the table."""
        if n_rows > self.affordable:
            needed = math.ceil(n_rows / (1 - FOR_CERTIFICATE))
            raise SettingError(
                f"calls: most_rows={self.config.most_rows} has no room for the table, of which {n_rows} rows are "
                f"asked; give at least {self.rows + needed}, fewer rows, or labels alone, without {self.name}"
            )

    def _one(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        most = self.config.most_rows
        if most is not None and self.rows + len(frame) > most:
            raise BudgetError(
                f"{self.name}: {self.rows} rows were asked, and {len(frame)} more exceed calls: most_rows={most}; "
                "raise it, or give fewer rows"
            )
        self.calls += 1
        answer = self._tried(frame)
        self.rows += len(frame)
        return _numbers(answer, self.name)

    def _tried(self, frame: pd.DataFrame) -> Any:
        for attempt in range(self.config.retries + 1):
            try:
                return self.function(frame)
            except BlackBoxError:
                raise
            except Exception as error:
                failure = error
            if attempt < self.config.retries:
                time.sleep(min(LONGEST_WAIT, self.config.wait * 2**attempt))
        raise BlackBoxError(self._failed(failure, len(frame))) from failure

    def _failed(self, error: Exception, n_rows: int) -> str:
        retries = self.config.retries
        remedy = (
            f"it was tried {retries + 1} times; raise retries or wait in calls="
            if retries
            else "mend it, or, if it asks a server, repeat calls: fit(..., calls={'chunk': 1000, 'retries': 5})"
        )
        return (
            f"{self.name} failed in call {self.calls}, of {n_rows} rows, after {self.rows} rows that were answered: "
            f"{type(error).__name__}: {error}; {remedy}"
        )


def caller_of(function: Callable[[pd.DataFrame], Any] | Caller, name: str) -> Caller:
    """A caller for a callable; a caller is one already."""
    return function if isinstance(function, Caller) else Caller(function, name)


def _numbers(answer: Any, name: str) -> NDArray[np.float64]:
    """A black box's answer as an array of numbers."""
    if hasattr(answer, "detach"):
        # A tensor that gradients are kept for is no array yet.
        answer = answer.detach().cpu()
    try:
        return np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError):
        what = "scores" if name.endswith("predict") else "probabilities, such as clf.predict_proba"
        raise BlackBoxError(
            f"{name} gave a {type(answer).__name__} that is not numbers; pass a callable that returns {what}"
        ) from None
