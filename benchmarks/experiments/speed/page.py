"""The page of speed: a section per part."""

from __future__ import annotations

__all__ = ["TITLE", "page"]

from collections.abc import Callable, Mapping, Sequence

from benchmarks.cells import Result, measured
from benchmarks.experiments.speed.ground import ANSWERS, Amount
from benchmarks.experiments.speed.measuring import PARTS
from benchmarks.experiments.speed.sampling import DICE, DICE_ONE, DRAWERS, EXPLAIN, EXPLAIN_ONE, SAMPLE
from benchmarks.experiments.speed.search import CHUNK, NEIGHBOURS
from benchmarks.experiments.speed.startup import STACK
from benchmarks.pages import head, table

TITLE = "Speed"
TEXT = (
    "What is compared is timed in turns in one process, after a warm-up of each, and medians are given. A reference is "
    "shown from its best side: the flows are timed from tensor to tensor, ours from frame to frame; numpy's brute "
    "force, written in several ways, has its one-hot table made beforehand, ours sorts its rows anew each time. Brute "
    "force takes some of the rows, and its time is scaled by the number of pairs. The flows have the paper's size and "
    "random weights, which make no difference to their speed. Our code uses all cores, where nothing else is said; "
    "torch and matrix products use all or one, whichever the warm-up found faster."
)


def page(results: Sequence[Result], command: str) -> str:
    """A section per part."""
    found = measured(results)
    top = head(TITLE, f"{_machine(found)}{TEXT}", results, command, budget=False)
    sections = [SECTIONS[part](mine) for part in PARTS if (mine := [r for r in found if r.cell.method == part])]
    return f"{top}\n![Seconds side by side](speed.png)\n{''.join(sections)}"


def _machine(results: Sequence[Result]) -> str:
    """What the cells were measured on."""
    seen = dict.fromkeys((r.cell.setting("on"), Amount.of(r.cell).repeats) for r in results)
    return "".join(f"Measured on {', '.join(on)}; medians of {repeats}.\n\n" for on, repeats in seen)


def _left_out(reasons: Mapping[str, str]) -> str:
    lines = ["", "Left out:", "", *(f"- {name}: {reason}" for name, reason in reasons.items()), ""]
    return "\n".join(lines) if reasons else ""


def _search(results: Sequence[Result]) -> str:
    found = [(r, p, each) for r in results for p, each in r.figures["exponents"].items()]
    names = dict.fromkeys(name for _, _, each in found for name in each["seconds"])
    rows = [
        [name, *(_beside(each["seconds"].get(name), each["ratios"].get(name)) for _, _, each in found)]
        for name in names
    ]
    wrong = [f"{each['disagreements']} of {r.figures['anchors']}" for r, _, each in found]
    text = (
        f"\n## Neighbour search\n\nThe {NEIGHBOURS} nearest rows of the other class for every row: seconds, and how "
        f"many times ours. numpy takes {results[0].figures['anchors']} of the rows. As the formula stands, it works in "
        f"float64 on chunks of {CHUNK:,} pairs; the next line does the same in float32, in place, on chunks that fit "
        "the cache; at p = 2 there are two shortcuts, of which the matrix product rounds more. Neighbours are compared "
        "with brute force in float64; of equally far rows any will do.\n"
    )
    header = [f"{r.cell.table}, {r.figures['rows']:,} × {r.figures['columns']}, p = {p}" for r, p, _ in found]
    return text + table(["", *header], [*rows, ["rows with other neighbours", *wrong]])


def _beside(seconds: float | None, ratio: float | None) -> str:
    return "–" if seconds is None else f"{_s(seconds)} ({_x(ratio)})"


def _sampling(results: Sequence[Result]) -> str:
    names = [r.cell.table for r in results]
    times = [r.figures["times"] for r in results]
    draws = [
        [name, *(_s(each.get(name, {}).get("seconds")) for each in times)]
        for name in DRAWERS
        if any(name in each for each in times)
    ]
    answers = [
        [f"{name}, {unit}", *(_ms(each.get(name, {}).get(key)) for each in times)]
        for name, unit, key in (
            (SAMPLE, "ms per draw", "per_answer"), (EXPLAIN, "ms per answer", "per_answer"),
            (DICE, "ms per answer", "per_answer"), (EXPLAIN_ONE, "ms", "seconds"), (DICE_ONE, "ms", "seconds"),
        )
    ]  # fmt: skip
    pairs = dict.fromkeys(pair for r in results for pair in r.figures["ratios"])
    ratios = [[pair, *(_x(r.figures["ratios"].get(pair)) for r in results)] for pair in pairs]
    reasons = {f"{r.cell.table}, {name}": why for r in results for name, why in r.figures["left_out"].items()}
    return "".join([
        _sampled(results),
        table(["seconds for all draws", *names], draws),
        table(["answers", *names], answers),
        table(["how many times as long", *names], ratios),
        _left_out(reasons),
    ])  # fmt: skip


def _sampled(results: Sequence[Result]) -> str:
    """What the tables of sampling hold."""
    cell = results[0].cell
    counts, names = (
        ", ".join(words) for words in zip(*((str(r.figures["queries"]), r.cell.table) for r in results), strict=True)
    )
    return (
        f"\n## Sampling\n\n{cell.size.candidates} draws for each of {counts} queries ({names}), from frame to frame; "
        "the flows of zuko and nflows from tensor to tensor. Flows draw as it comes, as ours does without the filter; "
        "with it, draws that the surrogate doubts and unlikely ones are replaced. Ours are distinct either way. DiCE "
        f"answers {Amount.of(cell).dice_queries} queries, or one, with {ANSWERS} answers each asked for; so does "
        "explain.\n"
    )


def _latency(results: Sequence[Result]) -> str:
    rows = [
        [r.cell.table, name, *(f"{found[which]:.2f}" for which in ("p50", "p99", "max"))]
        for r in results
        for name, found in r.figures["milliseconds"].items()
    ]
    text = f"\n## One row\n\n{results[0].figures['calls']:,} calls in one process, after one; no check.\n"
    return text + table(["", "call", "p50, ms", "p99, ms", "longest, ms"], rows)


def _throughput(results: Sequence[Result]) -> str:
    cell, draws = results[0].cell, results[0].figures["draws"]
    rows = [
        [r.cell.table, f"{f['seconds']:.2f}", f"{f['draws'] / f['seconds']:,.0f}", f"{f['above_mb']:,.0f}",
         f"{f['before_mb']:,.0f}", f"{f['load_seconds']:.3f}"]
        for r in results
        for f in (r.figures,)
    ]  # fmt: skip
    text = (
        f"\n## {draws:,} draws\n\n{cell.size.candidates} for each of {Amount.of(cell).many:,} queries, each time in a "
        "fresh process. Memory is the peak, less what the process held with model and queries loaded.\n"
    )
    header = ["", "seconds", "draws per second", "memory above the model, MB", "before, MB", "loading the model, s"]
    return text + table(header, rows)


def _startup(results: Sequence[Result]) -> str:
    found = results[0].figures
    rows = [[f"`{name}`", _s(s), _x(found["ratios"].get(name))] for name, s in found["seconds"].items()]
    return f"\n## Start-up\n\nFresh processes.\n{table(['', 'seconds', f'times `{STACK}`'], rows)}"


def _s(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds:.3g}"


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{1000 * seconds:.3g}"


def _x(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}"


SECTIONS: dict[str, Callable[[Sequence[Result]], str]] = {
    "search": _search,
    "sampling": _sampling,
    "latency": _latency,
    "throughput": _throughput,
    "startup": _startup,
}
