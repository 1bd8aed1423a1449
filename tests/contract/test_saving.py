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
from dicoflex.errors import ModelFileError


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
    "unknown stand-in": put(["stand_in"], "oracle"),
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
}


@pytest.mark.parametrize("case", DAMAGE)
def test_file_with_a_wrong_header_or_wrong_shapes(case: str, mixed: DiCoFlex, tmp_path: Path) -> None:
    """Files whose fingerprint is right, as a faulty program would write them."""
    header, arrays = (json.loads(json.dumps(mixed.model_.content()[0])), dict(mixed.model_.content()[1]))
    DAMAGE[case](header, arrays)
    path = tmp_path / "m.dicoflex"
    model_file.write(path, header, arrays)
    with pytest.raises(ModelFileError):
        load(path)


def test_file_of_another_version(mixed: DiCoFlex, tmp_path: Path) -> None:
    header, arrays = mixed.model_.content()
    with mock.patch.object(model_file, "VERSION", 99):
        model_file.write(tmp_path / "m.dicoflex", header, arrays)
    with pytest.raises(ModelFileError, match="format version 99, this dicoflex reads 2; fit and save it again"):
        load(tmp_path / "m.dicoflex")
