"""What all pictures share: axes, inks, and text that fits."""

from __future__ import annotations

__all__ = [
    "BAR",
    "COLOURS",
    "HATCHES",
    "INK",
    "LINE",
    "QUIET",
    "SOFT",
    "TEXT_SIZE",
    "apart",
    "axes_of",
    "ink_on",
    "plain_axes",
    "short",
    "text_width",
    "tinted",
    "titled",
    "to_png",
]

import io
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from dicoflex.runtime.extras import extra
from dicoflex.views.html import PICTURE_DPI

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, QUIET, LINE, SOFT, BAR = "#1b2330", "#5f6977", "#c9cfd8", "#f1f3f6", "#20707f"
# Blue, orange and violet of different depth are told apart by colour-blind readers and in grey; signs say the same.
COLOURS = {"up": (0.0, 0.376, 0.663), "down": (0.839, 0.451, 0.0), "other": (0.667, 0.565, 0.773)}
HATCHES = {"up": "", "down": "////", "other": ""}
MAX_TEXT = 22
TEXT_SIZE, TITLE_SIZE = 9.0, 11.0
# Inches per character of a bold title.
TITLE_CHARACTER = 0.088


_APART: ContextVar[bool] = ContextVar("apart", default=False)


@contextmanager
def apart() -> Iterator[None]:
    """Figures that are made inside are not known to pyplot: nothing shows them, and they need not be closed."""
    token = _APART.set(True)
    try:
        yield
    finally:
        _APART.reset(token)


def to_png(figure: Figure, *, dpi: int = PICTURE_DPI) -> bytes:
    """The figure as a PNG file's bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def axes_of(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes to draw on: the caller's, or those of a new figure of that size in inches."""
    if ax is not None:
        return ax
    size: dict[str, Any] = {"figsize": (width, height), "facecolor": "white", "layout": "constrained"}
    with extra("plots", to="draw pictures"):
        import matplotlib.figure
    if not _APART.get():
        import matplotlib.pyplot as plt

        own: Axes = plt.subplots(**size)[1]
        return own
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = matplotlib.figure.Figure(**size)
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def plain_axes(ax: Axes, *, left: bool = False, bottom: bool = True) -> None:
    """No frame but the lines that are asked for, and quiet labels."""
    ax.set_facecolor("white")
    ax.tick_params(length=0, labelsize=TEXT_SIZE, labelcolor=QUIET, colors=LINE)
    ax.tick_params(axis="y", labelcolor=INK)
    for side, spine in ax.spines.items():
        spine.set_visible({"left": left, "bottom": bottom}.get(side, False))
        spine.set_color(LINE)
    for axis in (ax.xaxis, ax.yaxis):
        axis.label.set_color(QUIET)
        axis.label.set_fontsize(TEXT_SIZE)


def titled(ax: Axes, text: str, note: str = "", *, above: bool = False) -> None:
    """What was found, above the axes on the left, and how to read it, smaller.

    above: whether there are labels between the axes and the title.
    """
    figure: Any = ax.get_figure(root=True)
    figure.draw_without_rendering()  # constrained layout gives the axes their width only then
    inches = ax.get_window_extent().width / figure.dpi
    lines = textwrap.wrap(text, max(24, int(inches / TITLE_CHARACTER)), break_long_words=True)
    notes = textwrap.wrap(note, max(30, int(inches / (0.7 * TITLE_CHARACTER))))
    ax.set_title(
        "\n".join(lines), loc="left", fontsize=TITLE_SIZE, fontweight="bold", color=INK, parse_math=False,
        pad=8 + 11 * len(notes) + 12 * above,
    )  # fmt: skip
    if notes:
        ax.annotate(
            "\n".join(notes), (0, 1), xytext=(0, 6), xycoords="axes fraction", textcoords="offset points",
            fontsize=8, color=QUIET, va="bottom", ha="left", parse_math=False, annotation_clip=False,
        )  # fmt: skip


def short(text: str, most: int = MAX_TEXT) -> str:
    """The text, cut off where it is too long."""
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"


def text_width(text: str, size: float = TEXT_SIZE) -> float:
    """The width of a line of text in inches."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=size), False)[0]) / 72.0


def tinted(direction: str, strength: float) -> tuple[float, float, float]:
    """The direction's colour, mixed with white where it is weak; the root keeps small steps visible."""
    share = 0.25 + 0.75 * min(1.0, strength) ** 0.5
    red, green, blue = (1.0 - share * (1.0 - part) for part in COLOURS[direction])
    return red, green, blue


def ink_on(colour: tuple[float, float, float]) -> str:
    """Dark or white text, whichever has the better contrast on `colour`."""
    red, green, blue = (part**2.2 for part in colour)
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.215 else "white"
