"""The page of the server."""

from __future__ import annotations

__all__ = ["TITLE", "figures", "page"]

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.pages import head, number, table
from benchmarks.tables import TABLES

TITLE = "The server under load"
TEXT = (
    "One worker and 32 connections that each ask for five answers to one row, wait, and ask again; the load comes from "
    "the same machine. `predict_proba` is a server of the same kind that calls the black box on one row at a time."
)


def page(results: Sequence[Result], command: str) -> str:
    """A section per part."""
    text = head(TITLE, TEXT, results, command, budget=False)
    for result in measured(results):
        figures = {**result.figures, "table": TABLES[result.cell.table].title}
        text += "".join(SECTIONS[result.cell.method](figures))
    return text


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}


def _row(found: dict[str, Any]) -> Iterator[str]:
    yield f"\n## One row of {found['table']}\n\n"
    yield f"{found['calls']:,} calls of each, by turns in one process: {found['answers']} answers to one row unless "
    yield "another number is named, from plain values to plain values or from frame to frame, beside one "
    yield "`predict_proba` of the black box, a scikit-learn pipeline, for the same row; the processor's time. The "
    yield "constraints freeze a feature, let one only rise, limit one, forbid a level, and allow four changes.\n\n"
    rows = [
        [name, number(one["p50"], 2), number(one["p99"], 2), number(one["share"], 2)]
        for name, one in found["waits"].items()
    ]
    yield table(["", "p50, ms", "p99, ms", "p50, in calls of `predict_proba`"], rows)


def _request(found: dict[str, Any]) -> Iterator[str]:
    yield f"\n## One request\n\nThe processor's time, mean of {found['requests']:,} requests one after the other "
    yield f"({found['failed']} failed): {found['request']:.2f} ms for a request with one row, "
    yield f"{found['request'] / found['explain']:.2f} times that of `explain` for it ({found['explain']:.2f} ms) and "
    yield f"{found['request'] / found['plain']:.2f} times that from plain values to plain values "
    yield f"({found['plain']:.2f} ms).\n"


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
    yield "Failed is every request that got another status than 200 or no answer. The server that is told to end "
    yield "stands beside another one, as behind a balancer: it answers what it is asked, with each answer it tells its "
    yield "caller to connect anew, and who is told so goes to the other.\n\n"
    yield _loads(found["changes"])


def _stream(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## A stream\n\n"
    yield f"{found['rows']:,} rows in one request of {found['body']:.1f} MB: {found['rate']:,.0f} rows per second, "
    yield f"the server's memory grew by {found['grown']:.0f} MB; it {'ended' if found['ended'] else 'broke off'}.\n"


def _hostile(found: dict[str, Any]) -> Iterator[str]:
    told = ", ".join(f"{count} got {status}" for status, count in sorted(found["statuses"].items()))
    yield f"\n## Hostile bodies\n\nOf {found['bodies']} bodies {told}; the longest took {found['longest']:.2f} s, "
    yield f"and the server {'answers' if found['alive'] else 'does not answer'} afterwards.\n"


def _contract(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## The contract\n\n"
    if "left_out" in found:
        yield f"Left out: {found['left_out']}.\n"
        return
    yield f"schemathesis, all checks, {found['examples']} examples per route: "
    yield f"{'a check failed' if found['failed'] else 'no check failed'}.\n\n"
    rows = [
        [f"`{route}`", f"{sum(own.values()):,}", ", ".join(f"{count:,} × {status}" for status, count in own.items())]
        for route, own in found["routes"].items()
        if route.startswith("/v1")
    ]
    yield table(["route", "requests", "answers"], rows)


def _audit(found: dict[str, Any]) -> Iterator[str]:
    total = found["identical"] + found["different"]
    yield f"\n## The audit log\n\nUnder load it costs {found['loaded']:.2f} ms per request: records that come "
    yield "together are written together, and no answer leaves before its record is on the disk. A request that comes "
    yield f"alone waits {found['alone']:.2f} ms longer, where one sync of this disk takes {found['disk']:.2f} ms. "
    yield f"{found['records']:,} records, {found['findings']} findings; replayed: {found['identical']:,} of {total:,} "
    yield "identical.\n"


def _start(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## Start\n\nA fresh process that loads a model and answers one row, kernels made before:\n\n"
    rows = [[name, number(one["seconds"], 2), number(one["memory"], 0)] for name, one in found["starts"].items()]
    yield table(["process", "seconds", "memory, MB"], rows)


def _soak(found: dict[str, Any]) -> Iterator[str]:
    grown = found["at_end"] / found["after_warm_up"] - 1
    yield f"\n## A soak\n\n{found['seconds'] / 60:.2g} minutes at {found['asked_rate']:.0f} requests per second, half "
    yield f"of what it can do: {found['failed']} of {found['requests']:,} failed, p50 {found['p50']:.1f} ms, p99 "
    yield f"{found['p99']:.1f} ms. Memory was {found['after_warm_up']:.0f} MB after the warm-up and "
    yield f"{found['at_end']:.0f} MB at the end ({grown:+.1%}).\n"


def _adapter(found: dict[str, Any]) -> Iterator[str]:
    yield "\n## Another's client\n\n"
    yield f"tritonclient, asking `/v2` about {found['rows']} rows: {found['answers']} answers, "
    yield f"{'all' if found['same'] else 'not all'} as `/v1` gives them; the server is "
    yield f"{'ready' if found['ready'] else 'not ready'} to it.\n"


def _install(found: dict[str, Any]) -> Iterator[str]:
    yield f"\n## The install\n\n`dicoflex[serve,sign]` in a fresh environment: {found['megabytes']:.0f} MB in "
    yield f"{len(found['packages'])} packages. A process that loads a model and answers one row takes "
    yield f"{found['seconds']:.2f} s and {found['memory']:.0f} MB.\n"


SECTIONS = {
    "row": _row,
    "request": _request,
    "load": _load,
    "equal": _equal,
    "changes": _changes,
    "stream": _stream,
    "hostile": _hostile,
    "contract": _contract,
    "audit": _audit,
    "start": _start,
    "soak": _soak,
    "adapter": _adapter,
    "install": _install,
}
