"""The paper's experiments: measured cell by cell, kept in a cache, written as pages beside the paper's figures.

    dicoflex bench all --quick                        a slice of everything, in a minute or two
    dicoflex bench comparison --tables adult bank     the main table, on two tables of data (about an hour)
    dicoflex bench all                                everything (about three hours on one core)

An experiment is a module with `cells`, `measure`, `page`, `figures` and `findings`; `command.EXPERIMENTS` has them all.
"""

from __future__ import annotations

__all__ = ["main"]

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> None:
    """Run the experiments that `argv` names; see `experiments.command`."""
    # Here, so that `python -m experiments.paper` finds its own module fresh.
    from experiments.command import main as run

    run(argv)
