"""The audit log: sealed, synced, signed where asked, and given again bit for bit."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import httpx
import orjson
import pytest

from dicoflex.cli import main
from dicoflex.errors import DataError
from dicoflex.explainer import Explainer
from dicoflex.serving.audit import AuditLog, read_log, verify_folder
from dicoflex.serving.replay import replay
from dicoflex.signatures import make_keys
from serving.running import question


def write(folder: Path, count: int, **options: Path) -> list[dict[str, object]]:
    async def run() -> list[dict[str, object]]:
        log = AuditLog(folder, **options)
        receipts = await asyncio.gather(*(log.append({"event": "x", "number": i / 3}) for i in range(count)))
        log.close()
        return receipts

    return asyncio.run(run())


def test_a_log_that_nobody_touched(tmp_path: Path) -> None:
    receipts = write(tmp_path, 50)
    assert verify_folder(tmp_path) == (51, [])
    (path,) = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["record"]["seq"] for line in lines] == list(range(51))
    assert {receipt["hash"] for receipt in receipts} == {line["hash"] for line in lines[1:]}
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_record_that_can_not_be_written_is_not_acknowledged(tmp_path: Path) -> None:
    async def run() -> None:
        log = AuditLog(tmp_path)
        await log.append({"event": "first"})
        assert log.descriptor is not None
        os.close(log.descriptor)
        with pytest.raises(OSError, match="descriptor"):
            await log.append({"event": "lost"})
        log.descriptor = None
        await log.append({"event": "second"})
        log.close()

    asyncio.run(run())
    events = [record["event"] for record in read_log(tmp_path)]
    assert events == ["start", "first", "start", "second"]
    assert verify_folder(tmp_path) == (4, [])
    records = list(read_log(tmp_path))
    (first, _) = sorted(tmp_path.glob("*.jsonl"))
    assert records[2]["before"] == json.loads(first.read_text().splitlines()[-1])["hash"]


def test_what_was_done_to_a_log_is_found(tmp_path: Path) -> None:
    write(tmp_path, 8)
    (path,) = tmp_path.glob("*.jsonl")
    good = path.read_bytes().splitlines(keepends=True)

    def findings(lines: list[bytes]) -> set[int]:
        path.write_bytes(b"".join(lines))
        return {found.seq for found in verify_folder(tmp_path)[1]}

    assert findings(good) == set()
    assert 4 in findings([*good[:4], *good[5:]])
    assert {3, 4} <= findings([*good[:3], good[4], good[3], *good[5:]])
    assert findings([*good, good[-1]]) == {9}
    for place in range(0, len(good[5]) - 1, 7):
        flipped = bytearray(good[5])
        flipped[place] ^= 1
        assert 5 in findings([*good[:5], bytes(flipped), *good[6:]]), place
    forged = orjson.loads(good[5])
    forged["record"]["number"] = 7
    assert 5 in findings([*good[:5], orjson.dumps(forged) + b"\n", *good[6:]])


def test_signed_records(tmp_path: Path) -> None:
    keys = tmp_path / "a.pem", tmp_path / "a.pub", tmp_path / "b.pem", tmp_path / "b.pub"
    make_keys(*keys[:2])
    make_keys(*keys[2:])
    write(tmp_path / "log", 5, key=keys[0])
    assert verify_folder(tmp_path / "log", trust=keys[1]) == (6, [])
    assert len(verify_folder(tmp_path / "log", trust=keys[3])[1]) == 6
    write(tmp_path / "bare", 1)
    assert "is not signed" in verify_folder(tmp_path / "bare", trust=keys[1])[1][0].why


def test_answers_are_given_again_bit_for_bit(
    http: httpx.Client, audit: Path, models: Path, plain: Explainer, capsys: pytest.CaptureFixture[str]
) -> None:
    for i in range(20):
        body = question(
            plain, 1 + i % 2, of=i, target=[None, "yes"][i % 2], verify=i % 5 == 0, include=[["scores"], []][i % 2]
        )
        answer = http.post("/v1/models/plain/explain", json=body).json()
        receipt = answer["record"]
        lines = (audit / receipt["file"]).read_text().splitlines()
        line = json.loads(lines[receipt["seq"]])
        assert line["hash"] == receipt["hash"]
        assert line["record"]["request_id"] == answer["request_id"]
    assert main(["audit", "verify", str(audit)]) == 0
    files = [f"--model={path}" for path in models.glob("*.dicoflex")]
    capsys.readouterr()
    assert main(["audit", "replay", str(audit), *files]) == 0
    assert int(capsys.readouterr().out.split(" of ")[0]) >= 20


def test_a_log_without_values_needs_the_bodies(tmp_path: Path, models: Path, plain: Explainer) -> None:
    from dicoflex.serving.engine import answer
    from dicoflex.serving.questions import read_question
    from dicoflex.serving.results import digest, results_of
    from dicoflex.serving.rows import RowReader
    from dicoflex.serving.settings import Settings

    body = question(plain, 2)
    asked = read_question(orjson.dumps(body), plain.model_, RowReader(plain.schema_), Settings(models=models))
    request = asked.request.model_copy(update={"target": tuple(asked.targets)})
    results = results_of(asked.rows.ids, answer(plain.model_, asked.rows.cells, request).rows, asked.wish)
    entry = {
        "event": "explain", "request_id": "x", "model": {"fingerprint": plain.fingerprint_},
        "settings": asked.settings, "query": digest(asked.rows.sent), "answers": digest(results),
    }  # fmt: skip

    async def run() -> None:
        log = AuditLog(tmp_path / "log")
        await log.append(entry)
        await log.append(entry | {"answers": "0" * 64})
        log.close()

    asyncio.run(run())
    (tmp_path / "bodies.jsonl").write_text(json.dumps(body) + "\n")
    file = models / "plain.dicoflex"
    assert [why for _, why in replay(tmp_path / "log", [file]).left_out] == [
        "its rows are neither in the log nor given"
    ] * 2
    found = replay(tmp_path / "log", [file], bodies=tmp_path / "bodies.jsonl")
    assert (found.identical, [why for _, why in found.different]) == (1, ["other answers"])
    assert (
        main(
            ["audit", "replay", str(tmp_path / "log"), "--model", str(file), "--bodies", str(tmp_path / "bodies.jsonl")]
        )
        == 4
    )
    with pytest.raises(DataError, match="holds no audit log"):
        verify_folder(tmp_path / "none")
