"""What somebody sees on the page, and what they do there."""

from __future__ import annotations

__all__ = ["INFEASIBLE", "REFUSED", "Column", "Sight", "number"]

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Request

REFUSED = "113"
"""Somebody of the German table who lacks the wanted result, not far from it."""
LOCKED = (
    "account_check_status,duration_in_month,credit_history,purpose,credit_amount,savings,present_emp_since,"
    "installment_as_income_perc,other_debtors,property,other_installment_plans,housing,credits_this_bank,job"
)
INFEASIBLE = f"#v=1&person={REFUSED}&most=1&freeze={LOCKED}&seed=0"
"""A link under whose limits nothing fits."""
READ_PLANS = """
() => [...document.querySelectorAll("table.plans thead th.plan")].map((head, i) => ({
  key: head.dataset.key,
  stale: head.classList.contains("stale"),
  chosen: head.classList.contains("chosen"),
  percent: head.querySelector(".sure").textContent,
  changes: Object.fromEntries([...document.querySelectorAll("table.plans tbody tr[data-feature]")]
    .map((row) => [row.dataset.feature, row.querySelectorAll("td.plan")[i]])
    .map(([name, cell]) => [name, cell?.querySelector(".change > :last-child")?.textContent])
    .filter(([, text]) => text)),
}))
"""
READ_LIMITS = """
() => ({
  locked: [...document.querySelectorAll("tr[data-feature]")].filter((row) =>
    row.querySelector(".lock[aria-pressed=true], .lock.owner")).map((row) => row.dataset.feature),
  ranges: Object.fromEntries([...document.querySelectorAll("tr[data-feature]")].map((row) =>
    [row.dataset.feature, [...row.querySelectorAll("input.end")].map((end) => Number(end.value))])
    .filter(([, ends]) => ends.length)),
  most: Number(document.querySelector(".wishes .stepper input").value) || null,
})
"""


@dataclass
class Column:
    """A plan as it is shown: its key, its percentage as text, and the new value of each feature that changes."""

    key: str
    stale: bool
    chosen: bool
    percent: str
    changes: dict[str, str] = field(default_factory=dict)


def number(text: str) -> float:
    """A number as the page writes it in English."""
    return float(text.replace(",", ""))


class Sight:
    """The page in one context of the browser."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context, self.url = context, url
        self.page = context.new_page()
        self.page.set_default_timeout(30_000)
        self.errors: list[str] = []
        self.requests: list[Request] = []
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request))

    # -- going somewhere -----------------------------------------------------------------------------------------

    def open(self, link: str = "") -> None:
        self.page.goto(self.url + link)
        self.page.locator(".page").wait_for()

    def offered(self) -> None:
        """Take the first of the people who are offered, and wait for plans."""
        self.page.locator(".nobody .offer:not(.plain)").first.click()
        self.settle()

    def settle(self) -> None:
        """Wait until what is shown answers what is asked, is checked, and nothing moves."""
        self.page.wait_for_timeout(60)  # what was just done is taken up
        self.page.wait_for_function(
            """() => document.querySelector(".status")?.dataset.stage === "settled"
              && !document.querySelector("th.stale, .card.stale")"""
        )
        self.page.wait_for_timeout(60)

    # -- reading ---------------------------------------------------------------------------------------------------

    def plans(self) -> list[Column]:
        """The plans that stand in the table and keep the limits as they are at this moment."""
        return [column for column in (Column(**one) for one in self.page.evaluate(READ_PLANS)) if not column.stale]

    def both(self) -> tuple[list[Column], dict[str, Any]]:
        """Plans and limits of one moment."""
        plans, limits = self.page.evaluate(f"() => [({READ_PLANS})(), ({READ_LIMITS})()]")
        return [column for column in (Column(**one) for one in plans) if not column.stale], limits

    def row(self, feature: str) -> Locator:
        return self.page.locator(f'[data-feature="{feature}"]')

    def unfold(self, feature: str) -> Locator:
        """The row of a feature, with all of its controls in sight."""
        row = self.row(feature)
        if row.evaluate("(row) => row.classList.contains('folded')"):
            row.locator("button.name").click()
        return row

    def lock(self, feature: str) -> Locator:
        return self.row(feature).locator("button.lock")

    def lockable(self) -> list[str]:
        """Features that can be locked, in the order of the rows."""
        rows = "tr[data-feature]:has(button.lock)"
        found: list[str] = self.page.eval_on_selector_all(rows, "rows => rows.map((row) => row.dataset.feature)")
        return found

    def toggle(self, feature: str) -> None:
        """Lock or unlock at once, wherever the row is."""
        self.lock(feature).evaluate("(button) => button.click()")

    def post(self, kind: str, body: dict[str, Any]) -> Any:
        """Ask the server as the page would."""
        return self.context.request.post(f"{self.url}api/{kind}", data=body).json()

    @property
    def status(self) -> Locator:
        return self.page.locator("section.status")

    @property
    def found(self) -> int:
        return int(self.status.get_attribute("data-found") or -1)

    @property
    def hash(self) -> str:
        return urlsplit(self.page.url).fragment

    def asked(self, kind: str = "ask") -> list[dict[str, Any]]:
        """Bodies of the messages of a kind, in the order in which they were sent."""
        return [json.loads(one.post_data or "{}") for one in self.requests if one.url.endswith(f"/api/{kind}")]

    def changed(self) -> list[str]:
        """Features that any shown plan changes."""
        return sorted({name for plan in self.plans() for name in plan.changes})

    def percent(self, text: str) -> float:
        return float(re.findall(r"\d+", text)[0])
