"""The commands."""

from __future__ import annotations

__all__ = ["app", "schema"]

import json
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from dicoflex.cli.constraint_flags import Flags, constraints, features, matches
from dicoflex.errors import DataError, QueryError, SchemaError, SettingError, named
from dicoflex.runtime.whole_files import write_text

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.answers.counterfactuals import Counterfactuals
    from dicoflex.constraints import Constraints
    from dicoflex.table.schema import Schema

from dicoflex.cli.messages import counted, note, say_fitted, say_header, say_schema, say_shortfall, say_verdicts
from dicoflex.cli.row_keys import made_key, read_key_file
from dicoflex.table.files import (
    TABLE_ENDINGS,
    check_folder,
    ending_of,
    read,
    read_as,
    refuse_unnamed,
    with_parquet,
    without,
    write_parquet,
)

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


def _words(flag: str, metavar: str, help: str) -> Any:
    """An option that may be given several times."""
    return typer.Option(flag, metavar=metavar, help=f"{help} May be repeated.", show_default=False)


Rows = Annotated[Path, typer.Argument(help="Table of rows: .csv, .csv.gz or .parquet.", show_default=False)]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by 'fit' or save().", show_default=False)]
Drop = Annotated[list[str], _words("--drop", "NAMES", "Columns to leave out: id,name.")]
Kinds = Annotated[
    list[str],
    _words(
        "--kind",
        "COLUMN=KIND",
        "What a column is: sector=categorical (or continuous, integer, ordinal, boolean).",
    ),
]
Orders = Annotated[list[str], _words("--order", "COLUMN=LEVELS", "Levels from lowest to highest: size=S,M,L.")]
Presets = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        help="Constraints as JSON that bind every call of 'explain' unless it overrides them.",
        show_default=False,
    ),
]
Seed = Annotated[int | None, typer.Option(help="The same seed gives the same result.", show_default=False)]


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
def schema(
    data: Rows,
    label: Annotated[str | None, typer.Option(help="Label column, which is no feature.", show_default=False)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="JSON file to write, to edit and give to 'fit'.")
    ] = None,
    kind: Kinds = [],  # noqa: B006
    order: Orders = [],  # noqa: B006
    drop: Drop = [],  # noqa: B006
    presets: Presets = None,
) -> None:
    """Show what a table's columns are taken for; write it to edit."""
    if out is not None:
        check_folder(out)
    frame, described = _training_rows(data, label=label, drop=drop, kinds=kind, orders=order, presets=presets)
    say_schema(described, Console())
    if out is not None:
        write_text(out, described.to_json() + "\n")
        note(f"{counted(len(frame), 'row')} described; wrote {out}: edit it, then dicoflex fit ... --schema {out}")


@app.command()
def fit(
    data: Rows,
    label: Annotated[str, typer.Option(help="Column with the answers that the classifier gave.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="Model file to write.", show_default=False)],
    schema_file: Annotated[
        Path | None, typer.Option("--schema", help="Schema as JSON, from 'dicoflex schema'.", show_default=False)
    ] = None,
    kind: Kinds = [],  # noqa: B006
    order: Orders = [],  # noqa: B006
    drop: Drop = [],  # noqa: B006
    presets: Presets = None,
    generator: Annotated[str, typer.Option(help="Density to learn: mixed, maf, nice, realnvp or kde.")] = "mixed",
    paper: Annotated[bool, typer.Option("--paper", help="The paper's model and settings, instead.")] = False,
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
    sampled = _sample(data, label=label, drop=drop, seed=seed or 0)
    frame, described = _training_rows(
        data, label=label, drop=drop, kinds=kind, orders=order, schema_file=schema_file, presets=presets, rows=sampled
    )
    if sampled is not None and not quiet:
        note(f"{data} has more rows than fit in one go; learning from {len(frame):,} of them, by label")
    from dicoflex.explainer import DiCoFlex

    options: dict[str, Any] = {
        "schema": described,
        "max_seconds": max_seconds,
        "random_state": seed,
        "device": device,
        "verbose": False if quiet else None,
    }
    explainer = DiCoFlex.paper(**options) if paper else DiCoFlex(generator, **options)
    started = time.perf_counter()
    remembered = False if remember_rows is None else made_key(remember_rows)
    explainer.fit(frame[described.names], frame[label], remember_rows=remembered)
    # Kept with the model, so that `explain` knows which column of a table with answers is no feature.
    explainer.report_["label"] = label
    explainer.save(out)
    if not quiet:
        say_fitted(explainer, frame[label], data=data, out=out, seconds=time.perf_counter() - started)


@app.command()
def explain(
    model: ModelFile,
    rows: Rows,
    target: Annotated[
        str | None, typer.Option(help="Label asked for.", show_default="of two classes, the other")
    ] = None,
    n: Annotated[int, typer.Option("--n", "-n", help="Counterfactuals for each row.")] = 5,
    p: Annotated[
        float | None,
        typer.Option(
            "--p",
            "-p",
            help="Sparsity: 2 for close, 0.01 for few changes.",
            show_default="2; the least with --max-changes",
        ),
    ] = None,
    freeze: Annotated[list[str], _words("--freeze", "NAMES", "Features that may not change: age,sex.")] = [],  # noqa: B006
    constraints_file: Annotated[
        Path | None,
        typer.Option("--constraints", help="Constraints as JSON; the flags below add to them.", show_default=False),
    ] = None,
    increase: Annotated[list[str], _words("--increase", "NAMES", "Features that may only go up.")] = [],  # noqa: B006
    decrease: Annotated[list[str], _words("--decrease", "NAMES", "Features that may only go down.")] = [],  # noqa: B006
    ranges: Annotated[
        list[str],
        _words(
            "--range",
            "FEATURE=LOW:HIGH",
            "Limits of a value, hours=20:50, or of its change, income=-10%:+25% or age=+0:+5. An end may be left open.",
        ),
    ] = [],  # noqa: B006
    allow: Annotated[
        list[str], _words("--allow", "FEATURE=VALUES", "Values that a feature may change to: housing=own,rent.")
    ] = [],  # noqa: B006
    forbid: Annotated[list[str], _words("--forbid", "FEATURE=VALUES", "Values that a feature may not change to.")] = [],  # noqa: B006
    transition: Annotated[
        list[str], _words("--transition", "FEATURE=FROM>TO", "Where a value may go: degree=Master>PhD.")
    ] = [],  # noqa: B006
    max_changes: Annotated[int | None, typer.Option(help="How many features may change.", show_default=False)] = None,
    rule: Annotated[list[str], _words("--rule", "RULE", "Condition that every answer meets: 'rent <= income'.")] = [],  # noqa: B006
    step: Annotated[
        list[str], _words("--step", "FEATURE=STEP", "A changed number is a multiple of this: loan=500.")
    ] = [],  # noqa: B006
    cost: Annotated[
        list[str], _words("--cost", "FEATURE=COST", "What a change costs: move=5, or hours=0.5/unit.")
    ] = [],  # noqa: B006
    max_cost: Annotated[
        float | None, typer.Option(help="How much all changes together may cost.", show_default=False)
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Ranges and lists of values also bind what does not change.")
    ] = False,
    override: Annotated[
        list[str],
        _words("--override", "NAMES", "The model's own constraints to lift: age, increase:age or max_changes."),
    ] = [],  # noqa: B006
    confidence: Annotated[
        float | None, typer.Option(help="How sure the classifier should be.", show_default="as trained")
    ] = None,
    novel: Annotated[
        bool,
        typer.Option("--novel", help="No copy of a training row; needs --row-key and a model that knows them."),
    ] = False,
    row_key: Annotated[
        Path | None,
        typer.Option(metavar="KEYFILE", help="Key file that 'fit --remember-rows' wrote.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write: .csv, .json, .html or .parquet.", show_default="the terminal"),
    ] = None,
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
) -> None:
    """Explain rows: what would have to be different for the target?"""
    ending = "" if out is None else ending_of(out, RESULT_ENDINGS)
    if out is not None:
        check_folder(out)
    from dicoflex.explainer import load

    explainer = load(model, row_key=None if row_key is None else read_key_file(row_key))
    flags = Flags(
        frozen=freeze,
        increase=increase,
        decrease=decrease,
        ranges=ranges,
        allowed=allow,
        forbidden=forbid,
        transitions=transition,
        max_changes=max_changes,
        rules=rule,
        steps=step,
        cost=cost,
        max_cost=max_cost,
        strict=strict,
        override=override,
    )
    wanted = constraints(flags, explainer.schema_, constraints_file)
    label = explainer.report_.get("label")
    queries = _query_rows(rows, explainer.schema_, label=label, row_id=row_id, drop=drop)
    found = explainer.explain(
        queries,
        target=None if target is None else _class_named(target, explainer.classes_),
        n=n,
        p=p,
        constraints=wanted,
        confidence=confidence,
        novel=novel,
        random_state=seed,
    )
    if out is None:
        Console().print(found)
    else:
        _write_result(found, out, ending, pictures=pictures)
        note(f"wrote {counted(len(found), 'counterfactual')} for {counted(len(queries), 'row')} to {out}")
    say_shortfall(found, n)
    if verify and not say_verdicts(found):
        raise typer.Exit(BROKEN)


@app.command(add_help_option=False, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run experiments and benchmarks from a source checkout: 'dicoflex bench all --quick', 'dicoflex bench speed'."""
    from dicoflex.cli import benchmarks as experiments

    experiments.run(context.args)


@app.command()
def inspect(
    model: ModelFile,
    as_json: Annotated[bool, typer.Option("--json", help="The whole header as JSON.")] = False,
) -> None:
    """Show what a model file holds, without loading the model."""
    from dicoflex.model_file import read_header

    header = read_header(model)
    if as_json:
        print(json.dumps(header, indent=2, ensure_ascii=False))
        return
    say_header(header, model)


def _training_rows(
    path: Path,
    *,
    label: str | None,
    drop: Sequence[str],
    kinds: Sequence[str],
    orders: Sequence[str],
    schema_file: Path | None = None,
    presets: Path | None = None,
    rows: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, Schema]:
    """The rows of a training table, label included, and the schema of its features, inferred or from a file.

    rows: some of the file's rows without the columns in `drop`, where it is too large to be read as a whole.
    """
    from dicoflex.table.schema import Schema

    if schema_file is not None and (kinds or orders):
        raise SettingError("--schema goes without --kind and --order: say all of it in the schema file")
    given = None if schema_file is None else Schema.from_json(schema_file)
    wanted = _preset(presets)
    chosen, ordered = _assigned(kinds, "--kind"), _assigned(orders, "--order")
    text = [*(c for c, kind in chosen.items() if kind in ("categorical", "ordinal")), *ordered]
    frame = rows
    if frame is None:
        frame = read(path, text=text) if given is None else read_as(path, given)
        frame = without(frame, features(drop, list(frame.columns)))
    refuse_unnamed(frame, path)
    if label is not None and label not in frame.columns:
        raise DataError(f"{path}: {named('label column', label, frame.columns)}")
    table = frame if label is None else frame.drop(columns=label)
    if given is not None:
        _refuse_other_columns(table, given.names, path)
        return frame, given.with_constraints(given.constraints.merge(wanted))
    levels = {c: _levels(table, c, order) for c, order in ordered.items()}
    return frame, Schema.infer(table, kinds=chosen, orders=levels).with_constraints(wanted)


def _sample(path: Path, *, label: str, drop: Sequence[str], seed: int) -> pd.DataFrame | None:
    """Some rows of a Parquet file that has more than `fit` learns from, label included; None for any other file."""
    if ending_of(path, TABLE_ENDINGS) != ".parquet" or not path.is_file():
        return None
    from dicoflex.table import subsample as streaming

    if streaming.count_rows(path) <= streaming.MOST_ROWS:
        return None
    names = streaming.column_names(path)
    gone = {label, *features(drop, names)}
    X, y = streaming.sample_parquet(path, label, seed=seed, columns=[name for name in names if name not in gone])
    return X.assign(**{label: y})


def _preset(path: Path | None) -> Constraints:
    from dicoflex.constraints import Constraints

    return Constraints() if path is None else Constraints.load(path)


def _query_rows(
    path: Path, schema: Schema, *, label: str | None, row_id: str | None, drop: Sequence[str]
) -> pd.DataFrame:
    """The rows to explain with the model's columns; `row_id` becomes the index, the training label is left out."""
    frame = read_as(path, schema, text=[] if row_id is None else [row_id])
    if row_id is not None:
        if row_id not in frame.columns:
            raise QueryError(f"{path}: {named('id column', row_id, frame.columns)}")
        frame = frame.set_index(row_id)
    frame = without(frame, features(drop, list(frame.columns)))
    if label is not None and label not in schema.names and label in frame.columns:
        frame = frame.drop(columns=label)
    _refuse_other_columns(frame, schema.names, path)
    return frame[schema.names]


def _refuse_other_columns(frame: pd.DataFrame, known: Sequence[Any], path: Path) -> None:
    lacking = [name for name in known if name not in frame.columns]
    if lacking:
        raise QueryError(f"{path} lacks the column {lacking[0]!r}; needed are {', '.join(map(str, known))}")
    extra = [name for name in frame.columns if name not in known]
    if extra:
        listed = ", ".join(map(str, extra))
        raise QueryError(f"{path} has columns that are no features: {listed}; leave them out with --drop '{listed}'")


def _levels(frame: pd.DataFrame, column: str, order: str) -> list[Any]:
    """The levels of an --order, as the column holds them."""
    from dicoflex.table.inference import distinct

    if column not in frame.columns:
        raise SchemaError(named("column", column, frame.columns))
    seen = {str(value): value for value in distinct(frame[column])}
    return [seen.get(level.strip(), level.strip()) for level in order.split(",")]


def _assigned(pairs: Sequence[str], option: str) -> dict[str, str]:
    """`column=value` words as a dict.

    >>> _assigned(["sector=categorical"], "--kind")
    {'sector': 'categorical'}
    """
    assigned = {}
    for pair in pairs:
        column, sign, value = pair.rpartition("=") if option == "--kind" else pair.partition("=")
        if not (sign and column and value):
            raise SettingError(f"{option} {pair!r} must read column=value, as in {option} sector=...")
        assigned[column] = value
    return assigned


def _class_named(text: str, classes: Iterable[Any]) -> Any:
    """The class that a word means: by its text, or as the same number.

    >>> _class_named("1", [0, 1]), _class_named("1", [0.0, 1.0]), _class_named("yes", ["no", "yes"])
    (1, 1.0, 'yes')
    """
    plain = [label.item() if hasattr(label, "item") else label for label in classes]
    found = matches(text, plain)
    if not found:
        raise QueryError(named("target", text, plain))
    return found[0]


def _write_result(found: Counterfactuals, path: Path, ending: str, *, pictures: bool) -> None:
    if ending == ".csv":
        found.to_csv(path)
    elif ending == ".json":
        found.to_json(path)
    elif ending == ".html":
        found.to_html(path, pictures=pictures)
    else:
        with_parquet(path, lambda: write_parquet(found.table(), path))
