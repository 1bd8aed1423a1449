"""The audit log: an append-only file of all answers, in which every record seals the one before it.

A line is `{"record": …, "hash": …}`, the hash that of the record, which holds the hash before it. Each answer is sent
with the number and the hash of its record, a receipt: a chain shows what was altered, dropped or moved, and receipts
show what was cut off its end. Records hold digests of rows and answers; the values themselves only where that is asked.
"""

from __future__ import annotations

__all__ = ["AuditLog", "Finding", "Receipt", "Record", "read_log", "verify_folder"]

import asyncio
import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from dicoflex.errors import DataError, SignatureError
from dicoflex.serving import counters
from dicoflex.signatures import Key, check_record, sign_record

ENDING = ".jsonl"
START = "0" * 64
Record = dict[str, Any]
Receipt = dict[str, Any]


class AuditLog:
    """The log of one server process: a file per day.

    A record is on the disk (fsync) before its receipt is given, and so before its answer is sent; records that come
    while others are written are written together, with one sync. key: a private key to sign every record with.
    """

    def __init__(self, folder: Path, *, key: Path | None = None) -> None:
        self.folder = folder
        self.key = None if key is None else key.read_bytes()
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self.waiting: list[tuple[Record, asyncio.Future[Receipt]]] = []
        self.head, self.seq, self.day = START, 0, ""
        self.descriptor: int | None = None
        self.writing: asyncio.Task[None] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    async def append(self, record: Record) -> Receipt:
        """Write a record; returns once it is on the disk, with its receipt."""
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self.waiting.append((record, done))
        if self.writing is None or self.writing.done():
            self.writing = asyncio.create_task(self._write_waiting())
        return await done

    async def _write_waiting(self) -> None:
        """Write what waits, and what came meanwhile, each time with one sync."""
        while self.waiting:
            some, self.waiting = self.waiting, []
            records = [record for record, _ in some]
            try:
                receipts = await asyncio.get_running_loop().run_in_executor(self.thread, self._write, records)
            except OSError as error:
                for _, one in some:
                    one.set_exception(error)
                continue
            for (_, one), receipt in zip(some, receipts, strict=True):
                if not one.done():
                    one.set_result(receipt)

    def close(self) -> None:
        """End the thread and close the file."""
        self.thread.shutdown(wait=True)
        if self.descriptor is not None:
            os.close(self.descriptor)

    def _write(self, records: list[Record]) -> list[Receipt]:
        """Write records, all or none: after an error the next ones go to a new file, which seals what was written."""
        before = self.head, self.seq
        try:
            return self._written(records)
        except OSError:
            (self.head, self.seq), self.day = before, ""
            raise

    def _written(self, records: list[Record]) -> list[Receipt]:
        now = datetime.now(UTC)
        lines, receipts = [], []
        if now.date().isoformat() != self.day:
            lines.append(self._open(now))
        for record in records:
            lines.append(self._line(record, now))
            receipts.append({"file": self.name, "seq": self.seq - 1, "hash": self.head})
        assert self.descriptor is not None
        text = memoryview(b"".join(lines))
        while text:
            text = text[os.write(self.descriptor, text) :]
        os.fsync(self.descriptor)
        counters.audit_head.set(self.seq)
        return receipts

    def _open(self, now: datetime) -> bytes:
        """Begin the file of a day; its first record seals the last one of the file before."""
        if self.descriptor is not None:
            os.close(self.descriptor)
        self.day = now.date().isoformat()
        self.name = f"{now:%Y-%m-%dT%H-%M-%S-%f}-{os.getpid()}{ENDING}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self.descriptor = os.open(self.folder / self.name, flags, 0o600)
        self.seq = 0
        return self._line({"event": "start", "version": version("dicoflex")}, now)

    def _line(self, record: Record, now: datetime) -> bytes:
        whole = {"seq": self.seq, "time": now.isoformat(timespec="milliseconds"), "before": self.head, **record}
        body = orjson.dumps(whole)
        self.head, self.seq = hashlib.sha256(body).hexdigest(), self.seq + 1
        seal: Record = {"hash": self.head}
        if self.key is not None:
            seal = sign_record(seal, key=self.key)
        # The record is written as it was hashed.
        return b'{"record":' + body + b"," + orjson.dumps(seal)[1:] + b"\n"


# -- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What is wrong with a log: in which file, at which record, and why."""

    file: str
    seq: int
    why: str


def verify_folder(folder: Path, *, trust: Key | None = None) -> tuple[int, list[Finding]]:
    """How many records a folder's logs have, and all that is wrong with them.

    trust: a public key that every record must be signed with.
    """
    count, findings = 0, []
    for path in _files(folder):
        lines = path.read_bytes().splitlines(keepends=True)
        count += len(lines)
        findings += [Finding(path.name, seq, why) for seq, why in _wrong(lines, trust)]
    return count, findings


def read_log(folder: Path) -> Iterator[Record]:
    """The records of a folder's logs, file by file."""
    for path in _files(folder):
        for i, line in enumerate(path.read_bytes().splitlines()):
            try:
                yield orjson.loads(line)["record"]
            except (ValueError, KeyError, TypeError):
                raise DataError(
                    f"{path}: line {i + 1} is no record; dicoflex audit verify tells what is wrong"
                ) from None


def _files(folder: Path) -> list[Path]:
    found = sorted(folder.glob(f"*{ENDING}")) if folder.is_dir() else []
    if not found:
        raise DataError(f"{folder} holds no audit log (*{ENDING}); give the folder of dicoflex serve --audit")
    return found


def _wrong(lines: list[bytes], trust: Key | None) -> Iterator[tuple[int, str]]:
    """Every place at which a file is not what was written, by the number that the record there should have."""
    head: str | None = None
    for seq, line in enumerate(lines):
        try:
            found = orjson.loads(line)
            record, own = found["record"], found["hash"]
            number, before = record["seq"], record["before"]
        except (ValueError, KeyError, TypeError):
            yield seq, "is no record"
            head = None
            continue
        if orjson.dumps(found) + b"\n" != line or _hash(record) != own:
            yield seq, "was altered"
        elif number != seq:
            yield seq, f"is missing or moved: record {number} stands here"
        elif head is not None and before != head:
            yield seq, "does not follow the record before it"
        elif trust is not None and (why := _unsigned(found, trust)):
            yield seq, why
        head = own


def _unsigned(line: Record, trust: Key) -> str | None:
    signed = {"hash": line["hash"], **({"signature": line["signature"]} if "signature" in line else {})}
    try:
        check_record(signed, trust=trust)
    except SignatureError as error:
        return str(error)
    return None


def _hash(record: Record) -> str:
    return hashlib.sha256(orjson.dumps(record)).hexdigest()
