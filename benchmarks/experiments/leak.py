"""What a model file gives away: the leak audit on three tables, with and without what guards against it.

The leak audit (`dicoflex audit leak`, docs/privacy.md) attacks models of the default density: training rows are
members, test rows are not. AUC 0.5 and 1 % found at 1 % false alarms mean that an attack found nothing, not that there
is nothing to find. Whether rows are remembered changes no weight, and without the key the hashes tell nothing but their
number, so one model serves for answers as usual and for `novel` ones. Copies: the share of answers that equal a
training row; in brackets, one of as many training rows as there are held-out rows, and a held-out row. Validity is that
of `explain`'s answers, and of draws as `sample` gives them in brackets. Of a generated table, models of 500 to 10,000
rows are attacked as they come, nothing set.

    dicoflex bench leak                        in full, about twenty minutes
    dicoflex bench leak --quick                a slice in a minute
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "measure", "page"]

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchmarks.cells import Cell, Result, Size, measured
from benchmarks.methods import QUICK_MIXED
from benchmarks.options import Options
from benchmarks.pages import head, number, table
from benchmarks.tables import ADULT, GENERATED, GERMAN, TABLES
from benchmarks.tasks import Task, prepare
from dicoflex import DiCoFlex
from dicoflex.attacks import ATTACKS
from dicoflex.audit import Effort, LeakReport, leak, odd_rows

TITLE = "What a model file gives away"
ODD = 20
TIMES = {"once": 1, "ten times": 10}
# What is fitted: the count of rows that may be told of, whether what goes together is learned, how many odd rows are
# planted once, and others ten times.
MODELS: dict[str, dict[str, Any]] = {
    "min_count=5": {"min_count": 5, "coherence": False, "planted": 0},
    "min_count=1": {"min_count": 1, "coherence": False, "planted": 0},
    "min_count=5, coherence": {"min_count": 5, "coherence": True, "planted": 0},
    "planted": {"min_count": 5, "coherence": False, "planted": ODD},
}
BY_ROWS = (500, 1_000, 2_000, 4_000, 10_000)
QUICK_ROWS = (600,)
QUASI = {
    GENERATED: ("age", "region", "married"),
    ADULT: ("age", "race", "sex", "native_country"),
    GERMAN: ("age", "personal_status_sex", "job"),
}
FULL = Size(learning=None)
QUICK_QUERIES = 40


def cells(options: Options) -> list[Cell]:
    """Every model on Adult and German, and one of each number of rows; in a quick run on German and of 600 rows."""
    found = []
    for name in options.pick_tables((ADULT, GERMAN, GENERATED), quick=(GERMAN, GENERATED)):
        size = options.size(FULL)
        if name == GENERATED:
            found += [
                _of_rows(cell, size, n) for cell in options.cells("leak", name, ["mixed"]) for n in _rows(options)
            ]
            continue
        for cell in (replace(one, size=size) for one in options.cells("leak", name, ["mixed"])):
            found += [
                replace(cell, settings=tuple({"model": model, **given}.items())) for model, given in MODELS.items()
            ]
    return found


def _rows(options: Options) -> tuple[int, ...]:
    return QUICK_ROWS if options.quick else BY_ROWS


def _of_rows(cell: Cell, size: Size, n: int) -> Cell:
    """The cell of a model of so many rows, nothing set."""
    settings = {"model": f"{n:,} rows", **MODELS["min_count=5, coherence"]}
    return replace(cell, size=replace(size, rows=n), settings=tuple(settings.items()))


def measure(cell: Cell, models: Path) -> dict[str, Any]:  # noqa: ARG001
    """The audit of one model, for answers as usual and for novel ones."""
    task = prepare(cell)
    odd = _odd(cell, task)
    explainer = _fitted(cell, task, odd)
    effort = Effort(queries=QUICK_QUERIES, guessed=QUICK_QUERIES) if cell.size.quick else Effort()
    asked = {
        "quasi": [name for name in QUASI[cell.table] if name in task.data.X_train],
        "planted": odd,
        "random_state": cell.seed,
    }
    train, others = task.data.X_train, task.data.X_test
    audits = {
        "as usual": leak(explainer, train, others, effort=effort, **asked),
        "novel": leak(explainer, train, others, novel=True, effort=replace(effort, attacks=(), guessed=0), **asked),
    }
    return {
        "audits": {name: _figures(audit) for name, audit in audits.items()},
        "validity": _validity(cell, task, explainer),
        "rows_left_out": explainer.report_["rows_left_out"],
    }


def _odd(cell: Cell, task: Task) -> dict[str, pd.DataFrame]:
    """The rows to plant, by how often."""
    n = cell.setting("planted")
    drawn = odd_rows(task.data.X_train, n * len(TIMES), random_state=cell.seed) if n else task.data.X_train.head(0)
    return {name: drawn.iloc[i * n : (i + 1) * n] for i, name in enumerate(TIMES) if n}


def _fitted(cell: Cell, task: Task, odd: dict[str, pd.DataFrame]) -> DiCoFlex:
    parts = [task.data.X_train, *(rows for name, rows in odd.items() for _ in range(TIMES[name]))]
    rows = pd.concat(parts, ignore_index=True).astype(task.data.X_train.dtypes)
    quick = QUICK_MIXED if cell.size.quick else {"max_seconds": cell.size.learning}
    explainer = DiCoFlex(
        min_count=cell.setting("min_count"), coherence=cell.setting("coherence"), random_state=cell.seed, **quick
    )
    judge = task.black_box
    return explainer.fit(rows, judge.predict(rows), predict_proba=judge.predict_proba, remember_rows=True)


def _figures(audit: LeakReport) -> dict[str, Any]:
    return audit.to_dict() | {"worst": audit.worst}


def _validity(cell: Cell, task: Task, explainer: DiCoFlex) -> dict[str, float]:
    known = task.queries[_known(explainer, task.queries)]
    asked = {"target": task.targets[known.index], "random_state": cell.seed}
    answers = explainer.explain(known, n=10, **asked).frame
    draws = explainer.sample(known, n=cell.size.candidates, **asked)
    return {"answers": task.validity(answers), "draws": task.validity(draws)}


def _known(explainer: DiCoFlex, rows: pd.DataFrame) -> pd.Series:
    """Which rows have no level that the model does not name."""
    known = pd.Series(True, rows.index)
    for feature in explainer.schema_.features:
        if not feature.is_number:
            known &= rows[feature.name].isin(feature.levels) | rows[feature.name].isna()
    return known


# -- the page ---------------------------------------------------------------------------------------------------------


def page(results: Sequence[Result], command: str) -> str:
    """For each table the audits of its models, and what became of planted rows."""
    lines = [head(TITLE, (__doc__ or "").split("\n\n")[1], results, command, budget=False)]
    for name in dict.fromkeys(result.cell.table for result in measured(results)):
        here = [result for result in measured(results) if result.cell.table == name]
        plain = [result for result in here if not result.cell.setting("planted")]
        lines.append(f"\n## {TABLES[name].title}\n")
        lines.append(_rows_line(here[0]))
        lines.append(_audit_table(plain))
        lines.append(_attack_table(plain))
        lines.append(_guess_table(plain))
        if name == GENERATED:
            continue
        lines.append(f"\n{ODD} odd rows, columns drawn apart from each other, planted among the training rows:\n")
        lines.append(_planted_table([result for result in here if result.cell.setting("planted")]))
    return "".join(lines)


def _rows_line(result: Result) -> str:
    audit = result.figures["audits"]["as usual"]
    quasi = ", ".join(audit["quasi_identifiers"])
    return f"\n{audit['members']:,} members, {audit['others']:,} others. Quasi-identifiers: {quasi}.\n"


def _audit_table(results: Sequence[Result]) -> str:
    header = ["model", "answers", "copies", "1 to 4 share the quasi-identifiers (held-out rows)"]
    header += ["told of fewer than 5 rows: levels, single values, extremes", "validity"]
    return table(header, [_audit_row(r, way, audit) for r in results for way, audit in r.figures["audits"].items()])


def _audit_row(result: Result, way: str, audit: dict[str, Any]) -> list[str]:
    copies, validity = audit["copies"], result.figures["validity"]
    beside = f"({copies['of_as_many_members']:.1%}, {copies['of_others']:.1%})"
    return [
        result.cell.setting("model"),
        way,
        f"{copies['of_members']:.1%} {beside}",
        f"{audit['answers']['few']:.1%} ({audit['held_out']['few']:.1%})",
        ", ".join(str(count) for count in audit["told"].values()),
        f"{number(validity['answers'], 4)} ({number(validity['draws'], 4)})",
    ]


def _attack_table(results: Sequence[Result]) -> str:
    attacks = list(dict.fromkeys(name for r in results for name in r.figures["audits"]["as usual"]["attacks"]))
    rows = []
    for result in results:
        found = result.figures["audits"]["as usual"]["attacks"]
        rows.append([result.cell.setting("model"), *(_attack(found.get(name)) for name in attacks)])
    return table(["membership: AUC (found at 1 %)", *attacks], rows)


def _guess_table(results: Sequence[Result]) -> str:
    """How often a value is found from all others, by each density: the mean over numbers of many values."""
    rows = []
    for result in results:
        for name, found in result.figures["audits"]["as usual"]["attributes"].items():
            mean = found["mean"]
            sure = f"{mean['surest_members']:.1%} ({mean['surest_others']:.1%})"
            rows.append([result.cell.setting("model"), name, f"{mean['members']:.1%} ({mean['others']:.1%})", sure])
    return table(["values found of members (others)", "by", "of all", "in the attacker's surest quarter"], rows)


def _attack(found: dict[str, float] | None) -> str:
    if found is None:
        return number(None)
    return f"{found['auc']:.3f} ± {found['error']:.3f} ({found['found']:.1%})"


def _planted_table(results: Sequence[Result]) -> str:
    rows = []
    for result in results:
        for times, planted in result.figures["audits"]["as usual"]["planted"].items():
            attacks = planted["attacks"]
            back = [f"{planted['come_back']:.1%}", f"{planted['never_planted']:.1%}"]
            rows.append([times, *back, *(_attack(attacks[name]) for name in attacks)])
    names = [name for name in ATTACKS if name != "rows"]
    return table(["planted", "come back", "odd rows never planted", *names], rows)


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
