"""The result is a faithful record of what was found, and every view of it is complete."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from asked import asked
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.constraints import Constraints
from dicoflex.errors import QueryError, UserError
from dicoflex.table.schema import Schema
from dicoflex.views.cards import differences

TRAIN = pd.DataFrame(
    {
        "age": [25, 60, 41, 33],
        "grade": pd.Categorical(["low", "mid", "high", "low"], categories=["low", "mid", "high"], ordered=True),
        "job": ["clerk", "nurse", "clerk", None],
        "rate": [0.05, 0.31, np.nan, 0.0421],
        "owner": [True, False, True, False],
        "children": pd.array([1, None, 0, 2], dtype="Int64"),
    }
)


def make(
    pairs: Sequence[tuple[int, int]],
    *,
    queries: pd.DataFrame | None = None,
    train: pd.DataFrame = TRAIN,
    shortfall: Sequence[tuple[Any, ...]] = (),
    **more: Any,
) -> Counterfactuals:
    """A result in which (i, j) offers training row j for query i."""
    queries = train.iloc[:2] if queries is None else queries
    positions = np.array([i for i, _ in pairs], dtype=int)
    numbers = [int((positions[:k] == i).sum()) for k, i in enumerate(positions)]
    names = pd.Index([queries.index[i] for i in positions], tupleize_cols=False)
    index = pd.MultiIndex.from_arrays([names, numbers], names=["row", "cf"])
    info = pd.DataFrame(
        {
            "target": "yes",
            "log_density": np.linspace(-1.0, -5.0, len(pairs)),
            "n_changed": differences(queries.iloc[positions], train.iloc[[j for _, j in pairs]]).sum(axis=1),
            "proximity": 0.5,
            "valid": pd.array([None] * len(pairs), dtype="boolean"),
        },
        index=index,
    )
    columns = ["row", "wanted", "got", "reason"]
    return Counterfactuals(
        queries=queries,
        frame=train.iloc[[j for _, j in pairs]].set_axis(index),
        info=info,
        positions=positions,
        shortfall=pd.DataFrame(list(shortfall), columns=columns),
        schema=Schema.infer(train),
        request=asked({"n": 2, "p": 0.01, "frozen": ["owner"], "constraints": more.pop("constraints", {})}),
        targets=["yes"] * len(queries),
        model="0.1.0",
        **more,
    )


def strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_length_repr_and_frozen() -> None:
    cfs = make([(0, 1), (0, 2), (1, 3)])
    assert len(cfs) == 3
    assert repr(cfs) == "Counterfactuals(3 for 2 queries)"
    with pytest.raises(FrozenInstanceError):
        cfs.request = None  # type: ignore[misc, assignment]


def test_changes_lists_only_cells_that_differ() -> None:
    changes = make([(0, 2), (1, 1)]).changes()
    assert changes.columns.tolist() == ["row", "cf", "feature", "before", "after"]
    assert changes["feature"].tolist() == ["age", "grade", "rate", "children"]
    assert changes["before"].dtype == changes["after"].dtype == object
    assert changes.loc[0].tolist() == [0, 0, "age", 25, 41]
    assert changes.loc[1].tolist() == [0, 0, "grade", "low", "high"]
    assert math.isnan(changes.loc[2, "after"])


def test_changes_rebuild_the_counterfactuals() -> None:
    cfs = make([(0, 1), (0, 2), (1, 3), (1, 0)])
    changes = cfs.changes()
    for k, (row, cf) in enumerate(cfs.frame.index):
        expected = cfs.queries.iloc[cfs.positions[k]].astype(object)
        own = changes[(changes["row"] == row) & (changes["cf"] == cf)]
        expected[own["feature"]] = own["after"].to_numpy()
        pd.testing.assert_series_equal(expected, cfs.frame.iloc[k].astype(object), check_names=False)


@pytest.mark.parametrize(
    "index",
    [
        pd.Index([5, 5]),
        pd.Index(["b", "a"]),
        pd.MultiIndex.from_tuples([("x", 1), ("x", 1)], names=["branch", "client"]),
        pd.DatetimeIndex(["2024-01-31", "2024-02-29"]),
        pd.Index([1.5, np.nan]),
    ],
    ids=["repeated", "text", "multi", "dates", "nan"],
)
def test_any_index(index: pd.Index) -> None:
    cfs = make([(0, 2), (1, 3)], queries=TRAIN.iloc[:2].set_axis(index))
    changes = cfs.changes()
    assert changes.loc[changes["feature"] == "age", "before"].tolist() == [25, 60]
    assert changes["row"].iloc[0] == index[0]
    data = strict(cfs.to_json())
    assert [query["values"]["age"] for query in data["queries"]] == [25, 60]
    assert [query["counterfactuals"][0]["values"]["age"] for query in data["queries"]] == [41, 33]
    assert "25 → 41" in str(cfs)
    assert "60 → 33" in str(cfs)
    assert len(cfs.to_csv().splitlines()) == 3
    assert cfs.plot(position=1).texts


def test_json_holds_everything() -> None:
    cfs = make([(0, 2), (1, 3)], shortfall=[(1, 2, 1, "too few draws")])
    cfs.info["probability"] = [np.nan, 0.75]
    cfs.info["log_density"] = [-np.inf, -2.0]
    data = strict(cfs.to_json())
    assert list(data) == ["settings", "queries", "shortfall", "verdicts", "compared_with"]
    assert data["compared_with"] == "the rows that the result kept"
    assert data["settings"] == cfs.settings
    assert data["shortfall"] == [{"row": 1, "wanted": 2, "got": 1, "reason": "too few draws"}]
    first = data["queries"][0]["counterfactuals"][0]
    assert first["values"] == {
        "age": 41,
        "grade": "high",
        "job": "clerk",
        "rate": None,
        "owner": True,
        "children": 0,
    }
    assert first["changes"][0] == {"feature": "age", "before": 25, "after": 41}
    assert first["info"] == {
        "target": "yes",
        "log_density": None,
        "n_changed": 4,
        "proximity": 0.5,
        "valid": None,
        "probability": None,
    }
    assert data["queries"][1]["values"]["children"] is None


def test_verdicts_come_from_the_values_shown() -> None:
    """Whoever made the rows: the check knows them, the queries and the constraints alone."""
    bound = Constraints(frozen=["owner"], increase=["age"], max_changes=4)
    cfs = make([(0, 2), (0, 1), (1, 3)], constraints=bound)
    verdicts = cfs.verify()
    assert verdicts.columns.tolist() == ["row", "cf", "constraint", "holds"]
    assert len(verdicts) == 3 * 5
    broken = verdicts[~verdicts["holds"]][["row", "cf", "constraint"]].to_numpy().tolist()
    assert broken == [[0, 1, "frozen owner"], [0, 1, "max_changes 4"], [1, 0, "increase age"], [1, 0, "max_changes 4"]]
    assert strict(cfs.to_json())["verdicts"] == verdicts.to_dict("records")


def test_without_constraints_schema_and_record_are_verified() -> None:
    cfs = make([(0, 2)])
    assert cfs.constraints == Constraints()
    assert cfs.verify()["constraint"].tolist() == ["schema", "record"]


def test_json_takes_numpy_labels_and_column_names_that_collide() -> None:
    train = pd.DataFrame({1: [1, 2], "1": [np.float32(0.5), np.float32(1.5)]})
    cfs = make([(0, 1)], train=train)
    cfs.info["target"] = pd.Series([np.int64(3)], dtype=object).to_numpy()
    cfs.info["odd"] = math.inf
    data = strict(cfs.to_json())
    assert data["queries"][0]["counterfactuals"][0]["values"] == {"1": 2, "'1'": 1.5}
    assert data["queries"][0]["counterfactuals"][0]["info"]["target"] == 3
    assert data["queries"][0]["counterfactuals"][0]["info"]["odd"] is None


def test_csv_has_frame_and_info() -> None:
    cfs = make([(0, 2), (1, 3)])
    table = pd.read_csv(io.StringIO(cfs.to_csv()))
    assert table.columns.tolist() == ["row", "cf", *TRAIN.columns, *cfs.info.columns]
    assert table["age"].tolist() == [41, 33]


def test_csv_keeps_a_feature_named_like_a_column_of_info() -> None:
    train = TRAIN.rename(columns={"job": "target"})
    header = make([(0, 2)], train=train).to_csv().splitlines()[0].split(",")
    assert header.count("target") == 1
    assert "info_target" in header


def test_features_named_like_the_columns_beside_them() -> None:
    """0.1.0 (9aa4d8c) repeated names in the header, and could not write Parquet."""
    train = TRAIN.rename(columns={"age": "row", "job": "cf", "rate": "target", "children": "info_target"})
    cfs = make([(0, 2)], train=train)
    header = cfs.to_csv().splitlines()[0].split(",")
    assert len(set(header)) == len(header)
    assert header[:2] == ["info_row", "info_cf"]
    assert "info_info_target" in header
    cfs.table().reset_index().rename(columns=str).to_parquet(io.BytesIO())


@pytest.mark.parametrize("method", ["to_json", "to_html", "to_csv"])
def test_files_hold_the_text_and_leave_nothing_beside(method: str, tmp_path: Path) -> None:
    cfs = make([(0, 2), (1, 3)])
    path = tmp_path / "out"
    path.write_text("old")
    assert getattr(cfs, method)(path) is None
    assert getattr(cfs, method)(str(path)) is None
    assert path.read_bytes().decode() == getattr(cfs, method)()
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"can't be written: No such file.*; choose a file in a folder"):
        make([(0, 2)]).to_html(tmp_path / "absent" / "page.html")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="can't be written"):
        make([(0, 2)]).to_json(tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_text_has_no_colour_codes_and_rich_has() -> None:
    cfs = make([(0, 2)])
    assert "\x1b" not in str(cfs)
    assert "▲ 25 → 41" in str(cfs)
    assert "owner = True (frozen)" in str(cfs)
    console = Console(file=io.StringIO(), width=110, force_terminal=True, color_system="truecolor")
    with console.capture() as capture:
        console.print(cfs)
    assert "\x1b[" in capture.get()


def test_short_views_stop_after_ten_queries_and_the_page_does_not() -> None:
    queries = pd.concat([TRAIN] * 4).reset_index(drop=True)
    cfs = make([(i, (i + 1) % 4) for i in range(16)], queries=queries)
    for view in (str(cfs), cfs._repr_html_()):
        assert "and 6 more queries" in view
    assert cfs._repr_html_().count("<section>") == 10
    assert cfs.to_html().count("<section>") == 16


def test_nothing_found() -> None:
    cfs = make([], shortfall=[(0, 2, 0, "all refused"), (1, 2, 0, "limits exclude all")])
    assert len(cfs) == 0
    assert cfs.changes().empty
    assert cfs.changes().columns.tolist() == ["row", "cf", "feature", "before", "after"]
    assert [query["counterfactuals"] for query in strict(cfs.to_json())["queries"]] == [[], []]
    for view in (str(cfs), cfs.to_html(pictures=True), cfs._repr_html_()):
        assert "0 of 2 found: all refused" in view
        assert "0 of 2 found: limits exclude all" in view
    assert len(cfs.to_csv().splitlines()) == 1
    assert cfs.plot(position=0).texts


def test_pictures_surrogateside_the_page() -> None:
    page = make([(0, 2), (1, 3)]).to_html(pictures=True, title="Loans")
    assert page.count('src="data:image/png;base64,') == 2
    assert "<h1>Loans</h1>" in page


def test_plot_chooses_the_query() -> None:
    cfs = make([(0, 2), (1, 3)], queries=TRAIN.iloc[:2].set_axis(["ann", "bob"]))

    def title(**choice: Any) -> str:
        return cfs.plot("changes", **choice).get_title("left")

    assert title() == title(row="ann") == title(position=0)
    assert title().startswith("Row ann: 1 counterfactual for yes")
    assert title(row="bob") == title(position=1)
    assert title(row="bob").startswith("Row bob: ")


def test_plot_refuses_what_it_cannot_find() -> None:
    cfs = make([(0, 2), (1, 3)], queries=TRAIN.iloc[:2].set_axis(["ann", "ann"]))
    with pytest.raises(QueryError, match=r"row 'anna' is unknown; did you mean 'ann'\?"):
        cfs.plot(row="anna")
    with pytest.raises(QueryError, match="row 'ann' names 2 queries; choose one by position=0 or 1"):
        cfs.plot(row="ann")
    with pytest.raises(QueryError, match="position 2 is outside the 2 queries; use 0 to 1"):
        cfs.plot(position=2)
    with pytest.raises(QueryError, match="no query to plot"):
        make([], queries=TRAIN.iloc[:0]).plot()


def test_the_density_of_a_map_is_that_query_s() -> None:
    train = pd.DataFrame({"x": [0.0, 1.5, 3.25], "y": [0.5, 2.5, 1.0]})
    asked = []

    def density(position: int) -> Any:
        asked.append(position)
        return lambda rows: -(rows["x"] ** 2).to_numpy()

    ax = make([(0, 2), (1, 2)], train=train, density=density).plot(row=1)
    assert asked == [1]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x", "y")


@pytest.mark.slow
def test_a_large_result() -> None:
    queries = pd.concat([TRAIN] * 500).reset_index(drop=True)
    cfs = make([(i, (i + j) % 4) for i in range(2000) for j in range(1, 4)], queries=queries)
    assert len(cfs.changes()) > 6000
    assert len(strict(cfs.to_json())["queries"]) == 2000
    assert len(str(cfs)) < 20_000
