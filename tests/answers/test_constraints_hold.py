"""No answer breaks a constraint: random sets on every density, by the certificate and by a naive check of its own."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from dicoflex import Constraints, DiCoFlex, Schema
from dicoflex.answers import engine as answering
from dicoflex.answers.verification import verify
from dicoflex.errors import ConstraintError, QueryError
from dicoflex.generators import GENERATORS
from dicoflex.generators.base import Context
from dicoflex.limits.limits import Limits
from dicoflex.runtime.randomness import row_keys

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

ROWS = 10
PLAN = {
    ("mixed", "applicants"): 70,
    ("mixed", "parcels"): 70,
    ("maf", "applicants"): 16,
    ("nice", "applicants"): 16,
    ("realnvp", "applicants"): 16,
    ("kde", "applicants"): 16,
    ("kde", "parcels"): 16,
}

Row = dict[Any, Any]
Get = Callable[[str, str], tuple[DiCoFlex, pd.DataFrame, pd.DataFrame]]


@pytest.fixture(autouse=True, scope="module")
def few_candidates() -> Iterator[None]:
    """`explain` chooses from fewer, as densities that were hardly trained take many rounds for each."""
    with mock.patch.object(answering, "CANDIDATES", 16):
        yield


# -- tables ------------------------------------------------------------------------------------------------------


def make_parcels(n: int, seed: int) -> pd.DataFrame:
    """Wide whole numbers, decimals in steps, narrow floats, missing values of every sort, names that are no words."""
    rng = np.random.default_rng(seed)

    def sparse(values: Any, dtype: str) -> Any:
        found = pd.array(values, dtype=dtype)
        found[rng.random(n) < 0.08] = pd.NA
        return found

    return pd.DataFrame(
        {
            "weight": rng.integers(0, 600, n).astype("int16"),
            "fee": np.where(rng.random(n) < 0.08, np.nan, np.round(rng.integers(0, 120, n) * 0.05, 2)),
            7: rng.choice(np.arange(1, 9) / 10, n).astype("float32"),
            "depth": sparse(rng.normal(10, 3, n), "Float64"),
            "stops": rng.poisson(4.0, n).astype("float64"),
            "ok": sparse(rng.random(n) < 0.5, "boolean"),
            "kind": sparse(rng.choice(["box", "tube", "bag"], n), "string"),
            "size": rng.choice([1, 2, 3, 5], n),
        }
    )


SIZES = [1, 2, 3, 5]


def heavy(frame: pd.DataFrame) -> np.ndarray:
    score = frame["weight"] / 300 + 0.4 * (frame["size"] > 2) + frame["stops"] / 8
    return np.where(score > 1.7, "yes", "no")


@pytest.fixture(scope="module")
def get(
    models: Callable[[str], DiCoFlex],
    applicants: pd.DataFrame,
    queries: pd.DataFrame,
    quickly: Callable[..., DiCoFlex],
) -> Get:
    """A fitted model, its rows, and rows to ask for, by density and table."""
    fitted: dict[str, DiCoFlex] = {}
    table = make_parcels(320, seed=0)

    def parcels(generator: str) -> DiCoFlex:
        if generator not in fitted:
            cells = {"generator_config": {"max_cells": 12}} if generator == "mixed" else {}
            schema = Schema.infer(table, orders={"size": SIZES})
            fitted[generator] = quickly(table, heavy(table), generator, schema=schema, **cells)
        return fitted[generator]

    def found(generator: str, name: str) -> tuple[DiCoFlex, pd.DataFrame, pd.DataFrame]:
        if name == "parcels":
            return parcels(generator), table, beyond(make_parcels(60, seed=1), weight=700, fee=0.07)
        pool = pd.concat([queries, applicants.head(40)])
        return models(generator), applicants, beyond(pool, gain=90_000.0, price=5.13)

    return found


def beyond(rows: pd.DataFrame, **values: float) -> pd.DataFrame:
    """The rows, some with values that lie outside the limits or between the steps of what was seen."""
    rows = rows.copy()
    for name, value in values.items():
        rows.loc[rows.index[:: len(values) + 5], name] = value
    return rows


# -- random sets ---------------------------------------------------------------------------------------------------

Says = Callable[[Row], bool]


def both(*values: Any) -> bool:
    return all(value is not None for value in values)


RULES: dict[str, dict[str, Says]] = {
    "applicants": {
        "age >= 30": lambda r: both(r["age"]) and r["age"] >= 30,
        "if member == true then grade in ['a', 'b']": lambda r: not r["member"] or r["grade"] in ("a", "b"),
        "if job == 'pilot' then age >= 25 and visits <= 6": lambda r: (
            r["job"] != "pilot" or (both(r["age"]) and r["age"] >= 25 and r["visits"] <= 6)
        ),
        "gain <= 150 * price": lambda r: r["gain"] <= 150 * r["price"],
        "visits * 8 <= age or age is missing": lambda r: r["age"] is None or r["visits"] * 8 <= r["age"],
        "not (city == 'Rome' and area == 5)": lambda r: not (r["city"] == "Rome" and r["area"] == 5),
        "grade >= 'b' or score < 0.5": lambda r: r["grade"] in ("b", "c", "d") or r["score"] < 0.5,
        "price + visits != 12": lambda r: r["price"] + r["visits"] != 12,
        "gain / price <= 120": lambda r: r["gain"] / r["price"] <= 120,
        "score * score <= 4": lambda r: r["score"] * r["score"] <= 4,
        "job is not missing or member == false": lambda r: r["job"] is not None or not r["member"],
        "visits in [1, 2, 3, 4, 5]": lambda r: r["visits"] in (1, 2, 3, 4, 5),
        "5 <= price < 22 and -3 < score": lambda r: 5 <= r["price"] < 22 and r["score"] > -3,
    },
    "parcels": {
        "weight >= 40 * stops": lambda r: r["weight"] >= 40 * r["stops"],
        "fee is missing or fee <= 5": lambda r: r["fee"] is None or r["fee"] <= 5,
        "`7` * 10 <= stops + 6": lambda r: r[7] * 10 <= r["stops"] + 6,
        "if kind == 'tube' then size <= 3": lambda r: r["kind"] != "tube" or r["size"] <= 3,
        "not (fee > 1)": lambda r: r["fee"] is None or not r["fee"] > 1,
        "ok is missing or ok == true or weight < 400": lambda r: (
            r["ok"] is None or r["ok"] is True or r["weight"] < 400
        ),
        "depth > stops": lambda r: both(r["depth"]) and r["depth"] > r["stops"],
        "kind in ['box', 'bag'] or size != 5": lambda r: r["kind"] in ("box", "bag") or r["size"] != 5,
        "weight / (size_ + 1) >= 0".replace("size_", "stops"): lambda r: r["weight"] / (r["stops"] + 1) >= 0,
    },
}


Links = Callable[[Row, Row], bool]
LINKED: dict[str, dict[str, Links]] = {
    "applicants": {
        "age is missing or age >= was.age": lambda r, q: r["age"] is None or (both(q["age"]) and r["age"] >= q["age"]),
        "visits - was.visits <= 2 * (grade - was.grade) + 3": lambda r, q: (
            r["visits"] - q["visits"] <= 2 * ("abcd".index(r["grade"]) - "abcd".index(q["grade"])) + 3
        ),
        "if job != was.job then visits <= 3": lambda r, q: (
            r["job"] is None or q["job"] is None or r["job"] == q["job"] or r["visits"] <= 3
        ),
        "if changed(city) then price <= 1.5 * was.price": lambda r, q: (
            r["city"] == q["city"] or r["price"] <= 1.5 * q["price"]
        ),
        "grade <= was.grade or changed(member)": lambda r, q: r["grade"] <= q["grade"] or r["member"] != q["member"],
        "gain <= (if member == was.member then was.gain + 500 else 2000)": lambda r, q: (
            r["gain"] <= (q["gain"] + 500 if r["member"] == q["member"] else 2000)
        ),
    },
    "parcels": {
        "weight >= was.weight - 100 * (size - was.size)": lambda r, q: (
            r["weight"] >= q["weight"] - 100 * (SIZES.index(r["size"]) - SIZES.index(q["size"]))
        ),
        "not changed(kind) or stops > was.stops": lambda r, q: r["kind"] == q["kind"] or r["stops"] > q["stops"],
        "size >= was.size": lambda r, q: SIZES.index(r["size"]) >= SIZES.index(q["size"]),
        "was.fee is missing or fee is not missing": lambda r, q: q["fee"] is None or r["fee"] is not None,
    },
}
Follows = Callable[[Row, Row], Any]
CONSEQUENCES: dict[str, dict[Any, tuple[str, Follows]]] = {
    "applicants": {
        "visits": (
            "if changed(job) then 1 else was.visits", lambda r, q: 1 if r["job"] != q["job"] else q["visits"]
        ),
        "gain": (
            "min(was.gain + 100 * (price - was.price), 20000)",
            lambda r, q: min(q["gain"] + 100 * (r["price"] - q["price"]), 20000),
        ),
        "city": (
            "if changed(area) then 'Rome' else was.city",
            lambda r, q: "Rome" if r["area"] != q["area"] else q["city"],
        ),
    },
    "parcels": {
        "weight": (
            "was.weight + 10 * (size - was.size)",
            lambda r, q: q["weight"] + 10 * (SIZES.index(r["size"]) - SIZES.index(q["size"])),
        ),
        7: (
            "if changed(kind) then 0.3 else was.`7`",
            lambda r, q: float(np.float32(0.3)) if r["kind"] != q["kind"] else q[7],
        ),
        "ok": ("if stops > was.stops then true else was.ok", lambda r, q: True if r["stops"] > q["stops"] else q["ok"]),
    },
}  # fmt: skip


@dataclass
class Wish:
    """A random set as the fields of `Constraints`, in their JSON forms, and what its rules and consequences mean."""

    fields: dict[str, Any] = field(default_factory=dict)
    says: list[Says] = field(default_factory=list)
    links: list[Links] = field(default_factory=list)
    follows: dict[Any, Follows] = field(default_factory=dict)


class Maker:
    """Random sets of constraints for a table, most of which leave something to change."""

    def __init__(self, table: str, schema: Schema, frame: pd.DataFrame, seed: int) -> None:
        self.table, self.schema, self.frame = table, schema, frame
        self.rng = np.random.default_rng(seed)
        self.numbers = [f.name for f in schema.features if f.is_number]
        self.levels = [f.name for f in schema.features if not f.is_number]
        self.ordered = [f.name for f in schema.features if f.is_number or f.kind.value == "ordinal"]

    def wish(self) -> Wish:
        kinds = ["frozen", "ranges", "increase", "decrease", "allowed", "forbidden", "transitions", "max_changes"]
        kinds += ["rules", "steps", "cost", "linked", "consequences"]
        made = Wish()
        for kind in self.rng.permutation(kinds)[: self.rng.choice([1, 2, 3, 4, 6], p=[0.3, 0.25, 0.2, 0.15, 0.1])]:
            getattr(self, f"_{kind}")(made)
        if self.rng.random() < 0.15:
            made.fields["strict"] = True
        return made

    def pick(self, names: list[Any], most: int) -> list[Any]:
        count = int(self.rng.integers(1, min(most, len(names)) + 1))
        return [names[i] for i in self.rng.permutation(len(names))[:count]]

    def seen(self, name: Any, count: int) -> list[Any]:
        """Different values of a column, as plain Python values; None for missing."""
        column = self.frame[name].sample(60, random_state=int(self.rng.integers(1_000_000)))
        values = [plain(v) for v in column]
        if column.dtype == np.float32:  # as a person would write them
            values = [float(f"{v:.7g}") for v in values]
        return list(dict.fromkeys(values))[:count]

    def two(self, name: Any) -> tuple[float, float]:
        present = [v for v in self.seen(name, 60) if v is not None]
        low, high = np.quantile(present, np.sort(self.rng.choice([0, 0.1, 0.3, 0.7, 0.9, 1], 2, replace=False)))
        return (float(low), float(high)) if self.rng.random() < 0.7 else (float(np.floor(low)), float(np.ceil(high)))

    def _frozen(self, made: Wish) -> None:
        made.fields["frozen"] = [name for name in self.pick(list(self.schema.names), 4) if name not in made.follows]

    def _ranges(self, made: Wish) -> None:
        made.fields["ranges"] = [[name, self._range(name)] for name in self.pick(self.numbers, 3)]

    def _range(self, name: Any) -> Any:
        low, high = self.two(name)
        width = float(high - low) + 1
        forms = [
            (low, high),
            (low, None),
            (None, high),
            {"relative": [-0.1, 0.25]},
            {"relative": [0.0, 1.0]},
            {"relative": [-0.5, None]},
            {"delta": [-width, width / 3]},
            {"delta": [0, 5]},
            [{"delta": [-width, width]}, (low, high)],
        ]
        return forms[self.rng.integers(len(forms))]

    def _increase(self, made: Wish) -> None:
        made.fields["increase"] = [n for n in self.pick(self.ordered, 3) if n not in made.fields.get("decrease", ())]

    def _decrease(self, made: Wish) -> None:
        made.fields["decrease"] = [n for n in self.pick(self.ordered, 3) if n not in made.fields.get("increase", ())]

    def _allowed(self, made: Wish) -> None:
        made.fields["allowed"] = [
            [name, self.seen(name, int(self.rng.integers(2, 8)))] for name in self.pick(list(self.schema.names), 3)
        ]

    def _forbidden(self, made: Wish) -> None:
        taken = dict(made.fields.get("allowed", ()))
        made.fields["forbidden"] = [
            [name, found]
            for name in self.pick(list(self.schema.names), 3)
            if (found := [v for v in self.seen(name, int(self.rng.integers(1, 4))) if v not in taken.get(name, ())])
        ]

    def _transitions(self, made: Wish) -> None:
        moves = {}
        for name in self.pick(self.levels, 2):
            states = self.seen(name, 9)
            moves[name] = [[origin, self.pick(states, 2)] for origin in self.pick(states, 2)]
        made.fields["transitions"] = list(moves.items())

    def _max_changes(self, made: Wish) -> None:
        made.fields["max_changes"] = int(self.rng.integers(1, 5))

    def _rules(self, made: Wish) -> None:
        known = RULES[self.table]
        texts = self.pick(list(known), 2)
        made.fields["rules"] = [*made.fields.get("rules", ()), *texts]
        made.says = [known[text] for text in texts]

    def _linked(self, made: Wish) -> None:
        known = LINKED[self.table]
        texts = self.pick(list(known), 2)
        made.fields["rules"] = [*made.fields.get("rules", ()), *texts]
        made.links = [known[text] for text in texts]

    def _consequences(self, made: Wish) -> None:
        known = CONSEQUENCES[self.table]
        taken = [*made.fields.get("frozen", ()), *dict(made.fields.get("cost", ()))]
        names = [name for name in self.pick(list(known), 2) if name not in taken]
        made.fields["consequences"] = [[name, known[name][0]] for name in names]
        made.follows = {name: known[name][1] for name in names}

    def _steps(self, made: Wish) -> None:
        steps = {name: [2, 3, 5] if self.schema[name].is_whole else [0.1, 0.25, 0.5] for name in self.numbers}
        taken = dict(made.fields.get("allowed", ()))
        made.fields["steps"] = [
            [n, float(self.rng.choice(steps[n]))] for n in self.pick(self.numbers, 2) if n not in taken
        ]

    def _cost(self, made: Wish) -> None:
        costs = []
        for name in self.pick([name for name in self.schema.names if name not in made.follows], 4):
            unit = name in self.numbers and self.rng.random() < 0.5
            spread = float(self.frame[name].std()) if unit else 1.0
            costs.append([name, {"per_unit": 1 / spread} if unit else float(self.rng.integers(1, 4))])
        made.fields["cost"] = costs
        if self.rng.random() < 0.8:
            made.fields["max_cost"] = float(self.rng.choice([1.0, 2.5, 4.0]))


# -- a naive check, straight from what each constraint means -----------------------------------------------------------


def plain(value: Any) -> Any:
    """A cell as a plain Python value; None where it is missing."""
    if pd.isna(value):
        return None
    return value.item() if isinstance(value, np.generic) else value


def rows_of(frame: pd.DataFrame) -> list[Row]:
    columns = {name: [plain(v) for v in frame[name]] for name in frame.columns}
    return [{name: column[i] for name, column in columns.items()} for i in range(len(frame))]


def stored(column: pd.Series, values: Any) -> Any:
    """Listed numbers as the column holds them: 0.1 is another number in 32 bits."""
    narrow = column.dtype == np.float32 and isinstance(values, list)
    return [v if v is None else float(np.float32(v)) for v in values] if narrow else values


class Naive:
    """Which constraints a row breaks, by plain words."""

    def __init__(self, wish: Wish, frame: pd.DataFrame, orders: dict[Any, list[Any]]) -> None:
        self.given, self.says, self.frame, self.orders = wish.fields, wish.says, frame, orders
        self.links, self.follows = wish.links, wish.follows
        self.strict = bool(wish.fields.get("strict"))

    def broken(self, query: Row, answer: Row) -> list[str]:
        changed = [n for n in query if query[n] != answer[n]]
        wrong = [f"frozen {n}" for n in self.given.get("frozen", ()) if not same_bits(query[n], answer[n])]
        for kind in ("ranges", "allowed", "forbidden", "transitions", "steps"):
            for name, given in self.given.get(kind, ()):
                listed = stored(self.frame[name], given) if kind in ("allowed", "forbidden") else given
                if not getattr(self, f"_{kind}")(listed, query[name], answer[name]):
                    wrong.append(f"{kind} {name}")
        for kind, sign in (("increase", 1), ("decrease", -1)):
            for name in self.given.get(kind, ()):
                if name in changed and not self._moved(name, query[name], answer[name], sign):
                    wrong.append(f"{kind} {name}")
        changed = [n for n in changed if n not in self.follows]
        if not changed:
            wrong.append("nothing changed of its own")
        if len(changed) > self.given.get("max_changes", math.inf):
            wrong.append("max_changes")
        if self._cost(query, answer, changed) > self.given.get("max_cost", math.inf) + 1e-8:
            wrong.append("max_cost")
        wrong += [f"consequence {n}" for n, made in self.follows.items() if not close(made(answer, query), answer[n])]
        wrong += ["linked rule" for links in self.links if not links(answer, query)]
        return wrong + ["rule" for says in self.says if not says(answer)]

    def _ranges(self, given: Any, query: Any, answer: Any) -> bool:
        parts = given if isinstance(given, list) else [given]
        return all(self._range(part, query, answer) for part in parts)

    def _range(self, given: Any, query: Any, answer: Any) -> bool:
        absolute = isinstance(given, tuple)
        if query == answer and (not self.strict or (query is None and not absolute)):
            return True
        if answer is None or (query is None and not absolute):
            return False
        ends = given if absolute else next(iter(given.values()))
        base, unit = (0.0, 1.0) if absolute else (query, abs(query) if "relative" in given else 1.0)
        low, high = ((None, 0.0) if end is None else (base + end * unit, abs(base) + abs(end * unit)) for end in ends)
        room = 0.0 if absolute else 1e-12
        above = low[0] is None or low[0] - room * low[1] <= answer
        return above and (high[0] is None or answer <= high[0] + room * high[1])

    def _allowed(self, given: Any, query: Any, answer: Any) -> bool:
        return self._is_free(query, answer) or answer in given

    def _forbidden(self, given: Any, query: Any, answer: Any) -> bool:
        return self._is_free(query, answer) or answer not in given

    def _is_free(self, query: Any, answer: Any) -> bool:
        return query == answer and not self.strict

    def _transitions(self, given: Any, query: Any, answer: Any) -> bool:
        return query == answer or all(answer in ends for origin, ends in given if origin == query)

    def _steps(self, step: float, query: Any, answer: Any) -> bool:
        if query == answer:
            return True
        return answer is not None and abs(answer / step - round(answer / step)) < 1e-6

    def _moved(self, name: Any, query: Any, answer: Any, sign: int) -> bool:
        if query is None or answer is None:
            return False
        order = self.orders.get(name)
        before, after = (query, answer) if order is None else (order.index(query), order.index(answer))
        return sign * (after - before) > 0

    def _cost(self, query: Row, answer: Row, changed: list[Any]) -> float:
        total = 0.0
        for name, weight in self.given.get("cost", ()):
            if name in changed and isinstance(weight, dict):
                known = query[name] is not None and answer[name] is not None
                total += weight["per_unit"] * (abs(answer[name] - query[name]) if known else 1.0)
            elif name in changed:
                total += weight
        return total


def close(one: Any, other: Any) -> bool:
    """Whether two values are one, numbers up to how their column holds them."""
    if isinstance(one, float | int) and isinstance(other, float | int):
        return abs(one - other) <= 1e-6 * max(1.0, abs(one)) or (abs(one - other) <= 0.5 and isinstance(other, int))
    return bool(one == other)


def same_bits(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)
    return type(one) is type(other) and one == other


# -- every density ---------------------------------------------------------------------------------------------------

ORDERS: dict[str, dict[Any, list[Any]]] = {"applicants": {"grade": list("abcd")}, "parcels": {"size": SIZES}}


@dataclass
class Tally:
    """What became of the cases: a query with a set is one."""

    cases: int = 0
    answered: int = 0
    draws: int = 0


def ask(model: DiCoFlex, rows: pd.DataFrame, wish: Wish, naive: Naive, tally: Tally) -> None:
    """Put one set to some rows, by `explain` and `sample`, and check all that comes back."""
    tally.cases += len(rows)
    try:
        bound = Constraints(**wish.fields)
        cfs = model.explain(rows, constraints=bound, n=4, random_state=tally.cases)
    except (ConstraintError, QueryError):
        return
    verdicts = cfs.verify()
    assert verdicts["holds"].all(), (wish.fields, verdicts[~verdicts["holds"]])
    check(naive, rows, cfs.frame, cfs.positions)
    got = np.bincount(cfs.positions, minlength=len(rows))
    short = cfs.shortfall.set_index("row")
    assert short["got"].to_dict() == {i: got[i] for i in range(len(rows)) if got[i] < 4}
    assert (short["reason"].str.len() > 20).all()
    # What no draw was, and a search found, the density may not know.
    drawn = ~np.isin(cfs.positions, list(cfs.searches))
    assert np.isfinite(cfs.info["log_density"][drawn]).all()
    able = np.setdiff1d(np.flatnonzero(got), list(cfs.searches))
    tally.answered += len(able)
    if len(able):
        draws = model.sample(rows.iloc[able], constraints=bound, n=6, random_state=tally.cases)
        positions = np.repeat(able, 6)
        assert len(draws) == len(positions)
        assert verify(rows, draws, positions, bound, model.schema_)["holds"].all(), wish.fields
        check(naive, rows, draws, positions)
        tally.draws += len(draws)


def check(naive: Naive, rows: pd.DataFrame, frame: pd.DataFrame, positions: np.ndarray) -> None:
    before = rows_of(rows)
    for place, answer in zip(positions, rows_of(frame), strict=True):
        assert not naive.broken(before[place], answer), (naive.given, before[place], answer)
        assert before[place] != answer


@pytest.mark.parametrize(("generator", "table"), PLAN)
def test_no_answer_and_no_draw_breaks_a_constraint(generator: str, table: str, get: Get) -> None:
    model, train, pool = get(generator, table)
    maker = Maker(table, model.schema_, train, seed=len(generator))
    tally = Tally()
    for _ in range(PLAN[generator, table]):
        rows = pool.sample(ROWS, random_state=tally.cases).reset_index(drop=True)
        wish = maker.wish()
        ask(model, rows, wish, Naive(wish, train, ORDERS[table]), tally)
    assert tally.cases == ROWS * PLAN[generator, table]
    assert tally.answered > 0.6 * tally.cases


def test_the_plan_has_enough_cases() -> None:
    assert ROWS * sum(PLAN.values()) >= 2000
    assert {generator for generator, _ in PLAN} == set(GENERATORS)


# -- before anything is dropped ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", ["applicants", "parcels"])
def test_what_the_default_density_draws_breaks_nothing_but_rules(table: str, get: Get) -> None:
    """Not even before the draws that break a rule are dropped."""
    model, train, pool = get("mixed", table)
    maker = Maker(table, model.schema_, train, seed=99)
    drawn = 0
    for number in range(60):
        wish = maker.wish()
        wish.fields.pop("consequences", None)  # these are set when a draw is finished
        rows = pool.sample(ROWS, random_state=number).reset_index(drop=True)
        if wish.says or wish.links:  # a draw that a rule leaves no way keeps even what may not stay
            wish.fields.pop("strict", None)
        try:
            bound = Constraints(**wish.fields)
            model.schema_.check_constraints(bound)
        except ConstraintError:
            continue
        raw = raw_draws(model, rows, bound, n=12)
        assert not raw.broken.any(), (wish.fields, raw.values[raw.broken], raw.own[raw.broken])
        assert np.isfinite(raw.density).all()
        drawn += len(raw.values)
    assert drawn > 3000


LATE: dict[str, Says] = {
    "visits in [1, 2, 3]": lambda r: r["visits"] in (1, 2, 3),
    "if member == true then grade in ['a', 'b']": lambda r: not r["member"] or r["grade"] in ("a", "b"),
    "area == 2": lambda r: r["area"] == 2,
}


@pytest.mark.parametrize("budget", [None, 1, 2])
@pytest.mark.parametrize("rule", LATE)
def test_the_default_density_looks_ahead_to_what_a_rule_needs(rule: str, budget: int | None, get: Get) -> None:
    """Hardly a draw is lost, though it is late features that have to make many of these queries obey."""
    model, _, pool = get("mixed", "applicants")
    raw = raw_draws(model, pool.reset_index(drop=True), Constraints(rules=[rule], max_changes=budget), n=20)
    own, obey = (
        np.mean([LATE[rule](row) for row in rows_of(frame)])
        for frame in (pool, model.model_.encoding.decode(raw.values))
    )
    assert own < 0.85
    assert obey > 0.95


LATE_LINKS: dict[str, Links] = {
    "visits < was.visits or visits <= 1": lambda r, q: r["visits"] < q["visits"] or r["visits"] <= 1,
    "grade > was.grade or grade == 'd'": lambda r, q: r["grade"] > q["grade"] or r["grade"] == "d",
    "price + 2 * (grade - was.grade) <= was.price - 1 or price <= 6": lambda r, q: (
        r["price"] + 2 * ("abcd".index(r["grade"]) - "abcd".index(q["grade"])) <= q["price"] - 1 or r["price"] <= 6
    ),
    "if changed(job) then city != was.city": lambda r, q: r["job"] == q["job"] or r["city"] != q["city"],
}


@pytest.mark.parametrize("rule", LATE_LINKS)
def test_the_default_density_looks_ahead_to_what_a_rule_says_of_the_query(rule: str, get: Get) -> None:
    model, _, pool = get("mixed", "applicants")
    rows = pool.reset_index(drop=True)
    raw = raw_draws(model, rows, Constraints(rules=[rule]), n=20)
    before, after = (rows_of(model.model_.encoding.decode(values)) for values in (raw.own, raw.values))
    free = rows_of(model.model_.encoding.decode(raw_draws(model, rows, Constraints(max_changes=9), n=20).values))
    assert np.mean([LATE_LINKS[rule](now, was) for now, was in zip(free, before, strict=False)]) < 0.85
    assert np.mean([LATE_LINKS[rule](now, was) for now, was in zip(after, before, strict=True)]) > 0.95


@dataclass
class Raw:
    """Draws straight from the density, their log densities, and what they are judged by.

    own: each draw's query. which: its number among the queries. limits: those of the set without its rules.
    """

    values: np.ndarray
    density: np.ndarray
    own: np.ndarray
    which: np.ndarray
    limits: Limits

    @property
    def broken(self) -> np.ndarray:
        return self.limits.broken(self.values, self.own, self.which)


def raw_draws(model: DiCoFlex, rows: pd.DataFrame, bound: Constraints, n: int) -> Raw:
    """`n` draws for each row that the set leaves a chance."""
    encoding = model.model_.encoding
    _, values = encoding.conform(rows)
    mask = np.tile(model.schema_.mask(list(bound.frozen)), (len(rows), 1))
    limits = Limits.build(bound, encoding, values, mask)
    able = np.array([reason is None for reason in limits.reasons])
    values, limits = values[able], limits.take(able)
    context = Context(values, np.zeros(len(values), dtype=np.int64), np.full(len(values), 0.25), limits.frozen,
                      np.zeros(len(values)))  # fmt: skip
    drawn, density = model.model_.generator.sample(context, n, row_keys(values, 0), 0, limits)
    assert density is not None
    which = np.repeat(np.arange(len(values)), n)
    found, own = drawn.reshape(len(which), values.shape[1]), values[which]
    found = np.where(encoding.differs(found, own), encoding.snap(found), own)
    free = Constraints(**{k: v for k, v in bound.model_dump().items() if k != "rules"})
    return Raw(found, density.reshape(-1), own, which, Limits.build(free, encoding, values, limits.frozen))


# -- the same rows again, however they are asked for -------------------------------------------------------------------

WISHES = {
    "applicants": {
        "frozen": ["city"],
        "ranges": {"gain": {"relative": [-0.5, 1.0]}, "age": {"delta": [-10, 20]}},
        "increase": ["grade"],
        "forbidden": {"visits": [2, 3]},
        "max_changes": 4,
        "rules": ["visits * 8 <= age or age is missing"],
    },
    "parcels": {
        "steps": {"fee": 0.25, "weight": 5},
        "allowed": {"kind": ["box", "bag"]},
        "cost": {"weight": {"per_unit": 0.01}, "stops": 1, "ok": 2},
        "max_cost": 3,
        "rules": ["not (fee > 4)"],
    },
}


@pytest.mark.parametrize(("generator", "table"), PLAN)
def test_batching_changes_nothing_under_constraints(generator: str, table: str, get: Get) -> None:
    model, _, pool = get(generator, table)
    rows = pool.sample(ROWS, random_state=5).reset_index(drop=True)
    given: dict[str, Any] = {"constraints": WISHES[table], "n": 3, "random_state": 3}
    together = model.explain(rows, **given)
    again = model.explain(rows, **given)
    pd.testing.assert_frame_equal(together.frame, again.frame)
    pd.testing.assert_frame_equal(together.info, again.info)
    assert len(together) > ROWS
    answered = np.unique(together.positions)
    parts = [model.explain(rows.iloc[[i]], **given) for i in answered]
    pd.testing.assert_frame_equal(together.frame, pd.concat([part.frame for part in parts]))
    draws = model.sample(rows.iloc[answered], **given)
    parts = [model.sample(rows.iloc[some], **given) for some in np.array_split(answered, 3)]
    pd.testing.assert_frame_equal(draws, pd.concat(parts))


def test_another_seed_gives_other_rows_under_constraints(get: Get) -> None:
    model, _, pool = get("mixed", "parcels")
    one, other = (model.sample(pool.head(4), constraints=WISHES["parcels"], n=8, random_state=i) for i in (0, 1))
    assert not one.equals(other)


# -- the density of restricted draws -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(quickly: Callable[..., DiCoFlex]) -> DiCoFlex:
    """A table whose rows can be counted: whole numbers in runs of several, cents, levels."""
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "count": rng.integers(0, 30, n),
            "tag": rng.choice(["a", "b", "c"], n),
            "cents": np.round(rng.integers(0, 12, n) * 0.05, 2),
            "on": rng.random(n) < 0.5,
        }
    )
    labels = np.where(frame["count"] + 10 * frame["on"] > 18, "yes", "no")
    schema = Schema.infer(frame, limits={"count": (0, 31), "cents": (0, 0.6)})
    return quickly(frame, labels, schema=schema, generator_config={"max_cells": 4})


TINY: dict[str, dict[str, Any]] = {
    "levels and budget": {"allowed": {"tag": ["a", "b"]}, "max_changes": 2},
    "a cut run": {"ranges": {"count": (7, 19), "cents": (0.1, 0.5)}, "increase": ["cents"]},
    "gaps in a run": {"forbidden": {"count": [3, 8, 12, 13, 21, 40], "cents": [0.1, 0.3]}},
    "points": {"steps": {"count": 3}, "allowed": {"cents": [0.05, 0.2, 0.25, 0.55]}},
    "a purse": {"cost": {"count": {"per_unit": 1}, "tag": 2, "on": 1}, "max_cost": 4},
    "has to change": {"ranges": {"count": (0, 9)}, "strict": True, "max_changes": 2},
    "a rule": {"rules": ["if on == true then count <= 9", "count >= 20 * cents"]},
    "rules about change": {
        "rules": ["count - was.count <= 20 * (cents - was.cents)", "if changed(tag) then on == true"]
    },
}


@pytest.mark.parametrize("case", TINY)
def test_restricted_draws_come_as_often_as_their_density_says(case: str, tiny: DiCoFlex) -> None:
    rows = pd.DataFrame({"count": [12], "tag": ["b"], "cents": [0.2], "on": [True]})
    draws = 40_000
    raw = raw_draws(tiny, rows, Constraints(**TINY[case]), n=draws)
    assert not raw.broken.any()
    _, first, number, count = np.unique(raw.values, axis=0, return_index=True, return_inverse=True, return_counts=True)
    np.testing.assert_allclose(raw.density, raw.density[first][number.ravel()], rtol=1e-9)
    expected = np.exp(raw.density[first])
    assert len(expected) > 20
    assert 0.97 < expected.sum() < 1 + 1e-9
    assert (np.abs(count - draws * expected) < 5.5 * np.sqrt(draws * expected) + 1).all()


def test_all_that_is_allowed_is_drawn(tiny: DiCoFlex) -> None:
    """Every number of a run but the forbidden ones and the query's own."""
    rows = pd.DataFrame({"count": [12], "tag": ["b"], "cents": [0.2], "on": [True]})
    bound = Constraints(frozen=["tag", "cents", "on"], forbidden={"count": [0, 8, 13, 31]}, ranges={"count": (0, 25)})
    raw = raw_draws(tiny, rows, bound, n=4000)
    assert set(raw.values[:, 0]) == set(range(26)) - {0, 8, 12, 13}
