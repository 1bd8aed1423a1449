"""The page of the comparison: every method beside the paper's figures, and where the default generator is behind."""

from __future__ import annotations

__all__ = ["TITLE", "figures", "page", "score_table"]

from collections.abc import Sequence
from itertools import cycle

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import paper
from benchmarks.cells import Result, merged
from benchmarks.experiments.comparison.standing import (
    DIAL,
    JUDGED,
    LOF,
    PROBABILITY,
    RAW,
    Pair,
    asks,
    behind,
    pairs_of,
    value,
)
from benchmarks.methods import MULTI, OURS
from benchmarks.pages import MARKERS, SCORES, beside, canvas, colour, head, joined, number, table
from benchmarks.tasks import BOTH

TITLE = "Comparison"


def page(results: Sequence[Result], command: str) -> str:
    """Both directions together beside the paper, each table's directions apart, and where the default is behind."""
    found = merged(results)
    text = (
        "The paper's figure is in brackets (tab:comparison); it has one DiCE, which stands beside each of ours. "
        "`mixed` is the default generator, `maf` the paper's flow as it draws, `explain` what a caller gets: ten "
        "answers of the default generator, refined and chosen. Validity and all that follows are of "
        "the answers kept; raw validity is of all candidates. 'Unsure', 'sure' and 'surest' ask for a confidence of "
        f"{joined([f'{sure:g}' for name in DIAL if (sure := OURS[name][2]) is not None])}, or the highest that a class "
        "supports. "
        "Methods marked † ask the black box while they search. `mixed` asks it during learning, and drops draws that "
        "its own surrogate doubts; `maf` and the oracle have labels alone, and nothing is dropped. *Queries* are those "
        "that a method got to in its time; figures of a few queries say little."
    )
    lines = [head(TITLE, text, results, command), "\n![validity against changes](comparison.png)\n"]
    for name in dict.fromkeys(r.cell.table for r in found):
        mine = [r for r in found if r.cell.table == name]
        lines += [f"\n## {name}\n", score_table(mine, "tab:comparison"), "\nBy direction:\n", _directions(mine)]
    lines += ["\n## Probability at matched confidence\n", _matched_table(found)]
    lines += ["\n## Where the default generator is behind another method of many answers\n", _behind_table(found)]
    return "".join(lines)


def score_table(results: Sequence[Result], label: str) -> str:
    """One line per method, the paper's figures in brackets."""
    header = ["method", "queries", RAW.title, *(score.title for score in SCORES), "seconds"]
    return table(header, [_score_row(r, label) for r in results])


def _score_row(result: Result, label: str) -> list[str]:
    scores, cell = result.figures["scores"].get(BOTH, {}), result.cell
    model = paper.MODELS.get(cell.method, "")
    marks = ("†" if asks(cell.method) else "") + (" \\*" if result.figures["out_of_time"] else "")
    printed = [beside(scores.get(s.name), paper.figure(label, cell.table, model, s.name)) for s in SCORES]
    done = number(scores.get("queries"), 0)
    return [f"{cell.method}{marks}", done, number(scores.get(RAW.name)), *printed, number(result.figures["seconds"], 2)]


def _directions(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        for name, scores in result.figures["scores"].items():
            if name != BOTH:
                rows.append([result.cell.method, name, *(number(scores.get(s.name)) for s in (RAW, *SCORES))])
    return table(["method", "direction", *(s.title for s in (RAW, *SCORES))], rows)


def _behind_table(results: Sequence[Result]) -> str:
    rows = []
    for score in (RAW, *SCORES):
        for matched in (False, True) if (score, True) in JUDGED else (False,):
            word = ", matched" if matched else ""
            for name, better in behind(results, score, matched=matched).items():
                rows += [[name, score.title + word, *_both(pair)] for pair in better]
    return table(["table", "score", "ours", "figure", "other method", "figure"], rows) if rows else "\nNowhere.\n"


def _both(pair: Pair) -> list[str]:
    mine, theirs = pair.values
    return [pair.ours.cell.method, number(mine), pair.rival.cell.method, number(theirs)]


def _matched_table(results: Sequence[Result]) -> str:
    """Each rival beside the least sure of our settings that is as sure, with the plausibility of both."""
    text = (
        "\nAnswers that the black box is surer of lie farther from those that it refuses, so how plausible answers are "
        "is best compared among answers that are as sure. Each method of many answers stands beside the least sure "
        "setting of the default generator that is at least as sure, or its surest where none is.\n"
    )
    rows = [
        [name, *_both(pair), *(number(value(r, LOF)) for r in (pair.ours, pair.rival))]
        for name, pairs in pairs_of(results, PROBABILITY, matched=True).items()
        for pair in pairs
    ]
    header = ["table", "ours", PROBABILITY.plain, "other method", PROBABILITY.plain, "log LOF, ours", "the other's"]
    return text + table(header, rows)


# -- the figure -------------------------------------------------------------------------------------------------------


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """Per table: raw validity against the share of features changed, and the line of those that none beats in both."""
    found = merged(results)
    names = list(dict.fromkeys(r.cell.table for r in found))
    if not names:
        return {}
    figure, axes = canvas(len(names))
    marks = dict(zip(dict.fromkeys(r.cell.method for r in found), cycle(MARKERS), strict=False))
    for ax, name in zip(axes, names, strict=True):
        _plot(ax, [r for r in found if r.cell.table == name], marks)
        ax.set_title(name, loc="left")
    shown = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(
        shown.values(), shown, loc="outside lower left", ncols=2 * min(3, len(names)), frameon=False, fontsize=7
    )
    return {"comparison.png": figure}


def _plot(ax: Axes, results: Sequence[Result], marks: dict[str, str]) -> None:
    points = []
    for result in results:
        scores, method = result.figures["scores"].get(BOTH, {}), result.cell.method
        x, y = scores.get("changed"), scores.get(RAW.name if method in MULTI else "validity")
        if x is not None and y is not None:
            points.append((x, y))
            ax.plot(x, y, marks[method], color=colour(method), label=method, ms=7, alpha=0.85)
    front = [a for a in points if not any(b != a and b[0] <= a[0] and b[1] >= a[1] for b in points)]
    if front:
        ax.plot(*np.array(sorted(front)).T, color="#8a93a0", lw=1, zorder=0)
    ax.set_xlabel("share of features changed (less is better)")
    ax.set_ylabel("raw validity (more is better)")
