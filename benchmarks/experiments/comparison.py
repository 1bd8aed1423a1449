"""The main table: every method on every table of data, beside the paper's figures.

Every method is asked for up to 100 candidates for each of 100 test rows that the black box puts in either class; 10
valid ones are kept at random and scored, as the paper does it. Methods of one answer give one.
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page", "score_table"]

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from baselines import BASELINES
from experiments import paper
from experiments.cells import Cell, Options, Result, merged
from experiments.methods import METHODS, MULTI, OURS, fit
from experiments.pages import MARKERS, SCORES, Finding, Score, beside, canvas, colour, head, joined, number, table
from experiments.tasks import BOTH, prepare, score_answers

TITLE = "Comparison"
TABLES = ("adult", "bank", "default", "gmc", "lending-club")
QUICK_METHODS = ("mixed (p=2.0)", "mixed, sure (p=2.0)", "maf (p=2.0)", "cchvae", "wachter")
TIMED = 100
FEW = 20
DEFAULT, PAPERS = "mixed (p=2.0)", ("maf (p=2.0)", "maf (p=0.01)")
# The default generator asked to be ever surer; the others have no such dial.
DIAL = ("mixed, unsure (p=2.0)", DEFAULT, "mixed, sure (p=2.0)", "mixed, surest (p=2.0)")
LABELS = ("tab:comparison", "tab:german")
# What the default is judged by, as it comes and at matched confidence: by the least sure setting that is as sure.
RAW = Score("validity_raw", "raw validity ↑", True)
PROBABILITY, LOF, VOLUME = SCORES[1], SCORES[5], SCORES[6]
JUDGED = ((RAW, False), (PROBABILITY, False), (PROBABILITY, True), (LOF, False), (LOF, True), (VOLUME, False))
ASKERS = "a method that asks the black box during its search (†) returns confirmed answers only"
# Reasons that come to mind; no experiment here isolates them, and the page says so.
WHY = {
    "validity_raw": "the density misses some of what the black box does, and no draw is shown to it",
    "probability": "a search that follows the black box's own gradient or verdicts can go as far into a class as it "
    "likes; ours stays where training rows are",
    "proximity": "an answer that must look like a real row of the other class changes related numbers together",
    "sparsity_categories": "an answer that must look like a real row changes categories where a search may leave them",
    "epsilon_sparsity": "an answer that must look like a real row changes related numbers together",
    "log_lof": "an answer that stays close to an unusual query is as unusual as the query",
    "hypervolume_log10": "the volume is zero unless one answer changes every number, so it rewards needless changes, "
    "and the default generator leaves numbers alone that need not change",
}


def cells(options: Options) -> list[Cell]:
    """Table by table, so that a table's black box is trained once."""
    methods = options.pick_methods(METHODS, quick=QUICK_METHODS)
    tables = options.pick_tables(TABLES[:1] if options.size.quick and options.tables is None else TABLES)
    return [
        Cell("comparison", name, method, seed, options.size)
        for name in tables
        for seed in options.seeds
        for method in methods
    ]


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All scores of a method on a table, in both directions, and its times."""
    task = prepare(cell)
    ask, facts = fit(cell, task, models)
    many = cell.method in MULTI
    found = ask(task.queries, task.targets, n=cell.size.candidates if many else 1, seconds=cell.size.answering)
    few = slice(0, TIMED)
    one = ask(task.queries[few], task.targets[few], n=1, seconds=cell.size.answering / 4)
    return {
        **facts,
        "seconds": found.seconds,
        "done": float(found.done.mean()),
        "out_of_time": bool(facts["fit_cut"] or not found.done.all()),
        "seconds_for_one": one.seconds * TIMED / one.done.sum() if one.done.any() else None,
        "seconds_given": cell.size.answering / 4,
        "one_is_estimated": not one.done.all() or len(one.done) < TIMED,
        "scores": score_answers(task, found, size=cell.size, many=many, seed=cell.seed),
    }


def page(results: Sequence[Result], command: str) -> str:
    """Both directions together beside the paper, each table's directions apart, and where the default is behind."""
    found = merged(results)
    text = (
        "The paper's figure is in brackets (tab:comparison); it has one DiCE, which stands beside each of ours. "
        "`mixed` is the default generator, `maf` the paper's flow as it draws. Validity and all that follows are of "
        "the answers kept; raw validity is of all candidates. 'Unsure', 'sure' and 'surest' ask for a confidence of "
        f"{joined([f'{sure:g}' for name in DIAL if (sure := OURS[name][2]) is not None])}, or the highest that a class "
        "supports. "
        "Methods marked † ask the black box while they search. `mixed` asks it during learning, and drops draws that "
        "its own stand-in doubts; `maf` and the oracle have labels alone, and nothing is dropped. *Queries* are those "
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
    marks = ("†" if _asks(cell.method) else "") + (" \\*" if result.figures["out_of_time"] else "")
    printed = [beside(scores.get(s.name), paper.figure(label, cell.table, model, s.name)) for s in SCORES]
    done = number(scores.get("queries"), 0)
    return [f"{cell.method}{marks}", done, number(scores.get(RAW.name)), *printed, number(result.figures["seconds"], 2)]


def _asks(method: str) -> bool:
    return method in BASELINES and BASELINES[method].needs != "labels"


def _directions(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        for name, scores in result.figures["scores"].items():
            if name != BOTH:
                rows.append([result.cell.method, name, *(number(scores.get(s.name)) for s in (RAW, *SCORES))])
    return table(["method", "direction", *(s.title for s in (RAW, *SCORES))], rows)


# -- what it says about the paper -------------------------------------------------------------------------------------


def findings(results: Sequence[Result]) -> list[Finding]:
    """Where the default is as good as every method of many answers, where not; and the paper's claims for its flow."""
    found = merged(results)
    return [
        *(finding for score, matched in JUDGED for finding in _standing(found, score, matched=matched)),
        *(finding for score in (LOF, VOLUME) for finding in _claim(found, score)),
    ]


def _rivals(results: Sequence[Result], table_name: str) -> list[Result]:
    """What the default is held against: the methods of many answers that the paper has, and its flow."""
    named = (*PAPERS, "cchvae", *(name for name in BASELINES if name.startswith("dice")))
    return [r for r in results if r.cell.table == table_name and r.cell.method in named]


def _value(result: Result, score: Score) -> float | None:
    return result.figures["scores"].get(BOTH, {}).get(score.name)


@dataclass(frozen=True)
class Pair:
    """One of our settings held against a rival on a table."""

    ours: Result
    rival: Result
    score: Score

    @property
    def values(self) -> tuple[float, float]:
        """Both figures."""
        return _value(self.ours, self.score) or 0.0, _value(self.rival, self.score) or 0.0

    @property
    def is_behind(self) -> bool:
        """Whether the rival is better."""
        return not self.score.at_least(*self.values)


def _pairs(results: Sequence[Result], score: Score, *, matched: bool) -> dict[str, list[Pair]]:
    """Per table, every rival with the default setting, or with the one that `_matched` finds."""
    found: dict[str, list[Pair]] = {}
    needed = (score, PROBABILITY) if matched else (score,)
    known = [r for r in results if all(_value(r, s) is not None for s in needed)]
    for name in dict.fromkeys(r.cell.table for r in known):
        here = {r.cell.method: r for r in known if r.cell.table == name}
        dial = [here[method] for method in (DIAL if matched else (DEFAULT,)) if method in here]
        rivals = _rivals(known, name)
        if dial and rivals:
            found[name] = [Pair(_matched(dial, rival), rival, score) for rival in rivals]
    return found


def _matched(dial: Sequence[Result], rival: Result) -> Result:
    """The least sure of our settings that is at least as sure as the rival, or the surest."""
    return next((r for r in dial if not Pair(r, rival, PROBABILITY).is_behind), dial[-1])


def _behind(results: Sequence[Result], score: Score, *, matched: bool) -> dict[str, list[Pair]]:
    """Per table, the rivals that are better than ours."""
    found = _pairs(results, score, matched=matched)
    return {name: [pair for pair in pairs if pair.is_behind] for name, pairs in found.items()}


def _standing(results: Sequence[Result], score: Score, *, matched: bool) -> list[Finding]:
    behind = _behind(results, score, matched=matched)
    if not behind:
        return []
    good = [name for name, better in behind.items() if not better]
    what = f"{score.plain} of {DEFAULT}" + (", asked to be as sure as the other method is" if matched else "")
    if len(good) == len(behind):
        text = f"{what}: at least as good as every other method of many answers on {joined(good)}."
        return [Finding("better", text)]
    ahead = [pair.rival for better in behind.values() for pair in better]
    lost = sorted({r.cell.method for r in ahead})
    text = f"{what}: at least as good as all others on {len(good)} of {len(behind)} tables; better elsewhere: "
    why = ASKERS if score is RAW and all(_asks(name) for name in lost) else WHY[score.name]
    names = joined([name + _caution([r for r in ahead if r.cell.method == name]) for name in lost])
    return [Finding("not", f"{text}{names}. A likely reason, not measured: {why}.")]


def _caution(results: Sequence[Result]) -> str:
    """A word on a method that got to a few queries in its time, which say little."""
    done = [r.figures["scores"].get(BOTH, {}).get("queries") for r in results]
    most = max((n for n in done if n is not None), default=FEW)
    return f" (scored on at most {most:.0f} queries)" if most < FEW else ""


def _claim(results: Sequence[Result], score: Score) -> list[Finding]:
    """Where the paper has its flow ahead of CCHVAE and DiCE, or behind; is ours, built from its text, there too?"""
    same, other = [], []
    for name in dict.fromkeys(r.cell.table for r in results):
        ours = _is_ahead(_figures(results, name, score, flow=True), _figures(results, name, score, flow=False), score)
        models = ("CCHVAE", "DiCE")
        flow, rivals = (
            [paper.figure(label, name, model, score.name) for label in LABELS for model in some]
            for some in ((paper.MODELS[method] for method in PAPERS), models)
        )
        theirs = _is_ahead(flow, rivals, score)
        if ours is not None and theirs is not None:
            word = f"{name} ({'ahead' if theirs else 'behind'} there)"
            (same if ours == theirs else other).append(word)
    text = f"{score.plain} of the paper's flow against CCHVAE and DiCE"
    found = [Finding("agree", f"{text}: as in the paper on {joined(same)}.")] if same else []
    return found + ([Finding("differ", f"{text}: other than in the paper on {joined(other)}.")] if other else [])


def _figures(results: Sequence[Result], table_name: str, score: Score, *, flow: bool) -> list[float | None]:
    return [_value(r, score) for r in _rivals(results, table_name) if (r.cell.method in PAPERS) == flow]


def _is_ahead(ours: Sequence[float | None], theirs: Sequence[float | None], score: Score) -> bool | None:
    """Whether the best of ours is as good as the best of theirs; None if there is nothing to compare."""
    best = max if score.higher else min
    mine, others = ([v for v in values if v is not None] for values in (ours, theirs))
    return score.at_least(best(mine), best(others)) if mine and others else None


def _behind_table(results: Sequence[Result]) -> str:
    rows = []
    for score in (RAW, *SCORES):
        for matched in (False, True) if (score, True) in JUDGED else (False,):
            word = ", matched" if matched else ""
            for name, better in _behind(results, score, matched=matched).items():
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
        [name, *_both(pair), *(number(_value(r, LOF)) for r in (pair.ours, pair.rival))]
        for name, pairs in _pairs(results, PROBABILITY, matched=True).items()
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
