"""The command that serves models."""

from __future__ import annotations

__all__ = ["COMMANDS"]

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from dicoflex.cli.options import spread
from dicoflex.errors import SettingError

Folder = Annotated[Path, typer.Argument(help="Folder of model files (*.dicoflex), or one of them.", show_default=False)]


def _flag(help: str, *names: str, variable: str) -> Any:
    """An option that the environment may give too."""
    return typer.Option(*names, help=help, envvar=f"DICOFLEX_{variable}", show_envvar=False)


@dataclass
class ServerFlags:
    """How to serve; the names are those of `Settings`."""

    host: Annotated[str, _flag("Address to listen on.", variable="HOST")] = "127.0.0.1"
    port: Annotated[int, _flag("Port; 0 takes a free one.", variable="PORT")] = 8000
    metrics_port: Annotated[
        int | None, _flag("Port of their own for the metrics, which need no key there.", variable="METRICS_PORT")
    ] = None
    workers: Annotated[int, _flag("Processes.", variable="WORKERS")] = 1
    keys: Annotated[Path | None, _flag("File of keys: a name and a SHA-256 per line.", variable="KEYS")] = None
    open: Annotated[bool, _flag("Listen on another address without keys.", "--open", variable="OPEN")] = False
    trust: Annotated[Path | None, _flag("Public key that models are signed with.", variable="TRUST")] = None
    audit: Annotated[Path | None, _flag("Folder for the audit log.", variable="AUDIT")] = None
    audit_values: Annotated[
        bool, _flag("Keep rows and answers in the log.", "--audit-values", variable="AUDIT_VALUES")
    ] = False
    audit_key: Annotated[Path | None, _flag("Private key to sign the log with.", variable="AUDIT_KEY")] = None
    origins: Annotated[list[str], _flag("Site whose pages may ask.", "--origin", variable="ORIGIN")] = field(
        default_factory=list
    )
    hosts: Annotated[list[str], _flag("Name that the server goes by.", "--host-name", variable="HOST_NAME")] = field(
        default_factory=list
    )
    max_rows: Annotated[int, _flag("Rows of one request at most.", variable="MAX_ROWS")] = 1_000
    max_seconds: Annotated[float, _flag("Seconds that a request may take.", variable="MAX_SECONDS")] = 10.0
    max_waiting: Annotated[int, _flag("Requests that may wait.", variable="MAX_WAITING")] = 256
    max_body: Annotated[int, _flag("Bytes of a body at most.", variable="MAX_BODY")] = 2_000_000
    drain_seconds: Annotated[float, _flag("Seconds to go on when told to end.", variable="DRAIN_SECONDS")] = 1.0
    poll_seconds: Annotated[float, _flag("Seconds between looks at the folder.", variable="POLL_SECONDS")] = 2.0
    gather: Annotated[bool, _flag("Answer together who waits.", "--gather/--no-gather", variable="GATHER")] = True


@spread(flags=ServerFlags)
def serve(models: Folder, flags: Any) -> None:
    """Serve models over HTTP: typed questions and answers; see docs/how-to/serving.md."""
    from pydantic import ValidationError

    from dicoflex.serving import Settings
    from dicoflex.serving import serve as run

    given = asdict(flags)
    try:
        settings = Settings(models=models, **{**given, "hosts": given["hosts"] or None})
    except ValidationError as error:
        first = error.errors()[0]
        where, why = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise SettingError(f"{where}: {why}" if where else why) from None
    run(settings)


def mcp(
    model: Annotated[Path, typer.Argument(help="Model file.", show_default=False)],
    trust: Annotated[Path | None, typer.Option(help="Public key that the model is signed with.")] = None,
) -> None:
    """Offer explain, relax and verify as tools of the Model Context Protocol, on standard input and output."""
    from dicoflex.model import Model
    from dicoflex.serving.tools import serve_tools

    serve_tools(Model.load(model, trust=trust))


COMMANDS = (serve, mcp)
