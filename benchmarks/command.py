"""The command: how experiments are asked for, and where their pages go."""

from __future__ import annotations

__all__ = ["main"]

import argparse
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks import summary
from benchmarks.cells import Result, run
from benchmarks.experiments import ablation, answers, nearer, quality, recourse, targets
from benchmarks.experiments.fuzz.bases import BASES
from benchmarks.experiments.recourse.people import TABLE as AUDITED
from benchmarks.experiments.serving.measuring import PARTS as SERVING
from benchmarks.experiments.speed.measuring import PARTS as SPEED
from benchmarks.methods import METHODS
from benchmarks.options import Options
from benchmarks.pages import Finding, foot
from benchmarks.registry import EXPERIMENTS, PAPER
from benchmarks.tables import GENERATED, GERMAN, MAIN
from dicoflex.errors import UserError, named
from dicoflex.runtime.whole_files import replacing, write_text

RESULTS = Path(__file__).parent / "results"
CACHE = Path(".benchmarks")
QUICK_RESULTS = CACHE / "quick"
ALL = "all"
SUMMARY = "paper"
DPI = 130
# What --tables, --methods and --parts may name.
KNOWN = {
    "table": tuple(dict.fromkeys((*MAIN, GERMAN, GENERATED, AUDITED, *targets.TABLES))),
    "method": tuple(
        dict.fromkeys(
            (
                *METHODS,
                *ablation.METHODS,
                *quality.METHODS,
                *answers.METHODS,
                *nearer.METHODS,
                *recourse.METHODS,
                *BASES,
            )
        )
    ),
    "part": (*SPEED, *SERVING),
}
# Options of one experiment alone.
SPECIAL = {"rows": "scale", "parts": "speed or serving", "repeats": "speed", "calls": "speed"}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what the options ask for, and write a page, its data and its figures for each experiment."""
    parsed = _parser().parse_args(argv)
    names = _names(parsed.names)
    options = _options(parsed, names)
    cells = {name: EXPERIMENTS[name].cells(options) for name in names}
    out = parsed.out or (QUICK_RESULTS if parsed.quick else RESULTS)
    if not any(cells.values()):
        raise UserError(f"{', '.join(names)}: nothing to measure with these tables and methods; leave some of them out")
    out.mkdir(parents=True, exist_ok=True)
    # What is compared is methods, not how they share a machine.
    torch.set_num_threads(1)
    for name in filter(cells.get, names):
        results, command = run(cells[name], EXPERIMENTS[name].measure, parsed.cache), _command(parsed)
        if parsed.keep:
            results, command = _with_kept(name, results, command, out / f"{name}.json")
        _write(name, results, command, out)
        print(f"written: {out / name}.md", flush=True)
    if any(name in PAPER for name in names):
        write_text(out / f"{SUMMARY}.md", _summary(out))
        print(f"written: {out / SUMMARY}.md")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dicoflex bench", description="Benchmarks, and the paper's experiments beside its figures."
    )
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help=f"any of {', '.join(EXPERIMENTS)}; {ALL}: all of the paper's"
    )
    parser.add_argument("--quick", action="store_true", help="a small slice of each, to see that all works")
    parser.add_argument("--tables", nargs="+", help="tables of data; default: all that are found")
    parser.add_argument("--methods", nargs="+", help="methods or generators; default: all")
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--learning", type=float, help="seconds that a method may learn")
    parser.add_argument("--answering", type=float, help="seconds that a method may answer")
    parser.add_argument("--queries", type=int, help="test rows of each predicted class")
    parser.add_argument("--rows", nargs="+", type=int, help="sizes of the tables (scale)")
    parser.add_argument(
        "--parts", nargs="+", help=f"any of {', '.join(SPEED)} (speed), or {', '.join(SERVING)} (serving)"
    )
    parser.add_argument("--repeats", type=int, help="rounds of which the median is taken (speed)")
    parser.add_argument("--calls", type=int, help="calls for one row (speed)")
    parser.add_argument(
        "--keep", action="store_true", help="leave the page's other cells as they are; its foot says what they are from"
    )
    parser.add_argument("--out", type=Path, help="folder for pages and figures")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of what was measured before")
    return parser


def _names(asked: Sequence[str]) -> list[str]:
    for name in asked:
        if name not in (ALL, *EXPERIMENTS):
            raise UserError(named("experiment", name, (ALL, *EXPERIMENTS)))
    return [name for name in EXPERIMENTS if name in asked or (ALL in asked and name in PAPER)]


def _options(parsed: argparse.Namespace, names: Sequence[str]) -> Options:
    given = {name: value for name, value in vars(parsed).items() if value is not None}
    for name, owner in SPECIAL.items():
        if name in given and not set(owner.split(" or ")) & set(names):
            raise UserError(f"--{name} is an option of {owner}; leave it out, or name {owner}")
    for name in ("learning", "answering", "queries", "rows", "repeats", "calls"):
        for value in _several(given.get(name, [])):
            if value <= 0:
                raise UserError(f"--{name} must be more than 0, got {value:g}; leave it out for the usual {name}")
    for word, known in KNOWN.items():
        for value in given.get(f"{word}s", []):
            if value not in known:
                raise UserError(named(word, value, known))
    fields = {name: given[name] for name in Options.__dataclass_fields__ if name in given}
    return Options(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def _command(parsed: argparse.Namespace) -> str:
    """The command that gives the same figures; where files are kept is no part of it."""
    words = ["dicoflex", "bench", *parsed.names, *(["--quick"] if parsed.quick else [])]
    for name, value in vars(parsed).items():
        if value is not None and name not in ("names", "quick", "keep", "out", "cache"):
            words += [f"--{name}", *(f"{v:g}" if isinstance(v, float) else str(v) for v in _several(value))]
    return shlex.join(words)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _with_kept(name: str, results: Sequence[Result], command: str, path: Path) -> tuple[list[Result], str]:
    """The results with those that a page has of other cells, in the order of a whole run, and the commands of both."""
    if not path.exists():
        return list(results), command
    stored = json.loads(path.read_text(encoding="utf-8"))
    fresh = {result.cell for result in results}
    both = [*(r for r in map(Result.of, stored["results"]) if r.cell not in fresh), *results]
    seeds = tuple(sorted({result.cell.seed for result in both}))
    order = {cell: i for i, cell in enumerate(EXPERIMENTS[name].cells(Options(seeds=seeds)))}
    commands = dict.fromkeys([*stored["command"].split("; "), command])
    return sorted(both, key=lambda result: order.get(result.cell, len(order))), "; ".join(commands)


def _write(name: str, results: Sequence[Result], command: str, out: Path) -> None:
    experiment = EXPERIMENTS[name]
    lines = ",\n".join(json.dumps(result.stored()) for result in results)
    write_text(out / f"{name}.json", f'{{"command": {json.dumps(command)}, "results": [\n{lines}\n]}}\n')
    for file, figure in experiment.figures(results).items():
        with replacing(out / file) as draft:
            figure.savefig(draft, dpi=DPI, format="png")
    write_text(out / f"{name}.md", experiment.page(results, command) + foot(results))


def _summary(out: Path) -> str:
    """The page on all of the paper's experiments whose results are in the folder, whichever run they are from."""
    found: dict[str, tuple[list[Result], list[Finding]]] = {}
    commands: list[str] = []
    for name, experiment in PAPER.items():
        path = out / f"{name}.json"
        if path.exists():
            stored = json.loads(path.read_text(encoding="utf-8"))
            results = [Result.of(result) for result in stored["results"]]
            found[name] = results, experiment.findings(results)
            commands.append(stored["command"])
    every = [result for results, _ in found.values() for result in results]
    return summary.page(found, "; ".join(dict.fromkeys(commands))) + foot(every)
