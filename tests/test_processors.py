"""Another processor gives the same bytes: answers, draws, densities and probabilities of the default density.

`make aarch64` installs a second Python, for aarch64, which runs under qemu.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

OTHER = Path(__file__).resolve().parents[1] / "build" / "aarch64" / "python"
SCRIPT = """
import hashlib, json, platform
from dicoflex import load
from dicoflex.examples import EXAMPLES, rows_like

def digest(*values):
    return hashlib.sha256("\\n".join(map(repr, values)).encode()).hexdigest()

found = {}
for path in EXAMPLES:
    explainer = load(path)
    if explainer.model_.generator.name != "mixed":
        continue
    rows, target = rows_like(explainer.schema_, 4, seed=3), explainer.classes_[0]
    number = next(f.name for f in explainer.schema_.features if f.is_number)
    free = explainer.explain(rows, target=target, n=3, random_state=1)
    limited = explainer.explain(rows, target=target, n=2, p=0.01, random_state=1, frozen=[number],
                                constraints={"max_changes": 3})
    drawn = explainer.sample(rows, target=target, n=20, random_state=2)
    found[path.stem] = {
        "answers": digest(free.to_json(), free.status),
        "answers under constraints": digest(limited.to_json(), limited.status),
        "draws": digest(drawn.to_csv()),
        "densities": digest(explainer.log_density(rows.iloc[[0]], drawn.iloc[:20], target=target).tolist()),
        "probabilities": digest(explainer.probability(rows).to_numpy().tolist()),
    }
print(json.dumps([platform.machine(), found]))
"""
"""The paper's flows and kernels take the normal distribution from SciPy, whose last bits differ between processors."""


@pytest.mark.slow
@pytest.mark.skipif(not OTHER.exists(), reason="there is no Python for aarch64 here; `make aarch64` installs one")
def test_aarch64_gives_the_same_bytes() -> None:
    def digests(python: str) -> tuple[str, dict[str, dict[str, str]]]:
        done = subprocess.run([python, "-c", SCRIPT], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        machine, found = json.loads(done.stdout)
        return machine, found

    (here, expected), (there, found) = digests(sys.executable), digests(str(OTHER))
    assert there == "aarch64" != here
    assert set(expected) == {"perceptron", "trees"}
    assert found == expected
