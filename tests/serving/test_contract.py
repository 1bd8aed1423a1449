"""What the server takes and gives is what it says of itself: schemathesis on its own description."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from serving.running import Running

HERE = Path(__file__).parent
EXAMPLES = 24
REJECTED = 0.2


@pytest.mark.slow
def test_the_server_is_what_it_says(server: Running, http: httpx.Client, tmp_path: Path) -> None:
    def answered() -> tuple[int, int]:
        counts = re.findall(r'route="/v1/models/{name}/explain",status="(\d+)"} ([\d.]+)', http.get("/metrics").text)
        return sum(int(float(n)) for _, n in counts), sum(int(float(n)) for s, n in counts if s == "422")

    before = answered()
    tool = shutil.which("schemathesis", path=str(Path(sys.executable).parent))
    assert tool is not None
    command = [
        tool, "--config-file", str(HERE / "schemathesis.toml"), "run", f"{server.url}/openapi.json",
        "--include-path-regex", "health|models$|/plain", "--checks", "all", "--mode", "positive", "--seed", "1",
        "--phases", "examples,fuzzing", "--max-examples", str(EXAMPLES), "--generation-database", "none",
    ]  # fmt: skip
    env = os.environ | {"SCHEMATHESIS_HOOKS": "lines_hook", "PYTHONPATH": str(HERE)}
    ran = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    told = "\n".join(line[:300] for line in ran.stdout.splitlines()[-60:])
    assert ran.returncode == 0, told
    total, refused = (now - then for now, then in zip(answered(), before, strict=True))
    assert total > EXAMPLES
    assert refused < REJECTED * total, f"{refused} of {total} were refused"
