"""Answers as they are sent: one entry per row, in the order of the rows."""

from __future__ import annotations

__all__ = ["digest", "job_of", "results_of", "settings_of", "statuses"]

import asyncio
import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from dicoflex.model import Model
from dicoflex.serving.gathering import Job
from dicoflex.serving.questions import Question, Wish
from dicoflex.serving.rows import Id
from dicoflex.targets import as_sent

Result = dict[str, Any]


def job_of(question: Question, model: Model) -> Job:
    """The work that a question to a model is."""
    return Job(
        model, question.request, question.rows.cells, question.targets, question.wish.verify,
        key=(model.fingerprint, question.key), done=asyncio.get_running_loop().create_future(),
    )  # fmt: skip


def results_of(ids: Sequence[Id], answers: Sequence[Result], wish: Wish) -> list[Result]:
    """What is sent of some rows' answers: under their names, with what was asked for."""
    left_out = [part for part in ("changes", "scores") if part not in wish.include]
    return [{"id": name, **_told(row, left_out)} for name, row in zip(ids, answers, strict=True)]


def _told(row: Result, left_out: list[str]) -> Result:
    if not left_out:
        return row
    kept = [{k: v for k, v in one.items() if k not in left_out} for one in row["counterfactuals"]]
    return {**row, "counterfactuals": kept}


def settings_of(wish: Wish, bound: dict[str, Any]) -> dict[str, Any]:
    """The settings that bound the answers: as asked, with the constraints that always bind and the exponent taken."""
    return {**bound, "target": as_sent(wish.target), "seed": wish.seed}


def statuses(results: Sequence[Result]) -> dict[str, int]:
    """How many rows have which status."""
    return dict(Counter(row["status"] for row in results))


def digest(value: Any) -> str:
    """The SHA-256 of a value's JSON."""
    return hashlib.sha256(orjson.dumps(value)).hexdigest()
