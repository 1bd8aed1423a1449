"""Frames to arrays and back: exact on random frames of every dtype, and a table of what a query may not be."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dicoflex.errors import QueryError, SchemaError
from dicoflex.table.encoding import Encoding
from dicoflex.table.feature import Kind, dtype_bounds
from dicoflex.table.plain_rows import Cells, PlainRows
from dicoflex.table.schema import Schema

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NULLABLE_INTS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "int64[pyarrow]"]
FLOATS = {"float16": 16, "float32": 32, "float64": 64}
NULLABLE_FLOATS = {"Float32": 32, "Float64": 64, "double[pyarrow]": 64}
TEXTS = [
    "str",
    "string",
    pd.StringDtype("python"),
    pd.StringDtype("python", na_value=np.nan),
    pd.ArrowDtype(pa.string()),
]
OBJECTS = [1, 1.0, True, "a", 0, 0.0, False, "", 2.5, "1", "True", 2**60, np.int8(3), np.float32(0.1), np.bool_(True)]
CATEGORIES: list[list[Any]] = [["b", "a", "ä"], [2, 1, 3], [True, False], [0.5, 0.25], ["a", 1, 2.5, False], [""]]

quickly = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


# -- random frames -----------------------------------------------------------------------------------------------


def filled(values: st.SearchStrategy[Any], n: int, missing: bool) -> st.SearchStrategy[list[Any]]:
    """`n` values; where `missing`, some but not all may be None."""
    lists = st.lists(values | st.none() if missing else values, min_size=n, max_size=n)
    return lists.filter(lambda found: any(v is not None for v in found))


def integers(dtype: Any, small: bool) -> st.SearchStrategy[int]:
    least, greatest = dtype_bounds(pd.api.types.pandas_dtype(dtype))
    return (
        st.integers(max(int(least), -1000), min(int(greatest), 1000))
        if small
        else st.integers(int(least), int(greatest))
    )


def floats(width: int, small: bool) -> st.SearchStrategy[float]:
    bound = {16: 60000.0, 32: 1e30, 64: 1e150}[width] if not small else 1000.0
    most = float(np.dtype(f"f{width // 8}").type(bound))
    most = most if most <= bound else float(np.nextafter(np.dtype(f"f{width // 8}").type(bound), np.float16(0)))
    return st.floats(-most, most, width=width)  # type: ignore[arg-type]


@st.composite
def columns(draw: st.DrawFn, n: int, small: bool = False) -> pd.Series:
    """One column of any dtype that a schema takes."""
    sort = draw(st.sampled_from(["int", "Int", "float", "Float", "bool", "boolean", "object", "text", "category"]))
    if sort in ("int", "Int"):
        dtype = draw(st.sampled_from(INTS if sort == "int" else NULLABLE_INTS))
        return pd.Series(draw(filled(integers(dtype, small), n, sort == "Int")), dtype=dtype)
    if sort in ("float", "Float"):
        widths = FLOATS if sort == "float" else NULLABLE_FLOATS
        dtype = draw(st.sampled_from(list(widths)))
        return pd.Series(draw(filled(floats(widths[dtype], small), n, True)), dtype=dtype)
    if sort in ("bool", "boolean"):
        values = st.lists(
            st.booleans() if sort == "bool" else st.sampled_from([True, False, None]), min_size=n, max_size=n
        )
        return pd.Series(draw(values), dtype=sort)
    if sort == "object":
        missing = draw(st.sampled_from([None, np.nan, pd.NA]))
        choice = draw(st.sampled_from([OBJECTS, ["a", "b"], [True, False], [1, 2, 3], []]))
        return pd.Series(draw(st.lists(st.sampled_from([*choice, missing]), min_size=n, max_size=n)), dtype=object)
    if sort == "text":
        text = st.lists(st.none() | st.text(max_size=4), min_size=n, max_size=n)
        return pd.Series(draw(text), dtype=draw(st.sampled_from(TEXTS)))
    categories = draw(st.sampled_from(CATEGORIES).flatmap(st.permutations))
    codes = draw(st.lists(st.integers(-1, len(categories) - 1), min_size=n, max_size=n))
    dtype = pd.CategoricalDtype(categories, ordered=draw(st.booleans()))
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))


@st.composite
def indexes(draw: st.DrawFn, n: int) -> pd.Index:
    """Any index: with repeats, of text, of dates, with gaps, of several levels."""
    numbers = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return draw(
        st.sampled_from(
            [
                pd.RangeIndex(7, 7 + n),
                pd.Index(numbers, name="again"),
                pd.Index([f"row {i}" for i in numbers]),
                pd.Index([None if i == 0 else i for i in numbers], dtype=object),
                pd.DatetimeIndex(pd.Timestamp("2020") + pd.to_timedelta(numbers, unit="D")),
                pd.MultiIndex.from_arrays([numbers, [str(i) for i in numbers]], names=["a", None]),
            ]
        )
    )


@st.composite
def frames(draw: st.DrawFn, small: bool = False) -> pd.DataFrame:
    """Frames of one to six columns and one to thirty rows."""
    n = draw(st.integers(1, 30))
    names = draw(st.lists(st.integers(0, 9) | st.text("abc", max_size=2), min_size=1, max_size=6, unique_by=repr))
    frame = pd.DataFrame({name: draw(columns(n, small)) for name in names})
    frame.index = draw(indexes(n))
    return frame


def fitted(frame: pd.DataFrame, **overrides: Any) -> Encoding:
    return Encoding.fit(frame, Schema.infer(frame, **overrides))


def assert_same(frame: pd.DataFrame, other: pd.DataFrame) -> None:
    """Equal in values, their types, dtypes, order of categories, columns and index."""
    pd.testing.assert_frame_equal(frame, other, check_exact=True)
    for name in frame.columns:
        if frame[name].dtype == object:
            types = [[type(v.item() if isinstance(v, np.generic) else v) for v in f[name]] for f in (frame, other)]
            assert types[0] == types[1]
        if isinstance(frame[name].dtype, pd.CategoricalDtype):
            assert list(map(repr, frame[name].cat.categories)) == list(map(repr, other[name].cat.categories))


def bits(frame: pd.DataFrame) -> list[bytes]:
    return [frame[name].to_numpy().tobytes() for name in frame.columns if isinstance(frame[name].dtype, np.dtype)]


# -- the identity ------------------------------------------------------------------------------------------------


@pytest.mark.slow
@quickly
@given(frames())
def test_decode_undoes_encode(frame: pd.DataFrame) -> None:
    encoding = fitted(frame)
    values = encoding.encode(frame)
    assert values.shape == frame.shape
    assert_same(encoding.decode(values, frame.index), frame)
    assert_same(encoding.decode(values), frame.reset_index(drop=True))
    restored = Encoding.from_state(json.loads(json.dumps(encoding.state(), allow_nan=False)))
    assert_same(restored.decode(restored.encode(frame), frame.index), frame)


@pytest.mark.slow
@quickly
@given(frames())
def test_conform_changes_no_bit(frame: pd.DataFrame) -> None:
    encoding, before = fitted(frame), frame.copy()
    conformed, values = encoding.conform(frame[frame.columns[::-1]])
    np.testing.assert_array_equal(values, encoding.encode(frame))
    assert_same(conformed, frame)
    assert bits(conformed) == bits(frame)
    assert_same(frame, before)


@pytest.mark.slow
@quickly
@given(frames())
def test_snap_keeps_training_values(frame: pd.DataFrame) -> None:
    encoding = fitted(frame)
    values = encoding.encode(frame)
    assert not encoding.differs(encoding.snap(values), values).any()


@pytest.mark.slow
@quickly
@given(frames(small=True))
def test_reals_round_trip(frame: pd.DataFrame) -> None:
    encoding = fitted(frame)
    values = encoding.encode(frame)
    reals = encoding.to_reals(values)
    assert reals.dtype == np.float32
    assert np.isfinite(reals).all()
    back = encoding.from_reals(reals)
    whole = np.array([f.is_whole or not f.is_number for f in encoding.schema.features])
    np.testing.assert_array_equal(back[:, whole], values[:, whole])
    np.testing.assert_allclose(back[:, ~whole], values[:, ~whole], rtol=0, atol=1e-3)
    np.testing.assert_array_equal(encoding.to_reals(values)[:, encoding.is_onehot] % 1, 0)


@pytest.mark.slow
@quickly
@given(frames(small=True), st.integers(0, 2**32 - 1))
def test_from_reals_of_anything_is_a_row_of_the_schema(frame: pd.DataFrame, seed: int) -> None:
    encoding = fitted(frame)
    noise = np.random.default_rng(seed).standard_cauchy((20, encoding.n_reals))
    values = encoding.from_reals(noise)
    decoded = encoding.decode(values)
    assert not encoding.differs(encoding.encode(decoded), encoding.snap(values)).any()
    for j, feature in enumerate(encoding.schema.features):
        present = values[~np.isnan(values[:, j]), j]
        if feature.is_number:
            assert ((present >= feature.minimum) & (present <= feature.maximum)).all()
            assert feature.missing or len(present) == 20
        else:
            assert set(present) <= set(range(feature.n_states))


@pytest.mark.slow
@quickly
@given(frames())
def test_what_is_exact_comes_back_bit_for_bit(frame: pd.DataFrame) -> None:
    encoding = fitted(frame)
    values = encoding.encode(frame)
    exact = encoding.is_exact(values)
    decoded = encoding.decode(values, frame.index)
    for j, name in enumerate(frame.columns):
        if encoding.schema[name].is_number and isinstance(frame[name].dtype, np.dtype):
            before, after = (f[name].to_numpy()[exact[:, j]].tobytes() for f in (frame, decoded))
            assert before == after


def test_what_lies_beyond_its_limits_or_has_fractions_is_not_exact() -> None:
    frame = pd.DataFrame({"n": [1, 5, 7], "x": [0.5, 1.5, 2.5], "s": ["a", "b", "a"]})
    encoding = fitted(frame)
    values = np.array([[3.0, 1.0, 0.0], [9.0, 1.0, 1.0]])
    assert encoding.is_exact(values).tolist() == [[True, False, True], [False, False, True]]


def test_negative_zero_and_bits_of_missing_stay() -> None:
    odd_nan = np.array([0x7FF8000000000123, 0xFFF8000000000000], dtype=np.uint64).view(np.float64)
    frame = pd.DataFrame({"a": np.array([-0.0, 0.0, 0.5, *odd_nan])})
    assert bits(fitted(frame).conform(frame)[0]) == bits(frame)


def test_conform_gives_a_copy() -> None:
    frame = pd.DataFrame(
        {"a": [0.5, 1.5], "b": pd.array([1, 2], dtype="Int64"), "c": pd.Series(["x", "y"], dtype=object)}
    )
    conformed, _ = fitted(frame).conform(frame)
    conformed.iloc[0] = [9.5, 9, "z"]
    assert frame.iloc[0].tolist() == [0.5, 1, "x"]


def test_codes_and_numbers_by_hand() -> None:
    frame = pd.DataFrame(
        {
            "age": [31, 52],
            "wage": [0.5, np.nan],
            "job": ["nurse", None],
            "grade": pd.Categorical(["c", "a"], ["c", "b", "a"], ordered=True),
            "member": [True, False],
        }
    )
    values = fitted(frame).encode(frame)
    np.testing.assert_array_equal(values, [[31.0, 0.5, 0.0, 0.0, 1.0], [52.0, np.nan, 1.0, 1.0, 0.0]])


def test_no_rows_and_one_row() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": pd.Categorical([1, 2])})
    encoding = fitted(frame)
    assert encoding.encode(frame.iloc[:0]).shape == (0, 3)
    assert_same(encoding.conform(frame.iloc[:0])[0], frame.iloc[:0])
    assert_same(encoding.decode(np.empty((0, 3)), frame.index[:0]), frame.iloc[:0])
    assert_same(encoding.decode(encoding.encode(frame.iloc[1:]), frame.index[1:]), frame.iloc[1:])


@pytest.mark.parametrize("dtype", ["int8", "Int8", "uint16", "float32", "Float32", "float64"])
def test_decode_clips_and_rounds(dtype: str) -> None:
    encoding = fitted(pd.DataFrame({"a": pd.Series([3, 7], dtype=dtype)}))
    decoded = encoding.decode(np.array([[-1e9], [4.4], [6.6], [1e9]]))["a"]
    assert decoded.tolist() == [3, 4, 7, 7]
    assert decoded.dtype == dtype


@pytest.mark.parametrize("dtype", ["int64", "Int64"])
def test_a_continuous_feature_of_integer_dtype_is_rounded(dtype: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([1, 9], dtype=dtype)})
    encoding = fitted(frame, kinds={"a": "continuous"})
    assert encoding.schema["a"].kind is Kind.CONTINUOUS
    assert encoding.decode(np.array([[2.7]]))["a"].tolist() == [3]
    assert encoding.from_reals(np.array([[0.1]]))[0, 0] == 5.0


# -- queries -----------------------------------------------------------------------------------------------------


CASTS: dict[str, tuple[pd.Series, pd.Series]] = {
    "int for float": (pd.Series([0.5, 3.0]), pd.Series([2, 3])),
    "float for int": (pd.Series([1, 3]), pd.Series([2.0, 3.0])),
    "int for nullable": (pd.Series([1, None], dtype="Int64"), pd.Series([2, 3])),
    "float with NaN for nullable": (pd.Series([1, None], dtype="Int64"), pd.Series([2.0, np.nan])),
    "nullable for int": (pd.Series([1, 3]), pd.Series([2, 3], dtype="Int64")),
    "int64 for int8": (pd.Series([1, 3], dtype="int8"), pd.Series([-128, 127])),
    "float64 for float32": (pd.Series([0.5, 3], dtype="float32"), pd.Series([0.25, 1e30])),
    "objects for numbers": (pd.Series([0.5, 3.0]), pd.Series([2, 0.5], dtype=object)),
    "None among objects for numbers": (pd.Series([0.5, None]), pd.Series([2, None], dtype=object)),
    "nothing but None for numbers": (pd.Series([0.5, None]), pd.Series([None, None], dtype=object)),
    "missing text for numbers": (pd.Series([0.5, None]), pd.Series([None, None], dtype="str")),
    "categories for numbers": (pd.Series([0.5, 3.0]), pd.Series(pd.Categorical([0.5, 3.0]))),
    "decimals for numbers": (pd.Series([0.5, 3.0]), pd.Series([Decimal("0.5"), Decimal(2)], dtype=object)),
    "object for str": (pd.Series(["a", "b"]), pd.Series(["b", "a"], dtype=object)),
    "str for object": (pd.Series(["a", "b"], dtype=object), pd.Series(["b", "a"], dtype="str")),
    "category for str": (pd.Series(["a", "b"]), pd.Series(pd.Categorical(["b", "a"]))),
    "str for category": (pd.Series(pd.Categorical(["a", "b"])), pd.Series(["b", "a"])),
    "str for string": (pd.Series(["a", None], dtype="string"), pd.Series(["a", None])),
    "categories in another order": (
        pd.Series(pd.Categorical(["a", "b"])),
        pd.Series(pd.Categorical(["a", "b"], ["b", "a"])),
    ),
    "categories of floats for ints": (pd.Series(pd.Categorical([1, 2])), pd.Series(pd.Categorical([1.0, 2.0]))),
    "float read for a category of ints": (pd.Series(pd.Categorical([1, 2, None])), pd.Series([1.0, np.nan])),
    "ordered for unordered": (
        pd.Series(pd.Categorical(["a", "b"])),
        pd.Series(pd.Categorical(["a", "b"], ordered=True)),
    ),
    "boolean for bool": (pd.Series([True, False]), pd.Series([True, False], dtype="boolean")),
    "object for boolean": (pd.Series([True, None], dtype="boolean"), pd.Series([True, None], dtype=object)),
    "int for bool": (pd.Series([True, False]), pd.Series([1, 0])),
}


@pytest.mark.parametrize("dtype", ["float32", "Float32", "float[pyarrow]"])
@pytest.mark.parametrize("n", [1, 50])
def test_a_number_that_the_training_dtype_would_round_is_refused(dtype: str, n: int) -> None:
    encoding = fitted(pd.DataFrame({"a": pd.Series([0.5, 3e8], dtype=dtype)}))
    with pytest.raises(QueryError, match=r"'a' holds 123456789.*rounds that to 123456792.*astype"):
        encoding.encode(pd.DataFrame({"a": [123456789.0] * n}))
    with pytest.raises(QueryError, match="rounds that to 123456792"):
        PlainRows(encoding).encode([[123456789.0]])
    with pytest.raises(QueryError, match="rounds"):
        Cells(PlainRows(encoding)).one(0, 123456789)
    held = pd.DataFrame({"a": [0.1, 123456792.0] * n})  # .1 comes back as .1
    assert encoding.conform(held)[0]["a"].astype(str).tolist() == pd.Series(held["a"], dtype=dtype).astype(str).tolist()


@pytest.mark.parametrize("case", CASTS)
def test_dtypes_that_cast_are_taken(case: str) -> None:
    column, query = CASTS[case]
    train, rows = pd.DataFrame({"a": column}), pd.DataFrame({"a": query}).set_axis([4, 4])
    conformed = fitted(train).conform(rows)[0]["a"]
    assert conformed.dtype == column.dtype
    assert conformed.index.tolist() == [4, 4]
    if isinstance(column.dtype, pd.CategoricalDtype):
        assert list(conformed.cat.categories) == list(column.cat.categories)
    assert conformed.isna().tolist() == query.isna().tolist()
    assert conformed.dropna().tolist() == pytest.approx(query.dropna().tolist())


def test_queries_beyond_the_seen_range_are_taken_as_they_are() -> None:
    train = pd.DataFrame({"age": [20, 30], "wage": [0.5, 1.5]})
    rows = pd.DataFrame({"wage": [-1e6, 99.25], "age": [-5, 1000]})
    encoding = fitted(train)
    np.testing.assert_array_equal(encoding.encode(rows), [[-5.0, -1e6], [1000.0, 99.25]])
    assert_same(encoding.conform(rows)[0], rows[["age", "wage"]])
    assert_same(encoding.conform(rows.astype({"age": float}))[0], rows[["age", "wage"]])


def test_equal_values_are_told_apart_only_where_training_did() -> None:
    mixed = fitted(pd.DataFrame({"a": pd.Series([1, 1.0, True], dtype=object)}))
    assert mixed.encode(pd.DataFrame({"a": pd.Series([True, 1.0, 1], dtype=object)})).ravel().tolist() == [0, 1, 2]
    plain = fitted(pd.DataFrame({"a": pd.Series([1, 2], dtype=object)}))
    assert plain.encode(pd.DataFrame({"a": [2.0, 1.0]})).ravel().tolist() == [1, 0]


TRAIN = pd.DataFrame(
    {
        "age": [31, 52],
        "tiny": pd.Series([1, 2], dtype="int8"),
        "half": pd.Series([0.5, 2], dtype="float16"),
        "wage": [0.5, 1.5],
        "job": ["cook", "nurse"],
        "member": [True, False],
    }
)

BAD_QUERIES: dict[str, tuple[dict[str, Any], str]] = {
    "an unseen category": (
        {"job": ["pilot"]},
        "column 'job' has the value 'pilot', never seen in training; known: 'cook'",
    ),
    "a list for a category": ({"job": [["cook"]]}, "never seen in training; known"),
    "a number for text": ({"job": [1]}, "has the value 1, never seen in training; known"),
    "text for a boolean": ({"member": ["True"]}, "has the value 'True', never seen in training; known"),
    "a date for a category": ({"job": [pd.Timestamp("2020")]}, "never seen in training; known"),
    "missing text": ({"job": [None]}, "column 'job' has missing values, and none were seen in training; fill them in"),
    "a missing number": ({"wage": [np.nan]}, "column 'wage' has missing values, and none were seen"),
    "a missing integer": ({"age": pd.array([None], dtype="Int64")}, "column 'age' has missing values"),
    "an infinite number": ({"wage": [np.inf]}, "column 'wage' holds infinite numbers; replace them"),
    "fractions": ({"age": [31.5]}, "column 'age' holds fractions, and training had whole numbers alone; round them"),
    "text": ({"wage": ["much"]}, "not numbers (dtype str); convert it with pd.to_numeric"),
    "numbers as text": ({"wage": ["1.5"]}, "convert it with pd.to_numeric"),
    "categories of text for numbers": ({"wage": pd.Categorical(["1.5"])}, "convert it with pd.to_numeric"),
    "text among objects": ({"wage": pd.Series(["1.5"], dtype=object)}, "convert it with pd.to_numeric"),
    "dates": ({"wage": pd.to_datetime(["2020-01-01"])}, "convert it with pd.to_numeric"),
    "durations": ({"wage": pd.to_timedelta([1])}, "convert it with pd.to_numeric"),
    "complex numbers": ({"wage": [1j]}, "convert it with pd.to_numeric"),
    "more than the dtype holds": ({"tiny": [1000]}, "holds 1000, and its dtype in training, int8, holds -128 to 127"),
    "less than the dtype holds": ({"tiny": [-129]}, "holds -129"),
    "more than a short float holds": ({"half": [1e6]}, "float16, holds -65504 to 65504"),
    "an integer that floats blur": ({"age": [2**53 + 1]}, "holds 9007199254740992"),
}


@pytest.mark.parametrize("case", BAD_QUERIES)
def test_values_that_are_refused(case: str) -> None:
    changed, remedy = BAD_QUERIES[case]
    rows = TRAIN.iloc[:1].assign(**changed)
    encoding = fitted(TRAIN)
    for method in (encoding.encode, encoding.conform):
        with pytest.raises(QueryError) as caught:
            method(rows)
        assert remedy in str(caught.value)


BAD_COLUMNS: dict[str, tuple[Any, str]] = {
    "a column too few": (TRAIN.drop(columns="age"), "rows lack the column 'age'; the model was fitted on ['age'"),
    "a column too many": (
        TRAIN.assign(jobs=1),
        "column 'jobs' is unknown; did you mean 'job'?; pass only the training",
    ),
    "a column twice": (TRAIN[["age", *TRAIN.columns]], "column names repeat: ['age']"),
    "an array": (TRAIN.to_numpy(), "an array of two dimensions, with the training columns, got ndarray"),
    "a row": (TRAIN.iloc[0], "an array of two dimensions, with the training columns, got Series"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_columns_that_are_refused(case: str) -> None:
    rows, remedy = BAD_COLUMNS[case]
    with pytest.raises(QueryError) as caught:
        fitted(TRAIN).encode(rows)
    assert remedy in str(caught.value)


def test_rows_beyond_their_schema_are_refused() -> None:
    schema = Schema.infer(TRAIN[["age"]])
    with pytest.raises(SchemaError, match="column 'age' holds 31 to 90, beyond its schema's 31 to 52; infer"):
        Encoding.fit(pd.DataFrame({"age": [31, 90]}), schema)


# -- scales and views --------------------------------------------------------------------------------------------


def test_a_schema_of_more_rows_fits_fewer() -> None:
    whole = pd.DataFrame({"a": [1.0, 2.5, np.nan], "b": ["x", "y", None]})
    encoding = Encoding.fit(whole.iloc[2:], Schema.infer(whole))
    assert (encoding.mean[0], encoding.scale[0]) == (0.0, 1.0)
    assert_same(encoding.decode(encoding.encode(whole)), whole)


@pytest.mark.parametrize("value", [0.1, 7, 1e-300, 1e20])
def test_a_constant_column_has_scale_one(value: float) -> None:
    encoding = fitted(pd.DataFrame({"a": [value] * 3}))
    assert encoding.scale.tolist() == [1.0]
    np.testing.assert_allclose(encoding.standardise(np.array([[value]])), 0.0, atol=1e-15 * max(1.0, value))


@pytest.fixture
def small() -> Encoding:
    """Mean and deviation by hand: age 2 and 1; wage, of 1 and 5, 3 and 2."""
    frame = pd.DataFrame(
        {"age": [1, 3, 1, 3], "job": ["a", "b", None, "a"], "wage": [1.0, 5.0, None, None], "ok": [True] * 4}
    )
    return fitted(frame)


def test_standardise(small: Encoding) -> None:
    np.testing.assert_array_equal(small.mean, [2.0, 0.0, 3.0, 0.0])
    np.testing.assert_array_equal(small.scale, [1.0, 1.0, 2.0, 1.0])
    values = np.array([[1.0, 0, 5.0, 0], [4.0, 2, np.nan, 0]])
    np.testing.assert_array_equal(small.standardise(values), [[-1.0, 1.0], [2.0, 0.0]])


def test_parts(small: Encoding) -> None:
    parts = small.parts(np.array([[1.0, 0, 5.0, 0], [4.0, 2, np.nan, 0]]))
    assert parts.code_feature.tolist() == [1, 2, 3]
    assert parts.number_feature.tolist() == [0, 2]
    np.testing.assert_array_equal(parts.codes, [[0, 0, 0], [2, 1, 0]])
    np.testing.assert_array_equal(parts.numbers, [[-1.0, 1.0], [2.0, 0.0]])
    assert parts.codes.dtype == np.int32


def test_reals_by_hand(small: Encoding) -> None:
    reals = small.to_reals(np.array([[1.0, 1, 5.0, 0], [4.0, 2, np.nan, 0]]))
    np.testing.assert_array_equal(reals, [[-1, 0, 1, 0, 1, 1, 0, 1], [2, 0, 0, 1, 0, 0, 1, 1]])
    assert [(b.start, b.stop) for b in small.blocks] == [(0, 1), (1, 4), (4, 7), (7, 8)]
    assert small.n_reals == 8
    assert small.is_onehot.tolist() == [False, True, True, True, False, True, True, True]


def test_from_reals_by_hand(small: Encoding) -> None:
    reals = np.array([[0.4, 0.1, 0.3, 0.2, 99.0, 0.6, 0.5, -3.0], [-9.0, 0.0, 0.0, 0.1, 0.5, 0.0, 0.1, 0.0]])
    np.testing.assert_array_equal(small.from_reals(reals), [[2.0, 1.0, 5.0, 0.0], [1.0, 2.0, np.nan, 0.0]])


def test_real_mask(small: Encoding) -> None:
    mask = np.array([[True, False, True, False], [False, True, False, False]])
    spread = small.real_mask(mask)
    assert spread.astype(int).tolist() == [[1, 0, 0, 0, 1, 1, 1, 0], [0, 1, 1, 1, 0, 0, 0, 0]]


def test_snap(small: Encoding) -> None:
    snapped = small.snap(np.array([[1.6, 1.0, 9.0, 0.0], [0.0, 2.0, np.nan, 0.0]]))
    np.testing.assert_array_equal(snapped, [[2.0, 1.0, 5.0, 0.0], [1.0, 2.0, np.nan, 0.0]])
    short = fitted(pd.DataFrame({"a": pd.Series([0.5, 1.5], dtype="float32")}))
    assert short.snap(np.array([[0.7]]))[0, 0] == float(np.float32(0.7))


def test_finish_leaves_what_was_not_changed_as_it_is(small: Encoding) -> None:
    """Limits and rounding bind what is new: the queries' age and wage lie beyond them."""
    query = np.array([[7.5, 0.0, np.nan, 0.0], [1.0, 2.0, 9.0, 0.0]])
    frozen = np.array([[False] * 4, [True, False, False, False]])
    draws = np.array([[query[0], [7.4, 1.0, 9.0, 0.0]], [[3.0, 2.0, np.nan, 0.0], [1.0, 2.0, 9.0, 0.0]]])
    rows, moved = small.finish(draws, query, frozen)
    np.testing.assert_array_equal(rows, [query[0], [3.0, 1.0, 5.0, 0.0], [1.0, 2.0, np.nan, 0.0], query[1]])
    assert moved.tolist() == [False, True, True, False]


def test_finish_sees_values_that_only_rounding_makes_the_query_again() -> None:
    small = fitted(pd.DataFrame({"a": pd.Series([0.1, 1.5], dtype="float32"), "b": [0, 5]}))
    query = np.array([[float(np.float32(0.1)), 3.0]])
    draws = np.array([[[0.1, 3.2], [0.1, 4.4], [0.7, 3.0]]])
    rows, moved = small.finish(draws, query, np.zeros((1, 2), dtype=bool))
    short = float(np.float32(0.7))
    np.testing.assert_array_equal(rows, [query[0], [query[0, 0], 4.0], [short, 3.0]])
    assert moved.tolist() == [False, True, True]


def test_differs(small: Encoding) -> None:
    one, other = np.array([[1.0, np.nan, np.nan, 0.0]]), np.array([[2.0, np.nan, 1.0, -0.0]])
    assert small.differs(one, other).tolist() == [[True, False, True, False]]


def test_parts_and_reals_agree_on_distance() -> None:
    """A mismatch of codes is two ones apart in the one-hot table: the squared distances are equal."""
    rng = np.random.default_rng(0)
    wage = np.where(rng.random(40) < 0.3, np.nan, rng.normal(size=40))
    frame = pd.DataFrame({"wage": wage, "job": rng.choice(["a", "b", "c"], 40), "age": rng.integers(0, 9, 40)})
    encoding = fitted(frame)
    values = encoding.encode(frame)
    parts, reals = encoding.parts(values), encoding.to_reals(values).astype(np.float64)
    by_parts = 2.0 * (parts.codes[0] != parts.codes).sum(axis=1) + ((parts.numbers[0] - parts.numbers) ** 2).sum(axis=1)
    np.testing.assert_allclose(by_parts, ((reals[0] - reals) ** 2).sum(axis=1), rtol=1e-5)


def test_values_are_encoded_alike_whether_few_or_many() -> None:
    frame = pd.DataFrame({"n": [1, 2, 3, 4] * 20, "x": [0.5, 1.5, np.nan, 2.0] * 20, "c": ["a", "b", None, "a"] * 20})
    encoding = fitted(frame)
    many = encoding.encode(frame)
    few = np.concatenate([encoding.encode(frame.iloc[i : i + 4]) for i in range(0, len(frame), 4)])
    np.testing.assert_array_equal(many, few)


def test_what_conforms_is_encoded_as_the_dtype_holds_it() -> None:
    frame = pd.DataFrame({"x": np.array([0.1, 0.2, 0.7], dtype=np.float32)})
    conformed, values = fitted(frame).conform(pd.DataFrame({"x": [0.3]}))
    assert conformed["x"].dtype == np.float32
    assert values[0, 0] == np.float64(np.float32(0.3))
