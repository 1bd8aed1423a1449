"""Pictures hold what they should, without overlaps and without touching pyplot."""

from __future__ import annotations

import io
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from dicoflex.table.schema import Schema
from dicoflex.views.canvas import to_png
from dicoflex.views.map import plot_map
from dicoflex.views.tiles import plot_changes


def change(after: str, direction: str = "up", size: float = 0.5) -> dict[str, Any]:
    return {"before": "old", "after": after, "direction": direction, "size": size}


def answer(cf: int, **changes: dict[str, Any]) -> dict[str, Any]:
    trust = {"likely": 0.5, "probability": 0.9, "confidence": "90 %", "valid": True}
    return {"cf": str(cf), "changes": changes, **trust}


def card(answers: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    names = list(dict.fromkeys(name for a in answers for name in a["changes"]))
    query = [{"feature": name, "value": f"now {name}", "frozen": False} for name in [*names, "other"]]
    return {
        "heading": "7",
        "target": "yes",
        "query": query,
        "features": names,
        "answers": answers,
        "shortfall": "",
        **more,
    }


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def pixels(figure: Figure) -> np.ndarray:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="rgba", dpi=100)
    return np.frombuffer(buffer.getvalue(), dtype=np.uint8).reshape(-1, 4)


MIXED = [
    answer(0, age=change("41"), job=change("nurse", "other")),
    answer(1, age=change("25", "down", 0.2)) | {"valid": False, "likely": None},
    answer(2, rate=change("0.31", size=0.01)) | {"valid": None},
]


def test_grid_states_query_changes_and_trust() -> None:
    written = texts(plot_changes(card(MIXED)))
    for text in ("row 7 → yes", "query", "cf 2", "now age", "▲ 41", "● nurse", "▼ 25", "▲ 0.31", "90 %", "✓", "✗", "–"):
        assert text in written
    assert "now other" not in written
    assert written.count("·") == 5


def test_grid_has_colours() -> None:
    assert len(np.unique(pixels(plot_changes(card(MIXED))), axis=0)) > 50


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("n", [1, 3, 12])
def test_texts_neither_overlap_nor_leave_the_picture(n: int, *, wide: bool) -> None:
    long = {f"a rather long feature name {i}": change("a value that goes on and on and on") for i in range(4 * wide)}
    figure = plot_changes(card([answer(i, **long, b=change("1")) for i in range(n)], target="W" * 60))
    renderer = figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts if text.get_text() != "·"]
    assert not [1 for a, b in combinations(boxes, 2) if a.overlaps(b)]
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1 for box in boxes)


def test_a_notebook_shows_the_figure_without_pyplot() -> None:
    figure = plot_changes(card(MIXED))
    assert figure._repr_png_() == to_png(figure)
    assert to_png(figure).startswith(b"\x89PNG")


def test_only_the_first_are_drawn_and_the_title_says_so() -> None:
    written = texts(plot_changes(card([answer(i, age=change(str(i))) for i in range(30)]), most=4))
    assert "row 7 → yes  (first 4 of 30)" in written
    assert "cf 3" in written
    assert "cf 4" not in written


def test_dollar_signs_are_no_formulas() -> None:
    figure = plot_changes(card([answer(0, income=change("$5$ to $\\bad"))]))
    assert "▲ $5$ to $\\bad" in texts(figure)
    assert len(pixels(figure))


def test_no_counterfactuals_gives_the_reason() -> None:
    assert "0 of 5 found: none" in texts(plot_changes(card([], shortfall="0 of 5 found: none")))
    assert "no counterfactual differs from the query" in texts(plot_changes(card([])))


TRAIN = pd.DataFrame({"x$1$": [0.0, 1.5, 3.0], "n": pd.array([0, 5, 20], dtype="Int64")})


def test_map_draws_density_query_and_counterfactuals() -> None:
    seen = []

    def density(rows: pd.DataFrame) -> np.ndarray:
        seen.append(rows)
        return -((rows["x$1$"] - 2) ** 2).to_numpy() - 0.1 * rows["n"].to_numpy(dtype=float)

    schema = Schema.infer(TRAIN)
    plain = plot_map(TRAIN.iloc[[0]], TRAIN.iloc[[1, 2]], schema=schema)
    figure = plot_map(TRAIN.iloc[[0]], TRAIN.iloc[[1, 2]], schema=schema, density=density, title="row 0")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title("left")) == ("x$1$", "n", "row 0")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["counterfactuals", "query"]
    assert seen[0].dtypes.tolist() == TRAIN.dtypes.tolist()
    assert seen[0]["n"].nunique() == 21
    assert len(np.unique(pixels(figure), axis=0)) > len(np.unique(pixels(plain), axis=0)) > 20


@pytest.mark.parametrize("value", [-np.inf, np.nan, np.inf, 0.0])
def test_map_stands_flat_and_infinite_densities(value: float) -> None:
    figure = plot_map(
        TRAIN.iloc[[0]], TRAIN.iloc[[1]], schema=Schema.infer(TRAIN), density=lambda rows: np.full(len(rows), value)
    )
    assert len(pixels(figure))


def test_map_stands_missing_values_constant_features_and_points_outside() -> None:
    train = pd.DataFrame({"a": [1.0, 1.0], "b": [0.0, np.nan]})
    schema = Schema.infer(train)
    query = pd.DataFrame({"a": [-4.0], "b": [0.5]})
    figure = plot_map(query, train, schema=schema, density=lambda rows: np.zeros(len(rows)))
    assert figure.axes[0].get_xlim()[0] == -4.0
    assert len(pixels(figure))
    assert len(pixels(plot_map(train.iloc[[1]], train.iloc[:0], schema=schema)))


@pytest.mark.slow
def test_importing_loads_neither_matplotlib_nor_rich() -> None:
    code = (
        "import sys, dicoflex.views.tiles, dicoflex.views.map, dicoflex.views.html, dicoflex.answers.counterfactuals; "
        "print(sorted({'matplotlib', 'rich'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.slow
def test_drawing_leaves_pyplot_alone() -> None:
    code = (
        "import sys; from test_pictures import *; plot_changes(card(MIXED)); "
        "plot_map(TRAIN, TRAIN, schema=Schema.infer(TRAIN)); print('matplotlib.pyplot' in sys.modules)"
    )
    here = Path(__file__).parent
    out = subprocess.run([sys.executable, "-c", code], cwd=here, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
