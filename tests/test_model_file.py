"""Model files: what is written is read back, and nothing else is taken for one."""

from __future__ import annotations

import io
import json
import os
import pickletools
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save

from dicoflex import model_file
from dicoflex.errors import ModelFileError

HEADER = {"generator": "mixed", "classes": ["ja", "nein", "ä"], "report": {"loss": 0.1, "n": 3}, "none": None}
ARRAYS = {
    "weights": np.arange(12, dtype=np.float32).reshape(3, 4),
    "known": np.array([2**64 - 1, 0], dtype=np.uint64),
    "flags": np.array([True, False]),
    "nothing": np.zeros((0, 5)),
    "scalar": np.array(2.5),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "m.dicoflex"
    model_file.write(path, HEADER, ARRAYS)
    return path


def assert_content(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    assert {k: header[k] for k in HEADER} == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(arrays[name], array)


# -- round trip --------------------------------------------------------------------------------------------------


def test_what_is_written_is_read(path: Path) -> None:
    header, arrays = model_file.read(path)
    assert_content(header, arrays)
    assert header["fingerprint"] == model_file.fingerprint(HEADER, ARRAYS)
    assert model_file.read(str(path))[0] == header


def test_layout_in_memory_does_not_matter(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.dicoflex"
    wide = np.repeat(ARRAYS["weights"], 2, axis=1)[:, ::2]
    assert not wide.flags.c_contiguous
    model_file.write(other, HEADER, ARRAYS | {"weights": wide})
    assert other.read_bytes() == path.read_bytes()
    model_file.write(other, HEADER, ARRAYS | {"weights": np.asfortranarray(ARRAYS["weights"])})
    assert other.read_bytes() == path.read_bytes()


def test_the_same_model_gives_the_same_bytes(tmp_path: Path, path: Path) -> None:
    other = tmp_path / "other.dicoflex"
    model_file.write(other, HEADER, dict(reversed(ARRAYS.items())))
    assert other.read_bytes() == path.read_bytes()


def test_a_header_that_was_read_can_be_written_again(tmp_path: Path, path: Path) -> None:
    again = tmp_path / "again.dicoflex"
    header, arrays = model_file.read(path)
    model_file.write(again, header, arrays)
    assert model_file.read(again)[0] == header
    model_file.write(again, header | {"generator": "kde"}, arrays)
    assert model_file.read(again)[0]["generator"] == "kde"


def test_the_header_is_read_without_the_arrays(path: Path) -> None:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    path.write_bytes(data[: 8 + size] + bytes(len(data) - 8 - size))
    assert model_file.read_header(path)["classes"] == HEADER["classes"]
    with pytest.raises(ModelFileError, match="altered after it was saved, or is damaged: its checksum"):
        model_file.read(path)
    path.write_bytes(data[: 8 + size])
    for read in (model_file.read, model_file.read_header):
        with pytest.raises(ModelFileError, match=r"damaged or cut short \(its arrays take .*save the model again"):
            read(path)


def test_other_tools_can_open_it(path: Path) -> None:
    with safe_open(path, framework="numpy") as file:
        assert set(file.keys()) == set(ARRAYS)
        assert json.loads(file.metadata()["dicoflex-model"])["generator"] == "mixed"


def test_the_fingerprint_tells_models_apart() -> None:
    prints = {
        model_file.fingerprint(HEADER, ARRAYS),
        model_file.fingerprint(HEADER | {"generator": "kde"}, ARRAYS),
        model_file.fingerprint(HEADER, ARRAYS | {"more": np.zeros(1)}),
        model_file.fingerprint(HEADER, ARRAYS | {"weights": ARRAYS["weights"] + 1}),
        model_file.fingerprint(HEADER, ARRAYS | {"weights": ARRAYS["weights"].T}),
        model_file.fingerprint(HEADER, ARRAYS | {"weights": ARRAYS["weights"].view(np.int32)}),
    }
    assert len(prints) == 6
    assert {len(each) for each in prints} == {64}


def test_no_pickle(path: Path) -> None:
    data = path.read_bytes()
    assert not any(b"\x80" + bytes([protocol]) in data for protocol in range(2, 6))
    with pytest.raises(ValueError, match=r"opcode|exhausted|expected|unpack|not enough"):
        list(pickletools.genops(data))
    size = int.from_bytes(data[:8], "little")
    json.loads(data[8 : 8 + size])
    assert len(data) == 8 + size + sum(array.nbytes for array in ARRAYS.values())


def test_a_file_can_be_read_by_whom_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        model_file.write(tmp_path / "m", HEADER, ARRAYS)
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o644


# -- writing -----------------------------------------------------------------------------------------------------


def assert_untouched(path: Path) -> None:
    """The old file is whole and alone in its folder."""
    assert_content(*model_file.read(path))
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("step", ["write_bytes", "replace"])
def test_a_failing_write_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, step: str
) -> None:
    def half(self: Path, data: bytes) -> int:
        with open(self, "wb") as file:
            file.write(data[:20])
        raise error

    def fail(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(*((Path, "write_bytes", half) if step == "write_bytes" else (os, "replace", fail)))
        expected = ModelFileError if isinstance(error, OSError) else type(error)
        with pytest.raises(expected):
            model_file.write(path, {"new": True}, {})
    assert_untouched(path)


@pytest.mark.parametrize("header", [{"loss": float("nan")}, {"loss": float("inf")}, {"what": object()}])
def test_a_header_that_is_no_json_is_not_written(path: Path, header: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        model_file.write(path, header, {})
    assert_untouched(path)


def test_places_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "none" / "m", tmp_path / "file" / "m", tmp_path / "folder"):
        with pytest.raises(ModelFileError, match=r"can't be written: .*; choose a file in a folder that exists"):
            model_file.write(place, HEADER, ARRAYS)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder"]


def test_what_would_not_be_read_back_is_not_written(path: Path) -> None:
    with pytest.raises(
        ModelFileError, match=r"header takes 1,\d*,\d* bytes, and there is room for 1,048,576; fit on fewer"
    ):
        model_file.write(path, {"classes": ["x" * 2**20]}, {})
    with (
        mock.patch.object(model_file, "LARGEST", 5000),
        pytest.raises(ModelFileError, match=r"file takes 8,\d* bytes, and there is room for 5,000"),
    ):
        model_file.write(path, HEADER, {"a": np.zeros(1000)})
    assert_untouched(path)


# -- reading what is no model file -------------------------------------------------------------------------------


def zip_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("model.pkl", b"x" * 100)
    return buffer.getvalue()


def with_header(header: Any) -> bytes:
    return save({"a": np.zeros(2)}, metadata={"dicoflex-model": json.dumps(header)})


FOREIGN = {
    "empty": b"",
    "a few bytes": b"abc",
    "a zip": zip_bytes(),
    "text": b"age,sex\n31,f\n" * 20,
    "noise": np.random.default_rng(0).bytes(5000),
    "zeros": bytes(1000),
    "a size beyond the file": (2**62).to_bytes(8, "little") + b"{}",
    "a size with the sign bit": b"\xff" * 64,
    "JSON that is a list": (2).to_bytes(8, "little") + b"[]",
    "JSON nested too deep": (100_000).to_bytes(8, "little") + b"[" * 100_000,
    "plain safetensors": save({"a": np.zeros(2)}),
    "safetensors of another tool": save({"a": np.zeros(2)}, metadata={"format": "pt"}),
    "a header that is no JSON": save({"a": np.zeros(2)}, metadata={"dicoflex-model": "hello"}),
    "a header that is a list": with_header([]),
    "a header without a format": with_header({"fingerprint": "x", "format_version": 4}),
    "a header of another format": with_header({"format": "other", "fingerprint": "x", "format_version": 4}),
    "a header without a fingerprint": with_header({"format": "dicoflex-model", "format_version": 4}),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_foreign_files_are_refused(case: str, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(FOREIGN[case])
    for read in (model_file.read, model_file.read_header):
        with pytest.raises(ModelFileError, match=r"is not a dicoflex model file.*make one with \.save\(\)") as caught:
            read(path)
        assert str(path) in str(caught.value)
        assert caught.value.exit_code == 3


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="can't be read: No such file or directory; check the path"):
        model_file.read(tmp_path / "none")
    with pytest.raises(ModelFileError, match="can't be read: Is a directory; check the path"):
        model_file.read(tmp_path)


@pytest.mark.parametrize("version", [0, 1, 99, "1", None])
def test_another_version_is_refused(version: Any, tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(with_header({"format": "dicoflex-model", "fingerprint": "x", "format_version": version}))
    said = f"has format version {version}, this dicoflex reads {model_file.VERSION}; fit again and save it"
    for read in (model_file.read, model_file.read_header):
        with pytest.raises(ModelFileError, match=said):
            read(path)


def test_a_wrong_fingerprint_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(
        with_header({"format": "dicoflex-model", "fingerprint": "x", "format_version": model_file.VERSION})
    )
    with pytest.raises(ModelFileError, match="checksum does not match; save the model again"):
        model_file.read(path)


@pytest.mark.slow
def test_cut_short_at_any_length(path: Path) -> None:
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(ModelFileError):
            model_file.read(path)
    path.write_bytes(data + b"x")
    with pytest.raises(ModelFileError):
        model_file.read(path)


def test_any_altered_byte_of_the_arrays_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    for at in range(8 + size, len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        with pytest.raises(ModelFileError, match=r"altered after it was saved|more than true and false"):
            model_file.read(path)


@pytest.mark.slow
@pytest.mark.parametrize("flip", [0x01, 0x10, 0x20, 0x80])
def test_any_altered_byte_of_the_header_is_noticed_or_means_nothing(path: Path, flip: int) -> None:
    """Padding may change; what is read is what was written, or a refusal."""
    data = path.read_bytes()
    taken = 0
    for at in range(8 + int.from_bytes(data[:8], "little")):
        path.write_bytes(data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :])
        try:
            content = model_file.read(path)
        except ModelFileError:
            continue
        taken += 1
        assert_content(*content)
    assert taken < 10


def test_shapes_that_were_altered_are_noticed(path: Path) -> None:
    data = path.read_bytes()
    assert data.count(b"[3,4]") == 1
    path.write_bytes(data.replace(b"[3,4]", b"[4,3]"))
    with pytest.raises(ModelFileError, match="altered"):
        model_file.read(path)
    path.write_bytes(data.replace(b"[3,4]", b"[3,5]"))
    with pytest.raises(ModelFileError):
        model_file.read(path)


# -- files that were made to do harm -----------------------------------------------------------------------------
# All of them failed in 0.1.0 (9aa4d8c): it waited for ever, took gigabytes, or raised another error.


def laid_out(table: Any, arrays: bytes = b"", *, header: Any = None) -> bytes:
    """A file whose table of arrays is `table`, with a header of ours that is fine."""
    own = {"format": "dicoflex-model", "fingerprint": "x", "format_version": 4} if header is None else header
    text = own if isinstance(own, str) else json.dumps(own)
    table = {"__metadata__": {"dicoflex-model": text}, **table} if isinstance(table, dict) else table
    raw = (table if isinstance(table, str) else json.dumps(table)).encode()
    return len(raw).to_bytes(8, "little") + raw + arrays


def entry(dtype: Any = "F64", shape: Any = (1,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def test_files_laid_out_by_hand_are_read_as_far_as_their_checksum(tmp_path: Path) -> None:
    """What the next tests alter is fine as it is."""
    (tmp_path / "m").write_bytes(laid_out({"a": entry(), "b": entry("U8", [2, 0], [8, 8])}, bytes(8)))
    with pytest.raises(ModelFileError, match="checksum does not match"):
        model_file.read(tmp_path / "m")


TABLES = {
    "an entry that is none": {"a": 3},
    "an entry with less": {"a": {"dtype": "F64", "shape": [1]}},
    "an entry with more": {"a": entry() | {"code": "x"}},
    "an unknown dtype": {"a": entry("F8")},
    "a dtype that is none": {"a": entry(["F64"])},
    "a negative length": {"a": entry(shape=[-1])},
    "lengths that multiply to the right": {"a": entry(shape=[-1, -1])},
    "a length that is a fraction": {"a": entry(shape=[1.0])},
    "a length that is true": {"a": entry(shape=[True])},
    "a huge length": {"a": entry(shape=[2**62])},
    "lengths that overflow": {"a": entry(shape=[2**30, 2**30, 2**30])},
    "more dimensions than anything has": {"a": entry(shape=[1] * 40)},
    "a shape that is none": {"a": entry(shape="1")},
    "less room than the shape": {"a": entry(shape=[2])},
    "more room than the shape": {"a": entry(offsets=[0, 16])},
    "room that ends before it begins": {"a": entry(offsets=[8, 0])},
    "room beyond the file": {"a": entry(offsets=[2**20, 2**20 + 8])},
    "one end": {"a": entry(offsets=[0])},
    "a hole": {"a": entry("U8", [1], [0, 1]), "b": entry("U8", [1], [7, 8])},
    "arrays one over the other": {"a": entry(), "b": entry()},
    "no arrays where there are bytes": {},
    "a list": [],
    "an array twice": '{"a": ' + json.dumps(entry()) + ', "a": ' + json.dumps(entry()) + "}",
    "texts that are none": {"__metadata__": ["dicoflex-model"]},
    "a text that is none": {"__metadata__": {"dicoflex-model": 3}},
}  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_arrays_that_do_not_add_up_are_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(laid_out(TABLES[case], bytes(8)))
    for read in (model_file.read, model_file.read_header):
        with pytest.raises(ModelFileError, match=r"damaged or cut short|not a dicoflex model file"):
            read(tmp_path / "m")


def with_report(report: str) -> str:
    return '{"format": "dicoflex-model", "fingerprint": "x", "format_version": 4, "report": ' + report + "}"


HEADERS = {
    "a name twice": with_report('{"a": 1, "a": 2}'),
    "NaN": with_report("NaN"),
    "Infinity": with_report("-Infinity"),
    "a number without end": with_report("1e999"),
    "digits without end": with_report("9" * 5000),
    "nested a little": with_report("[" * 40 + "]" * 40),
    "nested deep": with_report("[" * 50_000 + "]" * 50_000),
    "half a character": with_report('"\\ud800"'),
    "a fingerprint that is none": '{"format": "dicoflex-model", "fingerprint": 3, "format_version": 4}',
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_are_no_strict_json_are_refused(case: str, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(laid_out({"a": entry()}, bytes(8), header=HEADERS[case]))
    for read in (model_file.read, model_file.read_header):
        with pytest.raises(ModelFileError, match="not a dicoflex model file"):
            read(tmp_path / "m")


@pytest.mark.parametrize("says", [2**20 + 1, 2**32, 2**36])
def test_a_header_without_end_is_not_read(says: int, tmp_path: Path) -> None:
    """A sparse file: a few bytes on the disk, and a header of gigabytes by its own word."""
    path = tmp_path / "m"
    with open(path, "wb") as file:
        file.write(says.to_bytes(8, "little") + b"{")
        file.truncate(8 + says)
    for read in (model_file.read, model_file.read_header):
        tracemalloc.start()
        with pytest.raises(ModelFileError, match=r"this would be|more than 1,073,741,824"):
            read(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**20


def test_booleans_are_true_or_false(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(laid_out({"a": entry("BOOL", [2], [0, 2])}, b"\x01\x02"))
    with pytest.raises(ModelFileError, match="'a' holds more than true and false"):
        model_file.read(tmp_path / "m")


def test_pipes_and_devices_are_no_model_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        for read in (model_file.read, model_file.read_header):
            with pytest.raises(ModelFileError, match="can't be read: it is a pipe or a device, and no file"):
                read(path)


@pytest.mark.parametrize("path", ["", "m\0", "x" * 5000, 3, None, ["m"]])
def test_what_is_no_path_is_no_model_file(path: Any) -> None:
    for read in (model_file.read, model_file.read_header):
        with pytest.raises(ModelFileError, match=r"can't be read: .*check the path"):
            read(path)
    with pytest.raises(ModelFileError, match=r"can't be written|is text or a Path"):
        model_file.write(path, HEADER, ARRAYS)
