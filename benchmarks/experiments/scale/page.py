"""The page of scale: a column per size, and how the cost grows."""

from __future__ import annotations

__all__ = ["LINES", "TITLE", "figures", "medians", "page", "slope"]

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from benchmarks.cells import Result, measured
from benchmarks.pages import canvas, head, table

TITLE = "Cost of a fit against rows"
TEXT = (
    "Tables of 10,000 to 1,000,000 rows follow Adult's joint distribution: rows of the shipped table, drawn with "
    "replacement, their numbers moved a little. Each is fitted in a process of its own, with a perceptron as black "
    "box, on at most `FitConfig.most_rows` rows. Measured are seconds, peak memory, and the raw validity of draws for "
    "the same held-out queries; and what the sample does to neighbours: the share of each query's 16 nearest rows in "
    "the sample that are no farther than the 16th of the whole table, and how many times as far they are on average. "
    "Figures are medians over the seeds."
)
LINES: list[tuple[str, Callable[[dict[str, float]], str]]] = [
    ("rows that the fit used", lambda r: f"{r['rows_used']:,.0f}"),
    ("fit, seconds", lambda r: f"{r['fit_seconds']:.1f}"),
    ("peak memory of the process, MB", lambda r: f"{r['peak_mb']:,.0f}"),
    ("  of it before the fit (table and black box)", lambda r: f"{r['before_mb']:,.0f}"),
    ("rows shown to the black box in fit", lambda r: f"{r['black_box_rows']:,.0f}"),
    ("agreement of the surrogate", lambda r: f"{r['surrogate_agreement']:.3f}"),
    ("raw validity, p = 2", lambda r: f"{r['validity_2']:.4f}"),
    ("raw validity, p = 2, without the surrogate's filter", lambda r: f"{r['validity_unfiltered']:.4f}"),
    ("raw validity, p = 0.01", lambda r: f"{r['validity_0.01']:.4f}"),
    ("features changed, p = 2 / 0.01", lambda r: f"{r['changed_2']:.2f} / {r['changed_0.01']:.2f}"),
    ("neighbours as near as the whole's, p = 2 / 0.01", lambda r: f"{r['overlap_2']:.3f} / {r['overlap_0.01']:.3f}"),
    ("mean distance, times the whole table's", lambda r: f"{r['ratio_2']:.3f} / {r['ratio_0.01']:.3f}"),
]  # fmt: skip


def medians(results: Sequence[Result]) -> list[dict[str, float]]:
    """One entry per size: the medians over the seeds."""
    found = measured(results)
    sizes = sorted({r.cell.setting("rows") for r in found})
    groups = {n: [r.figures for r in found if r.cell.setting("rows") == n] for n in sizes}
    return [
        {"rows": n} | {name: float(np.median([each[name] for each in group])) for name in group[0]}
        for n, group in groups.items()
    ]


def slope(sizes: Sequence[dict[str, float]]) -> float:
    """How the log of the seconds grows with the log of the rows: 1 is proportional, 0 is not at all."""
    rows, seconds = ([size[name] for size in sizes] for name in ("rows", "fit_seconds"))
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def page(results: Sequence[Result], command: str) -> str:
    """A column per size, and how the largest compares with 100,000 rows."""
    sizes = medians(results)
    top = head(TITLE, TEXT, results, command, budget=False)
    if not sizes:
        return top
    header = ["rows", *(f"{size['rows']:,.0f}" for size in sizes)]
    rows = [[title, *(show(size) for size in sizes)] for title, show in LINES]
    picture = "\n![Seconds, memory, neighbours and validity against rows](scale.png)\n"
    return f"{top}\n{_growth(sizes)}\n{picture}{table(header, rows)}"


def _growth(sizes: Sequence[dict[str, float]]) -> str:
    last = sizes[-1]
    hundred = next((size for size in sizes if size["rows"] == 100_000), sizes[0])
    gains = [100 * (last[name] - hundred[name]) for name in ("validity_2", "validity_unfiltered")]
    return (
        f"Seconds grow as rows to the power of {slope(sizes):.2f}. {last['rows']:,.0f} rows take "
        f"{last['fit_seconds'] / hundred['fit_seconds']:.2f} times as long as {hundred['rows']:,.0f}; raw validity at "
        f"p = 2 differs by {gains[0]:+.2f} points, without the surrogate's filter by {gains[1]:+.2f}."
    )


PANELS: list[tuple[str, dict[str, str]]] = [
    ("fit, seconds", {"fit_seconds": "fit"}),
    ("memory, MB", {"peak_mb": "peak", "before_mb": "before the fit"}),
    ("distance of neighbours, times the whole's", {"ratio_2": "p = 2", "ratio_0.01": "p = 0.01"}),
    ("raw validity, p = 2", {"validity_2": "as drawn", "validity_unfiltered": "without the surrogate's filter"}),
]


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """Four panels over rows, each from 0 up, with a line where sampling begins."""
    sizes = medians(results)
    if not sizes:
        return {}
    figure, panels = canvas(len(PANELS), across=2)
    rows, begins = [size["rows"] for size in sizes], results[0].cell.setting("most_rows")
    for axes, (title, curves) in zip(panels, PANELS, strict=True):
        for name, text in curves.items():
            axes.plot(rows, [size[name] for size in sizes], marker="o", label=text)
        axes.axvline(begins, color="0.6", linestyle=":", label="sampled beyond")
        axes.set(xscale="log", xlabel="rows", title=title)
        axes.set_xticks(rows, [f"{n:,.0f}" for n in rows], fontsize=8)
        axes.minorticks_off()
        axes.set_ylim(0, 1.1 * max(size[name] for size in sizes for name in curves))
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    return {"scale.png": figure}
