"""How fast the parts are, beside what one would use instead: search, draws, latency, a million rows, start-up.

What is compared is timed in turns in one process, after a warm-up of each, and medians are given. A reference is shown
from its best side: the flows are timed from tensor to tensor, ours from frame to frame; numpy's brute force, written in
several ways, has its one-hot table made beforehand, ours sorts its rows anew each time. Brute force takes some of the
rows, and its time is scaled by the number of pairs. The flows have the paper's size and random weights, which make no
difference to their speed. Our code uses all cores, where nothing else is said; torch and matrix products use all or
one, whichever the warm-up found faster.

    python benchmarks/speed.py                        all parts on three tables (about an hour, models included)
    python benchmarks/speed.py --quick                a slice in a minute
    python benchmarks/speed.py --parts latency startup --tables adult

What a part found on a table is kept in a cache beside the fitted models, so a run that was stopped goes on where it
was. The cost of constraints is measured by `constraints.py`, that of a fit by `scale.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

import constraints
import quality
from dicoflex import DiCoFlex, load
from dicoflex.errors import DataError, UserError
from dicoflex.generators.flows import MafConfig
from dicoflex.neighbours import Neighbours, Pool, nearest
from dicoflex.runtime.whole_files import replacing, write_text
from dicoflex.table.encoding import Encoding, Parts
from experiments.pages import table as markdown
from quality import Task
from scale import peak_mb

HERE = Path(__file__).parent
CACHE = Path(".benchmarks") / "speed"
TABLES = ("adult", "bank", "default")
PACKAGES = ("dicoflex", "numpy", "pandas", "numba", "torch", "zuko", "nflows", "dice-ml")
EXPONENTS = (2.0, 0.01)
NEIGHBOURS = 16
ANSWERS = 10
TIE = 1e-9
# Numbers in one chunk of brute force; a few megabytes are faster than more.
CELLS = 2**20

OURS, ONE_THREAD = "dicoflex", "dicoflex, one thread"
PLAIN, NUMPY = "numpy, as the formula stands", "numpy, float32 in the cache"
SQUARES, PRODUCT = "numpy, squares in one pass", "numpy, matrix product"
SAMPLE, UNFILTERED, MAF = "dicoflex", "dicoflex, no filter", "dicoflex's maf"
ZUKO, NFLOWS = "zuko's MAF", "nflows' MAF"
EXPLAIN, DICE = "dicoflex, explain", "DiCE random"
EXPLAIN_ONE, DICE_ONE = "dicoflex, explain one row", "DiCE random, one row"
DRAWERS = (SAMPLE, UNFILTERED, MAF, ZUKO, NFLOWS)


@dataclass(frozen=True)
class Size:
    """How much work a part does.

    rows: training rows. queries, draws: of the sampling, queries per predicted class. anchors: of brute force. calls:
    of one row. dice_queries: that DiCE answers in a batch. many: queries of the large run. maf_seconds: for its fit.
    """

    rows: int | None = None
    queries: int = 100
    draws: int = 100
    anchors: int = 400
    calls: int = 1000
    dice_queries: int = 10
    many: int = 10_000
    maf_seconds: float = 60.0
    repeats: int = 5


FULL = Size()
QUICK = Size(
    rows=1500, queries=10, draws=20, anchors=40, calls=30, dice_queries=2, many=200, maf_seconds=2.0, repeats=2
)


@dataclass(frozen=True)
class Cell:
    """One measurement: which part on which table ("" where it needs none), and how much work it may do."""

    part: str
    table: str
    size: Size = FULL
    seed: int = 0

    @property
    def quick(self) -> bool:
        return self.size.rows is not None

    @property
    def tried(self) -> tuple[int, ...]:
        """How many threads torch and matrix products are tried on; a busy machine makes several very slow."""
        return (1,) if self.quick else (1, cores())

    def of(self, method: str) -> quality.Cell:
        """The same table and size with one of quality's methods."""
        size = self.size
        return quality.Cell(
            self.table, method, self.seed, queries=size.queries, draws=size.draws, rows=size.rows,
            maf_seconds=size.maf_seconds, quick=self.quick,
        )  # fmt: skip


class Ground:
    """A table with its black box, its queries and its fitted models; each is made when it is first asked for."""

    def __init__(self, cell: Cell, cache: Path) -> None:
        self.cell, self.cache = cell, cache

    @cached_property
    def task(self) -> Task:
        return quality.prepare(self.cell.of("mixed"), "perceptron")

    def model(self, method: str) -> Path:
        """The file of the fitted explainer, which is made unless it is there."""
        cell = self.cell.of(method)
        path = self.cache / f"{cell.key}.dicoflex"
        if not path.exists():
            constraints.fitted(cell, self.task, self.cache)
        return path


# -- timing -----------------------------------------------------------------------------------------------------------

Work = Callable[[int], int]


def in_turns(works: Mapping[str, Work], repeats: int) -> dict[str, dict[str, Any]]:
    """Seconds of each work, in `repeats` rounds of all of them after a warm-up; works say how much they produced.

    >>> in_turns({"half": lambda turn: 2}, 3)["half"]["answers"]
    2
    """
    for work in works.values():
        work(0)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    answers: dict[str, list[int]] = {name: [] for name in works}
    for turn in range(repeats):
        for name, work in works.items():
            started = time.perf_counter()
            answers[name].append(work(turn))
            seconds[name].append(time.perf_counter() - started)
    return {name: _timing(seconds[name], answers[name]) for name in works}


def _timing(seconds: Sequence[float], answers: Sequence[int]) -> dict[str, Any]:
    median, mean = statistics.median(seconds), statistics.mean(answers)
    return {"seconds": median, "answers": mean, "per_answer": median / mean if mean else None, "repeats": list(seconds)}


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Our compiled code on `n` threads inside."""
    before = numba.get_num_threads()
    numba.set_num_threads(n)
    try:
        yield
    finally:
        numba.set_num_threads(before)


class BestThreads:
    """A work of torch or of matrix products, on the fastest of some numbers of threads, which the first call tries."""

    def __init__(self, work: Work, tried: Sequence[int]) -> None:
        self.work, self.tried = work, tried
        self.n: int | None = None

    def __call__(self, turn: int) -> int:
        if self.n is None:
            self.n = min(self.tried, key=lambda n: self._seconds(turn, n))
        return self._on(turn, self.n)

    def _on(self, turn: int, n: int) -> int:
        before = torch.get_num_threads()
        torch.set_num_threads(n)
        try:
            with threadpool_limits(n, user_api="blas"):
                return self.work(turn)
        finally:
            torch.set_num_threads(before)

    def _seconds(self, turn: int, n: int) -> float:
        started = time.perf_counter()
        self._on(turn, n)
        return time.perf_counter() - started


# -- neighbours -------------------------------------------------------------------------------------------------------

Distances = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Search:
    """All rows of a table against those of the next class, and `some` of them for brute force."""

    parts: Parts
    labels: np.ndarray
    some: np.ndarray
    table: np.ndarray

    @classmethod
    def of(cls, task: Task, n: int, seed: int) -> Search:
        encoding = Encoding.fit(task.data.X_train, task.data.schema)
        parts = encoding.parts(encoding.encode(task.data.X_train))
        _, labels = np.unique(task.labels, return_inverse=True)
        some = np.random.default_rng(seed).choice(len(labels), min(n, len(labels)), replace=False)
        return cls(parts, labels, np.sort(some), one_hot(parts))

    @cached_property
    def target(self) -> np.ndarray:
        return (self.labels + 1) % (self.labels.max() + 1)

    @cached_property
    def scale(self) -> float:
        """How many pairs of rows there are for each pair that brute force looks at."""
        against = np.bincount(self.labels)[self.target]
        return float(against.sum() / against[self.some].sum())

    def ours(self, p: float, rows: np.ndarray | slice = slice(None)) -> Neighbours:
        """What `nearest` finds for `rows`, its pool included."""
        parts = self.parts
        pool = Pool.group(parts, self.labels, int(self.labels.max()) + 1)
        anchors = Parts(parts.codes[rows], parts.numbers[rows], parts.code_feature, parts.number_feature)
        target = self.target[rows]
        n_features = len(np.union1d(parts.code_feature, parts.number_feature))
        mask = np.zeros((len(target), n_features), dtype=bool)
        return nearest(anchors, pool, target=target, p=np.full(len(target), p), mask=mask, k=NEIGHBOURS)

    def brute(self, table: np.ndarray, distances: Distances, k: int, *, width: int = 1) -> Neighbours:
        """What brute force finds for `some` rows; `distances` is one of those below.

        width: how many numbers it holds for a pair of rows, so that chunks fit the cache.
        """
        found = Neighbours(np.empty((len(self.some), k), dtype=np.int64), np.empty((len(self.some), k)))
        for label in np.unique(self.target[self.some]):
            at, rows = np.flatnonzero(self.target[self.some] == label), np.flatnonzero(self.labels == label)
            pool, step = table[rows], max(1, CELLS // (len(rows) * width))
            for low in range(0, len(at), step):
                here = at[low : low + step]
                near, distance = smallest(distances(table[self.some[here]], pool), k)
                found.rows[here], found.distances[here] = rows[near], distance
        return found


def one_hot(parts: Parts) -> np.ndarray:
    """Standardised numbers and one column per level: the table that the paper's distance is defined on.

    >>> column = np.array([0])
    >>> one_hot(Parts(np.array([[1], [0]], dtype=np.int32), np.array([[0.5], [2.0]]), column, column + 1))
    array([[0.5, 0. , 1. ],
           [2. , 1. , 0. ]])
    """
    levels = [np.eye(int(codes.max()) + 1)[codes] for codes in parts.codes.T]
    return np.concatenate([parts.numbers, *levels], axis=1)


def by_formula(p: float) -> Distances:
    """The distance of all pairs at any p, as one would write it down."""
    return lambda anchors, pool: (np.abs(anchors[:, None] - pool) ** p).sum(axis=2)


def by_difference(p: float) -> Distances:
    """The same without needless copies."""

    def distances(anchors: np.ndarray, pool: np.ndarray) -> np.ndarray:
        apart = anchors[:, None] - pool
        np.abs(apart, out=apart)
        apart **= p
        return apart @ np.ones(apart.shape[2], dtype=apart.dtype)

    return distances


def by_squares(anchors: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """The distance of all pairs at p = 2, squared and added up in one pass over the differences."""
    apart = anchors[:, None] - pool
    return np.einsum("abc,abc->ab", apart, apart)


def by_product(anchors: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """The distance of all pairs at p = 2, from a matrix product."""
    return (anchors**2).sum(axis=1)[:, None] + (pool**2).sum(axis=1) - 2 * anchors @ pool.T


def smallest(distances: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The places of the `k` smallest of each row and their values, in order."""
    near = np.argpartition(distances, k - 1, axis=1)[:, :k]
    values = np.take_along_axis(distances, near, axis=1)
    order = np.argsort(values, axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1), np.take_along_axis(values, order, axis=1)


def disagreements(found: Neighbours, brute: Neighbours) -> int:
    """How many rows got other neighbours than brute force, which gives one more; of equally far rows any will do."""
    last, next_one = brute.distances[:, -2], brute.distances[:, -1]
    tied = next_one <= last * (1 + TIE)
    same = (np.sort(found.rows, axis=1) == np.sort(brute.rows[:, :-1], axis=1)).all(axis=1)
    as_near = np.isclose(found.distances, brute.distances[:, :-1], rtol=TIE, atol=1e-12).all(axis=1)
    return int((~(as_near & (same | tied))).sum())


def neighbours(cell: Cell, ground: Ground) -> dict[str, Any]:
    """The search of all rows' neighbours in the other class against brute force on some."""
    search = Search.of(ground.task, cell.size.anchors, cell.seed)
    found = {f"{p:g}": _search(search, p, cell) for p in EXPONENTS}
    facts = {"rows": len(search.labels), "columns": search.table.shape[1], "anchors": len(search.some)}
    return facts | {"k": NEIGHBOURS, "exponents": found}


def _search(search: Search, p: float, cell: Cell) -> dict[str, Any]:
    ours, brute = _searches(search, p), _brutes(search, p)
    works = {name: _counted(work) for name, work in ours.items()}
    works |= {name: BestThreads(_counted(work), cell.tried) for name, work in brute.items()}
    times = in_turns(works, cell.size.repeats)
    scaled = {name: found["seconds"] * (search.scale if name in brute else 1) for name, found in times.items()}
    exact = search.brute(search.table, by_difference(p), NEIGHBOURS + 1, width=search.table.shape[1])
    return {
        "seconds": scaled,
        "ratios": {name: scaled[name] / scaled[OURS] for name in scaled},
        "scale": search.scale,
        "times": times,
        "disagreements": disagreements(search.ours(p, search.some), exact),
    }


def _searches(search: Search, p: float) -> dict[str, Callable[[], Neighbours]]:
    def one_thread() -> Neighbours:
        with threads(1):
            return search.ours(p)

    return {OURS: lambda: search.ours(p), ONE_THREAD: one_thread}


def _brutes(search: Search, p: float) -> dict[str, Callable[[], Neighbours]]:
    """Brute force by the definition, and what is faster at p = 2."""
    table, k, width = search.table.astype(np.float32), NEIGHBOURS, search.table.shape[1]
    works = {
        PLAIN: lambda: search.brute(search.table, by_formula(p), k),
        NUMPY: lambda: search.brute(table, by_difference(p), k, width=width),
    }
    if p == 2:
        works[SQUARES] = lambda: search.brute(table, by_squares, k, width=width)
        works[PRODUCT] = lambda: search.brute(table, by_product, k)
    return works


def _counted(work: Callable[[], Neighbours]) -> Work:
    return lambda _turn: len(work().rows)


# -- sampling ---------------------------------------------------------------------------------------------------------


def sampling(cell: Cell, ground: Ground) -> dict[str, Any]:
    """All queries' draws against other people's flows, and answers against DiCE's."""
    task, works, left_out = ground.task, _ours(cell, ground), {}
    n_reals, context = _conditions(task)
    flows: dict[str, BestThreads] = {}
    for name, make in {ZUKO: zuko_maf, NFLOWS: nflows_maf}.items():
        try:
            works[name] = flows[name] = BestThreads(make(n_reals, context, cell.size.draws), cell.tried)
        except ImportError as error:
            left_out[name] = f"{type(error).__name__}: {error}"
    try:
        works |= _dice(cell, task)
    except DataError as error:
        left_out[DICE] = str(error)
    times = in_turns(works, cell.size.repeats)
    return {
        "queries": len(task.queries),
        "times": times,
        "ratios": _ratios(times),
        "torch_threads": {name: work.n for name, work in flows.items()},
        "left_out": left_out,
    }


def _ours(cell: Cell, ground: Ground) -> dict[str, Work]:
    task, (mixed, maf) = ground.task, (load(ground.model(method)) for method in ("mixed", "maf"))

    def draws(explainer: DiCoFlex, filter: bool) -> Work:
        return lambda turn: len(
            explainer.sample(
                task.queries, target=task.targets, n=cell.size.draws, filter=filter, random_state=cell.seed + turn
            )
        )

    def answers(turn: int) -> int:
        return len(mixed.explain(task.queries, target=task.targets, n=ANSWERS, random_state=turn))

    def one(turn: int) -> int:
        row, target = _one(task, turn)
        return len(mixed.explain(row, target=target, n=ANSWERS, random_state=turn))

    return {
        SAMPLE: draws(mixed, True),
        UNFILTERED: draws(mixed, False),
        MAF: draws(maf, False),
        EXPLAIN: answers,
        EXPLAIN_ONE: one,
    }


def _one(task: Task, turn: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Another query each turn, the classes taking turns."""
    at = _spread(task, turn + 1)[turn]
    return task.queries.iloc[[at]], task.targets[[at]]


def _spread(task: Task, n: int) -> np.ndarray:
    """The positions of `n` queries, of both halves in turn: the queries stand class by class."""
    half = -(-len(task.queries) // 2)
    order = np.arange(2 * half).reshape(2, half).T.ravel()
    return np.resize(order[order < len(task.queries)], n)


def _conditions(task: Task) -> tuple[int, torch.Tensor]:
    """The number of reals, and the paper's context: the query's reals, the target, p and the mask."""
    encoding = Encoding.fit(task.data.X_train, task.data.schema)
    _, target = np.unique(task.targets, return_inverse=True)
    reals = encoding.to_reals(encoding.encode(task.queries))
    parts = [reals, np.eye(target.max() + 1)[target], np.full((len(reals), 1), 2.0), np.zeros_like(reals)]
    return reals.shape[1], torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))


def zuko_maf(n_reals: int, context: torch.Tensor, draws: int) -> Work:
    """zuko's flow of the paper's size, as zuko samples it."""
    import zuko

    size = MafConfig()
    hidden = [size.hidden_features] * size.hidden_layers
    flow = zuko.flows.MAF(n_reals, context.shape[1], transforms=size.layers, hidden_features=hidden).eval()

    def work(_turn: int) -> int:
        with torch.no_grad():
            return flow(context).sample((draws,)).shape[:2].numel()

    return work


def nflows_maf(n_reals: int, context: torch.Tensor, draws: int) -> Work:
    """nflows' flow of the paper's size, which the authors use: transforms of two residual blocks, orders reversed."""
    from nflows.distributions import StandardNormal
    from nflows.flows import Flow
    from nflows.transforms import CompositeTransform, MaskedAffineAutoregressiveTransform, ReversePermutation

    size = MafConfig()
    chain = []
    for _ in range(size.layers):
        transform = MaskedAffineAutoregressiveTransform(
            n_reals, size.hidden_features, context_features=context.shape[1], num_blocks=2
        )
        chain += [ReversePermutation(n_reals), transform]
    flow = Flow(CompositeTransform(chain), StandardNormal([n_reals])).eval()

    def work(_turn: int) -> int:
        with torch.no_grad():
            return flow.sample(draws, context=context).shape[:2].numel()

    return work


def _dice(cell: Cell, task: Task) -> dict[str, Work]:
    """DiCE's random search on a few queries at once, and on one."""
    from baselines.base import Problem
    from baselines.dice import DiceRandom

    problem = Problem.of(task.black_box, task.data.X_train, task.data.schema)
    method = DiceRandom().fit(problem, seed=cell.seed)
    few = _spread(task, cell.size.dice_queries)

    def one(turn: int) -> int:
        return len(method.answer(*_one(task, turn), n=ANSWERS).frame)

    return {
        DICE: lambda _turn: len(method.answer(task.queries.iloc[few], task.targets[few], n=ANSWERS).frame),
        DICE_ONE: one,
    }


def _ratios(times: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """How many times as long as ours the others take: for all draws, per answer, and for one row."""
    pairs = [(name, ours, "seconds") for name in (ZUKO, NFLOWS) for ours in (SAMPLE, UNFILTERED, MAF)]
    pairs += [(DICE, SAMPLE, "per_answer"), (DICE, EXPLAIN, "per_answer"), (DICE_ONE, EXPLAIN_ONE, "seconds")]
    return {
        f"{name} / {ours}": times[name][unit] / times[ours][unit]
        for name, ours, unit in pairs
        if name in times and times[name][unit]
    }


# -- one row, and a million -------------------------------------------------------------------------------------------


def latency(cell: Cell, ground: Ground) -> dict[str, Any]:
    """How long a person waits for one row: percentiles over many calls in one process, after one."""
    task, explainer = ground.task, load(ground.model("mixed"))
    rows = [_one(task, i) for i in range(len(task.queries))]

    def explain(row: pd.DataFrame, target: np.ndarray, seed: int) -> Any:
        return explainer.explain(row, target=target, n=ANSWERS, random_state=seed)

    def sample(row: pd.DataFrame, target: np.ndarray, seed: int) -> Any:
        return explainer.sample(row, target=target, n=cell.size.draws, random_state=seed)

    asked = {f"explain, {ANSWERS} answers": explain, f"sample, {cell.size.draws} draws": sample}
    return {"calls": cell.size.calls, "milliseconds": {k: _waits(f, rows, cell.size.calls) for k, f in asked.items()}}


def _waits(ask: Callable[..., Any], rows: Sequence[tuple[Any, Any]], calls: int) -> dict[str, float]:
    ask(*rows[-1], 0)
    waits = []
    for i in range(calls):
        started = time.perf_counter()
        ask(*rows[i % len(rows)], i)
        waits.append(1000 * (time.perf_counter() - started))
    return {"p50": float(np.percentile(waits, 50)), "p99": float(np.percentile(waits, 99)), "max": max(waits)}


def million(cell: Cell, ground: Ground) -> dict[str, Any]:
    """Many draws for many queries, in fresh processes."""
    model = str(ground.model("mixed").resolve())
    runs = [_apart(cell, model) for _ in range(cell.size.repeats)]
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    return medians | {"draws": cell.size.many * cell.size.draws, "runs": runs}


def _apart(cell: Cell, model: str) -> dict[str, float]:
    given = json.dumps(asdict(cell) | {"model": model})
    command = [sys.executable, str(Path(__file__).resolve()), "--apart", given]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def draw_many(cell: Cell, model: str) -> dict[str, float]:
    """Seconds and memory of one `sample`; to be called in a process that has done nothing else.

    above_mb: the peak, less what the process held with the model and the queries loaded. It includes what compiled code
    takes, which the first call loads; seconds do not, they are a second call's.
    """
    test = quality.load(cell.of("mixed")).X_test
    rows = test.take(np.resize(np.arange(len(test)), cell.size.many)).reset_index(drop=True)
    started = time.perf_counter()
    explainer = load(model)
    loading = time.perf_counter() - started
    before = held_mb()
    explainer.sample(rows.head(1), n=cell.size.draws, random_state=cell.seed)
    started = time.perf_counter()
    explainer.sample(rows, n=cell.size.draws, random_state=cell.seed)
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "above_mb": peak_mb() - before, "before_mb": before, "load_seconds": loading}


def held_mb() -> float:
    """The memory that this process holds, in megabytes; where that is not told, the most that it has held."""
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_mb()
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


# -- start-up ---------------------------------------------------------------------------------------------------------

HELP, IMPORT, STACK = "dicoflex --help", "import dicoflex", "import torch, pandas"
ADDED, CLASS = "import torch, pandas, dicoflex", "import torch, pandas; from dicoflex import DiCoFlex"
SCRIPTS = ("pass", IMPORT, STACK, ADDED, CLASS)


def startup(cell: Cell, _ground: Ground) -> dict[str, Any]:
    """How long fresh processes take to start."""
    commands = {HELP: [*_entry(), "--help"]}
    commands |= {script: [sys.executable, "-c", script] for script in SCRIPTS}
    times = in_turns({name: _process(command) for name, command in commands.items()}, cell.size.repeats)
    seconds = {name: found["seconds"] for name, found in times.items()}
    ratios = {name: seconds[name] / seconds[STACK] for name in (IMPORT, ADDED, CLASS)}
    return {"seconds": seconds, "ratios": ratios, "times": times}


def _entry() -> list[str]:
    """The installed command, or what it runs where it is not beside the interpreter."""
    found = shutil.which("dicoflex", path=str(Path(sys.executable).parent))
    return [found] if found else [sys.executable, "-c", "from dicoflex.cli import main; main()"]


def _process(command: Sequence[str]) -> Work:
    def work(_turn: int) -> int:
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return 1

    return work


# -- running ----------------------------------------------------------------------------------------------------------

Measure = Callable[[Cell, Ground], dict[str, Any]]
MEASURES: dict[str, Measure] = {
    "neighbours": neighbours,
    "sampling": sampling,
    "latency": latency,
    "million": million,
    "startup": startup,
}


def cells(options: argparse.Namespace) -> list[Cell]:
    """What the options ask for, table by table; start-up needs no table."""
    size = QUICK if options.quick else FULL
    given = {name: getattr(options, name) for name in ("repeats", "calls")}
    for name, value in given.items():
        if value is not None and value < 1:
            raise UserError(f"--{name} must be at least 1, got {value}; leave it out for {getattr(size, name)}")
    size = replace(size, **{name: value for name, value in given.items() if value is not None})
    tables = options.tables or (TABLES[:1] if options.quick else TABLES)
    wanted = [Cell(part, name, size, options.seed) for name in tables for part in options.parts if part != "startup"]
    return wanted + [Cell("startup", "", size, options.seed)] * ("startup" in options.parts)


def run(wanted: Sequence[Cell], cache: Path) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The figures of all cells, from the cache where they are there, and which tables were left out and why."""
    cache.mkdir(parents=True, exist_ok=True)
    results, left_out = [], {}
    grounds = {cell.table: Ground(cell, cache) for cell in wanted}
    for cell in wanted:
        if cell.table in left_out:
            continue
        try:
            results.append(_kept(cell, grounds[cell.table], cache))
        except DataError as error:
            left_out[cell.table] = str(error)
            print(f"  left out: {error}", flush=True)
    return results, left_out


def _kept(cell: Cell, ground: Ground, cache: Path) -> dict[str, Any]:
    """A cell's figures; those in the cache hold for the same settings and versions."""
    path = cache / ("-".join(filter(None, [cell.part, cell.table])) + ".json")
    settings = asdict(cell) | {"versions": versions(), "cores": cores()}
    if path.exists():
        kept: dict[str, Any] = json.loads(path.read_text())
        if all(kept.get(name) == value for name, value in settings.items()):
            return kept
    print(f"{cell.part} {cell.table} …", flush=True)
    result = settings | MEASURES[cell.part](cell, ground)
    write_text(path, json.dumps(result, indent=1) + "\n")
    return result


def versions() -> dict[str, str]:
    """Of Python and the packages that are compared."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# -- the page ---------------------------------------------------------------------------------------------------------


def page(results: Sequence[dict[str, Any]], left_out: Mapping[str, str], command: str) -> str:
    """The results as Markdown: a section per part."""
    made = ", ".join(f"{name} {number}" for name, number in versions().items())
    size = results[0]["size"] if results else asdict(FULL)
    text = f"Generated by `{command}` on {cores()} cores with {made}; medians of {size['repeats']}."
    lines = ["# Speed", "", text, "", __doc__.split("\n\n")[1], "", "![Seconds side by side](speed.png)", ""]
    sections = [SECTIONS[part](mine) for part in MEASURES if (mine := [r for r in results if r["part"] == part])]
    return "\n".join(lines) + "".join(sections) + _left_out(left_out)


def _left_out(reasons: Mapping[str, str]) -> str:
    lines = ["", "Left out:", "", *(f"- {name}: {reason}" for name, reason in reasons.items()), ""]
    return "\n".join(lines) if reasons else ""


def _neighbours_section(results: Sequence[dict[str, Any]]) -> str:
    found = [(r, p, each) for r in results for p, each in r["exponents"].items()]
    names = dict.fromkeys(name for _, _, each in found for name in each["seconds"])
    rows = [
        [name, *(_beside(each["seconds"].get(name), each["ratios"].get(name)) for _, _, each in found)]
        for name in names
    ]
    rows.append(["rows with other neighbours", *(f"{each['disagreements']} of {r['anchors']}" for r, _, each in found)])
    text = (
        f"\n## Neighbour search\n\nThe {NEIGHBOURS} nearest rows of the other class for every row: seconds, and how "
        f"many times ours. numpy takes {results[0]['anchors']} of the rows. As the formula stands, it works in float64 "
        f"on chunks of {CELLS:,} pairs; the next line does the same in float32, in place, on chunks that fit the "
        "cache; at p = 2 there are two shortcuts, of which the matrix product rounds more. Neighbours are compared "
        "with brute force in float64; of equally far rows any will do.\n"
    )
    head = [f"{r['table']}, {r['rows']:,} × {r['columns']}, p = {p}" for r, p, _ in found]
    return text + markdown(["", *head], rows)


def _beside(seconds: float | None, ratio: float | None) -> str:
    return "–" if seconds is None else f"{_s(seconds)} ({_x(ratio)})"


def _sampling_section(results: Sequence[dict[str, Any]]) -> str:
    size = results[0]["size"]
    names = [r["table"] for r in results]
    draws = [
        [name, *(_s(r["times"].get(name, {}).get("seconds")) for r in results)]
        for name in DRAWERS
        if any(name in r["times"] for r in results)
    ]
    answers = [
        [f"{name}, {unit}", *(_ms(r["times"].get(name, {}).get(key)) for r in results)]
        for name, unit, key in (
            (SAMPLE, "ms per draw", "per_answer"), (EXPLAIN, "ms per answer", "per_answer"),
            (DICE, "ms per answer", "per_answer"), (EXPLAIN_ONE, "ms", "seconds"), (DICE_ONE, "ms", "seconds"),
        )
    ]  # fmt: skip
    pairs = dict.fromkeys(pair for r in results for pair in r["ratios"])
    ratios = [[pair, *(_x(r["ratios"].get(pair)) for r in results)] for pair in pairs]
    text = (
        f"\n## Sampling\n\n{size['draws']} draws for each of {', '.join(str(r['queries']) for r in results)} queries "
        f"({', '.join(names)}), from frame to frame; the flows of zuko and nflows from tensor to tensor. Flows "
        "draw as it comes, as ours does without the filter; with it, draws that the stand-in doubts and unlikely ones "
        "are replaced. Ours are distinct either way. DiCE answers "
        f"{size['dice_queries']} queries, or one, with {ANSWERS} answers each asked for; so does explain.\n"
    )
    text += markdown(["seconds for all draws", *names], draws) + markdown(["answers", *names], answers)
    reasons = {f"{r['table']}, {name}": reason for r in results for name, reason in r["left_out"].items()}
    return text + markdown(["how many times as long", *names], ratios) + _left_out(reasons)


def _latency_section(results: Sequence[dict[str, Any]]) -> str:
    rows = [
        [r["table"], name, *(f"{found[which]:.2f}" for which in ("p50", "p99", "max"))]
        for r in results
        for name, found in r["milliseconds"].items()
    ]
    text = f"\n## One row\n\n{results[0]['calls']:,} calls in one process, after one; no check.\n"
    return text + markdown(["", "call", "p50, ms", "p99, ms", "longest, ms"], rows)


def _million_section(results: Sequence[dict[str, Any]]) -> str:
    size = results[0]["size"]
    rows = [
        [r["table"], f"{r['seconds']:.2f}", f"{r['draws'] / r['seconds']:,.0f}", f"{r['above_mb']:,.0f}",
         f"{r['before_mb']:,.0f}", f"{r['load_seconds']:.3f}"]
        for r in results
    ]  # fmt: skip
    text = (
        f"\n## {results[0]['draws']:,} draws\n\n{size['draws']} for each of {size['many']:,} queries, each time in a "
        "fresh process. Memory is the peak, less what the process held with model and queries loaded.\n"
    )
    head = ["", "seconds", "draws per second", "memory above the model, MB", "before, MB", "loading the model, s"]
    return text + markdown(head, rows)


def _startup_section(results: Sequence[dict[str, Any]]) -> str:
    (found,) = results
    rows = [[f"`{name}`", _s(s), _x(found["ratios"].get(name))] for name, s in found["seconds"].items()]
    return f"\n## Start-up\n\nFresh processes.\n{markdown(['', 'seconds', f'times `{STACK}`'], rows)}"


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g}"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:.3g}"


def _x(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


SECTIONS: dict[str, Callable[[Sequence[dict[str, Any]]], str]] = {
    "neighbours": _neighbours_section,
    "sampling": _sampling_section,
    "latency": _latency_section,
    "million": _million_section,
    "startup": _startup_section,
}


# -- the figure -------------------------------------------------------------------------------------------------------

Bars = dict[str, dict[str, float]]
COLOURS = ("#0060a9", "#d67300", "#2a7f72", "#aa90c5", "#6b7583", "#c6a700")


def panels(results: Sequence[dict[str, Any]]) -> dict[str, Bars]:
    """What the figure shows: per panel and group of bars, the bars' values."""
    drawn: dict[str, Bars] = {}
    for r in results:
        at = r["table"]
        if r["part"] == "neighbours":
            for p, found in r["exponents"].items():
                drawn.setdefault(f"neighbour search, p = {p}, seconds", {})[at] = found["seconds"]
        if r["part"] == "sampling":
            seconds = {name: r["times"][name]["seconds"] for name in DRAWERS if name in r["times"]}
            answers = {name: r["times"][name]["per_answer"] for name in (SAMPLE, EXPLAIN, DICE) if name in r["times"]}
            drawn.setdefault(f"{r['size']['draws']} draws for all queries, seconds", {})[at] = seconds
            drawn.setdefault("seconds per answer", {})[at] = {name: s for name, s in answers.items() if s}
        if r["part"] == "latency":
            waits = {f"{name}, {q}": found[q] for name, found in r["milliseconds"].items() for q in ("p50", "p99")}
            drawn.setdefault("one row, milliseconds", {})[at] = waits
        if r["part"] == "startup":
            drawn["start-up, seconds"] = {"": r["seconds"]}
    return drawn


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Bars on logarithmic axes, a panel for each comparison."""
    from matplotlib.figure import Figure

    drawn = panels(results)
    rows = max(1, -(-len(drawn) // 2))
    figure = Figure(figsize=(11, 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, 2, squeeze=False).ravel()
    for ax, (title, groups) in zip(axes, drawn.items(), strict=False):
        _bars(ax, groups)
        ax.set_title(title, loc="left", fontsize=9)
    for ax in axes[len(drawn) :]:
        ax.set_axis_off()
    with replacing(path) as draft:
        figure.savefig(draft, format="png", dpi=130)


def _bars(ax: Any, groups: Bars) -> None:
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    height = 0.8 / len(names)
    for i, name in enumerate(names):
        has = [(at, group[name]) for at, group in enumerate(groups.values()) if name in group]
        places = [at + i * height for at, _ in has]
        bars = ax.barh(places, [value for _, value in has], height, label=name, color=COLOURS[i % len(COLOURS)])
        ax.bar_label(bars, fmt="%.3g", fontsize=6, padding=2)
    ax.set_yticks([at + 0.4 - height / 2 for at in range(len(groups))], list(groups))
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.invert_yaxis()
    ax.margins(x=0.15)
    ax.tick_params(labelsize=8)
    ax.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the options ask for and write `speed.md`, `speed.json` and `speed.png`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=list(MEASURES), default=list(MEASURES))
    parser.add_argument("--tables", nargs="+", choices=quality.TABLES, help=f"default: {', '.join(TABLES)}")
    parser.add_argument("--repeats", type=int, help=f"rounds of which the median is taken, default {FULL.repeats}")
    parser.add_argument("--calls", type=int, help=f"calls for one row, default {FULL.calls}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="few rows, queries and rounds, in a minute")
    parser.add_argument("--out", type=Path, help="default: results beside this file; of a quick run, its cache")
    parser.add_argument("--cache", type=Path, help=f"default: {CACHE}; of a quick run, a folder in it")
    parser.add_argument("--apart", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.apart:
        given = json.loads(options.apart)
        model = given.pop("model")
        print(json.dumps(draw_many(Cell(**given | {"size": Size(**given["size"])}), model)))
        return
    cache = options.cache or (CACHE / "quick" if options.quick else CACHE)
    out = options.out or (cache if options.quick else HERE / "results")
    results, left_out = run(cells(options), cache)
    command = shlex.join(["python", "benchmarks/speed.py", *(sys.argv[1:] if argv is None else argv)])
    out.mkdir(parents=True, exist_ok=True)
    found = {"command": command, "versions": versions(), "cores": cores(), "cells": results, "left_out": left_out}
    write_text(out / "speed.json", json.dumps(found, indent=1) + "\n")
    draw(results, out / "speed.png")
    write_text(out / "speed.md", page(results, left_out, command))
    print(f"written: {out / 'speed.md'}")


if __name__ == "__main__":
    main()
