"""The command line: demo, schema, fit, explain, inspect.

Heavy libraries are imported inside the commands, so that `--help` and `inspect` answer at once.
"""

from __future__ import annotations

__all__ = ["app", "main"]

import json
import shlex
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from dicoflex.cli.constraint_flags import Flags, constraints, features, matches
from dicoflex.errors import DataError, ModelFileError, QueryError, SchemaError, SettingError, UserError, named
from dicoflex.runtime.whole_files import replacing, write_text

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from dicoflex.answers.counterfactuals import Counterfactuals
    from dicoflex.constraints import Constraints
    from dicoflex.explainer import DiCoFlex
    from dicoflex.table.schema import Schema

TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet")
RESULT_ENDINGS = (".csv", ".json", ".html", ".parquet")
UNNAMED = "Unnamed: "
# What pandas takes for a missing value; a word that is a level of its column is that level instead.
MISSING_WORDS = frozenset(
    ("", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "-NaN", "-nan")
)
INTERRUPTED = 130
BROKEN = 4
MOST_REASONS = 3

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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; what the caller can mend is told in one line.

    >>> main(["--version"])
    dicoflex ...
    0
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        app(args=arguments, prog_name="dicoflex")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        return _complain("interrupted", code) if code == INTERRUPTED else code
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except UserError as error:
        return _complain(f"error: {error}", error.exit_code, debug="--debug" in arguments)
    except Exception as error:
        hint = "this is a bug: 'dicoflex --debug ...' shows where"
        return _complain(f"error: {type(error).__name__}: {error}; {hint}", 1, debug="--debug" in arguments)
    return 0


def _complain(message: str, code: int, *, debug: bool = False) -> int:
    if debug:
        traceback.print_exc()
    print(message, file=sys.stderr)
    return code


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


# Commands


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
        _check_folder(out)
    frame, described = _training_rows(data, label=label, drop=drop, kinds=kind, orders=order, presets=presets)
    _say_schema(described, Console())
    if out is not None:
        write_text(out, described.to_json() + "\n")
        _note(f"{_counted(len(frame), 'row')} described; wrote {out}: edit it, then dicoflex fit ... --schema {out}")


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
    seed: Seed = None,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")] = False,
) -> None:
    """Learn from rows and the labels that a classifier gave them."""
    _check_folder(out)
    sampled = _sample(data, label=label, drop=drop, seed=seed or 0)
    frame, described = _training_rows(
        data, label=label, drop=drop, kinds=kind, orders=order, schema_file=schema_file, presets=presets, rows=sampled
    )
    if sampled is not None and not quiet:
        _note(f"{data} has more rows than fit in one go; learning from {len(frame):,} of them, by label")
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
    explainer.fit(frame[described.names], frame[label])
    # Kept with the model, so that `explain` knows which column of a table with answers is no feature.
    explainer.report_["label"] = label
    explainer.save(out)
    if not quiet:
        _say_fitted(explainer, frame[label], data=data, out=out, seconds=time.perf_counter() - started)


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
    ending = "" if out is None else _ending(out, RESULT_ENDINGS)
    if out is not None:
        _check_folder(out)
    from dicoflex.explainer import load

    explainer = load(model)
    flags = Flags(
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
        frozen=features(freeze, explainer.schema_.names, "--freeze"),
        constraints=wanted,
        confidence=confidence,
        random_state=seed,
    )
    if out is None:
        Console().print(found)
    else:
        _write_result(found, out, ending, pictures=pictures)
        _note(f"wrote {_counted(len(found), 'counterfactual')} for {_counted(len(queries), 'row')} to {out}")
    _say_shortfall(found, n)
    if verify and not _say_verdicts(found):
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
    _say_header(header, model)


# Tables


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
        frame = _read(path, text=text) if given is None else _read_as(path, given)
        frame = _without(frame, features(drop, list(frame.columns)))
    _refuse_unnamed(frame, path)
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
    if _ending(path, TABLE_ENDINGS) != ".parquet" or not path.is_file():
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
    frame = _read_as(path, schema, text=[] if row_id is None else [row_id])
    if row_id is not None:
        if row_id not in frame.columns:
            raise QueryError(f"{path}: {named('id column', row_id, frame.columns)}")
        frame = frame.set_index(row_id)
    frame = _without(frame, features(drop, list(frame.columns)))
    if label is not None and label not in schema.names and label in frame.columns:
        frame = frame.drop(columns=label)
    _refuse_other_columns(frame, schema.names, path)
    return frame[schema.names]


def _read_as(path: Path, schema: Schema, *, text: Collection[str] = ()) -> pd.DataFrame:
    """A table with the columns of `schema`; its text levels are read as text, even where they look like numbers."""
    picked = {str(f.name): f.levels for f in schema.features if any(isinstance(v, str) for v in f.levels)}
    frame = _read(path, text=[*text, *picked], levels=picked)
    if path.suffix != ".parquet":
        for name, levels in picked.items():
            if name in frame.columns and not all(isinstance(v, str) for v in levels):
                by_text = {str(v): v for v in levels}
                frame[name] = frame[name].astype(object).map(lambda v, known=by_text: known.get(v, v))
    # A file's column names are text; a model may have been fitted on numbered columns.
    return frame.rename(columns={str(name): name for name in schema.names if not isinstance(name, str)})


def _read(path: Path, *, text: Collection[str] = (), levels: Mapping[str, Iterable[Any]] | None = None) -> pd.DataFrame:
    """The table in a file, by the file's ending."""
    import pandas as pd

    ending = _ending(path, TABLE_ENDINGS)
    if not path.is_file():
        raise DataError(f"{path} is not there or is no file; check the path")
    if ending == ".parquet":
        frame: pd.DataFrame = _with_parquet(path, lambda: pd.read_parquet(path))
        return frame
    try:
        return _read_csv(path, text=text, levels=levels or {})
    except pd.errors.ParserWarning:
        raise DataError(f"{path}: rows have more cells than the header has names; give every column a name") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).strip() or type(error).__name__
        raise DataError(f"{path} can't be read as CSV ({reason}); save it as UTF-8 with a header line") from None


def _read_csv(path: Path, *, text: Collection[str], levels: Mapping[str, Iterable[Any]]) -> pd.DataFrame:
    import pandas as pd

    head = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, encoding="utf-8-sig").iloc[0]
    names = [name or f"{UNNAMED}{i}" for i, name in enumerate(head)]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"{path}: column names repeat: {repeated}; rename them so that each is unique")
    with warnings.catch_warnings():
        # Rows with more cells than names would lose their last cells with no more than this warning.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return pd.read_csv(
            path,
            dtype=dict.fromkeys(set(text) & set(names), str),
            keep_default_na=False,
            na_values={name: sorted(MISSING_WORDS - set(map(str, levels.get(name, ())))) for name in names},
            index_col=False,
            low_memory=False,
            encoding="utf-8-sig",
        )


def _with_parquet(path: Path, action: Callable[[], Any]) -> Any:
    """What `action` returns; a missing or failing pyarrow becomes an error with the remedy."""
    try:
        return action()
    except ImportError:
        raise SettingError(f"{path}: Parquet needs pyarrow; pip install 'dicoflex[parquet]', or use .csv") from None
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: Parquet failed ({error}); check the file, or use .csv") from None


def _without(frame: pd.DataFrame, names: Sequence[Any]) -> pd.DataFrame:
    return frame.drop(columns=list(names))


def _refuse_unnamed(frame: pd.DataFrame, path: Path) -> None:
    """A column without a name is mostly a row number that someone saved along; nothing is to be learned from it."""
    unnamed = [c for c in frame.columns if str(c).startswith(UNNAMED)]
    if unnamed:
        remedy = f"name it in the header, or leave it out with --drop '{unnamed[0]}'"
        raise DataError(f"{path}: a column has no name; {remedy}")


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
    from dicoflex.table.schema import distinct

    if column not in frame.columns:
        raise SchemaError(named("column", column, frame.columns))
    seen = {str(value): value for value in distinct(frame[column])}
    return [seen.get(level.strip(), level.strip()) for level in order.split(",")]


# Words on the command line


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


def _ending(path: Path, known: Sequence[str]) -> str:
    """Which of the known endings a file has."""
    for ending in sorted(known, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return ending
    raise SettingError(f"{path}: the file ending says what it holds; use {', '.join(known[:-1])} or {known[-1]}")


# Files


def _check_folder(path: Path) -> None:
    """Refuse a place that can't be written to before any work is done."""
    if path.is_dir():
        raise SettingError(f"can't write {path}: it is a folder; give a file's name")
    if not path.parent.is_dir():
        raise SettingError(f"can't write {path}: the folder {path.parent} is not there; make it first")


def _write_result(found: Counterfactuals, path: Path, ending: str, *, pictures: bool) -> None:
    if ending == ".csv":
        found.to_csv(path)
    elif ending == ".json":
        found.to_json(path)
    elif ending == ".html":
        found.to_html(path, pictures=pictures)
    else:
        _with_parquet(path, lambda: _write_parquet(found, path))


def _write_parquet(found: Counterfactuals, path: Path) -> None:
    """The table that `to_csv` writes, with its dtypes."""
    import pandas as pd

    taken = set(found.frame.columns)
    info = found.info.rename(columns={name: f"info_{name}" for name in found.info.columns if name in taken})
    table = pd.concat([found.frame, info], axis=1).rename(columns=str)
    with replacing(path) as draft:
        table.to_parquet(draft)


# What is said


def _note(message: str) -> None:
    """A line beside the result, so that the result alone can be piped on."""
    print(message, file=sys.stderr)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _say_shortfall(found: Counterfactuals, n: int) -> None:
    short = found.shortfall
    if len(short):
        reasons = list(dict.fromkeys(map(str, short["reason"])))
        _note(f"{_counted(len(short), 'row')} got fewer than {n}: {'; '.join(reasons[:MOST_REASONS])}")
        if len(reasons) > MOST_REASONS:
            _note(f"and {_counted(len(reasons) - MOST_REASONS, 'other reason')}; --out found.json lists them by row")


def _say_verdicts(found: Counterfactuals) -> bool:
    """Print how many answers obey each constraint, beside the result; whether all do."""
    verdicts = found.verify()
    table = _table("constraint", "answers", "obey", "break")
    for constraint, holds in verdicts.groupby("constraint", sort=False)["holds"]:
        table.add_row(Text(str(constraint)), *(str(n) for n in (len(holds), holds.sum(), (~holds).sum())))
    if len(verdicts):
        Console(stderr=True).print(table)
    broken = verdicts[~verdicts["holds"]]
    _note(f"verified {_counted(len(found), 'counterfactual')}: {_counted(len(broken), 'violation')}")
    for row, cf, constraint in broken[["row", "cf", "constraint"]].itertuples(index=False):
        _note(f"row {row!r}, counterfactual {cf}: {constraint} does not hold")
    return broken.empty


def _say_fitted(explainer: DiCoFlex, labels: pd.Series, *, data: Path, out: Path, seconds: float) -> None:
    counts = ", ".join(f"{label}: {count:,}" for label, count in labels.value_counts().items())
    _note(f"learned from {_counted(len(labels), 'row')} ({counts}) in {seconds:.0f} s")
    _note(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB); next:")
    words = ["dicoflex", "explain", out, data, "--target", explainer.classes_[-1], "--out", "counterfactuals.html"]
    _note(f"  {shlex.join(map(str, words))}")


def _say_header(header: Mapping[str, Any], path: Path) -> None:
    """The facts of a model file, and its schema, as two tables."""
    from dicoflex.table.schema import Schema

    try:
        facts = _facts(header)
        described = Schema.from_json(json.dumps(header["encoding"]["schema"]))
    except (KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path}: the header does not describe a model ({error}); save the model again") from None
    console = Console()
    table = _table("", "")
    table.show_header = False
    for name, value in {"file": str(path), **facts}.items():
        table.add_row(Text(name, style="dim"), Text(value))
    console.print(table)
    console.print()
    _say_schema(described, console)


def _facts(header: Mapping[str, Any]) -> dict[str, str]:
    """What the header says besides the schema, in words; facts that a model does not have are left out."""
    known = header["report"]
    exponents = sorted(header["exponents"])
    facts = {
        "fingerprint": header["fingerprint"],
        "generator": header["generator"],
        "classes": ", ".join(map(str, header["classes"])),
        "label column": known.get("label"),
        "sparsity p": f"{exponents[0]:g} to {exponents[-1]:g}",
        "confidence": _confidence_text(known.get("confidence")),
        "learned from": f"{known['rows']:,} rows, {known['pairs']:,} pairs, in {known['seconds']:.0f} s",
        "training ended": known.get("training_ended"),
        "held-out loss": "" if known["held_out_loss"] is None else f"{known['held_out_loss']:.3f}",
        "stand-in": f"{header['stand_in']}, agrees with the classifier on {known['stand_in_agreement']:.1%}",
        "classifier asked": f"{known['black_box_rows']:,} rows in {_counted(known['black_box_calls'], 'call')}",
    }
    return {name: str(value) for name, value in facts.items() if value}


def _confidence_text(known: Mapping[str, Mapping[str, float]] | None) -> str:
    texts = [f"{label}: {own['default']:g}, at most {own['highest']:g}" for label, own in (known or {}).items()]
    return "; ".join(texts) or "learned from labels alone, can't be asked for"


def _say_schema(described: Schema, console: Console) -> None:
    """The features, and the constraints that bind every call, as two tables."""
    table = _table("feature", "kind", "dtype", "values")
    for feature in described.features:
        table.add_row(Text(str(feature.name)), feature.kind.value, feature.dtype, Text(feature.values_text()))
    console.print(table)
    if described.constraints.is_empty:
        return
    table = _table("constraint of every call", "to lift it")
    for single in described.constraints.singles():
        about = single.label.removeprefix("rule ") if single.kind == "rules" else single.feature
        entry = single.kind if about is None else f"{single.kind}:{about}"
        table.add_row(Text(single.text), Text(f"--override {shlex.quote(entry)}"))
    console.print()
    console.print(table)


def _table(*columns: str) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
