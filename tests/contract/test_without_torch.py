"""Loading and answering need no torch, zuko, scikit-learn or matplotlib: the same answers in a process without them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import dicoflex

HERE = Path(__file__).parent
PACKAGE = Path(dicoflex.__file__).parent
RECORDING = HERE.parent / "recording"
MODELS = sorted(path.stem for path in RECORDING.glob("*.dicoflex"))
LEARNING = ("torch", "zuko", "sklearn", "matplotlib")
REMEDY = 'to learn a model, the package sklearn is needed: pip install "dicoflex[fit]"'
WITHOUT = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {LEARNING}:
            raise ModuleNotFoundError("No module named " + name, name=name)

sys.meta_path.insert(0, Refuse())
"""
ANSWERS = """
import hashlib, json, sys
import numpy as np, pandas as pd
from dicoflex import load

def rows_of(schema, n):
    rng = np.random.default_rng(0)
    columns = {}
    for feature in schema.features:
        if feature.is_number:
            numbers = rng.uniform(feature.minimum, feature.maximum, n)
            numbers = np.rint(numbers) if feature.kind.value == "integer" else numbers
            columns[feature.name] = numbers.astype("float32") if feature.dtype == "float32" else numbers
        else:
            columns[feature.name] = [feature.levels[i] for i in rng.integers(len(feature.levels), size=n)]
    return pd.DataFrame(columns)

found = {}
for name in json.loads(sys.argv[1]):
    explainer = load(f"{sys.argv[2]}/{name}.dicoflex")
    rows = rows_of(explainer.schema_, 4)
    cfs = explainer.explain(rows, target="yes", n=3, constraints={"max_changes": 3}, random_state=0)
    assert cfs.verify()["holds"].all()
    draws = explainer.sample(rows, target="no", n=4, frozen=["job"], random_state=1)
    density = explainer.log_density(rows.head(1), draws, target="no")
    texts = [frame.to_csv(float_format="%.17g") for frame in (cfs.frame, cfs.info, draws)]
    whole = "".join([*texts, density.tobytes().hex(), cfs.to_json(), cfs.to_html(), str(cfs), explainer.fingerprint_])
    found[name] = hashlib.sha256(whole.encode()).hexdigest()
print(json.dumps({"answers": found, "imported": sorted(sys.modules)}))
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run([sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True)


@pytest.fixture(scope="module")
def found() -> list[dict[str, object]]:
    """What a process like any other answers, and one in which what learning needs can't be imported."""
    answers = []
    for code in (ANSWERS, WITHOUT + ANSWERS):
        ran = run(code, json.dumps(MODELS), str(RECORDING))
        assert ran.returncode == 0, ran.stderr
        answers.append(json.loads(ran.stdout))
    return answers


def test_the_same_answers_without_them(found: list[dict[str, object]]) -> None:
    usual, alone = found
    assert set(MODELS) >= {"mixed", "mixed-trees", "maf", "nice", "realnvp", "kde"}
    assert alone["answers"] == usual["answers"]


def test_none_of_them_is_imported_where_they_are(found: list[dict[str, object]]) -> None:
    imported = {str(name).partition(".")[0] for name in found[0]["imported"]}
    assert imported & {*LEARNING, "fastapi"} == set()


@pytest.mark.parametrize(
    "code",
    ["from dicoflex import DiCoFlex", "import dicoflex; dicoflex.DiCoFlex", "from dicoflex.estimator import DiCoFlex"],
)
def test_learning_without_them_says_what_to_install(code: str) -> None:
    ran = run(WITHOUT + code)
    assert (
        'MissingPackageError: to learn a model, the package sklearn is needed: pip install "dicoflex[fit]"'
        in ran.stderr
    )


def test_the_command_line_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(
        "age,label\n" + "".join(f"{20 + i},{'yes' if i > 20 else 'no'}\n" for i in range(40))
    )
    fit = f"['fit', '{tmp_path / 'rows.csv'}', '--label', 'label', '-o', '{tmp_path / 'm.dicoflex'}']"
    ran = run(f"{WITHOUT}\nfrom dicoflex.cli import main\nsys.exit(main({fit}))")
    assert ran.returncode == 2
    assert ran.stderr.strip().endswith(REMEDY)


def test_serving_needs_none_of_them() -> None:
    ran = run(WITHOUT + "import dicoflex.serving.app, dicoflex.client, dicoflex.examples, dicoflex.cli")
    assert ran.returncode == 0, ran.stderr


def test_pictures_without_matplotlib_say_what_to_install() -> None:
    ran = run(WITHOUT + "from dicoflex.plots.canvas import axes_of; axes_of(None, 1, 1)")
    assert 'to draw pictures, the package matplotlib is needed: pip install "dicoflex[plots]"' in ran.stderr
