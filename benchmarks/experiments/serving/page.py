"""The page of the server."""

from __future__ import annotations

__all__ = ["TITLE", "figures", "page"]

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.pages import head, number, table

TITLE = "The server under load"
TEXT = (
    "One worker and 32 connections that each ask for five answers to one row, wait, and ask again; the load comes from "
    "the same machine. `predict_proba` is a server of the same kind that calls the black box on one row at a time."
)


def page(results: Sequence[Result], command: str) -> str:
    """A section per part."""
    text = head(TITLE, TEXT, results, command, budget=False)
    for result in measured(results):
        text += "".join(SECTIONS[result.cell.method](result.figures))
    return text


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}


def _load(found: dict[str, Any]) -> Iterator[str]:
    loads = found["loads"]
    yield "\n## Load\n\n"
    yield _loads(loads)
    for way in ("refined", "as drawn"):
        together, alone = loads[f"{way}, gathered"]["rate"], loads[f"{way}, one at a time"]["rate"]
        other = together / loads["predict_proba"]["rate"]
        yield f"\nAnswers {way}: {together / alone:.2f} times the requests per second when gathered, "
        yield f"{other:.2f} times those of `predict_proba`.\n"


def _loads(loads: dict[str, Any]) -> str:
    rows = [
        [name, *(number(one[k], 1) for k in ("rate", "p50", "p99")), f"{one['failed']} of {one['requests']}"]
        for name, one in loads.items()
    ]
    return table(["server", "requests/s", "p50, ms", "p99, ms", "failed"], rows)


def _equal(found: dict[str, Any]) -> Iterator[str]:
    yield f"\n## Equal answers\n\nOf {found['compared']:,} answers under load, "
    yield f"{found['same']:,} are those of direct calls.\n"


def _changes(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## Changes under load\n\n"
    yield _loads(found["changes"])


def _stream(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## A stream\n\n"
    yield f"{found['rows']:,} rows in one request of {found['body']:.1f} MB: {found['rate']:,.0f} rows per second, "
    yield f"the server's memory grew by {found['grown']:.0f} MB; it {'ended' if found['ended'] else 'broke off'}.\n"


def _hostile(found: dict[str, Any]) -> Iterator[str]:
    told = ", ".join(f"{count} got {status}" for status, count in sorted(found["statuses"].items()))
    yield f"\n## Hostile bodies\n\nOf {found['bodies']} bodies {told}; the longest took {found['longest']:.2f} s, "
    yield f"and the server {'answers' if found['alive'] else 'does not answer'} afterwards.\n"


def _audit(found: dict[str, Any]) -> Iterator[str]:
    total = found["identical"] + found["different"]
    yield f"\n## The audit log\n\nIt adds {found['milliseconds']:.2f} ms to a request. {found['records']:,} records, "
    yield f"{found['findings']} findings; replayed: {found['identical']:,} of {total:,} identical.\n"


def _start(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## Start\n\nA fresh process that loads a model and answers one row, kernels made before:\n\n"
    rows = [[name, number(one["seconds"], 2), number(one["memory"], 0)] for name, one in found["starts"].items()]
    yield table(["process", "seconds", "memory, MB"], rows)


SECTIONS = {
    "load": _load,
    "equal": _equal,
    "changes": _changes,
    "stream": _stream,
    "hostile": _hostile,
    "audit": _audit,
    "start": _start,
}
