"""The same answers from threads, forks and other processes as alone: the explainers of the recording, passed around.

Run as a script, so that a process that hangs or dies does not take the tests along; it prints one line of JSON per way
of passing: for every model whether all workers, and the parent afterwards, answered as before. With `--calls 1000` each
of the sixteen threads asks as often as that.
"""

from __future__ import annotations

__all__ = ["MODELS", "THREADS", "WAYS", "digest", "explainers"]

import argparse
import hashlib
import json
import multiprocessing as mp
import os
import pickle
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from dicoflex import DiCoFlex, load
from dicoflex.runtime.threads import use_threads

RECORDING = Path(__file__).resolve().parents[1] / "recording"
MODELS = ("mixed", "mixed-trees", "maf", "kde")
THREADS = 16
Explainers = dict[str, DiCoFlex]


def explainers() -> Explainers:
    return {name: load(RECORDING / f"{name}.dicoflex") for name in MODELS}


def rows_for(explainer: DiCoFlex, n: int, seed: int) -> pd.DataFrame:
    """Rows of any values that the model's schema knows."""
    rng = np.random.default_rng(seed)
    columns: dict[Any, Any] = {}
    for feature in explainer.schema_.features:
        if feature.kind.is_number:
            numbers = rng.uniform(feature.minimum, feature.maximum, n)
            numbers = np.rint(numbers) if feature.kind.value == "integer" else numbers
            # A column of float32 holds no other numbers.
            columns[feature.name] = numbers.astype("float32") if feature.dtype == "float32" else numbers
        else:
            columns[feature.name] = [feature.levels[i] for i in rng.integers(len(feature.levels), size=n)]
    return pd.DataFrame(columns)


def digest(explainer: DiCoFlex, seed: int = 0) -> str:
    """What an explainer says of some rows, to the last bit."""
    cfs = explainer.explain(rows_for(explainer, 12, seed), target="yes", n=3, random_state=seed)
    draws = explainer.sample(rows_for(explainer, 3, seed), target="no", n=5, frozen=["job"], random_state=seed)
    texts = [frame.to_csv(float_format="%.17g") for frame in (cfs.frame, cfs.info, draws)]
    return hashlib.sha256("".join([*texts, explainer.fingerprint_]).encode()).hexdigest()


def digests(given: Explainers) -> dict[str, str]:
    return {name: digest(explainer) for name, explainer in given.items()}


# -- ways to pass explainers on ------------------------------------------------------------------------------------


def _pool(method: str, workers: int) -> Callable[[Explainers], list[Any]]:
    def run(given: Explainers) -> list[Any]:
        with mp.get_context(method).Pool(workers) as pool:
            return pool.map(digests, [given] * workers)

    return run


def _executor(given: Explainers) -> list[Any]:
    with ProcessPoolExecutor(2, mp_context=mp.get_context("fork")) as pool:
        return list(pool.map(digests, [given, given]))


def _forked(given: Explainers) -> list[Any]:
    """A child that has the explainers by inheritance alone, as the workers of a server that loads before it forks."""
    receive, send = mp.Pipe(duplex=False)
    child = mp.get_context("fork").Process(target=lambda: send.send(digests(given)))
    child.start()
    found = receive.recv() if receive.poll(100) else None
    child.join(10)
    return [found]


def _queue(given: Explainers) -> list[Any]:
    queue = mp.get_context("fork").Queue()
    queue.put(given)
    return [digests(queue.get(timeout=100))]


def _forking_pickler(given: Explainers) -> list[Any]:
    return [digests(pickle.loads(ForkingPickler.dumps(given)))]


def _loky(given: Explainers) -> list[Any]:
    from joblib import Parallel, delayed

    return list(Parallel(n_jobs=2, backend="loky")(delayed(digests)(given) for _ in range(2)))


def _cloudpickle(given: Explainers) -> list[Any]:
    try:
        import cloudpickle
    except ImportError:
        from joblib.externals import cloudpickle
    return [digests(pickle.loads(cloudpickle.dumps(given)))]


WAYS: dict[str, Callable[[Explainers], list[Any]]] = {
    "pickle": lambda given: [digests(pickle.loads(pickle.dumps(given)))],
    "cloudpickle": _cloudpickle,
    "forking pickler": _forking_pickler,
    "forked": _forked,
    "queue": _queue,
    "fork pool": _pool("fork", 2),
    "executor": _executor,
    "spawn pool": _pool("spawn", 1),
    "loky": _loky,
}


def in_threads(given: Explainers, calls: int) -> dict[str, bool]:
    """Whether sixteen threads that ask at the same time, with different seeds, get what each gets alone."""
    same = {}
    for name, explainer in given.items():
        alone = [digest(explainer, seed) for seed in range(4)]
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(lambda i, e=explainer: digest(e, i % 4), range(THREADS * calls)))
        same[name] = all(one == alone[i % 4] for i, one in enumerate(found))
    return same


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=1, help="how often each thread asks")
    parser.add_argument("--way", choices=[*WAYS, "threads"], action="append", help="only this way; may be repeated")
    asked = parser.parse_args(argv)
    # A caller's own code may have started torch's threads; the answers don't hang on it.
    use_threads(2)
    torch.ones(800, 800).mm(torch.ones(800, 800)).exp().sum()
    given = explainers()
    alone = digests(given)
    fine = True
    for way in asked.way or [*WAYS, "threads"]:
        if way == "threads":
            same = in_threads(given, asked.calls)
        else:
            found = [*WAYS[way](given), digests(given)]
            same = {name: all(one is not None and one[name] == alone[name] for one in found) for name in given}
        print(json.dumps({"way": way, "same": same}), flush=True)
        fine &= all(same.values())
    return 0 if fine else 1


if __name__ == "__main__":
    # By its own name, so that what workers are given can be found there too.
    sys.path.insert(0, os.path.dirname(__file__))
    import workers

    sys.exit(workers.main(sys.argv[1:]))
