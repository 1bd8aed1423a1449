"""Record batches: an answer depends on its row and the request, and every row is in exactly one place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dicoflex import Constraints, DiCoFlex, Explainer, Request, at_least
from dicoflex.batch import Explained, explain_batches
from dicoflex.batch.tables import digest
from dicoflex.errors import ConstraintError, QueryError


def found(explainer: Explainer, table: pa.Table, wish: Request, size: int = 1000, **given: Any) -> list[Explained]:
    return list(explain_batches(explainer, table.to_batches(max_chunksize=size), wish, **given))


def whole(parts: Iterable[Explained], name: str) -> pa.Table:
    return pa.concat_tables([getattr(part, name) for part in parts])


def content(parts: Iterable[Explained]) -> list[int]:
    parts = list(parts)
    return [digest(whole(parts, name)) for name in ("answers", "shortfall", "errors")]


def check_each_row_once(parts: list[Explained], n_rows: int, n: int, key: str = "row") -> None:
    answered = whole(parts, "answers").column(key).to_pylist()
    short = dict(zip(*(whole(parts, "shortfall").column(one).to_pylist() for one in (key, "got")), strict=True))
    wrong = whole(parts, "errors").column(key).to_pylist()
    got = {row: answered.count(row) for row in set(answered)}
    assert sum(part.rows for part in parts) == n_rows == len({*got, *short, *wrong})
    assert sum(sum(part.statuses.values()) for part in parts) + len(wrong) == n_rows
    assert all(got.get(row, 0) == count for row, count in short.items())
    assert all(count == n for row, count in got.items() if row not in short)
    assert not set(wrong) & {*got, *short}


def test_batches_of_any_size_have_the_answers_of_explain(
    explainer: Explainer, people: pd.DataFrame, wish: Request
) -> None:
    table = pa.Table.from_pandas(people)
    one, many = found(explainer, table, wish, id="customer"), found(explainer, table, wish, size=7, id="customer")
    assert content(one) == content(many)
    assert len(many) > 10
    rows = people.drop(columns="customer")
    direct = explainer.explain(rows, target="yes", n=2, random_state=0)
    shown = whole(one, "answers").to_pandas()
    assert shown["customer"].tolist() == people["customer"].take(direct.positions).tolist()
    for name in rows.columns:
        expected = direct.frame[name].astype(object).tolist()
        assert shown[name].isna().tolist() == pd.Series(expected).isna().tolist()
        present = shown[name].notna().tolist()
        pairs = zip(shown[name].tolist(), expected, present, strict=True)
        assert all(a == b for a, b, there in pairs if there), name
    assert shown["log_density"].tolist() == direct.info["log_density"].tolist()
    check_each_row_once(one, len(people), 2, "customer")


def test_arrow_types_of_all_kinds_are_read(explainer: Explainer, people: pd.DataFrame, wish: Request) -> None:
    table = pa.Table.from_pandas(people.drop(columns="customer"))
    expected = content(found(explainer, table, wish))
    for name, type_ in {"job": pa.large_string(), "city": pa.dictionary(pa.int8(), pa.string())}.items():
        other = table.set_column(table.column_names.index(name), name, table.column(name).cast(type_))
        assert content(found(explainer, other, wish)) == expected
    visits = table.column("visits").cast(pa.int64())
    assert content(found(explainer, table.set_column(4, "visits", visits), wish)) == expected


def test_columns_are_those_of_info(explainer: Explainer, scored: DiCoFlex, three: DiCoFlex) -> None:
    asked: list[tuple[Explainer, Request]] = [
        (explainer, Request(target="yes", n=1, constraints=Constraints(cost={"gain": 1.0}))),
        (scored, Request(target=at_least(540), n=1)),
        (three, Request(target="high", n=1)),
    ]
    from dicoflex.examples import rows_like

    for one, wish in asked:
        rows = rows_like(one.schema_, 12)
        direct = one.explain(rows, target=wish.target, n=1, constraints=wish.constraints, random_state=0)
        (part,) = found(one, pa.Table.from_pandas(rows), wish)
        assert part.answers.num_rows == len(direct) > 0
        extra = [name for name in part.answers.column_names if name not in ("row", "cf", "status", *rows.columns)]
        # A feature of the applicants is called `score`, too.
        assert sorted(name.removeprefix("info_") for name in extra) == sorted(direct.info.columns)


def test_rows_that_can_not_be_read_are_errors(explainer: Explainer, people: pd.DataFrame, wish: Request) -> None:
    good = people.drop(columns="customer").reset_index(drop=True)
    bad = good.astype({"gain": float, "visits": float})
    bad.loc[3, "gain"], bad.loc[5, "visits"], bad.loc[8, "city"] = np.inf, 2.5, None
    parts = found(explainer, pa.Table.from_pandas(bad), Request(target="yes", n=2, handle_unknown="error"), size=50)
    errors = whole(parts, "errors").to_pylist()
    assert [one["row"] for one in errors] == [3, 5, 8]
    assert [word in one["reason"] for one, word in zip(errors, ("infinite", "fractions", "missing"), strict=True)]
    check_each_row_once(parts, len(bad), 2)
    # The other rows have the answers that they have without the bad ones.
    clean = found(explainer, pa.Table.from_pandas(good), wish, size=50)
    kept = whole(clean, "answers").filter(pc.invert(pc.is_in(whole(clean, "answers")["row"], pa.array([3, 5, 8]))))
    assert digest(whole(parts, "answers")) == digest(kept)


def test_a_batch_of_nothing_but_errors(explainer: Explainer, people: pd.DataFrame, wish: Request) -> None:
    bad = people.drop(columns="customer").assign(gain=np.inf)
    parts = found(explainer, pa.Table.from_pandas(bad), wish)
    assert whole(parts, "errors").num_rows == len(bad)
    check_each_row_once(parts, len(bad), 2)


def test_values_that_training_never_had_are_replaced(explainer: Explainer, people: pd.DataFrame, wish: Request) -> None:
    rows = people.drop(columns="customer").reset_index(drop=True)
    rows.loc[[2, 4], "city"] = "Atlantis"
    parts = found(explainer, pa.Table.from_pandas(rows), wish)
    assert whole(parts, "errors").num_rows == 0
    check_each_row_once(parts, len(rows), 2)


def test_rows_without_a_chance_are_in_the_shortfall(explainer: Explainer, people: pd.DataFrame) -> None:
    rows = people.drop(columns="customer")
    held = Constraints(rules=["visits <= 4"], frozen=["visits"])
    parts = {size: found(explainer, pa.Table.from_pandas(rows), Request(target="yes", n=1, constraints=held), size=size)
             for size in (200, 1)}  # fmt: skip
    assert content(parts[200]) == content(parts[1])
    statuses = set(whole(parts[1], "shortfall")["status"].to_pylist())
    assert "contradictory" in statuses
    assert whole(parts[1], "answers").num_rows > 0
    check_each_row_once(parts[1], len(rows), 1)


def test_what_can_not_be_asked_is_refused_before_any_row(explainer: Explainer, people: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(people)
    refused: list[tuple[Request, type[Exception], str]] = [
        (Request(target="maybe"), QueryError, "target 'maybe' is unknown"),
        (Request(target=("yes", "no")), QueryError, "one for all"),
        (Request(target="yes", constraints=Constraints(frozen=["agee"])), ConstraintError, "agee"),
        (Request(target="yes", novel=True), QueryError, "remember"),
    ]
    for wish, error, text in refused:
        with pytest.raises(error, match=text):
            found(explainer, table, wish)
    with pytest.raises(QueryError, match="id column 'custmer' is unknown; did you mean 'customer'"):
        found(explainer, table, Request(target="yes"), id="custmer")
    with pytest.raises(QueryError, match="id column 'age' is a feature"):
        found(explainer, table, Request(target="yes"), id="age")
    with pytest.raises(QueryError, match="rows lack the column 'city'"):
        found(explainer, table.drop_columns("city"), Request(target="yes"))


def test_the_digest_tells_tables_apart() -> None:
    table = pa.table(
        {"id": ["a", "b", "c"], "n": [1, 2**53 + 1, None], "x": [0.5, None, -1.0], "b": [True, None, False]}
    )
    same = digest(table)
    assert digest(table.take([2, 0, 1])) == same
    assert digest(table.set_column(0, "id", table["id"].dictionary_encode())) == same
    for name, cells in [("id", ["a", "b", "d"]), ("n", [1, 2**53, None]), ("x", [0.5, 0.0, -1.0]),
                        ("b", [True, False, False]), ("n", [1, 2**53 + 1, 0])]:  # fmt: skip
        i = table.column_names.index(name)
        assert digest(table.set_column(i, name, pa.array(cells, type=table[name].type))) != same, name
    twice = pa.concat_tables([table, table[:1]])
    assert digest(twice) != same
    assert digest(table[:0]) == 0
