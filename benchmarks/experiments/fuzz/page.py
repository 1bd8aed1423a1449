"""The page: what came of the files of each base, and every failure."""

from __future__ import annotations

__all__ = ["TITLE", "figures", "page"]

from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.experiments.fuzz.measuring import MOST_MEGABYTES, MOST_SECONDS
from benchmarks.experiments.fuzz.trying import FAILED, REFUSED, USED
from benchmarks.pages import head, table

TITLE = "Forged model files"
TEXT = f"""\
Small models of every density and surrogate are forged: one or two entries of the header removed, repeated, retyped,
scaled, shifted, made huge or no number, swapped, nested or shuffled; arrays gone, renamed, shortened, lengthened,
reshaped, of another dtype, or with zeros, no numbers, extremes, random, ordered or shuffled numbers in them; or one
length altered everywhere. The checksum is right. Each file is inspected and loaded, and a model that comes of it is
asked to explain and to draw for two rows, for a density, and for what it reveals. Refused: a `ModelFileError`. Used:
there is a model, and it answers or refuses the question. Failed is everything else: another error, a process that
dies, an index out of bounds, more than {MOST_SECONDS:g} s of the processor or {MOST_MEGABYTES:g} MB of memory for
it all."""
HEADER = ["model", "files", "refused", "used", "failed", "most seconds", "most MB"]


def page(results: Sequence[Result], command: str) -> str:
    """A line per base, and the failures."""
    found = measured(results)
    checked = all(result.cell.setting("bounds") for result in found)
    how = "Numba's bounds checks are on." if checked else "Numba's bounds checks are off."
    lines = [head(TITLE, f"{TEXT} {how}", results, command, budget=False), table(HEADER, [*map(_row, found)])]
    lines.append(f"\n{_total(found)}\n")
    failures = [(result.cell.method, one) for result in found for one in result.figures["failures"]]
    for name, one in failures:
        lines.append(f"\n- {name}, number {one['number']} ({'; '.join(one['altered'])}): {one['why']}")
    return "".join(lines) + ("\n" if failures else "")


def _row(result: Result) -> list[str]:
    counts = [str(_count(result, outcome)) for outcome in (REFUSED, USED, FAILED)]
    took = [f"{result.figures['seconds']:.2f}", f"{result.figures['megabytes']:.0f}"]
    return [result.cell.method, str(result.cell.setting("files")), *counts, *took]


def _count(result: Result, outcome: str) -> int:
    return int(result.figures["outcomes"].get(outcome, 0))


def _total(results: Sequence[Result]) -> str:
    files = sum(result.cell.setting("files") for result in results)
    failed = sum(_count(result, FAILED) for result in results)
    return f"{files:,} files, {failed:,} failures."


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
