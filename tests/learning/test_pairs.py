"""Training pairs: of the target class, near, clamped where frozen, and as sparse as p asks for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dicoflex.generators.base import Table
from dicoflex.learning.pairs import Conditions, Pairs, Teacher, blend, clamp, point_masses, sparsify, weighted
from dicoflex.learning.steps import split_pairs
from dicoflex.model import Confidence
from dicoflex.neighbours import Pool
from dicoflex.table.encoding import Encoding
from dicoflex.table.schema import Schema

EXPONENTS = (0.01, 0.08, 0.25, 1.0, 2.0)
N = 300


@pytest.fixture(scope="module")
def table() -> Table:
    """Numbers (one with missing values) and levels; three classes by the first number."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
            "c": rng.integers(0, 5, N),
            "d": rng.choice(["x", "y", "z"], N),
            "e": rng.random(N) < 0.5,
        }
    )
    labels = np.digitize(frame["a"], [-0.5, 1.0]).astype(np.int64)
    encoding = Encoding.fit(frame, Schema.infer(frame))
    confidence = np.random.default_rng(1).uniform(0.5, 1.0, N)
    return Table(encoding, encoding.encode(frame), labels, 3, confidence)


def make_teacher(table: Table, *, masks: np.ndarray | None = None, k: int = 6) -> Teacher:
    low, high, usual = np.full(3, 0.5), np.full(3, 0.9), np.full(3, 0.7)
    pool = Pool.group(table.encoding.parts(table.values), table.labels, table.n_classes, table.confidence)
    return Teacher(table, pool, Conditions(EXPONENTS, masks, Confidence(low, high, usual)), k=k)


def judge(values: np.ndarray, target: np.ndarray) -> np.ndarray:
    """A black box that looks at the first feature alone; sure of what it says."""
    found = np.digitize(values[:, 0], [-0.5, 1.0])
    return np.where(found == target, 1.0, 0.0)


def propose(table: Table, **given: Any) -> Pairs:
    return make_teacher(table, **given).propose(np.arange(N), rng=np.random.default_rng(2))


def sparse(table: Table, pairs: Pairs, *, undo_levels: float = 0.0, judge: Any = judge) -> Pairs:
    levels = np.array([not f.is_number for f in table.encoding.schema.features])
    made = sparsify(
        pairs.batch(table.values, table.values), judge,
        exponents=EXPONENTS, levels=levels, undo_levels=undo_levels, rng=np.random.default_rng(3),
    )  # fmt: skip
    np.testing.assert_array_equal(made.answers, made.pairs.batch(table.values, table.values).answers)
    return made.pairs


def changes(table: Table, pairs: Pairs) -> np.ndarray:
    batch = pairs.batch(table.values, table.values)
    context, answers = batch.context, batch.answers
    return table.encoding.differs(answers, context.query).sum(axis=1)


# -- proposals --------------------------------------------------------------------------------------------------------


def test_answers_are_of_the_target_class_and_never_of_the_anchors(table: Table) -> None:
    pairs = propose(table)
    assert len(pairs) == 6 * N
    assert (table.labels[pairs.row] == pairs.target).all()
    assert (table.labels[pairs.anchor] != pairs.target).all()
    assert set(np.unique(pairs.target)) == {0, 1, 2}
    assert not pairs.kept.any()


def test_answers_are_as_sure_as_asked(table: Table) -> None:
    pairs = propose(table)
    assert table.confidence is not None
    assert (table.confidence[pairs.row] >= pairs.confidence - 1e-6).all()
    assert ((pairs.confidence >= 0.5 - 1e-6) & (pairs.confidence <= 0.9 + 1e-6)).all()
    usual = np.isclose(pairs.confidence, 0.7)
    assert 0.3 < usual.mean() < 0.7


def test_answers_are_the_nearest(table: Table) -> None:
    pairs = propose(table, masks=np.zeros((1, 5), dtype=bool), k=1)
    parts = table.encoding.parts(table.values)
    assert table.confidence is not None
    for i in range(0, len(pairs), 10):
        anchor, p = pairs.anchor[i], float(pairs.p[i])
        apart = 2.0 * (parts.codes != parts.codes[anchor]).sum(axis=1)
        apart = apart + (np.abs(parts.numbers - parts.numbers[anchor]) ** p).sum(axis=1)
        allowed = (table.labels == pairs.target[i]) & (table.confidence >= pairs.confidence[i])
        assert apart[pairs.row[i]] == pytest.approx(apart[allowed].min(), rel=1e-4)


def test_fewer_neighbours_can_be_asked_for(table: Table) -> None:
    pairs = make_teacher(table).propose(np.arange(10), rng=np.random.default_rng(0), k=1)
    assert pairs.anchor.tolist() == list(range(10))


def test_some_of_the_neighbours_can_be_taken_at_random(table: Table) -> None:
    teacher, anchors = make_teacher(table, k=6, masks=np.zeros((1, 5), dtype=bool)), np.arange(N)
    every = teacher.propose(anchors, rng=np.random.default_rng(4))
    some = teacher.propose(anchors, rng=np.random.default_rng(4), each=2)
    assert np.unique(some.anchor, return_counts=True)[1].tolist() == [2] * N
    near = {anchor: set(every.row[every.anchor == anchor]) for anchor in anchors}
    assert all(row in near[anchor] for anchor, row in zip(some.anchor, some.row, strict=True))
    first = {anchor: every.row[every.anchor == anchor][0] for anchor in anchors}
    share = np.mean([first[anchor] == row for anchor, row in zip(some.anchor, some.row, strict=True)])
    assert 0.1 < share < 0.25
    more = teacher.propose(anchors, rng=np.random.default_rng(4), each=9)
    np.testing.assert_array_equal(more.row, every.row)


def test_levels_weigh_more_where_asked(table: Table) -> None:
    """Answers then keep more of the anchor's levels, and lie further in numbers."""
    low, usual = np.full(3, 0.5), np.full(3, 0.5)
    conditions = Conditions((2.0,), np.zeros((1, 5), dtype=bool), Confidence(low, low, usual))
    kept = []
    for weight in (1.0, 16.0):
        parts = weighted(table.encoding.parts(table.values), weight)
        pool = Pool.group(parts, table.labels, table.n_classes, table.confidence)
        teacher = Teacher(table, pool, conditions, k=3, level_weight=weight)
        pairs = teacher.propose(np.arange(N), rng=np.random.default_rng(5))
        kept.append((table.values[pairs.row, 3] == table.values[pairs.anchor, 3]).mean())
    assert kept[1] > kept[0] + 0.02


def test_class_with_fewer_rows_than_k_gives_what_it_has(table: Table) -> None:
    labels = np.zeros(N, dtype=np.int64)
    labels[:2], labels[2:5] = 1, 2
    few = Table(table.encoding, table.values, labels, 3, np.ones(N))
    pairs = propose(few, k=8)
    for target, count in ((1, 2), (2, 3)):
        mine = pairs.take(pairs.target == target)
        assert set(np.unique(mine.anchor, return_counts=True)[1]) <= {count}


def test_conditions_cover_what_was_configured(table: Table) -> None:
    pairs = propose(table)
    assert {round(float(p), 4) for p in pairs.p} == set(EXPONENTS)


def test_random_masks_never_freeze_everything(table: Table) -> None:
    rng = np.random.default_rng(0)
    conditions = make_teacher(table).conditions
    for d in (1, 2, 5, 30):
        _, mask, _ = conditions.draw(np.zeros(20_000, dtype=np.int64), d, rng)
        size = mask.sum(axis=1)
        assert size.max() < max(d, 2)
        assert (size == 0).mean() == pytest.approx(1.0 if d == 1 else 1 / 3, abs=0.02)
        if d > 1:
            assert mask.any(axis=0).all()
            assert size.max() == d - 1
            assert np.ptp(mask.mean(axis=0)) < 0.03


def test_named_masks_are_used_and_no_others(table: Table) -> None:
    masks = np.stack([table.encoding.schema.mask(["a", "d"]), table.encoding.schema.mask(["e"])])
    pairs = propose(table, masks=masks)
    found = {tuple(mask) for mask in pairs.frozen}
    assert found == {tuple(mask) for mask in masks}


def test_same_seed_gives_the_same_pairs(table: Table) -> None:
    a, b = propose(table), propose(table)
    for name in ("anchor", "row", "frozen", "target", "p", "confidence"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# -- pairs ------------------------------------------------------------------------------------------------------------


def test_batch_puts_back_what_is_kept(table: Table) -> None:
    pairs = clamp(propose(table))
    batch = pairs.batch(table.values, table.values)
    context, answers = batch.context, batch.answers
    np.testing.assert_array_equal(context.query, table.values[pairs.anchor])
    np.testing.assert_array_equal(answers[pairs.kept], context.query[pairs.kept])
    np.testing.assert_array_equal(answers[~pairs.kept], table.values[pairs.row][~pairs.kept])
    assert context.target.dtype == np.int64
    assert context.p.dtype == context.confidence.dtype == np.float64


def test_take_and_join(table: Table) -> None:
    pairs = propose(table)
    parts = [pairs.take(slice(0, 7)), pairs.take(np.arange(7, len(pairs)))]
    joined = Pairs.join(parts)
    assert len(joined) == len(pairs)
    np.testing.assert_array_equal(joined.frozen, pairs.frozen)


# -- clamping and sparsifying -----------------------------------------------------------------------------------------


def test_clamped_pairs_agree_with_the_anchor_where_frozen(table: Table) -> None:
    pairs = clamp(propose(table))
    batch = pairs.batch(table.values, table.values)
    context, answers = batch.context, batch.answers
    assert not (table.encoding.differs(answers, context.query) & pairs.frozen).any()
    np.testing.assert_array_equal(pairs.kept, pairs.frozen)


def confirmed(table: Table) -> Pairs:
    """Clamped pairs that the judge accepts, as training uses them."""
    pairs = clamp(propose(table))
    batch = pairs.batch(table.values, table.values)
    context, answers = batch.context, batch.answers
    fine = judge(answers, context.target) >= context.confidence
    return pairs.take(fine & table.encoding.differs(answers, context.query).any(axis=1))


def test_sparsified_pairs_keep_the_verdict(table: Table) -> None:
    pairs = sparse(table, confirmed(table))
    batch = pairs.batch(table.values, table.values)
    context, answers = batch.context, batch.answers
    assert (judge(answers, context.target) >= context.confidence).all()
    assert not (table.encoding.differs(answers, context.query) & pairs.frozen).any()


def test_not_all_changes_are_undone_even_by_a_judge_that_likes_everything(table: Table) -> None:
    pairs = sparse(table, confirmed(table), undo_levels=1.0, judge=lambda values, _: np.ones(len(values)))
    assert changes(table, pairs).min() == 1
    assert (changes(table, pairs)[np.isclose(pairs.p, 0.01)] == 1).all()


def test_judge_that_likes_nothing_undoes_nothing(table: Table) -> None:
    pairs = confirmed(table)
    same = sparse(table, pairs, undo_levels=1.0, judge=lambda values, _: np.zeros(len(values)))
    np.testing.assert_array_equal(same.kept, pairs.kept)


def test_smaller_p_undoes_more(table: Table) -> None:
    before = confirmed(table)
    after = sparse(table, before)
    left = changes(table, after) / changes(table, before)
    means = [left[np.isclose(before.p, p)].mean() for p in EXPONENTS]
    assert means[-1] == 1.0
    assert (np.diff(means) > 0).all()
    least = np.isclose(after.p, 0.01)
    assert (changes(table, after)[least] == 1).all(), "the first feature alone decides, so one change is enough"


def test_levels_are_undone_at_the_greatest_p_too(table: Table) -> None:
    before = confirmed(table)
    greatest = before.take(np.isclose(before.p, 2.0))
    levels = np.array([not f.is_number for f in table.encoding.schema.features])
    after = sparse(table, greatest, undo_levels=0.5)
    undone = after.kept & ~greatest.kept
    assert not undone[:, ~levels].any()
    assert undone[:, levels].any()


def test_missing_numbers_count_as_changes_and_can_be_undone(table: Table) -> None:
    absent = np.isnan(table.values[:, 1])
    pairs = confirmed(table)
    differs = absent[pairs.anchor] != absent[pairs.row]
    least = pairs.take(differs & np.isclose(pairs.p, 0.01) & ~pairs.frozen[:, 1])
    assert len(least)
    assert sparse(table, least).kept[:, 1].all()


def test_nothing_to_sparsify(table: Table) -> None:
    assert len(sparse(table, propose(table).take(slice(0, 0)))) == 0


# -- what keeps rows from being learned by heart ----------------------------------------------------------------------


def test_held_out_pairs_have_no_row_that_is_learned_from(table: Table) -> None:
    held = np.random.default_rng(4).random(N) < 0.2
    seen, unseen = split_pairs(propose(table), held)
    assert len(seen) > len(unseen) > 0
    assert not set(unseen.anchor) & set(seen.anchor)
    assert not set(unseen.row) & set(seen.row)


def test_answers_lie_between_two_neighbours_of_their_anchor(table: Table) -> None:
    pairs, values = propose(table), table.values
    masses = point_masses(values, table.encoding)
    made, rows = blend(pairs, values, table.encoding, masses=masses, share=1.0, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(rows[:N], values)
    assert (made.row >= N).mean() > 0.99
    answers = rows[made.row]
    assert not np.isin(answers[made.row >= N, 0], values[:, 0]).any()
    for anchor in range(0, N, 17):
        near, mine = values[pairs.row[pairs.anchor == anchor]], answers[made.anchor == anchor]
        assert (mine[:, 0] >= near[:, 0].min()).all()
        assert (mine[:, 0] <= near[:, 0].max()).all()
        # Whole numbers that many rows share, and levels, are some neighbour's.
        for j in (2, 3, 4):
            assert np.isin(mine[:, j], near[:, j]).all()
    untouched, same = blend(pairs, values, table.encoding, masses=masses, share=0.0, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(untouched.row, pairs.row)
    assert len(same) == N
