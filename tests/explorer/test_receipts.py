"""Receipts: what they say is what the model gives again, in another process, and nothing in them can be altered."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dicoflex
from dicoflex.cli import main
from dicoflex.errors import SettingError, SignatureError
from dicoflex.explorer import Explorer
from dicoflex.explorer.asking import Asker
from dicoflex.explorer.messages import RefusedError
from dicoflex.explorer.receipt import NOTE, UNCOVERED, _digest, check_receipt
from dicoflex.model import Model
from dicoflex.signatures import make_keys

LIMITS = {"constraints": {"ranges": {"visits": [0, 8]}, "max_changes": 3}, "pinned": {"city": "Ulm"}}


def receipt(explorer: Explorer, person: str, **more: Any) -> dict[str, Any]:
    body = {"person": person, "target": "yes", **more}
    keys = [plan["key"] for plan in explorer.answer("ask", body)["plans"]]
    return explorer.answer("receipt", {**body, "keys": keys[:2]})


def as_sent(made: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(made["json"], allow_nan=False))


def test_a_receipt_is_given_again(explorer: Explorer, refused: list[str]) -> None:
    made = receipt(explorer, refused[0], **LIMITS)
    assert check_receipt(as_sent(made), explorer.model) == len(made["json"]["plans"]) > 0
    assert made["name"] == f"receipt-{refused[0]}.json"


def test_a_receipt_asks_once(explorer: Explorer, refused: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"person": refused[0], "target": "yes"}
    keys = [plan["key"] for plan in explorer.answer("ask", body)["plans"]]
    asked: list[Any] = []
    find = Asker.find
    monkeypatch.setattr(Asker, "find", lambda *given, **more: asked.append(given) or find(*given, **more))
    explorer.answer("receipt", {**body, "keys": keys[:1]})
    assert len(asked) == 1


def altered(record: Any, place: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """Every number of a record with its last digit, and every text and truth, changed: (place, record)."""
    if isinstance(record, dict | list):
        parts = record.items() if isinstance(record, dict) else enumerate(record)
        return [found for name, part in parts for found in altered(part, (*place, name))]
    other = {bool: lambda v: not v, int: lambda v: v + 1, float: lambda v: v * (1 + 1e-12) + 1e-12}
    return [(place, other.get(type(record), lambda v: f"{v}x")(record))] if record is not None else []


def with_altered(record: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    forged = copy.deepcopy(record)
    inner = forged
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return forged


def test_an_altered_digit_fails(loans: Explorer) -> None:
    record = as_sent(receipt(loans, "7", **LIMITS))
    tried = altered(record)
    assert len(tried) > 60
    for place, value in tried:
        with pytest.raises(SignatureError):
            check_receipt(with_altered(record, place, value), loans.model)


@pytest.mark.parametrize("part", ["row", "now", "target", "needed", "limits", "plans", "note", "model"])
def test_a_forged_digest_does_not_help(loans: Explorer, part: str) -> None:
    """What the model gives is compared with what it gives again, whatever the checksum says."""
    record = as_sent(receipt(loans, "7", **LIMITS))
    tried = [(place, value) for place, value in altered(record) if place[0] == part]
    assert tried
    for place, value in tried[:: max(1, len(tried) // 12)]:
        forged = with_altered(record, place, value)
        forged["digest"] = _digest({name: own for name, own in forged.items() if name != "digest"})
        with pytest.raises(SignatureError):
            check_receipt(forged, loans.model)


def test_what_is_cut_short_or_another_models_fails(loans: Explorer, awkward: Explorer) -> None:
    record = as_sent(receipt(loans, "7"))
    for name in record:
        with pytest.raises(SignatureError):
            check_receipt({k: v for k, v in record.items() if k != name}, loans.model)
    with pytest.raises(SignatureError, match="made with the model"):
        check_receipt(record, awkward.model)
    with pytest.raises(SignatureError, match="no receipt"):
        check_receipt([], loans.model)
    with pytest.raises(SignatureError, match="altered"):
        check_receipt({**record, "more": 1}, loans.model)


def test_only_plans_that_are_shown_can_be_had(loans: Explorer) -> None:
    for keys in ([], ["0123456789abcdef"]):
        with pytest.raises(RefusedError, match="choose one that is shown"):
            loans.answer("receipt", {"person": "7", "target": "yes", "keys": keys})


def test_the_page_prints_what_was_asked_and_found(awkward: Explorer) -> None:
    person = awkward.answer("people", {"order": "near"})["offered"][0]
    made = receipt(awkward, person, constraints={"max_changes": 3})
    page = made["html"]
    assert "<script" not in page
    assert NOTE in page
    assert made["json"]["model"] in page
    assert "at most 3 changes" in page
    assert "“granted”" in page
    assert all(part not in page.lower() for part in ("http:", "https:", "src=", "url("))


def test_a_receipt_passes_in_a_new_process(loans: Explorer, loans_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(receipt(loans, "7", **LIMITS)["json"]))
    command = "import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))"
    ran = subprocess.run(
        [sys.executable, "-c", command, "verify", str(file), "--model", str(loans_file)],
        env=os.environ | {"PYTHONPATH": str(Path(dicoflex.__file__).parents[1])},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "again, bit for bit" in ran.stdout


def test_the_command_line_tells_a_forged_one(
    loans: Explorer, loans_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = receipt(loans, "7")["json"]
    record["plans"][0]["probability"] += 1e-6
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(record))
    assert main(["verify", str(file), "--model", str(loans_file)]) == 3
    assert "its digest is another one" in capsys.readouterr().err
    assert main(["verify", str(file)]) == 2
    assert "nothing to check by" in capsys.readouterr().err


def test_what_an_unsigned_receipt_does_not_cover_is_said(
    loans: Explorer, loans_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Date, person and name could be changed, and nobody was told that nothing had looked at them."""
    record = receipt(loans, "7")["json"]
    file = tmp_path / "receipt.json"
    for name in record.keys() - {"digest"}:
        forged = {key: value for key, value in record.items() if key != "digest"} | {name: "another"}
        file.write_text(json.dumps({**forged, "digest": _digest(forged)}))
        is_noticed = main(["verify", str(file), "--model", str(loans_file)]) != 0
        said = capsys.readouterr().out
        assert is_noticed == (name not in UNCOVERED), name
        assert is_noticed or f"not covered without --trust: {', '.join(UNCOVERED)};" in said


def test_receipts_are_signed_where_there_is_a_key(
    loans: Explorer, loans_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private, public = tmp_path / "private.pem", tmp_path / "public.pem"
    make_keys(private, public)
    signing = Explorer(Model.load(loans_file), loans.people.frame.head(9), target="yes", key=private)
    record = receipt(signing, "7")["json"]
    file = tmp_path / "receipt.json"
    file.write_text(json.dumps(record))
    assert main(["verify", str(file), "--trust", str(public), "--model", str(loans_file)]) == 0
    assert capsys.readouterr().out.count(str(file)) == 2
    file.write_text(json.dumps(record | {"person": "8"}))
    assert main(["verify", str(file), "--trust", str(public), "--model", str(loans_file)]) == 3
    with pytest.raises(SettingError, match="no private key"):
        Explorer(loans.model, loans.people.frame.head(2), key=b"none")
