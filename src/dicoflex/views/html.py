"""Cards as a page or a fragment of one."""

from __future__ import annotations

__all__ = ["PICTURE_DPI", "to_html_fragment", "to_html_page"]

import base64
from collections import Counter
from collections.abc import Sequence
from html import escape

from dicoflex.runtime.printable import counted
from dicoflex.views.cards import ALREADY, ASKED, Answer, Card, Change, has_rarity, starts_group, ways_text
from dicoflex.views.terminal import has_probability, more_text
from dicoflex.views.words import LESS_LIKELY_WITHIN, LIKELY_WITHIN, MARKS, MISSING, SIGNS

PAGE_CHARACTERS = 80
PICTURE_DPI, SCREEN_DPI = 180, 96


def _title(card: Card) -> str:
    count = len(card["answers"])
    noun = "counterfactual" if count == 1 else "counterfactuals"
    return f"{count or 'no'} {noun} for {card['target']}"


def to_html_page(cards: Sequence[Card], *, title: str = "Counterfactuals", lead: str = "") -> str:
    """A standalone page: no scripts, nothing loaded from elsewhere, light or dark as the reader prefers."""
    count = sum(len(card["answers"]) for card in cards)
    summary = f"{counted(len(cards), 'row')} explained with {counted(count, 'counterfactual')}."
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_CSS}{CSS}</style>\n</head>\n<body>\n"
        f'<main class="dicoflex"><header><h1>{escape(title)}</h1>'
        f"<p>{escape(lead or LEAD)}</p><p>{summary}</p></header>\n"
        f"{_body(cards)}{_legend(cards)}{_origin(cards)}</main>\n</body>\n</html>\n"
    )


def to_html_fragment(cards: Sequence[Card], *, hidden: int = 0) -> str:
    """The cards as a piece of HTML with its own styles, for a notebook; `hidden` is how many more there are."""
    more = f'<p class="more">{escape(more_text(hidden))}</p>' if hidden else ""
    return f'<div class="dicoflex"><style>{CSS}</style>{_body(cards)}{more}</div>'


def _body(cards: Sequence[Card]) -> str:
    return "\n".join(map(_section, cards)) or "<p>no queries</p>"


def _section(card: Card) -> str:
    parts = [
        f'<h2><span class="quiet">row</span> {escape(card["heading"])} '
        f'<span class="count">{escape(_title(card))}</span></h2>',
        _query_html(card),
        _asked_html(card),
        _table_html(card) if card["answers"] else "",
        f'<p class="ways">{escape(ways[0].upper() + ways[1:])}.</p>' if (ways := ways_text(card)) else "",
        _picture_html(card),
        f'<p class="shortfall">{_fewer(card)}{escape(card["shortfall"])}</p>' if card["shortfall"] else "",
    ]
    return f"<section>{''.join(parts)}</section>"


def _fewer(card: Card) -> str:
    return "" if card["status"] == ALREADY else "<b>Fewer than asked.</b> "


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
    trust = [
        "as usual as" if has_rarity(card) else "how likely",
        *(["confidence"] if has_probability(card) else []),
        "accepted",
    ]
    head = "".join(f'<th scope="col">{name}</th>' for name in ["cf", *middle, *trust])
    rows = "".join(_row_html(i, card, wide=wide) for i in range(len(card["answers"])))
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _page_width(card: Card) -> int:
    """How many characters the columns of the changed features take."""
    widths = {feature: len(feature) for feature in card["features"]}
    for answer in card["answers"]:
        for feature, change in answer["changes"].items():
            widths[feature] = max(widths[feature], len(change["before"]) + len(change["after"]) + len("▲  → "))
    return sum(widths.values())


def _row_html(i: int, card: Card, *, wide: bool) -> str:
    answer = card["answers"][i]
    if wide:
        changes = [answer["changes"].get(feature) for feature in card["features"]]
        cells = "".join(f"<td>{UNCHANGED if change is None else _change_html(change)}</td>" for change in changes)
    else:
        chips = (_change_html(change, feature) for feature, change in answer["changes"].items())
        cells = f'<td class="chips">{" ".join(chips)}</td>'
    sure = f"<td>{escape(answer['confidence'])}</td>" if has_probability(card) else ""
    sign, word = MARKS[answer["valid"]]
    mark = f'<td class="mark {word.split()[0]}" title="{word}">{sign}</td>'
    group = ' class="group"' if starts_group(card, i) else ""
    return f'<tr{group}><th scope="row">{escape(answer["cf"])}</th>{cells}{_likely_html(answer)}{sure}{mark}</tr>'


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


def _legend(cards: Sequence[Card]) -> str:
    usual = {has_rarity(card) for card in cards if card["answers"]} or {False}
    lines = [SIGNS_LEGEND, *[LIKELY_LEGEND] * (False in usual), *[USUAL_LEGEND] * (True in usual), MARKS_LEGEND]
    return f"<aside>{''.join(f'<p>{escape(line)}</p>' for line in lines)}</aside>"


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
USUAL_LEGEND = (
    "As usual as: compared with real rows that have the wanted result. “3 in 10” means that three in ten of them are "
    "less usual. Alternatives that change the same things stand together."
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
/* Notebooks float terms into a fifth of the width, and names then break inside words. */
.dicoflex dl dt, .dicoflex dl dd { float: none; clear: none; display: block; width: auto; margin: 0; padding: 0;
  text-align: start; overflow-wrap: break-word; }
.dicoflex dl dt { font-size: .78rem; font-weight: 400; color: var(--quiet); }
.dicoflex dl dd { font-weight: 600; }
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
.dicoflex tbody tr.group > * { border-top: 2px solid var(--line); }
.dicoflex .ways { margin: .7rem 0 0; color: var(--quiet); font-size: .9rem; }
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
