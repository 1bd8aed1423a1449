"""Files and streams of the command line: what was written comes back, nothing runs, nothing is left behind."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from dicoflex import cli, load, model_file
from dicoflex.cli import entry
from dicoflex.errors import ModelFileError
from dicoflex.generators import GENERATORS
from dicoflex.learning import surrogate
from dicoflex.runtime import whole_files
from dicoflex.runtime.printable import printable_json
from dicoflex.views.csv_text import neutral

ROWS = 160
EVIL = '=HYPERLINK("http://evil","x")'
ODD = "ja\x1b[2Jb\u202e"


def table() -> pd.DataFrame:
    """Text as a file has it: numbers with zeros before them, words for missing values, formulas, odd names."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 70, ROWS)
    return pd.DataFrame(
        {
            "zip": [f"{z:05d}" for z in rng.integers(501, 950, ROWS)],
            "garage": rng.choice(["None", "NA", "yes"], ROWS),
            "note": rng.choice([EVIL, "+1+1", "-3", "plain"], ROWS),
            ODD: rng.choice(["a", "b\x1b]0;t\x07"], ROWS),
            "age": age.astype(str),
            "answer": np.where(age > 45, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("streams")
    table().to_csv(place / "data.csv", index=False)
    table().head(6).to_csv(place / "rows.csv", index=False)
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
        patch.setattr(surrogate, "STEPS", 100)
        given = ["fit", str(place / "data.csv"), "--label", "answer", "-o", str(place / "m.dicoflex"), "--quiet"]
        assert cli.main([*given, "--max-seconds", "1", "--seed", "0"]) == 0
    return place


def explain(folder: Path, *options: str) -> int:
    given = ["explain", str(folder / "m.dicoflex"), str(folder / "rows.csv"), "--target", "yes", "--seed", "0"]
    return cli.main([*given, "-n", "2", *options])


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_frozen_and_unchanged_cells_come_back_as_they_were_written(folder: Path, tmp_path: Path) -> None:
    """0.1.0 (9aa4d8c) wrote 501 for 00501, and nothing for None and NA, and counted no violation."""
    out = tmp_path / "found.csv"
    assert explain(folder, "--freeze", "zip,garage", "--raw", "--verify", "--out", str(out)) == 0
    found, rows = read(out), read(folder / "rows.csv")
    assert {row["garage"] for row in rows} >= {"None", "NA"}
    assert len(found) >= 6
    for answer in found:
        own = rows[int(answer["row"])]
        assert (answer["zip"], answer["garage"]) == (own["zip"], own["garage"])
        for name in ("note", ODD):
            assert answer[name] in set(table()[name])


def test_formulas_are_neutral_unless_raw_is_asked_for(folder: Path, tmp_path: Path) -> None:
    """0.1.0 (9aa4d8c) wrote them as they were, for a spreadsheet to run."""
    for option, evil in ((), "'" + EVIL), (("--raw",), EVIL):
        assert explain(folder, "--freeze", "note", *option, "--out", str(tmp_path / "found.csv")) == 0
        notes = {answer["note"] for answer in read(tmp_path / "found.csv")}
        assert evil in notes
        assert notes <= {evil, evil[: -len(EVIL)] + "+1+1", "-3", "plain"}


@pytest.mark.parametrize("text", ["=1", "@SUM(A1)", "+1+1", "-1-1", "\t=1", "\r=1", "-"])
def test_what_a_spreadsheet_would_run(text: str) -> None:
    assert neutral(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-3", "+4.5e3", "own", "", 5, -2.5, None, True])
def test_what_no_spreadsheet_would_run(value: Any) -> None:
    assert neutral(value) is value


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_any_encoding_of_the_terminal(encoding: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.1.0 (9aa4d8c) ended with "this is a bug" where the output is not UTF-8, as when Windows redirects it."""
    bytes_ = io.BytesIO()
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(bytes_, encoding=encoding, write_through=True))
    assert explain(folder) == 0
    assert cli.main(["inspect", str(folder / "m.dicoflex")]) == 0
    said = bytes_.getvalue().decode(encoding)
    assert "row 0 → yes" in said if encoding == "utf-8" else "row 0 > yes" in said


def test_names_and_levels_are_printed_escaped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0.1.0 (9aa4d8c) sent ESC[2J, ESC]0; and U+202E of a stranger's model to the terminal."""
    path = str(folder / "m.dicoflex")
    assert explain(folder) == 0
    assert cli.main(["inspect", path]) == 0
    assert cli.main(["inspect", path, "--json"]) == 0
    assert cli.main(["schema", str(folder / "data.csv")]) == 0
    assert cli.main(["explain", path, str(folder / "rows.csv"), "--freeze", "x\x1b[2J\u202e"]) == 2
    said = capsys.readouterr()
    for text in (said.out, said.err):
        assert not [c for c in text if not c.isprintable() and c != "\n"]
    assert "ja\\x1b[2Jb\\u202e" in said.out
    assert "x\\x1b[2J\\u202e" in said.err


def test_json_that_is_printed_has_the_same_value() -> None:
    value = {"a\x1b\u202e\x9b": ["é", "\n", "𝔘"]}
    text = printable_json(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert all(c.isprintable() or c == "\n" for c in text)


DAMAGED = {
    "no gzip": b"age,answer\n1,yes\n",
    "cut short": gzip.compress(b"age,answer\n" + b"".join(b"%d,yes\n" % i for i in range(9000)))[:600],
    "a byte is off": gzip.compress(b"age,answer\n" + b"1,yes\n" * 400)[:-9] + b"\x00" * 9,
    "deflate is off": gzip.compress(b"age,answer\n" + bytes(range(32, 120)) * 40)[:40] + b"\xff" * 300,
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_compressed_tables(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0.1.0 (9aa4d8c) said "this is a bug", or "Aborted!" without a reason."""
    (tmp_path / "data.csv.gz").write_bytes(DAMAGED[case])
    assert cli.main(["schema", str(tmp_path / "data.csv.gz")]) == 2
    said = capsys.readouterr().err
    assert "data.csv.gz can't be read" in said
    assert "bug" not in said


@pytest.mark.parametrize("number", ["9" * 400, "-" + "9" * 400, "1e400", "123456789012345678901234567890"])
def test_huge_numbers_in_rows(number: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0.1.0 (9aa4d8c) said "this is a bug": OverflowError."""
    table().head(1).assign(age=number).to_csv(tmp_path / "rows.csv", index=False)
    assert cli.main(["explain", str(folder / "m.dicoflex"), str(tmp_path / "rows.csv"), "--target", "yes"]) == 2
    assert "column 'age'" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "SIGTERM") or os.name == "nt", reason="there are no such signals here")
def test_a_signal_to_end_leaves_no_part(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1.0 (9aa4d8c) left .name.xxxx.part behind."""
    (tmp_path / "found.csv").write_text("old")

    def end(draft: Any, old: Any) -> None:
        assert len(list(tmp_path.iterdir())) == 2
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(whole_files, "_take_after", end)
    assert explain(folder, "--out", str(tmp_path / "found.csv")) == entry.TERMINATED == 143
    assert [path.name for path in tmp_path.iterdir()] == ["found.csv"]
    assert (tmp_path / "found.csv").read_text() == "old"
    assert "terminated" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupted_fit_writes_nothing_and_says_so_by_its_code(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.1.0 (9aa4d8c) saved a model that had learned nothing, with exit code 0."""

    def loss(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(surrogate, "STEPS", 20)
    monkeypatch.setattr(GENERATORS["mixed"], "loss", loss)
    out = tmp_path / "m.dicoflex"
    assert cli.main(["fit", str(folder / "data.csv"), "--label", "answer", "-o", str(out), "--quiet"]) == 130
    assert not list(tmp_path.iterdir())
    assert "interrupted" in capsys.readouterr().err


def test_rows_that_have_the_target_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(folder) == 0
    assert "had the target already" in capsys.readouterr().err


def test_a_program_without_streams(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0.1.0 (9aa4d8c) failed where `sys.stderr` is None, as in a program without a console."""
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    assert explain(folder, "--verify", "--out", str(tmp_path / "found.csv")) == 0
    assert cli.main(["explain", str(tmp_path / "none"), str(tmp_path / "none.csv")]) == 3


ODD_VALUES: list[Any] = [None, True, -1, 10**400, 1e308, "", "\x1b[2J", [], {}, [None], {"a": {"b": []}}, "9" * 5000]


def leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The ways to everything in a header."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(way for key, item in inside for way in leaves(item, (*at, key)))]


def forged(header: dict[str, Any], way: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The header with something else at the end of a way."""
    made = json.loads(json.dumps(header))
    place = made
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    return dict(made)


@pytest.mark.slow
def test_forged_headers_are_refused_or_mean_something(folder: Path, tmp_path: Path) -> None:
    """0.1.0 (9aa4d8c) ended `inspect` with code 2 for 426 of 900 of them, and with "bug" for 17."""
    header, arrays = model_file.read(folder / "m.dicoflex")
    path, rng = tmp_path / "forged.dicoflex", np.random.default_rng(0)
    ways = [way for way in leaves(header) if way and way[0] not in model_file.ADDED]
    codes = []
    for _ in range(150):
        way, value = ways[rng.integers(len(ways))], ODD_VALUES[rng.integers(len(ODD_VALUES))]
        model_file.write(path, forged(header, way, value), arrays)
        codes.append(cli.main(["inspect", str(path)]))
        assert codes[-1] in (0, 3), (way, value)
        with contextlib.suppress(ModelFileError):
            load(path)
    assert codes.count(3) > 20
