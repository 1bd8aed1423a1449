"""The key of remembered rows on the command line: made once, readable by its owner alone, asked for with --novel."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from dicoflex import cli
from dicoflex.cli.tables import made_key, read_key_file
from dicoflex.errors import SettingError
from dicoflex.learning import surrogate


def test_a_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "rows.key"
    key = made_key(path)
    assert made_key(path) == read_key_file(path) == key
    assert len(key) == 32
    if os.name == "posix":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_files_that_hold_no_key_are_refused(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("secret\n")
    with pytest.raises(SettingError, match=r"word must be 32 bytes or their 64 hexadecimal digits"):
        made_key(tmp_path / "word")
    with pytest.raises(SettingError, match="can't be read as a key"):
        read_key_file(tmp_path / "absent")
    with pytest.raises(SettingError, match="can't be written"):
        made_key(tmp_path / "absent" / "key")


def test_novel_rows_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surrogate, "STEPS", 100)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.integers(0, 20, 150), "b": rng.integers(0, 20, 150)})
    table.assign(answer=np.where(table["a"] > 9, "yes", "no")).to_csv(tmp_path / "data.csv", index=False)
    table.head(20).to_csv(tmp_path / "rows.csv", index=False)
    data, rows, model, key, found = (str(tmp_path / name) for name in ("data.csv", "rows.csv", "m", "key", "cfs.csv"))
    with threadpool_limits(1):
        fit = ["fit", data, "--label", "answer", "-o", model, "--max-seconds", "1", "--seed", "0", "--quiet"]
        assert cli.main([*fit, "--remember-rows", key]) == 0
    ask = ["explain", model, rows, "--target", "yes", "--seed", "0", "--out", found]
    assert cli.main([*ask, "--novel"]) == 2
    assert "novel=True needs the key" in capsys.readouterr().err
    assert cli.main([*ask, "--novel", "--row-key", key]) == 0
    known = set(map(tuple, table.to_numpy().tolist()))
    novel = pd.read_csv(found)[["a", "b"]].to_numpy().tolist()
    assert novel
    assert not known & set(map(tuple, novel))
