"""Cards are right and readable, in a terminal of any width and as HTML."""

from __future__ import annotations

import io
import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from asked import asked
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.table.schema import Schema
from dicoflex.views.cards import Card, cards, differences, labels, rows, step_of
from dicoflex.views.html import to_html_fragment, to_html_page
from dicoflex.views.terminal import to_rich

TRAIN = pd.DataFrame(
    {
        "age": [25, 60, 41, 33],
        "grade": pd.Categorical(["low", "mid", "high", "low"], categories=["low", "mid", "high"], ordered=True),
        "job": ["clerk", "nurse", "clerk", "cook"],
        "rate": [0.05, 0.31, 0.122, 0.0421],
        "gain": [0.0, 1234567.0, 15024.0, 5.0],
        "owner": [True, False, True, False],
        "children": pd.array([1, None, 0, 2], dtype="Int64"),
    }
)


def replaced(row: int, **values: Any) -> pd.DataFrame:
    """One training row with some values replaced, every column in its dtype."""
    made = TRAIN.iloc[[row]].reset_index(drop=True)
    return made.assign(**{k: pd.Series([v], dtype=TRAIN[k].dtype) for k, v in values.items()})


def cards_of(
    queries: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    info: pd.DataFrame,
    positions: np.ndarray,
    shortfall: pd.DataFrame,
    schema: Schema,
    settings: dict[str, Any],
) -> list[Card]:
    """The cards of a result that is made by hand; all queries are short where one is."""
    target = settings.get("target")
    wanted = target if isinstance(target, list) else [target] * len(queries)
    given = {"request": asked(settings), "targets": wanted, "model": settings.get("version")}
    return cards(Counterfactuals(queries, frame, info, positions, shortfall, schema, **given))


def make(
    answers: list[pd.DataFrame],
    *,
    query: int = 3,
    schema: Schema | None = None,
    shortfall: list[tuple[Any, ...]] = (),
    settings: dict[str, Any] | None = None,
    **info: Any,
) -> list[Card]:
    index = pd.MultiIndex.from_arrays([[7] * len(answers), range(len(answers))], names=["row", "cf"])
    known = {"target": "yes", "log_density": -1.0, "valid": pd.array([None] * len(answers), dtype="boolean"), **info}
    return cards_of(
        TRAIN.iloc[[query]].set_axis([7]),
        pd.concat([TRAIN.iloc[:0], *answers]).set_axis(index),
        info=pd.DataFrame(known, index=index),
        positions=np.zeros(len(answers), dtype=int),
        shortfall=pd.DataFrame(list(shortfall), columns=["row", "wanted", "got", "reason"]),
        schema=schema or Schema.infer(TRAIN),
        settings=settings or {},
    )


def printed(made: list[Card], width: int = 110) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as capture:
        console.print(to_rich(made))
    return capture.get()


class Tags(HTMLParser):
    """Collects the names and attributes of the tags of a page, and its visible text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def count(self, tag: str, kind: str) -> int:
        """How many tags have a class."""
        return sum(name == tag and attributes.get("class") == kind for name, attributes in self.tags)


@pytest.mark.parametrize(
    ("column", "before", "after"),
    [
        ("age", 33, 41),
        ("grade", "low", "high"),
        ("job", "cook", "nurse"),
        ("rate", 0.0421, 0.31),
        ("owner", False, True),
        ("children", 2, None),
    ],
)
def test_a_changed_cell_is_found_in_every_dtype(column: str, before: Any, after: Any) -> None:
    different = differences(TRAIN.iloc[[3]], replaced(3, **{column: after}))
    assert TRAIN.columns[different[0]].tolist() == [column]


def test_missing_equals_missing() -> None:
    old = pd.DataFrame(
        {"a": [np.nan], "b": pd.array([None], dtype="Int64"), "c": pd.Categorical([None], ["x"]), "d": [None]}
    )
    assert not differences(old, old.copy()).any()


def test_objects_of_different_type_differ_though_python_calls_them_equal() -> None:
    old = pd.DataFrame({"level": pd.Series([1, 1, 1, np.int64(1)], dtype=object)})
    new = pd.DataFrame({"level": pd.Series([True, 1.0, 1, 1], dtype=object)})
    assert differences(old, new)[:, 0].tolist() == [True, True, False, False]


def test_rows_keep_each_columns_type() -> None:
    assert [type(value) for value in rows(TRAIN)[0]] == [int, str, str, float, float, bool, int]


def test_labels_stay_apart_when_a_number_and_a_text_read_the_same() -> None:
    assert labels(Schema.infer(pd.DataFrame({1: [1, 2], "1": [3, 4]}))) == ["1", "'1'"]


def test_directions_follow_numbers_and_order() -> None:
    (card,) = make([replaced(3, age=25, grade="high", job="nurse", children=None, owner=True, rate=0.31)])
    changes = card["answers"][0]["changes"]
    assert {name: change["direction"] for name, change in changes.items()} == {
        "age": "down",
        "grade": "up",
        "job": "other",
        "rate": "up",
        "owner": "other",
        "children": "other",
    }
    assert changes["grade"]["size"] == 1.0
    assert changes["age"]["size"] == pytest.approx(8 / 35)


def test_an_order_given_to_the_schema_beats_the_alphabet() -> None:
    schema = Schema.infer(TRAIN, orders={"job": ["nurse", "cook", "clerk"]})
    (card,) = make([replaced(3, job="clerk"), replaced(3, job="nurse")], schema=schema)
    assert [answer["changes"]["job"]["direction"] for answer in card["answers"]] == ["up", "down"]


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("gain", 1234567.0, "1,234,567"),
        ("rate", 0.123456, "0.1235"),
        ("rate", 0.00001234, "0.00001234"),
        ("rate", 0.3, "0.3"),
        ("rate", 12345.678, "12,346"),
        ("rate", 1.5e-9, "1.5e-09"),
        ("rate", 2.0, "2"),
        ("children", None, "missing"),
        ("owner", True, "True"),
        ("job", "", '""'),
        ("job", "a\x1b[31m\nb", "a\\x1b[31m\\nb"),
    ],
)
def test_values_read_well(column: str, value: Any, text: str) -> None:
    (card,) = make([replaced(3, **{column: value})])
    assert card["answers"][0]["changes"][column]["after"] == text


def test_close_numbers_get_the_digits_that_tell_them_apart() -> None:
    (card,) = make([replaced(3, rate=0.04210003)])
    change = card["answers"][0]["changes"]["rate"]
    assert (change["before"], change["after"]) == ("0.0421", "0.04210003")


def test_category_numbers_get_no_separators() -> None:
    frame = pd.DataFrame({"zip": [10115, 80331]})
    schema = Schema.infer(frame, kinds={"zip": "categorical"})
    index = pd.MultiIndex.from_tuples([(0, 0)], names=["row", "cf"])
    (card,) = cards_of(
        frame.iloc[[0]],
        frame.iloc[[1]].set_axis(index),
        info=pd.DataFrame({"target": 1, "log_density": 0.0, "valid": pd.NA}, index=index),
        positions=np.array([0]),
        shortfall=pd.DataFrame(columns=["row", "wanted", "got", "reason"]),
        schema=schema,
        settings={},
    )
    assert card["answers"][0]["changes"]["zip"]["after"] == "80331"


def test_how_likely_compares_with_the_most_likely_one() -> None:
    gaps = [0.0, math.log(9), math.log(900), math.log(2000), math.inf, math.nan]
    (card,) = make([replaced(3, age=25)] * 6, log_density=[-3.0 - gap for gap in gaps])
    assert [answer["word"] for answer in card["answers"]] == [
        "most likely",
        "likely",
        "less likely",
        "rare",
        "rare",
        "unknown",
    ]
    shares = [answer["likely"] for answer in card["answers"][:5]]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 1.0
    assert shares[4] == 0.0
    assert card["answers"][5]["likely"] is None


def test_how_usual_an_answer_is_goes_by_real_rows_where_they_are_known() -> None:
    """An answer that the density of draws calls rare may be a usual row, which is what a person asks."""
    answers = [replaced(3, age=25), replaced(3, age=30)]
    (card,) = make(answers, log_density=[-1.0, -99.0], plausibility=[0.07, 0.58])
    assert [answer["word"] for answer in card["answers"]] == ["1 in 14", "5 in 10"]
    assert [answer["likely"] for answer in card["answers"]] == [0.07, 0.58]
    for text in (printed([card]), to_html_page([card])):
        assert "as usual as" in text
        assert "how likely" not in text
        assert "less likely" not in text
        assert "5 in 10" in text
    (lone,) = make(answers[:1], plausibility=0.34)
    assert lone["answers"][0]["word"] == "3 in 10"
    (unknown,) = make(answers, log_density=[-1.0, -99.0], plausibility=[0.07, np.nan])
    assert [answer["word"] for answer in unknown["answers"]] == ["most likely", "rare"]
    assert "how likely" in printed([unknown])


def test_answers_of_one_way_stand_together() -> None:
    answers = [replaced(3, age=25), replaced(3, job="nurse"), replaced(3, age=30), replaced(3, job="clerk")]
    (card,) = make(answers, way=[0, 1, 0, 1])
    assert [answer["cf"] for answer in card["answers"]] == ["0", "2", "1", "3"]
    lines = [line.strip("│ \n") for line in printed([card]).splitlines()]
    at = [next(i for i, line in enumerate(lines) if line.startswith(f"{cf} ")) for cf in (0, 2, 1, 3)]
    assert np.diff(at).tolist() == [1, 2, 1]
    assert Tags(to_html_page([card])).count("tr", "group") == 1
    (apart,) = make(answers, way=[0, 1, 2, 3])
    assert Tags(to_html_page([apart])).count("tr", "group") == 0
    assert "one way" not in printed([card])


def test_it_is_said_that_there_is_one_way_alone() -> None:
    answers = [replaced(3, age=25, job="nurse"), replaced(3, age=30, job="clerk")]
    (card,) = make(answers, way=[0, 0])
    words = "all of these change age and job, by other amounts or to other values"
    assert f"one way was found: {words}" in " ".join(printed([card]).replace("│", "").split())
    assert words in to_html_fragment([card])
    for made in (make(answers[:1], way=0), make(answers), make(answers, way=[0, 1])):
        assert "one way" not in printed(made)


def test_an_unseen_level_of_an_ordinal_has_no_direction() -> None:
    feature = Schema.infer(TRAIN)["grade"]
    assert step_of("highest", "low", feature) == ("other", 1.0)
    assert step_of("mid", "low", feature) == ("down", 0.5)


def test_a_lone_answer_shows_its_log_density() -> None:
    (card,) = make([replaced(3, age=25)], log_density=-12.34)
    assert card["answers"][0]["word"] == "log density -12.3"
    assert "log density -12.3" in printed([card])


def test_probability_and_marks() -> None:
    made = make(
        [replaced(3, age=25)] * 3,
        probability=[0.934, 0.9999, np.nan],
        valid=pd.array([True, False, None], dtype="boolean"),
    )
    assert [answer["confidence"] for answer in made[0]["answers"]] == ["93 %", "> 99 %", "–"]
    assert [answer["valid"] for answer in made[0]["answers"]] == [True, False, None]
    lines = [line for line in printed(made).splitlines() if "→ 25" in line]
    assert [re.search(r"[✓✗–] +│$", line) is not None for line in lines] == [True, True, True]
    assert "confidence" in printed(made)
    assert "confidence" not in printed(make([replaced(3, age=25)]))


def test_text_shows_the_query_what_was_asked_and_the_changes() -> None:
    made = make(
        [replaced(3, age=41, job="nurse"), replaced(3, rate=0.31)],
        settings={"n": 2, "p": 0.01, "frozen": ["owner", "grade"], "confidence": 0.8},
    )
    text = printed(made)
    for fact in ("row 7 → yes", "job = cook", "owner = False (frozen)", "n 2 · p 0.01 · confidence 0.8"):
        assert fact in text
    assert "frozen grade, owner" in text
    assert re.search(r"0 +▲ 33 → 41 +● cook → nurse +·", text)
    assert re.search(r"1 +· +· +▲ 0.0421 → 0.31", text)


def test_constraints_are_told_in_words_and_frozen_features_once() -> None:
    bound = {"frozen": ["owner"], "ranges": {"age": {"delta": [0, 5]}}, "increase": ["grade"], "max_changes": 2}
    made = make([replaced(3, age=36)], settings={"frozen": ["owner"], "constraints": bound})
    assert made[0]["constraints"] == [
        "age may change by 0 to +5",
        "grade may only increase",
        "at most 2 features may change",
    ]
    text = printed(made, 140)
    assert "constraints age may change by 0 to +5 · grade may only increase · at most 2 features may change" in text
    assert text.count("frozen") == 2  # beside the value, and in the line of what was asked
    assert "{" not in text
    page = Tags(to_html_page(made)).text
    assert "bound byage may change by 0 to +5grade may only increaseat most 2 features may change" in page
    assert "owner may not change" not in page


def test_no_line_of_constraints_where_none_but_frozen_bind() -> None:
    made = make([replaced(3, age=36)], settings={"frozen": ["owner"], "constraints": {"frozen": ["owner"]}})
    assert "constraints" not in printed(made)
    assert "bound by" not in Tags(to_html_page(made)).text


@pytest.mark.parametrize("width", [40, 60, 80, 110, 200])
def test_every_width_shows_every_change_and_stays_inside(width: int) -> None:
    made = make([replaced(3, age=41, job="nurse", rate=0.31, gain=15024.0, owner=True, grade="high", children=0)])
    text = printed(made, width)
    assert max(map(len, text.splitlines()[:-2])) <= width
    joined = re.sub(r"[\s│]+", " ", text)
    for after in ("41", "nurse", "0.31", "15,024", "True", "high"):
        assert after in joined


def test_middle_width_states_the_old_values_once() -> None:
    made = make([replaced(3, job="nurse", rate=0.31, gain=15024.0), replaced(3, grade="mid")])
    assert re.search(r"now +low +cook +0.0421 +5 ", printed(made, 90))
    assert "now" not in printed(made, 140)
    assert "job ● cook → nurse" in printed(made, 60)


def test_markup_is_shown_as_it_is() -> None:
    made = make([replaced(3, job="[red]cook[/red]")], target="[bold]yes")
    assert "[red]cook[/red]" in printed(made)
    assert "row 7 → [bold]yes" in printed(made)


def test_a_query_without_answers_shows_the_reason() -> None:
    made = make([], shortfall=[(7, 5, 0, "all draws were refused")], settings={"n": 5, "target": ["yes"]})
    assert made[0]["target"] == "yes"
    assert "0 of 5 found: all draws were refused" in printed(made)
    assert "no counterfactuals for yes" in Tags(to_html_page(made)).text
    assert "0 of 5 found: all draws were refused" in Tags(to_html_page(made)).text


def test_shortfall_goes_to_the_right_one_of_two_queries_with_one_label() -> None:
    index = pd.MultiIndex.from_tuples([("a", 0)], names=["row", "cf"])
    made = cards_of(
        TRAIN.iloc[[0, 1]].set_axis(["a", "a"]),
        replaced(1, age=25).set_axis(index),
        info=pd.DataFrame({"target": "yes", "log_density": 0.0, "valid": pd.NA}, index=index),
        positions=np.array([1]),
        shortfall=pd.DataFrame(
            [("a", 2, 0, "first"), ("a", 2, 1, "second")], columns=["row", "wanted", "got", "reason"]
        ),
        schema=Schema.infer(TRAIN),
        settings={},
    )
    assert [card["shortfall"] for card in made] == ["0 of 2 found: first", "1 of 2 found: second"]
    assert [len(card["answers"]) for card in made] == [0, 1]


def test_page_escapes_everything() -> None:
    evil = '<script>alert("x")</script>'
    train = TRAIN.rename(columns={"job": evil})
    index = pd.MultiIndex.from_tuples([(evil, 0)], names=["row", "cf"])
    made = cards_of(
        train.iloc[[0]].set_axis([evil]),
        train.iloc[[1]].assign(**{evil: evil}).set_axis(index),
        info=pd.DataFrame({"target": evil, "log_density": 0.0, "valid": pd.NA}, index=index),
        positions=np.array([0]),
        shortfall=pd.DataFrame([(evil, 2, 1, evil)], columns=["row", "wanted", "got", "reason"]),
        schema=Schema.infer(train),
        settings={"p": 1.0, "constraints": {"allowed": {evil: [evil]}}, "version": evil, "frozen": [evil]},
    )
    page = to_html_page(made, title=evil, lead=evil)
    assert "<script" not in page
    assert Tags(page).text.count(evil) >= 10


def test_page_stands_alone() -> None:
    made = make([replaced(3, age=41)], settings={"version": "0.1.0", "random_state": 0})
    page = to_html_page(made, title="Loans")
    found = Tags(page)
    assert not {"script", "link", "iframe"} & {tag for tag, _ in found.tags}
    assert "http" not in page
    assert "url(" not in page
    assert not [attrs for _, attrs in found.tags if {"src", "href"} & set(attrs)]
    assert "prefers-color-scheme: dark" in page
    assert "random_state 0 · novel False · model 0.1.0" in found.text
    assert "1 row explained with 1 counterfactual." in found.text
    assert "33 → 41" in found.text


def test_page_closes_what_it_opens() -> None:
    page = to_html_page(make([replaced(3, age=41, job="nurse")], settings={"frozen": ["rate"]}))
    for tag in ("section", "div", "span", "table", "tr", "td", "th", "dl", "ul", "li", "main", "p"):
        assert len(re.findall(rf"<{tag}[ >]", page)) == page.count(f"</{tag}>"), tag


def test_page_lists_changes_when_columns_would_not_fit() -> None:
    few = make([replaced(3, age=41)])
    many = make([replaced(3, job="nurse" * 20, age=41)])
    assert ">changes<" not in to_html_page(few)
    assert ">changes<" in to_html_page(many)


def test_fragment_says_how_many_more() -> None:
    made = make([replaced(3, age=41)])
    assert "and 1 more query;" in to_html_fragment(made, hidden=1)
    assert "and 1,200 more queries;" in to_html_fragment(made, hidden=1200)
    assert "more quer" not in to_html_fragment(made)
    assert "<html" not in to_html_fragment(made)


def test_nothing_to_show() -> None:
    assert "no queries" in printed([])
    assert "no queries" in to_html_page([])


def test_a_notebook_s_own_styles_of_lists_are_undone() -> None:
    """Notebooks float `dt` into a fifth of the width, with one class and one tag; names broke inside words."""
    text = to_html_fragment([])
    rule = text[text.index(".dicoflex dl dt, .dicoflex dl dd {") :].split("}")[0]
    assert all(part in rule for part in ("float: none", "width: auto", "overflow-wrap: break-word"))
    assert "anywhere" not in rule
