"""The core's programs and its mixed density: what they refuse, and that batching, threads and machines don't matter."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex import _core
from dicoflex.constraints import Constraints
from dicoflex.generators.base import Context
from dicoflex.generators.mixed import Mixed, MixedConfig
from dicoflex.generators.mixed.cells import Grid
from dicoflex.generators.mixed.kernels import density_of
from dicoflex.generators.mixed.weights import shapes
from dicoflex.limits.limits import Limits
from dicoflex.runtime.randomness import row_keys
from dicoflex.runtime.threads import thread_limit, use_threads
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

CONFIG = MixedConfig(hidden=20, head=9, max_cells=12)
N = 30
DIGEST = "2b55e4356e2655da92c5"
"""Of draws, densities and scores: another compiler or processor must give the same bytes."""


def table() -> pd.DataFrame:
    """Levels, whole numbers, a point mass, missing values; all of them fractions that any machine makes alike."""
    rng = np.random.default_rng(3)
    size = rng.integers(0, 4000, 400) / 16
    return pd.DataFrame(
        {
            "job": np.array(["cook", "nurse", "pilot"])[rng.integers(0, 3, 400)],
            "visits": rng.integers(0, 9, 400),
            "gain": np.where(rng.integers(0, 2, 400) == 0, 0.0, size),
            "size": np.where(rng.integers(0, 9, 400) == 0, np.nan, rng.integers(-900, 900, 400) / 64),
        }
    )


@pytest.fixture(scope="module")
def encoding() -> Encoding:
    return Encoding.fit(table(), Schema.infer(table()))


@pytest.fixture(scope="module")
def density(encoding: Encoding) -> Mixed:
    """Weights that no training made, and any machine makes the same."""
    grid, rng = Grid.build(encoding, encoding.encode(table()), max_cells=12), np.random.default_rng(5)
    weights = {
        name: (rng.integers(-40, 41, shape) / 64).astype(np.float32) for name, shape in shapes(grid, 2, CONFIG).items()
    }
    return Mixed(grid, 2, CONFIG, weights)


@pytest.fixture(scope="module")
def context(encoding: Encoding) -> Context:
    values = encoding.encode(table().head(N))
    frozen = np.zeros(values.shape, dtype=bool)
    frozen[::3, 1] = True
    return Context(values, np.arange(N) % 2, np.ones(N), frozen, np.zeros(N))


def limits(encoding: Encoding, context: Context) -> Limits:
    wish = Constraints(
        max_changes=2, increase=["visits"], ranges={"gain": (0, 200)}, rules=["if job == 'cook' then gain <= 100"]
    )
    return Limits.build(wish, encoding, context.query, context.frozen)


def drawn(density: Mixed, context: Context, within: Limits | None, n: int = 40, first: int = 0) -> Any:
    return density.sample(context, n, row_keys(context.query, 7), first, within)


@pytest.mark.parametrize("limited", [False, True])
def test_batches_threads_and_pieces_of_a_stream_do_not_matter(
    density: Mixed, encoding: Encoding, context: Context, limited: bool
) -> None:
    within = limits(encoding, context) if limited else None
    before = thread_limit()
    found = []
    for n_threads in (1, 3):
        use_threads(n_threads)
        found.append(drawn(density, context, within))
    use_threads(before)
    (one, log_one), (three, log_three) = found
    assert one.tobytes() == three.tobytes()
    assert log_one.tobytes() == log_three.tobytes()
    rest, log_rest = drawn(density, context, within, 15, first=25)
    assert rest.tobytes() == one[:, 25:].tobytes()
    assert log_rest.tobytes() == log_one[:, 25:].tobytes()
    for i in (0, 17):
        at = np.array([i])
        alone, log_alone = drawn(density, context.take(at), None if within is None else within.take(at))
        assert alone[0].tobytes() == one[i].tobytes()
        assert log_alone[0].tobytes() == log_one[i].tobytes()


def test_a_draw_has_the_density_that_it_is_scored_by(density: Mixed, context: Context) -> None:
    rows, log_density = drawn(density, context, None)
    of = np.repeat(np.arange(N), rows.shape[1])
    scored = density.log_prob(context, rows.reshape(-1, rows.shape[2]), of)
    np.testing.assert_allclose(scored, log_density.ravel(), rtol=0, atol=1e-9)


def test_bits_are_the_same_on_every_machine(density: Mixed, encoding: Encoding, context: Context) -> None:
    """Written down once."""
    parts = [*drawn(density, context, None), *drawn(density, context, limits(encoding, context))]
    rows = parts[0][:, 0]
    parts.append(density.log_prob(context, rows))
    whole = hashlib.sha256()
    for part in parts:
        whole.update(np.where(np.isnan(part), 0.5, part).tobytes())
    assert whole.hexdigest()[:20] == DIGEST


@pytest.mark.parametrize("name", ["prefix", "query", "query_slope", "prefix_kept", "trunk.bias"])
def test_weights_of_another_shape_are_refused(density: Mixed, name: str) -> None:
    weights = density.state()
    own = {key.removeprefix("net."): array for key, array in weights.items() if key.startswith("net.")}
    with pytest.raises(ValueError, match="fit each other"):
        density_of({**own, name: own[name][:-1]}, density.grid)


def test_a_cell_that_is_not_there_is_refused(density: Mixed, context: Context) -> None:
    core, found = density._core_density(), density.grid.locate(context.query)
    given: dict[str, Any] = {
        "values": found.values, "settings": np.zeros((N, core_settings(density)), np.float32), "stuck": context.frozen,
        "own": found.cell, "where": found.place, "alone": found.alone, "exact": found.exact,
    }  # fmt: skip
    _core.Queries(core, **given)
    for cell in (-1, 10_000):
        own = found.cell.copy()
        own[3, 1] = cell
        with pytest.raises(ValueError, match="cell"):
            _core.Queries(core, **{**given, "own": own})


def core_settings(density: Mixed) -> int:
    return int(density.state()["net.settings"].shape[0])


# -- programs ---------------------------------------------------------------------------------------------------------

CONSTANT, VALUE, LOOKED_UP, ADD, NOT = 0, 1, 3, 5, 17


def program(*steps: tuple[int, int, int, float], table: tuple[float, ...] = ()) -> _core.Programs:
    """One program of steps: operation, feature, where its table starts, constant; rows have two features."""
    op, feature, start, constant = zip(*steps, strict=True) if steps else ((),) * 4
    return _core.Programs(
        np.array([0, len(steps)]), np.array(op, np.int64), np.zeros(len(steps), bool), np.array(feature, np.int64),
        np.array(start, np.int64), np.array(constant, float), np.array(table, float), n_features=2,
    )  # fmt: skip


@pytest.mark.parametrize(
    "steps",
    [
        (),
        ((ADD, 0, 0, 0.0),),
        ((VALUE, 0, 0, 0.0), (VALUE, 1, 0, 0.0)),
        ((VALUE, 2, 0, 0.0),),
        ((VALUE, -1, 0, 0.0),),
        ((21, 0, 0, 0.0),),
        ((LOOKED_UP, 0, 1, 0.0),),
        ((NOT, 0, 0, 0.0),),
        ((CONSTANT, 0, 0, 1.0),) * (_core.STACK + 1),
    ],
)
def test_programs_that_could_leave_their_stack_or_the_row_are_refused(steps: Any) -> None:
    with pytest.raises(ValueError, match="op"):
        program(*steps)


def test_a_code_outside_its_table_is_missing() -> None:
    """And what is missing is no truth, nor stops the run."""
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [np.nan, 0.0]])
    out = np.zeros((5, 1), dtype=bool)
    _core.hold(program((LOOKED_UP, 0, 0, 0.0), table=(0.0, 1.0)), values=rows, query=rows, out=out)
    assert out[:2, 0].tolist() == [False, True]
    consequences = _core.Consequences(
        program((LOOKED_UP, 0, 0, 0.0), table=(5.0, 7.0)), np.array([1]), np.array([3]), np.array([False]), n_features=2
    )
    settled = np.zeros(5, dtype=bool)
    _core.settle(consequences, values=rows, query=rows.copy(), settled=settled)
    assert settled.tolist() == [True, True, False, False, False]
    assert rows[:, 1].tolist() == [5.0, 7.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(("stored", "kind"), [(1, np.float32), (2, np.float16), (3, np.float64)])
def test_what_follows_is_stored_as_its_column_stores_it(stored: int, kind: type) -> None:
    values = np.random.default_rng(0).normal(size=500) * 100
    rows = np.column_stack([values, np.zeros(500)])
    same = _core.Consequences(
        program((VALUE, 0, 0, 0.0)), np.array([1]), np.array([stored]), np.array([False]), n_features=2
    )
    _core.settle(same, values=rows, query=rows.copy(), settled=np.zeros(500, dtype=bool))
    np.testing.assert_array_equal(rows[:, 1], values.astype(kind).astype(float))
