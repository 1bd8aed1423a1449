"""Training rows are remembered where that is asked for, under a key that is in no file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from comparing import LABELS, ROWS, Quickly
from dicoflex import DiCoFlex, load, model_file
from dicoflex.errors import QueryError, SettingError
from dicoflex.generators import GENERATORS

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def kept(quickly: Quickly) -> DiCoFlex:
    return quickly(ROWS, LABELS, remember_rows=True)


def test_novel_is_refused_where_no_rows_are_remembered(quickly: Quickly) -> None:
    model = quickly(ROWS, LABELS)
    assert model.row_key_ is None
    for ask in (model.explain, model.sample):
        with pytest.raises(QueryError, match=r"remembers its training rows.*fit\(X, y, remember_rows=True\)"):
            ask(ROWS.head(1), target="yes", n=2, novel=True)


def test_novel_needs_the_key_after_loading(kept: DiCoFlex, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    kept.save(path)
    key = kept.row_key_
    assert key is not None
    assert key not in path.read_bytes()
    assert key.hex().encode() not in path.read_bytes()
    locked = load(path)
    with pytest.raises(QueryError, match=r"needs the key.*load\(path, row_key=\.\.\.\)"):
        locked.explain(ROWS.head(1), target="yes", novel=True)
    given = {"target": "yes", "n": 3, "novel": True, "random_state": 0}
    expected = kept.explain(ROWS.head(5), **given).frame
    for form in (key, key.hex()):
        opened = load(path, row_key=form)
        pd.testing.assert_frame_equal(opened.explain(ROWS.head(5), **given).frame, expected)
        assert opened.row_key_ == key
        assert opened.fingerprint_ == kept.fingerprint_ == locked.fingerprint_


def test_a_key_that_does_not_belong_to_the_file_is_refused(kept: DiCoFlex, quickly: Quickly, tmp_path: Path) -> None:
    kept.save(tmp_path / "kept.dicoflex")
    with pytest.raises(SettingError, match="row_key is not the key"):
        load(tmp_path / "kept.dicoflex", row_key=KEY)
    quickly(ROWS, LABELS).save(tmp_path / "plain.dicoflex")
    with pytest.raises(SettingError, match="remembers no rows; leave it out"):
        load(tmp_path / "plain.dicoflex", row_key=KEY)


def test_a_key_of_one_s_own_makes_the_same_file_again(quickly: Quickly) -> None:
    contents = [quickly(ROWS, LABELS, remember_rows=key).model_.content()[1] for key in (KEY, KEY.hex())]
    np.testing.assert_array_equal(contents[0]["remembered"], contents[1]["remembered"])


@pytest.mark.parametrize("given", ["secret", b"secret", 1, None])
def test_a_word_is_no_key(given: object, quickly: Quickly) -> None:
    with pytest.raises(SettingError, match="remember_rows must be 32 bytes"):
        quickly(ROWS, LABELS, remember_rows=given)


def test_a_density_that_keeps_rows_is_refused_unless_asked_for() -> None:
    with pytest.raises(SettingError, match=r"generator 'kde' .* for all to read; .*remember_rows=True"):
        DiCoFlex("kde").fit(ROWS, LABELS)


N_ROWS, N_DIFFERENT = 271, 263
"""Prime, and no size of any part of a model."""


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    different = pd.DataFrame({"pay": rng.normal(size=N_DIFFERENT), "job": rng.choice(["a", "b", "c"], N_DIFFERENT)})
    return pd.concat([different, different.head(N_ROWS - N_DIFFERENT)], ignore_index=True)


@pytest.mark.parametrize("name", GENERATORS)
def test_no_array_has_an_entry_per_row_unless_asked_for(name: str, quickly: Quickly, tmp_path: Path) -> None:
    frame = table()
    labels = np.where(frame["pay"] > 0, "yes", "no")
    quickly(frame, labels, name).save(tmp_path / "m.dicoflex")
    header, arrays = model_file.read(tmp_path / "m.dicoflex")
    by_row = {key for key, array in arrays.items() if {N_ROWS, N_DIFFERENT} & set(array.shape)}
    if GENERATORS[name].keeps_rows:
        assert by_row == {"generator.values", "generator.labels", "remembered"}
    else:
        assert by_row == set()
        assert header["row_key_mark"] is None
