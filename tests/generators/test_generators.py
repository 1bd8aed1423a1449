"""Every property of a density, on every density in the registry."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from pydantic import ValidationError

from dicoflex.constraints import Constraints
from dicoflex.errors import ModelFileError, SettingError
from dicoflex.generators import GENERATORS, get
from dicoflex.generators.base import Context, Generator, Table
from dicoflex.generators.flow_pass import condition, run
from dicoflex.generators.flows import Maf
from dicoflex.limits.limits import Limits
from dicoflex.neighbours import Pool, nearest
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

FLOWS = ["maf", "nice", "realnvp"]
ON_REALS = [*FLOWS, "kde"]
ROWS = 300


@pytest.fixture(params=list(GENERATORS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def table() -> Table:
    return mixed_table()


@pytest.fixture(scope="module")
def pairs(table: Table) -> tuple[Context, np.ndarray]:
    return training_pairs(table)


def mixed_table() -> Table:
    """Rows of every kind, a number that may be missing and one with a point mass among them; three classes."""
    rng = np.random.default_rng(0)
    income = np.where(rng.random(ROWS) < 0.5, 0.0, rng.gamma(2.0, 500.0, ROWS))
    age = pd.array(rng.integers(18, 80, ROWS), dtype="Int64")
    age[rng.random(ROWS) < 0.1] = pd.NA
    frame = pd.DataFrame(
        {
            "age": age,
            "income": income,
            "job": rng.choice(["cook", "nurse", "pilot", "smith"], ROWS),
            "grade": pd.Categorical(rng.choice(list("abc"), ROWS), categories=list("abc"), ordered=True),
            "member": rng.random(ROWS) < 0.4,
            "visits": rng.poisson(3.0, ROWS),
        }
    )
    labels = np.digitize(income / 1000 + frame["member"], [0.4, 1.2]).astype(np.int64)
    encoding = Encoding.fit(frame, Schema.infer(frame))
    return Table(encoding, encoding.encode(frame), labels, 3)


def number_table() -> Table:
    """Two numbers that go together; the first is below -0.5 in one class and above 0.5 in the other."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=ROWS)
    first += np.sign(first) / 2
    frame = pd.DataFrame({"a": first, "b": 0.8 * first + 0.6 * rng.normal(size=ROWS)})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    return Table(encoding, encoding.encode(frame), (first > 0).astype(np.int64), 2)


def training_pairs(table: Table, n: int = 256) -> tuple[Context, np.ndarray]:
    """Random conditions, and for each one of the nearest rows of the target class."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, len(table.values), n)
    target = (table.labels[rows] + rng.integers(1, table.n_classes, n)) % table.n_classes
    frozen = rng.random((n, table.values.shape[1])) < 0.25
    context = Context(table.values[rows], target, rng.choice([0.01, 0.25, 2.0], n), frozen, np.zeros(n))
    pool = Pool.group(table.encoding.parts(table.values), table.labels, table.n_classes)
    parts = table.encoding.parts(context.query)
    found = nearest(parts, pool, target=target, p=context.p, mask=frozen, k=8).rows
    answers = table.values[found[np.arange(n), rng.integers(0, 8, n)]]
    return context, np.where(frozen, context.query, answers)


def make(name: str, table: Table, **settings: Any) -> Generator:
    return get(name).create(table, get(name).Config(**settings), seed=0)


def train(model: Generator, pairs: tuple[Context, np.ndarray], steps: int = 60, lr: float = 3e-3) -> None:
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        optimiser.zero_grad()
        model.loss(*pairs, generator).backward()
        optimiser.step()


def loss(model: Generator, pairs: tuple[Context, np.ndarray]) -> float:
    return float(model.loss(*pairs, torch.Generator().manual_seed(1)).detach())


def draw(model: Generator, context: Context, n: int = 5, first: int = 0) -> np.ndarray:
    return model.sample(context, n, row_keys(context.query, seed=0), first)[0]


def assert_within(table: Table, context: Context, draws: np.ndarray) -> None:
    """Frozen values are the query's; all others are values that the schema knows."""
    frozen = np.broadcast_to(context.frozen[:, None, :], draws.shape)
    query = np.broadcast_to(context.query[:, None, :], draws.shape)
    np.testing.assert_array_equal(draws[frozen], query[frozen])
    for j, feature in enumerate(table.encoding.schema.features):
        values = draws[:, :, j]
        if not feature.is_number:
            assert np.isin(values, np.arange(feature.n_states)).all()
            continue
        assert feature.missing or not np.isnan(values).any()
        known = values[~np.isnan(values)]
        assert ((known >= feature.minimum) & (known <= feature.maximum)).all()
        if feature.kind == "integer":
            assert (known == np.rint(known)).all()


# -- the registry -----------------------------------------------------------------------------------------------------


def test_names_and_settings(name: str) -> None:
    cls = get(name)
    assert cls.name == name
    with pytest.raises(ValidationError):
        cls.Config(no_such_setting=1)


def test_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match="generator 'mafs' is unknown; did you mean 'maf'"):
        get("mafs")


# -- likelihood -------------------------------------------------------------------------------------------------------


def test_training_lowers_the_loss(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    model = make(name, table)
    before = loss(model, pairs)
    train(model, pairs)
    assert np.isfinite(before)
    assert loss(model, pairs) < before - 0.1


def test_loss_is_the_mean_negative_log_likelihood(table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    for name in FLOWS:
        model = make(name, table, noise=0.0, number_noise=0.0)
        assert loss(model, pairs) == pytest.approx(-model.log_prob(*pairs).mean(), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ON_REALS)
def test_density_integrates_to_one(name: str) -> None:
    table = number_table()
    model = make(name, table)
    train(model, training_pairs(table), steps=30)
    axis = np.linspace(-12.0, 12.0, 301)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    context = training_pairs(table)[0].take(np.zeros(len(points), dtype=np.int64))
    density = np.exp(model.log_prob(context, points * table.encoding.scale + table.encoding.mean))
    assert density.sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_log_prob_does_not_depend_on_the_batch(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    context, answers = pairs
    model = make(name, table)
    together = model.log_prob(context, answers)
    assert together.dtype == np.float64
    alone = [model.log_prob(context.take(slice(i, i + 1)), answers[i : i + 1]) for i in range(40)]
    np.testing.assert_array_equal(together[:40], np.concatenate(alone))
    np.testing.assert_array_equal(together[::-1], model.log_prob(context.take(slice(None, None, -1)), answers[::-1]))


@pytest.mark.slow
def test_many_answers_to_few_queries_are_as_likely_as_one_by_one(
    name: str, table: Table, pairs: tuple[Context, np.ndarray]
) -> None:
    """What answers to one query share is worked out once, and no bit depends on that."""
    model = make(name, table)
    context, answers = pairs[0].take(slice(0, 6)), pairs[1][:40]
    answers = np.concatenate([answers, context.query, answers[:3]])
    for of in (np.arange(len(answers)) % 6, np.sort(np.arange(len(answers)) % 6)):
        expected = model.log_prob(context.take(of), answers)
        np.testing.assert_array_equal(model.log_prob(context, answers, of), expected)
    one = context.take(slice(2, 3))
    found = model.log_prob(one, answers, np.zeros(len(answers), dtype=np.int64))
    np.testing.assert_array_equal(found, model.log_prob(one.repeat(len(answers)), answers))


def test_kernel_on_the_answer_itself_is_left_out(table: Table) -> None:
    """With its own kernel in the sum, the bandwidth would fall as far as it may."""
    model = make("kde", table, noise=0.0, number_noise=0.0)
    context, _ = training_pairs(table)
    rows, _ = model._neighbours(context)  # type: ignore[attr-defined]
    train(model, (context, table.values[rows[:, 0]]), steps=40, lr=3e-2)
    assert (np.exp(model._log_bandwidth().detach().numpy()) > 0.02).all()  # type: ignore[attr-defined]


# -- the compiled pass against zuko -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", FLOWS)
@pytest.mark.parametrize(
    "settings", [{}, {"hidden_layers": 1, "hidden_features": 7}, {"hidden_layers": 3, "layers": 2}]
)
def test_compiled_pass_equals_zuko(
    name: str, settings: dict[str, int], table: Table, pairs: tuple[Context, np.ndarray]
) -> None:
    context, answers = pairs
    model: Any = make(name, table, **settings)
    train(model, pairs, steps=20, lr=1e-2)
    program, c = model._program(), model._conditions(context)
    z = np.random.default_rng(0).normal(size=(len(context), table.encoding.n_reals))
    x = z.copy()
    log_det = run(program, condition(program, c), x, 1, True)
    with torch.no_grad():
        flow = model.flow(torch.from_numpy(c)).transform
        theirs = flow.inv(torch.from_numpy(z).float())
        reals = torch.from_numpy(table.encoding.to_reals(answers))
        density = model.flow(torch.from_numpy(c)).log_prob(reals)
    np.testing.assert_allclose(x, theirs.numpy(), atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(model.log_prob(context, answers), density.numpy(), atol=1e-2, rtol=1e-4)
    back = x.copy()
    np.testing.assert_allclose(run(program, condition(program, c), back, 1, False), log_det, atol=1e-8)
    np.testing.assert_allclose(back, z, atol=1e-8)


def test_every_real_is_read_even_with_fewer_units_than_reals() -> None:
    table = mixed_table()
    width = table.encoding.n_reals
    model: Any = make("maf", table, hidden_features=4)
    for transform in model.flow.transform.transforms:
        masks = [layer.mask.numpy() for layer in transform.hyper if hasattr(layer, "mask")]
        read = masks[0][:, :width].any(axis=0)
        assert read.sum() == width - 1
        assert not read[transform.order.numpy().argmax()]


# -- draws ------------------------------------------------------------------------------------------------------------


def test_draws_are_within_the_schema(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    model = make(name, table)
    train(model, pairs, steps=20)
    draws = draw(model, pairs[0], n=20)
    assert draws.shape == (256, 20, 6)
    assert_within(table, pairs[0], draws)
    assert len(np.unique(draws[:, :, 1])) > 100


@pytest.mark.parametrize("factor", [0.0, 1e3, -1e6, np.nan, np.inf])
def test_absurd_weights_give_sane_rows(
    name: str, factor: float, table: Table, pairs: tuple[Context, np.ndarray]
) -> None:
    model = make(name, table)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(factor)
    assert_within(table, pairs[0], draw(model, pairs[0]))
    assert np.isfinite(loss(model, pairs))
    assert not np.isnan(model.log_prob(*pairs)).any()


def test_one_bad_row_does_not_spoil_the_gradient(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    context, answers = pairs
    query = context.query.copy()
    query[0, 1] = 1e30
    model = make(name, table)
    odd = Context(query, context.target, context.p, context.frozen, context.confidence)
    model.loss(odd, answers, torch.Generator().manual_seed(0)).backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


@pytest.mark.slow
def test_draws_do_not_depend_on_the_batch(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    context = pairs[0].take(slice(0, 40))
    model = make(name, table)
    train(model, pairs, steps=10)
    together = draw(model, context)
    alone = np.concatenate([draw(model, context.take(slice(i, i + 1))) for i in range(40)])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together[::-1], draw(model, context.take(slice(None, None, -1))))


def test_densities_that_come_with_draws_are_theirs(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    context = pairs[0].take(slice(0, 40))
    model = make(name, table)
    draws, log_density = model.sample(context, 5, row_keys(context.query, seed=0), 0)
    if log_density is not None:
        expected = model.log_prob(context.repeat(5), draws.reshape(200, -1)).reshape(40, 5)
        np.testing.assert_allclose(log_density, expected, atol=1e-3)


def test_draws_under_limits_obey_what_is_said_of_one_feature(
    name: str, table: Table, pairs: tuple[Context, np.ndarray]
) -> None:
    """By construction, or because they are moved inside; before anything is dropped."""
    bound = Constraints(
        ranges={"age": (25, 60)}, decrease=["income"], allowed={"job": ["cook", "smith"]}, steps={"visits": 2}
    )
    model = make(name, table)
    train(model, pairs, steps=10)
    limits = Limits.build(bound, table.encoding, pairs[0].query, pairs[0].frozen)
    able = np.array([reason is None for reason in limits.reasons])
    context, limits = replace(pairs[0], frozen=limits.frozen).take(able), limits.take(able)
    draws, _ = model.sample(context, 6, row_keys(context.query, seed=0), 0, limits)
    rows = table.encoding.snap(draws.reshape(-1, 6))
    which = np.repeat(np.arange(len(context)), 6)
    assert able.sum() > 200
    assert not limits.broken(rows, context.query[which], which).any()
    assert table.encoding.differs(rows, context.query[which]).any(axis=1).mean() > 0.8
    again = model.sample(
        context.take(slice(3, 9)), 6, row_keys(context.query[3:9], seed=0), 0, limits.take(slice(3, 9))
    )
    np.testing.assert_array_equal(again[0], draws[3:9])


def test_first_goes_on_with_the_stream(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    model = make(name, table)
    parts = [draw(model, pairs[0], n=5), draw(model, pairs[0], n=5, first=5)]
    np.testing.assert_array_equal(draw(model, pairs[0], n=10), np.concatenate(parts, axis=1))


def test_no_draws_and_no_queries(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    model = make(name, table)
    assert draw(model, pairs[0], n=0).shape == (256, 0, 6)
    assert draw(model, pairs[0].take(slice(0, 0))).shape == (0, 5, 6)


@pytest.mark.slow
def test_draws_follow_the_target(name: str) -> None:
    """Of two classes that share no values, a trained density gives rows of the one asked for."""
    table = number_table()
    model = make(name, table)
    context, answers = training_pairs(table)
    free = ~context.frozen[:, 0]
    context, answers = context.take(free), answers[free]
    train(model, (context, answers), steps=200, lr=1e-2)
    got = (draw(model, context, n=20)[:, :, 0] > 0).astype(int)
    # Few rows make wide cells, and one of them lies across the boundary of the classes.
    assert (got == context.target[:, None]).mean() > 0.8


def test_one_column(name: str) -> None:
    frame = pd.DataFrame({"a": np.random.default_rng(0).normal(size=50)})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    table = Table(encoding, encoding.encode(frame), (frame["a"] > 0).to_numpy().astype(np.int64), 2)
    model = make(name, table)
    pairs = training_pairs(table, 32)
    train(model, pairs, steps=3)
    assert_within(table, pairs[0], draw(model, pairs[0]))


# -- state ------------------------------------------------------------------------------------------------------------


def test_seed_alone_settles_the_weights(name: str, table: Table) -> None:
    torch.manual_seed(7)
    expected = torch.random.get_rng_state()
    a, b = make(name, table).state(), make(name, table).state()
    assert torch.equal(torch.random.get_rng_state(), expected)
    assert list(a) == list(b)
    for key in a:
        np.testing.assert_array_equal(a[key], b[key])


def test_restored_model_gives_the_same(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    model = make(name, table)
    train(model, pairs, steps=5)
    state = model.state()
    assert all(isinstance(array, np.ndarray) and array.dtype != object for array in state.values())
    torch.manual_seed(99)
    again = get(name).restore(table.encoding, table.n_classes, model.config, state)
    np.testing.assert_array_equal(draw(model, pairs[0]), draw(again, pairs[0]))
    np.testing.assert_array_equal(model.log_prob(*pairs), again.log_prob(*pairs))
    train(model, pairs, steps=1)
    np.testing.assert_array_equal(again.log_prob(*pairs), get_again(name, table, state).log_prob(*pairs))


def get_again(name: str, table: Table, state: dict[str, np.ndarray]) -> Generator:
    return get(name).restore(table.encoding, table.n_classes, get(name).Config(), state)


def test_wrong_state_is_refused_by_name(name: str, table: Table) -> None:
    state = make(name, table).state()
    key = next(iter(state))
    with pytest.raises(ModelFileError, match=key):
        get_again(name, table, {k: v for k, v in state.items() if k != key})
    with pytest.raises(ModelFileError, match="stranger"):
        get_again(name, table, {**state, "stranger": np.zeros(1)})
    with pytest.raises(ModelFileError, match=key):
        get_again(name, table, {**state, key: state[key][:-1]})


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(name: str, table: Table, wrong: float) -> None:
    """0.1.0 (9aa4d8c) took them."""
    state = make(name, table).state()
    key = {"mixed": "net.inner", "kde": "theta"}.get(name, "transform.transforms.0.hyper.0.weight")
    array = state[key].copy()
    array.ravel()[-1] = wrong
    with pytest.raises(ModelFileError, match="not finite"):
        get_again(name, table, state | {key: array})


def test_arrays_of_another_dtype_are_refused(name: str, table: Table) -> None:
    """In 0.1.0 (9aa4d8c) each of them took half a minute of compilation, or came back as something else."""
    state = make(name, table).state()
    for key, array in state.items():
        other = np.float64 if array.dtype == np.float32 else np.float32
        with pytest.raises(ModelFileError, match=f"{key}.*not {array.dtype}"):
            get_again(name, table, state | {key: array.astype(other)})


@pytest.mark.parametrize("size", [{"layers": 10**6}, {"hidden_layers": 10**12}, {"hidden_features": 10**9}])
@pytest.mark.parametrize("flow", ["maf", "nice", "realnvp"])
def test_settings_of_flows_larger_than_their_arrays_are_refused_before_room_is_made(
    flow: str, size: dict[str, int], table: Table
) -> None:
    """0.1.0 (9aa4d8c) made the flow first: it was at it for minutes, or ran out of memory."""
    state = make(flow, table).state()
    with mock.patch.object(torch.nn, "Linear", side_effect=AssertionError("made")):
        with pytest.raises(ModelFileError, match=r"fewer arrays|lacks the array|of shape"):
            get(flow).restore(table.encoding, table.n_classes, get(flow).Config(**size), state)
        get_again(flow, table, state)


@pytest.mark.parametrize("flow", ["maf", "nice", "realnvp"])
@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_flows_of_any_width_are_restored(flow: str, columns: int) -> None:
    """A table of one real has a chain of another sort; the arrays are named by zuko, not by us."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=30) for i in range(columns)})
    encoding = Encoding.fit(frame, Schema.infer(frame))
    values, labels = encoding.encode(frame), rng.integers(0, 2, 30)
    model = get(flow).create(Table(encoding, values, labels, 2), get(flow).Config(layers=3, hidden_layers=1), seed=0)
    again = get(flow).restore(encoding, 2, model.config, model.state())
    context = Context(values, labels, np.ones(30), np.zeros(values.shape, dtype=bool), np.zeros(30))
    np.testing.assert_array_equal(model.log_prob(context, values), again.log_prob(context, values))
    again.to(torch.device("cpu"))
    assert {k: v.tobytes() for k, v in again.state().items()} == {k: v.tobytes() for k, v in model.state().items()}


def test_orders_and_couplings_that_are_none_are_refused(table: Table) -> None:
    for flow, key in (("maf", "transform.transforms.1.order"), ("realnvp", "transform.transforms.1.mask")):
        state = make(flow, table).state()
        for wrong in (np.zeros_like(state[key]), np.ones_like(state[key])):
            with pytest.raises(ModelFileError, match=key.rpartition(".")[2]):
                get_again(flow, table, state | {key: wrong})


@pytest.mark.parametrize("wrong", [-1.0, 0.5, 1e12, np.nan, np.inf])
def test_rows_of_a_kernel_density_are_rows_of_the_table(wrong: float, table: Table) -> None:
    state = make("kde", table).state()
    for j, feature in enumerate(table.encoding.schema.features):
        values = state["values"].copy()
        values[3, j] = wrong
        if not feature.is_number or np.isinf(wrong) or (np.isnan(wrong) and not feature.missing):
            with pytest.raises(ModelFileError, match="'values' has values that"):
                get_again("kde", table, state | {"values": values})
        else:
            get_again("kde", table, state | {"values": values})


def test_a_kernel_density_looks_for_no_more_rows_than_there_are(
    table: Table, pairs: tuple[Context, np.ndarray]
) -> None:
    """In 0.1.0 (9aa4d8c) a file could ask for more neighbours than there is memory for."""
    state = make("kde", table).state()
    greedy = get("kde").restore(table.encoding, table.n_classes, get("kde").Config(k=10**12), state)
    modest = get("kde").restore(table.encoding, table.n_classes, get("kde").Config(k=len(table.values)), state)
    np.testing.assert_allclose(greedy.log_prob(*pairs), modest.log_prob(*pairs))


def test_a_restored_model_is_the_same_under_other_defaults_of_torch(name: str, table: Table) -> None:
    """In 0.1.0 (9aa4d8c) it took the dtype that is usual beside other libraries, and another name."""
    state = make(name, table).state()
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        again = get_again(name, table, state).state()
    finally:
        torch.set_default_dtype(before)
    assert {k: (v.dtype, v.tobytes()) for k, v in again.items()} == {
        k: (v.dtype, v.tobytes()) for k, v in state.items()
    }


def test_masks_that_are_not_autoregressive_are_refused(table: Table) -> None:
    state = make("maf", table).state()
    masks = {k: np.ones_like(v) for k, v in state.items() if k.endswith("mask")}
    with pytest.raises(ModelFileError, match="mask"):
        Maf.restore(table.encoding, 3, Maf.Config(), {**state, **masks})


def test_moves_to_a_device(name: str, table: Table, pairs: tuple[Context, np.ndarray]) -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = make(name, table)
    here = draw(model, pairs[0])
    moved = model.to(device)
    assert {p.device.type for p in moved.parameters()} == {device.type}
    np.testing.assert_array_equal(here, draw(moved, pairs[0]))
