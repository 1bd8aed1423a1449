"""The leak audit: what a model and its answers give away about the rows that it learned from, by attacks that are run.

Members are the training rows, others are rows of the same people that the model never saw. What is found of members and
not of others was learned from them. To find nothing proves nothing: another attack may do better.
"""

from __future__ import annotations

__all__ = ["NO_PROOF", "Effort", "LeakReport", "leak"]

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.attacks import ATTACKS, DENSITIES, Attack, Guesses, Told, attacks_on, classes_of, guesses_of
from dicoflex.audit.copies import Copies, Crowd, are_among, copies, crowd
from dicoflex.audit.people import People, encoded
from dicoflex.audit.planting import odd_rows
from dicoflex.audit.told import told_of_few
from dicoflex.errors import SettingError, named
from dicoflex.explainer import Explainer
from dicoflex.table.encoding import Values

NO_PROOF = "0.5 means that this attack found nothing, not that there is nothing to find"
DRAWS = 20


@dataclass(frozen=True)
class Planted:
    """Odd rows that were planted among the training rows: how many come back in draws, beside odd rows that were not
    planted, and what attacks tell them apart by."""

    rows: int
    come_back: float
    never_planted: float
    attacks: dict[str, Attack]


@dataclass(frozen=True)
class LeakReport:
    """What an audit found.

    members, others, left_out: how many rows it went by. told: levels, single values and extremes in the file that fewer
    than five training rows have. answers, held_out: the crowd that they share quasi-identifiers with, None without any.
    attributes: by density, how often an unknown value of a row was found from all its others. planted: by name, what
    became of rows that were planted.
    """

    members: int
    others: int
    left_out: int
    novel: bool
    told: dict[str, int]
    copies: Copies
    quasi_identifiers: tuple[str, ...]
    answers: Crowd | None
    held_out: Crowd | None
    attacks: dict[str, Attack]
    attributes: dict[str, Guesses]
    planted: dict[str, Planted]

    def to_dict(self) -> dict[str, Any]:
        """The findings as plain data, with what they are no proof of."""
        attributes = {name: guesses.to_dict() for name, guesses in self.attributes.items()}
        plain = asdict(self) | {"quasi_identifiers": list(self.quasi_identifiers), "attributes": attributes}
        return {**plain, "note": NO_PROOF}

    @property
    def worst(self) -> float:
        """The greatest AUC of all attacks; 0.5 where none was run."""
        return max((one.auc for one in self.attacks.values()), default=0.5)


@dataclass(frozen=True)
class Effort:
    """How much is tried: held-out rows that are asked about, answers to each, the attacks to run, and the members (and
    as many others) whose values are guessed one by one; 0 guesses none."""

    queries: int = 500
    answers: int = 5
    attacks: tuple[str, ...] = tuple(ATTACKS)
    guessed: int = 300


def leak(
    explainer: Explainer,
    train: pd.DataFrame,
    held_out: pd.DataFrame,
    *,
    quasi: Sequence[Any] = (),
    planted: Mapping[str, pd.DataFrame] | None = None,
    novel: bool = False,
    effort: Effort | None = None,
    random_state: int = 0,
) -> LeakReport:
    """Audit a model by the rows that it learned from and rows that it did not.

    quasi: features by which people might be recognised. planted: by name, odd rows (`odd_rows`) that were among the
    training rows. novel: ask for answers that are no training row, which the explainer must remember. effort: how much
    is tried.
    """
    if explainer.model_.score is not None:
        raise SettingError(
            "the audit of leaks attacks models of labels, and this one explains scores; audit a model of the same rows "
            "that is fitted to labels, such as y = scores >= 620"
        )
    effort = effort or Effort()
    model, seed = explainer.model_, random_state
    columns = _columns(explainer, quasi)
    people = People.of(model, train, held_out, seed=seed)
    asked = people.strangers[: effort.queries]
    answers = _answers(explainer, asked, n=effort.answers, novel=novel, seed=seed)
    told = Told(model, people.strangers, _draws(explainer, asked, seed), seed)
    return LeakReport(
        members=len(people.members),
        others=len(people.others),
        left_out=people.left_out,
        novel=novel,
        told=told_of_few(model, train),
        copies=copies(answers, people.members, people.others, seed=seed),
        quasi_identifiers=tuple(map(str, quasi)),
        answers=crowd(answers, people.members, columns) if columns else None,
        held_out=crowd(people.others, people.members, columns) if columns else None,
        attacks=attacks_on(told, people.members, people.others, effort.attacks),
        attributes=_attributes(told, people, effort),
        planted={name: _planted(told, rows, held_out, effort.attacks) for name, rows in (planted or {}).items()},
    )


def _attributes(told: Told, people: People, effort: Effort) -> dict[str, Guesses]:
    if effort.guessed == 0:
        return {}
    wanted = [name for name in DENSITIES if name in effort.attacks]
    return guesses_of(told, people.members, people.others, wanted=wanted, rows=effort.guessed)


def _columns(explainer: Explainer, quasi: Sequence[Any]) -> list[int]:
    for name in quasi:
        if name not in explainer.schema_.names:
            raise SettingError(f"quasi: {named('feature', name, explainer.schema_.names)}")
    return [explainer.schema_.position(name) for name in quasi]


def _targets(explainer: Explainer, values: Values) -> list[Any]:
    """For each row, the class after its own."""
    labels = explainer.model_.labels
    return [labels[(c + 1) % len(labels)] for c in classes_of(explainer.model_, values)]


def _answers(explainer: Explainer, values: Values, *, n: int, novel: bool, seed: int) -> Values:
    encoding = explainer.model_.encoding
    rows, target = encoding.decode(values), _targets(explainer, values)
    return encoding.encode(explainer.explain(rows, target=target, n=n, novel=novel, random_state=seed).frame)


def _draws(explainer: Explainer, values: Values, seed: int) -> Values:
    """Draws as they come, for attacks that look for rows near them."""
    encoding = explainer.model_.encoding
    rows, target = encoding.decode(values), _targets(explainer, values)
    return encoding.encode(explainer.sample(rows, target=target, n=DRAWS, filter=False, random_state=seed))


def _planted(told: Told, planted: pd.DataFrame, held_out: pd.DataFrame, attacks: Sequence[str]) -> Planted:
    names = told.model.schema.names
    rows = np.unique(encoded(told.model, planted), axis=0)
    never = encoded(told.model, odd_rows(held_out[names], 2 * len(rows), random_state=told.seed))[: len(rows)]
    return Planted(
        rows=len(rows),
        come_back=float(are_among(rows, told.answers).mean()),
        never_planted=float(are_among(never, told.answers).mean()),
        attacks=attacks_on(told, rows, never, attacks),
    )
