"""Exact dependencies: found on all rows, followed in every answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, cli, load
from dicoflex.coherence.dependencies import Dependencies
from dicoflex.errors import ModelFileError, SchemaError
from dicoflex.learning.dependencies import find_dependencies
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

N = 600


def loans() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    low = rng.integers(600, 800, N)
    rate, amount = np.round(rng.uniform(1, 9, N), 2), rng.integers(10, 400, N) * 100
    grade = rng.choice(list("abcd"), N)
    return pd.DataFrame(
        {
            "low": low,
            "high": low + 4,
            "rate": rate,
            "amount": amount,
            "interest": rate * amount,
            "fees": rng.integers(0, 50, N),
            "grade": grade,
            "band": np.where(np.isin(grade, ["a", "b"]), "good", "poor"),
        }
    ).assign(total=lambda f: f["amount"] + f["fees"])


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Encoding.fit(loans(), Schema.infer(loans()))


@pytest.fixture(scope="module")
def found(encoding: Encoding) -> Dependencies:
    return find_dependencies(encoding.schema, encoding.encode(loans()))


def test_every_kind_is_found_and_said_in_words(encoding: Encoding, found: Dependencies) -> None:
    assert sorted(one.describe(encoding.schema) for one in found.found) == [
        "band follows from grade",
        "high = low + 4",
        "interest = rate × amount",
        "total = amount + fees",
    ]


def test_each_can_be_switched_off(found: Dependencies) -> None:
    schema = Schema.infer(loans(), independent=["high", "band"])
    assert Schema.from_json(schema.to_json()) == schema
    left = find_dependencies(schema, Encoding.unit(schema).encode(loans()))
    assert {name for name, _ in left.told(schema)} == {"interest", "total"}
    assert {name for name, _ in found.told(schema)} == {"interest", "total", "high", "band"}
    with pytest.raises(SchemaError, match="column 'hihg' is unknown; did you mean 'high'"):
        Schema.infer(loans(), independent=["hihg"])
    assert "independent" not in Schema.infer(loans()).to_json()
    with pytest.raises(SchemaError, match="feature 'x' is unknown"):
        Schema.from_json(schema.to_json().replace('"band"\n  ]', '"x"\n  ]'))


def test_the_command_line_shows_them_and_switches_them_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, out = tmp_path / "loans.csv", tmp_path / "schema.json"
    loans().to_csv(table, index=False)
    assert cli.main(["schema", str(table), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for words in ("high = low + 4", "band follows from grade", "--no-dependency high"):
        assert words in said
    assert cli.main(["schema", str(table), "--no-dependency", "high,total", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "high = low" not in said
    assert "band follows from grade" in said
    assert Schema.from_json(out).independent == ("high", "total")


@pytest.mark.slow
def test_what_is_switched_off_counts_as_a_change_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = loans()[["low", "high", "rate", "grade"]]
    labels = np.where(rows["low"] > 700, "yes", "no")
    quick = {"training": {"epochs": 2, "min_steps": 0}, "fit_config": {"passes": 1, "rounds": 0}, "random_state": 0}
    refused = rows[labels == "no"].head(8)
    tied, free = (
        DiCoFlex(schema=Schema.infer(rows, independent=names), **quick).fit(rows, labels) for names in ([], ["high"])
    )
    assert tied.dependencies_ == {"high": "high = low + 4"}
    assert free.dependencies_ == {}
    asked = {"target": "yes", "n": 3, "min_plausibility": 0.0, "random_state": 0}
    kept = tied.explain(refused, **asked).frame
    assert len(kept) > 0
    assert (kept["high"] == kept["low"] + 4).all()
    loose = tied.explain(refused, coherent=False, **asked)
    assert loose.dependent == []
    assert (loose.frame["high"] != loose.frame["low"] + 4).any()
    assert free.explain(refused, **asked).dependent == []
    tied.save(tmp_path / "m.dicoflex")
    assert cli.main(["inspect", str(tmp_path / "m.dicoflex")]) == 0
    assert "high = low + 4" in capsys.readouterr().out
    free.save(tmp_path / "m.dicoflex")
    assert load(tmp_path / "m.dicoflex").schema_.independent == ("high",)


def test_nothing_is_found_where_nothing_is() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 4)), columns=list("abcd"))
    assert find_dependencies(Schema.infer(frame), frame.to_numpy()).found == ()


def test_one_row_that_differs_is_enough(encoding: Encoding) -> None:
    frame = loans()
    frame.loc[7, "high"] += 1
    names = [one.describe(encoding.schema) for one in find_dependencies(encoding.schema, encoding.encode(frame)).found]
    assert not [name for name in names if name.startswith("high =")]


def test_what_holds_up_to_rounding_is_found_and_kept() -> None:
    """A charge in cents is minutes times a rate to half a cent; a tolerance of 1e-6 did not see it."""
    rng = np.random.default_rng(1)
    minutes, price, pieces = np.round(rng.gamma(4, 45, N), 1), np.round(rng.uniform(1, 60, N), 2), rng.gamma(3, 3, N)
    frame = pd.DataFrame({"minutes": minutes, "noise": rng.normal(size=N), "charge": np.round(minutes * 0.17, 2)})
    frame = frame.assign(price=price, pieces=np.round(pieces, 3), paid=np.round(price * np.round(pieces, 3), 2))
    frame = frame.assign(bill=np.round(0.19 * frame["price"] + minutes + 2.5, 1))
    for min_count in (1, 5):
        schema = Schema.infer(frame, min_count=min_count)
        values = np.clip(frame.to_numpy(), [f.minimum for f in schema.features], [f.maximum for f in schema.features])
        found = find_dependencies(schema, values, min_count=min_count)
        assert sorted(one.describe(schema) for one in found.found) == [
            "bill = minutes + 0.19 × price + 2.5",
            "charge = 0.17 × minutes",
            "paid = price × pieces",
        ]
        row, query = values[3].copy(), values[3].copy()
        row[0] = 100.3
        found.settle(row[None], query[None])
        assert row[2] == 17.05
        assert not found.broken(row[None], query[None])[0]


def test_few_units_prove_no_dependency() -> None:
    """Numbers of few values are half a unit from everything."""
    rng = np.random.default_rng(0)
    grade = rng.integers(0, 4, N)
    frame = pd.DataFrame({"points": grade * 10 + rng.normal(0, 1, N), "grade": grade})
    assert not find_dependencies(Schema.infer(frame), frame.to_numpy()).found


def test_what_depends_follows_and_else_stays(encoding: Encoding, found: Dependencies) -> None:
    query = encoding.encode(loans().head(1))[0]
    at = {name: encoding.schema.position(name) for name in encoding.schema.names}
    moved = query.copy()
    moved[at["low"]] += 10
    moved[at["grade"]] = (moved[at["grade"]] + 2) % 4
    moved[at["high"]] = 0.0
    assert found.settle(moved[None], query[None])[0]
    assert moved[at["high"]] == moved[at["low"]] + 4
    assert encoding.decode(moved[None])["band"].iloc[0] == ("good" if moved[at["grade"]] < 2 else "poor")
    still = query.copy()
    still[at["fees"]] = query[at["fees"]]
    assert found.settle(still[None], query[None])[0]
    np.testing.assert_array_equal(still, query)


def test_broken_rows_are_told_apart(encoding: Encoding, found: Dependencies) -> None:
    values = encoding.encode(loans().head(50))
    query = np.roll(values, 1, axis=0)
    assert not found.broken(values, query).any()
    wrong = values.copy()
    wrong[:, encoding.schema.position("high")] += 1
    assert found.broken(wrong, query).all()


def instalments(n: int = 3000, wrong: int = 0) -> pd.DataFrame:
    """Loans that are paid back in equal parts; the first of them are typed in wrongly."""
    rng = np.random.default_rng(1)
    loan, months = rng.integers(10, 400, n) * 100, rng.choice([36, 60], n)
    interest = rng.integers(10, 50, n) / 2
    rate = interest / 1200
    part = np.round(loan * rate / (1 - (1 + rate) ** -months), 2)
    part[:wrong] *= 3
    return pd.DataFrame({"loan": loan, "interest": interest, "months": months.astype(str), "part": part})


@pytest.fixture(scope="module")
def lent() -> tuple[Schema, Dependencies]:
    schema = Schema.infer(instalments())
    return schema, find_dependencies(schema, Encoding.unit(schema).encode(instalments(wrong=9)), min_count=5)


def test_an_amount_times_a_rate_is_found_though_some_rows_are_wrong(lent: tuple[Schema, Dependencies]) -> None:
    schema, found = lent
    assert [one.describe(schema) for one in found.found] == ["part = loan × a rate by interest and months"]
    assert Dependencies.restore(schema, found.state()).found == found.found
    # No rate tells one row's amounts to the last digit.
    assert all(float(f"{rate:.5g}") == rate for rate in found.found[0].values)
    values = Encoding.unit(schema).encode(instalments(wrong=50))
    assert find_dependencies(schema, values, min_count=5).found == ()


def test_an_instalment_follows_from_the_loan(lent: tuple[Schema, Dependencies]) -> None:
    schema, found = lent
    row = Encoding.unit(schema).encode(
        pd.DataFrame({"loan": [10_000], "interest": [12.0], "months": ["36"], "part": [0]})
    )
    rate = 0.12 / 12
    assert found.settle(row, row - 1).all()
    assert row[0, 3] == pytest.approx(10_000 * rate / (1 - (1 + rate) ** -36), abs=0.05)
    between = row.copy()
    between[0, 1] = 12.2
    assert found.settle(between, row).all()
    assert row[0, 3] < between[0, 3] < row[0, 3] + 2
    beyond = row.copy()
    beyond[0, 1] = 90.0
    assert not found.settle(beyond, row).any()


def test_a_rate_is_no_rate_where_numbers_are_apart_or_the_same_for_all() -> None:
    frame = instalments()
    loose = frame.assign(part=np.random.default_rng(0).permutation(frame["part"]))
    flat = frame.assign(part=2.5 * frame["loan"])
    for table in (loose, flat):
        schema = Schema.infer(table)
        found = find_dependencies(schema, Encoding.unit(schema).encode(table), min_count=5)
        assert [one.kind for one in found.found if one.kind == "rate"] == []


def test_a_forged_rate_is_refused(lent: tuple[Schema, Dependencies]) -> None:
    schema, found = lent
    one = found.state()[0]
    turned = one | {"keys": one["keys"][::-1]}
    for wrong in (turned, one | {"levels": [9] * len(one["keys"])}, one | {"of": [0, 1, 1]}, one | {"values": []}):
        with pytest.raises(ModelFileError, match="don't fit its schema"):
            Dependencies.restore(schema, [wrong])


def test_a_dependency_can_be_switched_off(encoding: Encoding, found: Dependencies) -> None:
    less = found.without([encoding.schema.position("band")])
    assert len(less.found) == len(found.found) - 1
    assert not less.followers[encoding.schema.position("band")]


def test_state_round_trip_and_rings(encoding: Encoding, found: Dependencies) -> None:
    assert Dependencies.restore(encoding.schema, found.state()).found == found.found
    ring = [
        {"kind": "linear", "follows": 0, "of": [1], "weights": [1.0]},
        {"kind": "linear", "follows": 1, "of": [0], "weights": [1.0]},
    ]
    one = {"kind": "linear", "follows": 0, "of": [1], "weights": [1.0]}
    for wrong in (ring, [one | {"follows": 99}], [one | {"weights": []}], [one | {"kind": "product"}], [one, one]):
        with pytest.raises(ModelFileError, match="don't fit its schema"):
            Dependencies.restore(encoding.schema, wrong)
    for wrong in (None, [one] * 99):
        with pytest.raises(ModelFileError, match="no list"):
            Dependencies.restore(encoding.schema, wrong)
    with pytest.raises(ModelFileError, match="a dependency that is none"):
        Dependencies.restore(encoding.schema, [one | {"decimals": "3"}])
