"""The commands about a server's audit log: audit verify, audit replay."""

from __future__ import annotations

__all__ = ["app"]

import json
from pathlib import Path
from typing import Annotated

import typer

from dicoflex.cli.messages import note
from dicoflex.runtime.extras import extra
from dicoflex.runtime.printable import counted
from dicoflex.runtime.whole_files import write_text

BROKEN = 4
MOST_SHOWN = 10
app = typer.Typer(help="Look into what a server has answered, or what a model tells of its rows.", no_args_is_help=True)
Log = Annotated[Path, typer.Argument(help="Folder of 'dicoflex serve --audit'.", show_default=False)]


@app.command()
def verify(
    log: Log,
    trust: Annotated[Path | None, typer.Option(help="Public key that every record is signed with.")] = None,
    receipts: Annotated[
        Path | None, typer.Option(help="Receipts that must be in the log, one per line: of answers, or from --heads.")
    ] = None,
    heads: Annotated[
        Path | None, typer.Option(help="File for receipts of each file's last record, to keep elsewhere.")
    ] = None,
) -> None:
    """Check that no record or file of an audit log was altered, dropped or moved; else exit code 4.

    A last line that breaks off, as it does when a server dies, is named and is no finding.
    """
    with extra("serve", to="read an audit log"):
        from dicoflex.serving.audit import heads as heads_of
        from dicoflex.serving.audit import read_receipts, verify_folder

    wanted = [] if receipts is None else read_receipts(receipts)
    count, all_findings = verify_folder(log, trust=trust, receipts=wanted)
    findings = [found for found in all_findings if not found.torn]
    for found in [one for one in all_findings if one.torn] + findings[:MOST_SHOWN]:
        print(f"{found.file}: record {found.seq} {found.why}")
    print(f"{counted(count, 'record')}, {counted(len(findings), 'finding')}")
    if findings:
        raise typer.Exit(BROKEN)
    if heads is not None:
        write_text(heads, "".join(json.dumps(one) + "\n" for one in heads_of(log)))


@app.command()
def replay(
    log: Log,
    models: Annotated[list[Path], typer.Option("--model", help="Model file that answered. May be repeated.")],
    bodies: Annotated[
        Path | None, typer.Option(help="Bodies of the requests, one per line, where the log holds no values.")
    ] = None,
) -> None:
    """Ask all questions of an audit log again and compare the answers to the last bit; exit code 4 if one differs."""
    with extra("serve", to="read an audit log"):
        from dicoflex.serving.replay import replay as ask_again

    found = ask_again(log, models, bodies=bodies)
    for name, why in [*found.different, *found.left_out][:MOST_SHOWN]:
        note(f"request {name}: {why}")
    total = found.identical + len(found.different)
    print(f"{found.identical} of {total} identical; {len(found.left_out)} left out")
    if found.different:
        raise typer.Exit(BROKEN)
