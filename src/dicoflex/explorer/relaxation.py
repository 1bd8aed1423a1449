"""What to relax where too little is found: each with what to send instead, and how many plans it gives."""

from __future__ import annotations

__all__ = ["Relaxer"]

from collections.abc import Callable, Iterator
from typing import Any

from dicoflex.answers.engine import Pool
from dicoflex.answers.relaxation import Relaxation, confidence_relaxed, relaxed, sentence_of
from dicoflex.constraints import Constraints
from dicoflex.errors import ConstraintError
from dicoflex.explorer.asking import Asker
from dicoflex.explorer.messages import Asking
from dicoflex.explorer.question import Question
from dicoflex.explorer.sentences import WORDS
from dicoflex.explorer.texts import Names
from dicoflex.explorer.user_limits import Limit, as_body, parts_of, stated_of, without
from dicoflex.model import SAFE, Model

MOST_TOLD = 8
MOST_TRIED = 40
PIECES = ("pinned", "refused")


class Relaxer:
    """Tries to relax one limit at a time. question: what an asking means."""

    def __init__(self, model: Model, names: Names, asker: Asker, question: Callable[[Asking], Question]) -> None:
        self.model, self.names, self.asker, self.question = model, names, asker, question

    def relaxations(self, asked: Asking) -> list[dict[str, Any]]:
        """The relaxations that give more plans than there are, those that give most first."""
        question = self.question(asked)
        if question.is_already:
            return []
        count = self.asker.find(question, thorough=True).count
        found = [*self._of_constraints(asked, question, count), *self._of_pieces(asked, question.limits, count)]
        found += self._of_confidence(asked, question, count)
        return sorted(found, key=lambda one: -one["found"])[:MOST_TOLD]

    def _look(self, asked: Asking) -> Pool | None:
        """What is found for another asking; None where its limits contradict each other."""
        try:
            return self.asker.find(self.question(asked)).pool
        except ConstraintError:
            return None

    def _of_constraints(self, asked: Asking, question: Question, count: int) -> Iterator[dict[str, Any]]:
        stated = stated_of(asked.constraints, self.names)
        limits = {limit.one.entry: limit for limit in question.limits if limit.kind not in PIECES}

        def changed(constraints: Constraints) -> Asking:
            return asked.model_copy(update={"constraints": as_body(constraints, self.names)})

        ones = [limit.one for limit in limits.values()][:MOST_TRIED]
        steps = relaxed(
            stated, ones, question.own[0], self.model.encoding, lambda c: self._look(changed(c)), more_than=count
        )
        for step in steps:
            limit = limits[next(one.entry for one in ones if (one.kind, one.feature) == (step.kind, step.feature))]
            yield self._told(limit.id, step, changed(step.constraints))

    def _of_pieces(self, asked: Asking, limits: list[Limit], count: int) -> Iterator[dict[str, Any]]:
        """Pins and refusals, each left out."""
        for limit in limits:
            if limit.kind not in PIECES:
                continue
            left = without(asked, limit, self.names)
            found = self._look(left)
            if found is not None and len(found) > count:
                word = "don't pin" if limit.kind == "pinned" else "take back"
                yield {
                    "id": limit.id,
                    "kind": limit.kind,
                    "feature": limit.feature,
                    "arguments": limit.arguments,
                    "sentence": f"{word}: {limit.sentence}",
                    "asking": parts_of(left),
                    "found": len(found),
                }

    def _of_confidence(self, asked: Asking, question: Question, count: int) -> list[dict[str, Any]]:
        if not self.model.has_confidence:
            return []
        sure = self.model.confidence
        level = SAFE if asked.confidence is None else asked.confidence
        given = float(self.model.level(level)[question.target]) if isinstance(level, str) else level

        def changed(confidence: float) -> Asking:
            return asked.model_copy(update={"confidence": confidence})

        lowest = float(sure.lowest[question.target])
        steps = confidence_relaxed(Constraints(), given, lowest, lambda c: self._look(changed(c)), more_than=count)
        return [self._told("confidence", step, changed(float(step.after))) for step in steps]

    def _told(self, name: str, step: Relaxation, asked: Asking) -> dict[str, Any]:
        j = None if step.feature is None else self.names.schema.position(step.feature)

        def show(value: Any) -> str:
            return str(value) if j is None else self.names.shown(j, value)

        label = "" if j is None else self.names.labels[j]
        arguments = {"from": step.before, "to": step.after, "end": step.end, "label": label}
        if step.kind == "ranges":
            arguments |= {"from_text": show(step.before), "to_text": show(step.after)}
        return {
            "id": name,
            "kind": WORDS.get(step.kind, step.kind),
            "feature": None if j is None else self.names.keys[j],
            "arguments": arguments,
            "sentence": sentence_of(step, label, show),
            "asking": parts_of(asked),
            "found": step.found,
        }
