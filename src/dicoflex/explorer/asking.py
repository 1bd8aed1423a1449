"""Plans while a limit is dragged: one pool, what is shown of it, what each limit costs, where values land.

A drag gets a quick look, which proves nothing where it finds nothing. Once the limits rest, a thorough search follows:
the one that `explain` makes, and one feature at a time wherever the model's answer along it is the wanted one.
"""

from __future__ import annotations

__all__ = ["Asker", "Found"]

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dicoflex.answers.engine import Plans, Pool, find, pool, terms_of
from dicoflex.answers.outcome import Found as Answers
from dicoflex.answers.query import Query
from dicoflex.answers.search import Search
from dicoflex.answers.shortfall import reasons_of
from dicoflex.constraints import Constraints
from dicoflex.errors import UserError
from dicoflex.explorer.plans import PlanWriter
from dicoflex.explorer.profiles import reach_of, strips_of
from dicoflex.explorer.question import Question
from dicoflex.explorer.texts import Names
from dicoflex.explorer.user_limits import pressures_of
from dicoflex.limits.reasons import closed_features
from dicoflex.model import Model
from dicoflex.table.plain_rows import Cells
from dicoflex.values import differ
from dicoflex.views.words import percent

NOTHING_LEFT = "nothing may change: every feature stays as it is or has one value; free at least one"
WEAK = 0.8
"""Below this certified share, a certificate is a warning and no comfort."""
MOST_ALONE = 8
"""So many features are tried alone where a search over all of them found nothing."""


@dataclass(frozen=True)
class Found:
    """What came of a question.

    pool: rows that would do; None where the limits contradict each other, and `impossible` says how. searched: whether
    the thorough search was made. search: what it looked at; None where it was not needed.
    """

    query: Query
    pool: Pool | None
    impossible: str | None
    searched: bool = False
    search: Search | None = None

    @property
    def count(self) -> int:
        """How many different rows would do, of those that were looked at."""
        if self.pool is None:
            return 0
        return max(len(self.pool), self.search.usual if self.search is not None and len(self.pool) else 0)

    @property
    def is_proof(self) -> bool:
        """Whether every row that is allowed was looked at, and none would do."""
        return self.count == 0 and self.search is not None and self.search.is_proof


class Asker:
    """Answers questions to one model."""

    def __init__(self, model: Model, names: Names, cells: Cells) -> None:
        self.model, self.names, self.cells = model, names, cells
        self.writer = PlanWriter(model, names, cells)
        # What is settled, relaxed and saved after a search is the same question again, and a search takes seconds.
        self._last: tuple[Any, Found] | None = None

    def find(self, question: Question, *, thorough: bool = False) -> Found:
        """The pool of a question, or why it has none before anything is drawn.

        thorough: where a quick look finds nothing, look at all rows that are allowed, or at many of them.
        """
        query = question.query()
        reason = None if query.limits is None else query.limits.reasons[0]
        if reason is None and (query.frozen | _constant(self.model)).all():
            reason = NOTHING_LEFT
        if reason is not None:
            return Found(query, None, str(reason))
        found = Found(query, pool(self.model, query), None)
        return self._searched(question, found) if thorough and found.count == 0 else found

    def _searched(self, question: Question, quick: Found) -> Found:
        """What the thorough search finds where the quick look found nothing."""
        key = (question.own.tobytes(), question.target, question.request.model_dump_json())
        last = self._last
        if last is None or last[0] != key:
            answers = find(self.model, quick.query)
            search = answers.searches.get(0)
            plans = self._plans_of(answers)
            if len(plans) == 0 and not (search is not None and search.is_proof):
                plans = self._alone(question, quick.query, plans)
            rows = Pool(plans.values, plans.probability, plans.values, plans)
            last = self._last = (key, replace(quick, pool=rows, searched=True, search=search))
        return last[1]

    def _plans_of(self, answers: Answers) -> Plans:
        draws, n = answers.draws, len(answers.draws)
        plausibility = answers.known.get("plausibility", np.full(n, np.nan))
        way = answers.known.get("way", np.zeros(n, dtype=np.int64))
        return Plans(draws.values, draws.key, draws.probability, plausibility, way)

    def _alone(self, question: Question, query: Query, none: Plans) -> Plans:
        """Plans that change one feature, wherever the model's answer along it is the wanted one; or `none`."""
        free = np.flatnonzero(~(query.frozen | _constant(self.model))).tolist()
        strips = strips_of(self.model, question.own[0], question.target, free, self.names, self.cells)
        best = {j: max((at["probability"] for at in strips[self.names.keys[j]]), default=0.0) for j in free}
        likely = [j for j in sorted(free, key=lambda j: -best[j]) if best[j] >= self._needed(query)]
        parts = [none]
        for way, j in enumerate(likely[:MOST_ALONE]):
            others = [name for k, name in enumerate(self.model.schema.names) if k != j]
            try:
                narrowed = question.under(question.request.constraints.merge(Constraints(frozen=others))).query()
                plans = self._plans_of(find(self.model, narrowed))
            except UserError:
                continue
            parts.append(plans.but(way=np.full(len(plans), way)))
        plans = Plans.join(parts)
        moved = np.abs(np.nan_to_num(plans.values - question.own, nan=1.0)) / self.model.encoding.scale
        order = np.argsort(np.where(differ(plans.values, question.own), moved, 0.0).sum(axis=1), kind="stable")
        return plans.take(order[: question.request.n])

    def answer(self, question: Question, *, thorough: bool = False) -> dict[str, Any]:
        """The answer to `ask`, or with `thorough` to `search`, but for its number."""
        head = self._head(question)
        if question.is_already:
            return {**head, "status": "already", "found": 0, "plans": [], "pressure": [], "reach": {}, **NOTHING}
        found = self.find(question, thorough=thorough)
        plans = self.plans(question, found)
        values = question.own[:0] if found.pool is None else found.pool.reached
        pressure = pressures_of(self.model, found.query, question.limits)
        return {
            **head,
            "needed": round(self._needed(found.query), 6),
            "needed_percent": percent(self._needed(found.query)),
            "p": found.query.request.p,
            "status": _status(found, len(plans), question.request.n),
            "found": found.count,
            "search": _search(found),
            "plans": plans,
            "pressure": pressure,
            "reach": reach_of(values, question.own, self.names, self.cells),
            "closed": self._closed(found.query),
            "shortfall": self._shortfall(question, found, len(plans), pressure),
            "certified": self._certified(found.query),
        }

    def plans(self, question: Question, found: Found) -> list[dict[str, Any]]:
        """The plans that answer a question."""
        if found.pool is None:
            return []
        chosen = found.pool.plans
        cost = found.query.cost(chosen.values, np.repeat(question.own, len(chosen), axis=0))
        return self.writer.write(chosen, question.own, question.cells, cost)

    def _head(self, question: Question) -> dict[str, Any]:
        chance = float(question.now[question.target])
        needed = self._usual(question.target)
        result = int(question.now.argmax())
        return {
            "now": {
                "result": self.model.labels[result],
                "result_text": self.names.classes[result],
                "probability": round(chance, 6),
                "percent": percent(chance),
            },
            "target": self.model.labels[question.target],
            "needed": round(needed, 6),
            "needed_percent": percent(needed),
            "asked": question.request.n,
        }

    def _usual(self, target: int) -> float:
        sure = float(self.model.confidence.default[target])
        return sure if self.model.has_confidence else max(sure, 0.5)

    def _needed(self, query: Query) -> float:
        sure = float(query.context.confidence[0])
        return sure if self.model.has_confidence else max(sure, 0.5)

    def _shortfall(
        self, question: Question, found: Found, got: int, pressure: list[dict[str, Any]]
    ) -> dict[str, Any] | None:
        """Why there are fewer plans than asked for: the tightest limit, or what the draws themselves say."""
        wanted = question.request.n
        if got >= wanted:
            return None
        reason = found.impossible
        if reason is None and pressure and pressure[0]["share"] > 0:
            tightest = pressure[0]
            reason = f"the tightest limit, {tightest['sentence']}, rules out {tightest['share']:.0%} of what is likely"
            return {"wanted": wanted, "got": got, "reason": reason, "feature": tightest["feature"]}
        if reason is None:
            terms, none = terms_of(self.model, found.query, filtered=True), np.zeros(1, dtype=np.int64)
            reason = reasons_of(self.model, found.query, terms, none, np.array([got]), none)[0]
        return {"wanted": wanted, "got": got, "reason": self.names.labelled(reason), "feature": self._blamed(reason)}

    def _blamed(self, reason: str) -> str | None:
        """The feature whose limit a reason names: the first one in it."""
        found = [(reason.find(f"{name}"), key) for name, key in self._by_name()]
        return min(((at, key) for at, key in found if at >= 0), default=(0, None))[1]

    def _by_name(self) -> list[tuple[Any, str]]:
        pairs = list(zip(self.names.schema.names, self.names.keys, strict=True))
        # Where one name begins another, the longer one is meant.
        return sorted(pairs, key=lambda pair: -len(str(pair[0])))

    def _closed(self, query: Query) -> list[dict[str, str]]:
        """The features that can't change though nobody froze them, with the reason."""
        if query.limits is None:
            return []
        found = closed_features(query.limits, query.context.query, query.frozen)
        return [{"feature": self.names.keys[j], "sentence": self.names.labelled(why)} for j, why in found]

    def _certified(self, query: Query) -> dict[str, Any] | None:
        if self.model.certificate is None:
            return None
        rate = self.model.certificate.valid_at_least(int(query.context.target[0]), query.sort)
        if np.isnan(rate):
            return None
        shown = f"{np.floor(1000 * rate) / 10:g} %"
        sentence = f"Of plans like these, at least {shown} were right on rows that the model had not seen."
        return {"at_least": round(rate, 4), "percent": shown, "weak": rate < WEAK, "sentence": sentence}


NOTHING: dict[str, Any] = {"closed": [], "shortfall": None, "certified": None, "search": None, "p": None}


def _status(found: Found, got: int, wanted: int) -> str:
    """One of the words for an outcome; what was merely not found is not proved to be infeasible."""
    if found.impossible is not None:
        return "contradictory"
    if got == 0:
        return "infeasible" if found.is_proof else "not_found"
    return "short" if got < wanted else "found"


def _search(found: Found) -> dict[str, Any] | None:
    """What the thorough search looked at; None where none was made."""
    if not found.searched:
        return None
    one = found.search
    if one is None:
        return {"looked_at": 0, "all": False, "accepted": 0}
    return {"looked_at": one.looked_at, "all": one.all, "accepted": one.accepted}


def _constant(model: Model) -> Any:
    features = model.schema.features
    return np.array([f.minimum == f.maximum and not f.missing if f.is_number else f.n_states < 2 for f in features])
