"""The model card: every figure in it is one of the file, and no value in it is read as markup."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from dicoflex import load
from dicoflex.audit import model_card, reveals
from dicoflex.examples import EXAMPLES


def test_a_card_has_what_the_file_holds() -> None:
    for path in EXAMPLES:
        model = load(path).model_
        card = model_card(model)
        assert model.fingerprint in card
        assert f"Learned from {model.report['rows']:,} rows with {len(model.schema)} features" in card
        assert all(f"| {name} |" in card for name in model.schema.names)
        assert card.count("\n| ") >= len(reveals(model))


def test_names_and_values_are_no_markup(quickly) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a|b *c*": rng.choice(["<b>x</b>", "_y_"], 120), "n": rng.integers(0, 9, 120)})
    card = model_card(quickly(X, np.where(X["n"] > 4, "yes", "no")).model_)
    assert "<b>" not in card
    assert r"a\|b \*c\*" in card


def test_a_card_on_the_command_line() -> None:
    path = Path(EXAMPLES[2])
    done = subprocess.run(
        [sys.executable, "-c", "from dicoflex.cli import main; main()", "inspect", str(path), "--card"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == model_card(load(path).model_)
