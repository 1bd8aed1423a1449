"""What the library computes on a small table, for every density: made once, compared after every change of the code.

`python tests/recording/record.py` compares this code with the recording and says what differs;
`python tests/recording/record.py --write` makes the recording anew, which is right only where a change was meant.

The models of the recording are files, so draws are compared without training. Rows are compared to the letter, and
densities to the last bit where the processor is the one that recorded them, to nine digits elsewhere: libraries of
matrix products round differently on different processors.
"""

from __future__ import annotations

__all__ = ["Case", "compare", "fit", "main", "models"]

import hashlib
import json
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicoflex import Constraints, DiCoFlex, delta, load, per_unit, relative
from dicoflex.generators import GENERATORS

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"
TIMES = ("seconds",)
DIGITS = 1e-9
SMALL = {"mixed": {"hidden": 24, "head": 12}, "kde": {}}
FLOW = {"layers": 2, "hidden_features": 16}
SEED = 3
KEY = bytes(range(32))

WISHES: dict[str, dict[str, Any]] = {
    "free": {},
    "few": {"p": 0.01},
    "frozen": {"frozen": ["age", "job"]},
    "ranges": {"constraints": Constraints(ranges={"gain": (0, 900), "price": relative(-0.5, 0.5), "age": delta(0, 9)})},
    "directions": {"constraints": Constraints(increase=["age", "grade"], decrease=["price"])},
    "values": {"constraints": Constraints(allowed={"job": ["cook", "pilot"]}, forbidden={"area": [5]})},
    "transitions": {"constraints": Constraints(transitions={"grade": {"a": ["b"], "c": ["b", "a"]}})},
    "max_changes": {"constraints": Constraints(max_changes=2)},
    "rules": {"constraints": Constraints(rules=["if member == true then gain >= 100", "visits <= price"])},
    "steps": {"constraints": Constraints(steps={"gain": 50, "age": 5})},
    "cost": {"constraints": Constraints(cost={"age": 1, "gain": per_unit(0.001), "job": 2}, max_cost=3)},
    "strict": {"constraints": Constraints(ranges={"visits": (0, 4)}, strict=True)},
    "together": {
        "frozen": ["city"],
        "constraints": Constraints(
            increase=["age"], ranges={"gain": (0, 3000)}, max_changes=4, steps={"price": 0.5},
            rules=["if job == 'pilot' then age >= 21"],
        ),
    },
}  # fmt: skip


def applicants(n: int, seed: int) -> pd.DataFrame:
    """Rows of every kind: missing values, a point mass at 0, cents, narrow dtypes, levels that are numbers."""
    rng = np.random.default_rng(seed)
    age = pd.array(rng.integers(18, 80, n), dtype="Int64")
    age[rng.random(n) < 0.1] = pd.NA
    job = rng.choice(["cook", "nurse", "pilot", "smith"], n).astype(object)
    job[rng.random(n) < 0.1] = None
    return pd.DataFrame(
        {
            "age": age,
            "gain": np.where(rng.random(n) < 0.5, 0.0, np.round(rng.gamma(2.0, 500.0, n), 1)),
            "price": np.round(rng.choice(np.arange(5.0, 25.0, 0.25), n), 2),
            "score": rng.integers(-3000, 3000, n).astype("float32") / np.float32(1024),
            "visits": rng.poisson(3.0, n).astype("int8"),
            "job": pd.Series(job, dtype=object),
            "city": rng.choice(["Ulm", "Rome"], n),
            "grade": pd.Categorical(rng.choice(list("abc"), n), categories=list("abcd"), ordered=True),
            "area": pd.Categorical(rng.choice([1, 2, 5], n)),
            "member": rng.random(n) < 0.4,
        }
    ).set_axis(pd.Index([f"r{i}" for i in range(n)], name="person"))


def smooth(frame: pd.DataFrame) -> np.ndarray:
    """A black box that a perceptron follows."""
    score = frame["gain"] / 400 + 1.5 * frame["member"] + 0.8 * (frame["grade"] == "a") + frame["score"] - 1.6
    yes = 1 / (1 + np.exp(-2 * score.to_numpy(dtype=float)))
    return np.column_stack([1 - yes, yes])


def jagged(frame: pd.DataFrame) -> np.ndarray:
    """A black box that trees follow better."""
    odd = (np.floor(frame["price"].to_numpy(float) / 4) + np.floor(frame["score"].to_numpy(float) * 1.5)) % 2 == 1
    yes = np.where(odd, 0.95, 0.05)
    return np.column_stack([1 - yes, yes])


@dataclass(frozen=True)
class Case:
    """One model of the recording."""

    generator: str
    black_box: Callable[[pd.DataFrame], np.ndarray] = smooth
    judged: bool = False
    rows: int = 240
    settings: dict[str, Any] = field(default_factory=dict)

    def config(self) -> dict[str, Any]:
        return SMALL.get(self.generator, FLOW)


CASES = {
    "mixed": Case("mixed", judged=True),
    "mixed-trees": Case("mixed", jagged, judged=True, rows=900),
    "mixed-labels": Case("mixed"),
    "maf": Case("maf"),
    "nice": Case("nice"),
    "realnvp": Case("realnvp"),
    "kde": Case("kde"),
}


def models() -> Iterator[tuple[str, DiCoFlex]]:
    """The recorded models, loaded from their files."""
    for name in CASES:
        yield name, load(HERE / f"{name}.dicoflex")


def fit(name: str) -> DiCoFlex:
    """One of the recording's models, trained by this code."""
    case = CASES[name]
    rows = applicants(case.rows, seed=0)
    labels = np.array(["no", "yes"], dtype=object)[case.black_box(rows).argmax(axis=1)]
    explainer = DiCoFlex(
        case.generator, generator_config=case.config(), training={"min_steps": 0, "epochs": 3},
        fit_config={"passes": 2, "rounds": 1 if case.judged else 0, "own_draws": 800}, random_state=SEED,
        min_count=1, coherence=False, marginals=False,
    )  # fmt: skip
    remembered = KEY if GENERATORS[case.generator].keeps_rows else False
    judge = {"predict_proba": case.black_box} if case.judged else {}
    return explainer.fit(rows, labels, remember_rows=remembered, **judge)


def answers(explainer: DiCoFlex) -> dict[str, Any]:
    """Everything that a loaded model says, as digests of rows and texts, and densities."""
    queries = applicants(7, seed=1)
    out: dict[str, Any] = {}
    for name, wish in WISHES.items():
        cfs = explainer.explain(queries, target="yes", n=4, random_state=SEED, **wish)
        draws = explainer.sample(queries.head(3), target="yes", n=9, random_state=SEED, filter=False, **wish)
        out[name] = {
            "rows": _digest(_text(cfs.frame)),
            "draws": _digest(_text(draws)),
            "density": cfs.info["log_density"].tolist(),
            "probability": cfs.info["probability"].tolist(),
            "shortfall": _digest(cfs.shortfall.to_csv()),
        }
    own = explainer.sample(queries, target="no", n=1, random_state=SEED).droplevel("cf")
    out["log_density"] = explainer.log_density(queries, own, target="no", p=1.0).tolist()
    return out


def _text(frame: pd.DataFrame) -> str:
    """A frame to the letter: dtypes, labels and every value."""
    return frame.dtypes.to_string() + frame.to_csv(float_format="%.17g")


def _digest(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return hashlib.sha256(data).hexdigest()[:20]


def content(explainer: DiCoFlex) -> dict[str, Any]:
    """What the model's file holds: the header without times, and a digest of every array."""
    from safetensors.numpy import load_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.dicoflex"
        explainer.save(path)
        arrays = load_file(path)
        raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["dicoflex-model"])
    header.pop("fingerprint")
    header["report"] = {k: v for k, v in header["report"].items() if k not in TIMES}
    return {"header": header, "arrays": {k: _digest(v.tobytes()) for k, v in sorted(arrays.items())}}


def processor() -> str:
    """What decides how numbers are rounded: the processor and its instructions."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    wanted = {line.split(":", 1)[0].strip(): line for line in lines if line.startswith(("model name", "flags"))}
    return _digest("".join(sorted(wanted.values())))


def measure(name: str, *, train: bool) -> dict[str, Any]:
    """One model's part of the recording, by this code."""
    made = {"answers": answers(load(HERE / f"{name}.dicoflex"))}
    return made | ({"fitted": content(fit(name))} if train else {})


def compare(name: str, *, train: bool = True) -> list[str]:
    """Where this code differs from the recording of one model."""
    recording = json.loads(ANSWERS.read_text(encoding="utf-8"))
    here = json.loads(json.dumps(measure(name, train=train and recording["processor"] == processor())))
    exact = recording["processor"] == processor()
    return list(_differences(recording["models"][name], here, name, exact=exact))


def _differences(before: Any, now: Any, where: str, *, exact: bool) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for key in [k for k in before if k in now]:
            yield from _differences(before[key], now[key], f"{where}/{key}", exact=exact)
        for key in sorted((set(before) ^ set(now)) - {"fitted"}):
            yield f"{where}/{key} is only {'recorded' if key in before else 'here'}"
    elif isinstance(before, list) and before and isinstance(before[0], float) and len(before) == len(now):
        close = np.array_equal if exact else partial(np.allclose, rtol=DIGITS)
        if not close(before, now, equal_nan=True):
            yield f"{where} differs by {np.nanmax(np.abs(np.subtract(before, now)))}"
    elif before != now:
        yield f"{where}: {str(before)[:80]} was recorded, {str(now)[:80]} is here"


def write() -> None:
    """Make the recording anew: the model files, then everything that they say."""
    for name in CASES:
        print("fitting", name, flush=True)
        fit(name).save(HERE / f"{name}.dicoflex")
    made = {"processor": processor(), "models": {name: measure(name, train=True) for name in CASES}}
    ANSWERS.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def main(argv: list[str]) -> int:
    """Compare, or with `--write` record."""
    if "--write" in argv:
        write()
        return 0
    found = [line for name in CASES for line in compare(name)]
    print("\n".join(found) or "equal")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
