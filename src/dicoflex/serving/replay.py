"""Answers given again: the questions of an audit log, asked of the same models, compared to the last bit."""

from __future__ import annotations

__all__ = ["Replay", "replay"]

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from dicoflex.errors import DataError, UserError
from dicoflex.model import Model
from dicoflex.request import REPLACE
from dicoflex.serving.audit import Record, read_log
from dicoflex.serving.engine import answer
from dicoflex.serving.problems import Problem
from dicoflex.serving.questions import Wish, targets_of
from dicoflex.serving.results import digest, results_of
from dicoflex.serving.rows import RowReader


@dataclass
class Replay:
    """How many answers were identical, and which were not or could not be given again."""

    identical: int = 0
    different: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def replay(folder: Path, models: Iterable[Path], *, bodies: Path | None = None) -> Replay:
    """Ask the questions of a folder's audit log again.

    models: the files of the models that answered. bodies: a file with a request's body per line, for a log that holds
    no values; a record finds its own by the digest of the rows.
    """
    known = {model.fingerprint: model for model in (Model.load(path) for path in models)}
    rows_by_digest = {} if bodies is None else dict(_bodies(bodies))
    found = Replay()
    for record in read_log(folder):
        if record.get("event") == "explain":
            _again(record, known, rows_by_digest, found)
    return found


def _again(record: Record, known: dict[str, Model], rows_by_digest: dict[str, Any], found: Replay) -> None:
    name = str(record["request_id"])
    model = known.get(record["model"]["fingerprint"])
    sent = record.get("rows") or rows_by_digest.get(record["query"])
    if model is None or sent is None:
        lacking = "its model is not among the files" if model is None else "its rows are neither in the log nor given"
        found.left_out.append((name, lacking))
        return
    try:
        same = digest(_results(model, sent, record["settings"])) == record["answers"]
    except (Problem, UserError) as error:
        found.different.append((name, str(error)))
        return
    if same:
        found.identical += 1
    else:
        found.different.append((name, "other answers"))


def _results(model: Model, sent: list[Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    wish = Wish.model_validate_json(orjson.dumps(settings))
    rows = RowReader(model.schema).read(sent, unseen=wish.handle_unknown == REPLACE)
    targets = targets_of(wish, model, rows.targets)
    request = wish.model_copy(update={"target": tuple(targets)})
    return results_of(rows.ids, answer(model, rows.cells, request, verify=wish.verify).rows, wish)


def _bodies(path: Path) -> Iterable[tuple[str, Any]]:
    for i, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            sent = orjson.loads(line)["rows"]
        except (ValueError, KeyError, TypeError):
            raise DataError(f"{path}: line {i} is no body of a request; write them as they were sent") from None
        yield digest(sent), sent
