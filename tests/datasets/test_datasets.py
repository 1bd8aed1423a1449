from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest

from dicoflex import datasets
from dicoflex.datasets import checksum, downloads, load, names, recipes, two_moons
from dicoflex.datasets.recipes import EDUCATION, RECIPES
from dicoflex.errors import DataError
from dicoflex.table.feature import Kind
from dicoflex.table.schema import Schema

ROWS = {
    "adult": (24_000, 10_000),
    "bank": (16_001, 10_000),
    "default": (21_600, 3_000),
    "gmc": (24_000, 10_000),
    "lending-club": (24_000, 10_000),
}


def in_folder(name: str) -> bool:
    return any((folder / name / "train.csv").is_file() for folder in downloads.folders())


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


def test_adult_is_read_once_and_looked_at_once(monkeypatch):
    """A load is one look at one file, and nowhere else: that is why it is quick."""
    read, infer = mock.Mock(side_effect=pd.read_csv), mock.Mock(side_effect=Schema.infer)
    elsewhere = mock.Mock(side_effect=AssertionError("a shipped table was looked for elsewhere"))
    monkeypatch.setattr(pd, "read_csv", read)
    monkeypatch.setattr(Schema, "infer", infer)
    monkeypatch.setattr(downloads, "folders", elsewhere)
    monkeypatch.setattr(datasets, "fetch_pair", elsewhere)
    load("adult")
    assert (read.call_count, infer.call_count) == (1, 1)


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
    raw = (files("dicoflex.datasets") / "data" / f"{name}.csv.gz").read_bytes()
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
    assert set(data.immutable) | set(data.increase) <= set(data.schema.names)
    assert not set(data.immutable) & set(data.increase)
    assert all(data.schema[name].is_number or data.schema[name].kind is Kind.ORDINAL for name in data.increase)


def test_defaults_protect_people_and_let_age_grow():
    adult = load("adult")
    assert {"sex", "race"} <= set(adult.immutable)
    assert "age" in adult.increase


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


@pytest.mark.parametrize("name", list(ROWS))
def test_paper_split_has_the_known_checksum(name):
    assert checksum(load_paper(name)) == RECIPES[name].sha256


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


# -- from OpenML ------------------------------------------------------------------------------------------------


def openml_bank(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of Bank as OpenML writes them: columns V1 to V16 and Class, which is 1 or 2, and words as categories."""
    label = table["y"].map({"no": "1", "yes": "2"})
    columns = {f"V{i}": table[name] for i, name in enumerate(recipes.BANK[:-1], start=1)} | {"Class": label}
    return pd.DataFrame(
        {name: c.astype("category" if c.dtype.kind not in "if" else "float64") for name, c in columns.items()}
    )


@pytest.fixture
def offer(monkeypatch, tmp_path) -> Callable[..., list[dict[str, Any]]]:
    """Stands in for OpenML with a table, or an error, of one's choice; gives the list of requests it got."""
    monkeypatch.setenv("DICOFLEX_DATA", str(tmp_path / "empty"))

    def answer(frame: pd.DataFrame | Exception) -> list[dict[str, Any]]:
        requests: list[dict[str, Any]] = []

        def fetch_openml(**request: Any) -> SimpleNamespace:
            requests.append(request)
            if isinstance(frame, Exception):
                raise frame
            return SimpleNamespace(frame=frame)

        monkeypatch.setattr(downloads, "fetch_openml", fetch_openml)
        return requests

    return answer


@pytest.fixture
def calls() -> pd.DataFrame:
    """Thirty rows in the form of Bank."""
    rng = np.random.default_rng(0)
    words = {"job": ["admin.", "unknown"], "marital": ["single", "married"], "poutcome": ["success", "unknown"]}
    numbers = RECIPES["bank"].numbers
    columns = {name: rng.integers(0, 90, 30) if name in numbers else rng.choice(words.get(name, ["no", "yes"]), 30)
               for name in recipes.BANK}  # fmt: skip
    return pd.DataFrame(columns)


@pytest.fixture
def paper_of_calls(calls, monkeypatch) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A paper that trained on some of `calls` and tested on others, one of them twice, in an order of its own."""
    train, test = calls.iloc[[7, 3, 3, 20]], calls.iloc[[11, 0]]
    packed = downloads._pack_digests(train, test)
    known = (int.from_bytes(packed[:4], "big"), [packed[i : i + 5] for i in range(4, len(packed), 5)])
    monkeypatch.setattr(downloads, "_read_digests", {"bank": known}.get)
    monkeypatch.setitem(RECIPES, "bank", replace(RECIPES["bank"], sha256=downloads.digest_of(train, test)))
    return train, test


def test_nothing_is_fetched_unless_asked_for(offer, calls):
    requests = offer(openml_bank(calls))
    with pytest.raises(DataError, match=r"train\.csv.*put it there.*table 1461 of OpenML.*fetch=True"):
        load("bank")
    assert requests == []


def test_fetched_rows_are_those_of_the_paper(offer, calls, paper_of_calls, tmp_path):
    requests = offer(openml_bank(calls))
    bank = load("bank", fetch=True, cache=tmp_path)
    train, test = paper_of_calls
    pd.testing.assert_frame_equal(bank.X_train, train.drop(columns="y").reset_index(drop=True), check_dtype=False)
    assert bank.y_test.tolist() == test["y"].tolist()
    assert bank.X_train["age"].dtype == np.int64
    assert checksum(bank) == RECIPES["bank"].sha256
    assert [(request["data_id"], request["data_home"]) for request in requests] == [(1461, tmp_path)]
    pd.testing.assert_frame_equal(load("bank", split="paper", fetch=True).X_train, bank.X_train)


def test_a_copy_without_one_of_the_rows_is_refused(offer, calls, paper_of_calls):
    damaged = calls.copy()
    damaged.loc[20, "balance"] += 1
    offer(openml_bank(damaged))
    with pytest.raises(DataError, match=r"lacks 1 of the paper's 6 rows.*can't be verified.*verify=False"):
        load("bank", fetch=True)


def test_a_copy_that_fails_the_checksum_is_refused(offer, calls, paper_of_calls, monkeypatch):
    monkeypatch.setitem(RECIPES, "bank", replace(RECIPES["bank"], sha256="0" * 64))
    offer(openml_bank(calls))
    with pytest.raises(DataError, match=r"fails the checksum.*can't be verified.*verify=False"):
        load("bank", fetch=True)


def test_an_unverified_copy_comes_whole(offer, calls):
    offer(openml_bank(calls))
    bank = load("bank", fetch=True, verify=False)
    whole = pd.concat([bank.X_train.assign(y=bank.y_train), bank.X_test.assign(y=bank.y_test)]).sort_index()
    assert (len(bank.X_train), len(bank.X_test)) == (24, 6)
    pd.testing.assert_frame_equal(whole, calls, check_dtype=False)


def test_the_papers_split_needs_verification(offer, calls):
    requests = offer(openml_bank(calls))
    with pytest.raises(DataError, match="leave verify=True, or split=None"):
        load("bank", split="paper", fetch=True, verify=False)
    assert requests == []


def test_another_table_is_refused(offer, calls):
    offer(openml_bank(calls).drop(columns="V3"))
    with pytest.raises(DataError, match="has 16 columns instead of 17"):
        load("bank", fetch=True, verify=False)


@pytest.mark.parametrize("problem", [URLError("no route to host"), ValueError("Dataset with data_id 1461 not found.")])
def test_a_failed_download_names_the_folder(offer, tmp_path, problem):
    offer(problem)
    with pytest.raises(DataError, match=r"could not be fetched: .*(no route|not found)") as error:
        load("bank", fetch=True)
    assert str(tmp_path / "empty" / "bank") in str(error.value)


def test_a_folder_goes_before_the_download(offer, tmp_path, calls):
    requests = offer(openml_bank(calls))
    (tmp_path / "empty").mkdir()
    write_bank(tmp_path / "empty")
    assert len(load("bank", fetch=True).X_train) == 2
    assert requests == []


def test_a_table_without_public_copy_says_so(offer, calls):
    requests = offer(openml_bank(calls))
    with pytest.raises(DataError, match=r"gmc.*train\.csv.*put it there.*no public copy is known"):
        load("gmc", fetch=True)
    assert requests == []


def test_shipped_digests_are_those_of_the_papers_rows():
    for name in ("bank", "default"):
        if not in_folder(name):
            pytest.skip(f"{name} is not in the data folder")
        packed = (files("dicoflex.datasets") / "data" / f"{name}.rows").read_bytes()
        assert packed == downloads._pack_digests(*downloads.read_pair(name))


@pytest.fixture
def default() -> datasets.Dataset:
    return load_paper("default")


def test_default_of_the_paper_is_found_in_a_whole_table(default, offer):
    parts = [(default.X_train, default.y_train), (default.X_test, default.y_test)]
    everyone = pd.concat([X.assign(**{default.label: y}) for X, y in parts])
    strangers = everyone.head(500).assign(LIMIT_BAL=1)
    mixed = pd.concat([strangers, everyone.sample(frac=1.0, random_state=0)], ignore_index=True)
    as_there = mixed.set_axis([*(f"x{i}" for i in range(1, 24)), "y"], axis=1).astype(
        {"x2": "category", "y": "category"}
    )
    offer(as_there)
    found = load("default", fetch=True)
    pd.testing.assert_frame_equal(found.X_train, default.X_train)
    pd.testing.assert_series_equal(found.y_test, default.y_test)
    assert found.schema == default.schema


def test_checksum_depends_on_values_names_and_order_alone():
    moons = two_moons(50)
    same = replace(
        moons, X_train=moons.X_train[["x2", "x1"]].astype(object).astype(float), y_train=moons.y_train.astype(float)
    )
    assert checksum(same) == checksum(moons)
    assert checksum(replace(moons, X_train=moons.X_train[::-1], y_train=moons.y_train[::-1])) != checksum(moons)
    assert checksum(replace(moons, y_train=1 - moons.y_train)) != checksum(moons)
    assert checksum(replace(moons, X_train=moons.X_train.rename(columns={"x1": "x0"}))) != checksum(moons)


def test_checksum_of_text_numbers_and_missing():
    text = pd.Series([" a", None], dtype=object)
    assert downloads._texts(text) == ["a", ""]
    assert downloads._texts(pd.Series([1.0, np.nan, 0.1])) == ["1", "", "0.1"]
    assert downloads._texts(pd.Series([1, None], dtype="Int64")) == ["1", ""]
    assert downloads._texts(pd.Series(["b"], dtype="category")) == ["b"]


# -- two moons --------------------------------------------------------------------------------------------------


def test_two_moons():
    moons = two_moons(500, noise=0.05, random_state=3)
    assert moons.X_train.shape == (400, 2)
    assert moons.X_test.shape == (100, 2)
    assert all(feature.kind is Kind.CONTINUOUS for feature in moons.schema.features)
    assert set(moons.y_train) == {0, 1}
    pd.testing.assert_frame_equal(moons.X_train, two_moons(500, noise=0.05, random_state=3).X_train)
    assert not moons.X_train.equals(two_moons(500, noise=0.05, random_state=4).X_train)
