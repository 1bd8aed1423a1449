"""What is wrong with a request, as problem details (RFC 9457): one shape for every error."""

from __future__ import annotations

__all__ = ["MEDIA_TYPE", "MOST_ERRORS", "PROBLEMS", "Problem", "of_error"]

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from dicoflex.errors import ConfidenceError, ConstraintError, UserError

MEDIA_TYPE = "application/problem+json"
LONGEST_DETAIL, LONGEST_ERROR, MOST_ERRORS = 500, 200, 10


class Sort(NamedTuple):
    """A sort of problem: its status, and its title."""

    status: int
    title: str


PROBLEMS = {
    "malformed-json": Sort(400, "The body is no JSON"),
    "bad-request": Sort(400, "The request can't be read"),
    "unauthorised": Sort(401, "A key is needed"),
    "forbidden": Sort(403, "The key is not for this"),
    "unknown-model": Sort(404, "There is no such model"),
    "not-found": Sort(404, "There is nothing here"),
    "method-not-allowed": Sort(405, "This can't be done here"),
    "model-changed": Sort(409, "The model was replaced"),
    "too-large": Sort(413, "This is more than one request may ask for"),
    "unsupported-media-type": Sort(415, "The body is of another type than is read here"),
    "invalid-request": Sort(422, "The request does not fit"),
    "invalid-rows": Sort(422, "The rows don't fit the model"),
    "invalid-constraints": Sort(422, "The constraints don't fit"),
    "invalid-confidence": Sort(422, "The confidence can't be asked for"),
    "overloaded": Sort(429, "Too many requests wait"),
    "internal": Sort(500, "Something is wrong with the server"),
    "not-ready": Sort(503, "The server is not ready"),
    "not-recorded": Sort(503, "The answer can't be recorded"),
    "draining": Sort(503, "The server is about to stop"),
    "deadline": Sort(504, "The time was up"),
}


class Problem(Exception):  # noqa: N818
    """Something is wrong with a request, or with the server at the moment; `code` is a name of `PROBLEMS`.

    more: what else its JSON says.

    >>> Problem("unknown-model", "model 'x' is unknown").status
    404
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        errors: Iterable[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.code, self.detail = code, detail
        self.status, self.title = PROBLEMS[code]
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.more = {name: value for name, value in (more or {}).items() if value is not None}

    def body(self, request_id: str) -> bytes:
        """The JSON of the problem; nothing that a caller sent makes it long."""
        found: dict[str, Any] = {
            "type": f"urn:dicoflex:problem:{self.code}",
            "title": self.title,
            "status": self.status,
            "detail": _cut(self.detail or self.title, LONGEST_DETAIL),
            "code": self.code,
            "request_id": request_id,
            **self.more,
        }
        if self.errors:
            found["errors"] = [
                {"pointer": _cut(pointer, LONGEST_ERROR), "detail": _cut(detail, LONGEST_ERROR)}
                for pointer, detail in self.errors[:MOST_ERRORS]
            ]
        return orjson.dumps(found)


def of_error(error: Exception) -> Problem:
    """The problem that an error of the library or of pydantic tells of; what is no caller's fault is internal."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ValidationError):
        return _invalid(error)
    if not isinstance(error, UserError):
        return Problem("internal", "the log has more under this request's id")
    code = "invalid-constraints" if isinstance(error, ConstraintError) else "invalid-request"
    code = "invalid-confidence" if isinstance(error, ConfidenceError) else code
    return Problem(code, _readable(str(error)))


def _invalid(error: ValidationError) -> Problem:
    entries = error.errors(include_url=False, include_context=False, include_input=False)
    errors = [("/" + "/".join(map(str, entry["loc"])), _readable(entry["msg"])) for entry in entries]
    code = "invalid-constraints" if entries[0]["loc"][:1] == ("constraints",) else "invalid-request"
    return Problem(code, f"{errors[0][0]}: {errors[0][1]}", errors=errors)


def _readable(text: str) -> str:
    """Text that any JSON can hold, whatever halves of characters a caller sent."""
    return text.encode("utf-8", "replace").decode()


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
