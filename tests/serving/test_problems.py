"""Every refusal is a problem (RFC 9457): typed, short, quick, and with nothing of the server's inside."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from dicoflex.explainer import Explainer
from dicoflex.serving.problems import MEDIA_TYPE, PROBLEMS
from serving.running import Running, question

EXPLAIN = "/v1/models/plain/explain"
JSON = {"content-type": "application/json"}


def check(answer: httpx.Response, code: str) -> dict[str, Any]:
    assert answer.headers["content-type"] == MEDIA_TYPE
    assert len(answer.content) <= 4096
    told = answer.json()
    assert told["code"] == code, told
    assert answer.status_code == told["status"] == PROBLEMS[code].status
    assert told["type"] == f"urn:dicoflex:problem:{code}"
    assert told["request_id"] == answer.headers["x-request-id"]
    return told


BODIES = {
    "malformed-json": ["{", "", "[1,", '{"rows": NaN}', '{"rows": [1e400]}', "\xff", "[" * 5000 + "]" * 5000],
    "invalid-request": ["[]", "1", "null", "{}", '{"rows": []}', '{"rows": {}}', '{"rows": 1}'],
    "invalid-rows": ['{"rows": [1]}', '{"rows": [{}]}', '{"rows": [{"values": []}]}', '{"rows": [{"values": {}}]}'],
}


@pytest.mark.parametrize(("code", "body"), [(code, body) for code, bodies in BODIES.items() for body in bodies])
def test_bodies_that_are_none(http: httpx.Client, code: str, body: str) -> None:
    check(http.post(EXPLAIN, content=body.encode("latin-1"), headers=JSON), code)


def _nested(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


def wrong(plain: Explainer) -> dict[str, tuple[str, dict[str, Any]]]:
    good = question(plain)
    own = good["rows"][0]["values"]

    def row(**changed: Any) -> dict[str, Any]:
        return {**good, "rows": [{"values": {**own, **changed}}]}

    return {
        "absent": ("invalid-rows", {**good, "rows": [{"values": {k: v for k, v in own.items() if k != "city"}}]}),
        "unknown feature": ("invalid-rows", row(height=3)),
        "text for a number": ("invalid-rows", row(price="12")),
        "truth for a number": ("invalid-rows", row(price=True)),
        "fraction": ("invalid-rows", row(visits=1.5)),
        "too far": ("invalid-rows", row(visits=1000)),
        "huge": ("invalid-rows", row(price=1e300)),
        "unknown level": ("invalid-rows", {**row(city="Paris"), "handle_unknown": "error"}),
        "long level": ("invalid-rows", row(city="x" * 1_000_000)),
        "level of another type": ("invalid-rows", row(area="5")),
        "null that never was": ("invalid-rows", {**row(city=None), "handle_unknown": "error"}),
        "nested": ("invalid-rows", row(city=[[["Ulm"]]])),
        "another part of a row": ("invalid-rows", {**good, "rows": [{"values": own, "weight": 1}]}),
        "id of another type": ("invalid-rows", {**good, "rows": [{"values": own, "id": 1.5}]}),
        "unknown setting": ("invalid-request", {**good, "m": 1}),
        "n of another type": ("invalid-request", {**good, "n": "5"}),
        "n of nothing": ("invalid-request", {**good, "n": 0}),
        "unknown target": ("invalid-request", {**good, "target": "perhaps"}),
        "several targets": ("invalid-request", {**good, "target": ["yes", "no"]}),
        "target of a row": ("invalid-request", {**good, "rows": [{"values": own, "target": "perhaps"}]}),
        "no target of a row": ("invalid-rows", {**good, "rows": [{"values": own, "target": None}]}),
        "p that was not trained": ("invalid-request", {**good, "p": 77}),
        "unknown frozen feature": ("invalid-request", {**good, "frozen": ["height"]}),
        "everything frozen": ("invalid-request", {**good, "frozen": list(own)}),
        "confidence": ("invalid-confidence", {**good, "confidence": 0.9999999}),
        "no rows are remembered": ("invalid-request", {**good, "novel": True}),
        "unknown constraint": ("invalid-constraints", {**good, "constraints": {"ragnes": {}}}),
        "constraint of a stranger": ("invalid-constraints", {**good, "constraints": {"increase": ["height"]}}),
        "254 levels": ("invalid-request", {**good, "constraints": {"ranges": _nested(254)}}),
        "500 levels": ("invalid-request", {**good, "constraints": {"ranges": _nested(500)}}),
        "rule": ("invalid-constraints", {**good, "constraints": {"rules": ["__import__('os')"]}}),
        "deep rule": ("invalid-constraints", {**good, "constraints": {"rules": ["(" * 900 + "age" + ")" * 900]}}),
        "long rule": ("invalid-constraints", {**good, "constraints": {"rules": ["age > 1 or " * 10_000 + "age > 1"]}}),
        "both ways": ("invalid-constraints", {**good, "constraints": {"increase": ["age"], "decrease": ["age"]}}),
        "many rules": ("invalid-constraints", {**good, "constraints": {"rules": ["age > 1"] * 10_000}}),
        "many answers": ("too-large", {**good, "n": 101}),
        "many rows": ("too-large", {**good, "rows": good["rows"] * 601}),
        "rows times answers": ("too-large", {**good, "rows": good["rows"] * 600, "n": 100}),
        "large body": ("too-large", row(city="x" * 3_000_000)),
    }


def test_questions_that_do_not_fit(http: httpx.Client, plain: Explainer) -> None:
    found = wrong(plain)
    assert len(found) + sum(map(len, BODIES.values())) >= 50
    for name, (code, body) in found.items():
        told = check(http.post(EXPLAIN, content=json.dumps(body), headers=JSON), code)
        assert told["detail"], name


def test_what_is_wrong_is_told_with_its_place(http: httpx.Client, plain: Explainer) -> None:
    body = question(plain, 3)
    body["rows"][1]["values"]["visits"] = "many"
    body["rows"][2]["values"].pop("city")
    told = check(http.post(EXPLAIN, json=body), "invalid-rows")
    assert [one["pointer"] for one in told["errors"]] == ["/rows/1/values/visits", "/rows/2/values/city"]


def test_problems_of_paths_methods_types_and_versions(http: httpx.Client, plain: Explainer) -> None:
    check(http.get("/nothing"), "not-found")
    check(http.get("/v1/models/nobody"), "unknown-model")
    check(http.get(EXPLAIN), "method-not-allowed")
    check(http.delete("/v1/models"), "method-not-allowed")
    check(http.post(EXPLAIN, content="{}", headers={"content-type": "text/plain"}), "unsupported-media-type")
    check(http.post(EXPLAIN, content="{}"), "unsupported-media-type")
    check(http.post(f"/v1/models/plain@{'0' * 64}/explain", json=question(plain)), "model-changed")
    check(http.get("/v1/models", headers={"host": "evil.example"}), "bad-request")
    check(http.post(EXPLAIN, json=question(plain), headers={"X-Timeout": "soon"}), "bad-request")
    check(http.post("/v1/models/plain:explain", json={"rows": []}), "invalid-request")
    check(http.post("/v1/models/plain:explain", json={"instances": [[1]]}), "invalid-rows")
    check(http.post("/v1/models/plain:predict", json={"instances": []}), "method-not-allowed")
    check(http.post("/v2/models/plain/infer", json={}), "not-found")


def test_the_time_is_up(http: httpx.Client, loans: Explainer) -> None:
    body = question(loans, 400, n=20)
    told = check(http.post("/v1/models/loans/explain", json=body, headers={"X-Timeout": "0.2"}), "deadline")
    assert "0.2 seconds" in told["detail"]
    page = http.get("/metrics").text
    assert 'dicoflex_requests_total{model="loans",route="/v1/models/{name}/explain",status="504"}' in page


def test_every_answer_has_its_headers(http: httpx.Client) -> None:
    for path in ("/health/live", "/v1/models", "/nothing"):
        headers = http.get(path, headers={"X-Request-ID": "my-own.name_1"}).headers
        assert headers["x-request-id"] == "my-own.name_1"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers
        assert "access-control-allow-origin" not in headers
    assert http.get("/health/live", headers={"X-Request-ID": "a b; c"}).headers["x-request-id"] != "a b; c"
    # What is no HTTP is not for us to answer; nothing of it is given back.
    assert "a b" not in str(http.get("/health/live", headers={"X-Request-ID": "a b\u007f"}).headers)


def test_the_log_holds_no_values(server: Running, http: httpx.Client, plain: Explainer) -> None:
    name = "a-request-to-look-for"
    body = question(plain, 2)
    body["rows"][0]["id"] = "Mrs-Secret"
    assert http.post(EXPLAIN, json=body, headers={"X-Request-ID": name}).status_code == 200
    while server.logged("request", within=30)["id"] != name:
        pass
    line = server.log[-1]
    assert line["rows"] == 2
    assert line["fingerprint"] == plain.fingerprint_
    text = json.dumps(server.log)
    assert "Mrs-Secret" not in text
    assert "counterfactuals" not in text
