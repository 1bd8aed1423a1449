"""All queries' draws beside other people's flows, and answers beside DiCE's."""

from __future__ import annotations

__all__ = ["DICE", "DICE_ONE", "DRAWERS", "EXPLAIN", "EXPLAIN_ONE", "MAF", "NFLOWS", "SAMPLE", "ZUKO", "measure"]

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.baselines.dice import DiceRandom
from benchmarks.cells import Cell
from benchmarks.experiments.speed.ground import ANSWERS, Amount, maf_file, mixed_file, one_query, tried_threads
from benchmarks.tasks import Task, prepare
from benchmarks.timing import BestThreads, Work, in_turns
from dicoflex import DiCoFlex, load
from dicoflex.errors import DataError
from dicoflex.generators.flows import MafConfig
from dicoflex.table.encoding import Encoding

SAMPLE, UNFILTERED, MAF = "dicoflex", "dicoflex, no filter", "dicoflex's maf"
ZUKO, NFLOWS = "zuko's MAF", "nflows' MAF"
EXPLAIN, DICE = "dicoflex, explain", "DiCE random"
EXPLAIN_ONE, DICE_ONE = "dicoflex, explain one row", "DiCE random, one row"
DRAWERS = (SAMPLE, UNFILTERED, MAF, ZUKO, NFLOWS)


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """All queries' draws against other people's flows, and answers against DiCE's."""
    task, left_out = prepare(cell), {}
    works = _ours(cell, task, models)
    n_reals, context = _conditions(task)
    flows: dict[str, BestThreads] = {}
    for name, make in {ZUKO: zuko_maf, NFLOWS: nflows_maf}.items():
        try:
            works[name] = flows[name] = BestThreads(make(n_reals, context, cell.size.candidates), tried_threads(cell))
        except ImportError as error:
            left_out[name] = f"{type(error).__name__}: {error}"
    try:
        works |= _dice(cell, task)
    except DataError as error:
        left_out[DICE] = str(error)
    times = in_turns(works, Amount.of(cell).repeats)
    return {
        "queries": len(task.queries),
        "times": times,
        "ratios": _ratios(times),
        "torch_threads": {name: work.n for name, work in flows.items()},
        "left_out": left_out,
    }


def _ours(cell: Cell, task: Task, models: Path) -> dict[str, Work]:
    mixed, maf = (load(file(cell, task, models)) for file in (mixed_file, maf_file))

    def draws(explainer: DiCoFlex, filter: bool) -> Work:
        return lambda turn: len(
            explainer.sample(
                task.queries, target=task.targets, n=cell.size.candidates, filter=filter, random_state=cell.seed + turn
            )
        )

    def answers(turn: int) -> int:
        return len(mixed.explain(task.queries, target=task.targets, n=ANSWERS, random_state=turn))

    def one(turn: int) -> int:
        row, target = one_query(task, turn)
        return len(mixed.explain(row, target=target, n=ANSWERS, random_state=turn))

    return {
        SAMPLE: draws(mixed, True),
        UNFILTERED: draws(mixed, False),
        MAF: draws(maf, False),
        EXPLAIN: answers,
        EXPLAIN_ONE: one,
    }


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
    method = DiceRandom().fit(task.problem, seed=cell.seed)
    few = slice(0, Amount.of(cell).dice_queries)

    def one(turn: int) -> int:
        return len(method.answer(*one_query(task, turn), n=ANSWERS).frame)

    return {
        DICE: lambda _turn: len(method.answer(task.queries[few], task.targets[few], n=ANSWERS).frame),
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
