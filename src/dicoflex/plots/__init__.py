"""Pictures of a result, each of which answers one question.

Every function takes a result of `explain`, draws on the axes `ax`, or on axes of its own in a new pyplot figure, and
returns the axes. Titles state what was found; bars and rows are sorted, the largest first. Directions have signs as
well as colours, so that the pictures can be read in grey and by colour-blind readers. The package matplotlib is needed:
`pip install "dicoflex[plots]"`.

======================  ================================================================
`changes`               What would be different, in each counterfactual of one row?
`waterfall`             How does each change of one counterfactual move the model?
`map`                   Where is the decision boundary, and where are the answers?
`levers`                How far does a single feature alone move the model?
`tradeoff`              What does more confidence cost in distance?
`matrix`                Which row changes which feature?
`importance`            How often does each feature change?
`burden`                Is the nearest counterfactual farther away for some groups?
======================  ================================================================

Examples
--------
>>> from dicoflex import load, plots
>>> from dicoflex.examples import EXAMPLES, rows_like
>>> explainer = load(EXAMPLES[2])
>>> rows = rows_like(explainer.schema_, 3)
>>> cfs = explainer.explain(rows, target="other", n=3, random_state=0)
>>> ax = plots.importance(cfs)
>>> ax.get_xlabel()
'share of counterfactuals that change the feature'
"""

from __future__ import annotations

__all__ = ["burden", "changes", "importance", "levers", "map", "matrix", "picture", "plot", "tradeoff", "waterfall"]

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dicoflex.errors import QueryError, named
from dicoflex.plots.canvas import apart, to_png
from dicoflex.plots.many_people import burden, importance, matrix, tradeoff
from dicoflex.plots.one_person import changes, levers, waterfall
from dicoflex.plots.plane import map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dicoflex.answers.counterfactuals import Counterfactuals

KINDS: dict[str, Callable[..., Axes]] = {
    "changes": changes,
    "waterfall": waterfall,
    "map": map,
    "levers": levers,
    "tradeoff": tradeoff,
    "matrix": matrix,
    "importance": importance,
    "burden": burden,
}


def plot(result: Counterfactuals, kind: str | None = None, **options: Any) -> Axes:
    """Draw one of the pictures of this module.

    Parameters
    ----------
    result : Counterfactuals
        What `explain` returned.
    kind : str, optional
        The name of a function of this module. By default `matrix` for several rows; for one row `map` if it consists
        of two numbers, and `changes` otherwise.
    **options
        What the function takes: `row`, `position`, `ax` and others.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from dicoflex import load
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> cfs = explainer.explain(rows_like(explainer.schema_, 3), target="other", n=3, random_state=0)
    >>> ax = plot(cfs, "matrix")
    """
    if kind is None:
        kind = "matrix" if not {"row", "position"} & set(options) and len(result.queries) > 1 else _of_one(result)
    if kind not in KINDS:
        raise QueryError(named("kind of plot", kind, KINDS))
    return KINDS[kind](result, **options)


def picture(result: Counterfactuals, position: int) -> bytes:
    """The usual picture of the row at a position, as the bytes of a PNG file."""
    with apart():
        ax = KINDS[_of_one(result)](result, position=position)
    figure: Any = ax.get_figure(root=True)
    return to_png(figure)


def _of_one(result: Counterfactuals) -> str:
    two = len(result.schema) == 2 and all(feature.is_number for feature in result.schema.features)
    return "map" if two else "changes"
