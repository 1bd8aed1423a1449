"""Signatures: what was signed is taken, anything else is refused; without the package, with a word about it."""

from __future__ import annotations

import base64
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dicoflex import DiCoFlex, load, signatures
from dicoflex.cli import main
from dicoflex.errors import ModelFileError, SettingError, SignatureError
from dicoflex.signatures import check_record, make_keys, sign_file, sign_record, verify_file

RECORDED = Path(__file__).parent / "recording" / "mixed-labels.dicoflex"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder / "private.pem", folder / "public.pem")
    return folder / "private.pem", folder / "public.pem"


@pytest.fixture(scope="module")
def strangers(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("strangers")
    make_keys(folder / "private.pem", folder / "public.pem")
    return folder / "private.pem", folder / "public.pem"


@pytest.fixture
def model_path(tmp_path: Path) -> Path:
    path = tmp_path / "m.dicoflex"
    path.write_bytes(RECORDED.read_bytes())
    return path


# -- keys --------------------------------------------------------------------------------------------------------


def test_keys_are_new_and_the_private_one_is_its_owners(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    assert stat.S_IMODE(keys[0].stat().st_mode) == 0o600
    assert keys[0].read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert keys[1].read_bytes().startswith(b"-----BEGIN PUBLIC KEY-----")
    make_keys(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() != keys[1].read_bytes()


def test_keys_replace_nothing(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    before = keys[0].read_bytes()
    with pytest.raises(SettingError, match="can't be written: File exists; choose another name"):
        make_keys(keys[0], tmp_path / "public.pem")
    assert keys[0].read_bytes() == before


def test_what_is_no_key_is_refused(model_path: Path, keys: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    private, public = keys
    for wrong in (tmp_path / "text", public, b"", b"-----BEGIN PRIVATE KEY-----\n", _key_of_another_sort()):
        with pytest.raises(SettingError, match=r"make one with dicoflex keygen"):
            sign_file(model_path, key=wrong)
    sign_file(model_path, key=private)
    for wrong in (tmp_path / "text", private, b""):
        with pytest.raises(SettingError, match=r"give the .* that dicoflex keygen made"):
            verify_file(model_path, trust=wrong)
    with pytest.raises(SettingError, match=r"none\.pem can't be read: No such file"):
        sign_file(model_path, key=tmp_path / "none.pem")


def _key_of_another_sort() -> bytes:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    return X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


# -- model files -------------------------------------------------------------------------------------------------


def test_a_signed_model_is_loaded_by_whom_trusts_its_maker(model_path: Path, keys: tuple[Path, Path]) -> None:
    before = model_path.read_bytes()
    assert sign_file(model_path, key=keys[0]) == model_path.with_name("m.dicoflex.sig")
    assert model_path.read_bytes() == before
    for trust in (keys[1], str(keys[1]), keys[1].read_bytes()):
        assert load(model_path, trust=trust).fingerprint_ == load(RECORDED).fingerprint_
    model_path.with_name("m.dicoflex.sig").unlink()
    sign_file(str(model_path), key=keys[0].read_bytes())
    load(model_path, trust=keys[1])


def test_an_unsigned_model_is_refused(model_path: Path, keys: tuple[Path, Path]) -> None:
    with pytest.raises(SignatureError, match=r"m\.dicoflex is not signed: there is no .*m\.dicoflex\.sig"):
        load(model_path, trust=keys[1])


def test_a_strangers_signature_is_refused(
    model_path: Path, keys: tuple[Path, Path], strangers: tuple[Path, Path]
) -> None:
    sign_file(model_path, key=strangers[0])
    with pytest.raises(SignatureError, match=r"not signed by whom is trusted: .*[0-9a-f]{16}, and [0-9a-f]{16}"):
        load(model_path, trust=keys[1])
    load(model_path)


def test_a_stranger_can_not_claim_to_be_the_maker(
    model_path: Path, keys: tuple[Path, Path], strangers: tuple[Path, Path]
) -> None:
    beside = sign_file(model_path, key=strangers[0])
    made = json.loads(beside.read_text())
    made["key"] = verify_file(_signed_copy(model_path, keys[0]), trust=keys[1])
    beside.write_text(json.dumps(made))
    with pytest.raises(SignatureError, match="was altered after it was signed"):
        load(model_path, trust=keys[1])


def _signed_copy(path: Path, key: Path) -> Path:
    other = path.with_name("copy.dicoflex")
    other.write_bytes(path.read_bytes())
    sign_file(other, key=key)
    return other


def test_any_altered_byte_is_noticed_before_the_file_is_read(
    model_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_file(model_path, key=keys[0])
    data = model_path.read_bytes()
    monkeypatch.setattr("dicoflex.model_file.read_layout", lambda *_: pytest.fail("read"))
    for at in (0, 8, 500, len(data) // 2, len(data) - 1):
        model_path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(SignatureError, match="was altered after it was signed"):
            load(model_path, trust=keys[1])
    assert issubclass(SignatureError, ModelFileError)


BAD_SIGNATURES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"hello",
    "a list": b"[]",
    "no signature": b'{"algorithm": "Ed25519", "key": "x"}',
    "no text": b'{"algorithm": "Ed25519", "key": "x", "signature": 3}',
    "no base64": b'{"algorithm": "Ed25519", "key": "x", "signature": "!!"}',
    "too short": b'{"algorithm": "Ed25519", "key": "x", "signature": "aGVsbG8="}',
    "zeros": json.dumps({"key": "x", "signature": base64.b64encode(bytes(64)).decode()}).encode(),
    "a name twice": b'{"key": "x", "key": "y", "signature": ""}',
    "too long": b" " * 20_000 + b"{}",
    "no text at all": bytes(range(256)),
}


@pytest.mark.parametrize("case", BAD_SIGNATURES)
def test_signatures_that_are_none_are_refused(case: str, model_path: Path, keys: tuple[Path, Path]) -> None:
    Path(f"{model_path}.sig").write_bytes(BAD_SIGNATURES[case])
    with pytest.raises(SignatureError):
        load(model_path, trust=keys[1])


def test_a_signature_that_is_a_pipe_is_not_waited_for(model_path: Path, keys: tuple[Path, Path]) -> None:
    os.mkfifo(f"{model_path}.sig")
    with pytest.raises(SignatureError, match="pipe"):
        load(model_path, trust=keys[1])


# -- records -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explainer() -> DiCoFlex:
    return load(RECORDED)


@pytest.fixture(scope="module")
def record(explainer: DiCoFlex, keys: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    row = {
        f.name: f.minimum if f.is_number else f.levels[0]
        for f in explainer.schema_.features
    }  # fmt: skip
    cfs = explainer.explain(pd.DataFrame([row]), target="yes", n=2, random_state=0)
    plain = json.loads(cfs.to_json())
    path = tmp_path_factory.mktemp("record") / "r.json"
    cfs.to_json(path, key=keys[0])
    signed: dict[str, Any] = json.loads(path.read_text())
    assert {k: v for k, v in signed.items() if k != "signature"} == plain
    assert json.loads(cfs.to_json(key=keys[0])) == signed
    return signed


def test_a_record_is_signed_however_it_is_laid_out(record: dict[str, Any], keys: tuple[Path, Path]) -> None:
    name = check_record(record, trust=keys[1])
    again = json.loads(json.dumps(dict(reversed(record.items())), indent=7))
    assert check_record(again, trust=keys[1].read_bytes()) == name


def test_an_altered_record_is_noticed(record: dict[str, Any], keys: tuple[Path, Path]) -> None:
    """In 0.1.0 (9aa4d8c) a record was as good as the file system."""
    places = list(_places({k: v for k, v in record.items() if k != "signature"}))
    assert len(places) > 50
    for path in places:
        forged = json.loads(json.dumps(record))
        inner = forged
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = "forged"
        with pytest.raises(SignatureError, match="was altered after it was signed"):
            check_record(forged, trust=keys[1])


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    if path:
        yield path
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else [])
    ):
        yield from _places(inner, (*path, step))


def test_unsigned_records_and_strangers_are_refused(
    record: dict[str, Any], keys: tuple[Path, Path], strangers: tuple[Path, Path]
) -> None:
    plain = {k: v for k, v in record.items() if k != "signature"}
    for unsigned in (plain, {}, [], None, "record"):
        with pytest.raises(SignatureError, match="is not signed"):
            check_record(unsigned, trust=keys[1])
    with pytest.raises(SignatureError, match="not signed by whom is trusted"):
        check_record(sign_record(record, key=strangers[0]), trust=keys[1])


def test_a_files_signature_is_none_of_a_record(keys: tuple[Path, Path], tmp_path: Path) -> None:
    """What is signed says what it is."""
    record = {"a": 1}
    path = tmp_path / "r"
    path.write_bytes(signatures._canonical(record))
    made = json.loads(sign_file(path, key=keys[0]).read_text())
    with pytest.raises(SignatureError):
        check_record(record | {"signature": made}, trust=keys[1])


# -- the command line, and without the package -------------------------------------------------------------------


def test_from_the_command_line(
    tmp_path: Path, model_path: Path, record: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = tmp_path / "my.pem", tmp_path / "our.pem"
    assert main(["keygen", "--private", str(private), "--public", str(public)]) == 0
    assert main(["keygen", "--private", str(private), "--public", str(public)]) == 2
    assert main(["verify", str(model_path), "--trust", str(public)]) == 3
    assert main(["sign", str(model_path), "--key", str(private)]) == 0
    assert main(["verify", str(model_path), "--trust", str(public)]) == 0
    assert "signed with the key" in capsys.readouterr().out
    model_path.write_bytes(model_path.read_bytes() + b"x")
    assert main(["verify", str(model_path), "--trust", str(public)]) == 3
    assert "was altered after it was signed" in capsys.readouterr().err
    path = tmp_path / "r.json"
    path.write_text(json.dumps(record))
    assert main(["verify", str(path), "--trust", str(public)]) == 3
    assert main(["sign", str(path), "--key", str(private)]) == 0
    assert main(["verify", str(path), "--trust", str(public)]) == 0
    for text in ("[]", "{", '{"a": 1, "a": 2}', ""):
        path.write_text(text)
        assert main(["verify", str(path), "--trust", str(public)]) == 3
        assert main(["sign", str(path), "--key", str(private)]) == 3


def test_explain_trusts_whom_it_is_told_to(
    tmp_path: Path, model_path: Path, keys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rows.csv").write_text("x\n1\n")
    asked = ["explain", str(model_path), str(tmp_path / "rows.csv"), "--trust", str(keys[1])]
    assert main(asked) == 3
    assert "is not signed" in capsys.readouterr().err
    sign_file(model_path, key=keys[0])
    assert main(asked) == 2
    assert "lacks the column" in capsys.readouterr().err


def test_without_the_package_a_remedy_is_named(
    model_path: Path, keys: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    signatures._cryptography.cache_clear()
    try:
        for call in (
            lambda: load(model_path, trust=keys[1]),
            lambda: sign_file(model_path, key=keys[0]),
            lambda: make_keys("a", "b"),
        ):
            with pytest.raises(SettingError, match=r"need the package cryptography; pip install 'dicoflex\[sign\]'"):
                call()
        load(model_path)
    finally:
        signatures._cryptography.cache_clear()
