"""A client of a server of models: the same `Request` in and the same `Counterfactuals` out as from a model at hand."""

from __future__ import annotations

__all__ = ["Client"]

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pandas as pd

from dicoflex._types import Json
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.frames import index_of
from dicoflex.answers.search import Search
from dicoflex.answers.shortfall import SHORTFALL
from dicoflex.errors import ServerError
from dicoflex.request import ERROR, Request
from dicoflex.runtime.extras import extra
from dicoflex.table.encoding import Encoding
from dicoflex.table.native import Frame, as_pandas
from dicoflex.table.schema import Schema
from dicoflex.table.unseen import encode_frame
from dicoflex.targets import OneOf, as_sent
from dicoflex.values import is_missing, plain
from dicoflex.views.cards import SCORE

with extra("client", to="ask a server"):
    import httpx

TOLD = ("log_density", "n_changed", "proximity", "probability")
"""What is told of answers to any question, also where there is none."""


class Client:
    """Asks a server that `dicoflex serve` runs.

    key: what to show it, where it wants one. timeout: seconds to wait for an answer. What the server refuses is a
    `ServerError` with the status and the code of its problem.

        client = Client("http://127.0.0.1:8000")
        cfs = client.explain("income", rows, Request(target=">50K", n=3))
    """

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        # What the environment says of proxies and passwords is not for this server.
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport, trust_env=False)
        self._facts = lru_cache(self._read_facts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def models(self) -> list[Json]:
        """The models of the server: name, fingerprint, classes, features."""
        found: list[Json] = self._json("GET", "/v1/models")["served"]
        return found

    def model(self, name: str) -> Json:
        """What is known of a model."""
        return self._json("GET", f"/v1/models/{name}")

    def schema(self, name: str) -> Schema:
        """What the columns of a model's rows are; `name@fingerprint` says of which."""
        return self._facts(name)[0]

    def explain(self, name: str, rows: Frame, request: Request, *, verify: bool = False) -> Counterfactuals:
        """Counterfactuals for every row, as `DiCoFlex.explain` gives them; without a seed the server takes 0.

        The model stays with the server: what asks it again, `relax` and densities, needs a model at hand, and `verify`
        checks what the values alone show.

        verify: let the server check every answer again; one that does not hold is a `ServerError`.
        """
        queries = self._conformed(name, rows, request)
        body = {"rows": _rows(queries, request), **_settings(request), "verify": verify}
        found = self._json("POST", f"/v1/models/{name}/explain", json=body)
        if verify and not all(one["verified"] for row in found["results"] for one in row["counterfactuals"]):
            raise ServerError("an answer of the server does not hold what was asked", status=200, code="unverified")
        model = found["model"]["fingerprint"]
        if model != self._facts(name)[1]:
            self._facts.cache_clear()  # the model was replaced since
        facts = self._facts(name)
        return _result(queries, found["results"], found["settings"], model, facts[0], is_scored=facts[2])

    def explain_lines(self, name: str, rows: Frame, request: Request) -> Iterator[Json]:
        """The answers to many rows, one dict each, as they come; a stream that breaks off is a `ServerError`."""
        queries = self._conformed(name, rows, request)
        lines = [_settings(request), *_rows(queries, request)]
        body = "\n".join(map(json.dumps, lines)).encode()
        headers = {"Content-Type": "application/jsonl"}
        with self._http.stream("POST", f"/v1/models/{name}/explain-lines", content=body, headers=headers) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _error(answer)
            for line in answer.iter_lines():
                told = json.loads(line)
                if told.get("end"):
                    return
                yield told
        raise ServerError("the stream broke off", status=200, code="broken")

    def _conformed(self, name: str, rows: Frame, request: Request) -> pd.DataFrame:
        """The rows in the training dtypes, as far as these hold what training never had."""
        encoding = _encoding(self.schema(name))
        places = None if request.handle_unknown == ERROR else lambda: encoding.mean
        return encode_frame(encoding, as_pandas(rows, encoding.schema.names), places).shown

    def _read_facts(self, name: str) -> tuple[Schema, str, bool]:
        """The schema and the fingerprint of a model, and whether it explains scores, which are asked for once."""
        facts = self.model(name)
        schema = Schema.model_validate_json(json.dumps(facts["schema"]))
        return schema, facts["fingerprint"], not facts["classes"]

    def _json(self, method: str, path: str, **more: Any) -> Json:
        try:
            answer = self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            raise ServerError(f"the server gave no answer: {error}", status=0, code="unreachable") from error
        if answer.status_code != 200:
            raise _error(answer)
        found: Json = answer.json()
        return found


def _error(answer: httpx.Response) -> ServerError:
    try:
        told = answer.json()
        return ServerError(str(told["detail"]), status=answer.status_code, code=str(told["code"]))
    except (ValueError, KeyError, TypeError):
        return ServerError("the answer is none of dicoflex's", status=answer.status_code, code="foreign")


def _settings(request: Request) -> Json:
    """All of a request but what belongs to single rows."""
    own: set[str] = {"target"} if isinstance(request.target, tuple) else set()
    found: Json = request.model_dump(mode="json", exclude_defaults=True, exclude=own)
    return found


def _rows(queries: pd.DataFrame, request: Request) -> list[Json]:
    """Rows as they are sent, each with its target where they have several."""
    rows: list[Json] = [{"id": i, "values": own} for i, own in enumerate(_values(queries))]
    if isinstance(request.target, tuple):
        for row, target in zip(rows, request.targets(len(rows)), strict=True):
            row["target"] = as_sent(target)
    return rows


def _encoding(schema: Schema) -> Encoding:
    """What reads and writes frames; no means and deviations are needed for that."""
    return Encoding(schema, np.zeros(len(schema)), np.ones(len(schema)))


def _values(frame: pd.DataFrame) -> list[Json]:
    columns = {str(name): [None if is_missing(v) else plain(v) for v in frame[name].tolist()] for name in frame.columns}
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def _result(
    queries: pd.DataFrame, results: list[Json], settings: Json, model: str, schema: Schema, *, is_scored: bool
) -> Counterfactuals:
    """The result that the server's answers are."""
    places = np.array([i for i, row in enumerate(results) for _ in row["counterfactuals"]], dtype=np.int64)
    answers = [one for row in results for one in row["counterfactuals"]]
    index = index_of(queries.index, places)
    short = [i for i, row in enumerate(results) if "reason" in row]
    entries = [(queries.index[i], *(results[i][k] for k in SHORTFALL[1:])) for i in short]
    return Counterfactuals(
        queries=queries,
        frame=_frame(answers, queries, index, schema),
        info=_info(answers, _targets(results), index, is_scored=is_scored),
        positions=places,
        shortfall=pd.DataFrame(entries, columns=SHORTFALL),
        schema=schema,
        request=Request.model_validate_json(json.dumps(settings)),
        targets=[_target(row["target"]) for row in results],
        model=model,
        short=np.array(short, dtype=np.int64),
        status=[row["status"] for row in results],
        searches={i: Search(**row["search"]) for i, row in enumerate(results) if "search" in row},
    )


def _targets(results: list[Json]) -> list[Any]:
    """The label of each answer: its own, where its row asked for any of some."""
    return [one.get("target", row["target"]) for row in results for one in row["counterfactuals"]]


def _target(told: Any) -> Any:
    return OneOf(**told) if isinstance(told, dict) else told


def _frame(answers: list[Json], queries: pd.DataFrame, index: pd.MultiIndex, schema: Schema) -> pd.DataFrame:
    cells = {name: [one["values"][str(name)] for one in answers] for name in schema.names}
    frame = pd.DataFrame(cells, dtype=None if answers else object)
    conformed = _encoding(schema).declaring(queries).conform(frame)[0]
    return conformed.set_axis(index)


def _info(answers: list[Json], targets: list[Any], index: pd.MultiIndex, *, is_scored: bool) -> pd.DataFrame:
    names = list(answers[0]["scores"]) if answers else [*TOLD, *([SCORE] if is_scored else [])]
    scores = {name: [one["scores"][name] for one in answers] for name in names}
    unknown = pd.array([None] * len(answers), dtype="boolean")
    return pd.DataFrame({"target": targets, **scores, "valid": unknown}, index=index)
