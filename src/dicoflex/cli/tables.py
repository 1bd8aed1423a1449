"""The tables that commands read, training rows with a schema and rows to explain, and the key of remembered rows."""

from __future__ import annotations

__all__ = [
    "TableFlags",
    "check_probabilities",
    "dependencies_in",
    "made_key",
    "query_rows",
    "read_key_file",
    "sampled_rows",
    "training_rows",
    "written_rows",
]

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicoflex.cli.constraint_flags import features
from dicoflex.cli.options import Drop, repeated
from dicoflex.errors import DataError, QueryError, SchemaError, SettingError, named
from dicoflex.table.files import TABLE_ENDINGS, ending_of, read, read_as, read_text, refuse_unnamed, without

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.table.schema import Schema


@dataclass(frozen=True)
class TableFlags:
    """What is said of the columns of a training table."""

    kind: Annotated[
        list[str],
        repeated(
            "--kind",
            "COLUMN=KIND",
            "What a column is: sector=categorical (or continuous, integer, ordinal, boolean).",
        ),
    ] = field(default_factory=list)
    order: Annotated[list[str], repeated("--order", "COLUMN=LEVELS", "Levels from lowest to highest: size=S,M,L.")] = (
        field(default_factory=list)
    )
    drop: Drop = field(default_factory=list)
    presets: Annotated[
        Path | None,
        typer.Option(
            "--constraints",
            help="Constraints as JSON that bind every call of 'explain' unless it overrides them.",
            show_default=False,
        ),
    ] = None
    suggest: Annotated[
        bool,
        typer.Option("--suggest", help="Take the constraints that the columns suggest, which 'schema' shows."),
    ] = False
    no_dependency: Annotated[
        list[str],
        repeated(
            "--no-dependency", "COLUMN", "Column that may change by itself though it follows from others in every row."
        ),
    ] = field(default_factory=list)
    min_count: Annotated[
        int,
        typer.Option(
            min=1, help="What fewer rows have is not told: rare levels and exact extremes. 1 tells all of it."
        ),
    ] = 5


def training_rows(
    path: Path,
    flags: TableFlags,
    *,
    label: str | None,
    schema_file: Path | None = None,
    rows: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, Schema]:
    """The rows of a training table, label included, and the schema of its features, inferred or from a file.

    rows: some of the file's rows without the columns to drop, where it is too large to be read as a whole.
    """
    from dicoflex.constraints import Constraints
    from dicoflex.table.schema import Schema

    if schema_file is not None and (flags.kind or flags.order or flags.suggest or flags.no_dependency):
        raise SettingError(
            "--schema goes without --kind, --order, --suggest and --no-dependency: say all of it in the schema file"
        )
    given = None if schema_file is None else Schema.from_json(schema_file)
    wanted = Constraints() if flags.presets is None else Constraints.load(flags.presets)
    kinds, orders = _assigned(flags.kind, "--kind"), _assigned(flags.order, "--order")
    if rows is None:
        text = [*(c for c, kind in kinds.items() if kind in ("categorical", "ordinal")), *orders]
        rows = read(path, text=text) if given is None else read_as(path, given)
        rows = without(rows, features(flags.drop, list(rows.columns)))
    table = _features_of(rows, path, label)
    if given is not None:
        _refuse_other_columns(table, given.names, path)
        return rows, given.with_constraints(given.constraints.merge(wanted))
    levels = {c: _levels(table, c, order) for c, order in orders.items()}
    free = features(flags.no_dependency, list(table.columns))
    described = Schema.infer(table, kinds=kinds, orders=levels, min_count=flags.min_count, independent=free)
    return rows, described.with_constraints(described.suggested(table).merge(wanted) if flags.suggest else wanted)


def dependencies_in(rows: pd.DataFrame, schema: Schema) -> tuple[list[Any], list[str]]:
    """What follows in all rows of a table but those with values that its schema does not name, and, in words, how."""
    from dicoflex.learning.dependencies import find_dependencies
    from dicoflex.table.encoding import Encoding
    from dicoflex.table.unseen import encode_frame

    encoding = Encoding.unit(schema)
    known = encode_frame(encoding, rows, lambda: encoding.mean)
    told = find_dependencies(schema, known.values[~known.has_unseen], min_count=schema.min_count).told(schema)
    return [name for name, _ in told], [text for _, text in told]


def _features_of(frame: pd.DataFrame, path: Path, label: str | None) -> pd.DataFrame:
    refuse_unnamed(frame, path)
    if label is None:
        return frame
    if label not in frame.columns:
        raise DataError(f"{path}: {named('label column', label, frame.columns)}")
    return frame.drop(columns=label)


def sampled_rows(path: Path, *, label: str, drop: Sequence[str], seed: int) -> pd.DataFrame | None:
    """Some rows of a Parquet file that has more than `fit` learns from, label included; None for any other file."""
    if ending_of(path, TABLE_ENDINGS) != ".parquet" or not path.is_file():
        return None
    from dicoflex.table import subsample

    if subsample.count_rows(path) <= subsample.MOST_ROWS:
        return None
    names = subsample.column_names(path)
    gone = {label, *features(drop, names)}
    X, y = subsample.sample_parquet(path, label, seed=seed, columns=[name for name in names if name not in gone])
    return X.assign(**{label: y})


def check_probabilities(column: pd.Series, path: Path) -> None:
    """Refuse a column that does not hold probabilities."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(column) or not column.between(0, 1).all():
        raise DataError(
            f"{path}: column {column.name!r} of --proba must hold numbers from 0 to 1 in every row; answers are given "
            f"with --label {column.name}"
        )


def query_rows(
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


def written_rows(path: Path) -> pd.DataFrame | None:
    """The cells of a CSV file as they are written, row by row; None for other files, which keep values and no text."""
    return None if ending_of(path, TABLE_ENDINGS) == ".parquet" else read_text(path)


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


def made_key(path: Path) -> bytes:
    """The key in the file `path`; where there is no such file, a fresh key is written to it."""
    from dicoflex.table.remembered import new_key

    if path.exists():
        return read_key_file(path)
    key = new_key()
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(key.hex() + "\n")
    except OSError as error:
        raise SettingError(f"{path} can't be written: {error.strerror}; give a file in a folder that exists") from None
    return key


def read_key_file(path: Path) -> bytes:
    """The key in the file `path`, 64 hexadecimal digits."""
    from dicoflex.table.remembered import read_key

    try:
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{path} can't be read as a key: {error}; give the file that 'fit' wrote") from None
    return read_key(text, f"the key in {path}")
