"""All experiments by name: those of the paper, and what it does not ask."""

from __future__ import annotations

__all__ = ["EXPERIMENTS", "PAPER", "Experiment", "PaperExperiment"]

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from matplotlib.figure import Figure

from benchmarks.cells import Cell, Result
from benchmarks.experiments import (
    ablation,
    answers,
    comparison,
    constraints,
    deviation,
    explorer,
    fuzz,
    german,
    hyperparameters,
    leak,
    masks,
    nearer,
    quality,
    recourse,
    runtime,
    scale,
    serving,
    sparsity,
    speed,
    targets,
    teaser,
    theory,
)
from benchmarks.options import Options
from benchmarks.pages import Finding
from benchmarks.tables import GERMAN


class Experiment(Protocol):
    """What a module has to offer to be in the registry."""

    TITLE: str

    def cells(self, options: Options) -> list[Cell]:
        """What is to be measured."""

    def measure(self, cell: Cell, models: Path) -> dict[str, Any]:
        """The figures of one cell; fitted models are kept in the folder `models`."""

    def page(self, results: Sequence[Result], command: str) -> str:
        """The results as Markdown."""

    def figures(self, results: Sequence[Result]) -> dict[str, Figure]:
        """Pictures by the name of their file."""


class PaperExperiment(Experiment, Protocol):
    """An experiment of the paper's, which is held against what the paper prints."""

    def findings(self, results: Sequence[Result]) -> list[Finding]:
        """What the results say about the paper."""


PAPER: dict[str, PaperExperiment] = {
    "comparison": comparison,
    "runtime": runtime,
    "deviation": deviation,
    GERMAN: german,
    "masks": masks,
    "sparsity": sparsity,
    "ablation": ablation,
    "hyperparameters": hyperparameters,
    "theory": theory,
    "teaser": teaser,
}
EXPERIMENTS: dict[str, Experiment] = {
    **PAPER,
    "quality": quality,
    "answers": answers,
    "nearer": nearer,
    "constraints": constraints,
    "targets": targets,
    "recourse": recourse,
    "speed": speed,
    "scale": scale,
    "leak": leak,
    "serving": serving,
    "explorer": explorer,
    "fuzz": fuzz,
}
