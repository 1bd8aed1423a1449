"""A model's questions as tools of the Model Context Protocol: explain, relax and verify."""

from __future__ import annotations

__all__ = ["serve_tools", "server_of"]

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import orjson
import pandas as pd

from dicoflex.answers.asking import explain
from dicoflex.errors import QueryError, UserError
from dicoflex.model import Model
from dicoflex.runtime.extras import extra
from dicoflex.serving.engine import answer, verdicts
from dicoflex.serving.problems import of_error
from dicoflex.serving.questions import read_question
from dicoflex.serving.results import results_of, settings_of
from dicoflex.serving.rows import RowReader
from dicoflex.serving.schemas import claims_schema, request_schema
from dicoflex.serving.settings import Settings
from dicoflex.serving.verifying import read_claims
from dicoflex.values import jsonable

with extra("mcp", to="offer tools over the Model Context Protocol"):
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

Json = dict[str, Any]
SAID = {
    "explain": "What would have to be different, row by row, for the model to answer otherwise: close, plausible, "
    "different rows that obey the constraints.",
    "relax": "Which single constraint, relaxed how far, would give one row more answers.",
    "verify": "Whether answers obey constraints, each checked again from its values.",
}


class _Tools:
    """The tools of one model, each a function from arguments to plain data."""

    def __init__(self, model: Model) -> None:
        self.model, self.reader = model, RowReader(model.schema)
        self.bounds = Settings(models=Path("."))
        self.calls: dict[str, Callable[[Json], Json]] = {
            "explain": self.explain,
            "relax": self.relax,
            "verify": self.verify,
        }

    def schemas(self) -> dict[str, Json]:
        """The JSON Schema of each tool's arguments."""
        question = request_schema(self.model, self.bounds)
        one = {**question["properties"]["rows"], "maxItems": 1}
        return {
            "explain": question,
            "relax": {**question, "properties": {**question["properties"], "rows": one}},
            "verify": claims_schema(self.model, self.bounds),
        }

    def explain(self, given: Json) -> Json:
        question = read_question(given, self.model, self.reader, self.bounds)
        request = question.request.model_copy(update={"target": tuple(question.targets)})
        found = answer(self.model, question.rows.cells, request, verify=question.wish.verify)
        results = results_of(question.rows.ids, found.rows, question.wish)
        return {"settings": settings_of(question.wish, found.bound), "results": results}

    def relax(self, given: Json) -> Json:
        question = read_question(given, self.model, self.reader, self.bounds)
        if len(question.rows.cells) != 1:
            raise QueryError(f"relax takes one row, and {len(question.rows.cells)} were given; ask for each on its own")
        request = question.request.model_copy(update={"target": question.targets[0]})
        rows = pd.DataFrame(question.rows.cells, columns=self.model.schema.names)
        found = explain(self.model, rows, request).relax()
        told = [
            {
                "sentence": one.sentence,
                "found": one.found,
                "constraints": one.constraints.model_dump(mode="json", exclude_defaults=True),
                "confidence": one.confidence,
            }
            for one in found
        ]
        return {"relaxations": told}

    def verify(self, given: Json) -> Json:
        claims = read_claims(orjson.dumps(given), self.reader, self.bounds)
        found = verdicts(self.model, claims.rows.cells, claims.answers, claims.places, claims.request)
        return {"holds": all(one["holds"] for one in found), "verdicts": found}


def server_of(model: Model) -> Server[Any]:
    """A server that offers a model's tools, for any transport.

    Parameters
    ----------
    model : Model
        What `explainer.model_` is.

    Returns
    -------
    mcp.server.lowlevel.Server
    """
    tools = _Tools(model)

    async def listed(*_: Any) -> ListToolsResult:
        schemas = tools.schemas().items()
        return ListToolsResult(
            tools=[Tool(name=name, description=SAID[name], input_schema=one) for name, one in schemas]
        )

    async def called(_: Any, params: Any) -> CallToolResult:
        try:
            if params.name not in tools.calls:
                raise QueryError(f"tool {params.name!r} is unknown; there are {', '.join(tools.calls)}")
            found = await asyncio.to_thread(tools.calls[params.name], dict(params.arguments or {}))
        except UserError as error:
            return _refused(error)
        except Exception as error:
            return _refused(of_error(error))
        told = jsonable(found)
        text = TextContent(type="text", text=orjson.dumps(told).decode())
        return CallToolResult(content=[text], structured_content=told)

    return Server("dicoflex", version=version("dicoflex"), on_list_tools=listed, on_call_tool=called)


def _refused(error: Exception) -> CallToolResult:
    """What is wrong with a call, for the caller to mend."""
    return CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)


def serve_tools(model: Model) -> None:
    """Offer a model's tools on standard input and output until the input ends."""

    async def run() -> None:
        server = server_of(model)
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    asyncio.run(run())
