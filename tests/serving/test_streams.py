"""Many rows as JSON Lines: in order, in parts, with what is wrong told in its line; and callers who leave."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from dicoflex.explainer import Explainer
from serving.running import question

LINES = {"content-type": "application/jsonl"}
PATH = "/v1/models/plain/explain-lines"


def body_of(asked: dict[str, Any]) -> bytes:
    settings = {k: v for k, v in asked.items() if k != "rows"}
    return "\n".join(map(json.dumps, [settings, *asked["rows"]])).encode()


def counted(http: httpx.Client, name: str) -> float:
    families = text_string_to_metric_families(http.get("/metrics").text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)


def test_a_line_per_row_in_their_order(http: httpx.Client, plain: Explainer) -> None:
    asked = question(plain, 150, n=1, include=[])
    for i, row in enumerate(asked["rows"]):
        row["id"] = f"row-{i}"
    answer = http.post(PATH, content=body_of(asked), headers=LINES)
    assert answer.headers["content-type"].startswith("application/jsonl")
    *rows, end = map(json.loads, answer.text.splitlines())
    assert [row["id"] for row in rows] == [f"row-{i}" for i in range(150)]
    assert end["end"] is True
    assert end["rows"] == 150
    assert end["record"]["hash"]
    asked["rows"] = asked["rows"][:100]
    assert rows[:100] == http.post("/v1/models/plain/explain", json=asked).json()["results"]


def test_what_is_wrong_with_a_row_is_told_in_its_line(http: httpx.Client, plain: Explainer) -> None:
    asked = question(plain, 3, n=1, target=None)
    asked["rows"][1]["values"]["visits"] = "many"
    *rows, end = map(json.loads, http.post(PATH, content=body_of(asked) + b"\n{", headers=LINES).text.splitlines())
    assert [row.get("status") for row in rows] == ["found", None, "found", None]
    assert rows[1]["problem"]["code"] == "invalid-rows"
    assert rows[1]["problem"]["errors"][0]["pointer"] == "/lines/1/values/visits"
    assert rows[3]["problem"]["code"] == "malformed-json"
    assert end["statuses"] == {"found": 2, "problem": 2}


def test_what_is_wrong_with_the_settings_is_told_before_the_stream(http: httpx.Client, plain: Explainer) -> None:
    for settings, code in (
        ("{", 400),
        ("[]", 422),
        ('{"rows": []}', 422),
        ('{"target": "x"}', 422),
        ('{"n": 200}', 413),
    ):
        assert http.post(PATH, content=settings, headers=LINES).status_code == code
    many = body_of(question(plain)) + b"\n{}" * 100_001
    assert http.post(PATH, content=many, headers=LINES).status_code == 413
    assert http.post(PATH, content=b"{}", headers={"content-type": "application/json"}).status_code == 415


def test_work_ends_when_the_caller_leaves(http: httpx.Client, loans: Explainer) -> None:
    before = counted(http, "dicoflex_left_total"), counted(http, "dicoflex_rows_total")
    asked = question(loans, 60, n=3)
    asked["rows"] *= 100
    with httpx.Client(base_url=http.base_url, trust_env=False, timeout=60) as leaving:
        stream = leaving.stream("POST", "/v1/models/loans/explain-lines", content=body_of(asked), headers=LINES)
        with stream as answer:
            next(answer.iter_lines())
    deadline = time.monotonic() + 30
    while counted(http, "dicoflex_left_total") == before[0] and time.monotonic() < deadline:
        time.sleep(0.1)
    assert counted(http, "dicoflex_left_total") == before[0] + 1
    assert counted(http, "dicoflex_rows_total") - before[1] < 1500
