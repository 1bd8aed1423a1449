"""Models in files: the same answers after loading, no code in a file, and a refusal for every other file."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch

from comparing import Quickly, explained, sampled
from dicoflex import DiCoFlex, load, model_file
from dicoflex.errors import DataError, ModelFileError
from dicoflex.model import classes_of


def test_saved_and_loaded(model: DiCoFlex, queries: pd.DataFrame, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    model.save(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.dicoflex"]
    again = load(str(path))
    for how in (explained, sampled):
        expected = how(model, queries, p=0.25, frozen=["job"], random_state=11)
        got = how(again, queries, p=0.25, frozen=["job"], random_state=11)
        pd.testing.assert_frame_equal(got, expected, check_exact=True)
    draws = sampled(model, queries.head(1), random_state=0)
    density = model.log_density(queries.head(1), draws, target="yes")
    np.testing.assert_array_equal(again.log_density(queries.head(1), draws, target="yes"), density)
    assert again.fingerprint_ == model.fingerprint_
    assert again.report_ == model.report_
    assert again.schema_ == model.schema_
    assert again.classes_.tolist() == model.classes_.tolist()
    again.save(tmp_path / "twice.dicoflex")
    assert (tmp_path / "twice.dicoflex").read_bytes() == path.read_bytes()


def test_saved_and_loaded_with_confidence(judged: DiCoFlex, reloaded: DiCoFlex, queries: pd.DataFrame) -> None:
    given = {"confidence": 0.8, "novel": True, "random_state": 0}
    pd.testing.assert_frame_equal(explained(judged, queries, **given), explained(reloaded, queries, **given))


def test_saving_after_a_setting_was_changed(applicants: pd.DataFrame, labels: np.ndarray, queries: pd.DataFrame,
                                            quickly: Quickly, tmp_path: Path) -> None:  # fmt: skip
    """`set_params` is about the next fit; the model at hand stays what it is."""
    model = quickly(applicants, labels, "kde").set_params(generator="mixed", exponents=(1.0,))
    model.save(tmp_path / "m.dicoflex")
    again = load(tmp_path / "m.dicoflex")
    pd.testing.assert_frame_equal(sampled(again, queries, random_state=0), sampled(model, queries, random_state=0))


def test_model_file_holds_no_pickle(model: DiCoFlex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.dicoflex"
    model.save(path)
    data = path.read_bytes()
    assert not zipfile.is_zipfile(path)
    with pytest.raises((pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError, AttributeError, TypeError)):
        pickle.loads(data)
    size = int.from_bytes(data[:8], "little")
    table = json.loads(data[8 : 8 + size])
    plain = {"F64", "F32", "I64", "I32", "I16", "U64", "U8", "BOOL"}
    assert {entry["dtype"] for name, entry in table.items() if name != "__metadata__"} <= plain
    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, mock.Mock(side_effect=AssertionError("unpickled")))
    monkeypatch.setattr(torch, "load", mock.Mock(side_effect=AssertionError("unpickled")))
    load(path)


def test_truncated_file(mixed: DiCoFlex, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    mixed.save(path)
    data = path.read_bytes()
    header = int.from_bytes(data[:8], "little")
    for size in (0, 1, 7, 8, 9, header // 2, header + 7, header + 8, header + 9, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ModelFileError, match=r"m\.dicoflex .*(save|make)"):
            load(path)
    assert [p.name for p in tmp_path.iterdir()] == ["m.dicoflex"]


def test_altered_file(mixed: DiCoFlex, tmp_path: Path) -> None:
    path = tmp_path / "m.dicoflex"
    mixed.save(path)
    data = bytearray(path.read_bytes())
    for at in (-1, -1000, len(data) // 2):
        changed = data.copy()
        changed[at] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(ModelFileError, match=r"altered.*save the model again"):
            load(path)


FOREIGN = {
    "text": b"age,job\n31,cook\n",
    "pickle": pickle.dumps({"a": 1}),
    "json": b'{"__metadata__": {}}',
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "zip": b"PK\x03\x04" + bytes(100),
    "ones": b"\xff" * 100,
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_file(case: str, tmp_path: Path) -> None:
    path = tmp_path / "x.dicoflex"
    path.write_bytes(FOREIGN[case])
    with pytest.raises(ModelFileError, match=r"not a dicoflex model file.*make one with \.save\(\)"):
        load(path)


def test_foreign_safetensors_file(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    save_file({"weight": np.zeros(3)}, tmp_path / "x.dicoflex")
    with pytest.raises(ModelFileError, match=r"not a dicoflex model file.*make one with \.save\(\)"):
        load(tmp_path / "x.dicoflex")


def test_paths_that_are_no_files(mixed: DiCoFlex, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"can't be read: .*check the path"):
        load(tmp_path / "absent.dicoflex")
    with pytest.raises(ModelFileError, match=r"can't be read: .*check the path"):
        load(tmp_path)
    with pytest.raises(ModelFileError, match=r"can't be written: .*folder that exists"):
        mixed.save(tmp_path / "absent" / "m.dicoflex")
    assert not list(tmp_path.iterdir())


def without(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda header, arrays: (header if name in header else arrays).pop(name)  # type: ignore[return-value]


def put(path: list[Any], value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        inner: Any = header
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = value

    return change


def cut(name: str) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, arrays: arrays.update({name: arrays[name][:-1]})


def becomes(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    return lambda _, arrays: arrays.update({name: change(arrays.get(name))})


DAMAGE = {
    "no generator": without("generator"),
    "unknown generator": put(["generator"], "gan"),
    "other generator": put(["generator"], "maf"),
    "generator of no type": put(["generator"], ["mixed"]),
    "unknown setting": put(["generator_config", "depth"], 3),
    "wrong setting": put(["generator_config", "hidden"], 7),
    "no schema": put(["encoding"], {}),
    "schema of no features": put(["encoding", "schema", "features"], []),
    "unknown kind": put(["encoding", "schema", "features", 0, "kind"], "fuzzy"),
    "short mean": put(["encoding", "mean"], [0.0]),
    "mean of text": put(["encoding", "mean"], ["a"]),
    "no classes": without("classes"),
    "a class too few": put(["classes"], ["yes"]),
    "a class too many": put(["classes"], ["a", "b", "c"]),
    "no exponents": put(["exponents"], []),
    "unknown surrogate": put(["surrogate"], "oracle"),
    "no report": without("report"),
    "report of text": put(["report"], "fine"),
    "no confidences": without("confidence.usual"),
    "a confidence too few": cut("confidence.usual"),
    "remembered rows without a mark": lambda _, arrays: arrays.update(remembered=np.arange(3, dtype=np.uint64)),
    "a mark without remembered rows": put(["row_key_mark"], "00" * 8),
    "a step too few": cut("generator.grid.step"),
    "a cell too few": cut("generator.grid.low"),
    "a weight too few": cut("generator.net.trunk.bias"),
    "no weights": without("generator.net.trunk.bias"),
    # From here on they were taken by 0.1.0 (9aa4d8c), raised other errors, or took gigabytes.
    "a network too large to be made": put(["generator_config", "hidden"], 20_000),
    "a network of no size": put(["generator_config", "hidden"], 10**400),
    "a setting that is text": put(["generator_config", "hidden"], "24"),
    "settings that are none": put(["generator_config"], [["hidden", 24]]),
    "knots that are none": put(["generator_config", "exponents"], [0.01, 0.08, 0.25, 1.0, -2.0]),
    "knots that fall": put(["generator_config", "confidences"], [1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.0]),
    "a mean beyond floats": put(["encoding", "mean", 0], 10**400),
    "a mean that is true": put(["encoding", "mean", 0], True),
    "a scale of nothing": put(["encoding", "scale", 0], 0.0),
    "a scale below nothing": put(["encoding", "scale", 0], -1.0),
    "an exponent of nothing": put(["exponents", 0], 0.0),
    "an exponent below nothing": put(["exponents", 0], -1.0),
    "an exponent that is text": put(["exponents", 0], "1"),
    "an exponent beyond floats": put(["exponents", 0], 10**400),
    "exponents without end": put(["exponents"], [1.0] * 100_000),
    "a class twice": put(["classes"], ["yes", "yes"]),
    "a class that is a list": put(["classes"], ["yes", ["no"]]),
    "a class that is none": put(["classes"], ["yes", None]),
    "classes that are text": put(["classes"], "no"),
    "a confidence that is none": put(["has_confidence"], "yes"),
    "a surrogate of no type": put(["surrogate"], {}),
    "a label column that is no name": put(["report", "label"], ["x"]),
    "a dtype that takes a gigabyte": put(["encoding", "schema", "features", 5, "dtype"], "S1000000000"),
    "a dtype of many": put(["encoding", "schema", "features", 1, "dtype"], "f8," * 30),
    "a number that is text": put(["encoding", "schema", "features", 1, "dtype"], "object"),
    "limits beyond the dtype": put(["encoding", "schema", "features", 4, "maximum"], 1e6),
    "limits without end": put(["encoding", "schema", "features", 1, "maximum"], 1e300),
    "no levels": put(["encoding", "schema", "features", 6, "levels"], []),
    "a level too many": put(["encoding", "schema", "features", 6, "levels"], ["Rome", "Ulm", "Bonn"]),
    "levels that the dtype can't hold": put(["encoding", "schema", "features", 9, "levels"], [2, 3]),
    "values without end": put(
        ["encoding", "schema", "constraints"], {"forbidden": {"gain": [i + 0.5 for i in range(10_001)]}}
    ),
    "rules without end": put(
        ["encoding", "schema", "constraints"], {"rules": [f"gain <= {1000 + i}" for i in range(65)]}
    ),
    "confidence above 1": becomes("confidence.highest", lambda array: array + 1.5),
    "confidence below 0": becomes("confidence.lowest", lambda array: array - 2.0),
    "confidence out of order": becomes("confidence.usual", lambda array: array * 0 - 1e-9),
    "confidence of no number": becomes("confidence.usual", lambda array: array * np.nan),
    "weights of no number": becomes("generator.net.inner", lambda array: array * np.nan),
    "weights of another dtype": becomes("generator.net.inner", lambda array: array.astype(np.float64)),
    "cells of another dtype": becomes("generator.grid.low", lambda array: array.astype(np.float32)),
    "levels out of the table": becomes("generator.grid.low", lambda array: np.where(array == 1.0, 1e12, array)),
    "an array that nobody asked for": becomes("generator.more", lambda _: np.zeros(3)),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_file_with_a_wrong_header_or_wrong_shapes(case: str, mixed: DiCoFlex, tmp_path: Path) -> None:
    """Files whose checksum is right, as a faulty program or a stranger would write them."""
    header, arrays = (json.loads(json.dumps(mixed.model_.content()[0])), dict(mixed.model_.content()[1]))
    DAMAGE[case](header, arrays)
    path = tmp_path / "m.dicoflex"
    model_file.write(path, header, arrays)
    with pytest.raises(ModelFileError, match=r"holds no model that can be used") as caught:
        load(path)
    assert not isinstance(caught.value.__cause__, MemoryError)
    assert len(str(caught.value)) < 2000


def test_file_of_another_version(mixed: DiCoFlex, tmp_path: Path) -> None:
    header, arrays = mixed.model_.content()
    with mock.patch.object(model_file, "VERSION", 99):
        model_file.write(tmp_path / "m.dicoflex", header, arrays)
    with pytest.raises(ModelFileError, match="format version 99, this dicoflex reads 4; fit again and save it"):
        load(tmp_path / "m.dicoflex")


@pytest.mark.parametrize("odd", ["caf\udce9", float("inf"), float("-inf")])
def test_labels_that_no_file_can_hold_are_refused_before_the_training(
    odd: Any, applicants: pd.DataFrame, labels: np.ndarray, quickly: Quickly
) -> None:
    """0.1.0 (9aa4d8c) trained, and then failed to save."""
    wrong = labels.astype(object)
    wrong[:30] = odd
    with pytest.raises(DataError, match="which no file can hold; give other labels"):
        quickly(applicants, wrong)


def test_text_that_no_file_can_hold_is_refused_before_the_training(
    applicants: pd.DataFrame, labels: np.ndarray, quickly: Quickly
) -> None:
    """0.1.0 (9aa4d8c) saved it, and could not load what it saved."""
    half = "caf\udce9"
    levels = pd.Index([half, "b"], dtype=object)
    for frame in (
        applicants.assign(job=pd.Series([half] * len(applicants), applicants.index, dtype=object)),
        applicants.assign(grade=pd.Categorical.from_codes([0, 1] * (len(applicants) // 2), levels)),
        applicants.set_axis(pd.Index([*applicants.columns[:-1], half], dtype=object), axis=1),
    ):
        with pytest.raises(DataError, match="is no text in Unicode; read the table by its own encoding"):
            quickly(frame, labels)


def test_a_table_whose_description_has_no_room_is_refused_before_the_training(quickly: Quickly) -> None:
    rng = np.random.default_rng(0)
    long = {f"c{i}": [f"{'x' * 1000} {k}" for k in rng.integers(0, 100, 300)] for i in range(10)}
    with pytest.raises(DataError, match=r"take [\d,]* bytes, and a model file has room for 786,432; drop columns"):
        quickly(pd.DataFrame(long), rng.integers(0, 2, 300))


def test_long_labels_take_no_more_room_than_they_need() -> None:
    """An array of texts has the longest one's room for each."""
    names = ["x" * 500_000, *map(str, range(1000))]
    assert classes_of(names).nbytes < 2**20
    assert classes_of(["no", "yes"]).dtype == np.asarray(["no", "yes"]).dtype
