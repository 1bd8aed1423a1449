"""The options of a command line that state a question, and the arguments of `explain` that they are."""

from __future__ import annotations

__all__ = ["Question", "Target", "arguments_of"]

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicoflex.cli.constraint_flags import constraints, matches
from dicoflex.cli.options import of_request
from dicoflex.errors import QueryError, named

if TYPE_CHECKING:
    from dicoflex.model import Model

Target = Annotated[
    list[str] | None,
    typer.Option(
        help="Label asked for, 'other', or several times for any of some; of scores '>=620', '600..700', '+40'.",
        show_default="of two classes, the other",
    ),
]
QUESTION = {
    "n": int,
    "p": float | None,
    "confidence": str | None,
    "refine": bool,
    "coherent": bool,
    "min_plausibility": float,
    "diversity": float,
    "novel": bool,
    "exhaustive": bool,
    "handle_unknown": str,
}
"""Fields of `Request` that are options as they are; targets and constraints have their own words."""
Question = of_request(QUESTION, n=5)


def arguments_of(model: Model, target: Sequence[str] | None, flags: Any, question: Any) -> dict[str, Any]:
    """The arguments of `explain` that the words of a command line state, besides rows, seed and check."""
    return {
        **vars(question),
        "target": _target(target or [], model),
        "constraints": constraints(flags, model.schema),
        "confidence": _confidence(question.confidence),
    }


def _target(words: Sequence[str], model: Model) -> Any:
    """What some words ask of a model: nothing, one label or score, or any of several labels."""
    from dicoflex.targets import OTHER, one_of

    if not words or model.score is not None or words == [OTHER]:
        if len(words) > 1:
            raise QueryError(f"--target {words[1]!r} is one too many: a model of scores takes one, such as '600..700'")
        return words[0] if words else None
    labels = [_class_named(word, model.labels) for word in words]
    return labels[0] if len(labels) == 1 else one_of(*labels)


def _confidence(text: str | None) -> float | str | None:
    """A level as it is, or a number."""
    try:
        return text if text is None else float(text)
    except ValueError:
        return text


def _class_named(text: str, classes: Iterable[Any]) -> Any:
    """The class that a word means: by its text, or as the same number.

    >>> _class_named("1", [0, 1]), _class_named("1", [0.0, 1.0]), _class_named("yes", ["no", "yes"])
    (1, 1.0, 'yes')
    """
    plain = [label.item() if hasattr(label, "item") else label for label in classes]
    found = matches(text, plain)
    if not found:
        raise QueryError(named("target", text, plain))
    return found[0]
