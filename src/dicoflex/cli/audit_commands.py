"""The commands of `dicoflex audit`, and what a model file reveals."""

from __future__ import annotations

__all__ = ["app", "say_reveals"]

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from dicoflex.cli.constraint_flags import features
from dicoflex.cli.messages import note, print_table
from dicoflex.cli.options import Drop, ModelFile, Rows, Seed
from dicoflex.cli.tables import query_rows, read_key_file
from dicoflex.runtime.whole_files import write_text
from dicoflex.table.files import check_folder

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.attacks import Guesses
    from dicoflex.audit import LeakReport, Revealed

app = typer.Typer(help="Test a model: what it gives away.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _audit() -> None:
    """Test a model: what it gives away."""


@app.command()
def leak(
    model: ModelFile,
    train: Annotated[Path, typer.Argument(help="Table of the rows that it learned from.", show_default=False)],
    held_out: Rows,
    *,
    quasi: Annotated[
        str, typer.Option(metavar="NAMES", help="Features by which people might be recognised.", show_default=False)
    ] = "",
    planted: Annotated[
        Path | None, typer.Option(help="Table of odd rows that were planted among them.", show_default=False)
    ] = None,
    queries: Annotated[int, typer.Option(min=10, help="Held-out rows that are asked about.")] = 500,
    row_key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Ask for novel answers, with this key.", show_default=False),
    ] = None,
    drop: Drop = [],  # noqa: B006
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write.", show_default=False)] = None,
) -> None:
    """Attack a model with the rows that it learned from and others: copies, membership, single values, planted rows."""
    if out is not None:
        check_folder(out)
    from dicoflex.audit import Effort
    from dicoflex.audit import leak as audit
    from dicoflex.explainer import load

    explainer = load(model, row_key=None if row_key is None else read_key_file(row_key))
    schema, label = explainer.schema_, explainer.report_.get("label")

    def rows(path: Path) -> pd.DataFrame:
        return query_rows(path, schema, label=label, row_id=None, drop=drop)

    odd = None if planted is None else {planted.stem: rows(planted)}
    found = audit(
        explainer, rows(train), rows(held_out), planted=odd, effort=Effort(queries=queries),
        novel=row_key is not None, random_state=seed or 0, quasi=features([quasi] if quasi else [], schema.names),
    )  # fmt: skip
    say_leak(found)
    if out is not None:
        write_text(out, json.dumps(found.to_dict(), indent=2, ensure_ascii=False) + "\n")
        note(f"wrote {out}")


def say_leak(found: LeakReport) -> None:
    """The findings as a table, and what they are no proof of."""
    from dicoflex.audit.leaking import NO_PROOF

    table = print_table("", "found", "beside")
    for name, value, beside in _lines(found):
        table.add_row(Text(name), Text(value), Text(beside, style="dim"))
    Console().print(table)
    print(f"\n{NO_PROOF}; and no promise is made for rows unlike these.")


def _lines(found: LeakReport) -> Iterator[tuple[str, str, str]]:
    copies = found.copies
    yield (
        "members, others",
        f"{found.members:,}, {found.others:,}",
        f"{found.left_out:,} rows with unknown values left out",
    )
    told = ", ".join(f"{n} {name}" for name, n in found.told.items())
    yield "told of fewer than 5 rows", told, "0 is what min_count=5 is for"
    yield f"answers{' (novel)' if found.novel else ''} that are a training row", f"{copies.of_members:.1%}", ""
    yield (
        "  one of as many training rows",
        f"{copies.of_as_many_members:.1%}",
        f"{copies.of_others:.1%} are a held-out row",
    )
    if found.answers is not None and found.held_out is not None:
        names = ", ".join(found.quasi_identifiers)
        beside = f"{found.held_out.few:.1%} of held-out rows"
        yield f"answers that 1 to 4 training rows share {names} with", f"{found.answers.few:.1%}", beside
    yield from _attack_lines(found.attacks, "membership by")
    for name, guesses in found.attributes.items():
        yield from _guess_lines(name, guesses)
    for name, planted in found.planted.items():
        beside = f"{planted.never_planted:.1%} of odd rows never planted"
        yield f"{planted.rows} rows of {name} that come back", f"{planted.come_back:.1%}", beside
        yield from _attack_lines(planted.attacks, f"rows of {name} by")


def _guess_lines(name: str, guesses: Guesses) -> Iterator[tuple[str, str, str]]:
    mean = guesses.mean
    how = "exactly" if mean.exact else "to within 1% of its range"
    yield f"a value found by {name}, {how}", f"{mean.members:.1%} of members", f"{mean.others:.1%} of others"
    yield (
        "  in the attacker's surest quarter",
        f"{mean.surest_members:.1%} of members",
        f"{mean.surest_others:.1%} of others",
    )


def _attack_lines(attacks: Any, title: str) -> Iterator[tuple[str, str, str]]:
    for name, one in attacks.items():
        chance = f"chance: 0.500 ± {one.error:.3f}; 1.0%"
        yield f"{title} {name}", f"AUC {one.auc:.3f}; {one.found:.1%} found at 1% false alarms", chance


def say_reveals(items: list[Revealed], path: Path, *, as_json: bool) -> None:
    """What a file says about people, as a table or as JSON."""
    if as_json:
        print(json.dumps([one.to_dict() for one in items], indent=2, ensure_ascii=False))
        return
    table = print_table("in the file", "values", "guarantee")
    for one in items:
        table.add_row(Text(one.what), Text(", ".join(map(_shown, one.values))), Text(one.guarantee, style="dim"))
    print(f"{path} says:\n")
    Console().print(table)


def _shown(value: Any) -> str:
    return (
        f"{value:g}" if isinstance(value, float) and abs(value) < 1e15 and float(f"{value:g}") == value else str(value)
    )
