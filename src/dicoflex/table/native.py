"""Frames of other libraries: read as pandas at the door, and made again of what is given back."""

from __future__ import annotations

__all__ = ["PANDAS", "Frame", "Native", "as_column", "as_pandas", "read_frame", "refused_kind", "remedy"]

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.errors import DataError, SettingError
from dicoflex.runtime.extras import extra

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    Frame = pd.DataFrame | IntoFrame | Mapping[Any, Any] | NDArray[Any]
else:
    Frame = Any
REMEDIES = {
    "decimal": {
        "pandas": "X[{name!r}].astype(float)",
        "polars": "pl.col({name!r}).cast(pl.Float64)",
        "pyarrow": "X[{name!r}].cast('float64')",
        "objects": "X[{name!r}].astype(float)",
    },
    "date": {
        "pandas": "X[{name!r}].dt.year",
        "polars": "pl.col({name!r}).dt.year()",
        "pyarrow": "pc.year(X[{name!r}])",
        "objects": "pd.to_datetime(X[{name!r}]).dt.year",
    },
    "time": {
        "pandas": "X[{name!r}].map(lambda time: time.hour)",
        "polars": "pl.col({name!r}).dt.hour()",
        "pyarrow": "pc.hour(X[{name!r}])",
        "objects": "X[{name!r}].map(lambda time: time.hour)",
    },
    "duration": {
        "pandas": "X[{name!r}].dt.total_seconds()",
        "polars": "pl.col({name!r}).dt.total_seconds()",
        "pyarrow": "X[{name!r}].cast('int64')",
        "objects": "pd.to_timedelta(X[{name!r}]).dt.total_seconds()",
    },
}
"""By kind of values that no feature can have, and library: the expression that makes numbers of a column."""


def remedy(what: str, name: Any, library: str = "pandas") -> str:
    """The end of a message that refuses a column of decimals, dates, times or durations.

    >>> remedy("decimal", "fee")
    "convert it with X['fee'].astype(float)"
    """
    ways = REMEDIES[what]
    way = ways.get(library, ways["pandas"]).format(name=name)
    if what == "decimal":
        return f"convert it with {way}"
    return f"turn it into numbers, such as {way}, or drop it"


@dataclass(frozen=True)
class Native:
    """A library's kind of frame, as a caller gave one.

    library: "pandas", "polars", "pyarrow" or another one that narwhals knows; "dict" of a dict of columns; "numpy".
    is_lazy: whether the frame was still to be computed. types: by column, the Arrow type that it had. dtype: of the
    values of an array, or of a dict's columns where they are arrays.

    >>> frame, native = read_frame({"age": [31, 52], "job": ["cook", None]})
    >>> native.of(frame)
    {'age': [31, 52], 'job': ['cook', None]}
    """

    library: str = "pandas"
    is_lazy: bool = False
    types: Mapping[str, Any] = field(default_factory=dict)
    dtype: Any = None

    @property
    def has_names(self) -> bool:
        """Whether frames of this kind have named columns and no index."""
        return self.library not in ("pandas", "numpy")

    def of(self, frame: pd.DataFrame) -> Any:
        """A pandas frame as a frame of this kind, without its index; where pandas was given, it stays as it is."""
        if self.library == "pandas":
            return frame
        if self.library == "numpy":
            return frame.to_numpy(dtype=self.dtype)
        if self.library == "dict":
            return {name: _plain_column(frame[name], as_array=self.dtype is not None) for name in frame.columns}
        import narwhals as nw
        import pyarrow as pa

        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
        for i, entry in enumerate(table.schema):
            if (wanted := self.types.get(entry.name, entry.type)) != entry.type:
                try:
                    table = table.set_column(i, entry.name, table.column(i).cast(wanted))
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                    continue  # the answer has a value that the rows' type can't hold
        made = nw.from_arrow(table, backend=self.library)  # type: ignore[arg-type]
        if self.library == "polars":
            made = made.with_columns(*_enums(frame))
        return made.lazy().to_native() if self.is_lazy else made.to_native()

    def calling(self, function: Any) -> Any:
        """A model's callable that is given pandas frames, and itself gets frames of this kind."""
        if self.library == "pandas" or not callable(function):
            return function
        called: Callable[[Any], Any] = function
        return lambda frame: called(self.of(frame))


PANDAS = Native()


def read_frame(
    given: Any, names: Sequence[Any] | None = None, *, feature_names: Sequence[Any] | None = None
) -> tuple[Any, Native]:
    """A pandas frame of what a caller gave, and the kind of frame that it was.

    Frames of polars, Arrow and whatever else narwhals knows go by Arrow, so that whole numbers and booleans with
    missing values stay what they are, and an Enum becomes ordered categories. A lazy frame is collected.

    Parameters
    ----------
    given : frame, dict of columns, or array
        What is none of these is given back as it is, for others to refuse.
    names : list of str, optional
        What the columns of an array are called, by place; x0, x1, … by default.
    feature_names : list of str, optional
        The same, stated by the caller, and refused where the columns have names.

    Returns
    -------
    DataFrame, Native

    Raises
    ------
    DataError
        If columns hold decimals, dates or times, or do not make a frame; the message has the remedy.
    SettingError
        If an array has another number of columns than there are names, or what is named is no array.

    Examples
    --------
    >>> import pyarrow as pa
    >>> frame, native = read_frame(pa.table({"age": [31, None]}))
    >>> frame["age"].dtype, native.library
    (Int64Dtype(), 'pyarrow')
    """
    if feature_names is not None and not isinstance(given, np.ndarray):
        raise SettingError(
            f"feature_names= names the columns of an array, and the rows are a {type(given).__name__}, whose columns "
            "have names; leave it out"
        )
    if isinstance(given, pd.DataFrame | pd.Series):
        return given, PANDAS
    if isinstance(given, np.ndarray):
        names = names if feature_names is None else feature_names
        return (_of_array(given, names), Native("numpy", dtype=given.dtype)) if given.ndim == 2 else (given, PANDAS)
    if isinstance(given, Mapping):
        is_array = bool(given) and all(isinstance(column, np.ndarray) for column in given.values())
        return _of_dict(given), Native("dict", dtype=object if is_array else None)
    import narwhals as nw

    frame = nw.from_native(given, pass_through=True)
    if not isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return given, PANDAS
    is_lazy = isinstance(frame, nw.LazyFrame)
    whole = frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    library = whole.implementation.value
    with extra("parquet", to=f"read frames of {library}"):
        import pyarrow  # noqa: F401  narwhals goes by it
    table = whole.to_arrow()
    return _of_arrow(table, library), Native(library, is_lazy, {entry.name: entry.type for entry in table.schema})


def as_pandas(
    given: Any, names: Sequence[Any] | None = None, *, feature_names: Sequence[Any] | None = None
) -> Any:  # fmt: skip
    """What `read_frame` gives, without the kind."""
    return read_frame(given, names, feature_names=feature_names)[0]


def as_column(given: Any) -> Any:
    """Labels as pandas or numpy have them, of a column of polars or Arrow; anything else is left as it is."""
    if isinstance(given, pd.DataFrame | pd.Series) or not callable(getattr(given, "to_pandas", None)):
        return given
    with extra("parquet", to="read columns of other libraries than pandas"):
        import pyarrow  # noqa: F401
    return given.to_pandas()


def _of_array(given: np.ndarray, names: Sequence[Any] | None) -> pd.DataFrame:
    columns = [f"x{i}" for i in range(given.shape[1])] if names is None else list(names)
    if len(columns) != given.shape[1]:
        raise SettingError(
            f"the array has {given.shape[1]} columns, and there are {len(columns)} features: {columns}; give a column "
            "for each, in that order"
        )
    frame = pd.DataFrame(given, columns=columns)
    return frame.infer_objects() if given.dtype == object else frame


def _of_dict(given: Mapping[Any, Any]) -> pd.DataFrame:
    try:
        return pd.DataFrame({name: as_column(column) for name, column in given.items()})
    except ValueError as error:
        raise DataError(
            f"a dict of columns needs a list or an array of equal length for each ({error}); one row is "
            "{'age': [31], 'job': ['cook']}"
        ) from None


def _of_arrow(table: Any, library: str) -> pd.DataFrame:
    names = table.column_names
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise DataError(f"column names repeat: {repeated}; rename them so that each is unique")
    for entry in table.schema:
        what = _refused_type(entry.type)
        if what is not None:
            raise DataError(
                f"column {entry.name!r} holds {what}s ({entry.type}), which no feature can be; "
                + remedy(what, entry.name, library)
            )
    index = pd.RangeIndex(table.num_rows)
    return pd.DataFrame({name: _series(column) for name, column in zip(names, table, strict=True)}, index=index)


def refused_kind(dtype: Any) -> str | None:
    """What the values of a pandas dtype are called, where a feature can't have them: decimal, date, time, duration.

    >>> refused_kind(np.dtype("datetime64[ns]")), refused_kind(np.dtype(float))
    ('date', None)
    """
    if isinstance(dtype, pd.ArrowDtype):
        return _refused_type(dtype.pyarrow_dtype)
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return "date"
    return "duration" if pd.api.types.is_timedelta64_dtype(dtype) else None


def _refused_type(type_: Any) -> str | None:
    """The same of an Arrow type."""
    from pyarrow import types

    if types.is_dictionary(type_):
        return _refused_type(type_.value_type)
    kinds = {"decimal": types.is_decimal, "time": types.is_time, "duration": types.is_duration}
    found = next((what for what, is_kind in kinds.items() if is_kind(type_)), None)
    return "date" if found is None and types.is_temporal(type_) else found


def _series(column: Any) -> pd.Series:
    """A column of Arrow's in the dtype that holds its values as they are."""
    from pyarrow import types

    type_ = column.type
    if column.null_count and (types.is_integer(type_) or types.is_boolean(type_)):
        name = "boolean" if types.is_boolean(type_) else str(type_).replace("uint", "UInt").replace("int", "Int")
        nullable: pd.Series = column.to_pandas(types_mapper=lambda _: pd.api.types.pandas_dtype(name))
        return nullable
    plain: pd.Series = column.to_pandas()
    return plain


def _enums(frame: pd.DataFrame) -> list[Any]:
    """What makes Enums of polars of ordered categories."""
    import narwhals as nw

    dtypes = {name: dtype for name, dtype in frame.dtypes.items() if isinstance(dtype, pd.CategoricalDtype)}
    ordered = {str(name): dtype.categories for name, dtype in dtypes.items() if dtype.ordered}
    text = {name: list(values) for name, values in ordered.items() if all(isinstance(v, str) for v in values)}
    return [nw.col(name).cast(nw.Enum(values)) for name, values in text.items()]


def _plain_column(column: pd.Series, *, as_array: bool) -> Any:
    """A column as an array, or as a list with None for what is missing."""
    if as_array:
        return column.to_numpy()
    return [None if absent else value for value, absent in zip(column.tolist(), column.isna(), strict=True)]
