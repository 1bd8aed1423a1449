"""The examples of the page on serving run, word for word, against a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dicoflex
from dicoflex.examples import EXAMPLES
from serving.running import Running

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serving.md"
BLOCKS = re.findall(r"^```(sh|python|js)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
ADDRESS = "http://127.0.0.1:8000"
RECORDS = 12


def ran(command: list[str], text: str, server: Running, folder: Path) -> str:
    env = os.environ | {"PYTHONPATH": str(Path(dicoflex.__file__).parents[1])}
    done = subprocess.run(
        [*command, text.replace(ADDRESS, server.url)], env=env, cwd=folder, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCKS if kind == language]


def test_the_model_of_the_examples_is_the_one_that_is_named() -> None:
    assert EXAMPLES[2].stem == "perceptron"
    assert [kind for kind, _ in BLOCKS] == ["sh", "python", "js", "sh", "sh"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_curl(server: Running, tmp_path: Path) -> None:
    one, many, _ = blocks("sh")
    answer = json.loads(ran(["sh", "-c"], one, server, tmp_path))
    assert answer["results"][0]["id"] == "A-17"
    assert all(found["verified"] for found in answer["results"][0]["counterfactuals"])
    *rows, end = map(json.loads, ran(["sh", "-c"], many, server, tmp_path).splitlines())
    assert [row["id"] for row in rows] == [1]
    assert end["end"] is True


def test_python(server: Running, tmp_path: Path) -> None:
    assert "before" in ran([sys.executable, "-c"], blocks("python")[0], server, tmp_path)


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no JavaScript here")
def test_javascript(server: Running, tmp_path: Path) -> None:
    assert "feature:" in ran(["node", "--input-type=module", "-e"], blocks("js")[0], server, tmp_path)


def test_the_commands_of_the_audit_log(server: Running, audit: Path, models: Path, tmp_path: Path) -> None:
    test_python(server, tmp_path)
    # The first records of a log are a log; all that other tests asked would take long to ask again.
    (tmp_path / "audit").mkdir()
    for path in audit.glob("*.jsonl"):
        first = path.read_bytes().splitlines(keepends=True)[:RECORDS]
        (tmp_path / "audit" / path.name).write_bytes(b"".join(first))
    shutil.copytree(models, tmp_path / "models")
    verify, replay = (line.partition("#")[0].split() for line in blocks("sh")[2].splitlines())
    replay += ["--model", "models/plain.dicoflex"]
    code = "import sys; from dicoflex.cli import main; sys.exit(main(sys.argv[1:]))"
    env = os.environ | {"PYTHONPATH": str(Path(dicoflex.__file__).parents[1])}
    for words in (verify, replay):
        done = subprocess.run(
            [sys.executable, "-c", code, *words[1:]], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "0 findings" in done.stdout or " identical" in done.stdout
