"""Receipts: what was requested, what the model answered, all that repeats it bit for bit, and a page that prints."""

from __future__ import annotations

__all__ = ["NOTE", "UNCOVERED", "Receipts", "check_receipt", "to_page"]

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from dicoflex.answers.aiming import aimed
from dicoflex.errors import SignatureError, UserError
from dicoflex.explorer.asking import Asker, Found
from dicoflex.explorer.messages import RefusedError
from dicoflex.explorer.question import Question, label_of
from dicoflex.explorer.settling import Settler
from dicoflex.explorer.texts import Names, Texts
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.table.plain_rows import Cells
from dicoflex.targets import Interval, read_goal
from dicoflex.views.words import percent

KIND, VERSION = "dicoflex receipt", 1
UNCOVERED = ("made", "name", "person")
"""What a receipt says that no model can give again: when it was made, what it is called, and for whom."""
NOTE = "A plan says what the model would answer, not what causes what."


class Receipts:
    """Makes receipts for one model."""

    def __init__(self, model: Model) -> None:
        # Without a page's texts: a receipt says the same whatever things are called.
        self.model, self.names = model, Names(model.schema, model.labels, Texts())
        self.asker = Asker(model, self.names, Cells(model.plain_rows))
        self.settler = Settler(model, self.names, self.asker, _nobody)

    def make(
        self, question: Question, keys: Sequence[str], *, name: str, made: str | None = None, found: Found | None = None
    ) -> dict[str, Any]:
        """The record of the plans with these keys; one that is not among the answers is refused.

        found: what came of the question, where it was asked already.
        """
        found = self.asker.find(question, thorough=True) if found is None else found
        plans = {plan["key"]: plan for plan in self.asker.plans(question, found)}
        odd = next((key for key in keys if key not in plans), None)
        if odd is not None or not keys:
            which = "no plan is chosen" if odd is None else f"the plan {odd!r} is not among the answers"
            raise RefusedError(f"{which}; ask again and choose one that is shown", place="/keys")
        verdicts = self.settler.verdicts(question, found, list(keys))
        query, now = found.query, self.model.surrogate.probabilities(question.own)[0]
        record = {
            "kind": KIND,
            "version": VERSION,
            "made": made or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "name": name,
            "person": question.person,
            "model": self.model.fingerprint,
            "row": dict(zip(self.names.keys, question.cells, strict=True)),
            "now": {str(label): float(p) for label, p in zip(self.model.labels, now, strict=True)},
            "target": self.model.labels[question.target],
            "request": question.request.model_dump(mode="json"),
            "needed": float(query.context.confidence[0]),
            "limits": [one.text for one in query.request.constraints.one_by_one()],
            "plans": [_plan(plans[key], verdicts[key]) for key in keys],
            "note": NOTE,
        }
        return {**record, "digest": _digest(record)}


def check_receipt(record: Any, model: Model) -> int:
    """How many plans of a receipt the model gives again, bit for bit; a `SignatureError` where anything differs."""
    if not isinstance(record, dict) or record.get("kind") != KIND or record.get("version") != VERSION:
        raise SignatureError("this is no receipt of the explorer; give the JSON that it made")
    if record.get("model") != model.fingerprint:
        raise SignatureError(
            f"the receipt was made with the model {str(record.get('model'))[:16]}, and this one is "
            f"{model.fingerprint[:16]}; give the model file that it was made with"
        )
    given = {name: value for name, value in record.items() if name != "signature"}
    if given.pop("digest", None) != _digest(given):
        raise SignatureError("the receipt was altered: its digest is another one; get it again from where it was made")
    try:
        again = _again(record, model)
    except (UserError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise SignatureError(f"the receipt can't be asked for again: {error}; it was altered or cut short") from None
    place = _difference({**given, "digest": record["digest"]}, again, "")
    if place is not None:
        raise SignatureError(
            f"the receipt was altered: {place} is not what the model gives; get it again from where it was made"
        )
    return len(again["plans"])


def _again(record: dict[str, Any], model: Model) -> dict[str, Any]:
    """The receipt that the same question gives now."""
    if model.score is not None:
        goal = read_goal(str(record["target"]))
        assert isinstance(goal, Interval)
        model = aimed(model, goal)
    receipts, cells = Receipts(model), Cells(model.plain_rows)
    plain = cells.by_name(record["row"], receipts.names.keys)
    own = cells.encoded(plain)[None]
    now = model.surrogate.probabilities(own)[0]
    request = Request.model_validate(record["request"])
    question = Question(
        model, own, plain, record["person"], now=now, target=label_of(record["target"], model, now), request=request,
        limits=[],
    )  # fmt: skip
    keys = [plan["key"] for plan in record["plans"]]
    return receipts.make(question, keys, name=record["name"], made=record["made"])


def _plan(plan: dict[str, Any], verdict: dict[str, Any]) -> dict[str, Any]:
    changes = [{part: one[part] for part in ("feature", "before", "after")} for one in plan["changes"]]
    obeys = [{part: one[part] for part in ("constraint", "holds")} for one in verdict["checks"]]
    kept = {part: plan[part] for part in ("key", "values", "probability", "plausibility", "cost")}
    return {**kept, "changes": changes, "obeys": obeys}


def _digest(record: dict[str, Any]) -> str:
    """A checksum of a receipt: it tells damage and carelessness; who would forge one can take it anew."""
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _difference(one: Any, other: Any, place: str) -> str | None:
    """Where two records differ first; None where they don't. Numbers must be the same to the last bit."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in dict.fromkeys([*one, *other]):
            if name not in one or name not in other:
                return f"{place}/{name}"
            if (found := _difference(one[name], other[name], f"{place}/{name}")) is not None:
                return found
        return None
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return place
        pairs = enumerate(zip(one, other, strict=True))
        return next((at for i, (a, b) in pairs if (at := _difference(a, b, f"{place}/{i}")) is not None), None)
    same = one == other and isinstance(one, bool) == isinstance(other, bool)
    return None if same or (one is None and other is None) else place


def _nobody(_: Any) -> Question:
    raise NotImplementedError("a receipt is made from a question")


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
        *(_plan_section(i, plan, target) for i, plan in enumerate(plans)),
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


def _plan_section(i: int, plan: dict[str, Any], target: str) -> str:
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
