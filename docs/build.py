"""Refresh what the documentation shows of a real run: the README's figures, the output on pages, and the pictures.

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

from dicoflex import DiCoFlex, cli, datasets, demo, load
from dicoflex.cli import commands
from dicoflex.runtime.whole_files import replacing, write_text

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
RESULTS = HERE.parent / "benchmarks" / "results"
IMAGES = HERE / "images"
PAGES = tuple(HERE / "how-to" / f"{name}.md" for name in ("constraints", "rules-about-change", "targets"))
WIDTH = 104
BLOCK = re.compile(r"<!-- run: (?P<expression>.*?) -->\n```\n.*?^```\n", flags=re.DOTALL | re.MULTILINE)


def main(argv: Sequence[str] | None = None) -> None:
    """Refresh the README's figures and the pages, and draw the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", action="store_true", help="refresh the pages alone")
    parser.add_argument("--figures", action="store_true", help="refresh the README's table of figures alone")
    options = parser.parse_args(argv)
    if not options.pages:
        put_into_readme("figures", measured_figures(RESULTS))
    if options.figures:
        return
    for page in PAGES:
        write_text(page, refreshed(page.read_text(encoding="utf-8")))
    if options.pages:
        return
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        demo.run(out, console=Console(file=io.StringIO()))
        draw_changes(load(out / demo.MODEL), pd.read_csv(out / demo.PEOPLE, index_col="person"))
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


SEEN = {
    "reducible": ("answers with a needless change", ".0%"),
    "rare": ("answers that are rare", ".0%"),
    "ms": ("milliseconds per row, for up to ten answers", ",.0f"),
}
"""What the README says of answers: the name of a measure, its title and how it is written."""
BESIDE = {"explain (p=2.0)": "dicoflex", "dice-random": "DiCE, random search", "cchvae": "C-CHVAE"}


def measured_figures(results: Path) -> str:
    """The README's three figures: means over the main tables and seeds of the page on answers."""
    tables = commands.module("tables")
    path = results / "answers.json"
    found = {
        method: [figures for name in tables.MAIN for figures in _figures(path, table=name, method=method)]
        for method in BESIDE
    }
    lines = ["| | " + " | ".join(BESIDE.values()) + " |", "|---" * (len(BESIDE) + 1) + "|"]
    for measure, (title, style) in SEEN.items():
        means = [np.mean([each[measure] for each in found[method]]) for method in BESIDE]
        lines.append(f"| {title} | " + " | ".join(_shown(mean, style) for mean in means) + " |")
    titles = [tables.TABLES[name].title for name in tables.MAIN]
    said = f"Means over {', '.join(titles[:-1])} and {titles[-1]}, from [answers](docs/benchmarks/answers.md), "
    return "\n".join([*lines, "", f"{said}commits {', '.join(_commits(path))}."])


def _commits(path: Path) -> list[str]:
    """The commits that the shown figures are from."""
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    return sorted({r["commit"] for r in results if r["figures"] and r["cell"]["method"] in BESIDE})


def _figures(path: Path, **wanted: str) -> list[dict[str, Any]]:
    """The figures of the cells in a file that are of this table and method."""
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    return [r["figures"] for r in results if r["figures"] and wanted.items() <= r["cell"].items()]


def _shown(value: float | None, style: str) -> str:
    return "–" if value is None else format(value, style)


def put_into_readme(name: str, text: str) -> None:
    """The text between the README's marks of this name."""
    block = f"<!-- {name}:start -->\n{_trimmed(text)}\n<!-- {name}:end -->"
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
