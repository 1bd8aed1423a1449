"""A model card: what a model file was learned from, what was measured of it, and what it says about people."""

from __future__ import annotations

__all__ = ["model_card"]

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dicoflex.audit.revealed import reveals
from dicoflex.model import Model
from dicoflex.table.feature import Feature
from dicoflex.views.markdown import escaped, line

MOST_VALUES = 8
LIMITS = """\
An answer says what the model would have said of another row. It is not a promise, nor advice, nor a statement about
causes: whether a change is possible, and what it would bring about, is not known. It speaks for the model that was
explained; a retrained model needs a new explainer."""


def model_card(model: Model) -> str:
    """A model card in Markdown, for a repository, a registry or a validation file.

    Parameters
    ----------
    model : Model
        The model of an explainer: `explainer.model_`.

    Returns
    -------
    str
        Sections on what it is for, what it was learned from, what was measured when it was fitted, and what the file
        reveals. Every figure is one of the file.

    Examples
    --------
    >>> from dicoflex import load
    >>> from dicoflex.audit import model_card
    >>> from dicoflex.examples import EXAMPLES
    >>> [text for text in model_card(load(EXAMPLES[2]).model_).splitlines() if text.startswith("#")]
    ['# Counterfactual explainer', '## Use', '## Data', '## Measured', '## What the file reveals']
    """
    sections = {
        "Use": [LIMITS],
        "Data": [*_data(model), "", *_features(model)],
        "Measured": list(_measured(model)),
        "What the file reveals": list(_revealed(model)),
    }
    body = (text for name, lines in sections.items() for text in ("", f"## {name}", "", *lines))
    return "\n".join(["# Counterfactual explainer", "", *_identity(model), *body, ""])


def _identity(model: Model) -> list[str]:
    found = [("fingerprint", model.fingerprint), ("density", model.generator.name)]
    found += [("results", "scores" if model.score is not None else ", ".join(map(str, model.labels)))]
    return list(_table(("", ""), found))


def _data(model: Model) -> list[str]:
    known = model.report
    text = f"Learned from {known['rows']:,} rows with {len(model.schema)} features"
    least = known.get("min_count")
    names = f" Values that fewer than {least} rows share are not in the file." if least and least > 1 else ""
    return [f"{text}.{names}"]


def _features(model: Model) -> Iterator[str]:
    features = model.schema.features
    yield from _table(
        ("feature", "kind", "values"), [(str(one.name), one.kind.value, _values(one)) for one in features]
    )


def _values(feature: Feature) -> str:
    text = f"{feature.minimum:g} to {feature.maximum:g}" if feature.is_number else _listed(feature.levels)
    return f"{text}, or missing" if feature.missing else text


def _measured(model: Model) -> Iterator[str]:
    known = model.report
    word = "share of held-out labels that the surrogate repeats"
    if model.score is not None:
        word = "share of the variance of held-out scores that the surrogate explains"
    found = [(word, f"{known['surrogate_agreement']:.1%}")]
    found += [(f"seconds of the fit, {known['training_ended']}", f"{known['seconds']:.0f}")]
    cut = known.get("cut")
    if cut:
        found += [("stages cut short by the time limit", ", ".join(cut))]
    for name, value in _leakage(known.get("leakage")):
        found += [(name, value)]
    yield from _table(("", ""), found)
    levels = list(_levels(known.get("confidence") or {}))
    if levels:
        yield ""
        yield from _table(("target", "level", "confidence", "retrained models that would accept"), levels)


def _leakage(found: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Figures of the fit's own attacks, by name; nested ones are joined by a dot."""
    for name, value in (found or {}).items():
        if isinstance(value, Mapping):
            yield from ((f"{name}: {inner}", text) for inner, text in _leakage(value))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"leakage, {name}", f"{value:.3g}"


def _levels(confidence: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    for label, own in confidence.items():
        for level, one in own.items():
            if isinstance(one, Mapping):
                survival = one.get("survival")
                yield str(label), level, f"{one['confidence']:.2f}", "–" if survival is None else f"{survival:.0%}"


def _revealed(model: Model) -> Iterator[str]:
    yield from _table(
        ("what", "values", "guarantee"), [(one.what, _listed(one.values), one.guarantee) for one in reveals(model)]
    )


def _listed(values: Iterable[Any]) -> str:
    """Values with commas between them, the first few of many."""
    texts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in values]
    more = len(texts) - MOST_VALUES
    return ", ".join(texts[:MOST_VALUES]) + (f" and {more} more" if more > 0 else "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield line(heads)
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield line([escaped(cell) for cell in row])
