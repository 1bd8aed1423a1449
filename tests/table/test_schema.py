"""Every kind of column that a schema takes, every override, and a table of what it refuses."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pydantic import ValidationError

from dicoflex.constraints import Constraints, delta, per_unit, relative
from dicoflex.errors import ConstraintError, DataError, RuleError, SchemaError, UserError
from dicoflex.table.feature import Feature, Kind, dtype_bounds, dtype_of, dtype_text
from dicoflex.table.inference import distinct
from dicoflex.table.schema import Schema

INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NULLABLE_INTS = ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"]
FLOATS = ["float16", "float32", "float64", "Float32", "Float64"]


def describe(column: Any, **overrides: Any) -> Feature:
    """The feature inferred from one column; an override is given for it by name of the argument."""
    frame = pd.DataFrame({"a": column})
    return Schema.infer(frame, **{name: {"a": value} for name, value in overrides.items()})["a"]


# -- inference ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", INTS + NULLABLE_INTS)
def test_every_integer_width_is_integer(dtype: str) -> None:
    feature = describe(pd.Series([3, 1, 2], dtype=dtype))
    assert (feature.kind, feature.dtype, feature.missing) == (Kind.INTEGER, dtype, False)
    assert (feature.minimum, feature.maximum, feature.levels) == (1.0, 3.0, ())
    assert feature.is_number
    assert feature.is_whole


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_float_width_is_continuous_or_integer_by_its_values(dtype: str) -> None:
    fractions = describe(pd.Series([0.5, None, 2.0], dtype=dtype))
    assert (fractions.kind, fractions.dtype, fractions.missing) == (Kind.CONTINUOUS, dtype, True)
    assert (fractions.minimum, fractions.maximum, fractions.is_whole) == (0.5, 2.0, False)
    whole = describe(pd.Series([1.0, None, 3.0], dtype=dtype))
    assert (whole.kind, whole.missing, whole.is_whole) == (Kind.INTEGER, True, True)


@pytest.mark.parametrize("dtype", NULLABLE_INTS)
def test_nullable_integers_may_be_missing(dtype: str) -> None:
    feature = describe(pd.Series([3, None, 1], dtype=dtype))
    assert (feature.kind, feature.missing, feature.minimum, feature.maximum) == (Kind.INTEGER, True, 1.0, 3.0)


LEVEL_COLUMNS: dict[str, tuple[pd.Series, Kind, tuple[Any, ...], bool]] = {
    "bool": (pd.Series([True, False]), Kind.BOOLEAN, (False, True), False),
    "boolean": (pd.Series([True, None], dtype="boolean"), Kind.BOOLEAN, (True,), True),
    "boolean, all missing": (pd.Series([None, None], dtype="boolean"), Kind.BOOLEAN, (), True),
    "str": (pd.Series(["b", "a", "b"], dtype="str"), Kind.CATEGORICAL, ("a", "b"), False),
    "str with missing": (pd.Series(["b", None], dtype="str"), Kind.CATEGORICAL, ("b",), True),
    "str, all missing": (pd.Series([None, None], dtype="str"), Kind.CATEGORICAL, (), True),
    "string": (pd.Series(["b", "a", None], dtype="string"), Kind.CATEGORICAL, ("a", "b"), True),
    "object of text": (pd.Series(["b", "a", None], dtype=object), Kind.CATEGORICAL, ("a", "b"), True),
    "object, all missing": (pd.Series([None, None], dtype=object), Kind.CATEGORICAL, (), True),
    "object of booleans": (pd.Series([True, None, False], dtype=object), Kind.CATEGORICAL, (False, True), True),
    "object of numpy scalars": (
        pd.Series([np.int8(2), np.bool_(True)], dtype=object),
        Kind.CATEGORICAL,
        (True, 2),
        False,
    ),
    "unordered, order kept": (
        pd.Series(pd.Categorical(["a", "b"], ["b", "z", "a"])),
        Kind.CATEGORICAL,
        ("b", "a"),
        False,
    ),
    "ordered": (pd.Series(pd.Categorical(["a", "b"], ["b", "a"], ordered=True)), Kind.ORDINAL, ("b", "a"), False),
    "categories of ints": (pd.Series(pd.Categorical([1, 2, None], [2, 1])), Kind.CATEGORICAL, (2, 1), True),
    "categories of bools": (pd.Series(pd.Categorical([True, False])), Kind.CATEGORICAL, (False, True), False),
    "categories of floats": (pd.Series(pd.Categorical([0.5, 0.1])), Kind.CATEGORICAL, (0.1, 0.5), False),
    "mixed categories": (
        pd.Series(pd.Categorical(["a", 1, 2.5], ["a", 1, 2.5])),
        Kind.CATEGORICAL,
        ("a", 1, 2.5),
        False,
    ),
    "category, all missing": (pd.Series(pd.Categorical([None, None], ["a"])), Kind.CATEGORICAL, (), True),
    "category without categories": (pd.Series(pd.Categorical([None, None])), Kind.CATEGORICAL, (), True),
    "constant": (pd.Series(["a", "a"]), Kind.CATEGORICAL, ("a",), False),
    "Arrow text": (pd.Series(["b", None], dtype=pd.ArrowDtype(pa.string())), Kind.CATEGORICAL, ("b",), True),
}


@pytest.mark.parametrize("case", LEVEL_COLUMNS)
def test_columns_of_levels(case: str) -> None:
    column, kind, levels, missing = LEVEL_COLUMNS[case]
    feature = describe(column)
    assert (feature.kind, feature.levels, feature.missing) == (kind, levels, missing)
    assert [type(v) for v in feature.levels] == [type(v) for v in levels]
    assert feature.n_states == len(levels) + missing
    assert not feature.is_number


@pytest.mark.parametrize("case", LEVEL_COLUMNS)
def test_dtypes_are_read_back(case: str) -> None:
    column = LEVEL_COLUMNS[case][0]
    feature = describe(column)
    if isinstance(column.dtype, pd.CategoricalDtype):
        assert (feature.dtype, feature.ordered) == ("category", column.dtype.ordered)
        assert feature.categories == tuple(column.dtype.categories)
        assert dtype_of(feature.categories_dtype or "") == column.dtype.categories.dtype
    else:
        assert dtype_of(feature.dtype) == column.dtype


@pytest.mark.parametrize("storage", ["python", "pyarrow"])
@pytest.mark.parametrize("na_value", [np.nan, pd.NA])
def test_how_text_is_stored_is_kept(storage: str, na_value: Any) -> None:
    dtype = pd.StringDtype(storage, na_value=na_value)
    assert dtype_of(dtype_text(dtype)) == dtype


def test_equal_objects_of_different_types_are_different_levels() -> None:
    column = pd.Series([1, 1.0, True, "a", 0, False, "1"], dtype=object)
    levels = describe(column).levels
    assert levels == (False, True, 1.0, 0, 1, "1", "a")
    assert [type(v).__name__ for v in levels] == ["bool", "bool", "float", "int", "int", "str", "str"]
    assert len(distinct(column)) == 7


@pytest.mark.parametrize(("missing", "name"), [(None, "None"), (np.nan, "nan"), (pd.NA, "NA")])
def test_an_object_columns_missing_value_is_remembered(missing: Any, name: str) -> None:
    assert describe(pd.Series(["a", missing], dtype=object)).missing_object == name


def test_constant_number_columns() -> None:
    assert describe([7, 7, 7]).minimum == describe([7, 7, 7]).maximum == 7.0
    assert describe([0.1, 0.1]).kind is Kind.CONTINUOUS


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(5, 8),
        pd.Index([1, 1, 1]),
        pd.Index(["x", "y", None]),
        pd.date_range("2020", periods=3),
        pd.MultiIndex.from_tuples([(1, "a"), (1, "a"), (2, "b")]),
    ],
)
def test_any_index_and_one_column(index: pd.Index) -> None:
    frame = pd.DataFrame({"a": [3, 1, 2]}, index=index)
    assert Schema.infer(frame) == Schema.infer(frame.reset_index(drop=True))


def test_column_names_may_be_whole_numbers() -> None:
    schema = Schema.infer(pd.DataFrame(np.eye(2), columns=np.array([4, 7], dtype="int8")))
    assert schema.names == [4, 7]
    assert [type(name) for name in schema.names] == [int, int]
    assert schema.position(np.int64(7)) == 1
    mixed = Schema.infer(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    assert (mixed.position(1), mixed.position("1")) == (0, 1)
    with pytest.raises(SchemaError, match="feature True is unknown"):
        mixed.position(True)


def test_text_that_repeats_is_no_identifier() -> None:
    half = [f"v{i // 2}" for i in range(100)]
    assert len(describe(half).levels) == 50
    few = [f"v{i}" for i in range(49)]
    assert len(describe(few).levels) == 49
    assert len(describe(pd.Categorical([f"v{i}" for i in range(100)])).levels) == 100


COUNTERS = {
    "customer_id": np.random.default_rng(0).permutation(100) * 7 + 13,
    "customerID": np.random.default_rng(0).permutation(100) * 7 + 13,
    "rising": np.cumsum(np.where(np.arange(100) % 9, 1, 4)),
    "falling": -np.cumsum(np.where(np.arange(100) % 9, 1, 4)),
    "without a gap": np.random.default_rng(0).permutation(100) + 5000,
    "with missing": pd.array([*range(99), None], dtype="Int64"),
}


@pytest.mark.parametrize("name", COUNTERS)
def test_whole_numbers_that_name_rows_are_refused(name: str) -> None:
    """Identifiers of customers were features: 30 of 180 answers changed one."""
    frame = pd.DataFrame({name: COUNTERS[name], "pay": np.arange(100) % 7})
    with pytest.raises(DataError, match=f"{name}.*as identifiers do; drop it, or say kinds=.*'integer'"):
        Schema.infer(frame)
    assert Schema.infer(frame, kinds={name: "integer"})[name].kind is Kind.INTEGER


def test_whole_numbers_that_repeat_or_scatter_are_measured() -> None:
    rng = np.random.default_rng(0)
    income = rng.permutation(100) * 311 + rng.integers(0, 9, 100)
    # A table may be sorted by what was measured.
    schema = Schema.infer(pd.DataFrame({"id": rng.integers(0, 50, 100), "income": income, "sorted": np.sort(income)}))
    assert {feature.kind for feature in schema.features} == {Kind.INTEGER}


def test_special_values_are_found_and_named() -> None:
    rng = np.random.default_rng(0)
    measured = rng.integers(0, 60, 400)
    found = {
        "codes": np.where(rng.random(400) < 0.1, -8, measured),
        "nines": np.where(rng.random(400) < 0.1, 999, measured),
        "losses": rng.integers(-60, 60, 400),
        "once": np.where(np.arange(400) == 7, -1, measured),
        "near": np.where(rng.random(400) < 0.1, 99, rng.integers(0, 98, 400)),
    }
    schema = Schema.infer(pd.DataFrame(found), min_count=5)
    assert {f.name: f.special for f in schema.features if f.special} == {"codes": (-8.0,), "nines": (999.0,)}
    assert Schema.from_json(schema.to_json()) == schema
    assert "special" not in json.loads(schema.to_json())["features"][2]
    assert schema.suggested().forbidden == {"codes": (-8,), "nines": (999,)}
    named = Schema.infer(pd.DataFrame(found), special={"losses": [-99, 5], "codes": []})
    assert named["losses"].special == (-99.0, 5.0)
    assert named["codes"].special == ()
    with pytest.raises(SchemaError, match="special lists numbers"):
        Schema.infer(pd.DataFrame(found), special={"losses": ["x"]})  # type: ignore[list-item]
    with pytest.raises(SchemaError, match="special values are for numbers; drop it from special"):
        Schema.infer(pd.DataFrame({"a": ["x", "y"]}), special={"a": [1]})


class Lazy:
    """A frame that is not there yet."""

    def collect(self) -> None: ...


def test_a_frame_that_is_not_known_is_told_how_to_become_one() -> None:
    with pytest.raises(DataError, match=r"Lazy; convert it with \.collect\(\)\.to_pandas\(\)"):
        Schema.infer(Lazy())  # type: ignore[arg-type]


def test_decimals_are_told_how_to_become_floats() -> None:
    with pytest.raises(DataError, match=r"'a' holds a Decimal.*\.astype\(float\)"):
        Schema.infer(pd.DataFrame({"a": [Decimal("1.5"), Decimal(2)]}))
    with pytest.raises(DataError, match=r"\.astype\(float\)"):
        Schema.infer(pd.DataFrame({"a": pd.Series([Decimal("1.5")], dtype=pd.ArrowDtype(pa.decimal128(5, 2)))}))


# -- overrides ---------------------------------------------------------------------------------------------------


def test_kinds_override_the_guess() -> None:
    assert describe([3, 1, 3], kinds="categorical").levels == (1, 3)
    assert describe([3, 1, 3], kinds=Kind.ORDINAL).levels == (1, 3)
    assert describe([0, 1, 1], kinds="boolean").levels == (0, 1)
    assert describe([3, 1], kinds="continuous").kind is Kind.CONTINUOUS
    assert describe([1.5, None, 2.5], kinds="categorical").n_states == 3
    assert describe([True, False], kinds="categorical").kind is Kind.CATEGORICAL
    assert describe([f"v{i}" for i in range(100)], kinds="categorical").n_states == 100
    assert describe(pd.Series([None, None], dtype="float64"), kinds="categorical").levels == ()


def test_a_continuous_feature_of_integer_dtype_is_whole() -> None:
    assert describe([3, 1], kinds="continuous").is_whole
    assert describe(pd.Series([3, None], dtype="Int64"), kinds="continuous").is_whole
    assert not describe([3.0, 1.0], kinds="continuous").is_whole


def test_orders_make_a_column_ordinal() -> None:
    feature = describe(["b", "a"], orders=["b", "c", "a"])
    assert (feature.kind, feature.levels) == (Kind.ORDINAL, ("b", "c", "a"))
    assert describe(["b", "a"], orders=["b", "a"], kinds="ordinal").levels == ("b", "a")
    assert describe([2.0, 0.5], orders=[2, 0.5]).levels == (2.0, 0.5)
    assert describe(pd.Series([0.1, 0.2], dtype="float32"), orders=[0.2, 0.1]).levels == tuple(
        np.array([0.2, 0.1], dtype="float32").tolist()
    )
    assert describe(pd.Categorical(["a", "b"], ["a", "b", "c"]), orders=["c", "b", "a"]).levels == ("c", "b", "a")
    assert describe(pd.Series([1, "a"], dtype=object), orders=["a", 1]).levels == ("a", 1)


def test_limits_may_be_wider_than_seen() -> None:
    feature = describe([3, 1], limits=(0, 10))
    assert (feature.minimum, feature.maximum) == (0.0, 10.0)
    assert (describe([3, 1], limits=(0.5, 3.5)).minimum, describe([3, 1], limits=(0.5, 3.5)).maximum) == (1.0, 3.0)
    assert describe([1.5], limits=[-0.25, 1.75]).minimum == -0.25


# -- reading and writing -----------------------------------------------------------------------------------------


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "age": [31, 52, 47],
            "income": [1.5, np.nan, 1e6],
            "job": ["cook", None, "nurse"],
            "grade": pd.Categorical(["b", "a", "c"], list("abc"), ordered=True),
            "member": pd.array([True, None, False], dtype="boolean"),
            "mixed": pd.Series([1, 1.0, True], dtype=object),
            "many": [f"level {i}" for i in range(3)],
            7: pd.Categorical([0.1, 1e-300, None]),
        }
    )


def test_json_round_trip(frame: pd.DataFrame, tmp_path: Path) -> None:
    schema = Schema.infer(frame)
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert [[type(v) for v in f.levels] for f in again.features] == [
        [type(v) for v in f.levels] for f in schema.features
    ]
    path = tmp_path / "schema.json"
    path.write_text(schema.to_json())
    assert Schema.from_json(path) == Schema.from_json(path.read_bytes()) == schema


@pytest.mark.parametrize("case", LEVEL_COLUMNS)
def test_json_round_trip_of_levels(case: str) -> None:
    schema = Schema.infer(pd.DataFrame({"a": LEVEL_COLUMNS[case][0]}))
    again = Schema.from_json(schema.to_json())
    assert again == schema
    assert [type(v) for v in again["a"].levels] == [type(v) for v in schema["a"].levels]


def test_table_text_and_html(frame: pd.DataFrame) -> None:
    schema = Schema.infer(frame)
    table = schema.table().set_index("feature")
    assert table.columns.tolist() == ["kind", "dtype", "values"]
    assert table.loc["age"].tolist() == ["integer", "int64", "31 to 52"]
    assert table.loc["income", "values"] == "1.5 to 1e+06 or missing"
    assert table.loc["grade", "values"] == "a < b < c"
    assert table.loc["job", "values"] == "cook, nurse or missing"
    lines = str(schema).splitlines()
    assert len(lines) == 1 + len(schema)
    assert lines[0].split() == ["feature", "kind", "dtype", "values"]
    assert lines[1].split()[:4] == ["age", "integer", "int64", "31"]
    assert schema._repr_html_().count("<tr") == len(lines)


def test_long_lists_of_levels_are_cut() -> None:
    assert describe(list("abcdefgh")).values_text() == "a, b, c, d, e, f, … (8)"
    assert describe(list("abcdefgh"), orders=list("abcdefgh")).values_text(2) == "a < b < … (8)"


def test_html_is_escaped() -> None:
    assert "<script>" not in Schema.infer(pd.DataFrame({"<script>": ["<script>"]}))._repr_html_()


def test_mask_position_and_item(frame: pd.DataFrame) -> None:
    schema = Schema.infer(frame)
    assert schema.mask(["job", 7]).tolist() == [False, False, True, False, False, False, False, True]
    assert not schema.mask([]).any()
    assert len(schema) == 8
    assert schema[7].name == 7
    with pytest.raises(SchemaError, match="did you mean 'job'"):
        schema.mask(["jobs"])


def one_feature(**fields: Any) -> str:
    """The JSON of a schema with one boolean feature, some of its fields replaced."""
    return json.dumps({"features": [{"name": "a", "kind": "boolean", "dtype": "bool"} | fields]})


BAD_JSON = {
    "no JSON": "age: integer",
    "another object": "{}",
    "no feature": '{"features": []}',
    "an unknown field": one_feature(color=1),
    "an unknown kind": one_feature(kind="text"),
    "an unknown dtype": one_feature(dtype="bol"),
    "a number without limits": one_feature(kind="integer", dtype="int64"),
    "a number without one limit": one_feature(kind="integer", dtype="int64", minimum=0),
    "limits upside down": one_feature(kind="integer", dtype="int64", minimum=2, maximum=1),
    "levels twice": one_feature(levels=[True, True]),
    "a level outside the categories": one_feature(dtype="category", levels=["a"], categories=["b"]),
    "a missing value of no sort": one_feature(missing_object="x"),
    "names twice": json.dumps({"features": [{"name": "a", "kind": "boolean", "dtype": "bool"}] * 2}),
}


def test_the_schema_that_the_bad_ones_start_from_is_good() -> None:
    assert Schema.from_json(one_feature(levels=[False, True]))["a"].n_states == 2


@pytest.mark.parametrize("case", BAD_JSON)
def test_what_is_no_schema_is_refused(case: str) -> None:
    with pytest.raises(SchemaError, match="this is not a schema"):
        Schema.from_json(BAD_JSON[case])


def test_a_schema_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="No such file"):
        Schema.from_json(tmp_path / "none.json")


def test_a_schema_does_not_change() -> None:
    schema = Schema.infer(pd.DataFrame({"a": [1]}))
    with pytest.raises(ValidationError):
        schema.features = ()  # type: ignore[misc]


def test_bounds_are_those_of_the_dtype() -> None:
    assert dtype_bounds(np.dtype("int8")) == (-128.0, 127.0)
    assert dtype_bounds(pd.UInt8Dtype()) == (0.0, 255.0)
    assert dtype_bounds(np.dtype("int64")) == (-(2.0**53 - 1), 2.0**53 - 1)
    assert dtype_bounds(np.dtype("float16"))[1] == 65504.0


# -- refusals ----------------------------------------------------------------------------------------------------

BAD_FRAMES: dict[str, tuple[Any, str]] = {
    "an array": (np.zeros(2), "wrap arrays with pd.DataFrame"),
    "a series": (pd.Series([1]), "wrap arrays with pd.DataFrame"),
    "no rows": (pd.DataFrame({"a": []}), "empty: 0 rows and 1 columns; give at least one"),
    "no columns": (pd.DataFrame(index=[0, 1]), "empty: 2 rows and 0 columns; give at least one"),
    "names that repeat": (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column names repeat: ['a']; rename them"),
    "tuples for names": (pd.DataFrame({("a", "b"): [1]}), "rename with frame.columns"),
    "a boolean for a name": (pd.DataFrame([[1]], columns=[True]), "rename with frame.columns"),
    "a fraction for a name": (pd.DataFrame([[1]], columns=[0.5]), "rename with frame.columns"),
}


@pytest.mark.parametrize("case", BAD_FRAMES)
def test_frames_that_are_refused(case: str) -> None:
    frame, remedy = BAD_FRAMES[case]
    with pytest.raises(DataError) as caught:
        Schema.infer(frame)
    assert remedy in str(caught.value)


BAD_COLUMNS: dict[str, tuple[Any, str]] = {
    "datetimes": (pd.to_datetime(["2020-01-01", None]), "turn it into numbers"),
    "datetimes with a zone": (pd.date_range("2020", periods=2, tz="UTC"), "turn it into numbers"),
    "timedeltas": (pd.to_timedelta([1, 2]), "turn it into numbers"),
    "periods": (pd.period_range("2020", periods=2), "turn it into numbers"),
    "Arrow dates": (pd.Series([date(2020, 1, 1)], dtype=pd.ArrowDtype(pa.date32())), "turn it into numbers"),
    "dates as objects": (pd.Series([date(2020, 1, 1), "a"], dtype=object), "pd.to_datetime(X['a']).dt.year"),
    "a missing date among objects": (pd.Series([pd.NaT, "a"], dtype=object), "convert it with .astype(str)"),
    "identifiers": ([f"person {i}" for i in range(100)], "drop it, or say kinds="),
    "too many categories": (pd.Categorical([f"v{i}" for i in range(2001)]), "group the rare ones or drop it"),
    "infinite numbers": ([1.0, np.inf, -np.inf], "holds 2 infinite numbers; replace them with NaN"),
    "numbers too large to square": ([1.0, 1e200], "replace it with NaN or a limit"),
    "infinite nullable": (pd.Series([1.0, np.inf], dtype="Float64"), "replace them with NaN"),
    "an infinite object": (pd.Series(["a", np.inf], dtype=object), "replace it with NaN"),
    "an infinite category": (pd.Categorical([1.0, np.inf]), "replace it with NaN"),
    "complex numbers": ([1j, 2.0], "convert it to numbers or text"),
    "sparse": (pd.arrays.SparseArray([0, 0, 1]), "convert it to numbers or text"),
    "intervals": (pd.interval_range(0, 2), "convert it to numbers or text"),
    "an Arrow list": (pd.Series([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))), "convert it to numbers or text"),
    "long double": (np.array([0.5, 1.5], dtype=np.longdouble), ".astype('float64')"),
    "lists": (pd.Series([[1], [2]]), "holds a list ([1]); categories may be text, numbers or booleans"),
    "dicts": (pd.Series([{}, {}]), "holds a dict"),
    "bytes": (pd.Series([b"a", "b"], dtype=object), "holds a bytes"),
    "decimals beside an equal number": (pd.Series([1, Decimal(1)], dtype=object), "holds a Decimal"),
    "categories of timestamps": (pd.Categorical(pd.to_datetime(["2020-01-01"])), ".cat.rename_categories(str)"),
    "categories of intervals": (pd.cut([1, 2, 3], 2), ".cat.rename_categories(str)"),
    "integers that floats blur": ([2**53 + 1, 1], "beyond 2**53, as identifiers do; drop it"),
    "integers far beyond": (pd.Series([2**64 - 1], dtype="uint64"), "beyond 2**53"),
    "the least integer": ([-(2**63), 1], "beyond 2**53"),
    "numbers without any": (pd.Series([None, None], dtype="float64"), "without any number; drop it"),
    "nullable without any": (pd.Series([None, None], dtype="Int64"), "without any number; drop it"),
}


@pytest.mark.parametrize("case", BAD_COLUMNS)
def test_columns_that_are_refused(case: str) -> None:
    column, remedy = BAD_COLUMNS[case]
    with pytest.raises(DataError) as caught:
        describe(column)
    assert "column 'a'" in str(caught.value)
    assert remedy in str(caught.value)


BAD_OVERRIDES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "an unknown kind": ([1], {"kinds": "intger"}, "did you mean 'integer'?"),
    "an unknown kind beside an order": (["a"], {"kinds": "ordnal", "orders": ["a"]}, "did you mean 'ordinal'?"),
    "another kind beside an order": (["a"], {"kinds": "categorical", "orders": ["a"]}, "drop one"),
    "text as a number": (["1", "2"], {"kinds": "integer"}, "convert it to numbers first"),
    "a category as a number": (pd.Categorical([1, 2]), {"kinds": "continuous"}, "convert it to numbers first"),
    "fractions as integer": ([0.5], {"kinds": "integer"}, "round it first or leave it continuous"),
    "three values as boolean": ([1, 2, 3], {"kinds": "boolean"}, "use categorical"),
    "an order that lacks a value": (["a", "b"], {"orders": ["a"]}, "the order lacks 'b'; list every value"),
    "an order that repeats": (["a", "b"], {"orders": ["a", "b", "a"]}, "list each once"),
    "an order with a missing value": (["a", "b"], {"orders": ["a", "b", None]}, "list the values of the column"),
    "an order beyond the categories": (pd.Categorical(["a"]), {"orders": ["a", "b"]}, "list the values of the column"),
    "an order beyond the dtype": (np.array([1], "int8"), {"orders": [1, 300]}, "list the values of the column"),
    "an order of another type": ([1, 2], {"orders": [1, 2, "x"]}, "list the values of the column"),
    "an order of text for booleans": ([True], {"orders": [True, "x"]}, "list the values of the column"),
    "an infinite order": ([1.5], {"orders": [1.5, np.inf]}, "list the values of the column"),
    "narrower limits": ([1, 5], {"limits": (2, 9)}, "narrower than the values seen, 1 to 5; widen them"),
    "limits upside down": ([1, 5], {"limits": (9, 0)}, "narrower than the values seen"),
    "infinite limits": ([1, 5], {"limits": (-np.inf, np.inf)}, "must be finite"),
    "limits that are no numbers": ([1, 5], {"limits": (np.nan, 9)}, "must be finite"),
    "one limit": ([1, 5], {"limits": (0,)}, "two numbers, (lowest, highest)"),
    "half a limit": ([1, 5], {"limits": (0, None)}, "two numbers, (lowest, highest)"),
    "limits of text": (["a", "b"], {"limits": (0, 1)}, "drop it from limits"),
    "limits beyond the dtype": (np.array([1], "int8"), {"limits": (0, 1000)}, "beyond what int8 can hold, -128 to 127"),
}


@pytest.mark.parametrize("case", BAD_OVERRIDES)
def test_overrides_that_are_refused(case: str) -> None:
    column, overrides, remedy = BAD_OVERRIDES[case]
    with pytest.raises(SchemaError) as caught:
        describe(column, **overrides)
    assert "column 'a'" in str(caught.value)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    "override", [{"kinds": {"agee": "integer"}}, {"orders": {"agee": [1]}}, {"limits": {"agee": (0, 1)}}]
)
def test_an_override_for_an_unknown_column(override: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="column 'agee' is unknown; did you mean 'age'") as caught:
        Schema.infer(pd.DataFrame({"age": [1]}), **override)
    assert isinstance(caught.value, UserError)


def test_the_frame_is_left_as_it_was(frame: pd.DataFrame) -> None:
    before = frame.copy()
    Schema.infer(frame)
    pd.testing.assert_frame_equal(frame, before)


# -- constraints -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def described() -> Schema:
    columns = {
        "age": [18, 99, 40],
        "income": [0.5, 9.25, np.nan],
        "job": ["cook", None, "nurse"],
        "grade": pd.Categorical(["b", "a", "c"], list("abc"), ordered=True),
        "member": [True, False, True],
        "sector": pd.Categorical([1, 2, 3]),
        "smoker": ["no", "yes", "no"],
        7: [1.5, 2.5, 3.5],
    }
    return Schema.infer(pd.DataFrame(columns), kinds={"smoker": "boolean"})


FITTING: list[dict[str, Any]] = [
    {},
    {"frozen": ["age", 7]},
    {"ranges": {"age": (90, 200), "income": [relative(-0.5, 0.5), (None, 3.5)], 7: delta(0, 500)}},
    {"increase": ["age", "grade"], "decrease": [7]},
    {"allowed": {"job": ["cook", None], "sector": [1.0, 3], "age": [20, 30.0], "income": [None, 2.5], "member": [1]}},
    {"forbidden": {"age": [7, 0.5, None], "job": ["cook"], "smoker": ["yes"]}},
    {"transitions": {"job": {"cook": [None], None: ["nurse"]}, "sector": {1: [2, 3]}, "member": {True: [False]}}},
    {"steps": {"age": 50, "income": 0.3}},
    {"cost": {"age": per_unit(1), "job": 3}, "max_cost": 4},
    {"rules": ["age / income < 9", "grade >= 'b'", "sector in [1, 2]", "member == true", "smoker == 'no'", "`7` > 1"]},
]


@pytest.mark.parametrize("fields", FITTING)
def test_constraints_that_fit(described: Schema, fields: dict[str, Any]) -> None:
    wish = Constraints(**fields)
    described.check_constraints(wish)
    carrying = described.with_constraints(wish)
    again = Schema.from_json(carrying.to_json())
    assert again == carrying
    assert again.constraints == wish
    assert (again == described) == (fields == {})
    assert described.constraints == Constraints()
    assert hash(again) == hash(carrying)


MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown frozen feature": ({"frozen": ["agee"]}, "frozen: feature 'agee' is unknown; did you mean 'age'?"),
    "an unknown range": ({"ranges": {"agee": (1, 2)}}, "ranges: feature 'agee' is unknown; did you mean 'age'?"),
    "a number as text": ({"steps": {"7": 1}}, "steps: feature '7' is unknown; did you mean 7?"),
    "an unknown cost": ({"cost": {"jobs": 1}}, "cost: feature 'jobs' is unknown; did you mean 'job'?"),
    "up without an order": (
        {"increase": ["job"]},
        "increase 'job': it is categorical and has no order; use allowed or transitions",
    ),
    "down for a boolean": (
        {"decrease": ["member"]},
        "decrease 'member': it is boolean and has no order; use allowed or transitions",
    ),
    "a range of a category": (
        {"ranges": {"sector": (1, 2)}},
        "ranges 'sector': it is categorical, and ranges are for numbers; use allowed or transitions",
    ),
    "a range of an ordinal": (
        {"ranges": {"grade": delta(0, 1)}},
        "ranges 'grade': it is ordinal, and ranges are for numbers; use allowed",
    ),
    "a step of a category": (
        {"steps": {"job": 1}},
        "steps 'job': it is categorical, and steps are for numbers; use allowed or transitions",
    ),
    "a cost per unit of a level": (
        {"cost": {"grade": per_unit(1)}},
        "cost 'grade': it is ordinal, and a cost per unit is for numbers; use a plain number, the cost of any change",
    ),
    "a range outside": (
        {"ranges": {"age": (100, 120)}},
        "ranges 'age': 100 to 120 lies outside the column's limits, 18 to 99; choose limits inside",
    ),
    "an open range outside": (
        {"ranges": {"income": (None, 0.25)}},
        "ranges 'income': at most 0.25 lies outside the column's limits, 0.5 to 9.25; choose limits inside",
    ),
    "a range between whole numbers": (
        {"ranges": {"age": (20.25, 20.75)}},
        "ranges 'age': 20.25 to 20.75 holds no whole number, and the column holds no others; widen it",
    ),
    "a fractional step of whole numbers": (
        {"steps": {"age": 2.5}},
        "steps 'age': the step 2.5 has a fraction, and the column holds whole numbers; use a whole step",
    ),
    "a step beyond the limits": (
        {"steps": {"age": 100}},
        "steps 'age': the step 100 has no multiple within the column's limits, 18 to 99; choose a smaller one",
    ),
    "a range and a step that meet outside": (
        {"ranges": {"age": (80, 120)}, "steps": {"age": 60}},
        "ranges 'age': 80 to 120 holds no multiple of the step 60 within the limits 18 to 99; widen it",
    ),
    "an unknown level": ({"allowed": {"job": ["cok"]}}, "allowed 'job': value 'cok' is unknown; did you mean 'cook'?"),
    "a level as text": ({"allowed": {"sector": ["1"]}}, "allowed 'sector': value '1' is unknown; did you mean 1?"),
    "an unknown forbidden level": (
        {"forbidden": {"job": ["cok"]}},
        "forbidden 'job': value 'cok' is unknown; did you mean 'cook'?",
    ),
    "a start that is unknown": (
        {"transitions": {"job": {"cok": ["nurse"]}}},
        "transitions 'job': value 'cok' is unknown; did you mean 'cook'?",
    ),
    "an end that is unknown": (
        {"transitions": {"grade": {"a": ["d"]}}},
        "transitions 'grade': value 'd' is unknown; known: a, b, c",
    ),
    "transitions of numbers": (
        {"transitions": {"age": {18: [19]}}},
        "transitions 'age': it is integer, and transitions are for levels; use ranges, increase or decrease",
    ),
    "missing where none is": (
        {"allowed": {"age": [None]}},
        "allowed 'age': missing values were never seen in this column; leave None out",
    ),
    "everything forbidden": (
        {"forbidden": {"member": [0, 1]}},
        "forbidden 'member': every value is forbidden; to keep it as it is, put it in frozen",
    ),
    "text for a number": (
        {"allowed": {"age": ["40"]}},
        "allowed 'age': '40' is no number, and the column holds numbers; list numbers",
    ),
    "truth for a number": (
        {"forbidden": {"age": [True]}},
        "forbidden 'age': True is no number, and the column holds numbers; list numbers",
    ),
    "a fraction for a whole number": (
        {"allowed": {"age": [40.5]}},
        "allowed 'age': 40.5 has a fraction, and the column holds whole numbers; list whole numbers",
    ),
    "a value outside": (
        {"allowed": {"age": [40, 100]}},
        "allowed 'age': 100 lies outside the column's limits, 18 to 99; list values inside",
    ),
    "a rule with an unknown name": (
        {"rules": ["agee < 40"]},
        "rule 'agee < 40': feature 'agee' is unknown; did you mean 'age'?",
    ),
    "a rule that compares kinds": (
        {"rules": ["age < 'old'"]},
        "rule \"age < 'old'\": compares age, a number, with the text 'old'; write a number",
    ),
    "a rule with an unknown level": (
        {"rules": ["grade >= 'd'"]},
        "rule \"grade >= 'd'\": level of grade: 'd' is unknown; known: a, b, c",
    ),
    "a rule that orders categories": (
        {"rules": ["sector > 1"]},
        "rule 'sector > 1': sector is a category and has no order; use ==, != or in",
    ),
    "a rule on a boolean of text": (
        {"rules": ["smoker == true"]},
        "rule 'smoker == true': level of smoker: True is unknown; known: no, yes",
    ),
}


@pytest.mark.parametrize("case", MISFITS)
def test_constraints_that_do_not_fit_are_refused(described: Schema, case: str) -> None:
    fields, reason = MISFITS[case]
    for refuse in (described.check_constraints, described.with_constraints):
        with pytest.raises(ConstraintError) as caught:
            refuse(Constraints(**fields))
        assert str(caught.value) == reason
        assert isinstance(caught.value, RuleError) == reason.startswith("rule ")


@pytest.mark.parametrize("case", MISFITS)
def test_a_schema_file_with_constraints_that_do_not_fit_is_refused(described: Schema, case: str) -> None:
    fields, reason = MISFITS[case]
    raw = json.loads(described.to_json()) | {"constraints": Constraints(**fields).model_dump()}
    with pytest.raises(SchemaError, match="this is not a schema") as caught:
        Schema.from_json(json.dumps(raw))
    assert reason in str(caught.value)


def test_a_schema_without_constraints_is_written_as_before(described: Schema) -> None:
    assert list(json.loads(described.to_json())) == ["features"]
    assert list(described.model_dump(mode="json")) == ["features"]
    assert Schema.from_json(described.to_json()).constraints == Constraints()


def test_the_constraints_of_a_schema_override_nothing(described: Schema) -> None:
    with pytest.raises(ConstraintError) as caught:
        described.with_constraints(Constraints(override=["age"]))
    assert str(caught.value) == "override 'age': the constraints of a schema have none to override; leave it out"
    with pytest.raises(ConstraintError, match=r"constraints must be Constraints\(\.\.\.\), got dict"):
        described.with_constraints({"frozen": ["age"]})  # type: ignore[arg-type]


def test_what_features_are_in_a_rule(described: Schema) -> None:
    assert [feature.rule_kind for feature in described.features] == [
        *("number", "number", "level", "ordinal", "boolean", "level", "level", "number")
    ]
    assert describe([0, 1, 1], kinds="boolean").rule_kind == "boolean"


def test_levels_are_found_by_value() -> None:
    feature = describe(pd.Series([1, "a", True, 2.5], dtype=object))
    assert [feature.is_level(v) for v in (1, 1.0, "1", "a", True, 2.5, 2, False)] == [
        *(True, True, False, True, True, True, False, False)
    ]
