"""A receipt as a page that prints: who, what was asked, the chosen plans, and how to check it."""

from __future__ import annotations

__all__ = ["to_page"]

from collections.abc import Sequence
from html import escape
from typing import Any

from dicoflex.explorer.texts import Names
from dicoflex.views.words import percent

CSS = """
:root { color-scheme: light; font: 15px/1.5 system-ui, sans-serif; color: #1b1f24; background: #fff }
body { max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin: 0 } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem }
table { border-collapse: collapse; width: 100% } th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #d7dce1 }
ul { padding-left: 1.2rem; margin: .3rem 0 } .quiet { color: #57606a } code { overflow-wrap: anywhere; font-size: .85rem }
section { break-inside: avoid } footer { margin-top: 2rem; border-top: 1px solid #d7dce1; padding-top: .6rem }
@media print { body { margin: 0; max-width: none } }
"""  # noqa: E501


def to_page(record: dict[str, Any], plans: Sequence[dict[str, Any]], limits: Sequence[str], names: Names) -> str:
    """A standalone page: no scripts, nothing loaded from elsewhere. limits: the caller's, in words."""
    title = f"Receipt for {names.texts.word} {record['person']}" if record["person"] else "Receipt"
    target = names.classes[list(record["now"]).index(str(record["target"]))]
    chance = percent(record["now"][str(record["target"])])
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="quiet">{escape(record["name"])} · {escape(record["made"][:10])}</p>',
        f"<p>Asked for: “{escape(target)}”. The model is {chance} sure of it now.</p>",
        _list("Limits", limits or ["none"]),
        *(_plan(i, plan, target) for i, plan in enumerate(plans)),
        _values(record, names),
        f"<footer><p>{escape(record['note'])} It is not a promise, unless whoever gave it to you says so.</p>"
        f'<p class="quiet">Model <code>{escape(record["model"])}</code>, seed {record["request"]["seed"]}. '
        "Check it with <code>dicoflex verify receipt.json --model model.dicoflex</code>.</p></footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n{''.join(parts)}\n</body>\n</html>\n"
    )


def _list(title: str, lines: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f"<section><h2>{escape(title)}</h2><ul>{items}</ul></section>"


def _plan(i: int, plan: dict[str, Any], target: str) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(word["text"])}</th><td>{escape(word["before"])}</td>'
        f"<td>→ <b>{escape(word['after'])}</b></td></tr>"
        for word in plan["sentence"]
    )
    return (
        f"<section><h2>Plan {chr(ord('A') + i)}</h2><p>{escape(plan['text'])} "
        f"The model would then be {plan['percent']} sure of “{escape(target)}”.</p><table>{rows}</table></section>"
    )


def _values(record: dict[str, Any], names: Names) -> str:
    texts = {label: names.shown(j, record["row"][names.keys[j]]) for j, label in enumerate(names.labels)}
    cells = ((escape(label), escape(text)) for label, text in texts.items())
    rows = "".join(f'<tr><th scope="row">{label}</th><td>{text}</td></tr>' for label, text in cells)
    return f"<section><h2>As it is now</h2><table>{rows}</table></section>"
