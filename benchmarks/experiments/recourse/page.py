"""The page of recourse: who has no way and who is told so, rules about change, and importance."""

from __future__ import annotations

__all__ = ["TITLE", "figures", "page"]

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.experiments.recourse.adult import LADDER as LADDER_RULES
from benchmarks.experiments.recourse.audit import ALL, ANSWERS, ASKED, TRULY
from benchmarks.experiments.recourse.measuring import AUDIT, FULL, LADDER, LINKED, PEOPLE_OF_DICE, SUFFICIENCY
from benchmarks.experiments.recourse.people import ACTIONS, JUDGES
from benchmarks.pages import NONE, head, number, table

SECONDS_OF_DICE = FULL.answering or 0.0
TITLE = "Recourse: who has a way, and who is told that there is none"
TEXT = f"""\
German Credit, coarsened to 36 columns of whole numbers, as in the paper on REACH (Kothari, Kulynych, Weng and Ustun,
*Prediction without Preclusion*, ICLR 2024). Five folds: a model learns from four of them, and the people of the fifth
whom it refuses ask what to do. What a person may do is stated as constraints, all other features are frozen:

{chr(10).join(f"- {sentence}" for _, _, sentence in ACTIONS.describe())}

So each has at most 431 other rows to go to. A plain loop, which shares nothing with the library, lists them and asks the
model about each: that is the truth.

- *no way*: the model accepts none of a person's rows. *loophole*: people who are told of a row that they can't go to.
  *blind spot*: people who get no answer although there is one. *refused*: people who get an answer that the model refuses.
- *none*: people who are told that there is no way, as a proof; *wrong*: those of them who have one; *unproved*: people
  without a way who are not told so; *miscounted*: proofs that looked at other than all rows.
- `explain` is asked for {ANSWERS} answers, of which every one counts, with `check=` the model's `predict` and
  `coherent=False`: what is unusual is a way, too. *usual answers alone* is the default, which answers with nothing that is
  rare among real people, and says so. *unchecked* never asks the model: its surrogate judges, at a confidence of one half.
  The density is trained for a few steps alone (`QUICK_MIXED` in `benchmarks/methods.py`): what it misses is looked for.
  DiCE (`dice-ml`) is asked for one answer, with `features_to_vary` and a `permitted_range` per person; that age follows, and
  that one account needs another, it can't be told, so that a loophole is counted again with the age set right afterwards.
- Times are per person, of all people of a fold in one call. DiCE answers one after the other, for up to {PEOPLE_OF_DICE}
  people or {SECONDS_OF_DICE:.0f} seconds; figures are of those it got to. What else the machine did at the time is not told apart.
"""  # noqa: E501
# As printed in the paper, on its own folds and models, of people who are truly and predictedly bad.
PRINTED = {
    "logistic regression": ("8.5 %", "13.1 %", "1.3 %"),
    "boosted trees": ("8.6 %", "18.4 %", "0 %"),
    "random forest": ("29.8 %", "24.4 %", "3.6 %"),
}


def page(results: Sequence[Result], command: str) -> str:
    """The audit, then what was measured on other tables."""
    lines = [head(TITLE, TEXT, results, command, budget=False)]
    found = _by_part(results)
    for judge in JUDGES:
        rows = [r for r in found.get(AUDIT, []) if r.cell.setting("judge") == judge]
        lines += [_audit(judge, rows)] if rows else []
    lines += [_ladder(r.figures) for r in found.get(LADDER, [])]
    lines += [_sufficiency(r.figures) for r in found.get(SUFFICIENCY, [])]
    lines += [_linked(found[LINKED])] if LINKED in found else []
    return "".join(lines)


def _by_part(results: Sequence[Result]) -> dict[str, list[Result]]:
    parts: dict[str, list[Result]] = {}
    for result in measured(results):
        parts.setdefault(result.cell.setting("part"), []).append(result)
    return parts


# -- the audit --------------------------------------------------------------------------------------------------------

COUNTS = ("loopholes", "loopholes_followed", "blind", "refused", "proofs", "wrong_proofs", "unproved", "miscounted")
TITLES = (
    "", "people", "no way", "loophole", "with the age set right", "blind spot", "refused", "none", "wrong", "unproved",
    "miscounted", "s per person",
)  # fmt: skip


def _audit(judge: str, results: Sequence[Result]) -> str:
    kind = "XGBoost in the paper" if judge == "boosted trees" else "the same kind in the paper"
    right = number(results[0].figures["accuracy"])
    lines = [f"\n## {judge.capitalize()}\n\n{right} of the held-out people are judged as their label says.\n"]
    for group in (TRULY, ALL):
        rows = [_row(result, group) for result in results]
        if group == TRULY:
            rows.append(_printed(judge, kind))
        lines.append(f"\nPeople who are {group}:\n{table(TITLES, rows)}")
    return "".join(lines)


def _row(result: Result, group: str) -> list[str]:
    counts = result.figures["groups"][group]
    # Ages follow in our answers already; other methods prove nothing.
    hidden = ("loopholes_followed",) if result.cell.method in ASKED else COUNTS[4:]
    shown = [NONE if name in hidden else str(counts[name]) for name in COUNTS]
    return [
        result.cell.method,
        str(counts["people"]),
        _share(counts["without_way"], counts["people"]),
        *shown,
        number(result.figures["seconds"]),
    ]


def _printed(judge: str, kind: str) -> list[str]:
    none, loophole, blind = PRINTED[judge]
    return [f"*DiCE and {kind}, as printed there*", NONE, none, loophole, NONE, blind, *[NONE] * 6]


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else str(part)


# -- rules, importance, draws -----------------------------------------------------------------------------------------


def _ladder(figures: dict[str, Any]) -> str:
    rules = "\n".join(f"- `{rule}`" for rule in LADDER_RULES.rules)
    rows = [
        ["people, of these answered", f"{figures['people']}, {figures['answered']}"],
        ["answers", f"{figures['answers']:,}"],
        ["validity, by the black box", number(figures["validity"], 4)],
        ["answers that break a rule, by `verify` and by plain arithmetic", _both(figures)],
        ["answers with a higher education", number(figures["studying"])],
        ["answers that would obey without being asked to", number(figures["free_obeys"])],
    ]
    title = "\n## Education takes years\n\nOn Adult, people whom a perceptron refuses:"
    return f"{title}\n\n{rules}\n{table(['', ''], rows)}"


def _both(figures: dict[str, Any]) -> str:
    return f"{figures['violations_verify']}, {figures['violations_plain']}"


def _sufficiency(figures: dict[str, Any]) -> str:
    shares = sorted(figures["shares"].items(), key=lambda item: -item[1][1])
    rows = [[name, *(number(share) for share in found)] for name, found in shares]
    text = (
        f"\n## For whom one feature is enough\n\nOn Adult, {figures['people']} people whom a perceptron refuses. "
        "Swept: each value that the table has of a feature is tried, all else as it is, and the perceptron is asked. "
        "Beside it `sufficiency(rows)`, which asks the surrogate, and `sufficiency(rows, usual=True)`, which counts "
        "nothing that is rare or doubtful.\n"
    )
    ranks = (
        f"\nRank correlation (Spearman) with the sweep: {number(figures['spearman'])}, and "
        f"{number(figures['spearman_usual'])} with `usual=True`. {figures['seconds']:.1f} s.\n"
    )
    titles = ["feature", "`sufficiency`", "swept", "`usual=True`"]
    return text + table(titles, rows) + ranks


def _linked(results: Sequence[Result]) -> str:
    rows = [[r.cell.table, *(f"{r.figures[name]:,}" for name in LINKED_COUNTS)] for r in results]
    text = (
        "\n## Draws under rules and consequences at random\n\nOne or two rules that link features to each other and to "
        "the query, and one or two features that follow from others, drawn from templates, for 20 people at a "
        "time. Every draw is checked by `verify`, and by plain Python that comes with each template.\n"
    )
    titles = [
        "table",
        "sets",
        "draws",
        "draws in which what follows changed",
        "rows left no draw",
        "broken, by `verify`",
        "broken, plainly",
    ]
    return text + table(titles, rows)


LINKED_COUNTS = ("sets", "draws", "changed_followers", "unanswerable", "verify", "plain")


def figures(results: Sequence[Result]) -> dict[str, Figure]:  # noqa: ARG001
    """None; the page says it."""
    return {}
