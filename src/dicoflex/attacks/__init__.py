"""Attacks on a model by who has its file: who was among the training rows, and what an unknown value of theirs is."""

from __future__ import annotations

__all__ = [
    "ATTACKS",
    "DENSITIES",
    "Attack",
    "Guesses",
    "Told",
    "attack",
    "attack_scores",
    "attacks_on",
    "classes_of",
    "guesses_of",
]

from dicoflex.attacks.attributes import DENSITIES, Guesses, guesses_of
from dicoflex.attacks.membership import ATTACKS, Attack, Told, attack, attack_scores, attacks_on, classes_of
