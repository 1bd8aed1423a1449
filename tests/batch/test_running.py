"""Runs over files: every row exactly once, whatever dies; other settings are refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest

from dicoflex import Explainer, Request
from dicoflex.batch import BatchReport, explain_batches, explain_files, plan_files
from dicoflex.batch.pools import Inline, Processes
from dicoflex.batch.running import job_of, run_job
from dicoflex.batch.tables import digest
from dicoflex.batch.work import TABLES, Job
from dicoflex.errors import DataError, QueryError, SettingError
from losing import LossyPool, MortalJob

TwoFiles = Callable[[Path], Path]
PART = 25


@pytest.fixture(scope="module")
def source(two_files: TwoFiles, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_files(tmp_path_factory.mktemp("batch") / "in")


@pytest.fixture(scope="module")
def undisturbed(explainer: Explainer, source: Path, wish: Request) -> BatchReport:
    out = source.parent / "undisturbed"
    return explain_files(explainer, source, out, wish, id="customer", engine="inline", part_rows=PART)


def job_for(explainer: Explainer, source: Path, out: Path, wish: Request, kind: type[Job] = Job) -> Job:
    made = job_of(explainer, source, out, wish, id="customer", row_key=None)
    return kind(made.model, made.request, made.source, made.out, made.id)


def table(out: Path, name: str) -> pd.DataFrame:
    files = sorted((out / name).glob("*.parquet"))
    return pd.concat(map(pd.read_parquet, files)) if files else pd.DataFrame({"customer": []})


def check_whole(out: Path, people: pd.DataFrame, report: BatchReport) -> None:
    """Every row is in exactly one of the tables' files, and the files are those of the report."""
    rows = [set(table(out, name)["customer"]) for name in TABLES]
    errors, shortfall, answers = rows
    assert errors | shortfall | answers == set(people["customer"])
    assert not errors & (shortfall | answers)
    counts = {name: len(table(out, name)) for name in TABLES}
    assert counts == {name: getattr(report, name) for name in TABLES}
    assert not table(out, "answers").duplicated(["customer", "cf"]).any()
    assert json.loads((out / "_SUCCESS").read_text())["hash"] == report.hash
    assert [path.name for path in out.rglob("*") if path.name.startswith(".")] == []


def test_all_rows_of_a_folder(
    undisturbed: BatchReport, explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request
) -> None:
    assert (undisturbed.rows, undisturbed.parts, undisturbed.resumed) == (len(people), 6, 0)
    check_whole(source.parent / "undisturbed", people, undisturbed)
    # The hash is that of the same rows in one process, without files.
    files = [pq.read_table(path) for path in sorted(source.glob("*.parquet"))]
    found = list(explain_batches(explainer, [b for one in files for b in one.to_batches()], wish, id="customer"))
    whole = sum(digest(getattr(one, name), seed) for one in found for seed, name in enumerate(TABLES))
    assert undisturbed.hash == f"{whole % 2**64:016x}"


def test_processes_and_other_parts_give_the_same_hash(
    undisturbed: BatchReport, explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    report = explain_files(explainer, source, tmp_path, wish, id="customer", workers=2, part_rows=40)
    assert report.hash == undisturbed.hash
    assert report.memory > 50_000_000
    check_whole(tmp_path, people, report)


def test_a_part_whose_process_is_killed_is_done_again(
    undisturbed: BatchReport, explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    job = job_for(explainer, source, tmp_path / "out", wish, MortalJob)
    report = run_job(job, Processes(job, 1), part_rows=60)
    assert (tmp_path / "killed").exists()
    assert report.hash == undisturbed.hash
    check_whole(tmp_path / "out", people, report)


def test_a_run_that_is_killed_goes_on(
    undisturbed: BatchReport, explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    model, out = tmp_path / "m.dicoflex", tmp_path / "out"
    explainer.save(model)
    command = f"""
from dicoflex import Request
from dicoflex.batch import explain_files
wish = Request(target="yes", n=2)
explain_files({str(model)!r}, {str(source)!r}, {str(out)!r}, wish, id="customer", engine="inline", part_rows=4)
"""
    process = subprocess.Popen([sys.executable, "-c", command])
    try:
        while len(list(out.glob("answers/part-*"))) < 3:
            assert process.poll() is None, "the run ended before it was killed"
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (out / "_SUCCESS").exists()
    before = {path: path.stat().st_mtime_ns for path in out.glob("answers/part-*")}
    plan = plan_files(model, source, out, wish, id="customer", part_rows=4)
    assert plan.parts - plan.parts_left == len(before)
    report = explain_files(model, source, out, wish, id="customer", engine="inline", part_rows=4)
    assert report.resumed == len(before) >= 3
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert report.hash == undisturbed.hash
    check_whole(out, people, report)


def test_half_written_files_are_written_again_and_strays_removed(
    undisturbed: BatchReport, explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    given = {"id": "customer", "engine": "inline", "part_rows": PART}
    explain_files(explainer, source, tmp_path, wish, **given)
    first, *_ = sorted(tmp_path.glob("answers/part-*"))
    first.write_bytes(first.read_bytes()[:-20])
    (tmp_path / "errors").mkdir()
    stray = tmp_path / "errors" / f".{first.name}.0123abcd.part"
    stray.touch()
    report = explain_files(explainer, source, tmp_path, wish, **given)
    assert (report.parts, report.resumed, report.hash) == (6, 5, undisturbed.hash)
    assert not stray.exists()
    check_whole(tmp_path, people, report)


def test_a_row_that_kills_stands_alone_in_the_errors(
    undisturbed: BatchReport, explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    job = job_for(explainer, source, tmp_path, wish)
    pool = LossyPool(job, {17})
    report = run_job(job, pool, part_rows=PART)
    assert pool.deaths == {(0, 25): 3, (12, 25): 1, (12, 18): 1, (15, 18): 1, (16, 18): 1, (17, 18): 3}
    assert report.errors == 1
    errors = table(tmp_path, "errors")
    assert errors["customer"].tolist() == [people["customer"].iloc[17]]
    assert errors["reason"].tolist() == ["the process that explained it was ended by SIGKILL, 3 times"]
    check_whole(tmp_path, people, report)
    # A second run finds the halves, and does not look for the row again.
    again = LossyPool(job, {17})
    assert run_job(job, again, part_rows=PART).hash == report.hash
    assert not again.deaths
    # Another input of the same name: what is whole now takes the place of its halves.
    for path in tmp_path.glob("answers/part-00000-*"):
        path.unlink()
    assert run_job(job, Inline(job), part_rows=PART).hash == undisturbed.hash
    assert not table(tmp_path, "errors")["customer"].tolist()


def test_another_run_into_the_same_folder_is_refused(
    explainer: Explainer, source: Path, wish: Request, two_files: TwoFiles, tmp_path: Path
) -> None:
    given = {"id": "customer", "engine": "inline", "part_rows": PART}
    explain_files(explainer, source, tmp_path / "out", wish, **given)
    for other, text in [
        ({"request": Request(target="yes", n=3)}, "request.n was 2, and is 3"),
        ({"request": Request(target="yes", n=2, seed=1)}, "request.seed was 0, and is 1"),
        ({"id": None}, "id was 'customer', and is None"),
        ({"part_rows": 30}, "part_rows was 25, and is 30"),
        ({"source": two_files(tmp_path / "other") / "a.parquet"}, "files was 2, and is 1"),
    ]:
        call = {"model": explainer, "source": source, "out": tmp_path / "out", "request": wish, **given, **other}
        with pytest.raises(SettingError, match=text):
            explain_files(**call)
    two_files(tmp_path / "changed")
    pq.write_table(pq.read_table(source / "b.parquet"), tmp_path / "changed" / "b.parquet", compression="none")
    with pytest.raises(SettingError, match="over other files, or other sizes"):
        explain_files(explainer, tmp_path / "changed", tmp_path / "out", wish, **given)
    (tmp_path / "out" / "_dicoflex.json").unlink()
    with pytest.raises(SettingError, match="holds answers and no _dicoflex"):
        explain_files(explainer, source, tmp_path / "out", wish, **given)


def test_wrong_arguments_are_refused_before_anything_is_written(
    explainer: Explainer, source: Path, wish: Request, tmp_path: Path
) -> None:
    given = {"model": explainer, "source": source, "out": tmp_path / "out", "request": wish}
    for other, error, text in [
        ({"engine": "proceses"}, SettingError, "did you mean 'processes'"),
        ({"workers": 0}, SettingError, "workers must be a whole number of at least 1, got 0"),
        ({"part_rows": 0}, SettingError, "part_rows must be"),
        ({"address": "auto"}, SettingError, "address= is for engine='ray'"),
        ({"id": "custmer"}, DataError, "did you mean 'customer'"),
        ({"out": source / "out"}, SettingError, "within the rows that are read"),
        ({"request": Request(target="maybe")}, QueryError, "target 'maybe' is unknown"),
        ({"source": "nosuch://bucket/rows"}, DataError, "can't be opened"),
    ]:
        with pytest.raises(error, match=text):
            explain_files(**{**given, **other})
    assert not (tmp_path / "out").exists()


def test_folders_named_after_values_are_columns(
    explainer: Explainer, people: pd.DataFrame, wish: Request, tmp_path: Path, undisturbed: BatchReport
) -> None:
    for (city, area), rows in people.groupby(["city", "area"], observed=True):
        folder = tmp_path / "in" / f"city={city}" / f"area={area}"
        folder.mkdir(parents=True)
        rows.drop(columns=["city", "area"]).to_parquet(folder / "x.parquet", index=False)
    report = explain_files(explainer, tmp_path / "in", tmp_path / "out", wish, id="customer", engine="inline")
    assert report.hash == undisturbed.hash
    assert (tmp_path / "out" / "_SUCCESS").exists()


def test_without_an_id_rows_are_named_by_file_and_number(
    explainer: Explainer, source: Path, people: pd.DataFrame, wish: Request, tmp_path: Path
) -> None:
    explain_files(explainer, source, tmp_path, wish, engine="inline", part_rows=PART)
    rows = pd.concat([table(tmp_path, name)[["file", "row"]] for name in ("answers", "shortfall")]).drop_duplicates()
    half = len(people) // 2
    assert sorted(rows.itertuples(index=False, name=None)) == [
        (name, i) for name in ("a.parquet", "b.parquet") for i in range(half)
    ]
