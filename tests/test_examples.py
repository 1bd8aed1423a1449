"""Small models of every sort ship with the package, and rows that fit them can be made."""

from __future__ import annotations

from dicoflex.examples import EXAMPLES, rows_like
from dicoflex.model import Model


def test_every_sort_of_model_ships() -> None:
    models = {path.stem: Model.load(path) for path in EXAMPLES}
    assert {(model.generator.name, model.surrogate.kind) for model in models.values()} >= {
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
