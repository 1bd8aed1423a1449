"""The paper's printed figures: read from its LaTeX source once, kept as JSON with the label of their table.

python -m benchmarks.paper SOURCE.tex      reads the source and writes paper_figures.json
"""

from __future__ import annotations

__all__ = ["MODELS", "figure", "load", "parse"]

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.tables import TABLES
from dicoflex.errors import DataError
from dicoflex.runtime.whole_files import write_text

FILE = Path(__file__).with_name("paper_figures.json")
SCORES = (
    "validity",
    "probability",
    "proximity",
    "sparsity_categories",
    "epsilon_sparsity",
    "log_lof",
    "hypervolume_log10",
)
# The columns after the model's name, per table whose rows are models; those of the first group name a dataset too.
BY_DATASET = {"tab:comparison": SCORES, "tab:comparison_std": SCORES[:-1], "tab:german": SCORES}
BY_MODEL = {
    "tab:our-perturb": SCORES[1:],
    "tab:moremask": SCORES[1:],
    "tab:mask_orig_comp": ("capital_gain", "capital_loss", "age", "race", "sex", "native_country"),
}
DATASETS = {word: name for name, table in TABLES.items() for word in table.printed}
# Our methods and the names that the paper's tables give to what they reproduce.
MODELS = {
    "maf (p=2.0)": "DiCoFlex (p=2.0)",
    "maf (p=0.01)": "DiCoFlex (p=0.01)",
    "mixed (p=2.0)": "DiCoFlex (p=2.0)",
    "mixed (p=0.01)": "DiCoFlex (p=0.01)",
    "cchvae": "CCHVAE",
    "dice-random": "DiCE",
    "dice-genetic": "DiCE",
    "dice-kdtree": "DiCE",
    "dice-gradient": "DiCE",
    "revise": "ReViSE",
    "tabcf": "TABCF",
    "wachter": "Wachter",
}


@cache
def load() -> dict[str, Any]:
    """All figures: by label of the table, then by dataset and model, or by model."""
    figures: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return figures


def figure(label: str, *path: str) -> float | None:
    """One printed figure, or None where the paper has none.

    >>> figure("tab:comparison", "adult", "DiCoFlex (p=2.0)", "probability")
    0.998
    """
    value: Any = load()[label]
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, int | float) else None


def parse(source: str) -> dict[str, Any]:
    """The figures of all tables in a LaTeX source, and the runtimes that its text names."""
    figures: dict[str, Any] = {}
    for label, columns in BY_DATASET.items():
        figures[label] = _by_dataset(_rows(source, label), columns)
    for label, columns in BY_MODEL.items():
        rows = [row for row in _rows(source, label) if len(row) == len(columns) + 1 and _number(row[-1]) is not None]
        figures[label] = {row[0]: _named(columns, row[1:]) for row in rows}
    names, values = (row for row in _rows(source, "tab:ablation_nll") if len(row) == 5)
    figures["tab:ablation_nll"] = _named([name.lower() for name in names[1:]], values[1:])
    figures["fig:time"] = _runtimes(source)
    return figures


def _rows(source: str, label: str) -> list[list[str]]:
    """The rows of the table with that label, as plain text."""
    if f"\\label{{{label}}}" not in source:
        raise DataError(f"the source has no table {label!r}; give the LaTeX source of the DiCoFlex paper")
    body = source.split(f"\\label{{{label}}}")[1].split("\\end{tabular}")[0]
    return [[_plain(cell) for cell in row.split("&")] for row in re.split(r"\\\\", body)]


def _plain(cell: str) -> str:
    text = re.sub(r"\\(midrule|toprule|bottomrule|our\{\})", lambda m: "DiCoFlex" if "our" in m[1] else "", cell)
    text = re.sub(r"\\(?:textbf|underline)\{\s*([^}]*)\}", r"\1", text)
    return " ".join(text.replace("~", " ").split())


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else None


def _named(columns: Any, cells: list[str]) -> dict[str, float | None]:
    return {name: _number(cell) for name, cell in zip(columns, cells, strict=True)}


def _by_dataset(rows: list[list[str]], columns: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    dataset = ""
    for row in rows:
        if len(row) != len(columns) + 2 or _number(row[2]) is None:
            continue
        dataset = DATASETS.get(row[0], dataset)
        found.setdefault(dataset, {})[row[1]] = _named(columns, row[2:])
    return found


def _runtimes(source: str) -> dict[str, Any]:
    """Seconds for one answer to each of 100 rows: ours as printed, and for some others the least that is claimed."""
    ours = re.search(r"generation times of \$([\d.]+)\\pm([\d.]+)\$ seconds", source)
    others = re.search(r"with ([\w, ]+?),? all requiring over (\d+) seconds", source)
    if ours is None or others is None:
        raise DataError("the source lacks the sentence on runtimes; give the LaTeX source of the DiCoFlex paper")
    slow = re.split(r", and |, | and ", others[1])
    return {"DiCoFlex": float(ours[1]), "deviation": float(ours[2]), "over": dict.fromkeys(slow, float(others[2]))}


def main(argv: list[str]) -> None:
    """Write the figures of the source that is named."""
    if len(argv) != 1:
        raise DataError("give one file: the LaTeX source of the DiCoFlex paper")
    figures = parse(Path(argv[0]).read_text(encoding="utf-8"))
    write_text(FILE, json.dumps(figures, indent=1) + "\n")
    print(f"written: {FILE.name}, {len(figures)} tables")


if __name__ == "__main__":
    main(sys.argv[1:])
