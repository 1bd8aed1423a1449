"""The Markdown view: a heading per query, and a table with a line per answer and a column per changed feature."""

from __future__ import annotations

__all__ = ["escaped", "line", "markdown_of"]

import re
from collections.abc import Sequence

from dicoflex.views.cards import Card, Change, has_rarity

# Characters that would be read as markup, or would end a cell.
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~])")


def markdown_of(cards: Sequence[Card]) -> str:
    """The cards as Markdown.

    Parameters
    ----------
    cards : list of Card
        What is shown of each query.

    Returns
    -------
    str
        Text in which a value is never read as markup.
    """
    return "\n".join("\n".join(_section(card)) for card in cards)


def _section(card: Card) -> list[str]:
    lines = [f"### {escaped(card['heading'])} → {escaped(card['target'])}", ""]
    if card["answers"]:
        now = {value["feature"]: value["value"] for value in card["query"]}
        features = card["features"]
        lines += [
            line(["", *map(escaped, features), "plausibility", "confidence"]),
            "|" + "---|" * (len(features) + 3),
            line(["now", *(escaped(now[feature]) for feature in features), "", ""]),
        ]
        for answer in card["answers"]:
            cells = [_cell(answer["changes"].get(feature)) for feature in features]
            trust = [answer["word"] if has_rarity(card) else "", answer["confidence"]]
            lines.append(line([answer["cf"], *cells, *map(escaped, trust)]))
        lines.append("")
    if card["shortfall"]:
        lines += [escaped(card["shortfall"]), ""]
    return lines


def _cell(change: Change | None) -> str:
    return "" if change is None else f"**{escaped(change['after'])}**"


def line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text in which nothing is read as markup."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
