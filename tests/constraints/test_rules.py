"""The rule language: its trees, its canonical text, its errors, its meaning, and inputs at random."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicoflex import DiCoFlex
from dicoflex.constraints.rules import parser
from dicoflex.constraints.rules.kinds import check_kinds, check_names, check_result, resolve
from dicoflex.constraints.rules.meaning import evaluate, worked_out
from dicoflex.constraints.rules.parser import parse, parse_value
from dicoflex.constraints.rules.tree import (
    And,
    Arithmetic,
    Changed,
    Choice,
    Comparison,
    Member,
    Missing,
    Name,
    Not,
    Number,
    Or,
    Rule,
    Text,
    Truth,
    Was,
    names,
)
from dicoflex.errors import ConstraintError, RuleError
from dicoflex.values import is_missing

A, B, C = Name("a"), Name("b"), Name("c")
ONE, TWO = Number(1.0), Number(2.0)
A_LESS_B, C_IS_1 = Comparison("<", A, B), Comparison("==", C, ONE)

# -- reading -----------------------------------------------------------------------------------------------------

TREES: dict[str, Any] = {
    "a <= b": Comparison("<=", A, B),
    " a<=b\n": Comparison("<=", A, B),
    "a != 'x y'": Comparison("!=", A, Text("x y")),
    'a == "it\'s"': Comparison("==", A, Text("it's")),
    "a == 'it''s'": Comparison("==", A, Text("it's")),
    "a == true": Comparison("==", A, Truth(True)),
    "a == False": Comparison("==", A, Truth(False)),
    "a >= -1.5e3": Comparison(">=", A, Number(-1500.0)),
    "a > .5": Comparison(">", A, Number(0.5)),
    "a > -(-(2))": Comparison(">", A, TWO),
    "-a < 1": Comparison("<", Arithmetic("-", Number(0.0), A), ONE),
    "`capital gain` + 2 * b >= 100": Comparison(
        ">=", Arithmetic("+", Name("capital gain"), Arithmetic("*", TWO, B)), Number(100.0)
    ),
    "`a``b` == `if`": Comparison("==", Name("a`b"), Name("if")),
    "größe < b": Comparison("<", Name("größe"), B),
    "1 - a - b < c": Comparison("<", Arithmetic("-", Arithmetic("-", ONE, A), B), C),
    "1 - (a - b) < c": Comparison("<", Arithmetic("-", ONE, Arithmetic("-", A, B)), C),
    "a / b * c < 1": Comparison("<", Arithmetic("*", Arithmetic("/", A, B), C), ONE),
    "-a * b < 1": Comparison("<", Arithmetic("*", Arithmetic("-", Number(0.0), A), B), ONE),
    "1 <= a <= 2": And((Comparison("<=", ONE, A), Comparison("<=", A, TWO))),
    "a < b and c == 1": And((A_LESS_B, C_IS_1)),
    "a < b and c == 1 and a < b": And((A_LESS_B, C_IS_1, A_LESS_B)),
    "(a < b and c == 1) and a < b": And((And((A_LESS_B, C_IS_1)), A_LESS_B)),
    "a < b or c == 1 and a < b": Or((A_LESS_B, And((C_IS_1, A_LESS_B)))),
    "not a < b and c == 1": And((Not(A_LESS_B), C_IS_1)),
    "not (a < b and c == 1)": Not(And((A_LESS_B, C_IS_1))),
    "not not a < b": Not(Not(A_LESS_B)),
    "a in ['own', \"rent\"]": Member(A, (Text("own"), Text("rent"))),
    "a not in [1, -2, true]": Not(Member(A, (ONE, Number(-2.0), Truth(True)))),
    "a + b in [1]": Member(Arithmetic("+", A, B), (ONE,)),
    "a is missing": Missing(A),
    "a is not missing": Not(Missing(A)),
    "if a < b then c == 1": Or((Not(A_LESS_B), C_IS_1)),
    "if a < b or c == 1 then a < b": Or((Not(Or((A_LESS_B, C_IS_1))), A_LESS_B)),
    "if a < b then if c == 1 then a < b": Or((Not(A_LESS_B), Or((Not(C_IS_1), A_LESS_B)))),
    "c == 1 and (if a < b then c == 1)": And((C_IS_1, Or((Not(A_LESS_B), C_IS_1)))),
    "if (if a < b then c == 1) then c == 1": Or((Not(Or((Not(A_LESS_B), C_IS_1))), C_IS_1)),
}


@pytest.mark.parametrize("text", TREES)
def test_text_becomes_its_tree_and_its_canonical_text_the_same_tree(text: str) -> None:
    rule = parse(text)
    assert rule == Rule(text.strip(), TREES[text])
    assert parse(str(rule)).tree == rule.tree
    assert str(parse(str(rule))) == str(rule)


CANONICAL = {
    "20<=h<=50": "20 <= h and h <= 50",
    "not a==1 or b==2": "if a == 1 then b == 2",
    "not a in [1.0]": "a not in [1]",
    "(a) < ((b))": "a < b",
    "-a<1e20": "0 - a < 1e+20",
    'a == "it\'s"': "a == 'it''s'",
    "`b` == `and`": "b == `and`",
    "a == -0": "a == 0",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text(text: str) -> None:
    assert str(parse(text)) == CANONICAL[text]


BAD: dict[str, str] = {
    "": "at character 1: expected a value, found the end",
    "a <=": "at character 5: expected a value, found the end",
    "a": "at character 1: expected a condition such as 'a <= b', found the value 'a'",
    "a + 1": "at character 1: expected a condition such as 'a <= b', found the value 'a + 1'",
    "a < b and c": "at character 11: expected a condition such as 'a <= b', found the value 'c'",
    "not a": "at character 5: expected a condition such as 'a <= b', found the value 'a'",
    "a b": "at character 3: expected an operator or the end, found 'b'",
    "a < b 'x'": "at character 7: expected an operator or the end, found 'x'",
    "a < 1,000": "at character 6: expected an operator or the end, found ','",
    "(a < b": "at character 7: expected ')', found the end",
    "a < b)": "at character 6: expected an operator or the end, found ')'",
    "(a < b) + 1 > c": "at character 1: expected a value, found a condition",
    "a == not b == c": "at character 6: expected a value, found a condition",
    "a < b in [1]": "at character 1: expected a value, found a condition",
    "a in []": "at character 7: expected a number, a text, true or false, found ']'",
    "a in [1,]": "at character 9: expected a number, a text, true or false, found ']'",
    "a in [b]": "at character 7: expected a number, a text, true or false, found 'b'",
    "a in [-'x']": "at character 8: expected a number, found 'x'",
    "a in 1": "at character 6: expected '[', found '1'",
    "a in [1": "at character 8: expected ']', found the end",
    "a not": "at character 3: expected an operator or the end, found 'not'",
    "a is 1": "at character 6: expected 'missing', found '1'",
    "1 is missing": "at character 1: expected the name of a feature before 'is'",
    "missing < 1": "at character 1: expected a value, found 'missing'",
    "if a < b": "at character 9: expected 'then', found the end",
    "if a then b < 1": "at character 4: expected a condition such as 'a <= b', found the value 'a'",
    "c == 1 or if a < b then c == 1": "at character 11: expected a value, found 'if'; 'if' goes in parentheses here",
    "a = 1": "at character 3: '=' is no comparison; write '=='",
    "a < b & c < d": "at character 7: '&' is unknown; write 'and'",
    "a | b": "at character 3: '|' is unknown; write 'or'",
    "!a": "at character 1: '!' is unknown; write 'not', or '!=' for unequal",
    "a.b < 1": "at character 2: '.' is unknown here; names with it go in backticks",
    "__import__('os').system('x')": "at character 17: '.' is unknown here; names with it go in backticks",
    "f(a) < 1": "at character 2: expected an operator or the end, found '('",
    "a ** 2 < 1": "at character 4: expected a value, found '*'",
    "a == 'x": "at character 6: the text that starts here is not closed; end it with '",
    'a == "x': 'at character 6: the text that starts here is not closed; end it with "',
    "`a < 1": "at character 1: the name that starts here is empty or not closed; end it with `",
    "`` < 1": "at character 1: the name that starts here is empty or not closed; end it with `",
    "a < 1e999": "at character 5: the number is too large",
    "(" * 200: "at character 102: nested deeper than 100; split the rule into several",
    "-" * 200 + "a < 1": "at character 102: nested deeper than 100; split the rule into several",
    "not " * 90 + "a < 1": "at character 165: nested deeper than 50; split the rule into several",
    "+".join("a" * 60) + " < 1": "at character 1: nested deeper than 50; split the rule into several",
}


@pytest.mark.parametrize("text", BAD)
def test_what_can_not_be_read_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        parse(text)
    assert str(caught.value).endswith(f": {BAD[text]}")
    assert isinstance(caught.value, ConstraintError)


def test_rules_are_bounded_in_length_as_written_and_in_full() -> None:
    assert len(parse("a < 1" + " " * 1995).text) == 5
    with pytest.raises(RuleError, match=r"\.\.\.': 2001 characters, more than 2000; split it into several"):
        parse("a < 1" + " " * 1996)
    with pytest.raises(RuleError, match="more than 2000 characters when written in full"):
        parse("<".join("a" * 900))


def test_a_sum_of_many_terms_is_fine() -> None:
    assert evaluate(parse(" + ".join(["a"] * 45) + " == 45"), {"a": 1})


@pytest.mark.parametrize("text", [None, 3, b"a < b", ["a < b"]])
def test_a_rule_is_text(text: Any) -> None:
    with pytest.raises(RuleError, match="a rule must be text such as 'a <= b', got"):
        parse(text)


# -- names -------------------------------------------------------------------------------------------------------


def test_names_come_once_in_order_of_appearance() -> None:
    assert names(parse("if b > a then c in [1] and (a is missing or `d e` + b > 1)")) == ("b", "a", "c", "d e")


def test_a_name_means_the_column_of_that_name_before_one_of_that_number() -> None:
    assert resolve("1", [1, "a"]) == 1
    assert resolve("1", [1, "1"]) == "1"
    assert resolve("2", [1, "1"]) is None


def test_unknown_names_are_refused_with_the_nearest() -> None:
    check_names(parse("age < `7`"), ["age", 7])
    with pytest.raises(RuleError) as caught:
        check_names(parse("agee < 7"), ["age", "sex"])
    assert str(caught.value) == "rule 'agee < 7': feature 'agee' is unknown; did you mean 'age'?"


def test_a_name_that_lacks_its_backticks_is_recognised() -> None:
    with pytest.raises(RuleError) as caught:
        check_names(parse("marital-status == 'x'"), ["age", "marital-status"])
    assert str(caught.value) == (
        "rule \"marital-status == 'x'\": a name such as marital-status goes in backticks: `marital-status`"
    )


# -- kinds -------------------------------------------------------------------------------------------------------

KINDS = {"n": "number", "m": "number", "l": "level", "k": "level", "o": "ordinal", "q": "ordinal", "b": "boolean"}
LEVELS = {"l": ("x", "y", 1), "k": (1, 2.5), "o": ("low", "mid", "high"), "q": (1, 2), "b": (False, True)}

FINE = [
    "n < m", "n / 2 == m", "n in [1, 2]", "1 < 2", "l == 'x'", "l == 1", "'x' != l", "l in ['x', 'y']", "l == k",
    "l == true", "o >= 'mid'", "'mid' < o", "o == 'low'", "q > 1", "l == o", "b == true", "b != 0", "b in [true, 1]",
    "b == b", "'a' == 'b'", "true == true", "n is missing and l is missing",
]  # fmt: skip


@pytest.mark.parametrize("text", FINE)
def test_what_can_be_compared(text: str) -> None:
    check_kinds(parse(text), KINDS, LEVELS)


MISMATCHES = {
    "n == 'x'": "compares n, a number, with the text 'x'; write a number",
    "'x' == n": "compares n, a number, with the text 'x'; write a number",
    "n == true": "compares n, a number, with true; write a number",
    "n in [1, 'x']": "compares n, a number, with the text 'x'; write a number",
    "n < 'x'": "compares n, a number, with the text 'x'; write a number",
    "n + 1 == 'x'": "compares n + 1 with the text 'x'; write a number",
    "'x' == 1": "compares the text 'x' with 1; use one kind",
    "n == l": "compares l, a category, with n, a number; use one kind",
    "n + l > 1": "calculates with l, a category; only numbers can be calculated with",
    "n * 'x' > 1": "calculates with the text 'x'; only numbers can be calculated with",
    "b + 1 > 1": "calculates with b, a boolean; only numbers can be calculated with",
    "l < 'x'": "l is a category and has no order; use ==, != or in",
    "1 < l": "l is a category and has no order; use ==, != or in",
    "b > false": "b is a boolean and has no order; use ==, != or in",
    "b == 2": "compares b, a boolean, with 2; write true or false",
    "b == 'yes'": "compares b, a boolean, with the text 'yes'; write true or false",
    "b == l": "compares b, a boolean, with l, a category; write true or false",
    "o < q": "o is an ordinal; compare it by order with one of its levels, not with q, an ordinal",
    "o < n + 1": "o is an ordinal; compare it by order with one of its levels, not with n + 1",
    "o >= 'midd'": "level of o: 'midd' is unknown; did you mean 'mid'?",
    "o == 'midd'": "level of o: 'midd' is unknown; did you mean 'mid'?",
    "q > 3": "level of q: 3 is unknown; known: 1, 2",
    "k in [1, 2.75]": "level of k: 2.75 is unknown; did you mean 2.5?",
    "l == 'z'": "level of l: 'z' is unknown; known: x, y, 1",
    "if n > 1 then not (l == 'z' or n > 2)": "level of l: 'z' is unknown; known: x, y, 1",
}


@pytest.mark.parametrize("text", MISMATCHES)
def test_what_can_not_be_compared_is_refused(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        check_kinds(parse(text), KINDS, LEVELS)
    assert str(caught.value) == f"rule {text!r}: {MISMATCHES[text]}"


def test_levels_are_checked_only_where_they_are_known() -> None:
    check_kinds(parse("l == 'z' and o > 'z'"), KINDS)


# -- meaning -----------------------------------------------------------------------------------------------------

ROW = {
    "a": 1,
    "b": 2.5,
    "z": 0,
    "none": None,
    "nan": math.nan,
    "t": "x",
    "yes": True,
    "no": np.bool_(False),
    "o": "mid",
}
ORDERS = {"o": ("low", "mid", "high"), "none": ("low", "mid")}
TRUE = [
    "a < b", "a <= 1", "b > a", "b >= 2.5", "a == 1", "a != b", "0 < a < b < 3", "a + b == 3.5", "b - a == 1.5",
    "2 * b == 5", "b / a == 2.5", "-a == 0 - 1", "t == 'x'", "t != 'y'", "t in ['y', 'x']", "t not in ['y']",
    "yes == true", "yes == 1", "no == 0", "no != true", "a == true", "t != 1", "t not in [1]", "none is missing",
    "nan is missing", "a is not missing", "not none < 1", "not nan == 1", "none not in [1]", "not a / z > 0",
    "not a / z <= 0", "if a == 2 then b == 9", "if a == 1 then b == 2.5", "a == 2 or b == 2.5", "o >= 'mid'",
    "'high' > o", "o == 'mid'", "not none >= 'mid'", "not a / z == a / z",
    "1e308 * 10 > 1", "not 1e308 * 10 - 1e308 * 10 == 0",
]  # fmt: skip


@pytest.mark.parametrize("text", TRUE)
def test_a_rule_holds_and_its_negation_does_not(text: str) -> None:
    assert evaluate(parse(text), ROW, orders=ORDERS) is True
    assert evaluate(parse(f"not ({text})"), ROW, orders=ORDERS) is False


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
@pytest.mark.parametrize("missing", [None, math.nan, np.nan, pd.NA, pd.NaT])
def test_a_comparison_with_a_missing_value_is_false_either_way(op: str, missing: Any) -> None:
    for text in (f"m {op} 1", f"1 {op} m", f"m {op} m", f"m + 1 {op} 1", f"m {op} 'x'"):
        assert evaluate(parse(text), {"m": missing}) is False


@pytest.mark.parametrize("value", [0, 0.0, "", "nan", False, np.float32(1), np.int8(0), "None"])
def test_values_that_are_there_are_not_missing(value: Any) -> None:
    assert not is_missing(value)


def test_levels_that_are_numbers_compare_by_value() -> None:
    assert evaluate(parse("sector == 2 and sector in [1, 2] and sector != 3"), {"sector": 2})
    assert evaluate(parse("grade > 2"), {"grade": 1}, orders={"grade": (3, 2, 1)})


def test_columns_that_are_numbers_are_named_in_backticks() -> None:
    assert evaluate(parse("`7` > 1"), {7: 2})


BAD_ROWS = {
    "q < 1": "feature 'q' is unknown; known: a, b, z, none, nan, t, yes, no, o",
    "t < 'y'": "text has no order; use ==, != or in",
    "t + 1 < 2": "calculates with text; only numbers can be calculated with",
    "o < 'hgh'": "level 'hgh' is unknown; did you mean 'high'?",
}


@pytest.mark.parametrize("text", BAD_ROWS)
def test_a_row_that_a_rule_can_not_read_is_refused(text: str) -> None:
    with pytest.raises(RuleError) as caught:
        evaluate(parse(text), ROW, orders=ORDERS)
    assert str(caught.value) == f"rule {text!r}: {BAD_ROWS[text]}"


# -- at random ---------------------------------------------------------------------------------------------------

PIECES = [
    *"abz`'\"()[],<>=!+-*/.&|\\ \n\t0123456789eé²\x00\ud800",
    " and ", " or ", " not ", " in ", " is ", " missing ", "if ", " then ", " true ", " False ",
    "<=", ">=", "==", "!=", "`c d`", "'t'", '"u"', "1e5", "1e999", "2.5", " age ", "((", "))", "--",
    "was.", "was", "was.age", "was.`c d`", "changed(", "changed(age)", " else ", "min(", "max(", "min(age, 1)",
]  # fmt: skip


class Maker:
    """Random text: rules that are right, the same with errors put in, and pieces without any order."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        kind = self.random.random()
        if kind < 0.35:
            return "".join(self.random.choices(PIECES, k=self.random.randrange(20)))
        text = self.condition(self.random.randrange(4))
        return text if kind < 0.5 else self.mutated(text)

    def mutated(self, text: str) -> str:
        for _ in range(self.random.randrange(1, 4)):
            at, width = self.random.randrange(len(text) + 1), self.random.randrange(4)
            text = text[:at] + self.random.choice(["", *PIECES]) + text[at + width :]
        return text

    def condition(self, depth: int) -> str:
        if depth == 0:
            return self.simple()
        one, two = self.condition(depth - 1), self.condition(self.random.randrange(depth))
        forms = (f"({one}) and {two}", f"{one} or {two}", f"not {one}", f"(if {one} then {two})", f"({one})")
        return self.random.choice(forms)

    def simple(self) -> str:
        one, two, op = self.value(2), self.value(1), self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        forms = (f"{one}{op}{two}", f"{one} {op} {two} < {one}", f"{one} in [{self.literal()}, {self.literal()}]")
        return self.random.choice(
            (*forms, f"{one} not in [{self.literal()}]", "age is missing", "`c d` is not missing")
        )

    def value(self, depth: int) -> str:
        if depth == 0 or self.random.random() < 0.4:
            return self.random.choice((self.literal(), "age", "`c d`", "`in`", "x_1", "was.age", "was.`c d`"))
        one, two, op = self.value(depth - 1), self.value(depth - 1), self.random.choice("+-*/")
        chosen = f"(if {self.simple_about_change()} then {one} else {two})"
        return self.random.choice((f"{one}{op}{two}", f"({one} {op} {two})", f"-{one}", f"max({one}, {two})", chosen))

    def simple_about_change(self) -> str:
        return self.random.choice(("changed(age)", "x_1 != was.x_1", "not changed(`c d`)", "age > was.age"))

    def literal(self) -> str:
        return self.random.choice(("1", "-2.5", "1e-7", "12345678901234567", "'it''s'", '"u"', "true", "false"))


FUZZED = {"age": 3, "x_1": True, "in": "u", "c d": None, "a": 1, "b": 0, "z": -1.5}
BEFORE = {**FUZZED, "age": 2.5, "x_1": False}


def survives(text: str) -> bool:
    """Whether `text` is a rule; it then round-trips and has a truth value, or else fails with a `RuleError` only."""
    try:
        rule = parse(text)
    except RuleError:
        return False
    assert parse(str(rule)).tree == rule.tree
    try:
        check_kinds(rule, {"age": "number", "x_1": "boolean", "in": "level", "c d": "ordinal"}, {"c d": ("it's", 1)})
        evaluate(rule, FUZZED, was=BEFORE)
    except RuleError:
        pass
    return True


def survives_as_value(text: str) -> bool:
    """The same of what a feature follows from."""
    try:
        made = parse_value(text)
    except RuleError:
        return False
    assert parse_value(str(made)).tree == made.tree
    try:
        check_result(made, "age", {"age": "number", "x_1": "boolean", "in": "level", "c d": "ordinal"})
        worked_out(made, FUZZED, was=BEFORE)
    except RuleError:
        pass
    return True


@pytest.mark.slow
def test_a_hundred_thousand_random_texts_give_a_rule_or_a_rule_error() -> None:
    maker = Maker(4)
    read = sum(survives(maker.text()) for _ in range(100_000))
    assert 15_000 < read < 60_000  # both ways are well used


@pytest.mark.slow
def test_random_values_give_an_expression_or_a_rule_error() -> None:
    maker = Maker(5)
    texts = [maker.value(3) for _ in range(20_000)]
    read = sum(survives_as_value(text if i % 2 else maker.mutated(text)) for i, text in enumerate(texts))
    assert 8_000 < read < 19_000


@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
@settings(max_examples=500, deadline=None)
def test_any_text_gives_a_rule_or_a_rule_error(text: str) -> None:
    survives(text)
    survives_as_value(text)


values = st.recursive(
    st.floats(allow_nan=False, allow_infinity=False).map(lambda v: Number(v or 0.0))
    | st.text(max_size=5).map(Text)
    | st.booleans().map(Truth)
    | st.text(min_size=1, max_size=5).map(Name)
    | st.text(min_size=1, max_size=5).map(Was),
    lambda inner: (
        st.builds(Arithmetic, st.sampled_from(["+", "-", "*", "/", "min", "max"]), inner, inner)
        | st.builds(Choice, st.text(min_size=1, max_size=5).map(Changed), inner, inner)
    ),
    max_leaves=6,
)
literals = st.lists(values.filter(lambda v: isinstance(v, Number | Text | Truth)), min_size=1, max_size=3).map(tuple)
conditions = st.recursive(
    st.builds(Comparison, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), values, values)
    | st.builds(Member, values, literals)
    | st.text(min_size=1, max_size=5).map(lambda name: Missing(Name(name)))
    | st.text(min_size=1, max_size=5).map(Changed),
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts)))
        | inner.map(Not)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(conditions)
@settings(max_examples=300, deadline=None)
def test_every_tree_is_written_so_that_it_reads_back(tree: Any) -> None:
    text = str(Rule("", tree))
    if len(text) <= 2000:
        assert parse(text).tree == tree


# -- once per call -------------------------------------------------------------------------------------------------


def test_a_call_parses_each_rule_once(mixed: DiCoFlex, queries: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the reading of the call to the certificate and the record, with sets joined and copied on the way."""
    read: Counter[str] = Counter()

    class Counting(parser._Parser):
        def __init__(self, text: str) -> None:
            read[text] += 1
            super().__init__(text)

    monkeypatch.setattr(parser, "_Parser", Counting)
    parser._parsed.cache_clear()
    rules = ["visits <= 4 * price", "if member == true then gain >= 100"]
    found = mixed.explain(
        queries.head(3), target="yes", n=3, constraints={"rules": rules, "max_changes": 4}, random_state=0
    )
    assert bool(found.verify()["holds"].all())
    assert found.to_json()
    assert read == Counter(rules)
