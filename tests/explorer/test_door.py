"""The explorer over HTTP: its page, its headers, and what hostile requests get."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import dicoflex
from dicoflex.cli import main
from dicoflex.errors import SettingError
from dicoflex.explorer import Explorer
from dicoflex.serving.exploring import MOST_BODY, Door, create

HOST = "http://127.0.0.1"


@pytest.fixture(scope="module")
def http(loans: Explorer) -> Iterator[TestClient]:
    with TestClient(create(loans, Door()), base_url=HOST, raise_server_exceptions=False) as client:
        yield client


def test_the_page_comes_with_its_policy(http: TestClient) -> None:
    page = http.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = page.headers["content-security-policy"]
    assert policy == "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cache-control"] == "no-store"
    assert "set-cookie" not in page.headers


def test_messages_are_answered_as_by_the_explorer(http: TestClient, loans: Explorer) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "model": {},
        "people": {"most": 3},
        "person": {"person": "7"},
        "ask": {"person": "7", "target": "yes", "constraints": {"max_changes": 2}, "seq": 9},
        "score": {"values": loans.answer("person", {"person": "7"})["values"], "target": "yes"},
        "settle": {"person": "7", "target": "yes"},
        "relax": {"person": "7", "target": "yes", "constraints": {"max_changes": 1}},
    }
    for kind, body in bodies.items():
        answer = http.post(f"/api/{kind}", json=body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == json.loads(json.dumps(loans.answer(kind, body)))


def test_a_cohort_comes_in_lines(http: TestClient, loans: Explorer) -> None:
    with http.stream("POST", "/api/cohort", json={"constraints": {"max_changes": 1}}) as answer:
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        lines = [json.loads(line) for line in answer.iter_lines()]
    assert lines == list(loans.stream("cohort", {"constraints": {"max_changes": 1}}))


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        ({"headers": {"host": "evil.example"}, "json": {}}, 400, "bad-request"),
        ({"headers": {"host": "127.0.0.1.evil.example"}, "json": {}}, 400, "bad-request"),
        ({"headers": {"content-type": "text/plain"}, "content": "{}"}, 415, "unsupported-media-type"),
        ({"data": {"a": 1}}, 415, "unsupported-media-type"),
        ({"headers": {"content-type": "application/json"}, "content": b"x" * 2_000_000}, 413, "too-large"),
        ({"headers": {"content-type": "application/json"}, "content": b"{"}, 400, "malformed-json"),
        ({"headers": {"content-type": "application/json"}, "content": b"[]"}, 422, "invalid-request"),
        ({"json": {"person": "nobody"}}, 422, "invalid-request"),
        ({"json": {"person": "7", "constraints": {"ranges": {"visits": [9, 1]}}}}, 422, "invalid-constraints"),
    ],
)
def test_hostile_requests_get_problems(http: TestClient, given: dict, status: int, code: str) -> None:
    answer = http.post("/api/ask", **given)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert (told["status"], told["code"], told["type"]) == (status, code, f"urn:dicoflex:problem:{code}")
    assert told["detail"]
    assert told["request_id"] == answer.headers["x-request-id"]
    assert "content-security-policy" in answer.headers


def test_problems_name_the_feature_and_the_place(http: TestClient) -> None:
    told = http.post("/api/ask", json={"person": "7", "constraints": {"ranges": {"visits": [9, 1]}}}).json()
    assert (told["feature"], "swap them" in told["detail"]) == ("visits", True)
    assert http.post("/api/ask", json={"person": "7", "n": 99}).json()["place"] == "/n"


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/secret.txt", "/api/dance", "/static/index.html", "/%2e%2e/a"])
def test_there_is_nothing_else(http: TestClient, path: str) -> None:
    assert http.get(path).status_code in (404, 405)
    assert http.post(path, json={}).status_code in (404, 405)


def test_a_message_is_sent_by_post(http: TestClient) -> None:
    assert http.get("/api/model").status_code == 405
    assert MOST_BODY == 1_000_000


def test_a_bug_is_told_without_values(loans: Explorer, capsys: pytest.CaptureFixture[str]) -> None:
    class Broken(Explorer):
        def answer(self, kind: str, body: Any) -> dict[str, Any]:  # noqa: ARG002
            raise RuntimeError("the secret 4711")

    broken = Broken(loans.model, loans.people.frame.head(2))
    with TestClient(create(broken, Door()), base_url=HOST, raise_server_exceptions=False) as client:
        answer = client.post("/api/model", json={})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal")
    logged = capsys.readouterr()
    assert "4711" not in answer.text + logged.out + logged.err
    assert "RuntimeError at test_door.py:" in logged.err


def test_a_token_opens_messages_alone(loans: Explorer) -> None:
    with pytest.raises(SettingError, match="without a token"):
        Door(host="0.0.0.0")
    door = Door(host="0.0.0.0", token="sesame", names=("Box.example",))
    with TestClient(create(loans, door), base_url="http://box.example") as client:
        assert client.get("/").status_code == 200
        assert client.post("/api/model", json={}).status_code == 401
        assert client.post("/api/model", json={}, headers={"authorization": "Bearer sesam"}).status_code == 401
        assert client.post("/api/model", json={}, headers={"authorization": "Bearer sesame"}).status_code == 200


def test_asking_at_the_same_time_mixes_nothing(http: TestClient, loans: Explorer) -> None:
    people = ("7", "11", "20", "33")
    alone = {one: loans.answer("ask", {"person": one, "target": "yes"}) for one in people}
    wrong: list[str] = []

    def ask(person: str) -> None:
        for _ in range(4):
            if http.post("/api/ask", json={"person": person, "target": "yes"}).json() != alone[person]:
                wrong.append(person)

    threads = [threading.Thread(target=ask, args=(one,)) for one in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.slow
def test_the_command_prints_one_line_and_serves(loans: Explorer, loans_file: Path, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    loans.people.frame.head(5).to_csv(people, index_label="person")
    command = "import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "explore", str(loans_file), str(people), "--id", "person", "--target", "yes"],
        env=os.environ | {"PYTHONPATH": str(Path(dicoflex.__file__).parents[1])},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
            assert client.post("api/people", json={}).json()["total"] == 5
            assert client.get("/").status_code == 200
    finally:
        process.send_signal(signal.SIGTERM)
        rest = process.communicate(timeout=60)
    assert rest[0] == ""
    assert process.returncode == 0


def test_a_model_without_people_is_refused(loans_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(loans_file)]) == 2
    assert "nobody to explore" in capsys.readouterr().err
    assert main(["explore", str(loans_file), "people.csv", "--host", "0.0.0.0"]) == 2
    assert "--token" in capsys.readouterr().err
