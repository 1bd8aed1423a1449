"""Bodies that are meant to do harm."""

from __future__ import annotations

__all__ = ["bodies_of"]

import json
from typing import Any


def bodies_of(good: dict[str, Any]) -> list[bytes]:
    """Fifty bodies and more, made of a good one: no JSON, deep, long, of other types, and beyond all limits."""
    own = good["rows"][0]["values"]
    names = list(own)
    number = next(name for name, value in own.items() if isinstance(value, int | float) and not isinstance(value, bool))
    texts = [
        "",
        "{",
        "[",
        "null",
        "1",
        '"x"',
        "[]",
        "{}",
        '{"rows":}',
        "\x00",
        "\ufffe",
        "[" * 100_000,
        '{"a":' * 20_000,
    ]
    texts += ["[" * 900 + "]" * 900, '{"rows": NaN}', '{"rows": [Infinity]}', '{"rows": [1e400]}', "1" * 100_000]
    found = [text.encode("utf-8", "surrogatepass") for text in texts] + [b"\xff\xfe", b"\x80" * 1000]
    strange: list[Any] = [
        "x" * 1_000_000,
        [],
        {},
        [[[]]],
        "NaN",
        True,
        1e308,
        -1e308,
        10**18,
        "' OR 1=1",
        "\u202e",
    ]
    found += [_json({**good, "rows": [{"values": {**own, number: value}}]}) for value in strange]
    rules = [
        "(" * 1900,
        "x" * 1999,
        "a < b < c",
        "__import__('os').system('true')",
        "1/0",
        "age ** 9999 > 1",
        "'" * 99,
    ]
    found += [_json({**good, "constraints": {"rules": [rule]}}) for rule in rules]
    wishes: list[dict[str, Any]] = [
        {"n": 10**9}, {"n": -1}, {"n": 1.5}, {"p": -1}, {"seed": -1}, {"seed": 2**70},
        {"constraints": {"rules": ["a > 1"] * 10_000}}, {"constraints": {"ranges": {number: [2, 1]}}},
        {"constraints": {"allowed": {names[0]: list(range(100_000))}}}, {"frozen": names}, {"frozen": ["x" * 100_000]},
        {"target": {"a": 1}}, {"confidence": 2}, {"rows": good["rows"] * 5_000}, {"unknown": "x" * 100_000},
        {"rows": [{"values": {f"f{i}": 1 for i in range(20_000)}}]}, {"rows": [[]] * 900},
        {"rows": [{"values": {**own, number: None}}], "handle_unknown": "error"},
    ]  # fmt: skip
    return found + [_json({**good, **wish}) for wish in wishes]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
