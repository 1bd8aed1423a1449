"""The command that explains files of any size."""

from __future__ import annotations

__all__ = ["COMMANDS"]

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from dicoflex.cli.constraint_flags import Flags
from dicoflex.cli.messages import note
from dicoflex.cli.options import ModelFile, Seed, spread
from dicoflex.cli.question_flags import Question, Target, arguments_of
from dicoflex.cli.tables import read_key_file

PlaceOf = Annotated[
    str, typer.Argument(help="Folder or file, or a URI such as s3://bucket/rows: .parquet, .csv, .csv.gz.")
]
PlaceFor = Annotated[str, typer.Argument(help="Folder for the results, or a URI; a run that was ended goes on there.")]


@dataclass(frozen=True)
class Workers:
    """Who does the work."""

    engine: Annotated[str, typer.Option(help="processes, ray or inline.")] = "processes"
    workers: Annotated[
        int | None, typer.Option(min=1, help="How many.", show_default="as many as there are processors")
    ] = None
    address: Annotated[
        str | None, typer.Option(help="With --engine ray: the cluster, such as auto.", show_default="one is started")
    ] = None
    part_rows: Annotated[int, typer.Option(min=1, help="Rows that are done again when a worker dies.")] = 50_000


@spread(flags=Flags, question=Question, who=Workers)
def batch(
    model: ModelFile,
    source: PlaceOf,
    out: PlaceFor,
    *,
    target: Target = None,
    flags: Any,
    question: Any,
    row_id: Annotated[
        str | None,
        typer.Option("--id", help="Column that names the rows.", show_default="a file's path and the row's number"),
    ] = None,
    who: Any,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    row_key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Key file that 'fit --remember-rows' wrote.", show_default=False),
    ] = None,
    seed: Seed = 0,
    trust: Annotated[
        Path | None, typer.Option(help="Public key; refuse a model that it did not sign.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Explain millions of rows: files in, files out, each row exactly once; see docs/how-to/batch.md."""
    from dicoflex.batch import explain_files, plan_files
    from dicoflex.explainer import load
    from dicoflex.request import Request

    explainer = load(model, trust=trust)
    request = Request.of(random_state=seed, **arguments_of(explainer.model_, target, flags, question))
    key = None if row_key is None else read_key_file(row_key)
    given: dict[str, Any] = {"id": row_id, "part_rows": who.part_rows, "row_key": key}
    if dry_run:
        print(plan_files(explainer, source, out, request, **given))
        return
    report = explain_files(
        explainer, source, out, request, **given,
        engine=who.engine, workers=who.workers, address=who.address, verbose=False if quiet else None,
    )  # fmt: skip
    if not quiet:
        note(str(report))


COMMANDS = (batch,)
