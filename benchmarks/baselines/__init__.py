"""The methods that the paper compares with, behind one protocol and in one registry.

    problem = Problem.of(black_box, X_train, schema)
    answers = BASELINES["cchvae"]().fit(problem, seed=0).answer(queries, targets, n=10, seconds=60.0)

A method states what it needs of the black box (`needs`: its gradients, its predictions, or the labels that it gave the
training rows) and whether it gives several answers per query (`many`). All of them see rows through one encoding.
"""

from __future__ import annotations

__all__ = ["BASELINES", "Answers", "Baseline", "NoGradientError", "Problem", "network_of"]

from baselines.base import Answers, Baseline, Problem
from baselines.cchvae import Cchvae
from baselines.dice import DICE
from baselines.gradients import NoGradientError, network_of
from baselines.oracle import Oracle
from baselines.revise import Revise
from baselines.tabcf import Tabcf
from baselines.wachter import Wachter

BASELINES: dict[str, type[Baseline]] = {
    method.name: method for method in (*DICE, Cchvae, Revise, Tabcf, Wachter, Oracle)
}
