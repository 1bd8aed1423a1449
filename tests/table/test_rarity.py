"""What few rows have is not named: levels, missing values, categories, extremes, digits and counts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicoflex.errors import DataError, SchemaError, SettingError
from dicoflex.table.encoding import Encoding
from dicoflex.table.rarity import common_limits, outwards, round_between, round_count, to_digits
from dicoflex.table.schema import Schema
from dicoflex.table.survey import rare_rows, take_rows

NUMBERS = st.floats(-1e150, 1e150, allow_nan=False, allow_subnormal=False)


def digits_of(number: float) -> int:
    """How many significant digits a number is written with."""
    mantissa = f"{number:.16e}".split("e")[0].replace(".", "").lstrip("-").rstrip("0")
    return max(1, len(repr(number).split("e")[0].replace(".", "").strip("-").strip("0")) if mantissa else 1)


@given(NUMBERS, st.booleans())
def test_outwards_is_near_on_the_right_side_and_short(value: float, up: bool) -> None:
    rounded = outwards(value, up=up)
    assert (rounded >= value) if up else (rounded <= value)
    assert abs(Fraction(rounded) - Fraction(value)) <= abs(Fraction(value)) / 10 * Fraction(1000001, 1000000)
    assert digits_of(rounded) <= 2
    assert outwards(rounded, up=up) == rounded


@given(NUMBERS, NUMBERS)
def test_a_round_number_lies_between(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if low < high:
        assert low < round_between(low, high) <= high


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(53_217.43, 53_990.1, 53_600.0), (0.0, 1.0, 1.0), (41.0, 42.0, 42.0), (-3.17, -3.11, -3.14), (99.5, 100.2, 100.0)],
)
def test_round_numbers_have_few_digits(low: float, high: float, expected: float) -> None:
    assert round_between(low, high) == expected


def test_floats_side_by_side_have_nothing_rounder_between() -> None:
    low = 1.0
    high = math.nextafter(low, 2.0)
    assert round_between(low, high) == high


def test_limits_are_shared_or_round() -> None:
    values = np.array([18.0] * 4 + [19.0] * 20 + [50.0] * 20 + [83.3, 84.4, 85.5, 97.0, 101.0])
    assert common_limits(values, 5) == (19.0, 84.0)
    assert common_limits(values, 1) == (18.0, 101.0)
    assert common_limits(values, 2) == (18.0, 97.0)


@given(st.lists(st.integers(-50, 50), min_size=12, max_size=60), st.integers(2, 6))
def test_no_limit_is_that_of_a_few(column: list[int], min_count: int) -> None:
    values = np.array(column, dtype=float)
    low, high = common_limits(values, min_count)
    assert (values <= low).sum() >= min_count or low == outwards(np.sort(values)[min_count - 1], up=False)
    assert (values >= low).sum() >= len(values) - min_count + 1
    assert (values <= high).sum() >= len(values) - min_count + 1


def test_digits_and_counts() -> None:
    assert to_digits(np.array([0.0, 123456.0, -0.000123456])).tolist() == [0.0, 123500.0, -0.0001235]
    assert [round_count(n, 5) for n in (0, 2, 3, 12, 99, 100, 12_345)] == [0, 0, 5, 10, 100, 100, 12_000]
    assert round_count(12_345, 1) == 12_345


# -- schemas -----------------------------------------------------------------------------------------------------------


def table(n: int = 300) -> pd.DataFrame:
    """A level, a category and a missing value that three rows have, and single extremes."""
    rng = np.random.default_rng(0)
    job = rng.choice(["cook", "nurse"], n).astype(object)
    job[:3] = "astronaut"
    town = pd.Series(rng.choice(["Rome", "Ulm"], n))
    town[:2] = "Atlantis"
    age = pd.array(rng.integers(20, 60, n), dtype="Int64")
    age[3:6] = pd.NA
    pay = rng.normal(3000.0, 500.0, n)
    pay[7] = 7_654_321.5
    return pd.DataFrame(
        {
            "job": job,
            "town": pd.Categorical(town, categories=["Atlantis", "Oslo", "Rome", "Ulm"]),
            "age": age,
            "pay": pay,
            "wide": rng.normal(size=n).astype("float32"),
            "small": np.append(rng.integers(-120, 120, n - 1), 127).astype("int8"),
        }
    )


def test_rare_levels_categories_and_missing_values_are_not_named() -> None:
    schema = Schema.infer(table(), min_count=5)
    assert schema.min_count == 5
    assert schema["job"].levels == ("cook", "nurse")
    assert schema["town"].levels == ("Rome", "Ulm")
    assert schema["town"].categories == ("Oslo", "Rome", "Ulm")
    assert not schema["age"].missing
    assert 3000 < (schema["pay"].maximum or 0) < 6000
    text = schema.to_json()
    assert "astronaut" not in text
    assert "Atlantis" not in text
    assert Schema.from_json(text) == schema


def test_a_min_count_of_one_is_what_was_before() -> None:
    plain = Schema.infer(table())
    assert Schema.infer(table(), min_count=1) == plain
    assert "min_count" not in plain.to_json()
    assert "astronaut" in plain["job"].levels
    assert plain["pay"].maximum == 7_654_321.5


def test_limits_are_numbers_that_the_dtype_holds() -> None:
    schema = Schema.infer(table(), min_count=5)
    assert schema["small"].maximum <= 127
    for end in (schema["wide"].minimum, schema["wide"].maximum):
        assert float(np.float32(end)) == end


def test_what_the_caller_states_stays_as_stated() -> None:
    schema = Schema.infer(
        table().drop(columns="town"),
        orders={"job": ["cook", "nurse", "astronaut"]},
        limits={"pay": (0, 1e7)},
        min_count=5,
    )
    assert schema["job"].levels == ("cook", "nurse", "astronaut")
    assert schema["pay"].maximum == 1e7


def test_counts_are_those_of_values_and_types() -> None:
    column = pd.Series([1] * 6 + [True] * 6 + ["1"] * 2, dtype=object)
    assert Schema.infer(pd.DataFrame({"a": column}), min_count=5)["a"].levels == (True, 1)


def test_columns_of_which_nothing_is_left_are_refused() -> None:
    few = pd.DataFrame({"a": list("abcdefgh"), "b": np.arange(8.0)})
    with pytest.raises(DataError, match=r"column 'a' has no value that 5 rows share.*min_count=1"):
        Schema.infer(few[["a"]], min_count=5)
    with pytest.raises(DataError, match=r"column 'b' has 8 numbers, too few to hide.*min_count=1"):
        Schema.infer(few[["b"]], min_count=5)
    with pytest.raises(DataError, match=r"column 'b' has 3 numbers, too few"):
        Schema.infer(few[["b"]].head(3), min_count=5)
    same = Schema.infer(pd.DataFrame({"b": np.full(8, 2.5)}), min_count=5)["b"]
    assert (same.minimum, same.maximum) == (2.5, 2.5)


@pytest.mark.parametrize("given", [0, -1, 2.5, True, "5", None])
def test_what_is_no_count_is_refused(given: object) -> None:
    with pytest.raises(SettingError, match="min_count must be a whole number of at least 1"):
        Schema.infer(table(), min_count=given)  # type: ignore[arg-type]


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [10_000, 60])
def test_rows_with_rare_values_are_left_out_and_extremes_drawn_in(most: int) -> None:
    frame = table()
    schema = Schema.infer(frame, min_count=5)
    labels = np.arange(len(frame)) % 2
    rows = take_rows(frame, schema, labels, most=most, seed=0, min_count=5)
    assert rows.left_out == 6
    assert set().union(*(np.flatnonzero(flags) for flags in rare_rows(frame, schema).values())) == set(range(6))
    pay = schema.position("pay")
    assert rows.values[:, pay].max() <= schema["pay"].maximum
    assert len(rows.values) == min(most, 294)
    assert len(f"{rows.encoding.mean[pay]:g}".replace(".", "").strip("0")) <= 4


def test_all_rows_count_where_everything_is_told() -> None:
    frame = table()
    rows = take_rows(frame, Schema.infer(frame), np.zeros(len(frame), dtype=np.int64), most=10_000, seed=0)
    assert rows.left_out == 0
    assert len(rows.values) == len(frame)


def test_remembered_rows_are_those_before_extremes_are_drawn_in() -> None:
    frame, key = table(), bytes(32)
    schema = Schema.infer(frame, min_count=5)
    rows = take_rows(frame, schema, np.zeros(len(frame), dtype=np.int64), most=10_000, seed=0, row_key=key, min_count=5)
    assert rows.remembered is not None
    assert rows.remembered.hold(Encoding.unit(schema).encode(frame.iloc[6:])).all()


def test_a_table_that_loses_many_rows_is_warned_of_and_one_that_loses_most_is_refused() -> None:
    codes = [f"z{i}" for i in range(60)] + ["common"] * 240
    frame = pd.DataFrame({"zip": codes})
    labels = np.zeros(300, dtype=np.int64)
    schema = Schema.infer(frame, min_count=5)
    with pytest.warns(UserWarning, match=r"20% of the rows .* column 'zip', .*min_count=1"):
        rows = take_rows(frame, schema, labels, most=1000, seed=0)
    assert rows.left_out == 60
    mostly = pd.DataFrame({"zip": [f"z{i}" for i in range(160)] + ["common"] * 140})
    with pytest.raises(DataError, match=r"53% of the rows"):
        take_rows(mostly, Schema.infer(mostly, min_count=5), labels, most=1000, seed=0)


def test_a_schema_of_another_table_is_still_refused() -> None:
    """What as many rows have as would be named is not rare, but foreign."""
    frame = table()
    schema = Schema.infer(frame, min_count=5)
    labels = np.zeros(len(frame), dtype=np.int64)
    other = frame.assign(job=["pilot"] * 10 + frame["job"].tolist()[10:])
    with pytest.raises(Exception, match="'pilot', never seen in training or in fewer than 5 rows"):
        take_rows(other, schema, labels, most=1000, seed=0)
    rich = frame.assign(pay=np.where(np.arange(len(frame)) < 50, 1e6, frame["pay"]))
    for most in (1000, 100):
        with pytest.raises(SchemaError, match=r"column 'pay' holds .* beyond its schema's"):
            take_rows(rich, schema, labels, most=most, seed=0)
