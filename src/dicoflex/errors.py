"""The error tree: what a caller can mend stands apart from bugs.

Every `UserError` carries a message that names the thing, the rule, the value found and the remedy. The command
line prints it without a traceback and exits with the class's `exit_code`; any other exception is a bug.
"""

from __future__ import annotations

__all__ = [
    "BlackBoxError",
    "ConfidenceError",
    "ConstraintError",
    "DataError",
    "DiCoFlexError",
    "MissingPackageError",
    "ModelFileError",
    "NotFittedError",
    "QueryError",
    "RuleError",
    "SchemaError",
    "ServerError",
    "SettingError",
    "SignatureError",
    "UnseenError",
    "UserError",
    "named",
]

from collections.abc import Iterable
from difflib import get_close_matches

LONGEST_NAME = 200
LONGEST_MESSAGE = 4000


class DiCoFlexError(Exception):
    """Base of everything that the library raises on purpose."""


class UserError(DiCoFlexError, ValueError):
    """Something in the call can be mended by the caller.

    A message that repeats a value of any length is cut in its middle: how it begins and the remedy at its end stay.
    """

    exit_code = 2

    def __init__(self, *told: object) -> None:
        super().__init__(*(_shortened(one) if isinstance(one, str) else one for one in told))


class DataError(UserError):
    """The rows or labels given to `fit` can't be learned from."""


class SchemaError(UserError):
    """A column can't be described, or a schema does not fit its table."""


class QueryError(UserError):
    """The rows or conditions given to `explain`, `sample` or `log_density` don't fit the model."""


class ConfidenceError(QueryError):
    """A confidence that makes no counterfactual, or that no answer can have."""


class UnseenError(QueryError):
    """A row holds a level, or a missing value, that training never had."""


class ConstraintError(UserError):
    """A set of constraints is malformed, contradicts itself, or does not fit its table."""


class RuleError(ConstraintError):
    """A rule can't be read, or names or compares what it can't."""


class SettingError(UserError):
    """A setting of the explainer is out of its range or unknown."""


class BlackBoxError(UserError):
    """A black-box callable answered with something that can't be used."""


class NotFittedError(UserError, AttributeError):
    """The explainer was used before `fit`; the bases are those of scikit-learn's error of this name."""


class ModelFileError(UserError):
    """A file is not a model file, is damaged, or was written by another version."""

    exit_code = 3


class MissingPackageError(UserError, ModuleNotFoundError):
    """A part of the library needs a package that is not installed."""


class ServerError(UserError):
    """A server refused a question or gave no answer; `status` and `code` are those of its problem."""

    def __init__(self, message: str, *, status: int = 0, code: str = "") -> None:
        super().__init__(message)
        self.status, self.code = status, code


class SignatureError(ModelFileError):
    """A file or a record is not signed, not by whom is trusted, or was altered since."""


def named(thing: str, name: object, known: Iterable[object]) -> str:
    """Say that `name` is no known `thing`, with the nearest spelling or all names.

    >>> named("feature", "agee", ["age", "sex"])
    "feature 'agee' is unknown; did you mean 'age'?"
    """
    names = {str(k): k for k in known}
    # Long texts are hardly misspelt, and comparing them takes long.
    near = get_close_matches(str(name)[:LONGEST_NAME], [k for k in names if len(k) <= LONGEST_NAME], n=1)
    hint = f"did you mean {names[near[0]]!r}?" if near else f"known: {', '.join(map(_cut, list(names)[:20]))}"
    return f"{thing} {_cut(repr(name))} is unknown; {hint}"


def _shortened(message: str) -> str:
    if len(message) <= LONGEST_MESSAGE:
        return message
    half = LONGEST_MESSAGE // 2
    return f"{message[:half]} … {message[-half:]}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"
