"""Surrogates for the black box: exported without loss, alike in any batch, and the better one kept."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from dicoflex.errors import ModelFileError
from dicoflex.learning import surrogate as learning
from dicoflex.learning.surrogate import learn, learn_trees
from dicoflex.surrogate import Surrogate, restore
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]

N = 600
LEARN = {"mlp": learning.learn_perceptron, "trees": learning.learn_trees}


def make_table(seed: int = 0) -> tuple[Encoding, np.ndarray]:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "c": rng.integers(0, 30, N),
            "d": rng.choice(["x", "y", "z"], N),
        }
    )
    encoding = Encoding.fit(frame, Schema.infer(frame))
    return encoding, encoding.encode(frame)


ENCODING, VALUES = make_table()
SCORE = VALUES[:, 0] + np.nan_to_num(VALUES[:, 1], nan=1.0) + (VALUES[:, 3] == 0)


def soft(n_classes: int) -> np.ndarray:
    """Probabilities that fall off smoothly around thresholds of a score."""
    centres = np.linspace(-1, 1.5, n_classes)
    weight = np.exp(-2 * (SCORE[:, None] - centres) ** 2)
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "STEPS", 400)
    monkeypatch.setattr(learning, "ROUNDS", 30)


@pytest.fixture(scope="module")
def surrogates() -> dict[str, Surrogate]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "STEPS", 400)
        patch.setattr(learning, "ROUNDS", 30)
        return {name: make(ENCODING, VALUES, soft(3), 0) for name, make in LEARN.items()}


@pytest.fixture(params=["mlp", "trees"])
def surrogate(request: pytest.FixtureRequest, surrogates: dict[str, Surrogate]) -> Surrogate:
    return surrogates[request.param]


# -- the export of the trees ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [True, False])
def test_exported_trees_equal_those_of_scikit_learn(n_classes: int, missing: bool) -> None:
    values = VALUES if missing else np.nan_to_num(VALUES)
    labels = soft(n_classes).argmax(axis=1)
    booster = HistGradientBoostingClassifier(max_iter=15, min_samples_leaf=5, early_stopping=False, random_state=0)
    with threadpool_limits(limits=1):
        booster.fit(values, labels)
    other = make_table(seed=1)[1] * 1.5
    other[::7] = np.nan
    forest = learning.exported(booster)
    for rows in (values, other):
        np.testing.assert_allclose(forest.probabilities(rows), booster.predict_proba(rows), atol=1e-9)


def test_soft_answers_weigh_as_they_are() -> None:
    """A black box that is never sure: the trees say so, too."""
    answers = np.tile([0.3, 0.7], (N, 1))
    found = learn_trees(ENCODING, VALUES, answers, 0).probabilities(VALUES)
    np.testing.assert_allclose(found, answers, atol=0.02)


def test_leaves_of_many_classes_do_not_run_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a hold, a softmax's leaves of few and light rows grow without end, and are certain of what is not so."""
    answers = soft(8) ** 8
    answers /= answers.sum(axis=1, keepdims=True)
    held = np.abs(learn_trees(ENCODING, VALUES, answers, 0).value).max()
    monkeypatch.setattr(learning, "HELD_BACK", 0.0)
    assert 2 * held < np.abs(learn_trees(ENCODING, VALUES, answers, 0).value).max()


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_class_that_no_row_has_keeps_its_column(absent: int) -> None:
    answers = soft(3)
    answers[:, absent] = 0.0
    answers /= answers.sum(axis=1, keepdims=True)
    for learn_one in LEARN.values():
        found = learn_one(ENCODING, VALUES, answers, 0).probabilities(VALUES)
        assert found.shape == (N, 3)
        assert found[:, absent].max() < 0.1
        assert (found.argmax(axis=1) == answers.argmax(axis=1)).mean() > 0.85


def test_a_single_class_in_sight() -> None:
    answers = np.tile([0.0, 1.0], (N, 1))
    for learn_one in LEARN.values():
        found = learn_one(ENCODING, VALUES, answers, 0).probabilities(VALUES)
        assert found.shape == (N, 2)
        assert (found.argmax(axis=1) == 1).all()


# -- both kinds -------------------------------------------------------------------------------------------------------


def test_probabilities(surrogate: Surrogate) -> None:
    found = surrogate.probabilities(VALUES)
    assert found.shape == (N, 3)
    assert found.dtype == np.float64
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert (found.argmax(axis=1) == soft(3).argmax(axis=1)).mean() > 0.85


def test_answers_do_not_depend_on_the_batch(surrogate: Surrogate) -> None:
    together = surrogate.probabilities(VALUES)
    alone = np.concatenate([surrogate.probabilities(VALUES[i : i + 1]) for i in range(60)])
    np.testing.assert_array_equal(together[:60], alone)
    np.testing.assert_array_equal(together[::-1], surrogate.probabilities(VALUES[::-1]))
    assert surrogate.probabilities(VALUES[:0]).shape == (0, 3)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_absurd_rows_get_finite_answers(surrogate: Surrogate) -> None:
    rows = VALUES[:4].copy()
    rows[:, 0] = [1e300, -1e300, 1e15, 0.0]
    rows[:, 1] = np.nan
    assert np.isfinite(surrogate.probabilities(rows)).all()


@pytest.mark.parametrize("kind", ["mlp", "trees"])
def test_same_seed_gives_the_same_surrogate(kind: str) -> None:
    a, b = (LEARN[kind](ENCODING, VALUES, soft(2), 5).arrays() for _ in range(2))
    assert list(a) == list(b)
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("seed", [2**32, 2**63 - 1])
def test_any_seed(seed: int) -> None:
    model, _ = learn(ENCODING, VALUES[:50], soft(2)[:50], seed=seed)
    np.testing.assert_allclose(model.probabilities(VALUES[:50]).sum(axis=1), 1.0)


# -- the better of two ------------------------------------------------------------------------------------------------


def steps() -> np.ndarray:
    """What only trees follow: a chessboard of two numbers."""
    board = (np.floor(VALUES[:, 2] / 3) + np.floor(VALUES[:, 0] * 2)).astype(int) % 2
    return np.eye(2)[board]


def smooth() -> np.ndarray:
    """What a perceptron follows at once: a line across two numbers."""
    return np.eye(2)[(VALUES[:, 0] / 0.5 + (VALUES[:, 2] - 15) / 8 > 0).astype(int)]


@pytest.mark.parametrize("answers", [steps, smooth])
def test_the_better_one_is_kept(answers: Callable[[], np.ndarray]) -> None:
    alone = {kind: learn(ENCODING, VALUES, answers(), seed=0, kinds=(kind,))[1] for kind in ("mlp", "trees")}
    found, agreement = learn(ENCODING, VALUES, answers(), seed=0)
    assert agreement == max(alone.values()) or agreement >= learning.GOOD_ENOUGH
    assert alone[found.kind] == agreement


def test_each_kind_wins_where_it_fits() -> None:
    assert learn(ENCODING, VALUES, smooth(), seed=0)[0].kind == "mlp"
    values = np.random.default_rng(0).normal(size=(2000, 4))
    values[:, 3] = np.abs(values[:, 3]).astype(int) % 3
    board = np.eye(2)[(np.floor(values[:, 0] * 2) + np.floor(values[:, 1] * 2)).astype(int) % 2]
    assert learn(ENCODING, values, board, seed=0)[0].kind == "trees"


def test_agreement_is_measured_on_rows_that_were_not_learned_from() -> None:
    noise = np.eye(2)[np.random.default_rng(0).integers(0, 2, N)]
    assert learn(ENCODING, VALUES, noise, seed=0)[1] < 0.75


@pytest.mark.parametrize("n", [1, 2, 7])
def test_hardly_any_rows(n: int) -> None:
    found, agreement = learn(ENCODING, VALUES[:n], soft(3)[:n], seed=0)
    assert found.probabilities(VALUES).shape == (N, 3)
    assert 0 <= agreement <= 1


# -- files ------------------------------------------------------------------------------------------------------------


def test_restored_surrogate_gives_the_same(surrogate: Surrogate) -> None:
    arrays = surrogate.arrays()
    assert all(isinstance(a, np.ndarray) and a.dtype != object for a in arrays.values())
    again = restore(surrogate.kind, ENCODING, 3, arrays)
    np.testing.assert_array_equal(again.probabilities(VALUES), surrogate.probabilities(VALUES))


def test_unknown_kind() -> None:
    with pytest.raises(ModelFileError, match="surrogate of unknown kind 'oracle'"):
        restore("oracle", ENCODING, 3, {})


def test_absent_arrays_are_refused(surrogate: Surrogate) -> None:
    for name in surrogate.arrays():
        arrays = {k: v for k, v in surrogate.arrays().items() if k != name}
        with pytest.raises(ModelFileError, match=f"lacks the array '{name}'"):
            restore(surrogate.kind, ENCODING, 3, arrays)


def test_arrays_of_other_shapes_are_refused(surrogate: Surrogate) -> None:
    for name, array in surrogate.arrays().items():
        for wrong in (array[:-1], array[None], array.astype(np.float16), array.ravel()[:0]):
            if name == "start" and wrong.ndim == 1 and wrong.dtype == array.dtype:
                continue  # fewer trees are a forest, too
            with pytest.raises(ModelFileError):
                restore(surrogate.kind, ENCODING, 3, {**surrogate.arrays(), name: wrong})


def test_other_numbers_of_classes_are_refused(surrogate: Surrogate) -> None:
    for n_classes in (2, 4):
        with pytest.raises(ModelFileError, match=r"array '(bias2|baseline)' is"):
            restore(surrogate.kind, ENCODING, n_classes, surrogate.arrays())


def test_other_schema_is_refused(surrogates: dict[str, Surrogate]) -> None:
    frame = pd.DataFrame({"a": [0.5, 1.5]})
    other = Encoding.fit(frame, Schema.infer(frame))
    for surrogate in surrogates.values():
        with pytest.raises(ModelFileError, match=r"'weight0' is|that the schema does not have"):
            restore(surrogate.kind, other, 3, surrogate.arrays())


@pytest.mark.parametrize(("name", "value"), [("left", 0), ("right", -1), ("left", 10**6), ("feature", 4)])
def test_trees_that_lead_nowhere_are_refused(name: str, value: int, surrogates: dict[str, Surrogate]) -> None:
    """A node that points back would be walked for ever; one that points outside reads other memory."""
    arrays = {k: v.copy() for k, v in surrogates["trees"].arrays().items()}
    inner = np.flatnonzero(arrays["feature"] >= 0)[3]
    arrays[name][inner] = value
    with pytest.raises(ModelFileError, match=f"array '{name}'"):
        restore("trees", ENCODING, 3, arrays)


@pytest.mark.parametrize("value", [-1, 10**9])
def test_trees_that_start_outside_are_refused(value: int, surrogates: dict[str, Surrogate]) -> None:
    arrays = {k: v.copy() for k, v in surrogates["trees"].arrays().items()}
    arrays["start"][0] = value
    with pytest.raises(ModelFileError, match="array 'start'"):
        restore("trees", ENCODING, 3, arrays)


def test_no_walk_through_trees_is_longer_than_the_file(surrogates: dict[str, Surrogate]) -> None:
    """One tree a million times, or a tree that runs on into the next, would be walked for hours."""
    arrays = {k: v.copy() for k, v in surrogates["trees"].arrays().items()}
    with pytest.raises(ModelFileError, match="'start' has trees that overlap"):
        restore("trees", ENCODING, 3, arrays | {"start": np.zeros(10**6, dtype=np.int64)})
    inner = np.flatnonzero(arrays["feature"] >= 0)[0]
    arrays["right"][inner] = arrays["start"][1]
    with pytest.raises(ModelFileError, match="'right' points out of its tree"):
        restore("trees", ENCODING, 3, arrays)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_surrogates_that_are_not_finite_are_refused(wrong: float, surrogates: dict[str, Surrogate]) -> None:
    """0.1.0 (9aa4d8c) took them."""
    for kind, names in (("mlp", ("weight0", "bias1", "weight2")), ("trees", ("value", "baseline"))):
        for name in names:
            arrays = {k: v.copy() for k, v in surrogates[kind].arrays().items()}
            arrays[name].ravel()[0] = wrong
            with pytest.raises(ModelFileError, match=f"'{name}' holds numbers that are not finite"):
                restore(kind, ENCODING, 3, arrays)


# -- the choice near the decision ----------------------------------------------------------------------------------


class Says:
    """A surrogate that says what it is told to."""

    kind = "mlp"

    def __init__(self, said: np.ndarray) -> None:
        self.said = said

    def probabilities(self, values: np.ndarray, *, each: int = 1) -> np.ndarray:  # noqa: ARG002
        return self.said


def test_errors_far_from_the_decision_do_not_choose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning, "Perceptron", Says)
    monkeypatch.setattr(learning, "Forest", Says)
    monkeypatch.setattr(learning, "Both", lambda net, trees: (net, trees))
    yes = np.r_[np.full(60, 0.6), np.full(200, 0.99)]
    truth = np.column_stack([1 - yes, yes])

    def off(near: float, far: float) -> Says:
        moved = yes - np.r_[np.full(60, near), np.full(200, far)]
        return Says(np.column_stack([1 - moved, moved]))

    sharp, rough = off(0.02, 0.2), off(0.09, 0.0)
    assert learning._best([rough, sharp], VALUES, truth, thorough=True)[0] is sharp
    # Two that err to either side are best together.
    one, other = off(0.08, 0.0), off(-0.08, 0.0)
    assert learning._best([one, other], VALUES, truth, thorough=True)[0] == (one, other)
    # Without thoroughness it is the share of labels that counts.
    wrong = off(0.2, 0.0)
    assert learning._best([wrong, sharp], VALUES, truth, thorough=False)[0] is sharp
