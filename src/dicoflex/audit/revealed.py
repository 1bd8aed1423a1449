"""What a model file says about people, item by item, each with the guarantee that applies to it."""

from __future__ import annotations

__all__ = ["STATED", "Revealed", "reveals"]

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dicoflex._types import Arrays
from dicoflex.coherence import Coherence
from dicoflex.generators.mixed import Mixed
from dicoflex.model import CONFIDENCE_ARRAYS, EXACT, Model
from dicoflex.surrogate import Forest
from dicoflex.table.feature import Feature
from dicoflex.table.marginals import LEAST_COUNT, Marginals

STATED = "as stated by the caller"
NOTHING = "none: with min_count 1 it may be one row's"
COPY = "none: the file contains the model itself (surrogate='exact'), and all that it learned from its own rows"
WEIGHTS = "none: what weights have learned can't be read off, only tested (dicoflex audit leak)"
COUNTS = ("rows", "rows_used", "rows_left_out", "pairs", "black_box_rows", "surrogate_agreement", "held_out_loss")


@dataclass(frozen=True)
class Revealed:
    """One thing that a file says: what it is, the values themselves, what is guaranteed of them, and where they stand.

    places: names of arrays, and of parts of the header.
    """

    what: str
    values: tuple[Any, ...]
    guarantee: str
    places: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The item as plain data."""
        places, values = list(self.places), list(self.values)
        return {"what": self.what, "values": values, "guarantee": self.guarantee, "places": places}


def reveals(model: Model) -> list[Revealed]:
    """Everything that the file of `model` says, in the order in which people ask: rows, columns, density, the rest.

    >>> import pandas as pd
    >>> from dicoflex import DiCoFlex
    >>> rows = pd.DataFrame({"hours": [20, 30, 40, 50] * 16, "remote": [True, False] * 32})
    >>> model = DiCoFlex(random_state=0, max_seconds=1).fit(rows, rows["hours"] > 35).model_
    >>> found = {one.what: one for one in reveals(model)}
    >>> found["levels of remote"].values, found["levels of remote"].guarantee
    ((False, True), 'min_count 5: at least 5 rows have each, unless the caller stated it')
    """
    arrays = model.content()[1]
    items = [
        *_rows(model, arrays),
        *_columns(model),
        *_density(model, arrays),
        *_surrogate(model, arrays),
        *_facts(model),
    ]
    if model.marginals is not None:
        items += _marginals(model, model.marginals)
    return items if model.coherence is None else [*items, *_together(model, model.coherence)]


def _min_count(model: Model) -> int:
    return int(model.report.get("min_count", 1))


def _learned(model: Model, word: str) -> str:
    """The guarantee of what was learned from the rows."""
    n = _min_count(model)
    return NOTHING if n == 1 else f"min_count {n}: {word.format(n=n)}"


def _rows(model: Model, arrays: Arrays) -> Iterator[Revealed]:
    if model.remembered is not None:
        n = len(model.remembered.hashes)
        keyed = "a key that is in no file: without it, nothing but their number"
        yield Revealed("hashes of different training rows", (n,), keyed, ("remembered", "row_key_mark"))
    else:
        yield Revealed("hashes of training rows", (0,), "there are none", ("row_key_mark",))
    if model.generator.keeps_rows:
        places = tuple(name for name in arrays if name.startswith("generator."))
        yield Revealed("training rows in plain sight", (), "none: the file is the training table", places)


def _columns(model: Model) -> Iterator[Revealed]:
    schema, at = model.schema, ("encoding.schema",)
    yield Revealed("columns, their kinds and dtypes", tuple(schema.names), STATED, at)
    for feature in schema.features:
        yield from _feature(model, feature)
    if not schema.constraints.is_empty:
        texts = tuple(one.text for one in schema.constraints.one_by_one())
        yield Revealed("constraints of every call", texts, STATED, at)
    numbers = model.encoding.number_feature
    pairs = {str(schema.names[j]): (model.encoding.mean[j], model.encoding.scale[j]) for j in numbers}
    values = tuple(f"{name}: {mean:g}, {scale:g}" for name, (mean, scale) in pairs.items())
    word = _learned(model, "four digits")
    yield Revealed("means and deviations of numbers", values, word, ("encoding.mean", "encoding.scale"))


def _feature(model: Model, feature: Feature) -> Iterator[Revealed]:
    n, at = model.schema.min_count, ("encoding.schema",)
    given = STATED if _min_count(model) > 1 else NOTHING
    if feature.is_number:
        word = (
            f"min_count {n}: at least {n} rows lie at or beyond each, unless the caller stated it" if n > 1 else given
        )
        yield Revealed(f"least and greatest {feature.name}", (feature.minimum, feature.maximum), word, at)
    else:
        word = f"min_count {n}: at least {n} rows have each, unless the caller stated it" if n > 1 else given
        yield Revealed(f"levels of {feature.name}", tuple(feature.levels), word, at)
    if feature.categories is not None and set(feature.categories) - set(feature.levels):
        empty = tuple(c for c in feature.categories if c not in feature.levels)
        yield Revealed(f"categories of {feature.name} that no row has", empty, STATED, at)
    if feature.missing:
        word = f"min_count {n}: at least {n} rows have none" if n > 1 else given
        yield Revealed(f"that {feature.name} may be missing", (), word, at)


def _density(model: Model, arrays: Arrays) -> Iterator[Revealed]:
    generator = model.generator
    if isinstance(generator, Mixed):
        for j, feature in enumerate(model.schema.features):
            if feature.is_number:
                yield from _cells(model, generator, j, str(feature.name))
        order = tuple(str(model.schema.names[j]) for j in generator.grid.order)
        yield Revealed("order in which features are drawn", order, "from all rows", ("generator.grid.order",))
    own = [name for name in arrays if name.startswith("generator.") and not name.startswith("generator.grid.")]
    if not generator.keeps_rows:
        yield Revealed("weights of the density", (_size(arrays, own),), WEIGHTS, tuple(own))


def _cells(model: Model, generator: Mixed, j: int, name: str) -> Iterator[Revealed]:
    grid = generator.grid
    at = slice(grid.offset[j], grid.offset[j + 1])
    low, high, count = grid.low[at], grid.high[at], grid.count[at]
    places = tuple(f"generator.grid.{part}" for part in ("offset", "low", "high", "count"))
    single, wide = (count == 1) & ~np.isnan(low), count != 1
    word = _learned(model, "at least {n} rows have each, or no row")
    yield Revealed(f"single values of {name}", tuple(low[single].tolist()), word, places)
    stretches = tuple(f"{a:g} to {b:g}" for a, b in zip(low[wide], high[wide], strict=True))
    word = _learned(model, "ends are limits, neighbours of single values, or round numbers")
    yield Revealed(f"stretches of {name}", stretches, word, places)
    spacing = (float(grid.step[j]), int(grid.decimals[j]))
    yield Revealed(
        f"spacing and digits of {name}", spacing, "from all rows", ("generator.grid.step", "generator.grid.decimals")
    )


def _surrogate(model: Model, arrays: Arrays) -> Iterator[Revealed]:
    own = tuple(name for name in arrays if name.startswith("surrogate."))
    exact = model.report.get("surrogate") == EXACT
    if exact:
        yield Revealed(
            "the model that is explained, as an exact copy", (model.surrogate.kind,), COPY, (*own, "surrogate")
        )
    if isinstance(model.surrogate, Forest):
        forest = model.surrogate
        for j in model.encoding.number_feature:
            mine = (forest.feature == j) & np.isfinite(forest.threshold)
            values = tuple(np.unique(forest.threshold[mine]).tolist())
            word = COPY if exact else _learned(model, "round numbers")
            yield Revealed(f"splits of {model.schema.names[j]} in the surrogate", values, word, own)
    yield Revealed("weights of the surrogate", (_size(arrays, own),), COPY if exact else WEIGHTS, (*own, "surrogate"))


def _facts(model: Model) -> Iterator[Revealed]:
    yield Revealed("labels", tuple(model.labels), STATED, ("classes",))
    if model.score is not None:
        places = tuple(f"score.{name}" for name in model.score.arrays())
        told = tuple(model.score.knots.tolist())
        yield Revealed("how scores are spread", told, _learned(model, "round numbers, shares in whole percent"), places)
    settings = ("generator", "generator_config", "exponents", "has_confidence")
    yield Revealed("settings of the fit", (model.generator.name, *model.exponents), STATED, settings)
    known = tuple(f"{name}: {model.report[name]}" for name in COUNTS if model.report.get(name) is not None)
    yield Revealed(
        "counts and shares of rows", known, _learned(model, "merged to two digits, shares to four"), ("report",)
    )
    confidence = tuple(f"confidence.{name}" for name in CONFIDENCE_ARRAYS.values())
    sure = tuple(np.concatenate([model.confidence.default, model.confidence.highest]).tolist())
    yield Revealed("confidences that can be asked for", sure, _learned(model, "whole percent"), confidence)
    if model.survival is not None:
        told = tuple(model.survival.share.ravel().tolist())
        places = tuple(f"survival.{name}" for name in model.survival.arrays())
        yield Revealed("shares of retrained surrogates that accept answers", told, "of answers, not of rows", places)
    others = tuple(f"{name}: {value}" for name, value in model.report.items() if name not in (*COUNTS, "confidence"))
    yield Revealed("how the fit went", others, "nothing of rows, but for how long it took", ("report",))


def _marginals(model: Model, marginals: Marginals) -> Iterator[Revealed]:
    n = _min_count(model)
    least = max(LEAST_COUNT, n)
    told = "exact" if n == 1 else "merged to two digits"
    word = f"counts under {least} are told as 0, others are {told}"
    places = tuple(f"marginals.{name}" for name in marginals.arrays())
    for j, feature in enumerate(model.schema.features):
        values = tuple(marginals.counts(j).tolist())
        yield Revealed(f"how many rows have which {feature.name}", values, word, places)


def _together(model: Model, coherence: Coherence) -> Iterator[Revealed]:
    names = model.schema.names
    for title, bins in (("density of rows", coherence.density.bins), ("pairs", coherence.pairs.bins)):
        part = "density" if bins is coherence.density.bins else "pairs"
        values = tuple(
            f"{names[j]}: {', '.join(f'{edge:g}' for edge in bins.edge[a:b])}"
            for j, (a, b) in enumerate(pairwise(bins.edge_at))
            if b > a
        )
        word = _learned(model, "round numbers, at least {n} rows between any two")
        yield Revealed(
            f"edges of cells, {title}", values, word, (f"coherence.{part}.edge", f"coherence.{part}.edge_at")
        )
    yield from _learned_together(model, coherence)
    for name, values in _held_out(model).items():
        word = {"margin": _learned(model, "whole percent")}.get(name, "of answers, not of rows")
        yield Revealed(f"held-out answers: {name}", values, word, (f"certificate.{name}", "judge"))


def _learned_together(model: Model, coherence: Coherence) -> Iterator[Revealed]:
    stops, names = coherence.stops, model.schema.names
    for j, (a, b) in enumerate(pairwise(stops.at)):
        if b > a:
            word = _learned(model, "at least {n} rows have each")
            values = tuple(stops.value[a:b].tolist())
            yield Revealed(
                f"values at which {names[j]} may rest", values, word, ("coherence.stops.at", "coherence.stops.value")
            )
    typical = tuple(stops.typical[np.isfinite(stops.typical)].tolist())
    word = _learned(model, "at least {n} rows have it, or a round number")
    yield Revealed("a value for each cell", typical, word, ("coherence.stops.typical",))
    spacing = ("coherence.stops.step", "coherence.stops.decimals")
    yield Revealed("spacing and digits of numbers", tuple(stops.step.tolist()), "from all rows", spacing)
    texts = tuple(one.describe(model.schema) for one in coherence.dependencies.found)
    yield Revealed(
        "what follows from what", texts, _learned(model, "of values that at least {n} rows have"), ("dependencies",)
    )
    marked = tuple(int(table.sum()) // 2 for table in (coherence.pairs.unseen, coherence.pairs.avoided))
    pairs = ("coherence.pairs.unseen", "coherence.pairs.avoided", "coherence.pairs.rule")
    yield Revealed(
        "pairs of cells that don't go together, and that answers avoid",
        marked,
        _learned(model, "fewer than {n} rows have each"),
        pairs,
    )
    ends = tuple(coherence.density.held[:, [0, -1]].ravel().tolist())
    quantiles = ("coherence.density.held", "coherence.density.weakest")
    yield Revealed("quantiles of held-out log densities, ends", ends, _learned(model, "means over {n} rows"), quantiles)
    own = tuple(f"coherence.density.{name}" for name in coherence.density.arrays())
    weights = tuple(name for name in own if not name.endswith((".edge", ".edge_at", ".held", ".weakest")))
    yield Revealed(
        "weights of the density of rows", (_size(coherence.arrays(), [w[10:] for w in weights]),), WEIGHTS, weights
    )


def _held_out(model: Model) -> dict[str, tuple[Any, ...]]:
    if model.certificate is None:
        return {}
    return {name: tuple(array.ravel().tolist()) for name, array in model.certificate.arrays().items()}


def _size(arrays: Arrays, names: Any) -> int:
    return sum(int(arrays[name].size) for name in names)
