"""Cards for a terminal."""

from __future__ import annotations

__all__ = ["MARK_STYLES", "STYLES", "has_probability", "more_text", "to_rich"]

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text
from dicoflex.views.cards import Answer, Card, Change, Value, has_rarity, starts_group, ways_text
from dicoflex.views.words import MARKS, MISSING, SIGNS

STYLES = {"up": "cyan", "down": "yellow", "other": "magenta"}
MARK_STYLES = {True: "bold green", False: "bold red", None: "dim"}
BAR_CELLS = 5
USUAL = "as usual as 3 in 10: three in ten real rows with that result are less usual"


def has_probability(card: Card) -> bool:
    return any(answer["probability"] is not None for answer in card["answers"])


def to_rich(cards: Sequence[Card], *, hidden: int = 0) -> RenderableType:
    """The cards as something that rich prints, at any width; `hidden` is how many more there are."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [_panel(card) for card in cards]
    if hidden:
        parts.append(Text(more_text(hidden), style="italic"))
    if any(card["answers"] for card in cards):
        parts.append(Text(f"▲ up  ▼ down  ● other value  · as in the query   {_marks_text()}", style="dim"))
    if any(map(has_rarity, cards)):
        parts.append(Text(USUAL, style="dim"))
    if not parts:
        parts.append(Text("no queries"))
    return Group(*parts)


def more_text(hidden: int) -> str:
    return f"… and {hidden:,} more {'query' if hidden == 1 else 'queries'}; to_html() shows all"


def _marks_text() -> str:
    return "  ".join(f"{sign} {word}" for sign, word in MARKS.values())


def _panel(card: Card) -> RenderableType:
    from rich.box import ROUNDED
    from rich.columns import Columns
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[RenderableType] = [Columns([_value_text(value) for value in card["query"]], padding=(0, 3)), Text()]
    parts.append(_asked_text(card))
    if card["constraints"]:
        parts.append(Text.assemble(("constraints ", "dim"), Text(" · ").join(map(Text, card["constraints"]))))
    if card["answers"]:
        parts.extend([Text(), _AnswerTable(card)])
    if ways := ways_text(card):
        parts.extend([Text(), Text(ways, style="dim")])
    if card["shortfall"]:
        parts.extend([Text(), Text(f"! {card['shortfall']}", style="yellow")])
    title = Text.assemble(("row ", "dim"), (card["heading"], "bold"), (" → ", "dim"), (card["target"], "bold"))
    return Panel(Group(*parts), box=ROUNDED, title=title, title_align="left", border_style="dim", padding=(0, 1))


def _value_text(value: Value) -> Text:
    from rich.text import Text

    text = Text.assemble((value["feature"], "dim"), (" = ", "dim"), (value["value"], _value_style(value["value"])))
    return text.append(" (frozen)", style="dim italic") if value["frozen"] else text


def _value_style(value: str) -> str:
    return "italic" if value == MISSING else "bold"


def _asked_text(card: Card) -> Text:
    from rich.text import Text

    frozen = ", ".join(value["feature"] for value in card["query"] if value["frozen"])
    asked = [("target", card["target"]), *card["asked"], ("frozen", frozen or "nothing")]
    return Text(" · ").join(Text.assemble((f"{key} ", "dim"), value) for key, value in asked)


class _AnswerTable:
    """The answers of one card in the roomiest form that fits: two with a column per changed feature, or a list."""

    def __init__(self, card: Card) -> None:
        self.card = card

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.measure import Measurement

        for table in (_wide_table(self.card), _compact_table(self.card)):
            if Measurement.get(console, options.update(max_width=100_000), table).maximum <= options.max_width:
                yield table
                return
        yield _narrow_table(self.card)


def _wide_table(card: Card) -> Table:
    """A column per changed feature, old and new value in each cell."""
    from rich.text import Text

    table = _new_table([(feature, True) for feature in card["features"]], card)
    for i, answer in enumerate(card["answers"]):
        _separate(table, card, i)
        changes = [answer["changes"].get(feature) for feature in card["features"]]
        cells = [Text("·", style="dim") if change is None else _change_text(change) for change in changes]
        table.add_row(Text(answer["cf"], style="dim"), *cells, *_trust_cells(answer, card))
    return table


def _compact_table(card: Card) -> Table:
    """A column per changed feature, the old values once in the first line."""
    from rich.text import Text

    table = _new_table([(feature, True) for feature in card["features"]], card)
    now = {value["feature"]: value["value"] for value in card["query"]}
    table.add_row(Text("now", style="dim"), *(Text(f"  {now[feature]}", style="dim") for feature in card["features"]))
    for i, answer in enumerate(card["answers"]):
        _separate(table, card, i)
        changes = [answer["changes"].get(feature) for feature in card["features"]]
        cells = [Text("  ·", style="dim") if change is None else _new_text(change) for change in changes]
        table.add_row(Text(answer["cf"], style="dim"), *cells, *_trust_cells(answer, card))
    return table


def _narrow_table(card: Card) -> Table:
    """One list of changes per answer."""
    from rich.text import Text

    table = _new_table([("changes", False)], card)
    for i, answer in enumerate(card["answers"]):
        _separate(table, card, i)
        pieces = [
            Text.assemble((f"{feature} ", "dim"), _change_text(change)) for feature, change in answer["changes"].items()
        ]
        table.add_row(Text(answer["cf"], style="dim"), _TextFlow(pieces), *_trust_cells(answer, card))
    return table


def _separate(table: Table, card: Card, i: int) -> None:
    """Room between answers of different ways."""
    if starts_group(card, i):
        table.add_section()


class _TextFlow:
    """Pieces of text set one after another; a line breaks between pieces where it can."""

    def __init__(self, pieces: Sequence[Text]) -> None:
        self.pieces = pieces

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        from rich.text import Text

        line = Text()
        for i, piece in enumerate(self.pieces):
            end = "" if i == len(self.pieces) - 1 else ","
            if line and line.cell_len + piece.cell_len + 2 > options.max_width:
                yield line
                line = Text()
            line = Text.assemble(line, " " if line else "", piece, end)
        yield line


def _new_table(middle: Sequence[tuple[str, bool]], card: Card) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("cf", justify="right", no_wrap=True)
    for name, no_wrap in middle:
        table.add_column(Text(name), no_wrap=no_wrap)
    table.add_column("as usual as" if has_rarity(card) else "how likely", no_wrap=True)
    if has_probability(card):
        table.add_column("confidence", justify="right", no_wrap=True)
    table.add_column("ok", justify="center", no_wrap=True)
    return table


def _change_text(change: Change) -> Text:
    from rich.text import Text

    sign, style = SIGNS[change["direction"]], STYLES[change["direction"]]
    old, new = (change["before"], "dim"), (change["after"], f"bold {style}")
    return Text.assemble((f"{sign} ", style), old, (" → ", "dim"), new)


def _new_text(change: Change) -> Text:
    from rich.text import Text

    style = STYLES[change["direction"]]
    return Text.assemble((f"{SIGNS[change['direction']]} ", style), (change["after"], f"bold {style}"))


def _trust_cells(answer: Answer, card: Card) -> list[Text]:
    from rich.text import Text

    likely = Text(answer["word"])
    if answer["likely"] is not None:
        full = math.floor(answer["likely"] * BAR_CELLS)
        likely = Text.assemble(("▰" * full, "green"), ("▱" * (BAR_CELLS - full), "dim"), " ", answer["word"])
    cells = [likely]
    if has_probability(card):
        cells.append(Text(answer["confidence"]))
    return [*cells, Text(MARKS[answer["valid"]][0], style=MARK_STYLES[answer["valid"]])]
