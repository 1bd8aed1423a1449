"""Import, load and explain where nothing can be written: an install without a writable place, in a mount namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dicoflex

HERE = Path(__file__).parent
PACKAGE = Path(dicoflex.__file__).parent
PATIENCE = 550
LOCKED = """
mount --make-rprivate / || exit 77
awk '{ print $2, $3 }' /proc/mounts | while read -r place kind; do
    case $kind in proc|sysfs|devpts|devtmpfs|mqueue|cgroup*) ;; *) mount -o remount,bind,ro "$place" 2>/dev/null ;; esac
done
for place in "$@"; do touch "$place/x" 2>/dev/null && exit 78; done
exec "$PYTHON" -c "$CODE" "$MODEL"
"""
CODE = """
import sys
from dicoflex import load
from workers import RECORDING, digest
for name in sys.argv[1:]:
    print(digest(load(RECORDING / f"{name}.dicoflex")))
"""

needs_namespaces = pytest.mark.skipif(
    shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0,
    reason="mount namespaces are not permitted here",
)


def run_locked(package: Path, model: str) -> subprocess.CompletedProcess[str]:
    """The answers of a process that can write nowhere, not even to its home."""
    env = {
        "PATH": os.environ["PATH"], "PYTHON": sys.executable, "CODE": CODE, "MODEL": model, "HOME": "/proc/none",
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(HERE)]),
        "JOBLIB_MULTIPROCESSING": "0",  # it warns where it can make no semaphores, and none are needed
    }  # fmt: skip
    places = [str(package), str(Path(sys.prefix)), "/tmp", str(Path.home())]
    found = subprocess.run(
        ["unshare", "-m", "sh", "-c", LOCKED, "sh", *places], env=env, capture_output=True, text=True, timeout=PATIENCE
    )
    if found.returncode in (77, 78):
        pytest.skip("mounts can't be made read-only here")
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """The answers of a process like any other, by model."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(HERE)])}
    names = ("mixed", "maf")
    found = subprocess.run([sys.executable, "-c", CODE, *names], env=env, capture_output=True, text=True)
    return dict(zip(names, found.stdout.split(), strict=True))


@needs_namespaces
@pytest.mark.parametrize("model", ["mixed", "maf"])
def test_answers_are_the_same_where_nothing_can_be_written(model: str, expected: dict[str, str]) -> None:
    found = run_locked(PACKAGE, model)
    assert found.stdout.strip() == expected[model], found.stderr
    assert found.stderr == ""
