"""Warming up: small models of every sort ship with the package, and every shape of call is asked of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dicoflex.cli import main
from dicoflex.model import Model
from dicoflex.runtime.compiled import folder
from dicoflex.warming import EXAMPLES, rows_like, warm


def test_every_sort_of_model_ships() -> None:
    models = {path.stem: Model.load(path) for path in EXAMPLES}
    assert {(model.generator.name, model.stand_in.kind) for model in models.values()} >= {
        ("mixed", "mlp"), ("mixed", "trees"), ("kde", "mlp"),
    }  # fmt: skip
    assert models["perceptron"].coherence is not None
    assert {feature.kind.value for feature in models["perceptron"].schema.features} == {
        "continuous", "integer", "categorical", "ordinal", "boolean",
    }  # fmt: skip


def test_rows_are_what_the_schema_knows() -> None:
    model = Model.load(EXAMPLES[0])
    rows = rows_like(model.schema, 30)
    model.encoding.encode(rows)
    assert rows.isna().any().any()
    assert rows.equals(rows_like(model.schema, 30))
    assert not rows.equals(rows_like(model.schema, 30, seed=1))


@pytest.mark.slow
def test_the_command_warms_up_and_says_where(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    flow = next(path for path in EXAMPLES if path.stem == "flow")
    assert warm(Model.load(flow), sizes=(1,)) > 20
    assert main(["warm", str(flow)]) == 0
    assert f"kept in {folder()}" in capsys.readouterr().out
    assert main(["warm", str(tmp_path / "none.dicoflex")]) == 3
