"""The commands demo, schema, fit, explain, inspect and bench."""

from __future__ import annotations

__all__ = ["app", "folder", "module", "run"]

import json
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from dicoflex.cli.audit_commands import say_reveals
from dicoflex.cli.constraint_flags import Flags
from dicoflex.cli.messages import (
    note,
    say_dependencies,
    say_fitted,
    say_header,
    say_schema,
    say_shortfall,
    say_suggested,
    say_verdicts,
)
from dicoflex.cli.options import CALLABLE, Drop, ModelFile, Rows, Seed, named_callable, named_object, spread
from dicoflex.cli.question_flags import Question, Target, arguments_of
from dicoflex.cli.tables import (
    TableFlags,
    check_probabilities,
    dependencies_in,
    made_key,
    query_rows,
    read_key_file,
    sampled_rows,
    training_rows,
    written_rows,
)
from dicoflex.errors import SettingError, UserError
from dicoflex.runtime.printable import counted, printable_json, printable_lines
from dicoflex.runtime.whole_files import write_text
from dicoflex.table.files import check_folder, ending_of, write_parquet

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.answers.counterfactuals import Counterfactuals


NAME = "benchmarks"
MARK = "__init__.py"


def run(argv: Sequence[str]) -> None:
    """Run the command `benchmarks.command` with these names and options; without any, it shows its help."""
    module("command").main([*argv] or ["--help"])


def module(name: str) -> ModuleType:
    """A module of the checkout's package `benchmarks`, which stands on no path and is imported from its folder."""
    if NAME not in sys.modules:
        spec = spec_from_file_location(NAME, folder() / MARK)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[NAME] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[NAME])
    return import_module(f"{NAME}.{name}")


def folder(package: Path | None = None) -> Path:
    """The folder `benchmarks` of the checkout that `package` (None: this one) stands in.

    An installed package has none; that is a `UserError`.
    """
    root = (package or Path(__file__).resolve().parents[1]).parents[1]
    place = root / NAME
    if not (place / MARK).is_file():
        raise UserError(
            f"the experiments are not part of the installed package, and {root} is no source checkout; "
            'clone the repository, install it with pip install --editable ".[bench]", and run dicoflex bench from there'
        )
    return place


BROKEN = 4
RESULT_ENDINGS = (".csv", ".json", ".html", ".parquet")
app = typer.Typer(
    name="dicoflex",
    help="Diverse counterfactual explanations: what would have to be different for another answer?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"dicoflex {version('dicoflex')}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with every error.")] = False,
) -> None:
    """Diverse counterfactual explanations: what would have to be different for another answer?"""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report, the model and the people's rows.")] = Path(
        "dicoflex-demo"
    ),
    rows: Annotated[int, typer.Option(min=500, help="Rows of the Adult table to learn from.")] = 15_000,
    seconds: Annotated[float, typer.Option(min=1.0, help="Training time at most.")] = 40.0,
    seed: Annotated[int, typer.Option(help="The same seed picks and trains alike.")] = 0,
) -> None:
    """Explain three people that a classifier refused, on a shipped table."""
    from dicoflex import demo as tour

    tour.run(out, rows=rows, seconds=seconds, seed=seed)


@app.command()
@spread(table=TableFlags)
def schema(
    data: Rows,
    *,
    label: Annotated[str | None, typer.Option(help="Label column, which is no feature.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file to write, to edit and give to 'fit'.")
    ] = None,
    table: TableFlags,
) -> None:
    """Show what a table's columns are taken for; write it to edit."""
    if out is not None:
        check_folder(out)
    frame, described = training_rows(data, table, label=label)
    say_schema(described, Console())
    say_suggested(described, frame, Console())
    say_dependencies(*dependencies_in(frame[described.names], described), Console())
    if out is not None:
        write_text(out, described.to_json() + "\n")
        note(f"{counted(len(frame), 'row')} described; wrote {out}: edit it, then dicoflex fit ... --schema {out}")


@app.command()
@spread(table=TableFlags)
def fit(
    data: Rows,
    *,
    label: Annotated[
        str | None, typer.Option(help="Column with the answers that the classifier gave.", show_default=False)
    ] = None,
    proba: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="In place of --label: column with the probability of one outcome; ask with --target '>=0.5'.",
            show_default=False,
        ),
    ] = None,
    black_box: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar=CALLABLE,
            help="The classifier, from a Python module: a fitted model, or a function for probabilities.",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="labels|scores",
            help="What --label holds; needed for numbers with many values. Of scores, ask with --target '>=620'.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.", show_default=False)],
    schema_file: Annotated[
        Path | None, typer.Option("--schema", help="Schema as JSON, from 'dicoflex schema'.", show_default=False)
    ] = None,
    table: TableFlags,
    generator: Annotated[str, typer.Option(help="Density to learn: mixed, maf, nice, realnvp or kde.")] = "mixed",
    paper: Annotated[bool, typer.Option("--paper", help="The paper's model and settings, instead.")] = False,
    coherence: Annotated[
        bool | None,
        typer.Option(
            "--coherence/--no-coherence",
            help="Learn what goes together, so that answers are refined; by default, except for the paper's.",
            show_default=False,
        ),
    ] = None,
    marginals: Annotated[
        bool, typer.Option("--marginals/--no-marginals", help="Keep how many rows have what, for the explorer's page.")
    ] = True,
    max_seconds: Annotated[float | None, typer.Option(help="Training time at most.", show_default=False)] = None,
    remember_rows: Annotated[
        Path | None,
        typer.Option(
            metavar="KEYFILE",
            help="Remember the rows, for 'explain --novel', under the key in this file, which is made if absent.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Learn from rows and the labels that a classifier gave them."""
    check_folder(out)
    column = _outcome(label, proba, black_box)
    sampled = None if column is None else sampled_rows(data, label=column, drop=table.drop, seed=seed or 0)
    frame, described = training_rows(data, table, label=column, schema_file=schema_file, rows=sampled)
    outcome = None if column is None else frame[column]
    if proba is not None:
        check_probabilities(frame[proba], data)
    asked = {} if black_box is None else _named_model(black_box, has_labels=outcome is not None)
    if sampled is not None and not quiet:
        note(f"{data} has more rows than fit in one go; learning from {len(frame):,} of them, by label")
    from dicoflex.estimator import DiCoFlex

    options: dict[str, Any] = {
        "task": task if proba is None else "scores",
        "schema": described,
        "min_count": table.min_count,
        "max_seconds": max_seconds,
        "coherence": coherence,
        "marginals": marginals,
        "random_state": seed,
        "device": device,
        "verbose": False if quiet else None,
    }
    explainer = DiCoFlex.paper(**options) if paper else DiCoFlex(generator, **options)
    started = time.perf_counter()
    remembered = False if remember_rows is None else made_key(remember_rows)
    explainer.fit(frame[described.names], outcome, remember_rows=remembered, **asked)
    if column is not None:
        # Kept with the model, so that `explain` knows which column of a table with answers is no feature.
        explainer.model_ = explainer.model_.with_facts(label=column)
    explainer.save(out)
    if not quiet:
        say_fitted(explainer, outcome, n_rows=len(frame), out=out, seconds=time.perf_counter() - started)


def _outcome(label: str | None, proba: str | None, model: str | None) -> str | None:
    """The column with what was answered; None where a model says it."""
    if proba is not None and (label is not None or model is not None):
        raise SettingError("--proba goes in place of --label and --model; leave other columns out with --drop")
    if label is None and proba is None and model is None:
        raise SettingError(
            "what the classifier answered is missing; give --label COLUMN, --proba COLUMN or --model MODULE:NAME"
        )
    return label if proba is None else proba


def _named_model(text: str, *, has_labels: bool) -> dict[str, Any]:
    """The arguments of `fit` for a model from a module: a fitted one, or a function for probabilities."""
    found = named_object(text, "--model")
    if callable(getattr(found, "predict", None)):
        return {"model": found}
    if not has_labels:
        raise SettingError(
            f"--model {text!r} does not say what its columns are called; give --label COLUMN as well, or a fitted model"
        )
    return {"predict_proba": named_callable(text, "--model")}


@app.command()
@spread(flags=Flags, question=Question)
def explain(
    model: ModelFile,
    rows: Rows,
    *,
    target: Target = None,
    flags: Any,
    question: Any,
    row_key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Key file that 'fit --remember-rows' wrote.", show_default=False),
    ] = None,
    check: Annotated[
        str | None,
        typer.Option(
            metavar=CALLABLE,
            help="The classifier, from a Python module: a function of a frame, or a fitted model. It confirms answers.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write: .csv, .json, .html or .parquet.", show_default="the terminal"),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="With .csv: leave what a spreadsheet would take for a formula as it is."),
    ] = False,
    pictures: Annotated[bool, typer.Option("--pictures", help="With .html: a picture for each row.")] = False,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column that names the rows; no feature.", show_default=False)
    ] = None,
    drop: Drop = [],  # noqa: B006
    seed: Seed = None,
    verify: Annotated[
        bool,
        typer.Option(
            "--verify", help=f"Check every answer again, print the verdicts; exit code {BROKEN} if one fails."
        ),
    ] = False,
    trust: Annotated[
        Path | None, typer.Option(help="Public key; refuse a model that it did not sign.", show_default=False)
    ] = None,
) -> None:
    """Explain rows: what would have to be different for the target?"""
    ending = "" if out is None else ending_of(out, RESULT_ENDINGS)
    if out is not None:
        check_folder(out)
    from dicoflex.explainer import load

    explainer = load(model, trust=trust, row_key=None if row_key is None else read_key_file(row_key))
    asked = arguments_of(explainer.model_, target, flags, question)
    label = explainer.report_.get("label")
    queries = query_rows(rows, explainer.schema_, label=label, row_id=row_id, drop=drop)
    found = explainer.explain(
        queries,
        random_state=seed,
        check=None if check is None else named_callable(check, "--check"),
        **asked,
    )
    if out is None:
        Console().print(found)
    else:
        written = written_rows(rows) if ending == ".csv" else None
        _write_result(found, out, ending, pictures=pictures, raw=raw, written=written)
        note(f"wrote {counted(len(found), 'counterfactual')} for {counted(len(queries), 'row')} to {out}")
    say_shortfall(found, question.n)
    if verify and not say_verdicts(found, queries):
        raise typer.Exit(BROKEN)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run experiments and benchmarks from a source checkout: 'dicoflex bench all --quick', 'dicoflex bench speed'."""

    run(context.args)


@app.command()
def inspect(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="The whole header as JSON.")] = False,
    reveals: Annotated[
        bool, typer.Option("--reveals", help="All that the file says about people, and what is guaranteed of it.")
    ] = False,
    card: Annotated[bool, typer.Option("--card", help="A model card in Markdown.")] = False,
) -> None:
    """Show what a model file holds; the model is loaded for its card and for what it reveals alone."""
    from dicoflex.model_file import read_header

    if card:
        from dicoflex.audit import model_card
        from dicoflex.model import Model

        print(printable_lines(model_card(Model.load(model))), end="")
        return
    if reveals:
        from dicoflex.audit import reveals as all_revealed
        from dicoflex.model import Model

        say_reveals(all_revealed(Model.load(model)), model, as_json=as_json)
        return
    header = read_header(model)
    if as_json:
        print(printable_json(json.dumps(header, indent=2, ensure_ascii=False)))
        return
    say_header(header, model)


def _write_result(
    found: Counterfactuals, path: Path, ending: str, *, pictures: bool, raw: bool, written: pd.DataFrame | None
) -> None:
    if ending == ".csv":
        found.to_csv(path, raw=raw, written=written)
    elif ending == ".json":
        found.to_json(path)
    elif ending == ".html":
        found.to_html(path, pictures=pictures)
    else:
        write_parquet(found.table(), path)
