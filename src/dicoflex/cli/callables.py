"""Models and checks that are named on the command line: `module:name`, from a Python module of the user's own."""

from __future__ import annotations

__all__ = ["CALLABLE", "named_callable", "named_object"]

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dicoflex.errors import SettingError, named

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
