"""Fresh processes and fresh environments: how a server starts, how large its install is, and another's client."""

from __future__ import annotations

__all__ = ["adapter", "install", "start"]

import json
import os
import subprocess
import sys
import time
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import orjson

from benchmarks.experiments.serving.ground import ROOT, Ground
from benchmarks.experiments.serving.processes import SOURCE, served
from dicoflex import load

REPEATS = 3
ANSWERING = """
import json, sys
from dicoflex import load
import pandas as pd
explainer = load(sys.argv[1])
rows = pd.DataFrame([row["values"] for row in json.loads(sys.argv[2])])
explainer.explain(rows, target=explainer.classes_[-1], n=5, random_state=0)
with open("/proc/self/status") as file:
    print(next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024)
"""
LEARNING = "import torch, zuko, sklearn.ensemble, matplotlib.figure" + ANSWERING
CLIENT = """
import json, sys
import numpy as np
import tritonclient.http as triton

url, question = sys.argv[1], json.loads(sys.argv[2])
client = triton.InferenceServerClient(url.removeprefix("http://"))
facts = client.get_model_metadata("m")
kinds = {"INT64": np.int64, "FP64": np.float64, "BOOL": np.bool_, "BYTES": np.object_}
inputs = []
for tensor in facts["inputs"]:
    cells = [row["values"][tensor["name"]] for row in question["rows"]]
    one = triton.InferInput(tensor["name"], [len(cells)], tensor["datatype"])
    one.set_data_from_numpy(np.array(cells, dtype=kinds[tensor["datatype"]]), binary_data=False)
    inputs.append(one)
found = client.infer("m", inputs, parameters={k: v for k, v in question.items() if k != "rows"})
columns = {tensor["name"]: found.as_numpy(tensor["name"]).tolist() for tensor in facts["outputs"]}
version = facts["versions"][0]
ready = client.is_server_live(), client.is_server_ready(), client.is_model_ready("m", version)
print(json.dumps({"ready": all(ready), "columns": columns}))
"""


def start(ground: Ground) -> dict[str, Any]:
    """Seconds and memory of a fresh process that loads a model and answers, without and with what learning imports."""
    env = os.environ | {"PYTHONPATH": str(SOURCE)}
    return {
        "starts": {
            name: _started(sys.executable, code, ground, env)
            for name, code in {"answering": ANSWERING, "with what learning imports": LEARNING}.items()
        }
    }


def _started(python: str | Path, code: str, ground: Ground, env: dict[str, str]) -> dict[str, float]:
    """The least seconds of some starts after a first one, in which kernels may be made, and the memory at its peak."""
    command = [str(python), "-c", code, str(ground.model), json.dumps(ground.rows(1))]
    seconds, peak = [], 0.0
    for _ in range(1 + REPEATS):
        began = time.perf_counter()
        ran = subprocess.run(command, env=env, cwd=ground.folder, capture_output=True, text=True, check=True)
        seconds.append(time.perf_counter() - began)
        peak = float(ran.stdout)
    return {"seconds": min(seconds[1:]), "memory": peak}


def install(ground: Ground) -> dict[str, Any]:
    """What `pip install dicoflex[serve]` takes of a disk, and how a server's process starts there."""
    python = _environment(ground.folder / "serve", [f"{ROOT}[serve,sign]"])
    where = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, text=True
    )
    files = [path for path in Path(where.stdout.strip()).rglob("*") if path.is_file() and not path.is_symlink()]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    env["DICOFLEX_COMPILED"] = str(ground.folder / "compiled")
    listed = subprocess.run([str(python), "-m", "pip", "list", "--format", "json"], capture_output=True, text=True)
    packages = sorted(one["name"] for one in json.loads(listed.stdout))
    own = [path for path in files if "pip" not in path.relative_to(where.stdout.strip()).parts[0]]
    size = sum(path.stat().st_size for path in own) / 1e6
    return {"megabytes": size, "packages": packages, **_started(python, ANSWERING, ground, env)}


def adapter(ground: Ground) -> dict[str, Any]:
    """Whether a client of the Open Inference Protocol that is not ours gets the answers of /v1."""
    python = _environment(ground.folder / "client", ["tritonclient[http]"])
    rows = [row for row in ground.rows(50) if None not in row["values"].values()][:10]
    question = {"rows": rows, "target": ground.target, "n": 3}
    with served(ground.models) as server:
        command = [str(python), "-c", CLIENT, server.url, orjson.dumps(question).decode()]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        url = f"{server.url}/v1/models/m/explain"
        results = httpx.post(url, json=question, trust_env=False, timeout=60).json()["results"]
    told = json.loads(ran.stdout)
    answers = [one for one_row in results for one in one_row["counterfactuals"]]
    names = [str(name) for name in load(ground.model).schema_.names]
    same = all(told["columns"][name] == [one["values"][name] for one in answers] for name in names)
    same &= told["columns"]["log_density"] == [one["scores"]["log_density"] for one in answers]
    return {"ready": told["ready"], "same": same, "rows": len(rows), "answers": len(answers)}


def _environment(folder: Path, packages: Sequence[str]) -> Path:
    """The Python of a fresh environment with some packages."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True, stderr=subprocess.DEVNULL)
    return python
