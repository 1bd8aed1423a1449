"""Many rows in one request: JSON Lines in and out, some hundred rows at a time, in memory that does not grow.

The first line holds the settings, each other one a row. What is wrong with a row is told in its line; the last line is
`{"end": true, …}`, and a stream that ends without it has failed.
"""

from __future__ import annotations

__all__ = ["Stream"]

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.requests import Request

from dicoflex.request import REPLACE
from dicoflex.serving import monitoring
from dicoflex.serving.asking import counted, written
from dicoflex.serving.engine import Answered
from dicoflex.serving.problems import Problem
from dicoflex.serving.questions import Question, Wish, load_json, read_wish, seeded, targets_of
from dicoflex.serving.registry import Served
from dicoflex.serving.results import job_of, results_of
from dicoflex.serving.rows import Rows
from dicoflex.serving.state import State

CHUNK = 128
PATIENCE = 0.05
Sent = tuple[int, bytes]


@dataclass
class Stream:
    """A stream of answers to the lines of a body."""

    body: bytes
    start: int
    settings: dict[str, Any]
    wish: Wish
    state: State
    served: Served
    seconds: float
    found: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, body: bytes, state: State, served: Served, seconds: float) -> Stream:
        """The stream that a body asks for; what is wrong with its settings is a `Problem` before it begins."""
        first, _, _ = body.partition(b"\n")
        settings = load_json(first)
        if not isinstance(settings, dict) or "rows" in settings:
            raise Problem("invalid-request", "the first line must be an object with the settings; rows come after it")
        count = body.count(b"\n", len(first) + 1) + 1
        if count > state.settings.max_lines + 1:
            raise Problem("too-large", f"more than {state.settings.max_lines} lines; send them in several requests")
        wish = seeded(read_wish(settings, state.settings))
        if wish.target is not None:
            targets_of(wish, served.model, [None])
        return cls(body, len(first) + 1, settings=settings, wish=wish, state=state, served=served, seconds=seconds)

    async def lines(self, request: Request) -> AsyncIterator[bytes]:
        """A line per row, and the last one."""
        whole, count = hashlib.sha256(), 0
        try:
            for chunk in self._chunks():
                text = await self._answered(chunk, request)
                whole.update(text)
                count += len(chunk)
                yield text
        except Problem as problem:
            yield _line({"problem": orjson.loads(problem.body(request.state.request_id))})
            return
        except (asyncio.CancelledError, GeneratorExit):
            monitoring.connections_left.inc()
            raise
        try:
            record = await self._record(request, whole)
        except Problem as problem:
            yield _line({"problem": orjson.loads(problem.body(request.state.request_id))})
            return
        yield _line({"end": True, "rows": count, "statuses": self.found, "record": record})

    def _chunks(self) -> Iterator[list[Sent]]:
        """The lines that hold rows, with their numbers, some at a time."""
        chunk: list[Sent] = []
        at, number = self.start, 0
        while at < len(self.body):
            end = self.body.find(b"\n", at)
            end = len(self.body) if end < 0 else end
            line = self.body[at:end]
            at = end + 1
            if line.strip():
                chunk.append((number, line))
                number += 1
            if len(chunk) == CHUNK:
                yield chunk
                chunk = []
        if chunk:
            yield chunk

    async def _answered(self, chunk: list[Sent], request: Request) -> bytes:
        """The lines that answer some lines, in their order."""
        told: dict[int, dict[str, Any]] = {}
        good: list[tuple[int, Rows, list[Any]]] = []
        for number, line in chunk:
            try:
                unseen = self.wish.handle_unknown == REPLACE
                rows = self.served.reader.read([load_json(line)], first=number, where="/lines", unseen=unseen)
                good.append((number, rows, targets_of(self.wish, self.served.model, rows.targets)))
            except Problem as problem:
                told[number] = {"line": number, "problem": orjson.loads(problem.body(request.state.request_id))}
        if good:
            rows = _joined([rows for _, rows, _ in good])
            found = await self._ask(rows, [target for _, _, own in good for target in own])
            results = results_of(rows.ids, found.rows, self.wish)
            counted(request, self.served, results, self.wish.n)
            told |= dict(zip((number for number, _, _ in good), results, strict=True))
        for row in told.values():
            status = row.get("status", "problem")
            self.found[status] = self.found.get(status, 0) + 1
        return b"".join(_line(told[number]) for number, _ in chunk)

    async def _ask(self, rows: Rows, targets: list[Any]) -> Answered:
        gatherer = self.state.gatherer
        assert gatherer is not None
        job = job_of(Question(rows, targets, self.wish, self.settings), self.served.model)
        while len(gatherer.waiting) >= gatherer.most_waiting:
            await asyncio.sleep(PATIENCE)
        gatherer.submit(job)
        try:
            return await asyncio.wait_for(job.done, self.seconds)
        except TimeoutError:
            raise Problem("deadline", f"{CHUNK} rows took more than {self.seconds:g} seconds") from None
        finally:
            job.done.cancel()

    async def _record(self, request: Request, whole: Any) -> dict[str, Any] | None:
        if self.state.audit is None:
            return None
        entry = {
            "event": "explain-lines",
            "request_id": request.state.request_id,
            "key": getattr(request.state, "key", None),
            "model": {"name": self.served.name, "fingerprint": self.served.model.fingerprint},
            "settings": {**self.settings, "seed": self.wish.seed},
            "query": hashlib.sha256(self.body).hexdigest(),
            "answers": whole.hexdigest(),
            "statuses": self.found,
        }
        return await written(self.state.audit, entry)


def _joined(parts: list[Rows]) -> Rows:
    return Rows(
        cells=[one for part in parts for one in part.cells],
        ids=[one for part in parts for one in part.ids],
        targets=[one for part in parts for one in part.targets],
        sent=[one for part in parts for one in part.sent],
    )


def _line(value: dict[str, Any]) -> bytes:
    return orjson.dumps(value) + b"\n"
