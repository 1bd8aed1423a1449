"""What is answered over HTTP is what a model at hand answers."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import numpy as np
import pandas as pd
import pytest

from dicoflex import load
from dicoflex.client import Client
from dicoflex.errors import ServerError, UnseenError
from dicoflex.examples import rows_like
from dicoflex.explainer import Explainer
from dicoflex.request import Request
from serving.running import Running, question


def asked(http: httpx.Client, body: Any, model: str = "plain", **more: Any) -> dict[str, Any]:
    answer = http.post(f"/v1/models/{model}/explain", json=body, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_answers_are_those_of_the_model(http: httpx.Client, plain: Explainer) -> None:
    body = question(plain, 4, constraints={"max_changes": 3}, verify=True, of=5, seed=5)
    found = asked(http, body)
    rows = rows_like(plain.schema_, 4, seed=5)
    direct = plain.explain(rows, target="yes", n=2, constraints={"max_changes": 3}, random_state=5)
    assert found["model"] == {"name": "plain", "fingerprint": plain.fingerprint_}
    told = [one for row in found["results"] for one in row["counterfactuals"]]
    record = json.loads(direct.to_json())
    values = [one["values"] for query in record["queries"] for one in query["counterfactuals"]]
    assert [one["values"] for one in told] == values
    assert [one["scores"]["log_density"] for one in told] == direct.info["log_density"].tolist()
    assert all(one["verified"] for one in told)
    assert found["settings"]["constraints"]["max_changes"] == 3
    assert [row["id"] for row in found["results"]] == [0, 1, 2, 3]


def test_the_same_question_has_the_same_answer_alone_and_among_others(
    http: httpx.Client, plain: Explainer, loans: Explainer
) -> None:
    questions = [("plain", question(plain, 1 + i % 3, of=i)) for i in range(24)]
    questions += [("loans", question(loans, 1, of=i)) for i in range(8)]
    alone = [asked(http, body, name)["results"] for name, body in questions]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(lambda one: asked(http, one[1], one[0])["results"], questions))
    assert together == alone


@pytest.mark.parametrize("wrong", ["row", "wish"])
def test_one_bad_row_fails_nobody_else(wrong: str, http: httpx.Client, plain: Explainer) -> None:
    bodies = [question(plain, 1, of=i) for i in range(31)]
    bad = question(plain, 1, **({"confidence": 0.999999} if wrong == "wish" else {}))
    if wrong == "row":
        bad["rows"][0]["values"]["age"] = "old"
    with ThreadPoolExecutor(16) as pool:
        statuses = list(
            pool.map(lambda body: http.post("/v1/models/plain/explain", json=body).status_code, [bad, *bodies])
        )
    assert statuses == [422] + [200] * 31


def test_values_that_training_never_had_stop_nobody(http: httpx.Client, server: Running, plain: Explainer) -> None:
    rows = rows_like(plain.schema_, 4)
    odd = rows.astype({"city": object})
    odd.loc[2, "city"] = "Bonn"
    body = question(plain, 4)
    alone = asked(http, body)["results"]
    body["rows"][2]["values"]["city"] = "Bonn"
    told = asked(http, {**body, "verify": True})["results"]
    direct = plain.explain(odd, target="yes", n=2, random_state=0)
    assert [one["values"]["city"] for one in told[2]["counterfactuals"]] == direct.frame.loc[2]["city"].tolist()
    assert all(one["verified"] for row in told for one in row["counterfactuals"])
    for i in (0, 1, 3):
        assert [one["values"] for one in told[i]["counterfactuals"]] == [
            one["values"] for one in alone[i]["counterfactuals"]
        ]
    frozen = asked(http, {**body, "frozen": ["city"]})["results"]
    assert frozen[2]["status"] == "contradictory"
    assert frozen[2]["reason"].startswith("city 'Bonn' was never seen in training, and may not change")
    either = asked(http, {**body, "frozen": ["city"], "target": {"one_of": ["yes", "no"]}})["results"]
    assert either[2]["target"] == {"one_of": ["no", "yes"]}
    with Client(server.url) as client:
        found = client.explain("plain", odd, Request.of(target="yes", n=2, random_state=0))
        pd.testing.assert_frame_equal(found.frame, direct.frame)
        assert found.queries.loc[2, "city"] == "Bonn"
        with pytest.raises(UnseenError):
            client.explain("plain", odd, Request.of(target="yes", n=2, random_state=0, handle_unknown="error"))


def test_a_large_question_is_cut_and_joined(http: httpx.Client, plain: Explainer) -> None:
    whole = asked(http, question(plain, 300, include=[]))["results"]
    direct = plain.explain(rows_like(plain.schema_, 300), target="yes", n=2, random_state=0)
    assert sum(len(row["counterfactuals"]) for row in whole) == len(direct)
    assert [row["status"] for row in whole] == direct.status
    assert {key for row in whole for one in row["counterfactuals"] for key in one} == {"values"}


def test_a_row_that_nothing_can_be_done_for_says_so(http: httpx.Client, plain: Explainer) -> None:
    body = question(plain, 2, target=None)
    found = asked(http, {**body, "frozen": ["gain"], "constraints": {"ranges": {"gain": [0, 1]}, "strict": True}})[
        "results"
    ]
    assert [row["status"] for row in found] == ["contradictory", "contradictory"]
    assert all(row["reason"] and row["got"] == 0 for row in found)


def test_the_words_for_outcomes_are_those_of_the_library(http: httpx.Client, server: Running, loans: Explainer) -> None:
    rows = rows_like(loans.schema_, 30, seed=4)
    wish: dict[str, Any] = {"target": "yes", "n": 4, "constraints": {"max_changes": 1}, "random_state": 0}
    direct = loans.explain(rows, **wish)
    assert {"already", "found"} <= set(direct.status)
    with Client(server.url) as client:
        found = client.explain("loans", rows, Request.of(**wish))
        either = client.explain("loans", rows, Request.of(**{**wish, "target": {"one_of": ["yes", "no"]}}))
    assert (found.status, found.searches) == (direct.status, direct.searches)
    assert set(either.status) == {"already"}
    assert len(either) == 0
    pd.testing.assert_frame_equal(found.shortfall, direct.shortfall, check_dtype=False)
    named = http.get("/openapi.json").json()["paths"]["/v1/models/loans/explain"]["post"]["responses"]["200"]
    assert "not_found" in json.dumps(named)
    assert "complete" not in json.dumps(named)


def test_ids_targets_and_fresh_draws(http: httpx.Client, plain: Explainer) -> None:
    body = question(plain, 2, seed=None)
    body["rows"][0]["id"] = "A-17"
    body["rows"][1]["target"] = "no"
    found = asked(http, body)
    assert [row["id"] for row in found["results"]] == ["A-17", 1]
    assert [row["target"] for row in found["results"]] == ["yes", "no"]
    again = asked(http, {**body, "seed": found["settings"]["seed"]})
    assert again["results"] == found["results"]
    assert asked(http, body)["settings"]["seed"] != found["settings"]["seed"]


def test_verify_tells_what_holds(http: httpx.Client, plain: Explainer) -> None:
    body = question(plain, 1)
    answer = asked(http, body)["results"][0]["counterfactuals"][0]
    claim = {"rows": body["rows"], "answers": [{"row": 0, "values": answer["values"]}]}
    assert http.post("/v1/models/plain/verify", json=claim).json()["holds"] is True
    changed = [change["feature"] for change in answer["changes"]]
    found = http.post("/v1/models/plain/verify", json={**claim, "frozen": changed[:1]}).json()
    assert found["holds"] is False
    broken = [one["constraint"] for one in found["verdicts"] if not one["holds"]]
    assert broken == [f"frozen {changed[0]}"]


def test_models_and_what_is_known_of_them(http: httpx.Client, plain: Explainer) -> None:
    listed = http.get("/v1/models").json()
    assert listed["models"] == [model["name"] for model in listed["served"]] == ["loans", "plain"]
    facts = http.get("/v1/models/plain")
    assert facts.json()["classes"] == ["no", "yes"]
    assert facts.headers["etag"] == f'"{plain.fingerprint_}"'
    assert http.get("/v1/models/plain", headers={"If-None-Match": facts.headers["etag"]}).status_code == 304
    assert http.get(f"/v1/models/plain@{plain.fingerprint_}").status_code == 200


# -- the client ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "loans"])
def test_the_client_gives_what_the_model_gives(server: Running, models: Any, name: str) -> None:
    explainer = load(models / f"{name}.dicoflex")
    rows = rows_like(explainer.schema_, 8, seed=3)
    request = Request.of(n=3, frozen=["age"], constraints={"max_changes": 3}, random_state=7)
    direct = explainer.explain(rows, n=3, frozen=["age"], constraints={"max_changes": 3}, random_state=7)
    with Client(server.url) as client:
        found = client.explain(name, rows, request, verify=True)
        lines = list(client.explain_lines(name, rows, request))
    pd.testing.assert_frame_equal(found.frame, direct.frame)
    pd.testing.assert_frame_equal(found.queries, direct.queries)
    # JSON has no number without an end.
    told = direct.info.replace([np.inf, -np.inf], np.nan)
    pd.testing.assert_frame_equal(found.info, told, check_dtype=False, check_like=True)
    pd.testing.assert_frame_equal(found.shortfall, direct.shortfall, check_dtype=False)
    # What a level stands for is known to the model alone.
    assert {**found.settings, "needed": None} == {**direct.settings, "needed": None}
    assert (found.status, found.searches) == (direct.status, direct.searches)
    assert found.verify()["holds"].all()
    assert sum(len(line["counterfactuals"]) for line in lines) == len(direct)


def test_rows_of_several_targets(server: Running, plain: Explainer) -> None:
    rows = rows_like(plain.schema_, 3)
    targets = ["yes", "no", "yes"]
    direct = plain.explain(rows, target=targets, n=1, random_state=0)
    with Client(server.url) as client:
        found = client.explain("plain", rows, Request.of(target=targets, n=1, random_state=0))
    pd.testing.assert_frame_equal(found.frame, direct.frame)
    assert found.targets == targets


def test_the_other_of_two_classes(http: httpx.Client, plain: Explainer) -> None:
    body = question(plain, 12, n=1, include=[])
    del body["target"]
    free = asked(http, body)["results"]
    rows = rows_like(plain.schema_, 12)
    direct = plain.explain(rows, n=1, random_state=0)
    assert [row["target"] for row in free] == list(direct.targets)
    assert len(set(direct.targets)) == 2
    body["rows"][0]["target"] = free[0]["target"]
    assert asked(http, body)["results"] == free


def test_what_the_server_refuses_is_an_error(server: Running, plain: Explainer) -> None:
    rows = rows_like(plain.schema_, 1)
    with Client(server.url) as client:
        with pytest.raises(ServerError, match="did you mean 'plain'") as told:
            client.explain("plian", rows, Request(target="yes"))
        assert (told.value.status, told.value.code) == (404, "unknown-model")
        with pytest.raises(ServerError, match="is unknown"):
            client.explain("plain", rows, Request(target="perhaps"))
    with Client("http://127.0.0.1:9") as nobody, pytest.raises(ServerError, match="no answer") as told:
        nobody.models()
    assert told.value.code == "unreachable"
