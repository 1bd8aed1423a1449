"""The command that opens the explorer, and the shipped example for users who have no model yet."""

from __future__ import annotations

__all__ = ["COMMANDS", "german"]

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicoflex.cli.messages import note
from dicoflex.cli.options import Drop, repeated, spread
from dicoflex.errors import SettingError
from dicoflex.runtime.extras import extra
from dicoflex.runtime.printable import counted

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.explorer import Explorer, Texts
    from dicoflex.model import Model


SECONDS = 4.0
FIT = {"passes": 2, "rounds": 0}
"""A page to try needs no better model: half of the work, and answers that hold."""
PEOPLE = 200


def german(*, seconds: float | None = SECONDS, seed: int = 0) -> tuple[Model, pd.DataFrame, Texts]:
    """A model of the German credit table, people that it was not learned from, and what things are called.

    Its surrogate is a copy of the classifier, so that a fit of seconds is right about who has which result.
    """
    from dicoflex import datasets
    from dicoflex.explorer import Texts

    with extra("fit", to="learn a model"):
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        from dicoflex.estimator import DiCoFlex
    data = datasets.load("german")
    numbers = [f.name for f in data.schema.features if f.is_number]
    others = [f.name for f in data.schema.features if not f.is_number]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others))
    clf = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(data.X_train, data.y_train)
    schema = data.schema.with_constraints(data.preset)
    explainer = DiCoFlex(schema=schema, fit_config=FIT, max_seconds=seconds, random_state=seed, verbose=False)
    explainer.fit(data.X_train, model=clf, surrogate="exact")
    texts = Texts(name="German credit", word="applicant", wanted="0", results={"0": "granted", "1": "refused"})
    return explainer.model_, data.X_test.head(PEOPLE), texts


@dataclass(frozen=True)
class DoorFlags:
    """Where the page is found, and who may open it."""

    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.")] = 0
    host: Annotated[str, typer.Option(help="Address to listen on; another than this machine's needs --token.")] = (
        "127.0.0.1"
    )
    names: Annotated[list[str], repeated("--host-name", "NAME", "Name that the page may be opened by.")] = field(
        default_factory=list
    )
    token: Annotated[str | None, typer.Option(help="Word that messages must bring along.", show_default=False)] = None
    key: Annotated[Path | None, typer.Option(help="Private key to sign receipts with.", show_default=False)] = None
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False


@spread(flags=DoorFlags)
def explore(
    model: Annotated[
        Path | None, typer.Argument(help="Model file.", show_default="a small one of the German table that ships")
    ] = None,
    people: Annotated[
        Path | None, typer.Argument(help="Table of people: .csv, .csv.gz or .parquet.", show_default=False)
    ] = None,
    row_id: Annotated[
        str | None, typer.Option("--id", help="Column that names the people; no feature.", show_default=False)
    ] = None,
    drop: Drop = [],  # noqa: B006
    target: Annotated[str | None, typer.Option(help="The result that people hope for.", show_default=False)] = None,
    texts: Annotated[
        Path | None,
        typer.Option(help="JSON file of labels and words; see docs/how-to/explorer.md.", show_default=False),
    ] = None,
    *,
    flags: Any,
) -> None:
    """Open a page on which plans change while limits are dragged; see docs/how-to/explorer.md."""
    from dicoflex.runtime.extras import extra

    with extra("serve", to="open the explorer"):
        from dicoflex.serving.exploring import Door, open_door

    door = Door(host=flags.host, port=flags.port, token=flags.token, names=tuple(flags.names))
    options: dict[str, Any] = {"texts": texts, "target": target, "key": flags.key}
    explorer = _example(**options) if model is None else _of_files(model, people, row_id, drop, **options)
    open_door(explorer, door, opened=_open if flags.open_page else _say)


def _say(url: str) -> None:
    print(url, flush=True)


def _open(url: str) -> None:
    import webbrowser

    _say(url)
    webbrowser.open(url)


def _of_files(
    model: Path, people: Path | None, row_id: str | None, drop: list[str], *, texts: Path | None, **options: Any
) -> Explorer:
    from dicoflex.cli.tables import query_rows
    from dicoflex.explorer import Explorer, Texts
    from dicoflex.model import Model

    if people is None:
        raise SettingError("there is a model and nobody to explore; give a table of people after it")
    named = None if texts is None else Texts.load(texts)
    found = Model.load(model)
    rows = query_rows(people, found.schema, label=found.report.get("label"), row_id=row_id, drop=drop)
    rows = _with_seen_values(found, rows)
    if found.score is not None:
        found, options["target"] = _of_scores(found, options["target"])
    return Explorer(found, rows, texts=named, name=model.stem, **options)


def _with_seen_values(model: Model, rows: pd.DataFrame) -> pd.DataFrame:
    """The people whose values training had; who is left out, and why, is said."""
    from dicoflex.table.unseen import encode_frame, said_of_unseen

    known = encode_frame(model.encoding, rows, lambda: model.places_for_unseen)
    if not known.has_unseen.any():
        return rows
    i, j = (int(place[0]) for place in known.unseen.nonzero())
    first = said_of_unseen(model.schema, j, known.value(i, j))
    note(f"left out {counted(int(known.has_unseen.sum()), 'row')} with values that training never had: {first}")
    return rows[~known.has_unseen]


def _of_scores(model: Model, target: str | None) -> tuple[Model, str]:
    """A model of scores as one of what lies below, in and above the interval that people hope for."""
    from dicoflex.answers.aiming import aimed
    from dicoflex.targets import Interval, read_goal

    if target is None:
        raise SettingError(
            f"the model explains scores; say which are hoped for, such as --target '{model.example_target}'"
        )
    goal = read_goal(target)
    if not isinstance(goal, Interval):
        raise SettingError(f"--target {target!r} is another score for everybody; give an interval, such as '>=620'")
    return aimed(model, goal), str(goal)


def _example(*, texts: Path | None, **options: Any) -> Explorer:
    from dicoflex.explorer import Explorer, Texts

    named = None if texts is None else Texts.load(texts)
    note("no model is given: learning a small one of the German credit table that ships, in some seconds")
    model, people, own = german()
    return Explorer(model, people, texts=named or own, **options)


COMMANDS = (explore,)
