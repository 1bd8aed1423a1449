"""The routes of /v2, and what the server tells of itself."""

from __future__ import annotations

import json
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from dicoflex.explainer import Explainer
from dicoflex.serving.settings import Settings
from serving.running import Running, question


def tensors(body: dict[str, Any], types: dict[str, str]) -> list[dict[str, Any]]:
    names = list(body["rows"][0]["values"])
    columns = {name: [row["values"][name] for row in body["rows"]] for name in names}
    return [
        {"name": name, "shape": [len(cells)], "datatype": types[name], "data": cells} for name, cells in columns.items()
    ]


def test_inference_gives_the_answers_of_explain(http: httpx.Client, plain: Explainer) -> None:
    facts = http.get("/v2/models/plain").json()
    types = {tensor["name"]: tensor["datatype"] for tensor in facts["inputs"]}
    assert types["city"] == "BYTES"
    assert types["visits"] == "INT64"
    assert types["member"] == "BOOL"
    body = question(plain, 3)
    asked = {
        "id": "42",
        "inputs": tensors(body, types),
        "parameters": {"target": "yes", "n": 2, "constraints": json.dumps({"max_changes": 2})},
    }
    own = f"/v2/models/plain/versions/{plain.fingerprint_}"
    found = http.post(f"{own}/infer", json=asked).json()
    results = http.post("/v1/models/plain/explain", json={**body, "constraints": {"max_changes": 2}}).json()["results"]
    told = [one for row in results for one in row["counterfactuals"]]
    outputs = {tensor["name"]: tensor["data"] for tensor in found["outputs"]}
    assert found["id"] == "42"
    assert found["model_version"] == plain.fingerprint_
    assert outputs["city"] == [one["values"]["city"] for one in told]
    assert outputs["log_density"] == [one["scores"]["log_density"] for one in told]
    assert outputs["row"] == [i for i, row in enumerate(results) for _ in row["counterfactuals"]]
    assert [tensor["name"] for tensor in facts["outputs"]] == list(outputs)
    assert http.get(f"{own}/ready").json()["ready"] is True
    assert http.get("/v2").json()["name"] == "dicoflex"
    assert http.get("/v2/health/ready").status_code == 200
    bare = {"content": json.dumps({**asked, "parameters": {**asked["parameters"], "binary_data_output": True}})}
    assert http.post(f"{own}/infer", **bare).json()["outputs"] == found["outputs"]
    assert http.post(f"{own}/infer", **bare, headers={"Origin": "https://a.example"}).status_code == 415
    assert http.post(f"{own}/infer", **bare, headers={"Inference-Header-Content-Length": "9"}).status_code == 422
    for wrong in ([], [{}], [{"name": "city", "shape": [2], "data": ["Ulm"]}], tensors(body, types)[:3]):
        assert http.post("/v2/models/plain/infer", json={"inputs": wrong}).status_code == 422


def test_examples_of_the_description_run(http: httpx.Client) -> None:
    described = http.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    ran = 0
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            contents = operation.get("requestBody", {"content": {"": {"example": None}}})["content"]
            for media, content in contents.items():
                example = content["example"]
                sent = example if isinstance(example, str) or example is None else json.dumps(example)
                answer = http.request(method, path, content=sent, headers={"content-type": media} if media else {})
                assert answer.status_code == 200, (path, answer.text)
                ran += 1
    assert ran >= 13
    assert "http" not in json.dumps(described["paths"])


def test_the_request_schema_is_that_of_the_model(http: httpx.Client, plain: Explainer) -> None:
    schema = http.get("/v1/models/plain/request-schema").json()
    values = schema["properties"]["rows"]["items"]["properties"]["values"]
    assert schema["$schema"].endswith("2020-12/schema")
    assert values["required"] == [str(name) for name in plain.schema_.names]
    assert sorted(values["properties"]["city"]["enum"]) == ["Rome", "Ulm"]
    assert None in values["properties"]["job"]["enum"]
    visits = values["properties"]["visits"]
    assert {name: visits[name] for name in ("type", "minimum", "maximum")} == {
        "type": "integer", "minimum": -128, "maximum": 127,
    }  # fmt: skip
    assert "handle_unknown" in visits["description"]
    assert schema["properties"]["n"]["maximum"] == Settings(models="x").max_n


def test_counts_can_be_read(server: Running, http: httpx.Client, plain: Explainer) -> None:
    def rows() -> float:
        families = text_string_to_metric_families(http.get("/metrics").text)
        return sum(
            s.value
            for f in families
            for s in f.samples
            if s.name == "dicoflex_rows_total" and s.labels["model"] == "plain"
        )

    before = rows()
    http.post("/v1/models/plain/explain", json=question(plain, 7))
    assert rows() == before + 7
    assert server.url.startswith("http://127.0.0.1:")
