"""Counterfactuals as people read them: plain cards, one per query, shown in a terminal or as HTML."""

from __future__ import annotations

__all__ = [
    "Answer",
    "Card",
    "Change",
    "Trust",
    "Value",
    "cards",
    "differences",
    "labels",
    "rows",
    "to_html_fragment",
    "to_html_page",
    "to_rich",
]

import base64
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

import numpy as np
import pandas as pd

from dicoflex.constraints import Constraints
from dicoflex.table.schema import Feature, Kind, Schema, typed

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table
    from rich.text import Text

MISSING = "missing"
SIGNS = {"up": "▲", "down": "▼", "other": "●"}
STYLES = {"up": "cyan", "down": "yellow", "other": "magenta"}
MARKS = {True: ("✓", "accepted"), False: ("✗", "refused"), None: ("–", "not checked")}
MARK_STYLES = {True: "bold green", False: "bold red", None: "dim"}

# How many times rarer than the most likely answer of the same query an answer may be to earn its word.
LIKELY_WITHIN = 10.0
LESS_LIKELY_WITHIN = 1_000.0
EMPTY_BAR_AT = 10_000.0
BAR_CELLS = 5
PAGE_CHARACTERS = 80
PICTURE_DPI, SCREEN_DPI = 180, 96
FIRST_DIGITS = 4
ORDINARY_SIZES = (1e-6, 1e15)
ASKED = {
    "n": "alternatives",
    "p": "sparsity p",
    "confidence": "confidence at least",
}


class Value(TypedDict):
    """One feature of the query, as text."""

    feature: str
    value: str
    frozen: bool


class Change(TypedDict):
    """One changed cell: texts, direction (up, down, other) and size as a share of the feature's range."""

    before: str
    after: str
    direction: str
    size: float


class Trust(TypedDict):
    """How far an answer can be trusted: its density, as a number, a share of the bar and a word, and the checks."""

    log_density: float | None
    likely: float | None
    word: str
    probability: float | None
    confidence: str
    valid: bool | None


class Answer(Trust):
    """One counterfactual: its changes by feature, and how far it can be trusted."""

    cf: str
    changes: dict[str, Change]


class Card(TypedDict):
    """Everything that is shown of one query."""

    heading: str
    target: str
    asked: list[tuple[str, str]]
    constraints: list[str]
    query: list[Value]
    features: list[str]
    answers: list[Answer]
    shortfall: str
    made: list[tuple[str, str]]
    picture: NotRequired[bytes]


def cards(
    queries: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    info: pd.DataFrame,
    positions: np.ndarray,
    shortfall: pd.DataFrame,
    schema: Schema,
    settings: Mapping[str, Any],
    only: Sequence[int] | None = None,
) -> list[Card]:
    """One card per query, in the order of `queries`; `only` picks queries by position."""
    reasons = _reasons(queries, positions, shortfall)
    order = np.argsort(positions, kind="stable")
    starts = np.searchsorted(positions[order], np.arange(len(queries) + 1))
    made = []
    for i in range(len(queries)) if only is None else only:
        own = order[starts[i] : starts[i + 1]]
        card = _card(queries.iloc[[i]], frame.iloc[own], info=info.iloc[own], schema=schema, settings=settings)
        card["target"] = card["target"] or _target(settings, i)
        card["shortfall"] = reasons.get(i, "")
        made.append(card)
    return made


def differences(before: pd.DataFrame, after: pd.DataFrame) -> np.ndarray:
    """Which cells differ, as a boolean matrix; rows are matched by position and two missing values are equal.

    >>> old = pd.DataFrame({"age": [31, 52], "job": ["clerk", None]})
    >>> new = pd.DataFrame({"age": [31, 50], "job": ["nurse", None]})
    >>> differences(old, new).tolist()
    [[False, True], [True, False]]
    """
    different = np.zeros(after.shape, dtype=bool)
    for j in range(after.shape[1]):
        different[:, j] = _objects(before.iloc[:, j]) != _objects(after.iloc[:, j])
    return different


def labels(schema: Schema) -> list[str]:
    """The features' names as text; quoted where a number and a text would read the same.

    >>> labels(Schema.infer(pd.DataFrame({1: [0, 1], "age": [31, 52]})))
    ['1', 'age']
    """
    names = [str(name) for name in schema.names]
    return names if len(set(names)) == len(names) else [repr(name) for name in schema.names]


def _objects(column: pd.Series) -> np.ndarray:
    """The values as Python objects that compare as the schema tells them apart; missing is None."""
    values = column.astype(object).to_numpy(dtype=object, copy=True)
    if column.dtype == object:
        keys = np.empty(len(values), dtype=object)
        keys[:] = [typed(_plain(value)) for value in values]
        values = keys
    values[column.isna().to_numpy()] = None
    return values


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _card(
    query: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    info: pd.DataFrame,
    schema: Schema,
    settings: Mapping[str, Any],
) -> Card:
    names = labels(schema)
    frozen = {typed(_plain(name)) for name in settings.get("frozen") or ()}
    answers = _answers(query, frame, info=info, schema=schema)
    return Card(
        heading=_setting(query.index[0]),
        target=_setting(info["target"].iloc[0]) if len(info) else "",
        asked=_asked(settings),
        constraints=_constraints(settings),
        query=[
            Value(feature=name, value=_shown(value, feature), frozen=typed(feature.name) in frozen)
            for name, value, feature in zip(names, rows(query)[0], schema.features, strict=True)
        ],
        features=[name for name in names if any(name in answer["changes"] for answer in answers)],
        answers=answers,
        shortfall="",
        made=_made(settings),
    )


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    """The rows as tuples of plain Python values, each column in its own type.

    >>> rows(pd.DataFrame({"age": [31], "rate": [0.5], "own": [True]}))
    [(31, 0.5, True)]
    """
    columns = [map(_plain, frame.iloc[:, j].tolist()) for j in range(frame.shape[1])]
    return list(zip(*columns, strict=True))


def _answers(query: pd.DataFrame, frame: pd.DataFrame, *, info: pd.DataFrame, schema: Schema) -> list[Answer]:
    different = differences(query.iloc[np.zeros(len(frame), dtype=int)], frame)
    named = list(zip(labels(schema), rows(query)[0], schema.features, strict=True))
    changes = [
        {named[j][0]: _change(named[j][1], after[j], named[j][2]) for j in np.flatnonzero(cells)}
        for after, cells in zip(rows(frame), different, strict=True)
    ]
    numbers = frame.index.get_level_values("cf")
    trust = zip(numbers, changes, _trust(info), strict=True)
    return [Answer(cf=str(cf), changes=own, **known) for cf, own, known in trust]


def _trust(info: pd.DataFrame) -> list[Trust]:
    """What is known of each answer besides its values."""
    densities = info["log_density"].to_numpy(dtype=float, na_value=np.nan)
    probabilities = info["probability"].tolist() if "probability" in info else [None] * len(info)
    return [
        Trust(
            log_density=_finite(density),
            likely=share,
            word=word,
            probability=_finite(probability),
            confidence=_percent(_finite(probability)),
            valid=None if pd.isna(valid) else bool(valid),
        )
        for density, (share, word), probability, valid in zip(
            densities, _words(densities), probabilities, info["valid"].tolist(), strict=True
        )
    ]


def _change(before: Any, after: Any, feature: Feature) -> Change:
    old, new = _pair(before, after, feature)
    direction, size = _step(before, after, feature)
    return Change(before=old, after=new, direction=direction, size=size)


def _step(before: Any, after: Any, feature: Feature) -> tuple[str, float]:
    """Which way the value moved, and how far on a scale where 1 is the whole range."""
    if pd.isna(before) or pd.isna(after):
        return "other", 1.0
    if feature.is_number:
        step, reach = after - before, (feature.maximum or 0.0) - (feature.minimum or 0.0)
    elif feature.kind is Kind.ORDINAL:
        order = {typed(level): i for i, level in enumerate(feature.levels)}
        step, reach = order[typed(after)] - order[typed(before)], len(feature.levels) - 1
    else:
        return "other", 1.0
    return ("up" if step > 0 else "down"), min(1.0, abs(step) / reach) if reach else 1.0


def _pair(before: Any, after: Any, feature: Feature) -> tuple[str, str]:
    """Two values as text, with as many digits as it takes to tell them apart."""
    texts = ("", "")
    for digits in (FIRST_DIGITS, 6, 9, 17):
        texts = _shown(before, feature, digits), _shown(after, feature, digits)
        if texts[0] != texts[1]:
            break
    return texts


def _shown(value: Any, feature: Feature, digits: int = FIRST_DIGITS) -> str:
    """A value as text: separators in numbers, `missing`, categories as they are."""
    if pd.isna(value):
        return MISSING
    if not feature.is_number:
        return _printable(str(value))
    if float(value).is_integer() and (feature.kind is Kind.INTEGER or abs(value) < ORDINARY_SIZES[1]):
        return f"{int(value):,}"
    return _decimal(float(value), digits)


def _decimal(value: float, digits: int) -> str:
    """A fraction with at least `digits` significant digits, without trailing zeros."""
    low, high = ORDINARY_SIZES
    if not low <= abs(value) < high:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _printable(text: str) -> str:
    """Text whose line breaks and control characters, which could disturb a terminal, are spelt out."""
    if not text:
        return '""'
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _finite(value: Any) -> float | None:
    return None if pd.isna(value) or not math.isfinite(value) else float(value)


def _words(log_density: np.ndarray) -> list[tuple[float | None, str]]:
    """For each answer of one query a share of the full bar and a word, both against the most likely one."""
    known = log_density[np.isfinite(log_density)]
    if len(log_density) == 1 and len(known) == 1:
        return [(None, f"log density {known[0]:.1f}")]
    best = known.max() if len(known) else np.nan
    return [_word(best - value) for value in log_density]


def _word(gap: float) -> tuple[float | None, str]:
    if math.isnan(gap):
        return None, "unknown"
    share = max(0.0, 1.0 - gap / math.log(EMPTY_BAR_AT))
    if gap <= 0.0:
        return 1.0, "most likely"
    if gap <= math.log(LIKELY_WITHIN):
        return share, "likely"
    return share, "less likely" if gap <= math.log(LESS_LIKELY_WITHIN) else "rare"


def _target(settings: Mapping[str, Any], position: int) -> str:
    """The label asked for a query without answers, which would carry it."""
    target = settings.get("targets", settings.get("target"))
    if isinstance(target, list | tuple):
        target = target[position] if position < len(target) else None
    return "another class" if target is None else _setting(target)


def _asked(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(key, _setting(settings[key])) for key in ASKED if settings.get(key) is not None]


def _constraints(settings: Mapping[str, Any]) -> list[str]:
    """What bound the answers, a sentence each; frozen features are marked in the query instead."""
    bound = Constraints(**settings.get("constraints") or {})
    return [_printable(text) for kind, _, text in bound.describe() if kind != "frozen"]


def _made(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else is on record: the version, the seed and the like."""
    said = {*ASKED, "constraints", "frozen", "target", "targets"}
    return [
        (str(key), _setting(value))
        for key, value in settings.items()
        if key not in said and isinstance(value, str | int | float)
    ]


def _setting(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(_setting, value))
    return f"{value:g}" if isinstance(value, float) else _printable(str(value))


def _reasons(queries: pd.DataFrame, positions: np.ndarray, shortfall: pd.DataFrame) -> dict[int, str]:
    """A sentence for each query that got too few, by position.

    Labels may repeat, so an entry belongs to the first free query with its label and its number of answers.
    """
    counts = np.bincount(positions.astype(int), minlength=len(queries))
    free: dict[tuple[Any, int], list[int]] = {}
    for i, label in enumerate(queries.index):
        free.setdefault((label, int(counts[i])), []).append(i)
    reasons = {}
    for label, wanted, got, reason in shortfall[["row", "wanted", "got", "reason"]].itertuples(index=False, name=None):
        places = free.get((label, int(got)))
        if places:
            reasons[places.pop(0)] = f"{got} of {wanted} found: {_printable(str(reason))}"
    return reasons


def _title(card: Card) -> str:
    count = len(card["answers"])
    noun = "counterfactual" if count == 1 else "counterfactuals"
    return f"{count or 'no'} {noun} for {card['target']}"


def _has_probability(card: Card) -> bool:
    return any(answer["probability"] is not None for answer in card["answers"])


def _percent(share: float | None) -> str:
    """A probability as text that never rounds up to certainty.

    >>> _percent(0.934), _percent(0.9996), _percent(1.0)
    ('93 %', '> 99 %', '100 %')
    """
    if share is None:
        return "–"
    if 0.99 < share < 1.0:
        return "> 99 %"
    if 0.0 < share < 0.01:
        return "< 1 %"
    return f"{share:.0%}".replace("%", " %")


# Terminal


def to_rich(cards: Sequence[Card], *, hidden: int = 0) -> RenderableType:
    """The cards as something that rich prints, at any width; `hidden` is how many more there are."""
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = [_panel(card) for card in cards]
    if hidden:
        parts.append(Text(_more(hidden), style="italic"))
    if any(card["answers"] for card in cards):
        parts.append(Text(f"▲ up  ▼ down  ● other value  · as in the query   {_marks_text()}", style="dim"))
    if not parts:
        parts.append(Text("no queries"))
    return Group(*parts)


def _more(hidden: int) -> str:
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
    for answer in card["answers"]:
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
    for answer in card["answers"]:
        changes = [answer["changes"].get(feature) for feature in card["features"]]
        cells = [Text("  ·", style="dim") if change is None else _new_text(change) for change in changes]
        table.add_row(Text(answer["cf"], style="dim"), *cells, *_trust_cells(answer, card))
    return table


def _narrow_table(card: Card) -> Table:
    """One list of changes per answer."""
    from rich.text import Text

    table = _new_table([("changes", False)], card)
    for answer in card["answers"]:
        pieces = [
            Text.assemble((f"{feature} ", "dim"), _change_text(change)) for feature, change in answer["changes"].items()
        ]
        table.add_row(Text(answer["cf"], style="dim"), _Flow(pieces), *_trust_cells(answer, card))
    return table


class _Flow:
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
    table.add_column("how likely", no_wrap=True)
    if _has_probability(card):
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
    if _has_probability(card):
        cells.append(Text(answer["confidence"]))
    return [*cells, Text(MARKS[answer["valid"]][0], style=MARK_STYLES[answer["valid"]])]


# HTML


def to_html_page(cards: Sequence[Card], *, title: str = "Counterfactuals", lead: str = "") -> str:
    """A standalone page: no scripts, nothing loaded from elsewhere, light or dark as the reader prefers."""
    count = sum(len(card["answers"]) for card in cards)
    summary = f"{_counted(len(cards), 'row')} explained with {_counted(count, 'counterfactual')}."
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_CSS}{CSS}</style>\n</head>\n<body>\n"
        f'<main class="dicoflex"><header><h1>{escape(title)}</h1>'
        f"<p>{escape(lead or LEAD)}</p><p>{summary}</p></header>\n"
        f"{_body(cards)}{_legend()}{_origin(cards)}</main>\n</body>\n</html>\n"
    )


def to_html_fragment(cards: Sequence[Card], *, hidden: int = 0) -> str:
    """The cards as a piece of HTML with its own styles, for a notebook; `hidden` is how many more there are."""
    more = f'<p class="more">{escape(_more(hidden))}</p>' if hidden else ""
    return f'<div class="dicoflex"><style>{CSS}</style>{_body(cards)}{more}</div>'


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _body(cards: Sequence[Card]) -> str:
    return "\n".join(map(_section, cards)) or "<p>no queries</p>"


def _section(card: Card) -> str:
    parts = [
        f'<h2><span class="quiet">row</span> {escape(card["heading"])} '
        f'<span class="count">{escape(_title(card))}</span></h2>',
        _query_html(card),
        _asked_html(card),
        _table_html(card) if card["answers"] else "",
        _picture_html(card),
        f'<p class="shortfall"><b>Fewer than asked.</b> {escape(card["shortfall"])}</p>' if card["shortfall"] else "",
    ]
    return f"<section>{''.join(parts)}</section>"


def _query_html(card: Card) -> str:
    items = []
    for value in card["query"]:
        lock = f' <span class="lock" title="frozen: may not change">{LOCK}frozen</span>' if value["frozen"] else ""
        items.append(f"<div><dt>{escape(value['feature'])}{lock}</dt><dd>{_value_html(value['value'])}</dd></div>")
    return f"<dl>{''.join(items)}</dl>"


def _value_html(value: str) -> str:
    return f"<i>{value}</i>" if value == MISSING else escape(value)


def _asked_html(card: Card) -> str:
    asked = [("target", card["target"]), *((ASKED[key], value) for key, value in card["asked"])]
    chips = "".join(f"<li><span>{escape(key)}</span> {escape(value)}</li>" for key, value in asked)
    return f'<ul class="asked"><li class="label">asked for</li>{chips}</ul>{_constraints_html(card)}'


def _constraints_html(card: Card) -> str:
    chips = "".join(f"<li>{escape(sentence)}</li>" for sentence in card["constraints"])
    return f'<ul class="asked"><li class="label">bound by</li>{chips}</ul>' if chips else ""


def _table_html(card: Card) -> str:
    wide = _page_width(card) <= PAGE_CHARACTERS
    middle = [escape(feature) for feature in card["features"]] if wide else ["changes"]
    trust = ["how likely", *(["confidence"] if _has_probability(card) else []), "accepted"]
    head = "".join(f'<th scope="col">{name}</th>' for name in ["cf", *middle, *trust])
    rows = "".join(_row_html(answer, card, wide=wide) for answer in card["answers"])
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _page_width(card: Card) -> int:
    """How many characters the columns of the changed features take."""
    widths = {feature: len(feature) for feature in card["features"]}
    for answer in card["answers"]:
        for feature, change in answer["changes"].items():
            widths[feature] = max(widths[feature], len(change["before"]) + len(change["after"]) + len("▲  → "))
    return sum(widths.values())


def _row_html(answer: Answer, card: Card, *, wide: bool) -> str:
    if wide:
        changes = [answer["changes"].get(feature) for feature in card["features"]]
        cells = "".join(f"<td>{UNCHANGED if change is None else _change_html(change)}</td>" for change in changes)
    else:
        chips = (_change_html(change, feature) for feature, change in answer["changes"].items())
        cells = f'<td class="chips">{" ".join(chips)}</td>'
    sure = f"<td>{escape(answer['confidence'])}</td>" if _has_probability(card) else ""
    sign, word = MARKS[answer["valid"]]
    mark = f'<td class="mark {word.split()[0]}" title="{word}">{sign}</td>'
    return f'<tr><th scope="row">{escape(answer["cf"])}</th>{cells}{_likely_html(answer)}{sure}{mark}</tr>'


def _change_html(change: Change, feature: str = "") -> str:
    name = f"<small>{escape(feature)}</small> " if feature else ""
    return (
        f'<span class="change {change["direction"]}">{name}<b>{SIGNS[change["direction"]]}</b> '
        f"<s>{_value_html(change['before'])}</s> → <strong>{_value_html(change['after'])}</strong></span>"
    )


def _likely_html(answer: Answer) -> str:
    number = "" if answer["log_density"] is None else f' title="log density {answer["log_density"]:.2f}"'
    share = answer["likely"]
    bar = "" if share is None else f'<span class="bar"><span style="width:{max(share, 0.04):.0%}"></span></span>'
    return f'<td class="likely"{number}>{bar}{escape(answer["word"])}</td>'


def _picture_html(card: Card) -> str:
    if "picture" not in card:
        return ""
    png = card["picture"]
    width = int.from_bytes(png[16:20], "big") * SCREEN_DPI // PICTURE_DPI
    data = base64.b64encode(png).decode()
    return f'<img alt="picture of the changes" width="{width}" src="data:image/png;base64,{data}">'


def _legend() -> str:
    return f"<aside><p>{escape(SIGNS_LEGEND)}</p><p>{escape(LIKELY_LEGEND)}</p><p>{escape(MARKS_LEGEND)}</p></aside>"


def _origin(cards: Sequence[Card]) -> str:
    """One line per distinct origin: cards of several results may stand on one page."""
    origins = Counter(" · ".join(f"{key} {value}" for key, value in card["made"]) for card in cards)
    lines = "".join(f"<p>{escape(origin)}</p>" for origin in origins if origin)
    return f"<footer>{lines}</footer>" if lines else ""


LEAD = (
    "Each row below was given one answer by a classifier. The tables show what would have to be different for "
    "another one: only what changes is listed."
)
SIGNS_LEGEND = "▲ higher, ▼ lower, ● another value, · as it is now."
LIKELY_LEGEND = (
    "How likely: compared with the most likely alternative of the same row. “Likely” is at most "
    f"{LIKELY_WITHIN:,.0f} times rarer, “less likely” at most {LESS_LIKELY_WITHIN:,.0f} times, “rare” beyond."
)
MARKS_LEGEND = (
    "Accepted: ✓ confirmed by the classifier, ✗ refused by it, – not checked. Confidence, where shown, is an "
    "estimate of how sure the classifier would be."
)
UNCHANGED = '<span class="same" title="as it is now">·</span>'
LOCK = (
    '<svg viewBox="0 0 12 14" aria-hidden="true"><path d="M3 6V4a3 3 0 0 1 6 0v2" fill="none" '
    'stroke="currentColor" stroke-width="1.6"/>'
    '<rect x="1" y="6" width="10" height="7" rx="1.5" fill="currentColor"/></svg>'
)

PAGE_CSS = """
body { margin: 0; background: #f5f6f8; }
main.dicoflex { max-width: 68rem; margin: 0 auto; padding: 2.5rem 1.25rem 3rem; background: transparent; }
@media (prefers-color-scheme: dark) { body { background: #12151a; } }
@media print { body { background: #fff; } .dicoflex section { break-inside: avoid; } }
"""

CSS = """
.dicoflex { --ink: #1b2330; --quiet: #5c6675; --line: #e1e5eb; --card: #fff; --soft: #f3f5f8;
  --up: #0b5c9e; --up-bg: #e3f0fb; --down: #97480a; --down-bg: #fdeedd; --other: #6a3d8a; --other-bg: #f3eaf9;
  --bar: #2a7f72; --yes: #1d7a46; --no: #b3261e; --warn-bg: #fff6e0; --warn: #7a5200;
  color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums; }
@media (prefers-color-scheme: dark) { .dicoflex { --ink: #e6eaf0; --quiet: #9aa5b4; --line: #2d343f;
  --card: #1a1f27;
  --soft: #232a34; --up: #8cc8ff; --up-bg: #15304a; --down: #ffb877; --down-bg: #43290f; --other: #d9b3f2;
  --other-bg: #36244a; --bar: #57b8a8; --yes: #6bd396; --no: #ff8a80; --warn-bg: #3a2f10; --warn: #ffd67a; } }
.dicoflex h1 { margin: 0 0 .5rem; font-size: 1.9rem; line-height: 1.2; letter-spacing: -.01em; }
.dicoflex header p { margin: .25rem 0; color: var(--quiet); max-width: 46rem; }
.dicoflex section { margin: 1.5rem 0; padding: 1.25rem 1.4rem 1.4rem; background: var(--card);
  color: var(--ink);
  border: 1px solid var(--line); border-radius: 12px; }
.dicoflex h2 { display: flex; flex-wrap: wrap; align-items: baseline; gap: .4rem; margin: 0 0 .9rem;
  font-size: 1.2rem; }
.dicoflex .quiet { color: var(--quiet); font-weight: 400; }
.dicoflex .count { margin-left: auto; font-size: .9rem; font-weight: 500; color: var(--quiet); }
.dicoflex dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 1px;
  margin: 0;
  padding: 0; overflow: hidden; border-radius: 8px; border: 1px solid var(--line); }
.dicoflex dl div { padding: .4rem .7rem .45rem; box-shadow: 0 0 0 1px var(--line); min-width: 0; }
.dicoflex dt { font-size: .78rem; font-weight: 400; color: var(--quiet); overflow-wrap: anywhere; }
.dicoflex dd { margin: 0; font-weight: 600; overflow-wrap: anywhere; }
.dicoflex .lock { white-space: nowrap; font-size: .72rem; padding: 0 .35rem; border-radius: 4px;
  background: var(--soft); }
.dicoflex .lock svg { width: .6rem; height: .7rem; margin-right: .2rem; vertical-align: -.05rem; }
.dicoflex ul.asked { display: flex; flex-wrap: wrap; gap: .4rem; margin: .9rem 0 0; padding: 0;
  list-style: none; }
.dicoflex ul.asked li { margin: 0; padding: .1rem .6rem; border-radius: 99px; background: var(--soft);
  font-size: .85rem; }
.dicoflex ul.asked li.label { background: none; padding-left: 0; color: var(--quiet); }
.dicoflex ul.asked span { color: var(--quiet); }
.dicoflex .scroll { overflow-x: auto; margin-top: .9rem; }
.dicoflex table { border-collapse: collapse; width: 100%; margin: 0; font-size: .92rem; color: inherit;
  background: none; }
.dicoflex th, .dicoflex td { padding: .45rem .7rem; text-align: left; vertical-align: middle;
  white-space: nowrap;
  border: 0; border-bottom: 1px solid var(--line); background: none; color: inherit; }
.dicoflex thead th { font-size: .8rem; font-weight: 600; color: var(--quiet);
  border-bottom: 2px solid var(--line); }
.dicoflex tbody th { font-weight: 400; color: var(--quiet); width: 1.5rem; }
.dicoflex tbody tr:last-child > * { border-bottom: 0; }
.dicoflex td.chips { white-space: normal; line-height: 2; }
.dicoflex .change { display: inline-block; padding: .08rem .5rem; border-radius: 6px; white-space: nowrap;
  line-height: 1.5; }
.dicoflex .change b { font-size: .75em; font-weight: 400; }
.dicoflex .change s { text-decoration: none; opacity: .8; }
.dicoflex .change small { opacity: .85; }
.dicoflex .up { color: var(--up); background: var(--up-bg); }
.dicoflex .down { color: var(--down); background: var(--down-bg); }
.dicoflex .other { color: var(--other); background: var(--other-bg); }
.dicoflex .same { color: var(--quiet); padding-left: .5rem; }
.dicoflex .likely { color: var(--quiet); }
.dicoflex .bar { display: inline-block; width: 3.2rem; height: .45rem; margin-right: .55rem;
  border-radius: 9px;
  background: var(--line); overflow: hidden; vertical-align: .06rem; }
.dicoflex .bar span { display: block; height: 100%; border-radius: 9px; background: var(--bar); }
.dicoflex .mark { text-align: center; font-weight: 700; color: var(--quiet); }
.dicoflex thead th:last-child { text-align: center; }
.dicoflex .mark.accepted { color: var(--yes); }
.dicoflex .mark.refused { color: var(--no); }
.dicoflex .shortfall { margin: 1rem 0 0; padding: .5rem .8rem; border-radius: 8px; background: var(--warn-bg);
  color: var(--warn); }
.dicoflex img { display: block; max-width: 100%; margin: 1.1rem auto 0; border-radius: 8px;
  background: #fff; }
.dicoflex aside, .dicoflex footer, .dicoflex .more { font-size: .85rem; color: var(--quiet); }
.dicoflex aside p, .dicoflex footer p { margin: .2rem 0; }
.dicoflex footer { margin-top: 1rem; padding-top: .6rem; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
"""
