"""What the parts stand on: how much they do, a folder with a model, and the questions that it is asked."""

from __future__ import annotations

__all__ = ["CONNECTIONS", "ROOT", "Amount", "Ground"]

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.cells import Cell
from benchmarks.methods import model_file
from benchmarks.tasks import Task, prepare
from dicoflex.table.plain_rows import plain_row
from dicoflex.values import plain

ROOT = Path(__file__).resolve().parents[3]
CONNECTIONS = 32
# Few steps: how long an answer takes, not how good it is, is what is measured.
SHORT: dict[str, Any] = {"training": {"epochs": 1, "min_steps": 60}, "fit_config": {"passes": 1, "rounds": 0}}


@dataclass(frozen=True)
class Amount:
    """How many requests, answers to compare, rows of a stream, requests while something changes, to replay, and without
    others beside them; calls for one row, examples of each route, and seconds of a soak."""

    requests: int = 1_500
    compared: int = 10_000
    streamed: int = 100_000
    changing: int = 5_000
    replayed: int = 1_000
    alone: int = 300
    calls: int = 1_000
    examples: int = 500
    seconds: float = 600.0


MUCH = Amount()
LITTLE = Amount(
    requests=64, compared=40, streamed=300, changing=60, replayed=20, alone=10, calls=30, examples=3, seconds=4.0
)  # fmt: skip


class Ground:
    """A folder with a model, the bodies of questions about its table's rows, and how much to do."""

    def __init__(self, cell: Cell, models: Path) -> None:
        self.task: Task = prepare(cell)
        self.amount = LITTLE if cell.size.quick else MUCH
        settings = {**SHORT, "coherence": True, "max_seconds": None} if cell.size.quick else {"coherence": True}
        # Other processes are given it, which stand in other folders.
        self.model = model_file(cell, self.task, models.resolve(), "mixed", variant="serving", **settings)
        self.folder = Path(tempfile.mkdtemp(prefix="dicoflex-serving-"))
        self.models = self.folder / "models"
        self.models.mkdir()
        shutil.copy(self.model, self.models / "m.dicoflex")

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def target(self) -> Any:
        """The label that is asked for."""
        return plain(self.task.data.positive)

    def cells(self, count: int) -> list[list[Any]]:
        """Test rows, again and again, as plain cells."""
        own = [plain_row(row) for row in self.task.data.X_test.astype(object).to_numpy().tolist()]
        return [own[i % len(own)] for i in range(count)]

    def rows(self, count: int) -> list[dict[str, Any]]:
        """The same as they are sent."""
        names = [str(name) for name in self.task.data.X_test.columns]
        return [{"values": dict(zip(names, row, strict=True))} for row in self.cells(count)]

    def bodies(self, count: int, **settings: Any) -> list[bytes]:
        """Questions about one row each."""
        return [orjson.dumps({"rows": [row], "target": self.target, "n": 5, **settings}) for row in self.rows(count)]
