"""The paper's propositions and its diversity bound, checked on fitted models; a violated bound is reported.

For each query with K nearest training rows N of the target class, n draws x'_1 … x'_n and D = min |x'_i - x'_j|:

    printed   E[D] >= sigma (1 - K^(1-n)) - Delta sqrt(2 epsilon)
    mended    E[D] >= sigma K! / ((K-n)! K^n) - Delta sqrt(n epsilon / 2)

sigma is the least distance inside N, Delta the diameter of the space of rows, epsilon = KL(q-hat || p). The printed
first term is the chance that not all n draws from q-hat are the same point, but D is 0 as soon as any two are; the
mended one is the chance that all are different. The printed second term bounds what one draw can do, not n; for n draws
the divergence is n epsilon, and D in [0, Delta] makes the factor Delta, not 2 Delta.
"""

from __future__ import annotations

__all__ = ["TITLE", "bounds", "cells", "diameter", "figures", "findings", "measure", "page"]

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.baselines.oracle import Oracle
from benchmarks.cells import Cell, Result, merged
from benchmarks.methods import explainer, is_cut
from benchmarks.options import Options
from benchmarks.pages import Finding, canvas, colour, head, number, table
from benchmarks.tables import ADULT
from benchmarks.tasks import Task, prepare
from dicoflex import DiCoFlex, Schema, metrics
from dicoflex.generators.base import Context
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Encoding

Floats = NDArray[np.float64]
TITLE = "Theory"
K, DRAWS, SETS, QUICK_SETS, SUBSETS = 16, 10, 20, 4, 100
P = 2.0
SLACK = 1e-9


def cells(options: Options) -> list[Cell]:
    """Both generators on Adult."""
    methods = options.pick_methods(("mixed", "maf"), quick=("mixed", "maf"))
    return options.cells("theory", ADULT, methods)


def measure(cell: Cell, models: Path) -> dict[str, Any]:
    """What the propositions say of training pairs, what holds of draws, and both sides of the inequality."""
    task = prepare(cell)
    model = explainer(cell, task, models, cell.method)
    sets = QUICK_SETS if cell.size.quick else SETS
    near = Oracle().fit(task.problem).answer(task.queries, task.targets, n=K).frame
    drawn = _draws(model, task, sets * DRAWS, cell.seed)
    few = drawn[drawn.index.get_level_values("cf") < 2 * DRAWS]
    worst = float(task.reference.lof.score(task.data.X_train).max())
    return {
        "out_of_time": is_cut(model),
        "pairs": _propositions(task, model.model_.encoding, near, near, worst),
        "draws": _propositions(task, model.model_.encoding, few, near, worst),
        "diversity": _diversity(task, model, near, drawn, sets, cell.seed),
    }


def _draws(model: DiCoFlex, task: Task, n: int, seed: int) -> pd.DataFrame:
    """Independent draws, as the theorem has them: `sample` would leave out repeats and the query itself."""
    values = model.model_.encoding.encode(task.queries)
    targets = np.searchsorted(model.classes_, task.targets)
    context = Context(
        query=values,
        target=targets,
        p=np.full(len(values), P),
        frozen=np.zeros(values.shape, dtype=bool),
        confidence=model.model_.confidence.default[targets],
    )
    rows, _ = model.model_.generator.sample(context, n, row_keys(values, seed), 0)
    index = pd.MultiIndex.from_product([task.queries.index, range(n)], names=["row", "cf"])
    return model.model_.encoding.decode(model.model_.encoding.snap(rows.reshape(len(index), -1)), index)


# -- propositions -----------------------------------------------------------------------------------------------------


def _propositions(
    task: Task, encoding: Encoding, frame: pd.DataFrame, near: pd.DataFrame, worst: float
) -> dict[str, float]:
    """Validity, the proximity bound and in-distribution, on training pairs or on draws; `worst` is the worst LOF."""
    classes = np.asarray(task.black_box.classes_).tolist()
    sure = metrics.target_probability(task.black_box.predict_proba(frame), classes, task.targets_of(frame))
    reach = _distances(task, encoding, near).groupby(level="row").max()
    apart = _distances(task, encoding, frame)
    limit = reach.loc[apart.index.get_level_values("row")].to_numpy()
    lof = task.reference.lof.score(frame)
    return {
        "validity": float(task.is_valid(frame).mean()),
        "probability": float(sure.mean()),
        "within_bound": float((apart.to_numpy() <= limit + SLACK).mean()),
        "times_bound": float((apart.to_numpy() / np.maximum(limit, SLACK)).mean()),
        "copies": metrics.share_of_copies(frame, task.data.X_train, task.data.schema),
        "in_distribution": float((lof <= worst + SLACK).mean()),
        "log_lof": float(lof.mean()),
    }


def _distances(task: Task, encoding: Encoding, frame: pd.DataFrame) -> pd.Series:
    """d_p of each answer to its query, as the search for neighbours measures it."""
    row = task.queries.index.get_indexer(frame.index.get_level_values("row"))
    query, answer = (encoding.parts(values) for values in (encoding.encode(task.queries)[row], encoding.encode(frame)))
    apart = 2.0 * (query.codes != answer.codes).sum(axis=1) + (np.abs(query.numbers - answer.numbers) ** P).sum(axis=1)
    return pd.Series(apart, index=frame.index)


# -- the inequality ---------------------------------------------------------------------------------------------------


def bounds(
    sigma: Floats, epsilon: Floats, delta: float, *, k: int = K, n: int = DRAWS
) -> tuple[Floats, Floats, float, float]:
    """The right-hand side as printed and as mended, per query, and the two chances that sigma is multiplied by.

    >>> bounds(np.array([1.0]), np.array([0.0]), 5.0, k=2, n=2)[:2]
    (array([0.5]), array([0.5]))
    """
    printed = 1.0 - float(k) ** (1 - n)
    mended = float(np.prod(1.0 - np.arange(n) / k))
    error = np.maximum(epsilon, 0.0)
    return (
        sigma * printed - delta * np.sqrt(2 * error),
        sigma * mended - delta * np.sqrt(n * error / 2),
        printed,
        mended,
    )


def diameter(schema: Schema) -> float:
    """The greatest distance between two rows in the space of `metrics.LogLof`."""
    numbers = [1.25 if f.missing else 1.0 for f in schema.features if f.is_number]
    levels = [2.0 for f in schema.features if not f.is_number and f.n_states > 1]
    return float(np.sqrt(sum(numbers) + sum(levels)))


def _diversity(
    task: Task, model: DiCoFlex, near: pd.DataFrame, drawn: pd.DataFrame, sets: int, seed: int
) -> dict[str, Any]:
    schema, index = task.data.schema, task.queries.index
    inside = metrics.pairwise_extremes(near, schema).loc[index]
    epsilon, impossible = _divergence(task, model, near)
    sigma, delta = inside["minimum"].to_numpy(), diameter(schema)
    printed, mended, chance, true_chance = bounds(sigma, epsilon, delta)
    left = _least_distances(drawn, schema, sets)
    # D is 0 unless all draws differ; given that they do, they are a random subset of the neighbours.
    left_q = true_chance * _least_distances(_subsets(near, SUBSETS, seed), schema, SUBSETS)
    printed_q, mended_q, _, _ = bounds(sigma, np.zeros(len(sigma)), delta)
    finite = np.isfinite(epsilon)
    return {
        "K": K, "n": DRAWS, "delta": delta, "delta_of_draws": _widest(drawn, schema),
        "sigma": sigma.mean(), "assumption_1": (sigma > 0).mean(),
        "epsilon": epsilon[finite].mean() if finite.any() else np.nan, "epsilon_least": epsilon.min(),
        "impossible": impossible, "chance": chance, "true_chance": true_chance,
        "left": left.mean(), "printed": printed[finite].mean() if finite.any() else np.nan,
        "mended": mended[finite].mean() if finite.any() else np.nan,
        "printed_broken": (left < printed - SLACK).mean(), "mended_broken": (left < mended - SLACK).mean(),
        "left_q": left_q.mean(), "printed_q": printed_q.mean(), "mended_q": mended_q.mean(),
        "printed_q_broken": (left_q < printed_q - SLACK).mean(), "mended_q_broken": (left_q < mended_q - SLACK).mean(),
        "vacuous": (printed <= 0).mean(),
    }  # fmt: skip


def _divergence(task: Task, model: DiCoFlex, near: pd.DataFrame) -> tuple[Floats, float]:
    """Per query KL(q-hat || p), the mean over its neighbours of log(1/K) - log p; and the share of them with p = 0."""
    rows = task.queries.loc[near.index.get_level_values("row")]
    log_p = model.log_density(rows, near.reset_index(drop=True), target=task.targets_of(near), p=P)
    by_query = pd.Series(-np.log(K) - log_p, index=near.index).groupby(level="row").mean()
    return by_query.loc[task.queries.index].to_numpy(), float(np.isneginf(log_p).mean())


def _least_distances(frame: pd.DataFrame, schema: Schema, sets: int) -> Floats:
    """Per query the mean over its sets of draws of the least distance inside a set."""
    queries = len(frame) // (sets * DRAWS)
    index = pd.MultiIndex.from_product([range(queries * sets), range(DRAWS)], names=["row", "cf"])
    least = metrics.pairwise_extremes(frame.set_axis(index), schema)["minimum"].to_numpy()
    return least.reshape(queries, sets).mean(axis=1)


def _widest(frame: pd.DataFrame, schema: Schema) -> float:
    return float(metrics.pairwise_extremes(frame, schema)["maximum"].max())


def _subsets(near: pd.DataFrame, sets: int, seed: int) -> pd.DataFrame:
    """Per query so many random sets of different neighbours."""
    rng = np.random.default_rng(seed)
    places = pd.Series(np.arange(len(near))).groupby(near.index.get_level_values("row"), sort=False)
    picks = [rng.choice(own.to_numpy(), DRAWS, replace=False) for _, own in places for _ in range(sets)]
    return near.iloc[np.concatenate(picks)]


# -- the page ---------------------------------------------------------------------------------------------------------

PROPOSITIONS = (
    ("validity", "black box gives the target", "validity (prop:training_validity): 1 for training pairs"),
    ("probability", "mean probability of the target", "the proposition calls it 1; true of a black box without doubt"),
    ("within_bound", "no farther than the K-th neighbour", "proximity (prop:proximity): 1 for training pairs"),
    ("times_bound", "mean distance over that bound", "at most 1 for training pairs"),
    ("copies", "equal to a training row", "why training pairs are in distribution; a draw need not be"),
    ("in_distribution", "LOF no worse than the worst training row's", "in distribution (prop:plausibility)"),
    ("log_lof", "mean log LOF", "lower is more plausible"),
)
DIVERSITY = (
    ("K", "K, neighbours", "training rows that q-hat puts 1/K on"),
    ("n", "n, draws in a set", ""),
    ("sigma", "σ_min, mean over queries", "least distance inside a neighbourhood"),
    ("assumption_1", "share of queries with σ_min > 0", "assumption A1; equal training rows break it"),
    ("delta", "Δ, diameter of the space of rows", "assumption A3; holds, since draws are decoded to rows"),
    ("delta_of_draws", "greatest distance between a query's draws", "for comparison with Δ"),
    ("epsilon", "ε, mean over queries where finite", "assumption A2, in nats: KL(q-hat ‖ p)"),
    ("epsilon_least", "ε, least of all queries", "below 0 where p is a density: A2 then says nothing, and 0 is taken"),
    ("impossible", "share of neighbours with p = 0", "makes ε infinite for their queries"),
    ("left", "left side: E[D] of the model", f"least distance among n draws, from {SETS} sets per query"),
    ("printed", "right side as printed", "mean over queries with finite ε"),
    ("printed_broken", "share of queries that break it", "0 if the bound holds"),
    ("vacuous", "share of queries with a right side of 0 or less", "there the bound says nothing"),
    ("mended", "right side as mended", "see below"),
    ("mended_broken", "share of queries that break it", "0 if the bound holds"),
    ("left_q", "left side for q-hat itself", "n neighbours drawn with replacement, ε = 0"),
    ("printed_q", "right side as printed, ε = 0", "should be at most the line above"),
    ("printed_q_broken", "share of queries for which it is not", "0 if step 1 of the proof held"),
    ("mended_q", "right side as mended, ε = 0", "likewise"),
    ("mended_q_broken", "share of queries for which it is not", "0, by proof"),
    ("chance", "printed chance 1 - K^(1-n)", "that not all n draws are one point"),
    ("true_chance", "chance that all n draws differ", "what D > 0 needs"),
)  # fmt: skip


def page(results: Sequence[Result], command: str) -> str:
    """Propositions, then the inequality, with a word on each line."""
    found = merged(results)
    text = (
        "Adult, p = 2, no mask. *Pairs* are the neighbours that q-hat draws from, for test rows; *draws* are those of "
        "the fitted model, independent and unfiltered. Distances of the inequality are Euclidean on numbers scaled to "
        "their range and one-hot levels. The default generator is not trained to match q-hat: needless changes are "
        "undone in its training pairs, so its ε is not expected to be small."
    )
    return "".join([
        head(TITLE, text, results, command),
        "\n## Propositions\n",
        table(["share of", *_names(found, "pairs"), *_names(found, "draws"), "what it means"], _lines(found)),
        "\n## The diversity bound (thm:diversity)\n",
        "\n![both sides of the inequality](theory.png)\n",
        table(["", *(r.cell.method for r in found), "what it means"], _diversity_lines(found)),
        "\n" + (__doc__ or "").split("\n\n", 1)[1],
        "\n" + "\n".join(f"- {finding.text}" for finding in findings(results)) + "\n",
    ])  # fmt: skip


def _names(found: Sequence[Result], what: str) -> list[str]:
    return [f"{r.cell.method}, {what}" for r in found]


def _lines(found: Sequence[Result]) -> list[list[str]]:
    return [
        [title, *(number(r.figures[what][name]) for what in ("pairs", "draws") for r in found), meaning]
        for name, title, meaning in PROPOSITIONS
    ]


def _diversity_lines(found: Sequence[Result]) -> list[list[str]]:
    return [
        [title, *(number(r.figures["diversity"][name], 0 if name in "Kn" else 3) for r in found), meaning]
        for name, title, meaning in DIVERSITY
    ]


def findings(results: Sequence[Result]) -> list[Finding]:
    """Which statements hold as measured."""
    texts = []
    for result in merged(results):
        pairs, both, name = result.figures["pairs"], result.figures["diversity"], result.cell.method
        fine = pairs["validity"] == 1 and pairs["within_bound"] == 1 and pairs["in_distribution"] == 1
        texts.append(
            Finding(
                "agree" if fine else "differ",
                f"Theory, {name}: of the training pairs, {pairs['validity']:.3f} are valid, "
                f"{pairs['within_bound']:.3f} within the proximity bound, "
                f"{pairs['in_distribution']:.3f} in distribution.",
            )
        )
        empty = both["printed_broken"] > 0 or both["vacuous"] == 1
        texts.append(
            Finding(
                "differ" if empty else "agree",
                f"Theory, {name}: the diversity bound as printed is broken for {both['printed_broken']:.3f} of the "
                f"queries and says nothing (right side at most 0) for {both['vacuous']:.3f}.",
            )
        )
    return [*texts, *_of_q_hat(merged(results)[:1])]


def _of_q_hat(results: Sequence[Result]) -> list[Finding]:
    """What the inequality makes of the distribution that it starts from."""
    texts = []
    for both in (r.figures["diversity"] for r in results):
        sides = f"E[D] = {number(both['left_q'], 4)}, right side {number(both['printed_q'], 4)}"
        text = (
            f"Theory: q-hat itself, with ε = 0, breaks the bound as printed for {both['printed_q_broken']:.3f} of the "
        )
        text += (
            f"queries ({sides}), and the mended one for {both['mended_q_broken']:.3f} ({number(both['mended_q'], 4)})."
        )
        texts.append(Finding("differ" if both["printed_q_broken"] > 0 else "agree", text))
    return texts


def figures(results: Sequence[Result]) -> dict[str, Figure]:
    """Both sides of the inequality: for q-hat, and for each model."""
    found = merged(results)
    if not found:
        return {}
    figure, (ax,) = canvas(1, width=6.4)
    bars = [("q-hat", "oracle", "left_q", "printed_q", "mended_q")]
    bars += [(r.cell.method, r.cell.method, "left", "printed", "mended") for r in found]
    for i, (_, shade, *keys) in enumerate(bars):
        both = found[max(i - 1, 0)].figures["diversity"]
        for j, key in enumerate(keys):
            value = both[key]
            if value is not None:
                ax.bar(i + 0.27 * (j - 1), value, 0.25, color=colour(shade), alpha=(1.0, 0.55, 0.3)[j])
                ax.annotate(("left side", "printed", "mended")[j], (i + 0.27 * (j - 1), value), ha="center", fontsize=7,
                            xytext=(0, 3), textcoords="offset points")  # fmt: skip
    ax.axhline(0, color="#1b2330", lw=0.8)
    ax.set_yscale("symlog", linthresh=0.1)
    ax.set_xticks(range(len(bars)), [bar[0] for bar in bars])
    ax.set_ylabel("distance")
    ax.set_title("least distance among draws, and its bounds", loc="left", fontsize=10)
    return {"theory.png": figure}
