"""Refresh what the documentation shows of a real run: the README's examples, a page's output and the pictures.

In a page, `<!-- run: EXPRESSION -->` above a block says what the block shows: the expression's text, in the state that
the page's own examples have reached there.

    python docs/build.py                everything
    python docs/build.py --pages        the pages alone, without the demo and the pictures
    python docs/build.py --figures      the README's table of measured figures alone, from benchmarks/results
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import io
import json
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from dicoflex import Constraints, DiCoFlex, cli, datasets, demo, load
from dicoflex.cli import benchmarks
from dicoflex.runtime.whole_files import replacing, write_text

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
RESULTS = HERE.parent / "benchmarks" / "results"
IMAGES = HERE / "images"
PAGES = tuple(HERE / "how-to" / f"{name}.md" for name in ("constraints", "rules-about-change", "targets"))
WIDTH = 104
BLOCK = re.compile(r"<!-- run: (?P<expression>.*?) -->\n```\n.*?^```\n", flags=re.DOTALL | re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> None:
    """Refresh the pages, run the demo, put one person's answers into the README, and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="refresh the pages alone")
    parser.add_argument("--figures", action="store_true", help="refresh the README's table of figures alone")
    options = parser.parse_args(argv)
    if not options.pages:
        put_into_readme("figures", measured_figures(RESULTS), fence=False)
    if options.figures:
        return
    for page in PAGES:
        write_text(page, refreshed(page.read_text(encoding="utf-8")))
    if options.pages:
        return
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        demo.run(out, console=console)
        put_into_readme("demo", first_person(console.export_text()))
        explainer, people = load(out / demo.MODEL), pd.read_csv(out / demo.PEOPLE, index_col="person")
        put_into_readme("constraints", bound_answers(explainer, people))
        draw_changes(explainer, people)
    draw_moons()


# -- pages -------------------------------------------------------------------------------------------------------


def refreshed(text: str) -> str:
    """The page with every marked block replaced by what its expression shows; a failing example is an error."""
    state: dict[str, Any] = {"command": command}
    parts, end = [], 0
    for block in BLOCK.finditer(text):
        run_examples(text[end : block.start()], state, name=f"page:{end}")
        shown = _trimmed(str(eval(block["expression"], state)))
        parts += [text[end : block.start()], f"<!-- run: {block['expression']} -->\n```\n{shown}\n```\n"]
        end = block.end()
    run_examples(text[end:], state, name=f"page:{end}")
    return "".join([*parts, text[end:]])


def run_examples(text: str, state: dict[str, Any], *, name: str) -> None:
    """Run the doctests of a piece of a page, called `name`; `state` holds the variables before and after."""
    test = doctest.DocTestParser().get_doctest(text, state, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(test, clear_globs=False)
    if runner.failures:
        raise SystemExit("an example of the page failed; mend it first")
    state.update(test.globs)


def command(line: str, explainer: DiCoFlex, **files: pd.DataFrame | str) -> str:
    """A command and what it prints, run in a folder with `income.dicoflex` and the given tables and texts."""
    printed = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _width(WIDTH):
        explainer.save("income.dicoflex")
        for name, content in files.items():
            if isinstance(content, str):
                write_text(f"{name}.json", content)
            else:
                content.to_csv(f"{name}.csv", index_label="person")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = cli.main(shlex.split(line.replace("\\\n", " "))[1:])
    ending = f"[exit code {code}]\n" if code else ""
    return f"$ {line}\n{printed.getvalue()}{ending}"


@contextlib.contextmanager
def _width(columns: int) -> Any:
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        os.environ.update({} if before is None else {"COLUMNS": before})


def _trimmed(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


# -- the README --------------------------------------------------------------------------------------------------


def first_person(text: str) -> str:
    """The first person of the demo, and its closing figures."""
    person = re.search(r"╭.*?╰[─]*╯", text, flags=re.DOTALL)
    figures = re.search(r"4  How good.*?(?=\n\s*\n|\n5  )", text, flags=re.DOTALL)
    assert person is not None
    assert figures is not None
    return f"{person.group()}\n\n{figures.group()}"


def bound_answers(explainer: DiCoFlex, people: pd.DataFrame) -> str:
    """What the README's example of constraints prints."""
    wish = Constraints(
        frozen=["race", "sex"],
        increase=["age", "education"],
        ranges={"hours_per_week": (20, 45)},
        max_changes=3,
        rules=["if relationship in ['Husband', 'Wife'] then marital_status == 'Married-civ-spouse'"],
    )
    found = explainer.explain(people.head(1), target=">50K", n=4, constraints=wish, random_state=0)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(found)
    verdicts = found.verify().groupby("constraint", sort=False)["holds"].all()
    return f"{console.export_text()}\n{verdicts.to_string()}"


def measured_figures(results: Path) -> str:
    """A table of what the committed benchmark results say, one column per table of data."""
    tables = benchmarks.module("tables")
    mixed = [_figures(results / "quality.json", table=name, method="mixed") for name in tables.MAIN]
    latency, sampling = (
        [(_figures(results / "speed.json", table=name, method=part) or [{}])[0] for name in tables.MAIN]
        for part in ("latency", "sampling")
    )
    rows: dict[str, list[str]] = {
        **_answers(results / "answers.json", tables.MAIN),
        "raw validity of draws, worst seed": [_shown(min(r["validity"] for r in some), ".3f") for some in mixed],
        "the same without the surrogate's filter": [
            _shown(min(r["validity_unfiltered"] for r in some), ".3f") for some in mixed
        ],
        "frozen cells that moved": [_shown(sum(r["violations"] for r in some), "d") for some in mixed],
        "fit, seconds, quicker seed, beside two other fits": [
            _shown(min(r["fit_seconds"] for r in some), ".0f") for some in mixed
        ],
    }
    asked = {name: _figures(results / "serving.json", table=name, method="row") for name in tables.MAIN}
    for way, title in {"plain, refined": "10", "plain, refined, 5 answers": "5"}.items():
        shares = [each[0]["waits"][way]["share"] if each else None for each in asked.values()]
        rows[f"one row, {title} refined answers, in calls of predict_proba"] = [_shown(x, ".2f") for x in shares]
    for call in dict.fromkeys(call for each in latency for call in each.get("milliseconds", {})):
        rows[f"one row, {call}, median ms"] = [
            _shown(each.get("milliseconds", {}).get(call, {}).get("p50"), ".1f") for each in latency
        ]
    for pair in dict.fromkeys(pair for each in sampling for pair in each.get("ratios", {})):
        rows[f"time, {pair}"] = [_shown(each.get("ratios", {}).get(pair), ",.0f") for each in sampling]
    titles = [tables.TABLES[name].title for name in tables.MAIN]
    lines = ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]
    return "\n".join([*lines, *(f"| {title} | " + " | ".join(cells) + " |" for title, cells in rows.items())])


# What a person sees of answers, by the name of its measure, and beside whose.
SEEN = {
    "reducible": "answers with a needless change",
    "rare": "answers rarer than 95 % of real rows",
    "unseen": "answers with values that no row has together",
    "changed": "features changed per answer",
}
BESIDE = {"explain (p=2.0)": "dicoflex", "dice-random": "DiCE random", "cchvae": "C-CHVAE"}


def _answers(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    """What the page of answers says of ours and two others', means over seeds."""
    found = {(name, method): _figures(path, table=name, method=method) for name in names for method in BESIDE}

    def mean(name: str, method: str, measure: str) -> str:
        values = [each[measure] for each in found[name, method] if each.get(measure) is not None]
        return _shown(sum(values) / len(values) if values else None, ".1f" if measure == "changed" else ".2f")

    titles = {measure: f"{title}: {', '.join(BESIDE.values())}" for measure, title in SEEN.items()}
    return {
        titles[measure]: [" / ".join(mean(name, method, measure) for method in BESIDE) for name in names]
        for measure in SEEN
    }


def _figures(path: Path, **wanted: str) -> list[dict[str, Any]]:
    """The figures of the cells in a file that are of this table and method."""
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [r["figures"] for r in results if r["figures"] and wanted.items() <= r["cell"].items()]


def _shown(value: float | None, style: str) -> str:
    return "–" if value is None else format(value, style)


def put_into_readme(name: str, text: str, *, fence: bool = True) -> None:
    """The text between the README's marks of this name, as a block unless `fence` is False."""
    inside = f"```\n{_trimmed(text)}\n```" if fence else _trimmed(text)
    block = f"<!-- {name}:start -->\n{inside}\n<!-- {name}:end -->"
    readme = README.read_text(encoding="utf-8")
    marks = rf"<!-- {name}:start -->.*<!-- {name}:end -->"
    write_text(README, re.sub(marks, lambda _: block, readme, flags=re.DOTALL))


# -- pictures ----------------------------------------------------------------------------------------------------


def draw_changes(explainer: DiCoFlex, people: pd.DataFrame) -> None:
    """The picture of one person's answers."""
    found = explainer.explain(people.head(1), target=">50K", n=6, frozen=["age", "race", "sex"], random_state=0)
    _save(found.plot().get_figure(), "changes.png")


def draw_moons() -> None:
    """The paper's first figure: one query among two moons, asked three ways."""
    moons = datasets.two_moons(3000, noise=0.08, random_state=0)
    settings = {"epochs": 60, "learning_rate": 2e-3, "schedule": "cosine"}
    explainer = DiCoFlex("maf", training=settings, random_state=0, verbose=False).fit(moons.X_train, moons.y_train)
    of_first = moons.y_test.to_numpy() == moons.y_test.iloc[0]
    middle = np.abs(moons.X_test["x1"] - moons.X_test.loc[of_first, "x1"].median()).where(of_first).idxmin()
    query = moons.X_test.loc[[middle]]
    ways = {"anything": {}, "sparse": {"p": 0.01}, "frozen": {"frozen": ["x1"]}}
    for name, conditions in ways.items():
        found = explainer.explain(query, n=30, random_state=0, **conditions)
        _save(found.plot().get_figure(), f"moons-{name}.png")


def _save(figure: object, name: str) -> None:
    with replacing(IMAGES / name) as draft:
        figure.savefig(draft, dpi=110, format="png")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
