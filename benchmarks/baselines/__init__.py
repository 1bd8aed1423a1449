"""The methods that the paper compares with, behind one protocol and in one registry.

    problem = Problem.of(black_box, X_train, schema)
    answers = BASELINES["cchvae"]().fit(problem, seed=0).answer(queries, targets, n=10, seconds=60.0)

A method states what it needs of the black box (`needs`: its gradients, its predictions, or the labels that it gave the
training rows) and whether it gives several answers per query (`many`). All of them see rows through one encoding.
"""

from __future__ import annotations

__all__ = ["BASELINES", "Answers", "Baseline", "NoGradientError", "Problem", "network_of"]

from benchmarks.baselines.base import Answers, Baseline, Problem
from benchmarks.baselines.cchvae import Cchvae
from benchmarks.baselines.dice import DICE
from benchmarks.baselines.gradients import NoGradientError, network_of
from benchmarks.baselines.oracle import Oracle
from benchmarks.baselines.revise import Revise
from benchmarks.baselines.tabcf import Tabcf
from benchmarks.baselines.wachter import Wachter

BASELINES: dict[str, type[Baseline]] = {
    method.name: method for method in (*DICE, Cchvae, Revise, Tabcf, Wachter, Oracle)
}
