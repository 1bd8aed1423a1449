"""The command: which experiments there are, how they are asked for, and where their pages go."""

from __future__ import annotations

__all__ = ["EXPERIMENTS", "Experiment", "main"]

import argparse
import json
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from matplotlib.figure import Figure

from dicoflex.cli.benchmarks import SCRIPTS
from dicoflex.errors import UserError, named
from dicoflex.runtime.whole_files import replacing, write_text
from experiments import (
    ablation,
    comparison,
    deviation,
    german,
    hyperparameters,
    masks,
    runtime,
    sparsity,
    summary,
    teaser,
    theory,
)
from experiments.cells import FULL, QUICK, Cell, Options, Result, run
from experiments.methods import METHODS
from experiments.pages import Finding

RESULTS = Path(__file__).parents[1] / "results"
CACHE = Path(".benchmarks") / "experiments"
QUICK_RESULTS = CACHE / "quick"
ALL = "all"
SUMMARY = "paper"
DPI = 130
KNOWN = (*METHODS, *ablation.METHODS)


class Experiment(Protocol):
    """What a module of this package has to offer to be in the registry."""

    TITLE: str

    def cells(self, options: Options) -> list[Cell]:
        """What is to be measured."""

    def measure(self, cell: Cell, models: Path) -> dict[str, Any]:
        """The figures of one cell; fitted models are kept in the folder `models`."""

    def page(self, results: Sequence[Result], command: str) -> str:
        """The results as Markdown."""

    def figures(self, results: Sequence[Result]) -> dict[str, Figure]:
        """Pictures by the name of their file."""

    def findings(self, results: Sequence[Result]) -> list[Finding]:
        """What the results say about the paper."""


EXPERIMENTS: dict[str, Experiment] = {
    "comparison": comparison,
    "runtime": runtime,
    "deviation": deviation,
    "german": german,
    "masks": masks,
    "sparsity": sparsity,
    "ablation": ablation,
    "hyperparameters": hyperparameters,
    "theory": theory,
    "teaser": teaser,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the options ask for, and write a page, its data and its figures for each experiment."""
    parsed = _parser().parse_args(argv)
    names = _names(parsed.names)
    options = _options(parsed)
    command = _command(parsed)
    out = parsed.out or (QUICK_RESULTS if parsed.quick else RESULTS)
    out.mkdir(parents=True, exist_ok=True)
    # What is compared is methods, not how they share a machine.
    torch.set_num_threads(1)
    for name in names:
        experiment = EXPERIMENTS[name]
        results = run(experiment.cells(options), experiment.measure, parsed.cache)
        _write(name, experiment, results, command, out)
        print(f"written: {out / name}.md", flush=True)
    write_text(out / f"{SUMMARY}.md", _summary(out))
    print(f"written: {out / SUMMARY}.md")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dicoflex bench",
        description="The paper's experiments, beside its figures.",
        epilog=f"{', '.join(SCRIPTS)} are benchmarks with options of their own: dicoflex bench speed --help",
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help=f"{ALL}, or any of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="a small slice of each, to see that all works")
    parser.add_argument("--tables", nargs="+", help="tables of the comparison; default: all that are found")
    parser.add_argument("--methods", nargs="+", help="methods or generators; default: all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--learning", type=float, help="seconds that a method may learn")
    parser.add_argument("--answering", type=float, help="seconds that a method may answer")
    parser.add_argument("--queries", type=int, help="test rows of each predicted class")
    parser.add_argument("--out", type=Path, help="folder for pages and figures")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of what was measured before")
    return parser


def _names(asked: Sequence[str]) -> list[str]:
    for name in asked:
        if name not in (ALL, *EXPERIMENTS):
            raise UserError(named("experiment", name, (ALL, *EXPERIMENTS, *SCRIPTS)))
    return [name for name in EXPERIMENTS if ALL in asked or name in asked]


def _options(parsed: argparse.Namespace) -> Options:
    size = QUICK if parsed.quick else FULL
    given = {name: getattr(parsed, name) for name in ("learning", "answering", "queries")}
    for name, value in given.items():
        if value is not None and value <= 0:
            raise UserError(f"--{name} must be more than 0, got {value:g}; leave it out for the usual {name}")
    for table in parsed.tables or ():
        if table not in comparison.TABLES:
            raise UserError(named("table", table, comparison.TABLES))
    for method in parsed.methods or ():
        if method not in KNOWN:
            raise UserError(named("method", method, KNOWN))
    size = replace(size, **{name: value for name, value in given.items() if value is not None})
    return Options(
        tables=tuple(parsed.tables) if parsed.tables else None,
        methods=tuple(parsed.methods) if parsed.methods else None,
        seeds=tuple(parsed.seeds),
        size=size,
    )


def _command(parsed: argparse.Namespace) -> str:
    """The command that gives the same figures; where files are kept is no part of it."""
    words = ["dicoflex", "bench", *parsed.names, *(["--quick"] if parsed.quick else [])]
    for name in ("tables", "methods", "seeds", "learning", "answering", "queries"):
        value = getattr(parsed, name)
        if value is not None and value != _parser().get_default(name):
            words += [f"--{name}", *(f"{v:g}" if isinstance(v, float) else str(v) for v in _several(value))]
    return shlex.join(words)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _write(name: str, experiment: Experiment, results: Sequence[Result], command: str, out: Path) -> None:
    lines = ",\n".join(json.dumps(result.stored()) for result in results)
    write_text(out / f"{name}.json", f'{{"command": {json.dumps(command)}, "results": [\n{lines}\n]}}\n')
    for file, figure in experiment.figures(results).items():
        with replacing(out / file) as draft:
            figure.savefig(draft, dpi=DPI, format="png")
    write_text(out / f"{name}.md", experiment.page(results, command))


def _summary(out: Path) -> str:
    """The page on all experiments whose results are in the folder, whichever run they are from."""
    found: dict[str, tuple[list[Result], list[Finding]]] = {}
    commands: list[str] = []
    for name, experiment in EXPERIMENTS.items():
        path = out / f"{name}.json"
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            results = [Result.of(result) for result in stored["results"]]
            found[name] = results, experiment.findings(results)
            commands.append(stored["command"])
    return summary.page(found, "; ".join(dict.fromkeys(commands)))
