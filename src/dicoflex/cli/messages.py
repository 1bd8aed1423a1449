"""What the commands say."""

from __future__ import annotations

__all__ = [
    "note",
    "print_table",
    "say_dependencies",
    "say_fitted",
    "say_header",
    "say_schema",
    "say_shortfall",
    "say_suggested",
    "say_verdicts",
]

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from dicoflex.errors import ModelFileError
from dicoflex.runtime.printable import counted, printable, printable_lines

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from dicoflex.answers.counterfactuals import Counterfactuals
    from dicoflex.estimator import DiCoFlex
    from dicoflex.table.schema import Schema


MOST_REASONS = 3


def note(message: str) -> None:
    """A line beside the result, so that the result alone can be piped on; nothing in it disturbs a terminal."""
    if sys.stderr is not None:
        print(printable_lines(message), file=sys.stderr)


def say_shortfall(found: Counterfactuals, n: int) -> None:
    """Who has the target already, and who got fewer than asked for."""
    from dicoflex.views.cards import ALREADY  # imports pandas, which `--help` does without

    already = [word == ALREADY for word in found.status]
    if any(already):
        note(f"{counted(sum(already), 'row')} had the target already, and got no answers")
    short = found.shortfall
    if found.short is not None and any(already):
        short = short[[not already[i] for i in found.short]]
    if len(short):
        reasons = list(dict.fromkeys(map(str, short["reason"])))
        note(f"{counted(len(short), 'row')} got fewer than {n}: {'; '.join(reasons[:MOST_REASONS])}")
        if len(reasons) > MOST_REASONS:
            note(f"and {counted(len(reasons) - MOST_REASONS, 'other reason')}; --out found.json lists them by row")


def say_verdicts(found: Counterfactuals, rows: pd.DataFrame) -> bool:
    """Print how many answers to `rows` obey each constraint, beside the result; whether all do."""
    verdicts = found.verify(rows)
    table = print_table("constraint", "answers", "obey", "break")
    for constraint, holds in verdicts.groupby("constraint", sort=False)["holds"]:
        table.add_row(Text(printable(str(constraint))), *(str(n) for n in (len(holds), holds.sum(), (~holds).sum())))
    if len(verdicts):
        Console(stderr=True).print(table)
    broken = verdicts[~verdicts["holds"]]
    note(f"verified {counted(len(found), 'counterfactual')}: {counted(len(broken), 'violation')}")
    for row, cf, constraint in broken[["row", "cf", "constraint"]].itertuples(index=False):
        note(f"row {row!r}, counterfactual {cf}: {constraint} does not hold")
    return broken.empty


def say_fitted(explainer: DiCoFlex, labels: pd.Series | None, *, n_rows: int, out: Path, seconds: float) -> None:
    """What was learned, and how to ask; which outcome is wanted, and of whom, is for the caller to say."""
    if labels is None:
        counts = ", ".join(map(str, explainer.classes_)) or "scores"
    else:
        counts = _counts(labels) if len(explainer.classes_) else f"scores from {labels.min():g} to {labels.max():g}"
    note(f"learned from {counted(n_rows, 'row')} ({counts}) in {seconds:.0f} s")
    note(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB); next:")
    words = shlex.join(["dicoflex", "explain", str(out)])
    note(f"  {words} ROWS.csv --target WANTED --out counterfactuals.html")
    classes = [str(label) for label in explainer.classes_]
    wanted = f"one of {', '.join(classes)}" if classes else f"a score such as '{explainer.model_.example_target}'"
    note(f"  ROWS.csv: the rows to explain; WANTED: the outcome that they should get, {wanted}")


def _counts(labels: pd.Series) -> str:
    return ", ".join(f"{label}: {count:,}" for label, count in labels.value_counts().items())


def say_header(header: Mapping[str, Any], path: Path) -> None:
    """The facts of a model file, and its schema, as two tables."""
    from dicoflex.coherence.dependencies import Dependency
    from dicoflex.table.schema import Schema

    try:
        facts = _facts(header)
        described = Schema.from_json(json.dumps(header["encoding"]["schema"]))
        found = [Dependency.model_validate_json(json.dumps(one)) for one in header.get("dependencies", ())]
        texts = [one.describe(described) for one in found]
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ModelFileError(f"{path}: the header does not describe a model ({error}); save the model again") from None
    console = Console()
    table = print_table("", "")
    table.show_header = False
    for name, value in {"file": str(path), **facts}.items():
        table.add_row(Text(name, style="dim"), Text(printable(value)))
    console.print(table)
    console.print()
    say_schema(described, console)
    say_dependencies([described.names[one.follows] for one in found], texts, console)


def say_dependencies(names: Sequence[Any], texts: Sequence[str], console: Console) -> None:
    """What follows from what in every row, and so in every answer, and how to switch each off."""
    if not names:
        return
    table = print_table("in every row, and in every answer", "to switch it off")
    for name, text in zip(names, texts, strict=True):
        table.add_row(Text(printable(text)), Text(printable(f"fit --no-dependency {shlex.quote(str(name))}")))
    console.print()
    console.print(table)


def _facts(header: Mapping[str, Any]) -> dict[str, str]:
    """What the header says besides the schema, in words; facts that a model does not have are left out."""
    known = header["report"]
    exponents = sorted(header["exponents"])
    facts = {
        "checksum": header["fingerprint"],
        "generator": header["generator"],
        "classes": ", ".join(map(str, header["classes"])),
        "scores": _score_text(known.get("score")),
        "label column": known.get("label"),
        "sparsity p": f"{exponents[0]:g} to {exponents[-1]:g}",
        "confidence": _confidence_text(known.get("confidence")),
        "learned from": f"{known['rows']:,} rows, {known['pairs']:,} pairs, in {known['seconds']:.0f} s",
        "training ended": known.get("training_ended"),
        "held-out loss": "" if known["held_out_loss"] is None else f"{known['held_out_loss']:.3f}",
        "surrogate": f"{header['surrogate']}, {_agreement_text(known)}",
        "classifier asked": f"{known['black_box_rows']:,} rows in {counted(known['black_box_calls'], 'call')}",
    }
    return {name: str(value) for name, value in facts.items() if value}


def _score_text(known: Mapping[str, float] | None) -> str:
    if known is None:
        return ""
    width = f"an interval must hold about {known['narrowest']:.0%} of the rows"
    return f"{known['least']:g} to {known['greatest']:g}; {width}"


def _agreement_text(known: Mapping[str, Any]) -> str:
    share = f"{known['surrogate_agreement']:.1%}"
    return f"explains {share} of how scores differ" if "score" in known else f"agrees with the classifier on {share}"


def _confidence_text(known: Mapping[str, Mapping[str, Any]] | None) -> str:
    texts = []
    for label, own in (known or {}).items():
        levels = [f"{name} {one['confidence']:g}" for name, one in own.items() if isinstance(one, Mapping)]
        texts.append(f"{label}: {', '.join(levels)}, at most {own['highest']:g}")
    return "; ".join(texts) or "learned from labels alone, can't be asked for"


def say_schema(described: Schema, console: Console) -> None:
    """The features, and the constraints that bind every call, as two tables."""
    table = print_table("feature", "kind", "dtype", "values")
    for feature in described.features:
        texts = (str(feature.name), feature.kind.value, feature.dtype, feature.values_text())
        table.add_row(*(Text(printable(text)) for text in texts))
    console.print(table)
    if described.constraints.is_empty:
        return
    table = print_table("constraint of every call", "to lift it")
    for one in described.constraints.one_by_one():
        table.add_row(Text(printable(one.text)), Text(printable(f"--override {shlex.quote(one.entry)}")))
    console.print()
    console.print(table)


def say_suggested(described: Schema, rows: pd.DataFrame, console: Console) -> None:
    """What the features and the rows suggest and no constraint says yet."""
    stated = {one.entry for one in described.constraints.one_by_one()}
    left = [one for one in described.suggested(rows).one_by_one() if one.entry not in stated]
    if not left:
        return
    table = print_table("suggested, taken with --suggest")
    for one in left:
        table.add_row(Text(printable(one.text)))
    console.print()
    console.print(table)


def print_table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
