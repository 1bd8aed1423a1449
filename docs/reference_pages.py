"""The pages of the reference that follow from the source: public names, the command line, schemas, errors.

python docs/reference_pages.py          writes them into docs/reference/generated, as a build of the site does
"""

from __future__ import annotations

__all__ = ["MODULES", "write"]

import importlib
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MODULES = {
    "dicoflex": "Fit, explain, constrain",
    "dicoflex.plots": "Pictures of a result",
    "dicoflex.metrics": "Measures of counterfactuals from any method",
    "dicoflex.datasets": "Tables to try things with",
    "dicoflex.examples": "Small models to try things with",
    "dicoflex.audit": "Privacy audits of a model",
    "dicoflex.explorer": "The explorer's messages, without a page",
    "dicoflex.models": "Models of other libraries as classifiers of frames",
    "dicoflex.batch": "Millions of rows",
    "dicoflex.lake": "Fits from files",
    "dicoflex.spark": "Spark",
    "dicoflex.mlflow": "MLflow",
    "dicoflex.widget": "The explorer in a notebook",
    "dicoflex.serving": "The server",
    "dicoflex.signatures": "Signatures of model files and records",
    "dicoflex.errors": "Errors",
}
"""What users import from, and what it is for."""

HIDDEN = "model_config, model_post_init, model_fields, model_computed_fields, set_fit_request"
"""What pydantic and scikit-learn add to every class."""


def write(folder: Path) -> None:
    """Write all pages into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{module}.rst": module_page(module) for module in MODULES}
    pages |= {f"{owner}.{name}.rst": class_page(owner, name) for owner, name in own_pages()}
    pages |= {"cli.md": command_page(), "request.md": request_table(), "request.json": request_schema()}
    pages["errors.md"] = error_table()
    for name, text in pages.items():
        path = folder / name
        # An untouched file is not read again by the next build.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


# -- public names ------------------------------------------------------------------------------------------------


def public(module: str) -> list[str]:
    """The public names of a module."""
    return [name for name in importlib.import_module(module).__all__ if not name.startswith("__")]


def own_pages() -> Iterator[tuple[str, str]]:
    """The classes that have a page each."""
    for name in public("dicoflex"):
        if inspect.isclass(getattr(importlib.import_module("dicoflex"), name)):
            yield "dicoflex", name


def module_page(module: str) -> str:
    """A page with every public name of a module; classes of the package itself are on pages of their own."""
    apart = [name for owner, name in own_pages() if owner == module]
    rest = [name for name in public(module) if name not in apart]
    listed = "\n".join(f"   {name}" for name in public(module))
    toctree = "\n".join(f"   {module}.{name}" for name in apart)
    parts = [
        f"{module}\n{'=' * len(module)}",
        f"{MODULES[module]}.",
        f".. py:module:: {module}",
        f".. autosummary::\n   :nosignatures:\n\n{listed}",
        *([f".. toctree::\n   :hidden:\n\n{toctree}"] if apart else []),
        *(entry(module, name) for name in rest),
    ]
    return "\n\n".join(parts) + "\n"


def class_page(module: str, name: str) -> str:
    """The page of one class."""
    return f"{name}\n{'=' * len(name)}\n\n{entry(module, name)}\n"


def entry(module: str, name: str) -> str:
    """The directive that takes a name's documentation from its docstring."""
    thing = getattr(importlib.import_module(module), name)
    if inspect.isclass(thing):
        kind = "autoexception" if issubclass(thing, BaseException) else "autoclass"
        return f".. {kind}:: {module}.{name}\n   :members:\n   :show-inheritance:\n   :exclude-members: {HIDDEN}"
    return f".. {'autofunction' if callable(thing) else 'autodata'}:: {module}.{name}"


def as_rst(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Docstrings as Sphinx reads them: names that end in `_` and bars are text, an indented block is a literal one."""
    fresh: list[str] = []
    for line in lines:
        if line.startswith("    ") and fresh[-1:] == [""] and len(fresh) > 1 and fresh[-2][:1].strip():
            fresh += ["::", ""]
        fresh.append(line if line.lstrip().startswith((">>>", "...", "    ")) or "``" in line else _escaped(line))
    lines[:] = fresh


def _escaped(line: str) -> str:
    return re.sub(r"(\w)_(?!\w)", r"\1\_", line.replace("|", "\\|"))


# -- the command line --------------------------------------------------------------------------------------------


def command_page() -> str:
    """Every command with its options, from the application itself."""
    import typer
    from typer.cli import get_docs_for_click

    from dicoflex.cli.entry import app

    command = typer.main.get_command(app)
    context = command.make_context("dicoflex", ["--help"], resilient_parsing=True)
    text = get_docs_for_click(obj=command, ctx=context, name="dicoflex", title="Commands")
    return text.replace("\n# Commands\n", "\n").removeprefix("# Commands\n")


# -- requests ----------------------------------------------------------------------------------------------------


def request_schema() -> str:
    """The JSON Schema of a request."""
    from dicoflex import Request

    return json.dumps(Request.model_json_schema(), indent=2) + "\n"


def request_table() -> str:
    """The fields of a request, with defaults and descriptions."""
    from dicoflex import Request

    lines = ["| field | default | meaning |", "|---|---|---|"]
    for name, field in Request.model_fields.items():
        default = "" if field.is_required() else _default(field.get_default(call_default_factory=True))
        lines.append(f"| `{field.alias or name}` | {default} | {field.description or ''} |")
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    from pydantic import BaseModel

    return "none" if isinstance(value, BaseModel) or value is None or value == () else f"`{json.dumps(value)}`"


# -- errors ------------------------------------------------------------------------------------------------------


def error_table() -> str:
    """Every error with what it is raised for and the exit code of the command line."""
    from dicoflex import errors

    lines = []
    for name in public("dicoflex.errors"):
        thing = getattr(errors, name)
        if inspect.isclass(thing) and issubclass(thing, errors.UserError):
            said = textwrap.dedent(inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
            lines.append(f"| `{name}` | {said} | {thing.exit_code} |")
    return "\n".join(["| error | raised when | exit code |", "|---|---|---|", *lines]) + "\n"


if __name__ == "__main__":
    write(Path(__file__).resolve().parent / "reference" / "generated")
