"""The page of answers: `explain` beside its bars, and every method on every table."""

from __future__ import annotations

__all__ = ["TITLE", "figures", "page"]

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.experiments.answers import certified, dependencies
from benchmarks.experiments.answers.bars import JUDGED, bar, misses
from benchmarks.experiments.answers.measuring import ANSWERS, ASKED, ONE, SEEDS, SHORT, SHOWN, TABLES
from benchmarks.pages import NONE, Score, head, joined, number, table

TITLE = "Answers that a person would accept"
TEXT = f"""\
For every table and seed: a black box is trained, 100 test rows per predicted class are the queries, and
`explain(n={ANSWERS})` answers for the other class, at the default confidence and without asking the black box. `unrefined`
is `explain(refine=False)`: draws as they come. Beside it the {ANSWERS} nearest training rows of the target class (`oracle`),
the nearest of those that the black box is as sure of as is asked for (`oracle, sure`), DiCE (20 queries each, its step that
undoes changes of numbers included), C-CHVAE, and TABCF, which gives one answer. Settings were chosen on other seeds than
{joined([str(seed) for seed in SEEDS])}, but for one: that margins are rounded to the nearest percent, and no longer up, was decided after a look at
Bank's figures of seed 1. Figures are of all answers, judged by the black box:

- *needless*: the share of changes that, undone alone, leave a row that still gets the target, surer by .05 than was asked
  for, and that has no unseen pair and is not rare; *reducible*: answers with at least one such change; *closer*: the share
  of changed numbers that could go half of the way back, to the nearest value of the training rows, likewise.
- *unseen*: answers with a pair of values (numbers by decile) that no training row has and the query has not; *rare*:
  answers less likely than 95 % of real test rows of the target class, by boosted trees that no method learns from.
- *validity*: answers to which the black box gives the target; *sure*: answers of which it is as sure as was asked for, less
  {SHORT:g} (other methods were not asked to be sure); *5 answers*: queries with at least 5 of {ANSWERS}.
- *changed*: features per answer; *L1*: distance of standardised numbers; *shift*: percentiles of the training rows that the
  numbers move by, in sum and at most; *routes*: different sets of changed features per answer; *additions*: of a query's
  first {SHOWN} answers, those that change all that another of them changes, and more; *log LOF*: see
  `metrics.LogLof`. The formulas stand in the docstrings of `dicoflex.metrics`.
- times are of all queries in one call, with nothing to compile.
"""  # noqa: E501

Show = Callable[[dict[str, Any]], str]


def _plain(name: str, digits: int) -> Show:
    """Shows one figure as it is."""
    return lambda figures: number(figures[name], digits)


COLUMNS: list[tuple[str, Show]] = [
    ("queries", lambda r: str(r["queries"])),
    ("needless", _plain("needless", 3)),
    ("reducible", _plain("reducible", 3)),
    ("closer", _plain("closer", 3)),
    ("unseen", _plain("unseen", 3)),
    ("rare", _plain("rare", 3)),
    ("validity", _plain("validity", 3)),
    ("sure", _plain("sure", 3)),
    ("5 answers", _plain("enough", 2)),
    ("none", _plain("none", 2)),
    ("changed", _plain("changed", 1)),
    ("L1", _plain("l1", 2)),
    ("shift", lambda r: f"{number(r['shift_total'], 2)}, {number(r['shift_largest'], 2)}"),
    ("routes", _plain("routes", 2)),
    # Cells that are kept from earlier versions have none.
    ("additions", lambda r: number(r.get("additions"), 2)),
    ("log LOF", _plain("lof", 2)),
    ("ms per query", lambda r: f"{r['ms']:,.0f}" if r["ms"] >= 10 else f"{r['ms']:.1f}"),
    ("fit, s", lambda r: number(r["fit_seconds"], 0)),
    ("file, MB", lambda r: number(r["file_mb"], 2)),
]
SURE = 0.95
# What one answer per query has none of.
OF_SEVERAL = ("5 answers", "routes", "additions")
OF_REAL = {"unseen": 3, "rare": 3, "log LOF": 2}


def page(results: Sequence[Result], command: str) -> str:
    """The bars, then a table of all methods for each table of data, seeds side by side."""
    lines = [head(TITLE, TEXT, results, command, budget=False)]
    every = measured(results)
    asked = [r for r in every if r.cell.method in ASKED]
    found = sorted(asked, key=lambda r: (ASKED.index(r.cell.method), r.cell.seed))
    lines += _bars(found)
    lines += _certified([r for r in every if r.cell.method == certified.NAME])
    lines += _dependencies([r for r in every if r.cell.method in dependencies.METHODS])
    for name in TABLES:
        mine = [r for r in found if r.cell.table == name]
        if mine:
            lines += [f"\n## {name}\n", _method_table(mine)]
    return "".join(lines)


# -- bars -------------------------------------------------------------------------------------------------------------


def _bars(results: Sequence[Result]) -> list[str]:
    """A table for each exponent: figures by row, tables of data by column, each seed's figure, and the bar."""
    ours = [r for r in results if any(bar(s.name, r.cell.table, r.cell.method) is not None for s in JUDGED)]
    if not ours:
        return []
    checks = [
        misses(score, r.figures[score.name], wanted)
        for r in ours
        for score in JUDGED
        if (wanted := bar(score.name, r.cell.table, r.cell.method)) is not None
    ]
    met = f"{len(checks) - sum(checks)} of {len(checks)} are met; those that are missed are **bold**."
    lines = ["\n## Bars\n", f"\nSeed by seed, with the bar in brackets. {met}\n"]
    for method in dict.fromkeys(r.cell.method for r in ours):
        mine = [r for r in ours if r.cell.method == method]
        names = list(dict.fromkeys(r.cell.table for r in mine))
        rows = [[score.title, *(_against(score, mine, name) for name in names)] for score in JUDGED]
        lines += [f"\n{method}:\n", table(["", *names], rows)]
    return lines


def _against(score: Score, results: Sequence[Result], name: str) -> str:
    """A figure of one table for each seed, and its bar."""
    mine = [r for r in results if r.cell.table == name]
    wanted = bar(score.name, name, mine[0].cell.method)
    shown = " / ".join(_judged(score, r.figures[score.name], wanted) for r in mine)
    return shown if wanted is None else f"{shown} ({wanted:g})"


def _judged(score: Score, found: float | None, wanted: float | None) -> str:
    shown = number(found, 3)
    return f"**{shown}**" if misses(score, found, wanted) else shown


# -- what is promised -------------------------------------------------------------------------------------------------


def _certified(results: Sequence[Result]) -> list[str]:
    """By sort of question and target: in how many refits the certified rate held."""
    if not results:
        return []
    cell = results[0].cell
    text = (
        f"{len(results)} refits on {cell.table}, each with a black box, a model of a few steps and {cell.size.rows:,} "
        f"training rows of its own; {cell.size.queries} fresh queries per class. Of the answers, at least the share "
        f"that `valid_at_least` tells should be valid, in {SURE:.0%} of the refits; where it is not, it is **bold**."
    )
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for rate in (rate for r in results for rate in r.figures["rates"]):
        groups.setdefault((rate["sort"], rate["target"]), []).append(rate)
    header = ["question", "target", "refits", "rate held in", "certified, mean", "valid, mean", "most that lacked"]
    rows = [[sort, target, *_held(rates)] for (sort, target), rates in groups.items()]
    return ["\n## The certified rate\n", f"\n{text}\n", table(header, rows)]


def _held(rates: Sequence[dict[str, Any]]) -> list[str]:
    gaps = [rate["certified"] - rate["valid"] for rate in rates]
    held = sum(gap <= 0 for gap in gaps)
    shown = f"{held}" if held >= SURE * len(gaps) else f"**{held}**"
    means = [sum(rate[name] for rate in rates) / len(rates) for name in ("certified", "valid")]
    return [str(len(rates)), shown, *(number(mean, 4) for mean in means), number(max(0.0, *gaps, 0.0), 4)]


def _dependencies(results: Sequence[Result]) -> list[str]:
    """By generator: how many answers break what holds in all training rows."""
    if not results:
        return []
    text = "What follows from others in every training row, and answers in which it does not; no other table has such."
    header = ["table", "generator", "dependencies", "answers", "broken"]
    rows = [
        [
            r.cell.table,
            dependencies.METHODS[r.cell.method],
            "; ".join(r.figures["dependencies"]) or "none",
            f"{r.figures['answers']:,}",
            str(r.figures["broken"]) if r.figures["broken"] == 0 else f"**{r.figures['broken']}**",
        ]
        for r in results
    ]
    return ["\n## Dependencies\n", f"\n{text}\n", table(header, rows)]


# -- all methods ------------------------------------------------------------------------------------------------------


def _method_table(results: Sequence[Result]) -> str:
    """A row for each method, seeds side by side; at the end what the measures say of real rows."""
    rows = []
    for method in dict.fromkeys(r.cell.method for r in results):
        mine = [r for r in results if r.cell.method == method]
        late = any(r.figures["out_of_time"] for r in mine)
        rows.append([rf"{method} \*" if late else method, *_shown(mine, method)])
    real = {r.cell.seed: r.figures["real"] for r in results}
    rows.append(["real test rows", *(_real(title, list(real.values())) for title, _ in COLUMNS)])
    return table(["", *(title for title, _ in COLUMNS)], rows)


def _shown(results: Sequence[Result], method: str) -> list[str]:
    return [
        NONE if method in ONE and title in OF_SEVERAL else _once(show(r.figures) for r in results)
        for title, show in COLUMNS
    ]


def _real(title: str, real: Sequence[dict[str, float]]) -> str:
    names = {"log LOF": "lof"}
    if title not in OF_REAL:
        return NONE
    return _once(number(figures[names.get(title, title)], OF_REAL[title]) for figures in real)


def _once(shown: Any) -> str:
    """The seeds' figures side by side; one where they are all the same."""
    texts = list(shown)
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
