"""Frames of pandas, polars and Arrow, dicts of columns and arrays are taken everywhere, and come back as they came."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dicoflex import DiCoFlex, Schema, load
from dicoflex.errors import DataError, QueryError, SettingError

NUMBERS = ["gain", "price", "visits"]
ASKED: dict[str, Any] = {"target": "yes", "n": 2, "random_state": 0}
KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "pandas of Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "polars, lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "Arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "dict of lists": lambda frame: {name: frame[name].tolist() for name in frame.columns},
    "dict of arrays": lambda frame: {name: frame[name].to_numpy() for name in frame.columns},
    "array": lambda frame: frame.to_numpy(),
}


def as_frame(given: Any) -> pd.DataFrame:
    """What came back, as a frame to compare."""
    if isinstance(given, np.ndarray):
        return pd.DataFrame(given, columns=NUMBERS)
    found = given.collect() if isinstance(given, pl.LazyFrame) else given
    found = pd.DataFrame(found) if isinstance(found, dict) else found
    found = found if isinstance(found, pd.DataFrame) else found.to_pandas()
    return found.reset_index(drop=True)[NUMBERS]


@pytest.fixture(scope="module")
def numbers(applicants: pd.DataFrame) -> pd.DataFrame:
    return applicants[NUMBERS].astype(float).reset_index(drop=True)


@pytest.fixture(scope="module")
def labels(numbers: pd.DataFrame) -> np.ndarray:
    return np.where(numbers["gain"] > 400, "yes", "no")


@pytest.fixture(scope="module")
def fitted(numbers: pd.DataFrame, labels: np.ndarray, quickly: Any) -> DiCoFlex:
    return quickly(numbers, labels)


@pytest.fixture(scope="module")
def expected(fitted: DiCoFlex, numbers: pd.DataFrame) -> pd.DataFrame:
    return fitted.explain(numbers.head(4), **ASKED).frame


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_equal_and_come_back_as_the_rows_came(
    kind: str, fitted: DiCoFlex, expected: pd.DataFrame, numbers: pd.DataFrame
) -> None:
    rows = KINDS[kind](numbers.head(4))
    cfs = fitted.explain(rows, **ASKED)
    pd.testing.assert_frame_equal(cfs.frame, expected)
    assert cfs.verify(rows)["holds"].all()
    back = cfs.to_native()
    assert type(back) is type(rows)
    pd.testing.assert_frame_equal(as_frame(back), expected.reset_index(drop=True), check_dtype=False)
    pd.testing.assert_frame_equal(
        fitted.sample(rows, **ASKED), fitted.sample(numbers.head(4), **ASKED), check_index_type=False
    )
    pd.testing.assert_frame_equal(fitted.probability(rows), fitted.probability(numbers.head(4)))
    same = fitted.log_density(rows, rows, target="yes")
    assert same.tolist() == fitted.log_density(numbers.head(4), numbers.head(4), target="yes").tolist()
    assert fitted.suggested(rows, target="yes") == fitted.suggested(numbers.head(4), target="yes")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "pandas"])
def test_a_model_that_was_fitted_on_any_kind_gives_the_same_answers(
    kind: str, expected: pd.DataFrame, numbers: pd.DataFrame, labels: np.ndarray, quickly: Any
) -> None:
    """The black box is given the kind of frame that `fit` got, in the types that it had."""
    X, seen = KINDS[kind](numbers), []

    def predict_proba(frame: Any) -> np.ndarray:
        seen.append(frame)
        yes = as_frame(frame)["gain"].to_numpy(float) > 400
        return np.column_stack([~yes, yes]).astype(float)

    named = {"feature_names": NUMBERS} if kind == "array" else {}
    model = quickly(X, labels, **named)
    cfs = model.explain(KINDS[kind](numbers.head(4)), **ASKED)
    pd.testing.assert_frame_equal(cfs.frame, expected, check_dtype=False)
    checked = model.explain(numbers.head(4), **ASKED, check=predict_proba)
    assert checked.info["valid"].all()
    assert {type(frame) for frame in seen} == {type(X)}
    if isinstance(X, pl.LazyFrame | pl.DataFrame):
        assert seen[0].lazy().collect_schema() == X.lazy().collect_schema()


def test_the_black_box_of_fit_and_relax_gets_the_kind_that_fit_got(
    numbers: pd.DataFrame, labels: np.ndarray, quickly: Any
) -> None:
    seen: list[type] = []

    def predict_proba(frame: pl.DataFrame) -> pl.DataFrame:
        seen.append(type(frame))
        return frame.select(no=(pl.col("gain") <= 400).cast(pl.Float64), yes=(pl.col("gain") > 400).cast(pl.Float64))

    X = pl.from_pandas(numbers)
    model = quickly(X, pl.Series(labels), predict_proba=predict_proba)
    assert set(seen) == {pl.DataFrame}
    seen.clear()
    cfs = model.explain(X.head(2), **ASKED, frozen=["price"])
    cfs.relax(check=predict_proba)
    assert set(seen) == {pl.DataFrame}


def test_dtypes_of_polars_come_back(tmp_path: Path, quickly: Any) -> None:
    """Also with missing values, and from a file; an Enum is an ordinal feature."""
    rng = np.random.default_rng(0)
    n = 200
    hours = rng.integers(10, 60, n)
    grade = pl.Series(rng.choice(["low", "mid", "high"], n), dtype=pl.Enum(["low", "mid", "high"]))
    X = pl.DataFrame(
        {
            "hours": pl.Series(hours, dtype=pl.UInt8),
            "visits": pl.Series([None if i % 7 == 0 else int(v) for i, v in enumerate(hours // 5)], dtype=pl.Int16),
            "member": [None if i % 11 == 0 else bool(v % 2) for i, v in enumerate(hours)],
            "rate": pl.Series(rng.integers(4, 40, n) / 4, dtype=pl.Float32),
            "grade": grade,
            "city": pl.Series(rng.choice(["Ulm", "Rome"], n), dtype=pl.Categorical),
            "job": rng.choice(["cook", "nurse", None], n).tolist(),
        }
    )
    labels = np.where(hours > 35, "yes", "no")
    model: DiCoFlex = quickly(X, labels)
    assert model.schema_["grade"].kind == "ordinal"
    assert model.schema_["grade"].levels == ("low", "mid", "high")
    assert model.schema_["visits"].dtype == "Int16"
    assert model.schema_["member"].dtype == "boolean"
    assert model.schema_["hours"].dtype == "uint8"
    model.save(tmp_path / "m.dicoflex")
    for asked in (model, load(tmp_path / "m.dicoflex")):
        back = asked.explain(X.head(6), **ASKED).to_native()
        assert back.columns == ["row", "cf", *X.columns]
        assert back.select(X.columns).schema == X.schema
    assert Schema.infer(X) == Schema.infer(X.lazy())
    arrow = X.to_arrow()
    back = model.explain(arrow.slice(0, 6), **ASKED).to_native()
    assert back.drop_columns(["row", "cf"]).schema.types == arrow.schema.types


def test_an_array_is_named_by_place(numbers: pd.DataFrame, fitted: DiCoFlex) -> None:
    array = numbers.to_numpy()
    assert Schema.infer(array).names == ["x0", "x1", "x2"]
    assert Schema.infer(array, feature_names=NUMBERS) == Schema.infer(numbers)
    with pytest.raises(SettingError, match="the array has 2 columns, and there are 3 features"):
        fitted.explain(array[:, :2], **ASKED)
    with pytest.raises(
        SettingError, match="feature_names= names the columns of an array, and the rows are a DataFrame"
    ):
        Schema.infer(numbers, feature_names=NUMBERS)
    with pytest.raises(DataError, match="got ndarray"):
        Schema.infer(array[0])


REFUSED: dict[str, tuple[Any, dict[str, Any]]] = {
    "polars decimals": (pl.DataFrame({"a": pl.Series(["1.50"]).cast(pl.Decimal(5, 2))}), {"pl": pl}),
    "polars dates": (pl.DataFrame({"a": [pd.Timestamp(2024, 5, 1).date()]}), {"pl": pl}),
    "polars times": (pl.DataFrame({"a": [pd.Timestamp(2024, 5, 1, 9).time()]}), {"pl": pl}),
    "polars durations": (pl.DataFrame({"a": [pd.Timedelta("1h").to_pytimedelta()]}), {"pl": pl}),
    "Arrow decimals": (pa.table({"a": pa.array([1]).cast(pa.decimal128(20, 1))}), {}),
    "Arrow dates": (pa.table({"a": [pd.Timestamp(2024, 5, 1).to_pydatetime()]}), {}),
    "Arrow times": (pa.table({"a": [pd.Timestamp(2024, 5, 1, 9).time()]}), {}),
    "Arrow durations": (pa.table({"a": [pd.Timedelta("1h").to_pytimedelta()]}), {}),
    "pandas decimals": (pd.DataFrame({"a": pd.Series([1], dtype=pd.ArrowDtype(pa.decimal128(20, 1)))}), {}),
    "pandas dates": (pd.DataFrame({"a": pd.to_datetime(["2024-05-01"])}), {}),
    "pandas periods": (pd.DataFrame({"a": pd.period_range("2024-05", periods=1)}), {}),
    "pandas times": (pd.DataFrame({"a": pd.Series([pd.Timestamp(2024, 1, 1, 9).time()])}), {}),
    "pandas durations": (pd.DataFrame({"a": [pd.Timedelta("1h")]}), {}),
    "objects that are dates": (pd.DataFrame({"a": pd.Series([pd.Timestamp(2024, 5, 1).date()], dtype=object)}), {}),
    "Arrow dates in pandas": (pd.DataFrame({"a": pd.to_datetime(["2024-05-01"])}).astype("timestamp[us][pyarrow]"), {}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_decimals_and_times_are_refused_with_a_remedy_that_works(case: str) -> None:
    import pyarrow.compute as pc

    X, names = REFUSED[case]
    with pytest.raises(DataError, match="column 'a' holds") as refused:
        Schema.infer(X)
    told = str(refused.value)
    code = told.split("such as " if "such as " in told else "convert it with ")[1].removesuffix(", or drop it")
    found = eval(code, {"X": X, "pc": pc, "pd": pd, **names})  # the message's own code
    column = X.select(found).to_series() if isinstance(found, pl.Expr) else found
    Schema.infer(pd.DataFrame({"a": column.to_pandas() if hasattr(column, "to_pandas") else column}))


def test_rows_that_are_no_frame_are_refused(fitted: DiCoFlex) -> None:
    with pytest.raises(QueryError, match="a frame of pandas, polars or Arrow, a dict of columns"):
        fitted.explain([[1, 2, 3]], **ASKED)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=r"one row is \{'age': \[31\]"):
        fitted.explain({"gain": 1, "price": 2, "visits": 3}, **ASKED)
