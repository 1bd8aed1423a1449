"""`dicoflex mcp`: the tools of a model as the protocol's own client lists and calls them."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import jsonschema
import pytest
from mcp import Client, StdioServerParameters

from dicoflex import load
from dicoflex.examples import EXAMPLES
from dicoflex.serving.tools import server_of
from serving.running import COMMAND, question

MODEL = next(path for path in EXAMPLES if path.stem == "perceptron")


async def asked(client: Client, calls: list[tuple[str, dict[str, Any]]]) -> tuple[dict[str, Any], list[Any]]:
    async with client:
        tools = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
        return tools, [await client.call_tool(name, arguments) for name, arguments in calls]


@pytest.mark.parametrize("stdio", [False, True])
def test_tools_are_listed_and_called(stdio: bool) -> None:
    explainer = load(MODEL)
    body = question(explainer, 1, n=2)
    claim = {"rows": body["rows"], "answers": [{"row": 0, "values": body["rows"][0]["values"]}]}
    command = StdioServerParameters(command=sys.executable, args=["-c", COMMAND, "mcp", str(MODEL)])
    client = Client(command if stdio else server_of(explainer.model_))
    bad = {**body, "rows": [{"values": {}}]}
    tools, (found, relaxed, verified, refused) = asyncio.run(
        asked(client, [("explain", body), ("relax", body), ("verify", claim), ("explain", bad)])
    )
    assert set(tools) == {"explain", "relax", "verify"}
    for name, arguments in (("explain", body), ("relax", body), ("verify", claim)):
        jsonschema.validate(arguments, tools[name])
    (row,) = found.structured_content["results"]
    assert len(row["counterfactuals"]) == 2
    assert isinstance(relaxed.structured_content["relaxations"], list)
    assert verified.structured_content["holds"] is True
    assert refused.is_error
    assert "is absent" in refused.content[0].text
