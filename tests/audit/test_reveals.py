"""All that a file says is listed, with the values themselves and the guarantee that holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import DiCoFlex, Schema, cli
from dicoflex.audit import Revealed, reveals
from dicoflex.audit.revealed import NOTHING, STATED
from dicoflex.generators import GENERATORS

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(
    {
        "age": RNG.integers(20, 60, 300),
        "pay": RNG.choice([10.5, 20.5, 30.5], 300),
        "job": np.append(["smith"], RNG.choice(["cook", "nurse"], 299)),
        "area": pd.Categorical(RNG.choice([1, 2], 300), categories=[1, 2, 7]),
    }
)
LABELS = np.where(ROWS["age"] > 40, "yes", "no")


def listed(model: DiCoFlex) -> dict[str, Revealed]:
    return {one.what: one for one in reveals(model.model_)}


@pytest.fixture(scope="module")
def told(quickly: Any) -> DiCoFlex:
    return quickly(ROWS, LABELS, min_count=5, coherence=True, remember_rows=True)


@pytest.mark.parametrize("name", GENERATORS)
def test_nothing_in_a_file_is_left_out(name: str, quickly: Any) -> None:
    model = quickly(ROWS, LABELS, name, min_count=5)
    header, arrays = model.model_.content()
    places = {place for one in reveals(model.model_) for place in one.places}
    parts = {"encoding.schema", "encoding.mean", "encoding.scale", *(key for key in header if key != "encoding")}
    assert set(arrays) | parts >= places
    assert places >= set(arrays) | (parts - {"encoding"})


def test_nothing_of_what_goes_together_is_left_out(told: DiCoFlex) -> None:
    header, arrays = told.model_.content()
    places = {place for one in reveals(told.model_) for place in one.places}
    assert places >= set(arrays)
    assert places >= set(header) - {"encoding"}


def test_values_are_those_of_the_file(told: DiCoFlex) -> None:
    found = listed(told)
    assert found["levels of job"].values == ("cook", "nurse")
    assert found["single values of pay"].values == (10.5, 20.5, 30.5)
    assert found["values at which pay may rest"].values == (10.5, 20.5, 30.5)
    assert found["least and greatest age"].values == (told.schema_["age"].minimum, told.schema_["age"].maximum)
    assert found["categories of area that no row has"].values == (7,)
    assert found["hashes of different training rows"].values == (len(told.model_.remembered.hashes),)
    assert "rows: 300" in found["counts and shares of rows"].values


def test_guarantees_are_those_that_hold(told: DiCoFlex, quickly: Any) -> None:
    found = listed(told)
    assert found["levels of job"].guarantee.startswith("min_count 5: at least 5 rows have each")
    assert found["labels"].guarantee == STATED
    assert "key that is in no file" in found["hashes of different training rows"].guarantee
    everything = listed(quickly(ROWS, LABELS, min_count=1))
    assert everything["levels of job"].guarantee == everything["single values of pay"].guarantee == NOTHING
    assert everything["levels of job"].values == ("cook", "nurse", "smith")
    given = listed(quickly(ROWS, LABELS, min_count=5, schema=Schema.infer(ROWS)))
    assert given["levels of job"].guarantee == STATED
    assert given["single values of pay"].guarantee.startswith("min_count 5")


def test_rows_in_plain_sight_are_called_so(quickly: Any) -> None:
    assert listed(quickly(ROWS, LABELS, "kde"))["training rows in plain sight"].guarantee.startswith("none")


def test_the_command_prints_it(told: DiCoFlex, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "m.dicoflex")
    told.save(path)
    assert cli.main(["inspect", path, "--reveals"]) == 0
    text = capsys.readouterr().out
    assert "levels of job" in text
    assert "cook, nurse" in text
    assert "smith" not in text
    assert cli.main(["inspect", path, "--reveals", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)
    assert [one["what"] for one in items] == [one.what for one in reveals(told.model_)]
    assert cli.main(["inspect", path]) == 0
