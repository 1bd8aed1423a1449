"""The explorer of one model and some people: a message in, a plain dict out; nothing is kept between messages."""

from __future__ import annotations

__all__ = ["STREAMED", "Explorer"]

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.errors import SettingError, named
from dicoflex.explorer.asking import Asker
from dicoflex.explorer.cohort import ManyPeople
from dicoflex.explorer.facts import facts_of
from dicoflex.explorer.messages import Asking, Cohort, Looking, Naming, RefusedError, Scoring, Settling, read
from dicoflex.explorer.people import People
from dicoflex.explorer.profiles import strips_of
from dicoflex.explorer.question import Question, label_of, request_of
from dicoflex.explorer.receipt import Receipts, to_page
from dicoflex.explorer.relaxation import Relaxer
from dicoflex.explorer.settling import Settler
from dicoflex.explorer.texts import Names, Texts
from dicoflex.explorer.user_limits import wish_of
from dicoflex.model import Model
from dicoflex.signatures import Key, sign_record
from dicoflex.table.plain_rows import Cells
from dicoflex.views.words import percent

STREAMED = ("cohort",)


class Explorer:
    """Answers what a page asks about a model and the people in a table.

    people: rows with the model's columns; their index names them. texts: what things are called. name: the model's.
    target: the label that people hope for. key: a private key to sign receipts with.

    >>> from dicoflex.model import Model
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> model = Model.load(EXAMPLES[2])
    >>> explorer = Explorer(model, rows_like(model.schema, 20), target="yes")
    >>> people = explorer.answer("people", {"order": "near"})
    >>> people["total"]
    20
    >>> answer = explorer.answer("ask", {"person": people["offered"][0], "target": "yes", "n": 2, "seed": 0})
    >>> answer["status"], len(answer["plans"])
    ('found', 2)
    """

    def __init__(
        self,
        model: Model,
        people: pd.DataFrame,
        *,
        texts: Texts | None = None,
        name: str = "",
        target: Any = None,
        key: Key | None = None,
    ) -> None:
        self.model, self.name, self.key = model, name, key
        if key is not None:
            sign_record({}, key=key)  # a key that can't sign is told of before anybody needs it
        self.names = Names(model.schema, model.labels, texts or Texts())
        self.people = People(model, people, self.names)
        self.cells = Cells(model.plain_rows)
        self.asker = Asker(model, self.names, self.cells)
        self.wanted = self._wanted(target)
        self.settler = Settler(model, self.names, self.asker, self.question)
        self.relaxer = Relaxer(model, self.names, self.asker, self.question)
        self.cohort = ManyPeople(model, self.people, self.names, self.wanted)
        self.receipts = Receipts(model)
        self._answers: dict[str, Callable[[Any], dict[str, Any]]] = {
            "model": self._model,
            "people": self._people,
            "person": self._person,
            "ask": self._ask,
            "search": self._search,
            "score": self._score,
            "settle": self._settle,
            "relax": self._relax,
            "cohort": self._cohort,
            "receipt": self._receipt,
        }

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of messages that are answered."""
        return tuple(self._answers)

    def answer(self, kind: str, body: Any) -> dict[str, Any]:
        """The answer to one message; what does not fit is a `UserError` that says how to mend it."""
        if kind not in self._answers:
            raise RefusedError(named("message", kind, self._answers))
        return self._answers[kind](body)

    def stream(self, kind: str, body: Any) -> Iterator[dict[str, Any]]:
        """The answer to a message in parts, each with all that is known so far; one of `STREAMED` has several."""
        if kind == "cohort":
            return self.cohort.lines(read(Cohort, body))
        return iter([self.answer(kind, body)])

    def _cohort(self, body: Any) -> dict[str, Any]:
        *_, last = self.stream("cohort", body)
        return last

    # -- messages -----------------------------------------------------------------------------------------------

    def _model(self, body: Any) -> dict[str, Any]:
        if body:
            raise RefusedError("a message of kind 'model' has no parts; send {}")
        return facts_of(self.model, self.names, name=self.name, people=len(self.people), wanted=self.wanted)

    def _people(self, body: Any) -> dict[str, Any]:
        asked = read(Looking, body)
        wanted = self.wanted if asked.target is None else label_of(asked.target, self.model, np.zeros(0))
        return self.people.listed(asked, wanted)

    def _person(self, body: Any) -> dict[str, Any]:
        return self.people.told(self.people.place(read(Naming, body).person))

    def _ask(self, body: Any) -> dict[str, Any]:
        asked = read(Asking, body)
        return {"seq": asked.seq, **self.asker.answer(self.question(asked))}

    def _search(self, body: Any) -> dict[str, Any]:
        asked = read(Asking, body)
        return {"seq": asked.seq, **self.asker.answer(self.question(asked), thorough=True)}

    def _score(self, body: Any) -> dict[str, Any]:
        asked = read(Scoring, body)
        own = self.cells.encoded(self.cells.by_name(asked.values, self.names.keys))
        now = self.model.surrogate.probabilities(own[None])[0]
        target = label_of(asked.target, self.model, now)
        which = [j for j, key in enumerate(self.names.keys) if asked.features is None or key in asked.features]
        chance = float(now[target])
        return {
            "seq": asked.seq,
            "result": self.model.labels[int(now.argmax())],
            "result_text": self.names.classes[int(now.argmax())],
            "probability": round(chance, 6),
            "percent": percent(chance),
            "strips": strips_of(self.model, own, target, which, self.names, self.cells) if asked.strips else {},
        }

    def _settle(self, body: Any) -> dict[str, Any]:
        asked = read(Settling, body)
        return {"seq": asked.seq, **self.settler.settle(asked)}

    def _relax(self, body: Any) -> dict[str, Any]:
        asked = read(Asking, body)
        return {"seq": asked.seq, "relaxations": self.relaxer.relaxations(asked)}

    def _receipt(self, body: Any) -> dict[str, Any]:
        asked = read(Settling, body)
        question = self.question(asked)
        found = self.asker.find(question, thorough=True)
        record = self.receipts.make(question, asked.keys, name=self.names.texts.name or self.name, found=found)
        plans = {plan["key"]: plan for plan in self.asker.plans(question, found)}
        chosen, limits = [plans[key] for key in asked.keys], [limit.sentence for limit in question.limits]
        signed = record if self.key is None else sign_record(record, key=self.key)
        whom = re.sub(r"[^\w.-]+", "-", asked.person or "by-hand")[:60]
        return {
            "json": signed,
            # What a browser reads and writes again has 1 for 1.0, and so another digest.
            "text": json.dumps(signed, indent=2, allow_nan=False),
            "html": to_page(record, chosen, limits, self.names),
            "name": f"receipt-{whom}.json",
        }

    # -- what a message means -----------------------------------------------------------------------------------

    def question(self, asked: Asking) -> Question:
        """The question that an asking is."""
        if asked.person is not None:
            i = self.people.place(asked.person)
            own, now = self.people.values[i : i + 1], self.people.probabilities[i]
        else:
            cells = self.cells.by_name(asked.values or {}, self.names.keys)
            own = self.cells.encoded(cells)[None]
            now = self.model.surrogate.probabilities(own)[0]
        target = label_of(asked.target, self.model, now)
        wish = wish_of(asked, own[0], self.names, self.cells)
        request = request_of(asked, self.model.labels[target], wish.constraints)
        plain = self.cells.plain(own[0])
        return Question(
            self.model, own, plain, asked.person, now=now, target=target, request=request, limits=wish.limits
        )

    def _wanted(self, target: Any) -> int:
        """The result that people hope for: as told, or else the one that fewer of them have."""
        told = target if target is not None else self.names.texts.wanted
        if told is None:
            counts = np.bincount(self.people.result, minlength=len(self.model.labels))
            return int(np.argmin(counts))
        for i, label in enumerate(self.model.labels):
            if str(label) == str(told):
                return i
        raise SettingError(named("target", told, self.model.labels))
