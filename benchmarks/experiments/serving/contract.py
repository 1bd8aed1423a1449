"""Whether the server is what it says of itself: schemathesis, with all its checks, on the server's own description."""

from __future__ import annotations

__all__ = ["contract"]

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from benchmarks.experiments.serving.ground import ROOT, Ground
from benchmarks.experiments.serving.processes import served

HERE = ROOT / "tests" / "serving"
COUNT = re.compile(r'dicoflex_requests_total\{model="[^"]*",route="([^"]*)",status="(\d+)"\} ([\d.]+)')
MOST = 3600


def contract(ground: Ground) -> dict[str, Any]:
    """Requests by route, those refused of a right form, and whether a check failed."""
    tool = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    if tool is None:
        return {"left_out": "schemathesis is not installed"}
    with served(ground.models) as server:
        command = [
            tool, "--config-file", str(HERE / "schemathesis.toml"), "run", f"{server.url}/openapi.json",
            "--checks", "all", "--mode", "positive", "--seed", "1", "--phases", "examples,fuzzing",
            "--max-examples", str(ground.amount.examples), "--generation-database", "none",
        ]  # fmt: skip
        env = os.environ | {"SCHEMATHESIS_HOOKS": "lines_hook", "PYTHONPATH": str(HERE)}
        ran = subprocess.run(command, env=env, cwd=ground.folder, capture_output=True, text=True, timeout=MOST)
        page = httpx.get(f"{server.url}/metrics", trust_env=False).text
    routes: dict[str, dict[str, int]] = {}
    for route, status, count in COUNT.findall(page):
        routes.setdefault(route, {})[status] = int(float(count))
    told = "" if ran.returncode == 0 else "\n".join(ran.stdout.splitlines()[-40:])
    return {"examples": ground.amount.examples, "failed": ran.returncode != 0, "routes": routes, "told": told}
