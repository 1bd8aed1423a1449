"""A scorer behind a network: rows as JSON in, probabilities or scores out."""

from __future__ import annotations

__all__ = ["Scorer"]

from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd

from dicoflex.errors import BlackBoxError, SettingError
from dicoflex.runtime.extras import extra
from dicoflex.values import jsonable

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses of which the same call may succeed later."""


class Scorer:
    """Posts a frame to a URL and gives what the server says of each row.

    Parameters
    ----------
    url : str
        Where rows are posted.
    protocol : {"instances", "mlflow"}
        "instances" sends `{"instances": [{column: value}, ...]}`, as KServe, TensorFlow Serving and Vertex AI take it;
        "mlflow" sends `{"dataframe_split": ...}`, as `/invocations` of MLflow takes it. Both answer
        `{"predictions": [...]}`.
    headers : mapping, optional
        Sent with every call, such as a key.
    timeout : float
        Seconds to wait for one call.

    Raises
    ------
    BlackBoxError
        If the server refuses the rows, or answers with something else. What may succeed later, such as a server that
        is busy, raises `httpx.HTTPError`, after which the call is repeated.
    """

    def __init__(
        self, url: str, *, protocol: str = "instances", headers: Mapping[str, str] | None = None, timeout: float = 30.0
    ) -> None:
        if protocol not in PROTOCOLS:
            raise SettingError(f"protocol must be one of {', '.join(map(repr, PROTOCOLS))}, got {protocol!r}")
        with extra("client", to="ask a scorer"):
            import httpx
        self.url, self.protocol = url, protocol
        # What the environment says of proxies and passwords is not for this server.
        self._http = httpx.Client(headers=dict(headers or {}), timeout=timeout, trust_env=False)

    def __call__(self, frame: pd.DataFrame) -> list[Any]:
        """What the server says of each row."""
        answer = self._http.post(self.url, json=PROTOCOLS[self.protocol](frame))
        if answer.status_code in AGAIN:
            answer.raise_for_status()
        if answer.status_code != 200:
            raise BlackBoxError(f"{self.url} refused {len(frame)} rows: {answer.status_code} {answer.text[:300]}")
        try:
            told = answer.json()
            found = told["predictions"] if isinstance(told, dict) else told
            fits = isinstance(found, list) and len(found) == len(frame)
        except (ValueError, KeyError):
            fits = False
        if not fits:
            raise BlackBoxError(
                f"{self.url} answered {answer.text[:100]!r}; it must give {{'predictions': [...]}} with an entry for "
                f"each of the {len(frame)} rows"
            )
        return found  # type: ignore[no-any-return]


def _instances(frame: pd.DataFrame) -> dict[str, Any]:
    return {"instances": [dict(zip(map(str, frame.columns), row, strict=True)) for row in _cells(frame)]}


def _split(frame: pd.DataFrame) -> dict[str, Any]:
    return {"dataframe_split": {"columns": list(map(str, frame.columns)), "data": _cells(frame)}}


def _cells(frame: pd.DataFrame) -> list[list[Any]]:
    found: list[list[Any]] = jsonable(frame.astype(object).to_numpy())
    return found


PROTOCOLS: dict[str, Callable[[pd.DataFrame], dict[str, Any]]] = {"instances": _instances, "mlflow": _split}
