"""KServe's V1 protocol by plain HTTP: models by name, whether one is ready, and `:explain`."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from dicoflex.examples import rows_like
from dicoflex.explainer import Explainer
from dicoflex.serving.app import create
from dicoflex.serving.settings import Settings
from dicoflex.values import is_missing
from dicoflex.values import plain as as_plain

EXPLAIN = "/v1/models/plain:explain"


@pytest.fixture(scope="module")
def instances(plain: Explainer) -> list[dict[str, Any]]:
    rows = rows_like(plain.schema_, 3, seed=1)
    return [
        {name: None if is_missing(cell) else as_plain(cell) for name, cell in row.items()} for _, row in rows.iterrows()
    ]


def test_models_and_readiness(http: httpx.Client) -> None:
    assert http.get("/v1/models").json()["models"] == ["loans", "plain"]
    told = http.get("/v1/models/plain").json()
    assert (told["name"], told["ready"]) == ("plain", True)
    assert http.get("/v1/models/nothing").status_code == 404


def test_explanations_are_those_of_our_own_route(http: httpx.Client, instances: list[dict[str, Any]]) -> None:
    asked = {"target": "yes", "n": 2, "constraints": {"max_changes": 2}}
    found = http.post(EXPLAIN, json={"instances": instances, **asked})
    assert found.status_code == 200
    own = http.post("/v1/models/plain/explain", json={"rows": [{"values": one} for one in instances], **asked}).json()
    assert found.json()["explanations"] == own["results"]
    assert len(own["results"]) == len(instances)
    assert found.json()["model"] == own["model"]
    assert found.json()["record"]["seq"] < own["record"]["seq"]
    listed = http.post(EXPLAIN, json={"instances": [list(one.values()) for one in instances], **asked})
    assert listed.json()["explanations"] == own["results"]


def test_instances_alone_are_a_question_where_there_are_two_classes(
    http: httpx.Client, instances: list[dict[str, Any]]
) -> None:
    assert len(http.post(EXPLAIN, json={"instances": instances}).json()["explanations"]) == len(instances)


def test_the_description_has_it(http: httpx.Client, instances: list[dict[str, Any]]) -> None:
    path = http.get("/openapi.json").json()["paths"][EXPLAIN]["post"]
    body = path["requestBody"]["content"]["application/json"]
    jsonschema.validate(body["example"], body["schema"])
    jsonschema.validate({"instances": [list(one.values()) for one in instances]}, body["schema"])
    found = http.post(EXPLAIN, json=body["example"])
    jsonschema.validate(found.json(), path["responses"]["200"]["content"]["application/json"]["schema"])


def test_a_key_for_a_model_is_for_its_explanations(
    models: Path, tmp_path: Path, instances: list[dict[str, Any]]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"team {hashlib.sha256(b'secret').hexdigest()} loans\n")
    app = create(Settings(models=models, keys=keys))

    async def ask(name: str) -> int:
        transport = httpx.ASGITransport(app=app)
        headers = {"Authorization": "Bearer secret"}
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            return (await client.post(f"/v1/models/{name}:explain", json={"instances": instances})).status_code

    assert asyncio.run(ask("plain")) == 403
    assert asyncio.run(ask("loans")) != 403
