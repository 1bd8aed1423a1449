"""Text of rules to tokens, and tokens to trees, by hand: never run as code."""

from __future__ import annotations

__all__ = ["parse", "parse_value", "short"]

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from dicoflex.constraints.rules.tree import (
    CALLED,
    COMPARE,
    COMPARISONS,
    IF,
    NOT,
    OR,
    POWERS,
    SIGN,
    SUM,
    TRUTHS,
    WORDS,
    And,
    Arithmetic,
    Changed,
    Choice,
    Comparison,
    Condition,
    Expression,
    Literal,
    Member,
    Missing,
    Name,
    Node,
    Not,
    Number,
    Or,
    Rule,
    Text,
    Truth,
    Value,
    Was,
    written,
)
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


MAX_LENGTH = 2000
MOST_KEPT = 512
MAX_DEPTH = 50  # of the tree, so that no walk over it comes near Python's recursion limit
MAX_NESTING = 2 * MAX_DEPTH  # of the text: a node's canonical text opens at most two brackets or prefixes


class _Part(NamedTuple):
    """A parsed piece: its node, where it starts, and how deep its tree is."""

    node: Node
    at: int
    depth: int = 1


def parse(text: str) -> Rule:
    """The rule that `text` states; a `RuleError` says where it can't be read and what was expected there.

    >>> parse("loan <= 4 * income").tree.right
    Arithmetic(op='*', left=Number(value=4.0), right=Name(name='income'))
    >>> parse("a <=")
    Traceback (most recent call last):
    dicoflex.errors.RuleError: rule 'a <=': at character 5: expected a value, found the end
    """
    if not isinstance(text, str):
        raise RuleError(f"a rule must be text such as 'a <= b', got {type(text).__name__}")
    return _parsed(text)


def parse_value(text: str) -> Expression:
    """The value that `text` works out, for a feature that follows from others; a `RuleError` where it can't be read.

    >>> parse_value("if job != was.job then 0 else was.tenure").tree.then
    Number(value=0.0)
    """
    if not isinstance(text, str):
        raise RuleError(f"what a feature follows from must be text such as 'was.age + 1', got {type(text).__name__}")
    return _parsed_value(text)


# Sets of constraints are read, joined and checked several times in one call, and trees don't change.
@lru_cache(maxsize=MOST_KEPT)
def _parsed(text: str) -> Rule:
    _check_length(text)
    rule = Rule(text.strip(), _Parser(text).rule())
    _check_length(text, str(rule))
    return rule


@lru_cache(maxsize=MOST_KEPT)
def _parsed_value(text: str) -> Expression:
    _check_length(text)
    made = Expression(text.strip(), _Parser(text).expressed())
    _check_length(text, str(made))
    return made


def _check_length(text: str, full: str = "") -> None:
    if len(text) > MAX_LENGTH:
        raise RuleError(f"rule {short(text)}: {len(text)} characters, more than {MAX_LENGTH}; split it into several")
    if len(full) > MAX_LENGTH:
        raise RuleError(
            f"rule {short(text)}: more than {MAX_LENGTH} characters when written in full; split it into several"
        )


class _Parser:
    """A precedence-climbing parser; `level` counts what is open, so that recursion is bounded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text, self.error)
        self.i = 0
        self.level = 0

    def rule(self) -> Condition:
        return self.condition(self.whole())

    def expressed(self) -> Value:
        return self.value(self.whole())

    def whole(self) -> _Part:
        part = self.expression(IF)
        if self.peek.kind != "end":
            raise self.expected("an operator or the end")
        return part

    # -- tokens --------------------------------------------------------------------------------------------------

    @property
    def peek(self) -> Token:
        return self.tokens[self.i]

    def next(self) -> Token:
        token = self.tokens[self.i]
        self.i += 1
        return token

    def take(self, *signs: str) -> bool:
        """Whether `signs` come next; they are passed over if so."""
        ahead = self.tokens[self.i : self.i + len(signs)]
        if [token.text for token in ahead if token.kind == "sign"] != list(signs):
            return False
        self.i += len(signs)
        return True

    def need(self, sign: str) -> None:
        if not self.take(sign):
            raise self.expected(repr(sign))

    # -- errors --------------------------------------------------------------------------------------------------

    def error(self, at: int, problem: str) -> RuleError:
        return RuleError(f"rule {short(self.text)}: at character {at + 1}: {problem}")

    def expected(self, what: str) -> RuleError:
        token = self.peek
        found = "the end" if token.kind == "end" else token.text if token.kind == "text" else repr(token.text)
        return self.error(token.at, f"expected {what}, found {found}{self.hint()}")

    def hint(self) -> str:
        """What may be meant by what comes next, where something else was expected."""
        token, before = self.peek, [one.text for one in self.tokens[max(self.i - 3, 0) : self.i]]
        if token == ("sign", "if", token.at):
            return "; 'if' goes in parentheses here"
        if before[-1:] == ["was"] and token.kind in ("word", "name"):
            return f"; what a feature was is written was.{token.text}"
        if before == ["changed", "(", "was"]:
            return "; changed(age) compares with was.age already"
        return ""

    def value(self, part: _Part) -> Value:
        if isinstance(part.node, Condition):
            raise self.error(part.at, "expected a value, found a condition")
        return part.node

    def condition(self, part: _Part) -> Condition:
        if not isinstance(part.node, Condition):
            found = short(written(part.node, SUM))
            raise self.error(part.at, f"expected a condition such as 'a <= b', found the value {found}")
        return part.node

    def part(self, node: Node, at: int, *inside: _Part) -> _Part:
        """`node` over what is inside it, unless that is too deep."""
        depth = 1 + max(child.depth for child in inside)
        if depth > MAX_DEPTH:
            raise self.error(at, f"nested deeper than {MAX_DEPTH}; split the rule into several")
        return _Part(node, at, depth)

    # -- grammar -------------------------------------------------------------------------------------------------

    def expression(self, power: int) -> _Part:
        """What comes next, as far as its operators bind at least as tightly as `power`."""
        left = self.conditional() if power == IF and self.peek == ("sign", "if", self.peek.at) else self.prefix()
        while (own := self.power()) >= power and own > IF:
            left = self.infix(left, own)
        return left

    def power(self) -> int:
        """How tightly the operator that comes next binds; 0 where none does."""
        token = self.peek
        if token.kind != "sign":
            return IF
        if token.text == "not" and self.tokens[self.i + 1].text == "in":
            return COMPARE
        return POWERS.get(token.text, IF)

    def inner(self, power: int) -> _Part:
        """An expression one level further in."""
        self.level += 1
        if self.level > MAX_NESTING:
            raise self.error(self.peek.at, f"nested deeper than {MAX_NESTING}; split the rule into several")
        part = self.expression(power)
        self.level -= 1
        return part

    def conditional(self) -> _Part:
        at = self.next().at
        given = self.inner(OR)
        self.need("then")
        then = self.inner(IF)
        if self.take("else"):
            return self.alternative(at, given, then)
        if not isinstance(then.node, Condition) and self.peek.kind == "end":
            raise self.expected("'else' and another value")
        negated = self.part(Not(self.condition(given)), at, given)
        return self.part(Or((Not(self.condition(given)), self.condition(then))), at, negated, then)

    def alternative(self, at: int, given: _Part, then: _Part) -> _Part:
        """`if A then X else Y`: of two values one, of two conditions the one that A says."""
        other = self.inner(IF)
        if not isinstance(then.node, Condition):
            return self.part(Choice(self.condition(given), self.value(then), self.value(other)), at, given, then, other)
        negated = self.part(Not(self.condition(given)), at, given)
        parts = [
            self.part(Or((Not(self.condition(given)), self.condition(then))), at, negated, then),
            self.part(Or((self.condition(given), self.condition(other))), at, given, other),
        ]
        return self.part(And(tuple(self.condition(part) for part in parts)), at, *parts)

    def prefix(self) -> _Part:
        token = self.peek
        if token.kind == "word" and self.tokens[self.i + 1].text in (".", "("):
            return self.named(token)
        if token.kind in ("number", "text", "name", "word") or token.text in TRUTHS:
            return _Part(self.atom(), token.at)
        if self.take("("):
            part = self.inner(IF)
            self.need(")")
            return part._replace(at=token.at)
        if self.take("not"):
            inside = self.inner(NOT)
            return self.part(Not(self.condition(inside)), token.at, inside)
        if self.take("-"):
            return self.negative(token.at)
        raise self.expected("a value")

    def named(self, token: Token) -> _Part:
        """`was.x`, `changed(x)`, `min(a, b)` and `max(a, b)`."""
        self.next()
        if self.take("."):
            return _Part(Was(self.feature()), token.at)
        if token.text == "changed":
            self.need("(")
            name = self.feature()
            self.need(")")
            return _Part(Changed(name), token.at)
        if token.text not in CALLED:
            raise self.expected("an operator or the end")
        self.need("(")
        left = self.inner(IF)
        self.need(",")
        right = self.inner(IF)
        self.need(")")
        return self.part(Arithmetic(token.text, self.value(left), self.value(right)), token.at, left, right)

    def feature(self) -> str:
        """The name of a feature."""
        if self.peek.kind not in ("name", "word"):
            raise self.expected("the name of a feature")
        node = self.atom()
        assert isinstance(node, Name)
        return node.name

    def negative(self, at: int) -> _Part:
        inside = self.inner(SIGN)
        node = self.value(inside)
        if isinstance(node, Number):
            return _Part(Number(-node.value or 0.0), at)
        return self.part(Arithmetic("-", Number(0.0), node), at, inside)

    def atom(self) -> Value:
        token = self.next()
        if token.kind == "number":
            value = float(token.text)
            if math.isinf(value):
                raise self.error(token.at, "the number is too large")
            return Number(value)
        if token.kind == "text":
            quote = token.text[0]
            return Text(token.text[1:-1].replace(quote * 2, quote))
        if token.kind == "name":
            return Name(token.text[1:-1].replace("``", "`"))
        return Truth(TRUTHS[token.text]) if token.text in TRUTHS else Name(token.text)

    def infix(self, left: _Part, power: int) -> _Part:
        word = self.peek.text
        if word in ("and", "or"):
            return self.junction(left, word, power)
        if word in ("in", "not"):
            return self.membership(left)
        if word == "is":
            return self.missing(left)
        if power == COMPARE:
            return self.chain(left)
        self.next()
        right = self.expression(power + 1)
        return self.part(Arithmetic(word, self.value(left), self.value(right)), left.at, left, right)

    def junction(self, left: _Part, word: str, power: int) -> _Part:
        parts = [left]
        while self.take(word):
            parts.append(self.expression(power + 1))
        conditions = tuple(self.condition(part) for part in parts)
        return self.part(And(conditions) if word == "and" else Or(conditions), left.at, *parts)

    def chain(self, left: _Part) -> _Part:
        """One comparison, or several that hold together."""
        parts, links = [left], []
        while self.peek.kind == "sign" and self.peek.text in COMPARISONS:
            op = self.next().text
            parts.append(self.expression(SUM))
            before, after = (self.value(part) for part in parts[-2:])
            links.append(self.part(Comparison(op, before, after), parts[-2].at, *parts[-2:]))
        if len(links) == 1:
            return links[0]
        return self.part(And(tuple(self.condition(link) for link in links)), left.at, *links)

    def membership(self, left: _Part) -> _Part:
        negated = self.take("not")
        self.need("in")
        self.need("[")
        values = [self.literal()]
        while self.take(","):
            values.append(self.literal())
        self.need("]")
        member = self.part(Member(self.value(left), tuple(values)), left.at, left)
        return self.part(Not(self.condition(member)), left.at, member) if negated else member

    def literal(self) -> Literal:
        negative = self.take("-")
        token = self.peek
        if token.kind != "number" and (negative or not (token.kind == "text" or token.text in TRUTHS)):
            raise self.expected("a number" if negative else "a number, a text, true or false")
        node = self.atom()
        if isinstance(node, Number) and negative:
            return Number(-node.value or 0.0)
        assert isinstance(node, Literal)
        return node

    def missing(self, left: _Part) -> _Part:
        self.need("is")
        if not isinstance(left.node, Name | Was):
            raise self.error(left.at, "expected the name of a feature before 'is'")
        negated = self.take("not")
        self.need("missing")
        found = self.part(Missing(left.node), left.at, left)
        return self.part(Not(self.condition(found)), left.at, found) if negated else found


def short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
