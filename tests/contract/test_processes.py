"""An explainer may be pickled, forked, passed to workers and shared by threads: the answers are those of one alone."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dicoflex
from comparing import ROWS, Quickly
from dicoflex import DiCoFlex
from workers import MODELS, WAYS

HERE = Path(__file__).parent
PATIENCE = 400
Same = dict[str, dict[str, bool]]


def environment() -> dict[str, str]:
    """This process's environment, with the package and these tests to import from."""
    places = [str(Path(dicoflex.__file__).parents[1]), str(HERE), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, places))}


def stop(process: subprocess.Popen[Any]) -> None:
    """End a process that leads a session, and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def found() -> Same:
    """What the script found, by way and model; a way that hung or died is absent."""
    process = subprocess.Popen(
        [sys.executable, HERE / "workers.py"], env=environment(), stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        output, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        stop(process)
        output, _ = process.communicate()
    finally:
        stop(process)
    return {line["way"]: line["same"] for line in map(json.loads, output.splitlines())}


@pytest.mark.parametrize("way", [*WAYS, "threads"])
def test_answers_are_those_of_one_alone(way: str, found: Same) -> None:
    assert found.get(way) == dict.fromkeys(MODELS, True)


# -- a server that loads before it forks ----------------------------------------------------------------------------

APP = """
import json, os
from workers import digest, explainers

given = explainers()
alone = {name: digest(explainer) for name, explainer in given.items()}

def app(environ, start_response):
    name = environ["PATH_INFO"].strip("/")
    body = json.dumps({"pid": os.getpid(), "same": digest(given[name]) == alone[name]}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
"""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """Gunicorn's process and address: two workers of two threads, forked after the explainers were loaded and used."""
    (tmp_path / "preloaded.py").write_text(APP, encoding="utf-8")
    port = free_port()
    words = ["--preload", "--workers", "2", "--threads", "2", "--timeout", "0", "--bind", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", *words, "preloaded:app"], cwd=tmp_path, env=environment(),
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        yield process.pid, f"http://127.0.0.1:{port}"
    finally:
        stop(process)


def ask(address: str, deadline: float) -> dict[str, Any]:
    """An answer of the server, which may not be up yet."""
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as response:
                return json.load(response)  # type: ignore[no-any-return]
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def test_gunicorn_preload(server: tuple[int, str]) -> None:
    pid, address = server
    deadline = time.monotonic() + PATIENCE
    answers = [ask(f"{address}/{name}", deadline) for _ in range(3) for name in MODELS]
    assert all(answer["same"] for answer in answers)
    assert pid not in {answer["pid"] for answer in answers}


# -- pickles --------------------------------------------------------------------------------------------------------


def test_a_pickle_is_the_files_content(model: DiCoFlex, queries: pd.DataFrame) -> None:
    before = model.sample(queries, target="yes", n=4, random_state=0)
    data = pickle.dumps(model)
    assert b"torch" not in data
    again = pickle.loads(data)
    assert again.fingerprint_ == model.fingerprint_
    assert again.get_params() == model.get_params()
    assert again.history_ == model.history_
    pd.testing.assert_frame_equal(again.sample(queries, target="yes", n=4, random_state=0), before)
    bare = pickle.loads(pickle.dumps(model.model_))
    assert bare.fingerprint == model.fingerprint_


def test_passing_an_explainer_to_a_process_leaves_its_weights_alone(model: DiCoFlex, queries: pd.DataFrame) -> None:
    """Torch moves what it is asked to pass on, and frees what it moved."""
    before = model.sample(queries, target="yes", n=4, random_state=0)
    density = model.log_density(queries, queries, target="yes")
    for _ in range(3):
        pickle.loads(ForkingPickler.dumps(model))
    pd.testing.assert_frame_equal(model.sample(queries, target="yes", n=4, random_state=0), before)
    np.testing.assert_array_equal(model.log_density(queries, queries, target="yes"), density)


def test_results_can_be_pickled(quickly: Quickly) -> None:
    """Those of two numbers carry a density for the map."""
    rows = ROWS[["age", "pay"]]
    model = quickly(rows, np.where(rows["pay"] > 0, "yes", "no"))
    cfs = model.explain(rows.head(2), target="yes", n=2, random_state=0)
    again = pickle.loads(pickle.dumps(cfs))
    pd.testing.assert_frame_equal(again.frame, cfs.frame)
    assert again.to_json() == cfs.to_json()
    assert cfs.origin is not None
    np.testing.assert_array_equal(again.origin.density(1)(rows), cfs.origin.density(1)(rows))
