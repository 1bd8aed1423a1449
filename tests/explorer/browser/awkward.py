"""A small table of awkward columns: missing values, ordered words, booleans, 200 levels, and text that means harm."""

from __future__ import annotations

__all__ = ["HOSTILE", "HOSTILE_LEVELS", "awkward_files", "awkward_rows"]

from pathlib import Path

import numpy as np
import pandas as pd

from conftest import fit_quickly

HOSTILE = '<img src=x onerror="window.hacked=1"> \u202eevil\u202c & "quoted"'
HOSTILE_LEVELS = ["<script>window.hacked=1</script>", "x" * 500, "' OR 1=1 --", "plain"]
GRADES = ["none", "school", "college", "doctor"]


def awkward_rows(n: int, seed: int) -> pd.DataFrame:
    """Rows in which a score made of few columns decides."""
    rng = np.random.default_rng(seed)
    income = np.round(rng.gamma(3.0, 900.0, n), 2)
    income[rng.random(n) < 0.15] = np.nan
    job = rng.choice(["cook", "nurse", "pilot"], n).astype(object)
    job[rng.random(n) < 0.15] = None
    return pd.DataFrame(
        {
            "income in €": income,
            "visits": rng.poisson(3.0, n),
            "grade": pd.Categorical(rng.choice(GRADES, n), categories=GRADES, ordered=True),
            "job 'now'": job,
            "member 🎈": rng.random(n) < 0.5,
            "town": [f"town {i:03d}" for i in np.concatenate([np.arange(200), rng.integers(0, 200, n - 200)])],
            HOSTILE: rng.choice(HOSTILE_LEVELS, n),
        }
    ).set_axis(pd.Index([f"p{i}" for i in range(n)], name="person"))


def _chances(frame: pd.DataFrame) -> np.ndarray:
    income = frame["income in €"].fillna(0).to_numpy(dtype=float)
    grade = frame["grade"].astype(str).map(GRADES.index).to_numpy(dtype=float)
    score = income / 1500 + 0.9 * grade + 1.2 * frame["member 🎈"].to_numpy(dtype=float) - 3.4
    yes = 1 / (1 + np.exp(-2 * score))
    return np.column_stack([1 - yes, yes])


def awkward_files(folder: Path) -> dict[str, Path]:
    """A model of the table and some of its people."""
    rows = awkward_rows(320, seed=0)
    labels = np.array(["no", "yes"])[_chances(rows).argmax(axis=1)]
    model = fit_quickly(rows, labels, predict_proba=_chances, steps=200, training={"min_steps": 0, "epochs": 4})
    model.save(folder / "awkward.dicoflex")
    rows.head(60).to_csv(folder / "people.csv", index_label="person")
    return {"model": folder / "awkward.dicoflex", "people": folder / "people.csv"}
