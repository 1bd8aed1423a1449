"""The result of `explain`: the counterfactuals, what is known of each, and the views of them."""

from __future__ import annotations

__all__ = ["Counterfactuals"]

import io
import json
import os
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from dicoflex.answers.importance import importance
from dicoflex.answers.recorded import Origin, as_kept, as_stored, claims_of, with_dtypes
from dicoflex.answers.search import Search
from dicoflex.answers.verification import verify
from dicoflex.answers.what_if import WhatIf
from dicoflex.constraints import Constraints
from dicoflex.errors import QueryError, named
from dicoflex.model import SAFE
from dicoflex.request import Request
from dicoflex.runtime.whole_files import write_text
from dicoflex.signatures import Key, sign_record
from dicoflex.table.native import PANDAS, Frame, Native, as_pandas
from dicoflex.table.schema import Schema
from dicoflex.views.cards import Card, differences
from dicoflex.views.cards import cards as make_cards
from dicoflex.views.csv_text import neutralised, with_written
from dicoflex.views.dice_json import dice_record
from dicoflex.views.html import to_html_fragment, to_html_page
from dicoflex.views.markdown import markdown_of
from dicoflex.views.record import record, settings
from dicoflex.views.terminal import to_rich
from dicoflex.views.words import narrative

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from dicoflex.answers.check import Check
    from dicoflex.answers.relaxation import Relaxation

MAX_SHOWN = 10
ASKED_NOTHING = Request()
TEXT_WIDTH = 110
KEPT_ROWS = "the rows that the result kept"
GIVEN_ROWS = "the rows given to verify"

Density = Callable[[pd.DataFrame], np.ndarray]
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, eq=False, repr=False)
class Counterfactuals:
    """Counterfactuals for some queries.

    queries: the rows explained.
    frame: the counterfactuals, index (row, cf), with the columns and dtypes of the training rows.
    info: on the same index target, log_density, n_changed, proximity, valid, and perhaps probability.
    positions: for each row of `frame` the position of its query in `queries`, as index labels may repeat.
    shortfall: the queries that got fewer than asked for: row, wanted, got, reason. short: their positions.
    status: one word per query: "already" where it has the target, and so no answers, "found", "short" where fewer were
    found than asked for, "contradictory" where the constraints leave no answer, "infeasible" where all rows that are
    allowed were looked at in vain, or "not_found".
    searches: by position, what came of looking for an answer to queries for which none was drawn.
    request: what was asked for, as it bound: with the schema's own constraints. targets: the label asked for per query.
    model: the fingerprint of the model that answered, the checksum of its file's content.
    changed: which cells of `frame` differ from the query's (rows, features); None looks for them.
    origin: the model and what it was conditioned on, for what is worked out again; None for a result made by hand.
    native: the kind of frame that the queries came as; native_of_model: the kind that the black box takes.
    density: for a query's position, the log density of rows as its counterfactuals; None asks the origin.

    >>> queries = pd.DataFrame({"age": [31, 52], "job": ["clerk", "nurse"]})
    >>> index = pd.MultiIndex.from_tuples([(0, 0), (0, 1), (1, 0)], names=["row", "cf"])
    >>> frame = pd.DataFrame({"age": [31, 40, 52], "job": ["nurse", "clerk", "clerk"]}, index=index)
    >>> info = pd.DataFrame({"target": "yes", "log_density": [-1.0, -2.5, -1.2], "n_changed": 1,
    ...                      "proximity": 0.5, "valid": pd.array([True] * 3)}, index=index)
    >>> shortfall = pd.DataFrame(columns=["row", "wanted", "got", "reason"])
    >>> cfs = Counterfactuals(queries, frame, info, np.array([0, 0, 1]), shortfall, Schema.infer(queries))
    >>> cfs
    Counterfactuals(3 for 2 queries)
    >>> print(cfs.changes().to_string(index=False))
     row  cf feature before after
       0   0     job  clerk nurse
       0   1     age     31    40
       1   0     job  nurse clerk
    >>> cfs[0, 1].to_dict()
    {'age': 40, 'job': 'clerk'}
    >>> [(int(query["age"]), len(answers)) for query, answers in cfs]
    [(31, 2), (52, 1)]
    """

    queries: pd.DataFrame
    frame: pd.DataFrame
    info: pd.DataFrame
    positions: np.ndarray
    shortfall: pd.DataFrame
    schema: Schema
    request: Request = ASKED_NOTHING
    targets: Sequence[Any] = ()
    model: str | None = None
    short: np.ndarray | None = None
    changed: np.ndarray | None = None
    density: Callable[[int], Density] | None = None
    origin: Origin | None = None
    status: Sequence[str] = ()
    searches: Mapping[int, Search] = field(default_factory=dict)
    native: Native = PANDAS
    native_of_model: Native = PANDAS

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        count = len(self.queries)
        return f"Counterfactuals({len(self)} for {count} {'query' if count == 1 else 'queries'})"

    def __getitem__(self, key: Any) -> pd.DataFrame | pd.Series[Any]:
        """The answers to one query, or one of them.

        Parameters
        ----------
        key : label or (label, int)
            The query's index label gives a frame of its answers. With a number beside it, the answer of that number.

        Returns
        -------
        DataFrame or Series

        Raises
        ------
        QueryError
            If no query, or more than one, has that label, or the query has no such answer.
        """
        index = self.queries.index
        label, number = key, None
        if isinstance(key, tuple) and len(key) == 2 and not (index.nlevels > 1 and key in index):
            label, number = key
        answers = self._answers(self._place(label, None))
        if number is None:
            return answers
        if number not in answers.index:
            raise QueryError(
                f"row {label!r} has {len(answers)} answers, and none is number {number!r}; they count from 0"
            )
        return answers.loc[number]

    def __iter__(self) -> Iterator[tuple[pd.Series[Any], pd.DataFrame]]:
        """Every query as a Series with a frame of its answers, which is empty where none was found."""
        for place in range(len(self.queries)):
            yield self.queries.iloc[place], self._answers(place)

    def _answers(self, place: int) -> pd.DataFrame:
        """The answers to the query at a position, by their numbers."""
        return self.frame.iloc[np.flatnonzero(self.positions == place)].droplevel("row")

    @cached_property
    def changed_cells(self) -> np.ndarray:
        """Which cells of `frame` differ from the query's (rows, features); missing equals missing."""
        return differences(self.queries.iloc[self.positions], self.frame) if self.changed is None else self.changed

    @property
    def constraints(self) -> Constraints:
        """What every counterfactual was bound by, the schema's own constraints among it."""
        return self.request.constraints

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for and by which model, ready for JSON."""
        return settings(self)

    @cached_property
    def reasons(self) -> dict[int, tuple[int, int, str]]:
        """For the position of each query that got fewer than asked for: wanted, got, and why."""
        entries = self.shortfall[["wanted", "got", "reason"]].itertuples(index=False, name=None)
        places = np.arange(len(self.shortfall)) if self.short is None else self.short
        return {int(i): (int(n), int(got), str(why)) for i, (n, got, why) in zip(places, entries, strict=True)}

    def changes(self) -> pd.DataFrame:
        """Every cell in which a counterfactual differs from its query: row, cf, feature, before, after."""
        before, after = self.queries.iloc[self.positions], self.frame
        rows, columns = np.nonzero(self.changed_cells)
        old, new = (_picked(frame, rows, columns) for frame in (before, after))
        names = np.empty(len(self.schema), dtype=object)
        names[:] = self.schema.names
        return pd.DataFrame(
            {
                "row": before.index.to_flat_index().take(rows),
                "cf": after.index.get_level_values("cf").take(rows),
                "feature": names[columns],
                "before": pd.Series(old, dtype=object),
                "after": pd.Series(new, dtype=object),
            }
        )

    def to_native(self) -> Any:
        """The answers as the kind of frame that the rows came as.

        Returns
        -------
        frame
            `frame` itself for pandas rows. Else a frame of polars or Arrow, or a dict of columns, with `row` and `cf`
            as the first columns, in the types of the rows as far as these hold the answers' values; an array has the
            features alone, and `positions` says which row each answer belongs to.

        Examples
        --------
        >>> from dicoflex import load
        >>> from dicoflex.examples import EXAMPLES, rows_like
        >>> import pyarrow as pa
        >>> explainer = load(EXAMPLES[0])
        >>> rows = pa.Table.from_pandas(rows_like(explainer.schema_, 2), preserve_index=False)
        >>> cfs = explainer.explain(rows, target=explainer.classes_[0], n=1, random_state=0)
        >>> cfs.to_native().column_names[:2], type(cfs.to_native()) is type(rows)
        (['row', 'cf'], True)
        """
        if not self.native.has_names:
            return self.native.of(self.frame)
        names = [_free(name, set(map(str, self.frame.columns))) for name in self.frame.index.names]
        return self.native.of(self.frame.rename_axis(index=names).reset_index())

    def table(self) -> pd.DataFrame:
        """The frame with the columns of `info` and the `status` of each answer's query beside it.

        A column that is named like a feature gets `info_` before it.

        So do `row` and `cf`, the names of the index.
        """
        return self._beside(self.frame)

    def _beside(self, frame: pd.DataFrame) -> pd.DataFrame:
        taken = set(map(str, frame.columns))
        info = self.info.rename(columns={name: _free(name, taken) for name in self.info.columns})
        if self.status:
            info = info.assign(**{_free("status", taken): np.array(self.status, dtype=object)[self.positions]})
        made = pd.concat([frame, info], axis=1)
        return made.set_axis(made.index.set_names([_free(name, taken) for name in made.index.names]))

    def verify(self, rows: Frame | None = None) -> pd.DataFrame:
        """Every constraint checked again on every counterfactual, from the shown values: row, cf, constraint, holds.

        rows: the rows as the caller has them, in the order in which they were explained. Without them, answers are
        compared with the rows that the result kept; `.attrs["compared_with"]` says with which. The line "record" says
        that an answer stands under its row's label, differs from that row and from the row's other answers, has the
        target asked for, and has the numbers in `info` that the model gives it. What of that does not hold has a line
        of its own. The line "coherence", of refined answers, says that nothing stands together that no training row
        has, and that dependent features follow. The check shares no code with the sampler.
        """
        queries = self.queries if rows is None else as_kept(as_pandas(rows, list(self.queries.columns)), self.queries)
        claims = claims_of(
            as_stored(queries, self.schema), self.queries, self.frame, self.info, self.positions, self.targets
        )
        origin = self.origin
        pair = None if origin is None else origin.encoded(self.queries, self.frame, self.positions)
        lines = claims.lines(origin, pair)
        if self.is_refined and self.request.coherent and origin is not None:
            fits = np.zeros(len(self), dtype=bool) if pair is None else origin.coherent(*pair)
            lines = {"coherence": fits, **lines}
        before = self.queries if rows is None else with_dtypes(queries, self.queries)
        found = verify(
            before, self.frame, self.positions, self.request.constraints, self.schema,
            dependent=self.dependent, others=lines,
        )  # fmt: skip
        found.attrs["compared_with"] = KEPT_ROWS if rows is None else GIVEN_ROWS
        return found

    def relax(
        self, row: Any = None, *, position: int | None = None, check: Check | None = None
    ) -> list[Relaxation]:  # fmt: skip
        """Which single constraint, relaxed how far, would give a query more answers; those that help most come first.

        Each entry has `kind`, `feature`, `before`, `after`, `found`, a `sentence`, and the relaxed `constraints` to
        ask with; constraints of the schema are left as they are. What is told has been tried, under the same seed.

        row: the query's index label, by default the first query; position: its place, where labels repeat. check: as
        for `explain`, which does not keep it: only rows that it confirms count; without it the surrogate's word does.
        """
        from dicoflex.answers.relaxation import relaxations

        if self.origin is None:
            raise QueryError("a result that was made by hand has no model to ask again; explain the rows")
        place = self._place(row, position)
        own = self.queries.iloc[[place]]
        return relaxations(self.origin, self.request, place, own, check=self.native_of_model.calling(check))

    @property
    def dependent(self) -> list[Any]:
        """The features that follow from others, by wish or in the table; they don't count as changes."""
        if self.origin is None:
            return list(self.request.constraints.consequences)
        return [name for name, free in zip(self.schema.names, self.origin.uncounted, strict=True) if free]

    @property
    def is_refined(self) -> bool:
        """Whether the answers were made minimal: the model knows what goes together, and draws were not asked for."""
        return self.request.refine and self.origin is not None and self.origin.model.coherence is not None

    def cards(self, *, most: int | None = None, pictures: bool = False) -> list[Card]:
        """What `report` renders, one plain dict per query; at most `most`, with a picture each if asked."""
        shown = range(len(self.queries))[:most]
        cards = make_cards(self, only=shown)
        if pictures:
            from dicoflex import plots

            for i, card in zip(shown, cards, strict=True):
                if card["answers"]:
                    card["picture"] = plots.picture(self, i)
        return cards

    def importance(self, row: Any = None) -> pd.DataFrame:
        """Per feature the share of answers that change it, low and high at 95 %, mean_move, and commonest new level.

        row: the index label of one query; None is of all queries together. A frozen feature has the share 0.
        """
        return importance(self, None if row is None else self._place(row, None))

    def plot(self, kind: str | None = None, **options: Any) -> Axes:
        """Draw one of the pictures of `dicoflex.plots`.

        Parameters
        ----------
        kind : str, optional
            "changes", "waterfall", "map", "levers" or "tradeoff" of one row; "matrix", "importance" or "burden" of all.
            By default `matrix` for several rows; for one, `map` if it consists of two numbers, and `changes` otherwise.
        **options
            What the function of that name in `dicoflex.plots` takes: `row`, `position`, `ax` and others.

        Returns
        -------
        Axes

        Raises
        ------
        QueryError
            If there is no such picture, or no such row.
        """
        from dicoflex import plots

        return plots.plot(self, kind, **options)

    def narrative(
        self, row: Any = None, *, position: int | None = None, units: Mapping[str, str] | None = None
    ) -> str:  # fmt: skip
        """One row's answers in sentences: a paragraph for each, and in the end what they are not.

        Parameters
        ----------
        row : label, optional
            The row's index label; by default the first row.
        position : int, optional
            The row's place, where labels repeat.
        units : dict, optional
            By feature, the unit that is written after its values.

        Returns
        -------
        str
            Plain text. It states what the model would answer, and gives no advice.

        Examples
        --------
        >>> from dicoflex import load
        >>> from dicoflex.examples import EXAMPLES, rows_like
        >>> explainer = load(EXAMPLES[2])
        >>> cfs = explainer.explain(rows_like(explainer.schema_, 3), target="other", n=2, random_state=0)
        >>> text = cfs.narrative(row=1, units={"age": "years"})
        >>> "it is not a promise" in text
        True
        """
        card = make_cards(self, only=[self._place(row, position)])[0]
        return narrative(card, units or {})

    def what_if(self, position: int) -> WhatIf:
        """The query at a position and the model that answered it, for what the model says of other values."""
        return WhatIf.of(self, position)

    @overload
    def to_json(self, path: None = None, *, key: Key | None = ...) -> str: ...
    @overload
    def to_json(self, path: PathLike, *, key: Key | None = ...) -> None: ...
    def to_json(self, path: PathLike | None = None, *, key: Key | None = None) -> str | None:
        """Everything but the density as JSON text, or written to `path`; missing and infinite numbers are null.

        key: a private key (a PEM file or its bytes) to sign the record with; see `dicoflex.signatures`.
        """
        made = self._record() if key is None else sign_record(self._record(), key=key)
        return _delivered(json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)

    @overload
    def to_dice_json(self, path: None = None, *, outcome: str = ...) -> str: ...
    @overload
    def to_dice_json(self, path: PathLike, *, outcome: str = ...) -> None: ...
    def to_dice_json(self, path: PathLike | None = None, *, outcome: str = "outcome") -> str | None:
        """The answers as DiCE writes its own (schema 2.0), with importances; as JSON text, or written to `path`.

        outcome: what the column of labels is called.
        """
        names = list(self.schema.names)
        local = [importance(self, i)["share"].reindex(names) for i in range(len(self.queries))]
        made = dice_record(
            self, outcome=outcome, now=self._now(), local=pd.DataFrame(local, columns=names),
            summary=importance(self)["share"].reindex(names),
        )  # fmt: skip
        return _delivered(json.dumps(made, indent=2, ensure_ascii=False, allow_nan=False) + "\n", path)

    @property
    def needed(self) -> pd.DataFrame:
        """What the answers to each query had to reach.

        Returns
        -------
        DataFrame
            A row per query: `level` ("just", "safe" or "sure", missing for a number), `confidence`, and `survival`, the
            estimated share of retrained models that would accept such answers. Missing where it is not known.
        """
        none = [(np.nan, np.nan)] * len(self.queries)
        found = np.array(none if self.origin is None else self.origin.needed(), dtype=float).reshape(-1, 2)
        asked = self.request.confidence
        level = SAFE if asked is None else asked if isinstance(asked, str) else None
        levels = [None if np.isnan(sure) else level for sure in found[:, 0]]
        columns = {"level": np.array(levels, dtype=object), "confidence": found[:, 0], "survival": found[:, 1]}
        return pd.DataFrame(columns, index=self.queries.index)

    def _now(self) -> list[Any]:
        """The label that the surrogate gives each query; None for a result made by hand."""
        return [None] * len(self.queries) if self.origin is None else self.origin.labels()

    @overload
    def to_html(self, path: None = None, *, title: str = ..., pictures: bool = ...) -> str: ...
    @overload
    def to_html(self, path: PathLike, *, title: str = ..., pictures: bool = ...) -> None: ...
    def to_html(
        self, path: PathLike | None = None, *, title: str = "Counterfactuals", pictures: bool = False
    ) -> str | None:
        """A standalone page as text, or written to `path`; `pictures` adds the plot of every query."""
        return _delivered(to_html_page(self.cards(pictures=pictures), title=title), path)

    @overload
    def to_markdown(self, path: None = None) -> str: ...
    @overload
    def to_markdown(self, path: PathLike) -> None: ...
    def to_markdown(self, path: PathLike | None = None) -> str | None:
        """A Markdown table of changes per query, as text or written to `path`.

        Parameters
        ----------
        path : path, optional
            Where to write it; by default the text is returned.
        """
        return _delivered(markdown_of(self.cards()), path)

    def open(self) -> str:
        """Show the answers in a browser, as `to_html` writes them.

        Returns
        -------
        str
            The path of the page, a temporary file that is left for the browser to read.
        """
        descriptor, path = tempfile.mkstemp(prefix="counterfactuals-", suffix=".html")
        os.close(descriptor)
        self.to_html(path)
        webbrowser.open(Path(path).as_uri())
        return path

    @overload
    def to_csv(self, path: None = None, *, raw: bool = ..., written: pd.DataFrame | None = ...) -> str: ...
    @overload
    def to_csv(self, path: PathLike, *, raw: bool = ..., written: pd.DataFrame | None = ...) -> None: ...
    def to_csv(
        self, path: PathLike | None = None, *, raw: bool = False, written: pd.DataFrame | None = None
    ) -> str | None:
        """The `table` as CSV text, or written to `path`.

        Text that a spreadsheet would take for a formula gets an apostrophe before it; raw: it does not. written: the
        text of the queries' cells in the file that they came from; cells that did not change get it back.
        """
        frame = self.frame
        if written is not None:
            frame = with_written(frame, self.changed_cells, self.positions, written)
        table = self._beside(frame)
        return _delivered((table if raw else neutralised(table)).to_csv(lineterminator="\n"), path)

    def _record(self) -> Any:
        return record(self, shortfall=self.shortfall, verdicts=self.verify())

    def _repr_html_(self) -> str:
        return to_html_fragment(self.cards(most=MAX_SHOWN), hidden=self._hidden)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._view()

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=TEXT_WIDTH, color_system=None, force_jupyter=False)
        with console.capture() as capture:
            console.print(self._view())
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    def _view(self) -> RenderableType:
        return to_rich(self.cards(most=MAX_SHOWN), hidden=self._hidden)

    @property
    def _hidden(self) -> int:
        return max(0, len(self.queries) - MAX_SHOWN)

    def density_at(self, position: int) -> Density | None:
        """The log density of rows as counterfactuals of the query at a position; None where it is not known."""
        if self.density is not None:
            return self.density(position)
        return None if self.origin is None else self.origin.density(position)

    def _place(self, row: Any, position: int | None) -> int:
        """The position of the query that a caller means."""
        count = len(self.queries)
        if count == 0:
            raise QueryError("there is no query to plot: the result was made for zero rows")
        if position is not None:
            if not 0 <= position < count:
                raise QueryError(f"position {position} is outside the {count} queries; use 0 to {count - 1}")
            return position
        if row is None:
            return 0
        found = [i for i, label in enumerate(self.queries.index) if label == row]
        if not found:
            raise QueryError(named("row", row, self.queries.index))
        if len(found) > 1:
            raise QueryError(f"row {row!r} names {len(found)} queries; choose one by position={found[0]} or {found[1]}")
        return found[0]


def _picked(frame: pd.DataFrame, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """The cells at (rows, columns) as Python objects, gathered one column at a time."""
    picked = np.empty(len(rows), dtype=object)
    for j in np.unique(columns):
        here = columns == j
        picked[here] = frame.iloc[rows[here], j].astype(object).to_numpy()
    return picked


def _free(name: Any, taken: set[str]) -> Any:
    """A name that no feature has: `info_` is put before it until that is so."""
    while str(name) in taken:
        name = f"info_{name}"
    return name


def _delivered(text: str, path: PathLike | None) -> str | None:
    """The text itself, or None after it was written to `path`, where a half-written file is never seen."""
    if path is None:
        return text
    write_text(path, text)
    return None
