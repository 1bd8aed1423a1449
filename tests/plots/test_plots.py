"""Every picture draws where it is told to, says what it shows, and agrees with the result that it shows."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from dicoflex import Constraints, Explainer, load, plots
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.errors import QueryError
from dicoflex.examples import EXAMPLES, rows_like
from dicoflex.table.schema import Schema

ONE = ("changes", "waterfall", "map", "levers", "tradeoff")
KINDS = (*ONE, "matrix", "importance", "burden")


@pytest.fixture(scope="module")
def explainer() -> Explainer:
    return load(next(path for path in EXAMPLES if path.stem == "perceptron"))


@pytest.fixture(scope="module")
def cfs(explainer: Explainer) -> Counterfactuals:
    rows = rows_like(explainer.schema_, 7, seed=3)
    return explainer.explain(rows, target="other", n=4, random_state=0)


@pytest.fixture(autouse=True)
def _closed() -> Any:
    yield
    plt.close("all")


def options(kind: str, cfs: Counterfactuals) -> dict[str, Any]:
    if kind == "burden":
        return {"groups": ["a", "b"] * 3 + ["a"]}
    return {"position": int(cfs.positions[0])} if kind in ONE else {}


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_is_drawn_where_it_is_told(cfs: Counterfactuals, kind: str) -> None:
    _, (first, second) = plt.subplots(1, 2, figsize=(12, 5))
    assert cfs.plot(kind, ax=second, **options(kind, cfs)) is second
    assert second.get_title("left")
    assert not first.has_data()
    own = cfs.plot(kind, **options(kind, cfs))
    assert own.get_figure() is plt.gcf()
    assert own.get_title("left")


@pytest.mark.parametrize("kind", KINDS)
def test_titles_and_labels_neither_overlap_nor_leave_the_picture(cfs: Counterfactuals, kind: str) -> None:
    ax = cfs.plot(kind, **options(kind, cfs))
    figure = ax.get_figure()
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    title = ax._left_title.get_window_extent(renderer)
    labels = [t.get_window_extent(renderer) for t in (*ax.get_yticklabels(), *ax.texts) if t.get_text().strip("· ")]
    assert figure.bbox.x0 - 1 <= title.x0
    assert title.x1 <= figure.bbox.x1 + 1
    assert not [box for box in labels if box.overlaps(title)]
    ticks = [t.get_window_extent(renderer) for t in ax.get_yticklabels() if t.get_text()]
    assert not [1 for a, b in combinations(ticks, 2) if a.overlaps(b)]


def test_the_usual_picture_suits_the_result(cfs: Counterfactuals) -> None:
    assert "changes for" in cfs.plot().get_title("left")
    assert cfs.plot(row=cfs.queries.index[0]).get_title("left").startswith(f"Row {cfs.queries.index[0]}")
    with pytest.raises(QueryError, match="kind of plot 'chanegs' is unknown; did you mean 'changes'"):
        cfs.plot("chanegs")
    with pytest.raises(QueryError, match="row 'nobody' is unknown"):
        cfs.plot(row="nobody")


def test_the_waterfall_ends_where_the_answer_is(cfs: Counterfactuals) -> None:
    place = int(cfs.positions[0])
    what_if = cfs.what_if(place)
    steps = what_if.steps(cfs.frame.iloc[[0]])
    assert steps[-1][1] == pytest.approx(cfs.info["probability"].iloc[0], abs=1e-5)  # 32 bits inside
    changed = set(np.flatnonzero(cfs.changed_cells[0]))
    assert {j for j, _ in steps} == changed
    end = what_if.model.encoding.encode(cfs.frame.iloc[[0]])[0]
    single = [what_if.probability(np.where(np.arange(len(end)) == j, end, what_if.own)[None])[0] for j in changed]
    assert steps[0][1] == pytest.approx(max(single), abs=1e-5)
    labels = [label.get_text() for label in plots.waterfall(cfs, position=place).get_yticklabels()]
    assert (labels[0], labels[-1], len(labels)) == ("now", "counterfactual", len(changed) + 2)
    with pytest.raises(QueryError, match="none is number 99"):
        plots.waterfall(cfs, position=place, cf=99)


def test_levers_keep_the_constraints(explainer: Explainer) -> None:
    rows = rows_like(explainer.schema_, 7, seed=3).head(1)
    number = next(feature for feature in explainer.schema_.features if feature.is_number)
    fixed = explainer.schema_.names[-1]
    middle = (number.minimum + number.maximum) / 2
    bound = Constraints(ranges={number.name: (None, middle)}, frozen=[fixed])
    cfs = explainer.explain(rows, target="other", n=2, constraints=bound, random_state=0)
    table = cfs.what_if(0).levers(cfs, 0)
    assert fixed not in table.index
    assert table.loc[number.name, "best"] <= middle
    free = explainer.explain(rows, target="other", n=2, random_state=0)
    assert fixed in free.what_if(0).levers(free, 0).index
    assert (table["low"] <= table["high"]).all()
    assert table["high"].is_monotonic_decreasing


def test_importance_is_sorted_and_says_the_shares(cfs: Counterfactuals) -> None:
    ax = plots.importance(cfs)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == [str(name) for name in cfs.importance().index[: len(names)]]
    assert len([text for text in texts(ax) if "%" in text]) == len(names)


def test_the_burden_of_groups_is_sorted_and_counts_who_has_nothing(cfs: Counterfactuals) -> None:
    ax = plots.burden(cfs, pd.Series(["few"] + ["many"] * 6, index=cfs.queries.index))
    found = np.bincount(cfs.positions, minlength=7) > 0
    assert any(f"{int(found[1:].sum())} of 6 rows" in text for text in texts(ax))
    with pytest.raises(QueryError, match="there are 7 rows and 2 groups"):
        plots.burden(cfs, ["a", "b"])
    with pytest.raises(QueryError, match="feature 'nothing' is unknown"):
        plots.burden(cfs, "nothing")


def test_a_result_made_by_hand_has_no_model_to_ask(cfs: Counterfactuals) -> None:
    from dataclasses import replace

    bare = replace(cfs, origin=None)
    place = int(cfs.positions[0])
    assert plots.changes(bare, position=place).get_title("left")
    for kind in ("waterfall", "levers"):
        with pytest.raises(QueryError, match="made by hand has no model"):
            bare.plot(kind, position=place)


# -- the grid of changes -------------------------------------------------------------------------------------------

INDEX = pd.MultiIndex.from_product([["ann"], range(30)], names=["row", "cf"])


def by_hand(frame: pd.DataFrame, query: pd.DataFrame, **more: Any) -> Counterfactuals:
    info = pd.DataFrame(
        {"target": "yes", "log_density": -1.0, "n_changed": 1, "valid": pd.array([True] * len(frame))},
        index=frame.index,
    )
    shortfall = pd.DataFrame(columns=["row", "wanted", "got", "reason"])
    schema = Schema.infer(pd.concat([query, frame.reset_index(drop=True)]))
    return Counterfactuals(query, frame, info, np.zeros(len(frame), dtype=int), shortfall, schema, **more)


def test_the_grid_states_values_and_directions_and_cuts_what_is_too_long() -> None:
    query = pd.DataFrame({"income $5$": [31], "a rather long feature name, twice as long": ["here"]}, index=["ann"])
    frame = pd.DataFrame({name: [query[name].iloc[0]] * 30 for name in query}, index=INDEX)
    frame.iloc[:, 0] = range(32, 62)
    frame.iloc[0, 1] = "a value that goes on and on and on"
    ax = plots.changes(by_hand(frame, query), most=4)
    assert "▲ 33" in texts(ax)
    assert "● a value that goes on …" in texts(ax)
    assert "Row ann: 30 counterfactuals for yes, 4 shown; all change income $5$" in ax.get_title("left").replace(
        "\n", " "
    )
    assert [label.get_text() for label in ax.get_xticklabels()] == ["now", "0", "1", "2", "3"]
    ax.get_figure().canvas.draw()


def test_the_reason_is_drawn_where_there_is_nothing_else() -> None:
    query = pd.DataFrame({"x": [1], "job": ["cook"]}, index=["ann"])
    shortfall = pd.DataFrame([("ann", 5, 0, "none fits")], columns=["row", "wanted", "got", "reason"])
    frame = query.set_axis(INDEX[:1]).iloc[:0]
    cfs = by_hand(frame, query)
    object.__setattr__(cfs, "shortfall", shortfall)
    assert "0 of 5 found: none fits" in texts(cfs.plot(row="ann"))


# -- the map -------------------------------------------------------------------------------------------------------

TRAIN = pd.DataFrame({"x$1$": [0.0, 1.5, 3.0], "n": pd.array([0, 5, 20], dtype="Int64")})


def mapped(density: Any, query: pd.DataFrame = TRAIN.iloc[[0]], frame: pd.DataFrame = TRAIN.iloc[[1, 2]]) -> Axes:
    index = pd.MultiIndex.from_product([query.index, range(len(frame))], names=["row", "cf"])
    return by_hand(frame.set_axis(index), query, density=lambda _: density).plot(row=query.index[0])


def test_two_numbers_get_a_map_with_the_density() -> None:
    seen = []

    def density(rows: pd.DataFrame) -> np.ndarray:
        seen.append(rows)
        return -((rows["x$1$"] - 2) ** 2).to_numpy() - 0.1 * rows["n"].to_numpy(dtype=float)

    ax = mapped(density)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x$1$", "n")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["counterfactuals", "now"]
    assert seen[0].dtypes.tolist() == TRAIN.dtypes.tolist()
    assert seen[0]["n"].nunique() == 21


@pytest.mark.parametrize("value", [-np.inf, np.nan, np.inf, 0.0])
def test_the_map_stands_flat_and_infinite_densities(value: float) -> None:
    mapped(lambda rows: np.full(len(rows), value)).get_figure().canvas.draw()


def test_the_map_needs_two_numbers(cfs: Counterfactuals) -> None:
    word = next(feature.name for feature in cfs.schema.features if not feature.is_number)
    number = next(feature.name for feature in cfs.schema.features if feature.is_number)
    with pytest.raises(QueryError, match="a map needs two numbers"):
        plots.map(cfs, position=0, features=[number, word])
    with pytest.raises(QueryError, match="background 'night' is unknown"):
        plots.map(cfs, position=0, background="night")


# -- what is loaded ------------------------------------------------------------------------------------------------


def test_pictures_of_a_page_are_unknown_to_pyplot(cfs: Counterfactuals) -> None:
    pictures = [card["picture"] for card in cfs.cards(pictures=True) if card["answers"]]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert plt.get_fignums() == []


@pytest.mark.slow
def test_importing_loads_neither_matplotlib_nor_rich() -> None:
    code = (
        "import sys, dicoflex.plots, dicoflex.views.html, dicoflex.answers.counterfactuals; "
        "print(sorted({'matplotlib', 'rich'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
