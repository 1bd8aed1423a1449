"""Text to tokens: numbers, texts, names, words and signs, each with its place."""

from __future__ import annotations

__all__ = ["Token", "tokens_of"]

import re
from collections.abc import Callable
from typing import NamedTuple

from dicoflex.constraints.rules.tree import WORDS
from dicoflex.errors import RuleError

SPACE = re.compile(r"\s*")
TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|==|!=|[<>+\-*/()\[\],.])""",
    re.VERBOSE,
)
UNKNOWN = {
    "'": "the text that starts here is not closed; end it with '",
    '"': 'the text that starts here is not closed; end it with "',
    "`": "the name that starts here is empty or not closed; end it with `",
    "=": "'=' is no comparison; write '=='",
    "!": "'!' is unknown; write 'not', or '!=' for unequal",
    "&": "'&' is unknown; write 'and'",
    "|": "'|' is unknown; write 'or'",
}


class Token(NamedTuple):
    """A piece of text: what it is, and where it stands."""

    kind: str
    text: str
    at: int


def tokens_of(text: str, error: Callable[[int, str], RuleError]) -> list[Token]:
    """The tokens of a text, with one for its end; `error` makes what is raised of a place and a problem."""
    tokens: list[Token] = []
    at = 0
    while True:
        space = SPACE.match(text, at)
        at = space.end() if space else at
        if at == len(text):
            return [*tokens, Token("end", "", at)]
        found = TOKEN.match(text, at)
        if found is None or (found[0] == "." and not (tokens and tokens[-1][:2] == ("word", "was"))):
            sign = text[at]
            raise error(at, UNKNOWN.get(sign, f"{sign!r} is unknown here; names with it go in backticks"))
        kind = str(found.lastgroup)
        tokens.append(Token("sign" if found[0] in WORDS else kind, found[0], at))
        at = found.end()
