"""Tables in files: CSV and Parquet in and out, by a schema where there is one."""

from __future__ import annotations

__all__ = [
    "MISSING_WORDS",
    "TABLE_ENDINGS",
    "check_folder",
    "ending_of",
    "parquet_errors",
    "read",
    "read_as",
    "read_text",
    "refuse_unnamed",
    "without",
    "write_parquet",
]

import os
import warnings
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicoflex.errors import DataError, SettingError, UserError
from dicoflex.runtime.whole_files import replacing

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.table.schema import Schema

TABLE_ENDINGS = (".csv", ".csv.gz", ".parquet")
UNNAMED = "Unnamed: "
# What pandas takes for a missing value; a word that is a level of its column is that level instead.
MISSING_WORDS = frozenset(
    ("", "#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "-NaN", "-nan")
)


def read_as(path: Path, schema: Schema, *, text: Collection[str] = ()) -> pd.DataFrame:
    """A table with the columns of `schema`; its text levels are read as text, even where they look like numbers."""
    picked = {str(f.name): f.levels for f in schema.features if any(isinstance(v, str) for v in f.levels)}
    frame = read(path, text=[*text, *picked], levels=picked)
    if path.suffix != ".parquet":
        for name, levels in picked.items():
            if name in frame.columns and not all(isinstance(v, str) for v in levels):
                by_text = {str(v): v for v in levels}
                frame[name] = frame[name].astype(object).map(lambda v, known=by_text: known.get(v, v))
    # A file's column names are text; a model may have been fitted on numbered columns.
    return frame.rename(columns={str(name): name for name in schema.names if not isinstance(name, str)})


def read(path: Path, *, text: Collection[str] = (), levels: Mapping[str, Iterable[Any]] | None = None) -> pd.DataFrame:
    """The table in a file, by the file's ending."""
    import pandas as pd

    ending = ending_of(path, TABLE_ENDINGS)
    if not path.is_file():
        raise DataError(f"{path} is not there or is no file; check the path")
    if ending == ".parquet":
        with parquet_errors(path):
            return pd.read_parquet(path)
    with csv_errors(path):
        return _read_csv(path, text=text, levels=levels or {})


def read_text(path: Path) -> pd.DataFrame:
    """The cells of a CSV file as they are written."""
    import pandas as pd

    with csv_errors(path):
        return pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False, encoding="utf-8-sig")


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """Turn what pandas and the decompression say of a file into errors with a remedy."""
    import pandas as pd

    try:
        yield
    except pd.errors.ParserWarning:
        raise DataError(f"{path}: rows have more cells than the header has names; give every column a name") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        reason = str(error).strip() or type(error).__name__
        raise DataError(f"{path} can't be read as CSV ({reason}); save it as UTF-8 with a header line") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} can't be read ({error}); it is damaged, or not what its ending says") from None


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


@contextmanager
def parquet_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what pyarrow says of a missing or damaged file, or its own absence, into errors with a remedy."""
    try:
        yield
    except ImportError:
        raise SettingError(f"{path}: Parquet needs pyarrow; pip install 'dicoflex[parquet]', or use .csv") from None
    except UserError:
        raise
    except FileNotFoundError:
        raise DataError(f"{path} is not there or is no file; check the path") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(f"{path}: Parquet failed ({error}); check the file, or use .csv") from None


def without(frame: pd.DataFrame, names: Sequence[Any]) -> pd.DataFrame:
    return frame.drop(columns=list(names))


def refuse_unnamed(frame: pd.DataFrame, path: Path) -> None:
    """A column without a name is mostly a row number that someone saved along; nothing is to be learned from it."""
    unnamed = [c for c in frame.columns if str(c).startswith(UNNAMED)]
    if unnamed:
        remedy = f"name it in the header, or leave it out with --drop '{unnamed[0]}'"
        raise DataError(f"{path}: a column has no name; {remedy}")


def ending_of(path: Path, known: Sequence[str]) -> str:
    """Which of the known endings a file has."""
    for ending in sorted(known, key=len, reverse=True):
        if path.name.lower().endswith(ending):
            return ending
    raise SettingError(f"{path}: the file ending says what it holds; use {', '.join(known[:-1])} or {known[-1]}")


def check_folder(path: Path) -> None:
    """Refuse a place that can't be written to before any work is done."""
    if path.is_dir():
        raise SettingError(f"can't write {path}: it is a folder; give a file's name")
    if not path.parent.is_dir():
        raise SettingError(f"can't write {path}: the folder {path.parent} is not there; make it first")


def write_parquet(table: pd.DataFrame, path: Path) -> None:
    """Write a table with its index and dtypes; its column names become text."""
    with parquet_errors(path), replacing(path) as draft:
        table.rename(columns=str).to_parquet(draft)
