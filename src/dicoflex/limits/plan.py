"""What constraints mean for a table, whatever the rows: worked out once, then filled in for the rows of each call."""

from __future__ import annotations

__all__ = ["Plan"]

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dicoflex._types import Bools, Floats, Ints
from dicoflex.constraints import Constraints
from dicoflex.constraints.rules.tree import speaks_of_the_query
from dicoflex.limits.binding import prepared
from dicoflex.limits.clauses import Clauses
from dicoflex.limits.compile import Part, banned_of, costs_of, part_of, part_of_unseen, points_of
from dicoflex.limits.programs import Consequences, Programs, write
from dicoflex.table.encoding import Encoding, Values

ELSEWHERE = ("frozen", "cost", "consequences")
"""Kinds that name features and say nothing of the values that these may take."""


@dataclass(frozen=True)
class Plan:
    """Constraints that were checked against a schema, and what of them is the same for all rows; see `Limits`.

    usual: the limits of a row in which nothing is missing and nothing constrained but what `named` features are.
    rules, consequences: as programs, for finished rows. trees: the rules made ready for looking ahead. follows: what
    consequences set. uncounted: these, and features that depend on others in the table: they count neither as a
    change nor as cost.
    """

    constraints: Constraints
    encoding: Encoding
    named: tuple[int, ...]
    usual: Part
    offset: Ints
    points: tuple[Floats | None, ...]
    banned: dict[int, Floats]
    fixed: Floats
    unit: Floats
    rules: Programs
    consequences: Consequences
    trees: tuple[Any, ...]
    follows: Bools
    uncounted: Bools

    @classmethod
    def of(cls, constraints: Constraints, encoding: Encoding, dependent: Bools | None = None) -> Plan:
        """The plan of constraints for an encoding's features; `dependent` ones follow from others in the table."""
        schema = encoding.schema
        names = {name for kind, name in constraints.features() if kind not in ELSEWHERE}
        # Of a feature that is not named, a row's own value says only which state is its own, or that it is missing.
        nothing, own = Constraints(), np.zeros(1)
        parts = [part_of(feature, nothing, own) for feature in schema.features]
        sizes = [part.states.shape[1] for part in parts]
        fixed, unit = costs_of(constraints, schema)
        expressions = constraints.parsed_consequences
        consequences = Consequences.of(expressions, schema)
        follows = consequences.mask(len(schema))
        made = {str(name): expression for name, expression in expressions.items()}
        return cls(
            constraints=constraints,
            encoding=encoding,
            named=tuple(j for j, feature in enumerate(schema.features) if feature.name in names),
            usual=Part(
                low=np.array([part.low[0] for part in parts]),
                high=np.array([part.high[0] for part in parts]),
                states=np.ones(sum(sizes), dtype=bool),
                may_keep=np.ones(len(schema), dtype=bool),
            ),
            offset=np.cumsum([0, *sizes]),
            points=tuple(points_of(feature, constraints) for feature in schema.features),
            banned=banned_of(constraints, schema),
            fixed=fixed,
            unit=unit,
            rules=write([rule.tree for rule in constraints.parsed_rules], schema),
            consequences=consequences,
            trees=tuple(prepared(rule.tree, made) for rule in constraints.parsed_rules),
            follows=follows,
            uncounted=follows if dependent is None else follows | dependent,
        )

    def clauses_of(self, query: Values) -> tuple[Clauses, Ints]:
        """The clauses that bind the rows of `query`, and which set of them each row has."""
        if not any(map(speaks_of_the_query, self.trees)):
            return self._clauses, np.zeros(len(query), dtype=np.int64)
        return Clauses.build(self.constraints.parsed_rules, self.trees, self.encoding.schema, query)

    @cached_property
    def _clauses(self) -> Clauses:
        """The clauses of rules that say the same of all queries."""
        schema = self.encoding.schema
        return Clauses.build(self.constraints.parsed_rules, self.trees, schema, np.zeros((1, len(schema))))[0]

    def of_rows(self, query: Values, unseen: Bools | None = None) -> Part:
        """What each feature of each row of `query` may be (n, d), and its states end to end (n, states).

        unseen: where something stands in the place of a value that training never had (n, d).
        """
        n = len(query)
        low, high, states, may_keep = self.usual.repeated(n)
        levels, absent = self._free
        states[np.arange(n)[:, None], self.offset[levels] + query[:, levels].astype(np.int64)] = False
        states[:, self.offset[absent]] = ~np.isnan(query[:, absent])
        for j in self.named:
            part = part_of(self.encoding.schema.features[j], self.constraints, query[:, j])
            low[:, j], high[:, j], may_keep[:, j] = part.low, part.high, part.may_keep
            states[:, self.offset[j] : self.offset[j + 1]] = part.states
        made = Part(low, high, states, may_keep)
        return made if unseen is None else self._leaving(made, query, unseen)

    def _leaving(self, made: Part, query: Values, unseen: Bools) -> Part:
        """The limits of rows in which unseen values have to be left."""
        for j in np.flatnonzero(unseen.any(axis=0)):
            here = np.flatnonzero(unseen[:, j])
            part = part_of_unseen(self.encoding.schema.features[j], self.constraints, query[here, j])
            made.low[here, j], made.high[here, j], made.may_keep[here, j] = part.low, part.high, part.may_keep
            made.states[here, self.offset[j] : self.offset[j + 1]] = part.states
        return made

    @cached_property
    def _free(self) -> tuple[Ints, Ints]:
        """Of the features that are not named: those that are picked from levels, and numbers that may be missing."""
        others = [(j, f) for j, f in enumerate(self.encoding.schema.features) if j not in self.named]
        levels = np.array([j for j, f in others if not f.is_number], dtype=np.int64)
        return levels, np.array([j for j, f in others if f.is_number and f.missing], dtype=np.int64)

    @cached_property
    def is_level(self) -> Bools:
        """Which features are picked from levels."""
        return np.array([not feature.is_number for feature in self.encoding.schema.features])

    @cached_property
    def picked(self) -> tuple[int, ...]:
        """The numbers of which some values are listed: the only ones, or such as they may not have."""
        return tuple(j for j, points in enumerate(self.points) if points is not None or j in self.banned)

    @cached_property
    def listed(self) -> tuple[Floats, Ints, Bools]:
        """All points end to end, where each feature's start, and which features have some."""
        return (*_end_to_end(self.points), np.array([points is not None for points in self.points]))

    @cached_property
    def ruled_out(self) -> tuple[Floats, Ints]:
        """All banned values end to end, and where each feature's start."""
        return _end_to_end(tuple(self.banned.get(j) for j in range(len(self.points))))


def _end_to_end(lists: tuple[Floats | None, ...]) -> tuple[Floats, Ints]:
    """Lists of numbers one after the other, and where each starts; None is an empty one."""
    known = [np.zeros(0) if one is None else one for one in lists]
    return np.concatenate(known), np.cumsum([0, *map(len, known)]).astype(np.int64)
