from __future__ import annotations

import gzip
from importlib.resources import files
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import pytest

from dicoflex import datasets
from dicoflex.datasets import EDUCATION, RECIPES, load, names, two_moons
from dicoflex.errors import DataError
from dicoflex.schema import Kind

ROWS = {
    "adult": (24_000, 10_000),
    "bank": (16_001, 10_000),
    "default": (21_600, 3_000),
    "gmc": (24_000, 10_000),
    "lending-club": (24_000, 10_000),
}


def in_folder(name: str) -> bool:
    return any((folder / name / "train.csv").is_file() for folder in datasets._folders())


def load_paper(name: str) -> datasets.Dataset:
    if not in_folder(name):
        pytest.skip(f"{name} is not in the data folder")
    return load(name, split="paper")


def everything(name: str) -> datasets.Dataset:
    return load(name) if RECIPES[name].ships else load_paper(name)


# -- shipped tables ---------------------------------------------------------------------------------------------


def test_adult_is_whole():
    adult = load("adult")
    assert adult.X_train.shape == (39_074, 12)
    assert adult.X_test.shape == (9_768, 12)
    table = pd.concat([adult.X_train, adult.X_test])
    assert sorted(table.index) == list(range(48_842))
    assert set(adult.y_train) == {"<=50K", ">50K"}
    assert (pd.concat([adult.y_train, adult.y_test]) == ">50K").sum() == 11_687
    assert table["workclass"].isna().sum() == 2_799
    assert table["occupation"].isna().sum() == 2_809
    assert table.isna().sum().sum() == 2_799 + 2_809
    assert (table["native_country"] == "United-States").sum() == 43_832
    assert set(table["native_country"]) == {"United-States", "Other"}


def test_adult_dtypes():
    adult = load("adult")
    numbers = ["age", "capital_gain", "capital_loss", "hours_per_week"]
    for column, dtype in adult.X_train.dtypes.items():
        if column in numbers:
            assert dtype == np.int64
        else:
            assert pd.api.types.is_string_dtype(adult.X_train[column].dropna())
            assert not isinstance(dtype, pd.CategoricalDtype)
    assert adult.X_train.dtypes.equals(adult.X_test.dtypes)


def test_adult_first_row_is_that_of_uci():
    adult = load("adult")
    row = pd.concat([adult.X_train, adult.X_test]).loc[0]
    expected = [39, "State-gov", "Bachelors", "Never-married", "Adm-clerical", "Not-in-family", "White", "Male"]
    assert row.tolist() == [*expected, 2174, 0, 40, "United-States"]


def test_adult_schema_orders_education():
    education = load("adult").schema["education"]
    assert education.kind is Kind.ORDINAL
    assert education.levels == EDUCATION


def test_adult_loads_quickly():
    load("adult")
    start = perf_counter()
    load("adult")
    assert perf_counter() - start < 1.0  # 0.1 s on a free core; the slack is for busy machines


def test_german_is_whole():
    german = load("german")
    assert german.X_train.shape == (800, 20)
    assert german.X_test.shape == (200, 20)
    labels = pd.concat([german.y_train, german.y_test])
    assert labels.value_counts().to_dict() == {0: 700, 1: 300}
    table = pd.concat([german.X_train, german.X_test])
    assert not table.isna().any(axis=None)
    assert (table["purpose"] == "radio/television").sum() == 280
    assert (table["other_debtors"] == "none").sum() == 907


def test_split_is_the_same_at_every_call():
    first, second = load("german"), load("german")
    pd.testing.assert_frame_equal(first.X_test, second.X_test)
    assert first.X_test.index[:8].tolist() == [2, 3, 11, 13, 15, 20, 21, 32]
    assert first.X_train.index.is_monotonic_increasing


@pytest.mark.parametrize("name", ["adult", "german"])
def test_shipped_bytes_carry_no_time_stamp(name):
    raw = (files("dicoflex") / "data" / f"{name}.csv.gz").read_bytes()
    assert raw[4:8] == bytes(4)
    text = gzip.decompress(raw).decode()
    assert "?" not in text
    assert "\r" not in text


# -- all tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_schema_describes_every_row(name):
    data = everything(name)
    recipe = RECIPES[name]
    assert data.schema.names == list(data.X_train.columns) == list(data.X_test.columns)
    assert data.X_train.dtypes.equals(data.X_test.dtypes)
    assert data.label not in data.schema.names
    for feature in data.schema.features:
        assert feature.is_number == (feature.name in recipe.numbers)
        if not feature.is_number:
            values = set(data.X_train[feature.name].dropna()) | set(data.X_test[feature.name].dropna())
            assert values <= set(feature.levels)


@pytest.mark.parametrize("name", names())
def test_facts_fit_the_table(name):
    data = everything(name)
    assert data.name == name
    assert data.y_train.name == data.y_test.name == data.label
    assert data.y_train.index.equals(data.X_train.index)
    assert data.y_test.index.equals(data.X_test.index)
    assert data.y_train.nunique() == 2
    assert data.positive in set(data.y_train)
    assert set(data.immutable) <= set(data.schema.names)


@pytest.mark.parametrize("name", names())
def test_text_is_stripped_and_whole_numbers_are_ints(name):
    data = everything(name)
    for column in [*data.X_train.items(), (data.label, data.y_train)]:
        values = column[1].dropna()
        if pd.api.types.is_float_dtype(values):
            assert (values % 1 != 0).any()
        elif not pd.api.types.is_integer_dtype(values):
            assert (values == values.str.strip()).all()


@pytest.mark.parametrize("name", list(ROWS))
def test_paper_split_has_the_authors_sizes(name):
    data = load_paper(name)
    assert (len(data.X_train), len(data.X_test)) == ROWS[name]
    assert data.X_test.index.equals(pd.RangeIndex(len(data.X_test)))


def test_adult_of_the_paper_is_part_of_the_shipped_table():
    paper, shipped = load_paper("adult"), load("adult")
    assert paper.schema.names == shipped.schema.names
    assert [(f.kind, f.levels) for f in paper.schema.features] == [(f.kind, f.levels) for f in shipped.schema.features]
    few = pd.concat([paper.X_train, paper.X_test]).value_counts(dropna=False)
    many = pd.concat([shipped.X_train, shipped.X_test]).value_counts(dropna=False)
    assert (many.reindex(few.index).to_numpy() >= few.to_numpy()).all()


def test_folder_tables_load_without_a_split_name():
    if not in_folder("bank"):
        pytest.skip("bank is not in the data folder")
    pd.testing.assert_frame_equal(load("bank").X_train, load("bank", split="paper").X_train)


# -- a folder of one's own --------------------------------------------------------------------------------------


def write_bank(folder: Path, extra: str = "") -> None:
    (folder / "bank").mkdir()
    header = "age,job,balance,day,duration,campaign,pdays,previous,y\n"
    rows = "36.0, cook,1.5,3.0,10.0,1.0,-1.0,0.0,no\n41.0,?,2.0,3.0,11.0,1.0,-1.0,0.0,yes\n"
    for part in ("train", "test"):
        (folder / "bank" / f"{part}.csv").write_text(header + rows + extra)


def test_folder_is_named_by_the_variable(tmp_path, monkeypatch):
    write_bank(tmp_path)
    monkeypatch.setenv("DICOFLEX_DATA", str(tmp_path))
    bank = load("bank")
    assert bank.X_train["age"].tolist() == [36, 41]
    assert bank.X_train["age"].dtype == np.int64
    assert bank.X_train["balance"].tolist() == [1.5, 2.0]
    assert bank.X_train["job"].iloc[0] == "cook"
    assert bank.schema["job"].missing


def test_folder_beside_the_current_directory(tmp_path, monkeypatch):
    shared = tmp_path / "shared" / "data"
    shared.mkdir(parents=True)
    write_bank(shared)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.delenv("DICOFLEX_DATA", raising=False)
    assert len(load("bank").X_train) == 2


def test_missing_file_is_named_with_its_place(tmp_path, monkeypatch):
    monkeypatch.setenv("DICOFLEX_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"train\.csv.*put it there.*DICOFLEX_DATA") as error:
        load("gmc")
    assert str(tmp_path / "gmc" / "train.csv") in str(error.value)


def test_file_without_a_known_column_is_refused(tmp_path, monkeypatch):
    write_bank(tmp_path)
    path = tmp_path / "bank" / "test.csv"
    path.write_text(path.read_text().replace("balance", "money"))
    monkeypatch.setenv("DICOFLEX_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"test\.csv lacks the column 'balance'"):
        load("bank")


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        ("adlut", None, "did you mean 'adult'"),
        ("adult", "papre", "split 'papre' is unknown"),
        ("german", "paper", "no split of the paper"),
    ],
)
def test_wrong_names_are_refused(name, split, message):
    with pytest.raises(DataError, match=message):
        load(name, split=split)


# -- two moons --------------------------------------------------------------------------------------------------


def test_two_moons():
    moons = two_moons(500, noise=0.05, random_state=3)
    assert moons.X_train.shape == (400, 2)
    assert moons.X_test.shape == (100, 2)
    assert all(feature.kind is Kind.CONTINUOUS for feature in moons.schema.features)
    assert set(moons.y_train) == {0, 1}
    pd.testing.assert_frame_equal(moons.X_train, two_moons(500, noise=0.05, random_state=3).X_train)
    assert not moons.X_train.equals(two_moons(500, noise=0.05, random_state=4).X_train)
