"""CSV files are cut by their bytes: what a part holds is what the whole file has there."""

from __future__ import annotations

import gzip
from pathlib import Path

import pandas as pd
import pytest

from dicoflex import Explainer, Request
from dicoflex.batch import explain_files
from dicoflex.batch.csv_records import BLOCK, scan_records
from dicoflex.batch.places import Place
from dicoflex.batch.sources import Source, Span
from dicoflex.errors import DataError

AWKWARD = b'\xef\xbb\xbf"na,me",text\r\n1,plain\r\n2,"two\r\nlines, ""quoted"""\r\n\r\n3,\r\n4,last'
EXPECTED = [("1", "plain"), ("2", 'two\r\nlines, "quoted"'), ("3", ""), ("4", "last")]


def cells(source: Source, first: int, stop: int, rows: int = 100) -> list[tuple[str, ...]]:
    tables = [table for table, _ in source.read(Span(0, first, stop), ["na,me", "text"], rows)]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_any_rows_of_a_file_can_be_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x{ending}"
    path.write_bytes(gzip.compress(AWKWARD) if ending.endswith("gz") else AWKWARD)
    source = Source.of(Place.of(path))
    assert source.rows == 4
    for first in range(4):
        for stop in range(first + 1, 5):
            assert cells(source, first, stop) == EXPECTED[first:stop]
            assert cells(source, first, stop, rows=1) == EXPECTED[first:stop]


def test_records_are_found_across_blocks(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f'{i},"{"a" * (i % 7)}\n{i}"' for i in range(BLOCK // 8)]
    path.write_text("number,text\n" + "\n".join(rows) + "\n", newline="")
    with open(path, "rb") as stream:
        scan = scan_records(stream, "x.csv", every=1000)
        assert scan.rows == len(rows)
        assert scan.firsts == tuple(range(0, len(rows), 1000))
        for first, offset in zip(scan.firsts, scan.offsets, strict=True):
            stream.seek(offset)
            assert stream.readline().startswith(f"{first},".encode())


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    for name, content, text in [
        ("empty.csv", b"", "is empty"),
        ("twice.csv", b"a,a\n1,2\n", "column names repeat"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=text):
            Source.of(Place.of(tmp_path / name))
    (tmp_path / "nothing").mkdir()
    (tmp_path / "x.txt").touch()
    with pytest.raises(DataError, match="holds no rows"):
        Source.of(Place.of(tmp_path / "nothing"))
    with pytest.raises(DataError, match="the file ending says what it holds"):
        Source.of(Place.of(tmp_path / "x.txt"))
    with pytest.raises(DataError, match="is not there"):
        Source.of(Place.of(tmp_path / "lacking"))


def test_csv_has_the_answers_of_parquet(
    explainer: Explainer, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    hashes = set()
    for name in ("x.parquet", "x.csv", "x.csv.gz"):
        frame = people.to_parquet if name.endswith("parquet") else people.to_csv
        frame(tmp_path / name, index=False)
        report = explain_files(
            explainer, tmp_path / name, tmp_path / f"out-{name}", wish, id="customer", engine="inline", part_rows=50
        )
        hashes.add(report.hash)
        assert report.rows == len(people)
    assert len(hashes) == 1


def test_cells_and_rows_that_can_not_be_read_are_errors(
    explainer: Explainer, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    people.to_csv(tmp_path / "x.csv", index=False)
    lines = (tmp_path / "x.csv").read_text().splitlines()
    place = lines[0].split(",").index("gain")
    lines[4] = ",".join("much" if i == place else cell for i, cell in enumerate(lines[4].split(",")))
    lines[9] += ",too,many"
    (tmp_path / "x.csv").write_text("\n".join(lines))
    report = explain_files(explainer, tmp_path / "x.csv", tmp_path / "out", wish, engine="inline", part_rows=50)
    assert (report.rows, report.errors) == (len(people), 2)
    errors = pd.read_parquet(tmp_path / "out" / "errors").sort_values("row")
    assert errors["row"].tolist() == [3, 8]
    assert "not numbers" in errors["reason"].iloc[0]
    assert "13 cells" in errors["reason"].iloc[1]
