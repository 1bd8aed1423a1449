"""Training rows can't be computed back from a model file, nor tested for in it; unkeyed hashes would give them away.

The attack is the one that worked on files with a SplitMix64 of every row: each of its steps is a bijection, so a hash
can be run backwards to the last column, and half of the columns forwards meets the other half backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from comparing import Quickly
from dicoflex import DiCoFlex, Schema, load, model_file
from dicoflex.audit.leaking import are_among
from dicoflex.errors import QueryError
from dicoflex.table.encoding import Encoding
from dicoflex.table.remembered import row_hashes

Arrays = dict[str, np.ndarray]
GOLDEN = 0x9E3779B97F4A7C15
STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
N = 787


def people(n: int, seed: int, *, pay: bool) -> pd.DataFrame:
    """Grades alone, or with a pay in cents as the last column."""
    rng = np.random.default_rng(seed)
    rows = {
        "job": rng.choice(["cook", "nurse", "smith"], n),
        "town": rng.choice(["Oslo", "Rome", "Ulm"], n),
        "age": rng.integers(20, 60, n),
        "hours": rng.integers(10, 60, n),
    }
    return pd.DataFrame(rows | ({"pay": rng.normal(3000.0, 400.0, n).round(2)} if pay else {}))


def mix(z: np.ndarray) -> np.ndarray:
    for shift, factor in STEPS:
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return z ^ (z >> np.uint64(31))


def unmix(z: np.ndarray) -> np.ndarray:
    z = unshift(z, 31)
    for shift, factor in reversed(STEPS):
        z = unshift(z * np.uint64(pow(factor, -1, 2**64)), shift)
    return z


def unshift(z: np.ndarray, shift: int) -> np.ndarray:
    found = z
    for _ in range(64 // shift):
        found = z ^ (found >> np.uint64(shift))
    return found


def bits_of(numbers: Any) -> np.ndarray:
    return (np.asarray(numbers, dtype=float) + 0.0).view(np.uint64)


def forwards(columns: Any) -> np.ndarray:
    """Unkeyed hashes of rows, column by column."""
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        keys = mix((keys ^ bits_of(column)) + np.uint64(GOLDEN))
    return keys


def backwards(keys: np.ndarray, columns: Any) -> np.ndarray:
    for column in reversed(columns):
        keys = (unmix(keys) - np.uint64(GOLDEN)) ^ bits_of(column)
    return keys


# -- the attack --------------------------------------------------------------------------------------------------------


def hashes_in(arrays: Arrays) -> Iterator[np.ndarray]:
    """Everything in a file that could be hashes: arrays of 64 bits, whatever they are called."""
    for array in arrays.values():
        if array.dtype.itemsize == 8 and array.size > 20:
            yield np.ascontiguousarray(array).reshape(-1).view(np.uint64)


def choices(schema: Schema, names: list[str]) -> list[np.ndarray]:
    """All values of some columns that a file tells to be possible, one column each of all combinations."""
    features = [schema[name] for name in names]
    ranges = [np.arange(f.minimum, f.maximum + 1) if f.is_number else np.arange(f.n_states) for f in features]
    return list(np.array(list(product(*ranges)), dtype=float).T)


def met_in_the_middle(schema: Schema, arrays: Arrays) -> np.ndarray:
    """Rows of levels and whole numbers whose hash is in the file: two columns forwards, two backwards."""
    first, last = choices(schema, schema.names[:2]), choices(schema, schema.names[2:])
    reached, rows = forwards(first), [np.zeros((0, 4))]
    for keys in hashes_in(arrays):
        for place in range(len(last[0])):
            wanted = backwards(keys, [np.full(len(keys), column[place]) for column in last])
            hits = np.flatnonzero(np.isin(reached, wanted))
            rows += [np.array([[first[0][i], first[1][i], last[0][place], last[1][place]]]) for i in hits]
    return np.concatenate(rows)


def inverted(schema: Schema, arrays: Arrays) -> np.ndarray:
    """Rows whose last column is not guessed but computed: cents within the limits show that it is right."""
    known, pay = choices(schema, schema.names[:-1]), schema["pay"]
    states, rows = forwards(known), [np.zeros((0, 5))]
    for keys in hashes_in(arrays):
        for key in keys:
            value = ((unmix(np.array([key])) - np.uint64(GOLDEN)) ^ states).view(float)
            fine = (value >= pay.minimum) & (value <= pay.maximum)
            fine[fine] &= np.round(value[fine], 2) == value[fine]
            rows += [np.array([[*(column[i] for column in known), value[i]]]) for i in np.flatnonzero(fine)]
    return np.concatenate(rows)


ATTACKS: dict[bool, Callable[[Schema, Arrays], np.ndarray]] = {False: met_in_the_middle, True: inverted}


@pytest.fixture(scope="module", params=ATTACKS, ids=["grades", "pay in cents"])
def pay(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def fitted(quickly: Quickly) -> Callable[[bool, bool], DiCoFlex]:
    made: dict[tuple[bool, bool], DiCoFlex] = {}

    def get(pay: bool, remembered: bool) -> DiCoFlex:
        if (pay, remembered) not in made:
            rows = people(N, 0, pay=pay)
            labels = np.where(rows["age"] > 40, "yes", "no")
            given = {"min_count": 5, "steps": 20, "remember_rows": remembered, "coherence": not remembered}
            made[pay, remembered] = quickly(rows, labels, **given)
        return made[pay, remembered]

    return get


@pytest.fixture
def unkeyed(pay: bool, fitted: Callable[[bool, bool], DiCoFlex], tmp_path: Path) -> tuple[Schema, Arrays, np.ndarray]:
    """A file with an unkeyed hash of every row, as it must not be; and the rows."""
    rows = people(N, 0, pay=pay)
    schema = Schema.infer(rows)
    values = Encoding.unit(schema).encode(rows)
    known = np.unique(forwards(values.T))
    header, arrays = fitted(pay, False).model_.content()
    model_file.write(tmp_path / "bad.dicoflex", header, arrays | {"known": known})
    return schema, model_file.read(tmp_path / "bad.dicoflex")[1], values


def file_of(model: DiCoFlex, folder: Path) -> tuple[Schema, Arrays]:
    model.save(folder / "m.dicoflex")
    return load(folder / "m.dicoflex").schema_, model_file.read(folder / "m.dicoflex")[1]


@pytest.mark.parametrize("remembered", [False, True])
def test_no_row_is_recovered_from_a_file(
    remembered: bool, pay: bool, fitted: Callable[[bool, bool], DiCoFlex], tmp_path: Path
) -> None:
    schema, arrays = file_of(fitted(pay, remembered), tmp_path)
    assert remembered == ("remembered" in arrays)
    found = ATTACKS[pay](schema, arrays)
    assert not are_among(found, Encoding.unit(schema).encode(people(N, 0, pay=pay))).any()


def test_the_attack_works_on_unkeyed_hashes(pay: bool, unkeyed: tuple[Schema, Arrays, np.ndarray]) -> None:
    schema, arrays, values = unkeyed
    found = ATTACKS[pay](schema, arrays)
    assert are_among(values, found).all()
    assert are_among(found, values).all()


def in_file(arrays: Arrays, hashes: np.ndarray) -> float:
    """The share of hashes that stand somewhere in the file."""
    return max((float(np.isin(hashes, keys).mean()) for keys in hashes_in(arrays)), default=0.0)


def test_membership_can_t_be_looked_up_in_a_file(
    pay: bool, fitted: Callable[[bool, bool], DiCoFlex], unkeyed: tuple[Schema, Arrays, np.ndarray], tmp_path: Path
) -> None:
    """Neither by a hash without a key, nor under keys that anybody would try."""
    schema, bad, values = unkeyed
    others = Encoding.unit(schema).encode(people(N, 1, pay=pay))
    assert in_file(bad, forwards(values.T)) == 1.0
    assert in_file(bad, forwards(others[~are_among(others, values)].T)) == 0.0
    for remembered in (False, True):
        model = fitted(pay, remembered)
        _, arrays = file_of(model, tmp_path)
        keys = [bytes(32), model.fingerprint_.encode()[:32].ljust(32, b"0")]
        for hashes in (forwards(values.T), *(row_hashes(values, key) for key in keys)):
            assert in_file(arrays, hashes) == 0.0


def test_novel_answers_are_nobody_s_row(fitted: Callable[[bool, bool], DiCoFlex], quickly: Quickly) -> None:
    """Of a table with few combinations many answers are somebody's row, unless novel ones are asked for."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"grade": rng.integers(1, 200, N), "job": rng.choice(list("abcdef"), N)})
    labels = np.where(rows["grade"] > 100, "yes", "no")
    assert fitted(False, False).row_key_ is None
    with pytest.raises(QueryError, match="remember_rows=True"):
        fitted(False, False).explain(people(2, 3, pay=False), target="yes", novel=True)
    model = quickly(rows, labels, remember_rows=True)
    known = model.model_.encoding.encode(rows)
    shares = []
    for novel in (False, True):
        answers = model.explain(rows[labels == "no"].head(40), target="yes", n=3, novel=novel, random_state=0).frame
        assert len(answers) > 80
        shares.append(are_among(model.model_.encoding.encode(answers), known).mean())
    assert shares[0] > 0.2
    assert shares[1] == 0.0
