"""A quick run of everything, made once for all tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from benchmarks import cells, command
from benchmarks.cells import Result
from benchmarks.experiments import explorer, fuzz, leak, scale, serving, speed
from benchmarks.experiments.explorer.browsing import chromium
from benchmarks.experiments.speed.ground import Amount
from benchmarks.registry import EXPERIMENTS
from dicoflex.learning import certifying, judged, surrogate, surviving

# Without a browser, what needs none is measured; its absence is told by the browser tests.
BROWSED = [(name, part) for name, part in explorer.measuring.PARTS.items() if name == "size" or chromium()]
# What needs a browser, packages, or a server of several processes has tests of its own.
SERVED = ("row", "request", "equal", "hostile", "audit", "soak")
# Less than a quick run: surrogates learn less, certificates and the audit ask about fewer rows, speed asks the
# models of the others, nothing needs a fresh process, and pictures are small.
LESS: list[tuple[Any, str, Any]] = [
    (surrogate, "STEPS", 120),
    (surrogate, "ROUNDS", 10),
    (certifying, "ROWS", 60),
    (surviving, "RETRAINED", 3),
    (surviving, "ANSWERED", 60),
    (judged, "SHARPENED", 1),
    (leak, "QUICK_QUERIES", 20),
    (speed.measuring, "QUICK", cells.QUICK),
    (speed.measuring, "LITTLE", Amount(repeats=1, anchors=20, calls=5, dice_queries=1, many=50)),
    (speed.ground, "QUICK_MIXED", {}),
    (speed.sampling, "ANSWERS", 2),
    (speed.startup, "fresh", lambda _command: lambda _turn: 1),
    (speed.throughput, "apart", lambda function, *given: function(*given)),
    (scale.measuring, "apart", lambda function, *given: function(*given)),
    (serving.measuring, "PARTS", {name: serving.measuring.PARTS[name] for name in SERVED}),
    (explorer.measuring, "PARTS", dict(BROWSED)),
    (fuzz.measuring, "QUICK_BASES", ("kde, remembered rows",)),
    (command, "DPI", 30),
]


def run(folder: Path, *given: str, out: Path | None = None) -> None:
    """Run some experiments quickly, with the cache of `folder`."""
    with ExitStack() as stack:
        for owner, name, value in LESS:
            stack.enter_context(mock.patch.object(owner, name, value))
        command.main([*given, "--quick", "--out", str(out or folder / "out"), "--cache", str(folder / "cache")])


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a quick run of every experiment: pages in `out`, cells and models in `cache`."""
    folder = tmp_path_factory.mktemp("benchmarks")
    run(folder, *EXPERIMENTS)
    return folder


@pytest.fixture(scope="session")
def rerun(ran: Path) -> Callable[..., None]:
    """Run some experiments again, with options, where the quick run was."""
    return lambda *given, **where: run(ran, *given, **where)


@pytest.fixture(scope="session")
def stored(ran: Path) -> Callable[..., list[Result]]:
    """The results of an experiment, from the quick run or from another folder."""

    def get(name: str, folder: Path | None = None) -> list[Result]:
        text = ((folder or ran / "out") / f"{name}.json").read_text(encoding="utf-8")
        return [Result.of(result) for result in json.loads(text)["results"]]

    return get


@pytest.fixture(scope="session")
def page(ran: Path) -> Callable[[str], str]:
    """The page of an experiment."""
    return lambda name: (ran / "out" / f"{name}.md").read_text(encoding="utf-8")
