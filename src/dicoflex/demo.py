"""The demo: a classifier for the Adult table, three people that it refuses, and what each could do, three ways."""

from __future__ import annotations

__all__ = ["MODEL", "PEOPLE", "WAYS", "Way", "run"]

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dicoflex import datasets
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.constraints import Constraints
from dicoflex.datasets import Dataset
from dicoflex.errors import UserError
from dicoflex.estimator import DiCoFlex
from dicoflex.runtime.whole_files import write_text
from dicoflex.views.cards import Card, Change
from dicoflex.views.html import to_html_page
from dicoflex.views.terminal import MARK_STYLES, STYLES
from dicoflex.views.words import MARKS, SIGNS

ROWS, SECONDS, ANSWERS = 15_000, 40.0, 3
REPORT, MODEL, PEOPLE = "report.html", "income.dicoflex", "people.csv"
PROBABILITIES = (0.15, 0.45)
TYPICAL = 0.3
PROFILES = ((0, 32, "Female"), (33, 47, "Male"), (48, 200, "Female"))


ANYTHING = Constraints(override=["frozen", "ranges", "increase", "decrease", "forbidden", "transitions"])


@dataclass(frozen=True)
class Way:
    """One way of asking: its name, what it means, and the conditions given to `explain`."""

    name: str
    meaning: str
    conditions: Mapping[str, Any] = field(default_factory=dict)


WAYS = (
    Way(
        "what a person can do",
        "race, sex and country stay; nobody unlearns, unmarries, loses capital or waits more than five years",
    ),
    Way("few changes", "the same, with as few features as possible (p = 0.01)", {"p": 0.01}),
    Way("anything may change", "close in every feature (p = 2)", {"constraints": ANYTHING}),
)


def run(
    out: Path,
    *,
    rows: int = ROWS,
    seconds: float = SECONDS,
    seed: int = 0,
    answers: int = ANSWERS,
    console: Console | None = None,
) -> Path:
    """Run the demo, print it, and return the path of the report page that it writes into the folder `out`.

    rows: how many rows of Adult to learn from; seconds: training time at most; answers: counterfactuals for each way.
    """
    screen = console or Console()
    _make_folder(out)
    adult = _fewer(datasets.load("adult"), rows)
    black_box = _train_black_box(adult, screen, seed=seed)
    explainer = _fit(adult, black_box, screen, seconds=seconds, seed=seed)
    people = _choose_people(adult, black_box)
    found = _ask(explainer, black_box, people, target=adult.positive, n=answers, seed=seed)
    _show(found, people, black_box, adult, screen)
    page = _write(out, found, explainer, people)
    _close(out, adult, screen)
    return page


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"can't make the folder {out}: {error.strerror}; give another one with --out") from None


def _fewer(adult: Dataset, rows: int) -> Dataset:
    """The table with at most `rows` training rows, chosen at random but the same at every call."""
    if rows >= len(adult.X_train):
        return adult
    kept = np.sort(np.random.default_rng(0).permutation(len(adult.X_train))[:rows])
    return replace(adult, X_train=adult.X_train.iloc[kept], y_train=adult.y_train.iloc[kept])


# The black box


def _train_black_box(adult: Dataset, screen: Console, *, seed: int) -> Any:
    """A neural network that tells incomes apart; any classifier of tables would do."""
    started = time.perf_counter()
    black_box = _pipeline(adult, seed=seed).fit(adult.X_train, adult.y_train)
    answers = black_box.predict(adult.X_test)
    right, refused = np.mean(answers == adult.y_test), np.mean(answers != adult.positive)
    took = time.perf_counter() - started
    screen.print(
        f"\n[bold]1  A classifier.[/] A neural network learned from {len(adult.X_train):,} people "
        f"of the 1994 US census whether someone earns more than $50,000 a year ({took:.0f} s). "
        f"On {len(adult.X_test):,} others it is right in {right:.1%} and says no to {refused:.0%}.",
        highlight=False,
    )
    return black_box


def _pipeline(adult: Dataset, *, seed: int) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [f.name for f in adult.schema.features if f.is_number]
    picked = [f.name for f in adult.schema.features if not f.is_number]
    # A missing value is a category of its own, which the encoder makes of it by itself.
    prepared = make_column_transformer(
        (StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore", sparse_output=False), picked)
    )
    network = MLPClassifier((64, 32), early_stopping=True, n_iter_no_change=5, max_iter=60, random_state=seed)
    return make_pipeline(prepared, network)


def _acceptance(black_box: Any, rows: pd.DataFrame, positive: Any) -> np.ndarray:
    """The black box's probability of the positive class, for each row."""
    column = list(black_box.classes_).index(positive)
    probability: np.ndarray = black_box.predict_proba(rows)[:, column]
    return probability


# The explainer


def _fit(adult: Dataset, black_box: Any, screen: Console, *, seconds: float, seed: int) -> DiCoFlex:
    screen.print(
        "\n[bold]2  An explainer.[/] dicoflex learns from the same rows and the classifier's answers. "
        "This is done once; afterwards the classifier is not needed any more.",
        highlight=False,
    )
    started = time.perf_counter()
    schema = adult.schema.with_constraints(adult.preset)
    explainer = DiCoFlex(schema=schema, max_seconds=seconds, random_state=seed)
    explainer.fit(adult.X_train, black_box.predict(adult.X_train), predict_proba=black_box.predict_proba)
    screen.print(f"   Done in {time.perf_counter() - started:.0f} s.", highlight=False)
    return explainer


def _choose_people(adult: Dataset, black_box: Any) -> pd.DataFrame:
    """Three refused test rows, one for each profile, of different occupations, neither hopeless nor nearly there."""
    chance = pd.Series(_acceptance(black_box, adult.X_test, adult.positive), index=adult.X_test.index)
    refused = adult.X_test[(black_box.predict(adult.X_test) != adult.positive) & adult.X_test.notna().all(axis=1)]
    within = chance[refused.index].between(*PROBABILITIES)
    ranked = refused.loc[[*within.index[within], *(chance[within.index[~within]] - TYPICAL).abs().sort_values().index]]
    chosen: list[Any] = []
    for low, high, sex in PROFILES:
        jobs = set(ranked.loc[chosen, "occupation"])
        alike = ranked["age"].between(low, high) & (ranked["sex"] == sex)
        fresh = ranked[alike & ~ranked["occupation"].isin(jobs)]
        chosen.extend(fresh.index[:1])
    return adult.X_test.loc[chosen]


def _ask(
    explainer: DiCoFlex, black_box: Any, people: pd.DataFrame, *, target: Any, n: int, seed: int
) -> list[tuple[Way, Counterfactuals, float]]:
    """For each way its counterfactuals, judged by the black box afterwards, and the seconds that `explain` took."""
    # The first call imports what answering needs; what is timed is what every later call takes.
    for way in WAYS:
        explainer.explain(people, target=target, n=n, random_state=seed, **way.conditions)
    answered = []
    for way in WAYS:
        started = time.perf_counter()
        found = explainer.explain(people, target=target, n=n, random_state=seed, **way.conditions)
        took = time.perf_counter() - started
        answered.append((way, _judged(found, black_box, target), took))
    return answered


def _judged(found: Counterfactuals, black_box: Any, target: Any) -> Counterfactuals:
    """The same result with what the black box says of it: whether it accepts, and how sure it is."""
    if len(found) == 0:
        return found
    valid = pd.array(black_box.predict(found.frame) == target, dtype="boolean")
    return replace(found, info=found.info.assign(valid=valid, probability=_acceptance(black_box, found.frame, target)))


# What is shown


def _show(
    found: Sequence[tuple[Way, Counterfactuals, float]],
    people: pd.DataFrame,
    black_box: Any,
    adult: Dataset,
    screen: Console,
) -> None:
    screen.print(
        f"\n[bold]3  Three people who were refused,[/] and what would have to be different, asked in {len(WAYS)} ways:",
        highlight=False,
    )
    for way, _, _ in found:
        screen.print(f"   • [bold]{way.name}[/]: {way.meaning}", highlight=False)
    chances = _acceptance(black_box, people, adult.positive)
    cards = [result.cards() for _, result, _ in found]
    for i, chance in enumerate(chances):
        screen.print()
        screen.print(_person([own[i] for own in cards], chance))
    screen.print()
    screen.print(_summary(found), highlight=False)


def _person(cards: Sequence[Card], chance: float) -> RenderableType:
    """One person: who it is, once, and the answers of every way."""
    values = [Text.assemble((f"{v['feature']} ", "dim"), (v["value"], "bold")) for v in cards[0]["query"]]
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("asked", no_wrap=True)
    table.add_column("what would be different", ratio=1)
    table.add_column("sure", justify="right", no_wrap=True)
    table.add_column("ok", justify="center", no_wrap=True)
    for way, card in zip(WAYS, cards, strict=True):
        table.add_row()
        _add_answers(table, way, card)
    title = f"person {cards[0]['heading']}: {chance:.0%} sure of {cards[0]['target']}, so refused"
    return Panel(Group(Columns(values, padding=(0, 3)), Text(), table), title=title, title_align="left", padding=(0, 1))


def _add_answers(table: Table, way: Way, card: Card) -> None:
    for i, answer in enumerate(card["answers"]):
        changes = Columns([_change(name, change) for name, change in answer["changes"].items()], padding=(0, 2))
        mark = Text(MARKS[answer["valid"]][0], style=MARK_STYLES[answer["valid"]])
        table.add_row(Text(way.name if i == 0 else "", style="bold"), changes, answer["confidence"], mark)
    if card["shortfall"]:
        table.add_row("" if card["answers"] else Text(way.name, style="bold"), Text(card["shortfall"], style="yellow"))


def _change(name: str, change: Change) -> Text:
    style = STYLES[change["direction"]]
    return Text.assemble(
        (f"{SIGNS[change['direction']]} ", style),
        (f"{name} ", "dim"),
        (change["before"], ""),
        (" → ", "dim"),
        (change["after"], f"bold {style}"),
    )


def _summary(found: Sequence[tuple[Way, Counterfactuals, float]]) -> str:
    lines = ["[bold]4  How good, how fast.[/] None of these answers needed the classifier; asked afterwards, it says:"]
    for way, result, took in found:
        valid = int(result.info["valid"].fillna(False).sum())
        lines.append(
            f"   • {way.name}: yes to {valid} of {len(result)}. "
            f"{len(result)} answers for {len(result.queries)} people took {1000 * took:.0f} ms."
        )
    return "\n".join(lines)


# What is written


def _write(
    out: Path,
    found: Sequence[tuple[Way, Counterfactuals, float]],
    explainer: DiCoFlex,
    people: pd.DataFrame,
) -> Path:
    page = to_html_page(_page_cards(found), title="Three refused people, three ways", lead=LEAD)
    write_text(out / REPORT, page)
    write_text(out / PEOPLE, people.to_csv(index_label="person", lineterminator="\n"))
    explainer.save(out / MODEL)
    return out / REPORT


def _page_cards(found: Sequence[tuple[Way, Counterfactuals, float]]) -> list[Card]:
    """The cards of every way with their pictures, person by person."""
    cards = [result.cards(pictures=True) for _, result, _ in found]
    for (way, _, _), own in zip(found, cards, strict=True):
        for card in own:
            card["heading"] += f" · {way.name}"
    return [card for of_one_person in zip(*cards, strict=True) for card in of_one_person]


def _close(out: Path, adult: Dataset, screen: Console) -> None:
    screen.print(
        f"\n[bold]5  Go on.[/] The report with pictures is {out / REPORT}; the model and the people are beside "
        "it. Ask in your own way:",
        highlight=False,
    )
    model, people = (shlex.quote(str(out / name)) for name in (MODEL, PEOPLE))
    commands = (
        f"dicoflex explain {model} {people} --id person --target {shlex.quote(str(adult.positive))} "
        "--n 5 --p 0.01 --freeze occupation",
        f"dicoflex explore {model} {people} --id person --target {shlex.quote(str(adult.positive))} --open",
        f"dicoflex inspect {model}",
        "dicoflex fit your.csv --label prediction --out your.dicoflex",
    )
    for command in commands:
        screen.print(f"   {command}", style="cyan", highlight=False, markup=False, soft_wrap=True)


LEAD = (
    "A neural network thinks that none of three people of the 1994 US census earns more than $50,000 a year. Each is "
    "explained in three ways: what a person can do (race, sex and country stay, nobody unlearns, unmarries, loses "
    "capital or waits more than five years); the same with few changes; anything may change. Whether an answer is "
    "accepted, and how sure, is the network's own judgement, asked for afterwards."
)
