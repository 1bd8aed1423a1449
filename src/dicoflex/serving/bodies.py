"""Bodies of requests: of the type that is read, and no larger than is meant."""

from __future__ import annotations

__all__ = ["JSON", "LINES", "deadline_of", "read_body"]

from starlette.requests import ClientDisconnect, Request

from dicoflex.serving.problems import Problem

JSON = ("application/json",)
LINES = ("application/jsonl", "application/x-ndjson", "application/json-lines")
DRAINED = 4
"""How many times the most that is read is taken from a caller who sends too much, so that the answer reaches them."""


async def read_body(request: Request, types: tuple[str, ...], *, most: int) -> bytes:
    """The whole body; another type than `types`, or more than `most` bytes, is a `Problem`."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given not in types:
        raise Problem("unsupported-media-type", f"send {types[0]}, got {given or 'no type'}")
    body = bytearray()
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= most:
                body += chunk
            elif size > DRAINED * most:
                break
    except ClientDisconnect:
        raise Problem("bad-request", "the body broke off") from None
    if size > most:
        raise Problem("too-large", f"the body has more than {most} bytes; send fewer rows at a time")
    return bytes(body)


def deadline_of(request: Request, most: float) -> float:
    """How many seconds a request may take: the server's limit, or less where the caller asks for less."""
    given = request.headers.get("x-timeout")
    if given is None:
        return most
    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise Problem("bad-request", "X-Timeout must be a number of seconds above 0")
    return min(most, seconds)
