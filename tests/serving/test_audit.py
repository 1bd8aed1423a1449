"""The audit log: sealed, synced, signed where asked, and given again bit for bit."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
from pathlib import Path

import httpx
import orjson
import pytest

from dicoflex.cli import main
from dicoflex.errors import DataError
from dicoflex.explainer import Explainer
from dicoflex.serving import Settings
from dicoflex.serving.app import create
from dicoflex.serving.audit import START, AuditLog, read_log, verify_folder
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


# -- several files ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["bare", "signed"])
def three(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Path, dict[str, Path]]:
    """A log of three processes' files, of 6, 4 and 3 records; and what to check it by."""
    options, trust = {}, {}
    if request.param:
        make_keys(tmp_path / "a.pem", tmp_path / "a.pub")
        options, trust = {"key": tmp_path / "a.pem"}, {"trust": tmp_path / "a.pub"}
    for count in (5, 3, 2):
        write(tmp_path / "log", count, **options)
    assert verify_folder(tmp_path / "log", **trust) == (13, [])
    return tmp_path / "log", trust


def test_every_file_seals_the_files_before_it(three: tuple[Path, dict[str, Path]]) -> None:
    """At 6054cd1 files were never compared: all of these went unnoticed."""
    folder, trust = three
    first, second, third = sorted(folder.glob("*.jsonl"))
    good = {path: path.read_bytes() for path in (first, second, third)}

    def found() -> list[tuple[str, int]]:
        findings = verify_folder(folder, **trust)[1]
        for path, data in good.items():
            path.write_bytes(data)
        assert verify_folder(folder, **trust)[1] == []
        return [(one.file, one.seq) for one in findings if not one.torn]

    first.unlink()
    assert found() == [(first.name, 5)]
    second.unlink()
    assert found() == [(second.name, 3)]
    first.write_bytes(b"")
    assert found() == [(first.name, 0), (first.name, 5)]
    for path, last in ((first, 5), (second, 3)):
        lines = good[path].splitlines(keepends=True)
        for kept in range(1, len(lines)):
            path.write_bytes(b"".join(lines[:kept]))
            assert found() == [(path.name, last)]
            path.write_bytes(b"".join(lines[:kept]) + lines[kept][:20])
            assert found() == [(path.name, last)]
    first.write_bytes(good[second])
    second.write_bytes(good[first])
    assert {(first.name, 0), (second.name, 0)} <= set(found())
    first.rename(folder / "2020-01-01.jsonl")
    assert {one.file for one in verify_folder(folder, **trust)[1]} == {"2020-01-01.jsonl", first.name}


def test_a_file_that_was_written_anew_is_found(tmp_path: Path) -> None:
    write(tmp_path, 5)
    (first,) = tmp_path.glob("*.jsonl")
    write(tmp_path, 3)
    head, lines = START, []
    for line in first.read_text().splitlines():
        record = json.loads(line)["record"] | {"before": head}
        record |= {"number": 7} if record["seq"] == 2 else {}
        body = orjson.dumps(record)
        head = hashlib.sha256(body).hexdigest()
        lines.append(b'{"record":' + body + b',"hash":"' + head.encode() + b'"}\n')
    first.write_bytes(b"".join(lines))
    ((name, seq, why),) = [(one.file, one.seq, one.why) for one in verify_folder(tmp_path)[1]]
    assert (name, seq) == (first.name, 5)
    assert "is another one than the first record of" in why


def test_nothing_may_stand_beside_a_record(three: tuple[Path, dict[str, Path]]) -> None:
    folder, trust = three
    path = sorted(folder.glob("*.jsonl"))[1]
    good = path.read_bytes().splitlines(keepends=True)
    line = orjson.loads(good[2])
    beside = [line | {"note": "paid"}, line | {"signature": {"key": "x"}}, dict(reversed(line.items()))]
    if trust:
        beside += [{k: line[k] for k in ("record", "hash")}, line | {"signature": line["signature"] | {"note": 1}}]
    for forged in beside:
        path.write_bytes(b"".join([*good[:2], orjson.dumps(forged) + b"\n", *good[3:]]))
        assert [(one.file, one.seq) for one in verify_folder(folder, **trust)[1]] == [(path.name, 2)]


def test_the_end_of_a_log_is_kept_by_receipts(
    three: tuple[Path, dict[str, Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing seals the newest file: that its end was cut off, or all of it, is seen by receipts alone."""
    folder, trust = three
    newest = sorted(folder.glob("*.jsonl"))[-1]
    kept = tmp_path / "heads.jsonl"
    more = [f"--{name}={path}" for name, path in trust.items()]
    assert main(["audit", "verify", str(folder), "--heads", str(kept), *more]) == 0
    good = newest.read_bytes()
    newest.write_bytes(b"".join(good.splitlines(keepends=True)[:2]))
    assert verify_folder(folder, **trust)[1] == []
    assert main(["audit", "verify", str(folder), "--receipts", str(kept), *more]) == 4
    assert f"{newest.name}: record 2 is missing, cut off" in capsys.readouterr().out
    newest.unlink()
    assert main(["audit", "verify", str(folder), "--receipts", str(kept), *more]) == 4
    newest.write_bytes(good)
    kept.write_text(json.dumps({"results": [], "record": json.loads(kept.read_text().splitlines()[0])}))
    assert main(["audit", "verify", str(folder), "--receipts", str(kept), *more]) == 0
    kept.write_text('{"record": null}\n')
    assert main(["audit", "verify", str(folder), "--receipts", str(kept), *more]) == 2
    assert "line 1 is not a receipt" in capsys.readouterr().err


def test_a_line_that_breaks_off_is_no_tampering(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, 3)
    (path,) = tmp_path.glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-30])
    ((seq, torn),) = [(one.seq, one.torn) for one in verify_folder(tmp_path)[1]]
    assert (seq, torn) == (3, True)
    assert main(["audit", "verify", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "record 3 breaks off: the server died while it wrote it" in told
    assert "3 records, 0 findings" in told
    assert len(list(read_log(tmp_path))) == 3
    write(tmp_path, 1)
    assert [one.torn for one in verify_folder(tmp_path)[1]] == [True]


# -- a full disk -----------------------------------------------------------------------------------------------------


class Disk:
    """A disk that takes half of what is written and is full then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full, self.write = False, os.write
        monkeypatch.setattr("dicoflex.serving.audit.os.write", self)

    def __call__(self, descriptor: int, data: bytes) -> int:
        if not self.is_full:
            return self.write(descriptor, data)
        self.write(descriptor, bytes(data)[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nobody_waiting_and_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 6054cd1 the exception was set on a cancelled future, and who came later waited for ever."""
    disk = Disk(monkeypatch)

    async def run() -> None:
        log = AuditLog(tmp_path)
        first = await log.append({"event": "first"})
        disk.is_full = True
        for _ in range(3):
            callers = [asyncio.create_task(log.append({"event": "lost"})) for _ in range(3)]
            await asyncio.sleep(0)
            callers[0].cancel()
            told = await asyncio.wait_for(asyncio.gather(*callers, return_exceptions=True), 10)
            assert [type(one) for one in told] == [asyncio.CancelledError, OSError, OSError]
        assert [path.name for path in tmp_path.glob("*.jsonl")] == [first["file"]]
        assert verify_folder(tmp_path) == (2, [])
        disk.is_full = False
        await asyncio.wait_for(log.append({"event": "second"}), 10)
        log.close()

    asyncio.run(run())
    assert [record["event"] for record in read_log(tmp_path)] == ["start", "first", "start", "second"]
    assert verify_folder(tmp_path) == (4, [])


def test_an_answer_that_can_not_be_recorded_is_not_sent(
    tmp_path: Path, models: Path, plain: Explainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    app = create(Settings(models=models, audit=tmp_path))
    state, body = app.state.own, question(plain, 2)
    rows = body.pop("rows")
    lines = b"\n".join(json.dumps(line).encode() for line in [body, *rows])

    async def run() -> tuple[httpx.Response, httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(app)
        async with state.running(), httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            while not state.is_ready:
                await asyncio.sleep(0.05)
            disk.is_full = True
            refused = await http.post("/v1/models/plain/explain", json={"rows": rows, **body})
            path, sort = "/v1/models/plain/explain-lines", {"Content-Type": "application/jsonl"}
            broken = await http.post(path, content=lines, headers=sort)
            disk.is_full = False
            return refused, broken, await http.post("/v1/models/plain/explain", json={"rows": rows, **body})

    refused, broken, fine = asyncio.run(run())
    assert (refused.status_code, refused.json()["code"]) == (503, "not-recorded")
    assert refused.headers["retry-after"] == "10"
    assert "counterfactuals" not in refused.text
    last = json.loads(broken.text.splitlines()[-1])
    assert last["problem"]["code"] == "not-recorded"
    assert fine.status_code == 200
    assert fine.json()["record"]["hash"]


def test_a_record_that_is_no_json_leaves_nobody_waiting(tmp_path: Path) -> None:
    async def run() -> None:
        log = AuditLog(tmp_path)
        with pytest.raises(TypeError):
            await asyncio.wait_for(log.append({"event": object()}), 10)
        assert not list(tmp_path.glob("*.jsonl"))
        await log.append({"event": "second"})
        log.close()

    asyncio.run(run())
    assert verify_folder(tmp_path) == (2, [])


def test_a_folder_that_can_not_be_written_is_refused_at_the_start(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 6054cd1: "this is a bug", or a server that was ready and then answered with 500 alone."""
    monkeypatch.setattr("dicoflex.serving.server.listen", lambda *_: pytest.fail("listens"))
    monkeypatch.setenv("DICOFLEX_SERVING", "")
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", Path("/proc/audit"), Path("/proc/self")):
        assert main(["serve", str(models), "--audit", str(folder)]) == 2
        told = capsys.readouterr().err
        assert f"the audit log can't be written to {folder}" in told
        assert "--audit" in told
    assert main(["serve", str(models), "--audit", str(tmp_path), "--audit-key", str(tmp_path / "none")]) == 2
    assert "none can't be read" in capsys.readouterr().err


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
    asked = read_question(body, plain.model_, RowReader(plain.schema_), Settings(models=models))
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
