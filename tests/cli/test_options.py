"""Options of a command that come from a dataclass: where they stand, what they hold, what is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from dicoflex.cli.options import repeated, spread


@dataclass(frozen=True)
class Trip:
    """Where to, and through which towns."""

    to: Annotated[str, typer.Option(help="Where to.")]
    by: Annotated[list[str], repeated("--by-way-of", "TOWNS", "Towns on the way.")] = field(default_factory=list)
    days: Annotated[int | None, typer.Option(help="How long.", show_default=False)] = None


def run(*words: str) -> tuple[Any, list[Any]]:
    seen: list[Any] = []
    app = typer.Typer(add_completion=False, rich_markup_mode=None)

    @app.command()
    @spread(trip=Trip)
    def travel(name: str, *, first: bool = False, trip: Trip, last: Annotated[int, typer.Option()] = 3) -> None:
        """Go somewhere."""
        seen.append((name, first, trip, last))

    return CliRunner().invoke(app, list(words), env={"COLUMNS": "100"}), seen


@pytest.mark.parametrize(
    ("words", "trip"),
    [
        (["--to", "Rome"], Trip("Rome")),
        (["--to", "Rome", "--by-way-of", "Ulm", "--by-way-of", "Bern"], Trip("Rome", ["Ulm", "Bern"])),
        (["--to", "Rome", "--days", "4"], Trip("Rome", [], 4)),
    ],
)
def test_the_command_gets_the_group_as_one(words: list[str], trip: Trip) -> None:
    _, seen = run("Ada", "--first", *words, "--last", "5")
    assert seen == [("Ada", True, trip, 5)]


def test_what_a_group_needs_is_needed() -> None:
    result, seen = run("Ada")
    assert result.exit_code == 2
    assert not seen
    assert "--to" in result.output


def test_help_lists_the_group_in_its_place() -> None:
    result, _ = run("--help")
    flags = [word for line in result.output.splitlines() for word in line.split()[:1] if word.startswith("--")]
    assert flags == ["--first", "--to", "--by-way-of", "--days", "--last", "--help"]
    assert "Go somewhere." in result.output
    assert "Towns on the way. May be repeated." in result.output
