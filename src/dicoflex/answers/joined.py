"""One result from the answers to several questions about the same rows."""

from __future__ import annotations

__all__ = ["best_of", "joined"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.answers.aiming import score_of
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.frames import index_of
from dicoflex.answers.goals import Parts
from dicoflex.answers.origin import Origin
from dicoflex.answers.search import Search
from dicoflex.answers.shortfall import SHORTFALL
from dicoflex.answers.status import CONTRADICTORY, HAS_TARGET, NOT_FOUND, status_of_parts
from dicoflex.answers.ways import Merits, choose, ranges_of, ways_of
from dicoflex.errors import QueryError
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.encoding import Values
from dicoflex.views.cards import ALREADY, SCORE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NOWHERE = -1, -1


@dataclass(frozen=True)
class JoinedOrigin(Origin):
    """The origins of several results: which one each answer comes from, and who it answers there.

    source: per answer the number of its origin, and the position of its query there. home: the same per query, for the
    origin that is asked about the query itself. asked: the model before it was aimed.
    """

    asked: Model = None  # type: ignore[assignment]
    parts: Sequence[Origin] = ()
    source: Ints = None  # type: ignore[assignment]
    home: Ints = None  # type: ignore[assignment]

    @property
    def is_scored(self) -> bool:
        """Whether a model of scores was asked."""
        return self.asked.score is not None

    def of_query(self, position: int) -> tuple[Origin, int]:
        """The origin that is asked about a query, and the query's position there."""
        part, place = self.home[position]
        if part < 0:
            raise QueryError("nothing was asked for this row, as the model does not support its target; see shortfall")
        return self.parts[part], int(place)

    def labels(self) -> list[Any]:
        """The label that the surrogate gives each query."""
        known = [part.labels() for part in self.parts]
        return [known[part][place] if part >= 0 else None for part, place in self.home]

    def needed(self) -> list[tuple[float, float]]:
        """Per query the confidence that its answers must have, and the share of retrained models that would accept."""
        known = [part.needed() for part in self.parts]
        return [known[part][place] if part >= 0 else (np.nan, np.nan) for part, place in self.home]

    def density(self, position: int) -> Callable[[pd.DataFrame], Floats]:
        """The log density of rows as counterfactuals of the query at `position`."""
        origin, place = self.of_query(position)
        return origin.density(place)

    def recount(self, own: Values, values: Values, positions: Ints) -> dict[str, Any]:  # noqa: ARG002
        """What `info` should say of all answers, in their order."""
        told: dict[str, Any] = {}
        for number, origin in enumerate(self.parts):
            mine = np.flatnonzero(self.source[:, 0] == number)
            for name, column in origin.recount(own[mine], values[mine], self.source[mine, 1]).items():
                told.setdefault(name, np.empty(len(values), dtype=object))[mine] = column
        return told if self.asked.score is None else {**told, SCORE: score_of(self.asked, values)}


def joined(
    model: Model, rows: pd.DataFrame, request: Request, parts: Parts, results: Sequence[Counterfactuals]
) -> Counterfactuals:
    """The result for all rows; of a row that stands in several parts the best answers of all of them.

    model: what was asked, before it was aimed.
    """
    whole = _Whole(rows, request, parts, results)
    chosen = [whole.chosen(i) for i in range(len(rows))]
    order = np.concatenate([*chosen, np.zeros(0, dtype=np.int64)])
    positions = np.repeat(np.arange(len(rows)), [len(mine) for mine in chosen])
    index = index_of(rows.index, positions)
    short = whole.short([len(mine) for mine in chosen])
    labels = rows.index.to_flat_index()
    first = results[0]
    info = whole.info.iloc[order].set_axis(index)
    changed, frame = whole.changed[order], whole.frame.iloc[order].set_axis(index)
    if model.score is not None:
        info[SCORE] = score_of(model, model.encoding.encode(frame))
    if "way" in info:
        info["way"] = whole.ways(info["way"].to_numpy(copy=True), changed, positions)
    return Counterfactuals(
        queries=rows,
        frame=frame,
        info=info,
        positions=positions,
        shortfall=pd.DataFrame([(labels[i], *why) for i, why in short.items()], columns=SHORTFALL),
        short=np.array(list(short), dtype=np.int64),
        schema=first.schema,
        request=first.request.model_copy(update={"target": request.target, "exhaustive": request.exhaustive}),
        targets=whole.wanted,
        model=first.model,
        changed=changed,
        origin=whole.origin(model, order),
        status=[whole.status(i, len(mine)) for i, mine in enumerate(chosen)],
        searches=whole.searches(),
    )


class _Whole:
    """The results of some parts, end to end, and where each row stands in them."""

    def __init__(self, rows: pd.DataFrame, request: Request, asked: Parts, results: Sequence[Counterfactuals]) -> None:
        parts = asked.asked
        self.rows, self.request, self.parts, self.results = rows, request, parts, results
        self.refused = asked.refused
        self.frame = pd.concat([result.frame for result in results])
        self.info = pd.concat([result.info for result in results])
        self.changed = np.concatenate([result.changed_cells for result in results])
        self.source = np.concatenate(
            [np.column_stack([np.full(len(r), k), r.positions]) for k, r in enumerate(results)]
        ).astype(np.int64)
        self.owner = np.concatenate([p.places[r.positions] for p, r in zip(parts, results, strict=True)])
        self.stands: list[list[tuple[int, int]]] = [[] for _ in range(len(rows))]
        self.wanted: list[Any] = [None] * len(rows)
        for k, part in enumerate(parts):
            for place, i in enumerate(part.places.tolist()):
                self.stands[i].append((k, place))
                self.wanted[i] = part.wanted[place]
        for i, one in asked.refused.items():
            self.wanted[i] = one.goal

    def chosen(self, i: int) -> Ints:
        """The answers to row i, best first; none where it has one of the labels that would do."""
        if self._has_target(i):
            return np.zeros(0, dtype=np.int64)
        mine = np.flatnonzero(self.owner == i)
        if len(self.stands[i]) <= 1:
            return mine
        model = self.parts[0].model
        values = model.encoding.encode(self.frame.iloc[mine]) if len(mine) else np.zeros((0, len(model.schema)))
        told = {name: self.info[name].iloc[mine].to_numpy() for name in self.info.columns}
        return mine[best_of(model, self.request, values, self.changed[mine], told)]

    def ways(self, told: Ints, changed: NDArray[np.bool_], positions: Ints) -> Ints:
        """The ways of the chosen answers, numbered anew for rows that stand in more than one part."""
        for i, stands in enumerate(self.stands):
            if len(stands) > 1:
                told[positions == i] = ways_of(changed[positions == i])
        return told

    def _words(self, i: int) -> list[str]:
        return [self.results[k].status[place] for k, place in self.stands[i]]

    def _has_target(self, i: int) -> bool:
        return ALREADY in self._words(i)

    def status(self, i: int, got: int) -> str:
        """One word for a row."""
        words = self._words(i)
        if not words:
            return CONTRADICTORY if self.refused[i].is_impossible else NOT_FOUND
        return status_of_parts(words, got, self.request.n)

    def short(self, got: Sequence[int]) -> dict[int, tuple[int, int, str]]:
        """Who got fewer than asked for, and why, part by part."""
        n = self.request.n
        return {i: (n, count, self._why(i)) for i, count in enumerate(got) if count < n}

    def _why(self, i: int) -> str:
        if i in self.refused:
            return self.refused[i].why
        if self._has_target(i):
            return HAS_TARGET
        whys = [(self.results[k].targets[place], self.results[k].reasons.get(place)) for k, place in self.stands[i]]
        told = [(target, why[2]) for target, why in whys if why is not None]
        if len(self.stands[i]) == 1:
            return told[0][1]
        return "; ".join(f"{target}: {why}" for target, why in told)

    def searches(self) -> dict[int, Search]:
        """What came of looking for answers, of rows that stand in one part; others are told in the shortfall."""
        return {
            i: self.results[k].searches[place]
            for i, stands in enumerate(self.stands)
            for k, place in stands
            if len(stands) == 1 and place in self.results[k].searches
        }

    def origin(self, asked: Model, order: Ints) -> JoinedOrigin:
        """Where the chosen answers come from."""
        origins = [result.origin for result in self.results if result.origin is not None]
        first = origins[0]
        return JoinedOrigin(
            first.model, first.context, checked=first.checked, free=first.free, uncounted=first.uncounted,
            asked=asked, parts=origins, source=self.source[order],
            home=np.array([stands[0] if stands else NOWHERE for stands in self.stands]),
        )  # fmt: skip


def best_of(
    model: Model, request: Request, values: Values, changed: NDArray[np.bool_], told: dict[str, Any]
) -> Ints:  # fmt: skip
    """The positions of the best of one row's answers from several parts, best first."""
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    distance = np.asarray(told.get("cost", told["proximity"]), dtype=np.float64)
    likely = np.asarray(told.get("plausibility", told["log_density"]), dtype=np.float64)
    merits = Merits(distance, likely, np.zeros(len(values)))
    return choose(values, changed, merits, ranges_of(model.schema), request.n, diversity=request.diversity)
