"""Options that several commands share, groups of options, and models named as `module:name`."""

from __future__ import annotations

__all__ = [
    "CALLABLE",
    "Drop",
    "ModelFile",
    "Rows",
    "Seed",
    "named_callable",
    "named_object",
    "of_request",
    "repeated",
    "spread",
]

import importlib
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, make_dataclass
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from dicoflex.errors import SettingError, named
from dicoflex.request import Request

Command = Callable[..., None]


def repeated(flag: str, metavar: str | None, help: str) -> Any:
    """An option that may be given several times."""
    return typer.Option(flag, metavar=metavar, help=f"{help} May be repeated.", show_default=False)


Rows = Annotated[Path, typer.Argument(help="Table of rows: .csv, .csv.gz or .parquet.", show_default=False)]
ModelFile = Annotated[Path, typer.Argument(help="Model file written by 'fit' or save().", show_default=False)]
Drop = Annotated[list[str], repeated("--drop", "NAMES", "Columns to leave out: id,name.")]
Seed = Annotated[int | None, typer.Option(help="The same seed gives the same result.", show_default=False)]


def of_request(names: dict[str, Any], **defaults: Any) -> type[Any]:
    """A dataclass with an option for each of these fields of `Request`, for `spread`: their defaults and descriptions.

    names: by field, the type that the option has on the command line, bool for a switch. defaults: where they differ.

    >>> asked = of_request({"n": int, "novel": bool}, n=5)()
    >>> asked.n, asked.novel
    (5, False)
    """
    made = []
    for name, kind in names.items():
        field = Request.model_fields[name]
        default = defaults.get(name, field.default)
        word = name.replace("_", "-")
        flags = [f"--{word}/--no-{word}"] if kind is bool else [f"--{word}", *([f"-{word}"] if len(word) == 1 else [])]
        option = typer.Option(*flags, help=field.description, show_default=default is not None)
        made.append((name, Annotated[kind, option], default))
    return make_dataclass("Asked", made, frozen=True)


def spread(**groups: type[Any]) -> Callable[[Command], Command]:
    """A command whose arguments named here are dataclasses: on the command line their fields are options of its own.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Where:
    ...     folder: Annotated[str, typer.Option(help="Where to look.")] = "here"
    >>> @spread(where=Where)
    ... def look(name: str, where: Where) -> None:
    ...     print(name, where)
    >>> list(signature(look).parameters)
    ['name', 'folder']
    >>> look(name="x", folder="there")
    x Where(folder='there')
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(**given: Any) -> None:
            made = {name: group(**{f.name: given.pop(f.name) for f in fields(group)}) for name, group in groups.items()}
            command(**given, **made)

        own = signature(command, eval_str=True)
        taken = [p for one in own.parameters.values() for p in _parameters(one, groups)]
        # What reads a command's options looks for them here.
        run.__signature__ = own.replace(parameters=taken)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in taken}
        return run

    return decorate


def _parameters(one: Parameter, groups: dict[str, type[Any]]) -> list[Parameter]:
    """A parameter of a command, or those that the fields of its dataclass make."""
    if one.name not in groups:
        return [one.replace(kind=Parameter.KEYWORD_ONLY)]
    group = groups[one.name]
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[f.name]) for f in fields(group)
    ]


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return Parameter.empty if field.default is MISSING else field.default


CALLABLE = "MODULE:NAME"
"""What an option for a callable takes."""


def named_object(text: str, flag: str) -> Any:
    """The object that `module:name` names; modules are looked for in the present folder, too.

    >>> named_object("math:pi", "--model")
    3.14...
    """
    module, colon, path = text.partition(":")
    if not (module and colon and path):
        raise SettingError(f"{flag} {text!r} must read {CALLABLE}, as in {flag} scoring:predict_proba")
    found = _imported(module, flag)
    for name in path.split("."):
        if not hasattr(found, name):
            public = [known for known in vars(found) if not known.startswith("_")] if hasattr(found, "__dict__") else []
            raise SettingError(f"{flag} {text!r}: {named('name', name, public)}")
        found = getattr(found, name)
    return found


def named_callable(text: str, flag: str) -> Callable[..., Any]:
    """The callable that `module:name` names; of a fitted model, its `predict`."""
    found = named_object(text, flag)
    predict = getattr(found, "predict", None)
    if callable(predict):
        return predict  # type: ignore[no-any-return]
    if not callable(found):
        raise SettingError(
            f"{flag} {text!r} is of type {type(found).__name__}, which can't be called; name a function of a frame, or "
            "a fitted model"
        )
    return found  # type: ignore[no-any-return]


def _imported(module: str, flag: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] and error.name != module:
            raise SettingError(f"{flag}: {module} needs the package {error.name!r}, which is not installed") from error
        raise SettingError(
            f"{flag}: there is no module {module!r}, neither installed nor in {here}; run where {module}.py is"
        ) from error
    except Exception as error:
        raise SettingError(f"{flag}: importing {module!r} failed: {type(error).__name__}: {error}") from error
