"""The files of `deploy/`: what Kubernetes is told fits the server, its flags and its routes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from dicoflex.cli.serve_command import ServerFlags
from dicoflex.serving.routes import routes
from dicoflex.serving.settings import Settings
from dicoflex.serving.state import State

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
CHART = DEPLOY / "helm" / "dicoflex"
BLOCK = re.compile(r"^\s*\{\{- (if \.Values\.(\w+)|else|end) \}\}\n", re.M)


def rendered(template: str, **changed: Any) -> dict[str, Any]:
    """A template of the chart with its values: the part of Helm's language that the chart uses, and no other."""
    values = {**yaml.safe_load((CHART / "values.yaml").read_text()), **changed}
    jsonschema.validate(values, json.loads((CHART / "values.schema.json").read_text()))
    kept, shown = [], [True]
    for line in (CHART / "templates" / template).read_text().splitlines(keepends=True):
        block = BLOCK.match(line)
        if block is None:
            kept += [line] if all(shown) else []
        elif block[2] is not None:
            shown.append(bool(values[block[2]]))
        elif block[1] == "else":
            shown.append(not shown.pop())
        else:
            shown.pop()
    text = "".join(kept).replace("{{ .Release.Name }}", "income")
    text = re.sub(r"\{\{ \.Values\.(\w+) \| quote \}\}", lambda m: json.dumps(str(values[m[1]])), text)
    text = re.sub(r"\{\{ \.Values\.(\w+) \}\}", lambda m: str(values[m[1]]), text)
    assert shown == [True]
    assert "{{" not in text, "a form of the template language that this test does not know"
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def paths() -> set[str]:
    return {route.path for route in routes(State(Settings(models=Path("models"))))}


def probes(container: dict[str, Any]) -> set[str]:
    return {one["httpGet"]["path"] for name, one in container.items() if name.endswith("Probe")}


@pytest.mark.parametrize("keys", ["", "callers"])
def test_the_chart_runs_the_server_with_flags_that_it_has(keys: str) -> None:
    deployment = rendered("deployment.yaml", keysSecret=keys)
    assert (deployment["apiVersion"], deployment["kind"]) == ("apps/v1", "Deployment")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    flags = {f"DICOFLEX_{name.upper()}" for name in ServerFlags.__dataclass_fields__}
    assert set(variables) <= flags
    assert ("DICOFLEX_OPEN" in variables) == (not keys)
    assert ("DICOFLEX_KEYS" in variables) == bool(keys)
    assert probes(container) == {"/health/ready", "/health/live"} <= paths()
    mounted = {one["name"] for one in container["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["spec"]["volumes"]}
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_service_finds_the_pods() -> None:
    service, deployment = rendered("service.yaml"), rendered("deployment.yaml")
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}


def test_values_of_another_kind_are_refused() -> None:
    with pytest.raises(jsonschema.ValidationError):
        rendered("service.yaml", port=0)
    with pytest.raises(jsonschema.ValidationError):
        rendered("service.yaml", imgae="x")


def test_the_inference_service_has_an_explainer_that_serves_the_protocol() -> None:
    service = yaml.safe_load((DEPLOY / "inferenceservice.yaml").read_text())
    assert (service["apiVersion"], service["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    (container,) = service["spec"]["explainer"]["containers"]
    words = container["args"]
    known = {f"--{name.replace('_', '-')}" for name in ServerFlags.__dataclass_fields__}
    assert {word for word in words if word.startswith("--")} <= known
    assert words[words.index("--port") + 1] == str(container["ports"][0]["containerPort"])
    assert probes(container) <= paths()
    assert "/v1/models/{name}:explain" in paths()
    assert {one["name"] for one in container["volumeMounts"]} == {
        one["name"] for one in service["spec"]["explainer"]["volumes"]
    }
