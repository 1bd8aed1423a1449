"""Features that follow have exactly the value that was stated, in every dtype that a column may have."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints, Schema
from dicoflex.answers.verification import verify
from dicoflex.limits.programs import Consequences
from dicoflex.table.encoding import Encoding

N = 40
MOVES = np.random.default_rng(1).integers(-6, 7, 200)
NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint32", "Int8", "Int64", "UInt16"]
FRACTIONS = ["float16", "float32", "float64", "Float32", "Float64", "float[pyarrow]", "double[pyarrow]"]
LEVELS: dict[str, pd.Series] = {
    "object": pd.Series(["a", "b", "c", "b"] * 10, dtype=object),
    "str": pd.Series(["a", "b", "c", "b"] * 10, dtype="str"),
    "string": pd.Series(["a", "b", "c", "b"] * 10, dtype="string"),
    "category": pd.Series(pd.Categorical(["a", "b", "c", "b"] * 10, categories=list("abcd"))),
    "ordinal": pd.Series(pd.Categorical(["a", "b", "c", "b"] * 10, categories=list("cba"), ordered=True)),
}
TRUTHS = ["bool", "boolean", "bool[pyarrow]"]


def table(column: pd.Series) -> tuple[pd.DataFrame, Schema]:
    """A cause that is a whole number, and the feature that follows."""
    frame = pd.DataFrame({"years": np.arange(N) % 20, "x": column.to_numpy(copy=True)})
    frame["x"] = column.array
    measured = pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_bool_dtype(column.dtype)
    room = {"x": (-10.0 if column.min() < 10 else 0.0, 100.0)} if measured else {}
    return frame, Schema.infer(frame, limits={"years": (-10.0, 40.0), **room})


def followed(frame: pd.DataFrame, schema: Schema, text: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows, and the same with other years and with what follows from that, as a caller sees them."""
    wish = Constraints(consequences={"x": text})
    schema.check_constraints(wish)
    rows = frame.iloc[np.arange(len(MOVES)) % N].reset_index(drop=True)
    encoding = Encoding.fit(frame, schema)
    own = encoding.encode(rows)
    moved = own.copy()
    moved[:, 0] += MOVES
    settled = Consequences.of(wish.parsed_consequences, schema).settle(moved, own)
    index = pd.MultiIndex.from_arrays([np.arange(len(rows)), np.zeros(len(rows), dtype=int)], names=["row", "cf"])
    found = encoding.decode(moved, index)
    assert list(found.dtypes) == list(frame.dtypes)
    checked = verify(rows, found, np.arange(len(rows)), wish, schema)
    held = checked[checked["constraint"] == "consequence x"]["holds"].to_numpy()
    assert held[settled].all()
    return rows[settled].reset_index(drop=True), found[settled].reset_index(drop=True)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_whole_numbers_are_rounded_to_what_was_meant(dtype: str) -> None:
    frame, schema = table(pd.Series(np.arange(N) % 20 + 20, dtype=dtype))
    rows, found = followed(frame, schema, "was.x + 0.3 * (years - was.years)")
    meant = [
        round(int(x) + 0.3 * (int(b) - int(a)))
        for x, a, b in zip(rows["x"], rows["years"], found["years"], strict=True)
    ]
    assert found["x"].tolist() == meant
    assert len(found) == len(MOVES)


@pytest.mark.parametrize("dtype", FRACTIONS)
def test_fractions_are_what_their_column_holds(dtype: str) -> None:
    values = np.round(np.linspace(1.0, 9.0, N), 2)
    frame, schema = table(pd.Series(values).astype(dtype))
    rows, found = followed(frame, schema, "was.x + (years - was.years) / 7")
    narrow = {"float16": np.float16, "float32": np.float32, "Float32": np.float32, "float[pyarrow]": np.float32}
    hold = narrow.get(dtype, np.float64)
    meant = [
        float(hold(float(x) + (int(b) - int(a)) / 7))
        for x, a, b in zip(rows["x"], rows["years"], found["years"], strict=True)
    ]
    assert [float(value) for value in found["x"]] == meant


@pytest.mark.parametrize("kind", LEVELS)
def test_levels_follow(kind: str) -> None:
    frame, schema = table(LEVELS[kind])
    rows, found = followed(frame, schema, "if years > was.years then 'b' else was.x")
    meant = ["b" if b > a else x for x, a, b in zip(rows["x"], rows["years"], found["years"], strict=True)]
    assert found["x"].astype(object).tolist() == meant
    assert len(found) == len(MOVES)


@pytest.mark.parametrize("dtype", TRUTHS)
def test_truths_follow(dtype: str) -> None:
    frame, schema = table(pd.Series(np.arange(N) % 3 == 0).astype(dtype))
    rows, found = followed(frame, schema, "if changed(years) then true else was.x")
    meant = [b != a or bool(x) for x, a, b in zip(rows["x"], rows["years"], found["years"], strict=True)]
    assert [bool(value) for value in found["x"]] == meant


@pytest.mark.parametrize("dtype", ["Int64", "float64", "Float32"])
def test_a_missing_value_stays_missing_where_the_column_may(dtype: str) -> None:
    column = pd.Series([None, 3.0] * (N // 2)).astype(dtype)
    frame, schema = table(column)
    rows, found = followed(frame, schema, "was.x + (years - was.years)")
    assert found["x"].isna().tolist() == rows["x"].isna().tolist()
    known = rows["x"].notna()
    assert (found["x"] - rows["x"])[known].tolist() == (found["years"] - rows["years"])[known].tolist()


@pytest.mark.parametrize("text", ["1 / (years - years)", "was.x + 0 / 0"])
def test_what_has_no_value_is_refused(text: str) -> None:
    frame, schema = table(pd.Series(np.arange(N), dtype="int64"))
    rows, found = followed(frame, schema, text)
    assert len(rows) == len(found) == 0


def test_what_follows_from_what_follows_is_worked_out_in_turn() -> None:
    frame = pd.DataFrame({"c": np.arange(N), "b": np.arange(N), "a": np.arange(N), "cause": np.arange(N)})
    schema = Schema.infer(frame, limits=dict.fromkeys(frame.columns, (-100.0, 200.0)))
    wish = Constraints(consequences={"a": "b + 1", "b": "c + 1", "c": "cause + 1"})
    encoding = Encoding.fit(frame, schema)
    own = encoding.encode(frame)
    moved = own.copy()
    moved[:, 3] += 5
    assert Consequences.of(wish.parsed_consequences, schema).settle(moved, own).all()
    found = encoding.decode(moved)
    assert (found["c"] == found["cause"] + 1).all()
    assert (found["b"] == found["c"] + 1).all()
    assert (found["a"] == found["b"] + 1).all()
