"""The command `batch`: what `explain` can be asked, over files of any size."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dicoflex import load
from dicoflex.cli import main
from dicoflex.examples import rows_like

MODEL = Path(__file__).resolve().parents[1] / "recording" / "mixed.dicoflex"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    frame = rows_like(load(MODEL).schema_, 30)
    frame.assign(customer=range(30)).to_parquet(tmp_path / "rows.parquet", index=False)
    return tmp_path / "rows.parquet"


def test_it_explains_files(rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["batch", str(MODEL), str(rows), str(tmp_path / "out"), "--target", "yes", "-n", "2", "--id", "customer",
             "--engine", "inline", "--part-rows", "16", "--freeze", "age", "--confidence", "just"]  # fmt: skip
    assert main([*words, "--dry-run"]) == 0
    assert "30 rows in 1 files make 2 parts" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert main(words) == 0
    said = capsys.readouterr().err
    assert "30 rows: " in said
    assert "rows/s" in said
    direct = load(MODEL).explain(
        pd.read_parquet(rows).drop(columns="customer"), target="yes", n=2, frozen=["age"], confidence="just",
        random_state=0,
    )  # fmt: skip
    answers = pd.read_parquet(tmp_path / "out" / "answers")
    assert answers["customer"].tolist() == direct.positions.tolist()
    assert answers["gain"].tolist() == direct.frame["gain"].tolist()
    assert main([*words, "--dry-run"]) == 0
    assert "2 are there already" in capsys.readouterr().out
    assert main([*words[:-2], "--confidence", "safe"]) == 2
    assert "request.confidence was 'just', and is 'safe'" in capsys.readouterr().err
