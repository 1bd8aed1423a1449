"""What a run was asked for: which tables, methods and seeds, and how much work a cell may do."""

from __future__ import annotations

__all__ = ["Options"]

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.cells import FULL, QUICK, Cell, Size


@dataclass(frozen=True)
class Options:
    """What a run was asked for; None leaves the choice to the experiment.

    learning, answering, queries: of `Size`. rows: sizes of scale's tables. parts, repeats, calls: of speed.
    """

    quick: bool = False
    tables: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: tuple[int, ...] | None = None
    learning: float | None = None
    answering: float | None = None
    queries: int | None = None
    rows: tuple[int, ...] | None = None
    parts: tuple[str, ...] | None = None
    repeats: int | None = None
    calls: int | None = None

    def pick_tables(self, known: Sequence[str], *, quick: Sequence[str]) -> list[str]:
        """The tables of `known` that were asked for; in a quick run, those of `quick` if none was."""
        return _picked(known, self.tables, quick if self.quick else known)

    def pick_methods(self, known: Sequence[str], *, quick: Sequence[str]) -> list[str]:
        """The methods of `known` that were asked for; in a quick run, those of `quick` if none was."""
        return _picked(known, self.methods, quick if self.quick else known)

    def pick_seeds(self, usual: Sequence[int] = (0,), *, quick: Sequence[int] = (0,)) -> list[int]:
        """The seeds that were asked for, or the experiment's."""
        return list(self.seeds or (quick if self.quick else usual))

    def cells(self, kind: str, table: str, methods: Sequence[str]) -> list[Cell]:
        """Cells of the usual size: each method on one table, seed by seed."""
        return [Cell(kind, table, method, seed, self.size()) for seed in self.pick_seeds() for method in methods]

    def size(self, full: Size = FULL, quick: Size = QUICK) -> Size:
        """The size of a cell: `full` or `quick`, with what was asked for."""
        given = {name: getattr(self, name) for name in ("learning", "answering", "queries")}
        changes = {name: value for name, value in given.items() if value is not None}
        return replace(quick if self.quick else full, **changes)


def _picked(known: Sequence[str], asked: Sequence[str] | None, usual: Sequence[str]) -> list[str]:
    wanted = usual if asked is None else asked
    return [name for name in known if name in wanted]
