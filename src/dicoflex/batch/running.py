"""A run over files: parts are handed to workers, tried again when a worker dies, and halved around a row that kills."""

from __future__ import annotations

__all__ = ["explain_files", "plan_files", "run_job"]

import os
import time
from collections import Counter, deque
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dicoflex.batch.explaining import seeded
from dicoflex.batch.manifest import MANIFEST, SUCCESS, check_manifest, settings_of
from dicoflex.batch.places import Place
from dicoflex.batch.pools import Inline, Lost, Pool, Processes
from dicoflex.batch.reporting import BatchPlan, BatchReport
from dicoflex.batch.sources import PART_ROWS, Source, Span
from dicoflex.batch.work import TABLES, Job, PartResult
from dicoflex.errors import SettingError, named
from dicoflex.explainer import Explainer, load
from dicoflex.request import Request
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.threads import thread_limit

Path = str | os.PathLike[str]
ENGINES = ("processes", "ray", "inline")
ATTEMPTS = 3
READERS = 16


def explain_files(
    model: Explainer | Path,
    source: Path,
    out: Path,
    request: Request,
    *,
    id: str | None = None,
    engine: str = "processes",
    workers: int | None = None,
    address: str | None = None,
    part_rows: int = PART_ROWS,
    row_key: bytes | None = None,
    verbose: bool | None = None,
) -> BatchReport:
    """Explain all rows of files, each exactly once, however often the run is killed and started again.

    Parameters
    ----------
    model : Explainer or path
        The model to ask, or its file.
    source, out : path or URI
        A folder of Parquet or CSV files, or one file; and the folder for the results, which is made. `s3://`, `gs://`,
        `abfs://` and `hdfs://` are opened by `pyarrow.fs`.
    request : Request
        What to ask. Without a seed it is 0.
    id : str, optional
        The column that names a row. By default results have the columns `file` and `row`.
    engine : {"processes", "ray", "inline"}
        Processes of this machine, actors of a Ray cluster, or this process.
    workers : int, optional
        How many; by default as many as there are processors.
    address : str, optional
        The Ray cluster, such as "auto"; by default one is started on this machine.
    part_rows : int
        Rows of one part at most. A part is what is done again when its worker dies.
    row_key : bytes, optional
        The key of the remembered rows, for novel answers.
    verbose : bool, optional
        Show progress; by default on a terminal.

    Returns
    -------
    BatchReport
        Counts, a hash of the content, speed and memory.

    Raises
    ------
    SettingError
        If `out` holds a run with other settings or over other files.
    QueryError
        If the request does not fit the model.
    DataError
        If a file lacks a column or can't be read.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from dicoflex import DiCoFlex
    >>> rows = pd.DataFrame({"hours": [20, 25, 30, 35, 40, 45, 50, 55] * 8, "remote": [True, False] * 32})
    >>> labels = (rows["hours"] > 37).map({True: "yes", False: "no"})
    >>> explainer = DiCoFlex(random_state=0, max_seconds=2).fit(rows, labels)
    >>> folder = tempfile.mkdtemp()
    >>> rows.to_csv(f"{folder}/people.csv", index=False)
    >>> report = explain_files(explainer, f"{folder}/people.csv", f"{folder}/out", Request(target="yes"),
    ...                        engine="inline")
    >>> report.rows, sorted(path for path in os.listdir(f"{folder}/out"))
    (64, ['_SUCCESS', '_dicoflex.json', 'answers', 'shortfall'])
    """
    job = job_of(model, source, out, request, id=id, row_key=row_key)
    pool = pool_of(engine, job, workers, address)
    settings = settings_of(job, _checked(part_rows, "part_rows"))
    check_manifest(job, settings)
    return run_job(job, pool, part_rows=part_rows, verbose=verbose)


def plan_files(
    model: Explainer | Path, source: Path, out: Path, request: Request, *, id: str | None = None,
    part_rows: int = PART_ROWS, row_key: bytes | None = None,
) -> BatchPlan:  # fmt: skip
    """What `explain_files` would do with these arguments; it checks them, and writes nothing."""
    job = job_of(model, source, out, request, id=id, row_key=row_key)
    if job.out.read_json(MANIFEST) is not None:
        check_manifest(job, settings_of(job, part_rows))
    spans, done = _spans(job, part_rows)
    left = [span for span in spans if span not in done]
    return BatchPlan(
        files=len(job.source.files),
        rows=job.source.rows,
        parts=len(spans),
        parts_left=len(left),
        rows_left=sum(map(len, left)),
        ignored=job.source.extra(job.names),
    )


def job_of(
    model: Explainer | Path, source: Path, out: Path, request: Request, *, id: str | None, row_key: bytes | None
) -> Job:  # fmt: skip
    """The job that arguments state, checked before any work starts."""
    explainer = model if isinstance(model, Explainer) else load(model)
    start, end = Place.of(source), Place.of(out)
    if f"{end.uri}/".startswith(f"{start.uri}/"):
        raise SettingError(f"out is {end.uri}, within the rows that are read; choose a folder beside them")
    job = Job(explainer.model_, seeded(request), Source.of(start), end, id, row_key)
    _ = job.explainer
    return job


def pool_of(engine: str, job: Job, workers: int | None, address: str | None) -> Pool:
    """The workers that an engine's name stands for."""
    if engine not in ENGINES:
        raise SettingError(named("engine", engine, ENGINES))
    if address is not None and engine != "ray":
        raise SettingError(f"address= is for engine='ray', and engine is {engine!r}; leave it out")
    if engine == "inline":
        return Inline(job)
    if workers is not None:
        _checked(workers, "workers")
    if engine == "processes":
        return Processes(job, workers or thread_limit())
    from dicoflex.batch.ray_pool import RayPool

    return RayPool(job, workers, address)


def _checked(number: Any, name: str) -> int:
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise SettingError(f"{name} must be a whole number of at least 1, got {number!r}")
    return number


def run_job(job: Job, pool: Pool, *, part_rows: int = PART_ROWS, verbose: bool | None = None) -> BatchReport:
    """Work off all parts of a job that are not done yet, and say in `_SUCCESS` that all are."""
    started = time.perf_counter()
    spans, done = _spans(job, part_rows)
    run = _Run(job, pool, [span for span in spans if span not in done])
    with Progress(verbose).stage("explaining", job.source.rows) as advance, pool:
        advance(sum(one.rows for one in done.values()))
        for result in run.results():
            rate = sum(one.rows for one in run.finished.values()) / (time.perf_counter() - started)
            advance(result.rows, f"{rate:,.0f} rows/s")
    seconds = time.perf_counter() - started
    _sweep(job, [*done, *run.finished])
    report = BatchReport.of(
        list(run.finished.values()), resumed=list(done.values()), seconds=seconds, ignored=job.source.extra(job.names)
    )
    job.out.put_json(SUCCESS, report.success)
    return report


def _spans(job: Job, part_rows: int) -> tuple[list[Span], dict[Span, PartResult]]:
    """The parts of a job, and what came of those that earlier runs finished."""
    there = {name.removesuffix(".parquet") for name in job.out.names("answers")}
    spans = [part for span in job.source.spans(part_rows) for part in _as_left(span, there)]
    old = [span for span in spans if span.name in there]
    with ThreadPoolExecutor(READERS) as readers:
        found = zip(old, readers.map(job.done, old), strict=True)
        return spans, {span: result for span, result in found if result is not None}


def _as_left(span: Span, there: set[str]) -> list[Span]:
    """A part, or the halves that an earlier run cut it into."""
    if span.name in there or len(span) == 1 or not any(_is_within(name, span) for name in there):
        return [span]
    return [part for half in span.halves() for part in _as_left(half, there)]


def _is_within(name: str, span: Span) -> bool:
    pieces = name.split("-")
    if len(pieces) != 4 or not all(piece.isdigit() for piece in pieces[1:]) or int(pieces[1]) != span.file:
        return False
    return span.first <= int(pieces[2]) and int(pieces[3]) <= span.stop


def _sweep(job: Job, spans: Iterable[Span]) -> None:
    """Remove what earlier runs left of parts that were halved since, and half-written files."""
    known = {f"{span.name}.parquet" for span in spans}
    for table in TABLES:
        for name in job.out.names(table):
            if name.startswith(("part-", ".part-")) and name not in known:
                job.out.delete(f"{table}/{name}")


class _Run:
    """The parts of a run on their way through a pool."""

    def __init__(self, job: Job, pool: Pool, spans: list[Span]) -> None:
        self.job, self.pool = job, pool
        self.waiting = deque(spans)
        self.planned = set(spans)
        self.failures: Counter[Span] = Counter()
        self.finished: dict[Span, PartResult] = {}

    def results(self) -> Iterable[PartResult]:
        """What comes of each part, as they end."""
        begun = 0
        while self.waiting or begun:
            while self.waiting and begun < self.pool.slots:
                self.pool.start(self.waiting.popleft())
                begun += 1
            span, outcome = self.pool.wait()
            begun -= 1
            result = outcome if isinstance(outcome, PartResult) else self._failed(span, outcome)
            if result is not None:
                self.finished[span] = result
                yield result

    def _failed(self, span: Span, outcome: Lost | Exception) -> PartResult | None:
        """Try a part again, or its halves; a single row whose process dies each time is an error of its own."""
        if not isinstance(outcome, Lost | OSError):
            outcome.add_note(f"in rows {span.first} to {span.stop} of {self.job.source.files[span.file].path}")
            raise outcome
        self.failures[span] += 1
        # Within a part that has killed three processes, one more is enough to go on to the halves.
        attempts = ATTEMPTS if span in self.planned or len(span) == 1 or isinstance(outcome, OSError) else 1
        if self.failures[span] < attempts:
            self.waiting.append(span)
        elif isinstance(outcome, OSError):
            raise outcome
        elif len(span) == 1:
            return self.job.given_up(span, f"the process that explained it {outcome.how}, {ATTEMPTS} times")
        else:
            self.waiting.extendleft(reversed(span.halves()))
        return None
