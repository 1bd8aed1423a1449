"""What all pictures share: figures, inks and text on them."""

from __future__ import annotations

__all__ = ["BAR", "INK", "MIN_TILE", "QUIET", "SOFT", "new_figure", "short", "to_png"]

import io
from functools import partial
from typing import TYPE_CHECKING

from dicoflex.runtime.extras import extra

if TYPE_CHECKING:
    from matplotlib.figure import Figure


INK, QUIET, SOFT, BAR = "#1b2330", "#6b7583", "#f1f3f6", "#2a7f72"
MIN_TILE, MAX_TEXT = 0.62, 22


def to_png(figure: Figure, *, dpi: int = 130) -> bytes:
    """The figure as a PNG file's bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def new_figure(width: float, height: float) -> Figure:
    """A figure that pyplot does not know of; a notebook that has not loaded pyplot shows it all the same."""
    with extra("plots", to="draw pictures"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), facecolor="white")
    FigureCanvasAgg(figure)
    figure._repr_png_ = partial(to_png, figure)  # type: ignore[attr-defined]
    return figure


def short(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
