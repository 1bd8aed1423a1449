"""The leak audit: what a model and its answers give away about the rows that it learned from, by attacks that are run.

Members are training rows; others are rows of the same population that the model never saw. What is found of members
and not of others was learned from them. Finding nothing proves nothing: another attack may do better. Three things are
measured: what the model reveals of few rows (rare levels, single values, extremes), answers that copy a training row,
and answers that point at few people by their quasi-identifiers.
"""

from __future__ import annotations

__all__ = [
    "NO_PROOF",
    "AuditRows",
    "Copies",
    "Crowd",
    "Effort",
    "LeakReport",
    "are_among",
    "copies",
    "crowd",
    "leak",
    "odd_rows",
    "told_of_few",
]

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dicoflex.attacks import ATTACKS, DENSITIES, Attack, Guesses, Told, attacks_on, classes_of, guesses_of
from dicoflex.errors import DataError, SettingError, named
from dicoflex.explainer import Explainer
from dicoflex.generators.mixed import Mixed
from dicoflex.model import Model
from dicoflex.table.encoding import Values
from dicoflex.table.rarity import counts_of
from dicoflex.table.remembered import KEY_BYTES, Hashes, row_hashes
from dicoflex.table.survey import unnamed
from dicoflex.values import typed


def odd_rows(frame: pd.DataFrame, n: int, *, random_state: int | None = None) -> pd.DataFrame:
    """`n` rows of values of `frame`, every column shuffled by itself, none of them a row of `frame`.

    Plant them among the training rows before `fit`; if they come back among answers, others might.

    >>> rows = pd.DataFrame({"age": range(100), "job": ["cook", "nurse"] * 50})
    >>> planted = odd_rows(rows, 3, random_state=0)
    >>> len(planted), planted.merge(rows).empty
    (3, True)
    """
    rng = np.random.default_rng(random_state)
    columns = {name: frame[name].iloc[rng.integers(0, len(frame), 4 * n)].reset_index(drop=True) for name in frame}
    drawn = pd.DataFrame(columns)[list(frame.columns)].drop_duplicates()
    known = pd.MultiIndex.from_frame(frame.astype(object).fillna("missing").astype(str))
    new = ~pd.MultiIndex.from_frame(drawn.astype(object).fillna("missing").astype(str)).isin(known)
    return drawn[new].head(n).reset_index(drop=True).astype(frame.dtypes)


@dataclass(frozen=True)
class Copies:
    """The shares of answers that equal a training row, one of as many training rows as there are held-out rows, and a
    held-out row: a copy of a row that nobody learned from is chance."""

    answers: int
    of_members: float
    of_as_many_members: float
    of_others: float


@dataclass(frozen=True)
class Crowd:
    """The shares of rows whose quasi-identifiers no training row has, fewer than five have, and more have."""

    nobody: float
    few: float
    more: float


def copies(answers: Values, members: Values, others: Values, *, seed: int) -> Copies:
    """How many answers are somebody's row.

    >>> rows = np.arange(20.0).reshape(10, 2)
    >>> copies(rows[:4], rows[:2], rows[2:3], seed=0)
    Copies(answers=4, of_members=0.5, of_as_many_members=0.25, of_others=0.25)
    """
    rng = np.random.default_rng(seed)
    some = members[rng.permutation(len(members))[: len(others)]]
    shares = [_share(are_among(answers, rows)) for rows in (members, some, others)]
    return Copies(len(answers), *shares)


def are_among(rows: Values, known: Values) -> NDArray[np.bool_]:
    """Which rows equal one of the known ones."""
    return np.isin(_hashes(rows), _hashes(known))


def crowd(rows: Values, members: Values, columns: list[int]) -> Crowd:
    """How many training rows share each row's values in some columns.

    >>> crowd(np.array([[1.0], [2.0]]), np.array([[1.0]] * 3), [0])
    Crowd(nobody=0.5, few=0.5, more=0.0)
    """
    known, counts = np.unique(_hashes(members[:, columns]), return_counts=True)
    wanted = _hashes(rows[:, columns])
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    k = np.where(known[at] == wanted, counts[at], 0)
    return Crowd(_share(k == 0), _share((k > 0) & (k < FEW)), _share(k >= FEW))


def _share(which: NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else 0.0


def _hashes(rows: Values) -> Hashes:
    """Rows in one number each; nothing is kept, so any key will do."""
    return row_hashes(np.ascontiguousarray(rows), bytes(KEY_BYTES))


LEAST_ROWS = 100
MOST_STRANGERS = 500


@dataclass(frozen=True)
class AuditRows:
    """Members and others (a row each, encoded), and rows of strangers that an attacker has besides.

    left_out: how many rows have a value that the model does not know.
    """

    members: Values
    others: Values
    strangers: Values
    left_out: int

    @classmethod
    def of(cls, model: Model, train: pd.DataFrame, held_out: pd.DataFrame, *, seed: int) -> AuditRows:
        """A fourth of the held-out rows are strangers, 500 at most; the rest stand against the members."""
        members, others = encoded(model, train), encoded(model, held_out)
        if min(len(members), len(others)) < LEAST_ROWS:
            raise DataError(
                f"an audit needs {LEAST_ROWS} training and as many held-out rows that the model knows all values of, "
                f"got {len(members)} and {len(others)}"
            )
        order = np.random.default_rng(seed).permutation(len(others))
        cut = min(len(others) // 4, MOST_STRANGERS)
        left_out = len(train) + len(held_out) - len(members) - len(others)
        return cls(members, others[order[cut:]], others[order[:cut]], left_out)


def encoded(model: Model, frame: pd.DataFrame) -> Values:
    """The rows of a frame of which the model knows all values."""
    lacking = [name for name in model.schema.names if name not in frame.columns]
    if lacking:
        raise DataError(f"the rows lack the column {lacking[0]!r} of the model; give tables with its columns")
    known = ~np.any([unnamed(frame[feature.name], feature) for feature in model.schema.features], axis=0)
    return model.encoding.encode(frame.loc[known, model.schema.names])


FEW = 5


def told_of_few(model: Model, train: pd.DataFrame) -> dict[str, int]:
    """How many levels and single values of the model fewer than five training rows have, but at least one.

    An extreme counts where it is some row's value and fewer than five lie at or beyond it.
    """
    found = {"levels": 0, "single values": 0, "extremes": 0}
    for j, feature in enumerate(model.schema.features):
        column = train[feature.name]
        if not feature.is_number:
            counts = counts_of(column)
            found["levels"] += sum(0 < counts.get(typed(level), 0) < FEW for level in feature.levels)
            continue
        low, high = float(feature.minimum or 0.0), float(feature.maximum or 0.0)
        numbers = column.dropna().to_numpy(dtype=float)
        ends = {low: numbers <= low, high: numbers >= high}
        found["extremes"] += sum(end in numbers and beyond.sum() < FEW for end, beyond in ends.items())
        # Rows beyond a limit were taken for it, and stand for it together.
        within = numbers.clip(low, high)
        found["single values"] += sum(0 < (within == value).sum() < FEW for value in _single(model, j))
    return {name: int(count) for name, count in found.items()}


def _single(model: Model, j: int) -> list[float]:
    """The values that the file names one by one: of the density's cells, and those at which a number may rest."""
    named: list[float] = []
    if isinstance(model.generator, Mixed):
        grid = model.generator.grid
        at = slice(grid.offset[j], grid.offset[j + 1])
        named += grid.low[at][(grid.count[at] == 1) & np.isfinite(grid.low[at])].tolist()
    if model.coherence is not None:
        first, last = model.coherence.stops.at[[j, j + 1]]  # noqa: PD008
        named += model.coherence.stops.value[first:last].tolist()
    return sorted(set(named))


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
    people = AuditRows.of(model, train, held_out, seed=seed)
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


def _attributes(told: Told, people: AuditRows, effort: Effort) -> dict[str, Guesses]:
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
