"""Relations between features as text: a small expression language that is parsed by hand and never run as code.

A rule is a condition on one row:

    duration_late <= duration_total
    if married == 'yes' then household >= 2
    20 <= hours <= 50 and housing in ['own', 'rent']
    `capital gain` + 2 * bonus >= 100 or tenure is not missing

Values are numbers, text in single or double quotes (a quote inside is doubled), `true` and `false`, names of features,
and `+ - * /` of numbers. A name that is no plain word, or a word of the language, stands in backticks (a backtick
inside is doubled). Conditions are `< <= > >= == !=` (which may be chained), `in` and `not in` with a list of literals,
`is missing`, `is not missing`, and `and`, `or`, `not`, `if A then B` of conditions. Precedence is Python's; `if`
binds least.

What a rule means:

- A comparison or `in` that touches a missing value is false, and so is one that divides by zero or whose arithmetic
  has no result; `not` flips it as any other.
- Numbers compare with numbers. Levels compare for equality, by value: the level 1 equals the literal 1. Booleans
  compare for equality with true and false, and with 1 and 0.
- An ordinal also compares by `< <= > >=` with one of its levels, by the order of its levels.
- `if A then B` is `not A or B`.
"""

from __future__ import annotations

__all__ = [
    "And",
    "Arithmetic",
    "Comparison",
    "Member",
    "Missing",
    "Name",
    "Node",
    "Not",
    "Number",
    "Or",
    "Rule",
    "Text",
    "Truth",
    "check_kinds",
    "check_names",
    "evaluate",
    "is_missing",
    "names",
    "parse",
    "resolve",
]

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dicoflex.errors import RuleError, named

MAX_LENGTH = 2000
MAX_DEPTH = 50  # of the tree, so that no walk over it comes near Python's recursion limit
MAX_NESTING = 2 * MAX_DEPTH  # of the text: a node's canonical text opens at most two brackets or prefixes

# -- the tree ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number:
    """A literal number."""

    value: float


@dataclass(frozen=True)
class Text:
    """A literal text."""

    value: str


@dataclass(frozen=True)
class Truth:
    """The literal true or false."""

    value: bool


@dataclass(frozen=True)
class Name:
    """The value of a feature."""

    name: str


@dataclass(frozen=True)
class Arithmetic:
    """`left op right` of numbers, op one of + - * /."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Comparison:
    """`left op right`, op one of < <= > >= == !=."""

    op: str
    left: Value
    right: Value


@dataclass(frozen=True)
class Member:
    """Whether the item equals one of the literals."""

    item: Value
    values: tuple[Literal, ...]


@dataclass(frozen=True)
class Missing:
    """Whether the feature has no value."""

    name: Name


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """At least one part holds."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Condition


Literal = Number | Text | Truth
Value = Number | Text | Truth | Name | Arithmetic
Condition = Comparison | Member | Missing | And | Or | Not
Node = Value | Condition


@dataclass(frozen=True)
class Rule:
    """A rule as it was written, and its tree; `str` gives canonical text that parses to an equal tree.

    >>> str(parse("20<=hours<=50"))
    '20 <= hours and hours <= 50'
    """

    text: str
    tree: Condition

    def __str__(self) -> str:
        return _written(self.tree, IF)


# -- reading -----------------------------------------------------------------------------------------------------

IF, OR, AND, NOT, COMPARE, SUM, PRODUCT, SIGN = range(8)  # how tightly each construct binds
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
POWERS = {
    "or": OR,
    "and": AND,
    "in": COMPARE,
    "is": COMPARE,
    "+": SUM,
    "-": SUM,
    "*": PRODUCT,
    "/": PRODUCT,
} | dict.fromkeys(COMPARISONS, COMPARE)
TRUTHS = {"true": True, "false": False, "True": True, "False": False}
WORDS = {"and", "or", "not", "in", "is", "if", "then", "missing", *TRUTHS}
SPACE = re.compile(r"\s*")
WORD = re.compile(r"[^\W\d]\w*")
TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|==|!=|[<>+\-*/()\[\],])""",
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


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


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
    if len(text) > MAX_LENGTH:
        raise RuleError(f"rule {_short(text)}: {len(text)} characters, more than {MAX_LENGTH}; split it into several")
    rule = Rule(text.strip(), _Parser(text).rule())
    if len(str(rule)) > MAX_LENGTH:
        raise RuleError(
            f"rule {_short(text)}: more than {MAX_LENGTH} characters when written in full; split it into several"
        )
    return rule


class _Parser:
    """A precedence-climbing parser; `level` counts what is open, so that recursion is bounded."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = self._tokens()
        self.i = 0
        self.level = 0

    def rule(self) -> Condition:
        part = self.expression(IF)
        if self.peek.kind != "end":
            raise self.expected("an operator or the end")
        return self.condition(part)

    # -- tokens --------------------------------------------------------------------------------------------------

    def _tokens(self) -> list[_Token]:
        tokens: list[_Token] = []
        at = 0
        while True:
            space = SPACE.match(self.text, at)
            at = space.end() if space else at
            if at == len(self.text):
                return [*tokens, _Token("end", "", at)]
            found = TOKEN.match(self.text, at)
            if found is None:
                sign = self.text[at]
                raise self.error(at, UNKNOWN.get(sign, f"{sign!r} is unknown here; names with it go in backticks"))
            kind = str(found.lastgroup)
            tokens.append(_Token("sign" if found[0] in WORDS else kind, found[0], at))
            at = found.end()

    @property
    def peek(self) -> _Token:
        return self.tokens[self.i]

    def next(self) -> _Token:
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
        return RuleError(f"rule {_short(self.text)}: at character {at + 1}: {problem}")

    def expected(self, what: str) -> RuleError:
        token = self.peek
        found = "the end" if token.kind == "end" else token.text if token.kind == "text" else repr(token.text)
        hint = "; 'if' goes in parentheses here" if token == ("sign", "if", token.at) else ""
        return self.error(token.at, f"expected {what}, found {found}{hint}")

    def value(self, part: _Part) -> Value:
        if isinstance(part.node, Condition):
            raise self.error(part.at, "expected a value, found a condition")
        return part.node

    def condition(self, part: _Part) -> Condition:
        if not isinstance(part.node, Condition):
            found = _short(_written(part.node, SUM))
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
        negated = self.part(Not(self.condition(given)), at, given)
        return self.part(Or((Not(self.condition(given)), self.condition(then))), at, negated, then)

    def prefix(self) -> _Part:
        token = self.peek
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
        if not isinstance(left.node, Name):
            raise self.error(left.at, "expected the name of a feature before 'is'")
        negated = self.take("not")
        self.need("missing")
        found = self.part(Missing(left.node), left.at, left)
        return self.part(Not(self.condition(found)), left.at, found) if negated else found


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


# -- writing -----------------------------------------------------------------------------------------------------


def _written(node: Node, power: int) -> str:
    """Canonical text of `node`, in parentheses where it binds less tightly than `power`."""
    own, text = _phrase(node)
    return text if own >= power else f"({text})"


def _phrase(node: Node) -> tuple[int, str]:
    """How tightly the canonical text of `node` binds, and the text."""
    match node:
        case Arithmetic(op, left, right):
            own = POWERS[op]
            return own, f"{_written(left, own)} {op} {_written(right, own + 1)}"
        case Comparison(op, left, right):
            return COMPARE, f"{_written(left, SUM)} {op} {_written(right, SUM)}"
        case Member(item, values):
            return COMPARE, f"{_written(item, SUM)} in {_list(values)}"
        case Missing(name):
            return COMPARE, f"{_atom(name)} is missing"
        case Not(Member(item, values)):
            return COMPARE, f"{_written(item, SUM)} not in {_list(values)}"
        case Not(Missing(name)):
            return COMPARE, f"{_atom(name)} is not missing"
        case Not(part):
            return NOT, f"not {_written(part, NOT)}"
        case And(parts):
            return AND, " and ".join(_written(part, NOT) for part in parts)
        case Or((Not(given), then)):
            return IF, f"if {_written(given, OR)} then {_written(then, IF)}"
        case Or(parts):
            return OR, " or ".join(_written(part, AND) for part in parts)
        case _:
            return SIGN, _atom(node)


def _list(values: tuple[Literal, ...]) -> str:
    return f"[{', '.join(_atom(value) for value in values)}]"


def _atom(node: Literal | Name) -> str:
    match node:
        case Truth(value):
            return "true" if value else "false"
        case Number(value):
            return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)
        case Text(value):
            return "'" + value.replace("'", "''") + "'"
        case Name(name):
            return name if _is_bare(name) else "`" + name.replace("`", "``") + "`"


def _is_bare(name: str) -> bool:
    return WORD.fullmatch(name) is not None and name not in WORDS


# -- names and kinds ---------------------------------------------------------------------------------------------


def names(rule: Rule) -> tuple[str, ...]:
    """The features that the rule names, each once, in order of appearance.

    >>> names(parse("if a > b then b > c"))
    ('a', 'b', 'c')
    """
    return tuple(dict.fromkeys(node.name for node in _walk(rule.tree) if isinstance(node, Name)))


def resolve(name: str, known: Iterable[Any]) -> Any:
    """The one of `known` that a rule's name means, or None; columns that are numbers are written as text.

    >>> resolve("7", [7, "age"])
    7
    """
    columns = list(known)
    return name if name in columns else {str(column): column for column in columns}.get(name)


def check_names(rule: Rule, known: Iterable[Any]) -> None:
    """Refuse a rule that names a feature which is not among `known`."""
    columns = list(known)
    for name in names(rule):
        if resolve(name, columns) is None:
            # Where `marital-status` lacks its backticks, it reads as a difference.
            meant = [str(c) for c in columns if name in str(c) and not _is_bare(str(c)) and str(c) in rule.text]
            hint = f"a name such as {meant[0]} goes in backticks: `{meant[0]}`" if meant else None
            raise RuleError(f"rule {_short(rule.text)}: {hint or named('feature', name, columns)}")


def check_kinds(rule: Rule, kinds: Mapping[str, str], levels: Mapping[str, Sequence[Any]] | None = None) -> None:
    """Refuse a rule that compares what can't be compared.

    kinds: a rule's name to 'number', 'level', 'ordinal' or 'boolean'.
    levels: the levels of names of kind 'level' and 'ordinal', the latter in their order; literals must be among them.

    >>> check_kinds(parse("age >= 'old'"), {"age": "number"})
    Traceback (most recent call last):
    dicoflex.errors.RuleError: rule "age >= 'old'": compares age, a number, with the text 'old'; write a number
    """
    checker = _Kinds(rule, kinds, levels or {})
    for node in _walk(rule.tree):
        match node:
            case Arithmetic(_, left, right):
                checker.number(left)
                checker.number(right)
            case Comparison(op, left, right) if op in ("==", "!="):
                checker.equality(left, right)
            case Comparison(_, left, right):
                checker.order(left, right)
            case Member(item, values):
                for value in values:
                    checker.equality(item, value)
            case _:
                pass


class _Kinds:
    """What `check_kinds` knows: the kind of every name, and its levels."""

    def __init__(self, rule: Rule, kinds: Mapping[str, str], levels: Mapping[str, Sequence[Any]]) -> None:
        self.rule, self.kinds, self.levels = rule, kinds, levels

    def kind(self, node: Value) -> str:
        match node:
            case Name(name):
                return self.kinds.get(name, "number")
            case Text():
                return "text"
            case Truth():
                return "truth"
            case _:
                return "number"

    def error(self, problem: str) -> RuleError:
        return RuleError(f"rule {_short(self.rule.text)}: {problem}")

    def called(self, node: Value) -> str:
        """The operand as a message names it."""
        text = _written(node, SUM)
        words = {"level": "a category", "ordinal": "an ordinal", "boolean": "a boolean", "number": "a number"}
        if isinstance(node, Name):
            return f"{text}, {words[self.kind(node)]},"
        return f"the text {text}" if isinstance(node, Text) else text

    def number(self, node: Value) -> None:
        if self.kind(node) != "number":
            raise self.error(f"calculates with {self.called(node).rstrip(',')}; only numbers can be calculated with")

    def equality(self, left: Value, right: Value) -> None:
        if self.kind(left) in ("number", "text", "truth") and isinstance(right, Name):
            left, right = right, left
        one, other = self.kind(left), self.kind(right)
        if one in ("level", "ordinal"):
            fine = isinstance(right, Literal) or other in ("level", "ordinal")
        elif one == "boolean":
            fine = other in ("boolean", "truth") or (isinstance(right, Number) and right.value in (0.0, 1.0))
        else:
            fine = one == other
        if not fine:
            raise self.mismatch(left, right)
        if one in ("level", "ordinal") and isinstance(left, Name) and isinstance(right, Literal):
            self.known(left, right)

    def order(self, left: Value, right: Value) -> None:
        for one, other in ((left, right), (right, left)):
            kind = self.kind(one)
            if kind in ("level", "boolean"):
                sort = "a category" if kind == "level" else "a boolean"
                raise self.error(f"{_written(one, SUM)} is {sort} and has no order; use ==, != or in")
            if kind == "ordinal" and isinstance(one, Name):
                if not isinstance(other, Literal):
                    raise self.error(
                        f"{one.name} is an ordinal; compare it by order with one of its levels, not with "
                        f"{self.called(other).rstrip(',')}"
                    )
                return self.known(one, other)
        if (self.kind(left), self.kind(right)) != ("number", "number"):
            raise self.mismatch(left, right)
        return None

    def known(self, name: Name, literal: Literal) -> None:
        """Refuse a literal that is none of the feature's levels."""
        levels = self.levels.get(name.name)
        if levels is not None and not any(_equal(level, literal.value) for level in levels):
            value = literal.value
            value = int(value) if isinstance(value, float) and value.is_integer() else value
            raise self.error(named(f"level of {name.name}:", value, levels))

    def mismatch(self, left: Value, right: Value) -> RuleError:
        remedy = {"number": "write a number", "boolean": "write true or false"}.get(self.kind(left), "use one kind")
        return self.error(f"compares {self.called(left)} with {self.called(right).rstrip(',')}; {remedy}")


def _walk(node: Node) -> Iterator[Node]:
    """Every node of the tree, from left to right."""
    yield node
    match node:
        case Arithmetic(_, left, right) | Comparison(_, left, right):
            inside: tuple[Node, ...] = (left, right)
        case Member(item):
            inside = (item,)
        case Missing(name):
            inside = (name,)
        case And(parts) | Or(parts):
            inside = parts
        case Not(part):
            inside = (part,)
        case _:
            inside = ()
    for child in inside:
        yield from _walk(child)


# -- meaning -----------------------------------------------------------------------------------------------------

ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def is_missing(value: Any) -> bool:
    """Whether `value` is None, NaN, NaT or NA."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # NA is neither equal nor unequal to itself
        return True


def evaluate(rule: Rule, row: Mapping[Any, Any], *, orders: Mapping[str, Sequence[Any]] | None = None) -> bool:
    """Whether the rule holds on `row`, by name; `orders` gives the levels of ordinals, lowest first.

    >>> evaluate(parse("loan / income <= 4"), {"loan": 100, "income": 30})
    True
    >>> evaluate(parse("grade >= 'b'"), {"grade": "a"}, orders={"grade": ["c", "b", "a"]})
    True
    """
    return _Row(rule, row, orders or {}).holds(rule.tree)


class _Row:
    """One row under one rule."""

    def __init__(self, rule: Rule, row: Mapping[Any, Any], orders: Mapping[str, Sequence[Any]]) -> None:
        self.rule, self.row, self.orders = rule, row, orders

    def holds(self, node: Condition) -> bool:
        match node:
            case Comparison(op, left, right):
                return self.compared(op, left, right)
            case Member(item, values):
                found = self.value(item)
                return not is_missing(found) and any(_equal(found, value.value) for value in values)
            case Missing(name):
                return is_missing(self.value(name))
            case And(parts):
                return all(self.holds(part) for part in parts)
            case Or(parts):
                return any(self.holds(part) for part in parts)
            case Not(part):
                return not self.holds(part)

    def value(self, node: Value) -> Any:
        """A plain value, or None where it is missing or has no result."""
        match node:
            case Name(name):
                column = name if name in self.row else resolve(name, self.row)
                if column is None:
                    raise RuleError(f"rule {_short(self.rule.text)}: {named('feature', name, self.row)}")
                found = self.row[column]
                return None if is_missing(found) else found
            case Arithmetic(op, left, right):
                return self.calculated(op, self.value(left), self.value(right))
            case _:
                return node.value

    def calculated(self, op: str, left: Any, right: Any) -> float | None:
        if left is None or right is None or (op == "/" and right == 0):
            return None
        if isinstance(left, str) or isinstance(right, str):
            raise RuleError(f"rule {_short(self.rule.text)}: calculates with text; only numbers can be calculated with")
        return ARITHMETIC[op](float(left), float(right))

    def compared(self, op: str, left: Value, right: Value) -> bool:
        one, other = self.value(left), self.value(right)
        if is_missing(one) or is_missing(other):
            return False
        if op in ("==", "!="):
            return _equal(one, other) == (op == "==")
        order = next(
            (self.orders[n.name] for n in (left, right) if isinstance(n, Name) and n.name in self.orders), None
        )
        if order is not None:
            one, other = self.place(one, order), self.place(other, order)
        if isinstance(one, str) or isinstance(other, str):
            raise RuleError(f"rule {_short(self.rule.text)}: text has no order; use ==, != or in")
        return bool(COMPARISONS[op](one, other))

    def place(self, level: Any, order: Sequence[Any]) -> int:
        for i, known in enumerate(order):
            if _equal(known, level):
                return i
        raise RuleError(f"rule {_short(self.rule.text)}: {named('level', level, order)}")


def _equal(one: Any, other: Any) -> bool:
    """Equality of two values that are there; text never equals a number."""
    return isinstance(one, str) == isinstance(other, str) and bool(one == other)
