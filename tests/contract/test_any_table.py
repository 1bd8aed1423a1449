"""Any table, whatever its columns: layout, values, frozen features and batching hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from comparing import LABELS, ROWS, Quickly, assert_layout, assert_within, same_bits
from dicoflex import Schema
from dicoflex.errors import SchemaError
from dicoflex.generators import GENERATORS


def column_of(kind: str, n: int, rng: np.random.Generator) -> Any:
    """A column of one of the sorts that a table may have."""
    holes = rng.random(n) < 0.2
    return {
        "int64": lambda: rng.integers(-5, 50, n),
        "uint8": lambda: rng.integers(0, 200, n).astype("uint8"),
        "whole floats": lambda: np.where(holes, np.nan, rng.integers(0, 9, n)),
        "float64": lambda: np.where(holes, np.nan, rng.normal(size=n) * 10.0 ** rng.integers(-5, 5)),
        "float32": lambda: np.where(rng.random(n) < 0.4, 0.0, rng.exponential(size=n)).astype("float32"),
        "Int64": lambda: pd.array(np.where(holes, None, rng.integers(0, 4, n)), dtype="Int64"),
        "Float64": lambda: pd.array(np.where(holes, None, rng.normal(size=n)), dtype="Float64"),
        "bool": lambda: rng.random(n) < 0.5,
        "boolean": lambda: pd.array(np.where(holes, None, rng.random(n) < 0.5), dtype="boolean"),
        "text": lambda: pd.Series(np.where(holes, None, rng.choice(list("abc"), n)), dtype="str"),
        "object": lambda: pd.Series(rng.choice(np.array([1, "1", True, 2.5], dtype=object), n), dtype=object),
        "category": lambda: pd.Categorical(np.where(holes, None, rng.choice([3, 1, 2], n)), categories=[3, 2, 1, 0]),
        "ordered": lambda: pd.Categorical(rng.choice(list("xyz"), n), categories=list("zyx"), ordered=True),
        "constant": lambda: np.full(n, 3),
    }[kind]()


KINDS = [
    *("int64", "uint8", "whole floats", "float64", "float32", "Int64", "Float64"),
    *("bool", "boolean", "text", "object", "category", "ordered", "constant"),
]


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=5),
    seed=st.integers(0, 10**6),
    generator=st.sampled_from(list(GENERATORS)),
    p=st.floats(0.01, 2.0),
    data=st.data(),
)
def test_any_table(
    kinds: list[str], seed: int, generator: str, p: float, data: st.DataObject, quickly: Quickly
) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    rows = pd.DataFrame({f"{kind} {i}": column_of(kind, n, rng) for i, kind in enumerate(["float64", *kinds])})
    rows.index = pd.Index(rng.integers(0, 20, n), name="number")
    first = rows.iloc[:, 0].rank().fillna(0).to_numpy()
    labels = np.array(["a", "b", "c"])[np.minimum(first // 14, rng.integers(1, 3)).astype(int)]
    frozen = data.draw(st.lists(st.sampled_from(list(rows.columns[1:])), unique=True))
    model = quickly(
        rows, labels, generator, training={"min_steps": 0, "epochs": 1}, fit_config={"passes": 1, "rounds": 0}
    )
    query = rows.iloc[rng.integers(0, n, 3)]
    draws = model.sample(query, target="b", n=5, p=p, frozen=frozen, random_state=0)
    cfs = model.explain(query, target="b", n=2, p=p, frozen=frozen, random_state=0)
    assert len(draws) == 15
    assert draws.index.get_level_values("row").tolist() == np.repeat(query.index, 5).tolist()
    for frame, own in ((draws, query.iloc[np.repeat(range(3), 5)]), (cfs.frame, query.iloc[cfs.positions])):
        assert_layout(frame, rows)
        assert_within(frame, model.schema_, own)
        assert all(same_bits(frame[name], own[name]) for name in frozen)
    assert len(cfs.changes()) == cfs.info["n_changed"].sum()
    assert (cfs.info["n_changed"] > 0).all()
    alone = [model.sample(query.iloc[[i]], target="b", n=5, p=p, frozen=frozen, random_state=0) for i in range(3)]
    pd.testing.assert_frame_equal(pd.concat(alone), draws, check_exact=True)


def test_schema_overrides_what_is_inferred(quickly: Quickly) -> None:
    schema = Schema.infer(ROWS, kinds={"age": "categorical"}, limits={"pay": (-10.0, 10.0)})
    model = quickly(ROWS, LABELS, schema=schema)
    draws = model.sample(ROWS.head(5), n=20, random_state=0)
    assert set(draws["age"]) <= set(ROWS["age"])
    assert_layout(draws, ROWS)
    with pytest.raises(SchemaError, match="narrower"):
        Schema.infer(ROWS, limits={"age": (30, 31)})
