"""The audit log: an append-only file of all answers, in which every record seals the one before it.

A line is `{"record": …, "hash": …}`, the hash that of the record, which holds the hash before it; a signed log has a
`signature` beside them. The first record of a file names the file and seals the last records of the other files of the
folder, so that a chain, or another process's file, can't go missing unnoticed. Each answer is sent with the file, the
number and the hash of its record, a receipt: receipts show what was cut off the end, which no seal can. Records hold
digests of rows and answers; the values themselves only where that is set.
"""

from __future__ import annotations

__all__ = [
    "AuditLog", "Finding", "Receipt", "Record", "heads", "read_log", "read_receipts", "verify_folder",
]  # fmt: skip

import asyncio
import contextlib
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson

from dicoflex.errors import DataError, SettingError, SignatureError
from dicoflex.runtime.whole_files import read_bytes
from dicoflex.serving import monitoring
from dicoflex.signatures import Key, check_record, sign_record

ENDING = ".jsonl"
START = "0" * 64
TAIL = 2**16
MOST_KEY = 2**14
Record = dict[str, Any]
Receipt = dict[str, Any]


def _check_writable(folder: Path) -> None:
    """Make the folder of a log, and see that files can be written there; else a `SettingError`.

    Parameters
    ----------
    folder
        Where the log is to be kept; made if it does not exist.

    Raises
    ------
    SettingError
        If the folder can't be made, or no file can be written in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".probe-") as probe:
            probe.write(b"x")
            probe.flush()
    except OSError as error:
        text = f"the audit log can't be written to {folder}: {error.strerror}"
        raise SettingError(f"{text}; give --audit a folder that this user may write to") from None


class AuditLog:
    """The log of one server process: a file per day.

    A record is on the disk (fsync) before its receipt is given, and so before its answer is sent; records that come
    while others are written are written together, with one sync. key: a private key to sign every record with.
    """

    def __init__(self, folder: Path, *, key: Path | None = None) -> None:
        _check_writable(folder)
        self.folder = folder
        self.key = None if key is None else read_bytes(key, most=MOST_KEY, error=SettingError)
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="audit")
        self.waiting: list[tuple[Record, asyncio.Future[Receipt]]] = []
        self.head, self.seq, self.day, self.name = START, 0, "", ""
        self.size = 0
        self.last: Receipt | None = None
        self.descriptor: int | None = None
        self.writing: asyncio.Task[None] | None = None

    async def append(self, record: Record) -> Receipt:
        """Write a record; returns once it is on the disk, with its receipt."""
        done: asyncio.Future[Receipt] = asyncio.get_running_loop().create_future()
        self.waiting.append((record, done))
        if self.writing is None or self.writing.done():
            self.writing = asyncio.create_task(self._write_waiting())
        return await done

    async def _write_waiting(self) -> None:
        """Write what waits, and what came meanwhile, each time with one sync; nobody is left waiting."""
        while self.waiting:
            some, self.waiting = self.waiting, []
            records = [record for record, _ in some]
            try:
                receipts = await asyncio.get_running_loop().run_in_executor(self.thread, self._write, records)
            except asyncio.CancelledError:
                for _, one in some:
                    one.cancel()
                raise
            except Exception as error:
                # A caller who left has cancelled its future; the others still wait for theirs.
                for _, one in some:
                    if not one.done():
                        one.set_exception(error)
                continue
            for (_, one), receipt in zip(some, receipts, strict=True):
                if not one.done():
                    one.set_result(receipt)

    def close(self) -> None:
        """End the thread and close the file."""
        self.thread.shutdown(wait=True)
        self._shut()

    def _shut(self) -> None:
        """Close the file, whatever state it is in."""
        if self.descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(self.descriptor)
            self.descriptor = None

    def _write(self, records: list[Record]) -> list[Receipt]:
        """Write records, all or none: after an error the next ones go to a new file, which seals what was written."""
        before = self.head, self.seq
        now = datetime.now(UTC)
        try:
            lines = [self._open(now)] if now.date().isoformat() != self.day else []
            assert self.descriptor is not None
            # Whoever seals this file meanwhile sees whole batches alone.
            with _locked(self.descriptor, fcntl.LOCK_EX):
                try:
                    return self._written(lines, records, now)
                except BaseException:
                    self._undo()
                    raise
        except BaseException:
            self._undo()
            self._shut()
            (self.head, self.seq), self.day = before, ""
            raise

    def _written(self, lines: list[bytes], records: list[Record], now: datetime) -> list[Receipt]:
        receipts = []
        for record in records:
            lines.append(self._line(record, now))
            receipts.append({"file": self.name, "seq": self.seq - 1, "hash": self.head})
        assert self.descriptor is not None
        text = memoryview(b"".join(lines))
        while text:
            text = text[os.write(self.descriptor, text) :]
        os.fsync(self.descriptor)
        monitoring.audit_head.set(self.seq)
        self.last, self.size = receipts[-1], os.fstat(self.descriptor).st_size
        return receipts

    def _undo(self) -> None:
        """Take back what was written of a batch that failed: no torn line, and no empty file, is left if possible."""
        with contextlib.suppress(OSError):
            if self.descriptor is not None and self.size:
                os.ftruncate(self.descriptor, self.size)
                os.fsync(self.descriptor)
            elif self.descriptor is not None:
                (self.folder / self.name).unlink()

    def _open(self, now: datetime) -> bytes:
        """Begin the file of a day; its first record seals the last ones of the files before."""
        self._shut()
        self.name = f"{now:%Y-%m-%dT%H-%M-%S-%f}-{os.getpid()}{ENDING}"
        sealed = self._sealed()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        self.descriptor = os.open(self.folder / self.name, flags, 0o600)
        self.size, self.seq, self.day = 0, 0, now.date().isoformat()
        _sync_folder(self.folder)
        facts = {"file": self.name, "files": sealed, "signed": self.key is not None, "version": version("dicoflex")}
        return self._line({"event": "start", **facts}, now)

    def _sealed(self) -> list[Receipt]:
        """What a new file seals: the own last record, and those of files that no other file seals yet."""
        ends = [(_first(path), _last(path)) for path in sorted(self.folder.glob(f"*{ENDING}"))]
        known = {receipt["hash"] for first, _ in ends for receipt in first}
        own = [] if self.last is None else [self.last]
        return own + [last for _, last in ends if last is not None and last != self.last and last["hash"] not in known]

    def _line(self, record: Record, now: datetime) -> bytes:
        whole = {"seq": self.seq, "time": now.isoformat(timespec="milliseconds"), "before": self.head, **record}
        body = orjson.dumps(whole)
        self.head, self.seq = hashlib.sha256(body).hexdigest(), self.seq + 1
        seal: Record = {"hash": self.head}
        if self.key is not None:
            seal = sign_record(seal, key=self.key)
        # The record is written as it was hashed.
        return b'{"record":' + body + b"," + orjson.dumps(seal)[1:] + b"\n"


@contextlib.contextmanager
def _locked(descriptor: int, how: int) -> Iterator[None]:
    """A lock on an open file, where the file system has locks."""
    with contextlib.suppress(OSError):
        fcntl.flock(descriptor, how)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _sync_folder(folder: Path) -> None:
    """Have the folder's list of files on the disk; without it, a new file may be gone after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _first(path: Path) -> list[Receipt]:
    """The receipts that a file's first record seals; none where it is no such record."""
    try:
        with path.open("rb") as file:
            found = orjson.loads(file.readline())["record"]["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [one for one in found if _is_receipt(one)] if isinstance(found, list) else []


def _last(path: Path) -> Receipt | None:
    """The receipt of a file's last whole record, once that is on the disk; None where there is none."""
    try:
        with path.open("rb") as file, _locked(file.fileno(), fcntl.LOCK_SH):
            line = orjson.loads(_last_line(file))
            # Another process may have written it and not have synced it: what is sealed must not get lost.
            os.fsync(file.fileno())
        found = {"file": path.name, "seq": line["record"]["seq"], "hash": line["hash"]}
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if _is_receipt(found) else None


def _last_line(file: Any) -> bytes:
    """The last line of a file that ends in a line break, read from the end."""
    size, length = file.seek(0, os.SEEK_END), TAIL
    while True:
        start = max(0, size - length)
        file.seek(start)
        whole = file.read(size - start).rpartition(b"\n")[0]
        _, found, line = whole.rpartition(b"\n")
        if found or start == 0:
            return bytes(line)
        length *= 4


# -- checking --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Finding:
    """What is wrong with a log: in which file, at which record, and why.

    Parameters
    ----------
    file, seq
        The file's name, and the number of the record.
    why
        What is wrong with it.
    torn
        Whether a last line breaks off, as it does when a server dies while it writes. Its answer was never sent. All
        other findings mean that somebody changed the log.
    """

    file: str
    seq: int
    why: str
    torn: bool = False


@dataclass(frozen=True)
class _File:
    """A file of a log: its lines with their line breaks, and the hash of each record that can be read."""

    name: str
    lines: list[bytes]
    hashes: list[str | None]

    @classmethod
    def of(cls, path: Path) -> _File:
        lines = path.read_bytes().splitlines(keepends=True)
        return cls(path.name, lines, [_hash_of(line) for line in lines])

    @property
    def is_torn(self) -> bool:
        return bool(self.lines) and not self.lines[-1].endswith(b"\n")

    @property
    def whole(self) -> list[bytes]:
        """The lines without a last one that breaks off."""
        return self.lines[:-1] if self.is_torn else self.lines


def verify_folder(
    folder: Path, *, trust: Key | None = None, receipts: Iterable[Receipt] = ()
) -> tuple[int, list[Finding]]:
    """How many records a folder's logs have, and all that is wrong with them.

    Parameters
    ----------
    folder
        The folder of the log.
    trust
        A public key that every record must be signed with.
    receipts
        Records that must be there: `record` of answers, or `heads` of an earlier look. No seal shows that the end of
        a log was cut off; these do.

    Returns
    -------
    tuple of int and list of Finding
        The number of whole records, and the findings, file by file.

    Raises
    ------
    DataError
        If the folder holds no log.
    """
    files = {path.name: _File.of(path) for path in _files(folder)}
    findings: list[Finding] = []
    seals: list[tuple[str, Receipt]] = [("a receipt", receipt) for receipt in receipts]
    for name, file in files.items():
        sealed = _seals(file)
        seals += [(name, receipt) for receipt in sealed or ()]
        findings += [Finding(name, seq, why) for seq, why in _wrong(file, trust)]
        if file.is_torn:
            findings.append(Finding(name, len(file.whole), "breaks off: the server died while it wrote it", torn=True))
    findings += _unkept(files, seals)
    return sum(len(file.whole) for file in files.values()), findings


def heads(folder: Path) -> list[Receipt]:
    """The receipts of every file's last record, to be kept elsewhere and given to `verify_folder` later."""
    return [last for path in _files(folder) if (last := _last(path)) is not None]


def read_receipts(path: Path) -> list[Receipt]:
    """Receipts from a file of JSON Lines, each a receipt or an answer of the server with its `record`."""
    found = []
    for i, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            value = orjson.loads(line)
            one = value.get("record", value)
        except (ValueError, AttributeError):
            one = None
        if not _is_receipt(one):
            raise DataError(f"{path}: line {i} is not a receipt; write file, seq and hash, or a whole answer")
        found.append({name: one[name] for name in ("file", "seq", "hash")})
    return found


def read_log(folder: Path) -> Iterator[Record]:
    """The records of a folder's logs, file by file; a last line that breaks off was never acknowledged."""
    for path in _files(folder):
        for i, line in enumerate(_File.of(path).whole):
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


def _wrong(file: _File, trust: Key | None) -> Iterator[tuple[int, str]]:
    """Every place at which a file is not what was written, by the number that the record there should have."""
    if not file.whole:
        yield 0, "is missing: the file is empty"
    head: str | None = None
    is_signed = _is_signed(file)
    for seq, line in enumerate(file.whole):
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
        elif list(found) != ["record", "hash", *(["signature"] if is_signed else [])]:
            yield seq, "was altered: beside it stands other than what a server writes"
        elif number != seq:
            yield seq, f"is missing or moved: record {number} stands here"
        elif seq == 0 and (why := _misplaced(file, record)):
            yield seq, why
        elif head is not None and before != head:
            yield seq, "does not follow the record before it"
        elif trust is not None and (why := _unsigned(found, trust)):
            yield seq, why
        head = own


def _misplaced(file: _File, record: Record) -> str | None:
    """What is wrong with a first record, as the one of its file."""
    if record.get("event") != "start" or record.get("file") != file.name:
        return f"is not the first of this file: it names {str(record.get('file'))[:100]!r}"
    sealed = _seals(file)
    if sealed is None:
        return "does not say which records it seals"
    if record["before"] != START and record["before"] not in [one["hash"] for one in sealed]:
        return "does not follow a record that it seals"
    return None


def _unkept(files: dict[str, _File], seals: list[tuple[str, Receipt]]) -> Iterator[Finding]:
    """Every record that something vouches for and that is not there."""
    for witness, receipt in seals:
        name, seq = receipt["file"], receipt["seq"]
        by = witness if witness not in files else f"the first record of {witness}"
        if name not in files:
            yield Finding(name, seq, f"is missing with its file: {by} vouches for it")
        elif seq >= len(files[name].whole):
            yield Finding(name, seq, f"is missing, cut off with what follows it: {by} vouches for it")
        elif files[name].hashes[seq] != receipt["hash"]:
            yield Finding(name, seq, f"is another one than {by} vouches for")


def _seals(file: _File) -> list[Receipt] | None:
    """The receipts of a file's first record; None where it has no list of them."""
    try:
        found = orjson.loads(file.whole[0])["record"]["files"]
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return found if isinstance(found, list) and all(map(_is_receipt, found)) else None


def _is_signed(file: _File) -> bool:
    """Whether a file says of itself that its records are signed."""
    try:
        return orjson.loads(file.whole[0])["record"]["signed"] is True
    except (ValueError, KeyError, TypeError, IndexError):
        return False


def _is_receipt(one: Any) -> bool:
    if not isinstance(one, dict) or not {"file", "seq", "hash"} <= set(one):
        return False
    return isinstance(one["file"], str) and type(one["seq"]) is int and one["seq"] >= 0 and isinstance(one["hash"], str)


def _unsigned(line: Record, trust: Key) -> str | None:
    signed = {name: line[name] for name in ("hash", "signature") if name in line}
    try:
        check_record(signed, trust=trust)
    except SignatureError as error:
        return str(error)
    return None


def _hash_of(line: bytes) -> str | None:
    """The hash that a line's record has; None where it is no record."""
    try:
        return _hash(orjson.loads(line)["record"])
    except (ValueError, KeyError, TypeError):
        return None


def _hash(record: Record) -> str:
    return hashlib.sha256(orjson.dumps(record)).hexdigest()
