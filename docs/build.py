"""Refresh what the documentation shows of a real run: the README's example and the pictures."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from rich.console import Console

from dicoflex import DiCoFlex, datasets, demo, load
from dicoflex.files import replacing, write_text

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
IMAGES = HERE / "images"
WIDTH = 104


def main() -> None:
    """Run the demo, put one person's answers into the README, and draw the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        console = Console(record=True, width=WIDTH, file=io.StringIO())
        demo.run(out, console=console)
        put_into_readme(console.export_text())
        draw_changes(load(out / demo.MODEL), pd.read_csv(out / demo.PEOPLE, index_col="person"))
    draw_moons()


def put_into_readme(text: str) -> None:
    """The first person of the demo, and its closing figures, between the README's marks."""
    person = re.search(r"╭.*?╰[─]*╯", text, flags=re.DOTALL)
    figures = re.search(r"4  How good.*?(?=\n\s*\n|\n5  )", text, flags=re.DOTALL)
    assert person is not None
    assert figures is not None
    shown = "\n".join(line.rstrip() for line in f"{person.group()}\n\n{figures.group()}".splitlines())
    block = f"<!-- demo:start -->\n```\n{shown}\n```\n<!-- demo:end -->"
    readme = README.read_text(encoding="utf-8")
    write_text(README, re.sub(r"<!-- demo:start -->.*<!-- demo:end -->", lambda _: block, readme, flags=re.DOTALL))


def draw_changes(explainer: DiCoFlex, people: pd.DataFrame) -> None:
    """The picture of one person's answers."""
    found = explainer.explain(people.head(1), target=">50K", n=6, frozen=["age", "race", "sex"], random_state=0)
    _save(found.plot(), "changes.png")


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
        _save(found.plot(), f"moons-{name}.png")


def _save(figure: object, name: str) -> None:
    with replacing(IMAGES / name) as draft:
        figure.savefig(draft, dpi=110, format="png")  # type: ignore[attr-defined]


if __name__ == "__main__":
    main()
