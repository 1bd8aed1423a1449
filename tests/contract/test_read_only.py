"""Import, load and explain where nothing can be written: an install without a writable place, in a mount namespace."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dicoflex
from dicoflex.runtime.compiled import folder

HERE = Path(__file__).parent
PACKAGE = Path(dicoflex.__file__).parent
PATIENCE = 550
NO_PLACE = "finds no folder to keep compiled code in"
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


def run_locked(package: Path, model: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The answers of a process that can write nowhere, not even to its home."""
    env = {
        "PATH": os.environ["PATH"], "PYTHON": sys.executable, "CODE": CODE, "MODEL": model, "HOME": "/proc/none",
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(HERE)]), **more,
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
def test_compiled_code_that_came_with_the_install_is_used(expected: dict[str, str]) -> None:
    place = folder()
    assert place is not None
    found = run_locked(PACKAGE, "mixed", DICOFLEX_COMPILED=str(place.parent))
    assert found.stdout.strip() == expected["mixed"], found.stderr
    assert NO_PLACE not in found.stderr


@needs_namespaces
def test_without_any_place_code_is_compiled_with_one_warning(expected: dict[str, str], tmp_path: Path) -> None:
    """By a flow, which takes few kernels: each of them is compiled here."""
    package = tmp_path / "dicoflex"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "data"))
    found = run_locked(package, "maf")
    assert found.stdout.strip() == expected["maf"], found.stderr
    assert found.stderr.count(NO_PLACE) == 1
    assert "set DICOFLEX_COMPILED to a folder" in found.stderr
