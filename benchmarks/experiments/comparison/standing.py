"""Where the default generator stands among the methods of many answers, and whether the paper's claims hold here."""

from __future__ import annotations

__all__ = ["DIAL", "JUDGED", "LOF", "PROBABILITY", "RAW", "Pair", "asks", "behind", "findings", "pairs_of", "value"]

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import paper
from benchmarks.baselines import BASELINES
from benchmarks.cells import Result, merged
from benchmarks.pages import SCORES, Finding, Score, joined
from benchmarks.tasks import BOTH

FEW = 20
DEFAULT, PAPERS = "mixed (p=2.0)", ("maf (p=2.0)", "maf (p=0.01)")
# The default generator asked to be ever surer; the others have no such dial.
DIAL = ("mixed, unsure (p=2.0)", DEFAULT, "mixed, sure (p=2.0)", "mixed, surest (p=2.0)")
LABELS = ("tab:comparison", "tab:german")
# What the default is judged by, as it comes and at matched confidence: by the least sure setting that is as sure.
RAW = Score("validity_raw", "raw validity ↑", True)
NAMED = {score.name: score for score in SCORES}
PROBABILITY, LOF, VOLUME = (NAMED[name] for name in ("probability", "log_lof", "hypervolume_log10"))
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


def value(result: Result, score: Score) -> float | None:
    """A result's figure of a score, both directions together."""
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
        return value(self.ours, self.score) or 0.0, value(self.rival, self.score) or 0.0

    @property
    def is_behind(self) -> bool:
        """Whether the rival is better."""
        return not self.score.at_least(*self.values)


def pairs_of(results: Sequence[Result], score: Score, *, matched: bool) -> dict[str, list[Pair]]:
    """Per table, every rival with the default setting, or with the one that `_matched` finds."""
    found: dict[str, list[Pair]] = {}
    needed = (score, PROBABILITY) if matched else (score,)
    known = [r for r in results if all(value(r, s) is not None for s in needed)]
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


def behind(results: Sequence[Result], score: Score, *, matched: bool) -> dict[str, list[Pair]]:
    """Per table, the rivals that are better than ours."""
    found = pairs_of(results, score, matched=matched)
    return {name: [pair for pair in pairs if pair.is_behind] for name, pairs in found.items()}


def _standing(results: Sequence[Result], score: Score, *, matched: bool) -> list[Finding]:
    found = behind(results, score, matched=matched)
    if not found:
        return []
    good = [name for name, better in found.items() if not better]
    what = f"{score.plain} of {DEFAULT}" + (", asked to be as sure as the other method is" if matched else "")
    if len(good) == len(found):
        text = f"{what}: at least as good as every other method of many answers on {joined(good)}."
        return [Finding("better", text)]
    ahead = [pair.rival for better in found.values() for pair in better]
    lost = sorted({r.cell.method for r in ahead})
    text = f"{what}: at least as good as all others on {len(good)} of {len(found)} tables; better elsewhere: "
    why = ASKERS if score is RAW and all(asks(name) for name in lost) else WHY[score.name]
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
        flow, rivals = (
            [paper.figure(label, name, model, score.name) for label in LABELS for model in models]
            for models in ([paper.MODELS[method] for method in PAPERS], ["CCHVAE", "DiCE"])
        )
        theirs = _is_ahead(flow, rivals, score)
        if ours is not None and theirs is not None:
            word = f"{name} ({'ahead' if theirs else 'behind'} there)"
            (same if ours == theirs else other).append(word)
    text = f"{score.plain} of the paper's flow against CCHVAE and DiCE"
    found = [Finding("agree", f"{text}: as in the paper on {joined(same)}.")] if same else []
    return found + ([Finding("differ", f"{text}: other than in the paper on {joined(other)}.")] if other else [])


def _figures(results: Sequence[Result], table_name: str, score: Score, *, flow: bool) -> list[float | None]:
    return [value(r, score) for r in _rivals(results, table_name) if (r.cell.method in PAPERS) == flow]


def _is_ahead(ours: Sequence[float | None], theirs: Sequence[float | None], score: Score) -> bool | None:
    """Whether the best of ours is as good as the best of theirs; None if there is nothing to compare."""
    best = max if score.higher else min
    mine, others = ([v for v in values if v is not None] for values in (ours, theirs))
    return score.at_least(best(mine), best(others)) if mine and others else None


def asks(method: str) -> bool:
    """Whether a method asks the black box while it searches."""
    return method in BASELINES and BASELINES[method].needs != "labels"
