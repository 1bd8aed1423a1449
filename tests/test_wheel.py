"""A wheel, installed in an environment with nothing else in it, runs the README's lines.

Its dependencies are those of the environment that runs the tests, found by path: a test fetches nothing.
"""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = """
import sys
from functools import partial
sys.path.append(sys.argv[1])
import dicoflex
assert dicoflex.__file__.startswith(sys.prefix), dicoflex.__file__
from test_readme import EXAMPLES, QUICK, given
names = given()
dicoflex.DiCoFlex = partial(dicoflex.DiCoFlex, **QUICK)
for example in EXAMPLES:
    exec(example, names)
print(len(names["cfs"]), names["cfs"].verify()["holds"].all())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree; objects that an earlier build compiled are used again."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    compiler = [str(ROOT / ".ci" / "compiler")]
    built = subprocess.run(
        [*compiler, *command, "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return next(folder.glob("*.whl"))


def test_the_wheel_has_what_it_needs_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top.split("-")[0] for top in tops} == {"dicoflex"}
    assert any(name.startswith("dicoflex/examples/models/") for name in names)
    assert any(name.startswith("dicoflex/_core.") and not name.endswith(".pyi") for name in names)
    assert "dicoflex/py.typed" in names
    assert [name for name in names if name.startswith("dicoflex/datasets/data/") and name.endswith(".gz")]


def test_the_readme_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "install"]
    subprocess.run([*install, "--quiet", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    own = next(folder.glob("lib/python*/site-packages"))
    assert {path.name.split("-")[0] for path in own.iterdir()} == {"dicoflex"}
    places = [path for path in sys.path if path.endswith("site-packages")]
    (own / "dependencies.pth").write_text("\n".join(places), encoding="utf-8")
    ran = subprocess.run(
        [str(python), "-c", SCRIPT, str(ROOT / "tests")], cwd=tmp_path, capture_output=True, text=True, env={}
    )
    assert ran.returncode == 0, ran.stderr
    count, holds = ran.stdout.split()
    assert int(count) > 0
    assert holds == "True"
