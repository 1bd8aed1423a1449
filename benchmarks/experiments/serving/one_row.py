"""How long one row takes, beside one call of the black box for it, and what a server adds to it."""

from __future__ import annotations

__all__ = ["five_kinds", "one_row", "over_http"]

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.experiments.serving.ground import Ground
from benchmarks.experiments.serving.load import ask_all
from benchmarks.experiments.serving.processes import processor_seconds, served
from dicoflex import Constraints, Schema, load, relative
from dicoflex.answers.plain import answer_plain
from dicoflex.request import Request

ANSWERS = 10
FEWER = 5
NOTHING = Constraints()


def one_row(ground: Ground) -> dict[str, Any]:
    """Milliseconds of the processor (p50, p99) of each way to ask, by turns in one process, as shares of
    `predict_proba`: the processor's time, as other work on the machine stretches the clock's."""
    explainer = load(ground.model)
    frames = [ground.task.data.X_test.iloc[[i]] for i in range(len(ground.task.data.X_test))]
    cells, model, target = ground.cells(len(frames)), explainer.model_, ground.target
    five = five_kinds(explainer.schema_)

    def plain(*, n: int = ANSWERS, verify: bool = False, **wish: Any) -> Callable[[int], Any]:
        request = Request.of(target=[target], n=n, random_state=0, **wish)
        return lambda turn: answer_plain(model, [cells[turn]], request, verify=verify)

    def framed(**wish: Any) -> Callable[[int], Any]:
        return lambda turn: explainer.explain(frames[turn], target=target, n=ANSWERS, random_state=0, **wish)

    works: dict[str, Callable[[int], Any]] = {
        "predict_proba": lambda turn: ground.task.black_box.predict_proba(frames[turn]),
        "plain, refined": plain(constraints=NOTHING),
        "plain, refined, five kinds of constraints": plain(constraints=five),
        f"plain, refined, {FEWER} answers": plain(n=FEWER, constraints=NOTHING),
        f"plain, refined, {FEWER} answers, five kinds of constraints": plain(n=FEWER, constraints=five),
        "plain, refined and verified": plain(constraints=NOTHING, verify=True),
        "plain, as drawn": plain(constraints=NOTHING, refine=False),
        "frame, refined": framed(),
        "frame, refined, five kinds of constraints": framed(constraints=five),
        "frame, as drawn": framed(refine=False),
    }
    waits = _in_turns(works, ground.amount.calls, len(frames))
    return {"waits": waits, "calls": ground.amount.calls, "answers": ANSWERS, "constraints": five.model_dump()}


def over_http(ground: Ground) -> dict[str, Any]:
    """Milliseconds of the processor of a request for one row, of `explain` for it, and of the way between plain rows.

    Requests come one after the other on one connection, so that none is gathered with another.
    """
    count = ground.amount.requests
    bodies = ground.bodies(count)
    with served(ground.models) as server:
        url = f"{server.url}/v1/models/m/explain"
        ask_all(url, bodies[:FEWER], connections=1)
        before = processor_seconds(server.process.pid)
        failed = ask_all(url, bodies, connections=1).figures()["failed"]
        spent = processor_seconds(server.process.pid) - before
    explainer, frame, cells = load(ground.model), ground.task.data.X_test, ground.cells(count)
    request = Request.of(target=[ground.target], n=FEWER, random_state=0, constraints=NOTHING)
    works: dict[str, Callable[[int], Any]] = {
        "explain": lambda turn: explainer.explain(
            frame.iloc[[turn % len(frame)]], target=ground.target, n=FEWER, random_state=0
        ),
        "plain": lambda turn: answer_plain(explainer.model_, [cells[turn]], request),
    }
    own = {name: _mean_ms(work, count) for name, work in works.items()}
    return {"request": 1000 * spent / count, "requests": count, "failed": failed, **own}


def _mean_ms(work: Callable[[int], Any], count: int) -> float:
    work(0)
    started = time.process_time()
    for turn in range(count):
        work(turn)
    return 1000 * (time.process_time() - started) / count


def _in_turns(works: dict[str, Callable[[int], Any]], calls: int, rows: int) -> dict[str, dict[str, float]]:
    for work in works.values():
        work(0)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(calls):
        for name, work in works.items():
            started = time.thread_time()
            work(turn % rows)
            seconds[name].append(time.thread_time() - started)
    usual = float(np.median(seconds["predict_proba"]))
    return {
        name: {
            "p50": 1000 * float(np.median(own)),
            "p99": 1000 * float(np.percentile(own, 99)),
            "share": float(np.median(own)) / usual,
        }
        for name, own in seconds.items()
    }


def five_kinds(schema: Schema) -> Constraints:
    """A constraint of each of five kinds, on the first features that can have one."""
    numbers = [f.name for f in schema.features if f.is_number and f.minimum != f.maximum]
    picked = [f for f in schema.features if not f.is_number and len(f.levels) > 2]
    return Constraints(
        frozen=[picked[0].name],
        increase=[numbers[0]],
        ranges={numbers[1]: relative(-0.5, 0.5)},
        forbidden={picked[1].name: [picked[1].levels[-1]]},
        max_changes=4,
    )
