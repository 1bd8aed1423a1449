"""How long one row takes, beside one call of the black box for it."""

from __future__ import annotations

__all__ = ["five_kinds", "one_row"]

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.experiments.serving.ground import Ground
from dicoflex import Constraints, Schema, load, relative
from dicoflex.answers.plain_answers import explain_plain
from dicoflex.request import Request

ANSWERS = 5
NOTHING = Constraints()


def one_row(ground: Ground) -> dict[str, Any]:
    """Milliseconds (p50, p99) of each way to ask, by turns in one process, and shares of `predict_proba`."""
    explainer = load(ground.model)
    frames = [ground.task.data.X_test.iloc[[i]] for i in range(len(ground.task.data.X_test))]
    cells, model, target = ground.cells(len(frames)), explainer.model_, ground.target
    five = five_kinds(explainer.schema_)

    def plain(**wish: Any) -> Callable[[int], Any]:
        verify = wish.pop("verify", False)
        request = Request.of(target=[target], n=ANSWERS, random_state=0, **wish)
        return lambda turn: explain_plain(model, [cells[turn]], request, verify=verify)

    def framed(**wish: Any) -> Callable[[int], Any]:
        return lambda turn: explainer.explain(frames[turn], target=target, n=ANSWERS, random_state=0, **wish)

    works: dict[str, Callable[[int], Any]] = {
        "predict_proba": lambda turn: ground.task.black_box.predict_proba(frames[turn]),
        "plain, refined": plain(constraints=NOTHING),
        "plain, refined, five kinds of constraints": plain(constraints=five),
        "plain, refined and verified": plain(constraints=NOTHING, verify=True),
        "plain, as drawn": plain(constraints=NOTHING, refine=False),
        "frame, refined": framed(),
        "frame, refined, five kinds of constraints": framed(constraints=five),
        "frame, as drawn": framed(refine=False),
    }
    waits = _in_turns(works, ground.amount.calls, len(frames))
    return {"waits": waits, "calls": ground.amount.calls, "constraints": five.model_dump()}


def _in_turns(works: dict[str, Callable[[int], Any]], calls: int, rows: int) -> dict[str, dict[str, float]]:
    for work in works.values():
        work(0)
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(calls):
        for name, work in works.items():
            started = time.perf_counter()
            work(turn % rows)
            seconds[name].append(time.perf_counter() - started)
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
