"""Asking: a question waits for its turn, its deadline, or for its caller to leave; then it is answered and recorded."""

from __future__ import annotations

__all__ = ["LeftError", "ask", "counted", "recorded", "written"]

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from dicoflex.answers.outcome import FOUND
from dicoflex.serving import monitoring
from dicoflex.serving.audit import AuditLog, Receipt, Record
from dicoflex.serving.engine import Answered
from dicoflex.serving.gathering import Job
from dicoflex.serving.monitoring import log
from dicoflex.serving.problems import Problem
from dicoflex.serving.questions import Question
from dicoflex.serving.registry import Served
from dicoflex.serving.results import digest, statuses
from dicoflex.serving.state import State

LATER = {"Retry-After": "10"}


class LeftError(Exception):
    """The caller has left; there is nobody to answer."""


async def ask(state: State, job: Job, request: Request, seconds: float) -> Answered:
    """The answers to a job; work ends at the next slice when the time is up or the caller leaves."""
    assert state.gatherer is not None
    state.gatherer.submit(job)
    gone = asyncio.create_task(_leaving(request))
    either: set[asyncio.Future[Any]] = {job.done, gone}
    try:
        done, _ = await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if job.done in done:
            return job.done.result()
        if gone in done:
            monitoring.connections_left.inc()
            raise LeftError
        raise Problem("deadline", f"there was no answer within {seconds:g} seconds; ask for fewer rows at a time")
    finally:
        gone.cancel()
        job.done.cancel()


async def _leaving(request: Request) -> None:
    """Wait until the caller closes the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def counted(request: Request, served: Served, results: Sequence[dict[str, Any]], n: int) -> None:
    """Count what was answered, and leave it for the log line: numbers, no values."""
    name = served.name
    found = sum(len(row["counterfactuals"]) for row in results)
    monitoring.rows.labels(name).inc(len(results))
    monitoring.answers.labels(name).inc(found)
    for status, count in statuses(results).items():
        if status != FOUND:
            monitoring.shortfall.labels(name, status).inc(count)
    request.state.facts |= {"model": name, "fingerprint": served.model.fingerprint, "rows": len(results), "n": n}


async def recorded(
    state: State, request: Request, served: Served, question: Question, results: Sequence[dict[str, Any]]
) -> Receipt | None:
    """Write answers to the audit log, if there is one; the receipt."""
    if state.audit is None:
        return None
    entry = {
        "event": "explain",
        "request_id": request.state.request_id,
        "key": getattr(request.state, "key", None),
        "model": {"name": served.name, "fingerprint": served.model.fingerprint},
        "settings": {**question.settings, "seed": question.wish.seed},
        "query": digest(question.rows.sent),
        "answers": digest(results),
        "statuses": statuses(results),
    }
    if state.settings.audit_values:
        entry |= {"rows": question.rows.sent, "results": results}
    return await written(state.audit, entry)


async def written(audit: AuditLog, entry: Record) -> Receipt:
    """Write an entry to the audit log; an answer that can't be recorded is not sent but a `Problem`."""
    try:
        return await audit.append(entry)
    except OSError as error:
        log.error("the audit log can't be written", why=error.strerror)
        monitoring.refused.labels("not-recorded").inc()
        raise Problem("not-recorded", "the audit log can't be written; the log has more", headers=LATER) from None
