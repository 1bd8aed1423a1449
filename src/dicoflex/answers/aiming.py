"""A model of scores, aimed at an interval: an ordinary model whose classes lie below it, inside and above.

The surrogate says a rank r; with logits 0, (r - low) / s and (2 r - low - high) / s its softmax gives the inside

    1 / (1 + exp((low - r) / s) + exp((r - high) / s)),

what `score.inside` has. All logits are linear in r, so the aimed surrogate is one of the same kind with another last
layer; and the aimed density is the same one with one row of weights in place of those that tell an interval.
"""

from __future__ import annotations

__all__ = ["aimed", "narrowest", "score_of"]

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dicoflex.certificate import SORTS, Certificate
from dicoflex.coherence import Coherence
from dicoflex.errors import QueryError
from dicoflex.generators.mixed import Mixed
from dicoflex.model import Confidence, Model, classes_of
from dicoflex.score import Score, inside
from dicoflex.surrogate import ScoreSurrogate
from dicoflex.table.encoding import Values
from dicoflex.targets import Interval

Floats = NDArray[np.float64]
MOST_KEPT = 64
LEAST_ROWS = 10
ROOM = 0.97
LEAST_SURE = 0.75


def score_of(model: Model, values: Values) -> Floats:
    """The score that the surrogate of a model of scores gives each row, whichever others it is asked with."""
    score, surrogate = _parts(model)
    return score.score(surrogate.scores(values))


def aimed(model: Model, interval: Interval) -> Model:
    """The model of classes that a model of scores is for one interval; the last ones are kept.

    An interval that hardly any training row lies in, or that is too narrow for the surrogate, is a `QueryError`.
    """
    kept = model.aims
    found = kept.get(interval)
    if found is None:
        found = kept[interval] = _aimed(model, interval)
        for oldest in list(kept)[:-MOST_KEPT]:
            kept.pop(oldest, None)
    return found


def _aimed(model: Model, interval: Interval) -> Model:
    score, surrogate = _parts(model)
    _check_rows(score, interval)
    names, target = interval.parts
    low, high = (float(end) for end in score.rank(np.array(interval.ends)))
    slope, offset = _logits(low, high, score.spread)
    assert isinstance(model.generator, Mixed)
    code = score.code(np.array([low]), np.array([high]))[0]
    made = Model(
        encoding=model.encoding,
        classes=classes_of(names),
        generator=model.generator.aimed(code, len(names), target),
        surrogate=surrogate.aimed(slope, offset),
        confidence=_confidence(model, interval, (low, high), len(names)),
        exponents=model.exponents,
        has_confidence=model.has_confidence,
        report=model.report,
        remembered=model.remembered,
        coherence=None if model.coherence is None else _coherence(model.coherence, _ends(low, high)),
        certificate=None if model.certificate is None else _certificate(model.certificate, len(names)),
        marginals=model.marginals,
    )
    # What answers is the model in the file, whatever it was aimed at.
    made.__dict__["fingerprint"] = model.fingerprint
    return made


def _parts(model: Model) -> tuple[Score, ScoreSurrogate]:
    assert model.score is not None
    return model.score, model.surrogate  # type: ignore[return-value]


def _logits(low: float, high: float, spread: float) -> tuple[Floats, Floats]:
    """What each class's logit is to the rank: so many times it, and so much more."""
    steps = [(1.0, -end) for end in (low, high) if np.isfinite(end)]
    parts = np.cumsum([(0.0, 0.0), *steps], axis=0) / spread
    return parts[:, 0], parts[:, 1]


def _ends(low: float, high: float) -> list[tuple[float, float]]:
    """The intervals of rank of the classes."""
    edges = [-np.inf, *(end for end in (low, high) if np.isfinite(end)), np.inf]
    return list(pairwise(edges))


def _check_rows(score: Score, interval: Interval) -> None:
    """Refuse an interval that too few training rows lie in, and say what the rows support."""
    if score.share(*interval.ends) * score.rows >= LEAST_ROWS:
        return
    edge = LEAST_ROWS / score.rows
    low, high = (float(f"{end:.4g}") for end in score.score(np.array([min(edge, 0.5), max(1 - edge, 0.5)])))
    raise QueryError(
        f"target {interval}: fewer than {LEAST_ROWS} training rows have such a score; nearly all lie between "
        f"{low:g} and {high:g}; ask for an interval that more rows lie in"
    )


def _confidence(model: Model, interval: Interval, ends: tuple[float, float], n_classes: int) -> Confidence:
    """How sure one can be of an interval: no more than of its middle, less the margin."""
    score, own = _parts(model)[0], model.confidence
    margin = 0.0 if model.certificate is None else float(model.certificate.margin[0, 0])
    low, high = ends
    top = 1.0
    if np.isfinite(low) and np.isfinite(high):
        middle = np.array([(low + high) / 2])
        top = float(inside(middle, np.array([low]), np.array([high]), score.spread)[0])
    highest = min(float(own.highest[0]), ROOM * top - margin)
    if highest < LEAST_SURE:
        raise QueryError(
            f"target {interval} is narrower than the model can tell scores apart: it must hold about "
            f"{narrowest(model):.0%} of the training rows, and holds {max(high - low, 0.0):.1%}; ask for a wider one"
        )
    default = min(float(own.default[0]), highest)
    lowest = min(float(own.lowest[0]), default)
    return Confidence(*(np.full(n_classes, value) for value in (lowest, highest, default)))


def narrowest(model: Model) -> float:
    """The share of the training rows that an interval must hold about, for its middle to be sure enough."""
    margin = 0.0 if model.certificate is None else float(model.certificate.margin[0, 0])
    top = min((LEAST_SURE + margin) / ROOM, 0.999)
    return float(2 * _parts(model)[0].spread * np.log(2 * top / (1 - top)))


def _coherence(coherence: Coherence, classes: list[tuple[float, float]]) -> Coherence:
    """What is usual in each class: what is in the bands of rank that it covers, by how much of it they are."""
    density = coherence.density
    edges = np.linspace(0.0, 1.0, len(density.held) + 1)
    weights = np.array([np.clip(np.minimum(edges[1:], b) - np.maximum(edges[:-1], a), 0.0, None) for a, b in classes])
    for weight, (a, b) in zip(weights, classes, strict=True):
        if weight.sum() == 0:
            weight[int(np.clip((max(a, 0.0) + min(b, 1.0)) / 2 * len(weight), 0, len(weight) - 1))] = 1.0
    shares = weights / weights.sum(axis=1, keepdims=True)
    return replace(coherence, density=replace(density, held=shares @ density.held, weakest=shares @ density.weakest))


def _certificate(certificate: Certificate, n_classes: int) -> Certificate:
    return Certificate(
        np.repeat(certificate.margin, n_classes, axis=0),
        np.broadcast_to(certificate.counts, (n_classes, len(SORTS), 2)).copy(),
        certificate.judge,
    )
