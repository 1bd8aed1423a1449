"""How near answers are, and how long they last: distance against the survival of retraining, beside NICE and treecf.

Rows that the model refuses ask for the other class; every method gives one answer per row. L1: the sum of the changes,
numbers in standard deviations of the training rows, a level as 1. Survival: the share of refits of the model on
bootstrapped training rows that still accept the answer. Nearest rows: the mean distance (Euclidean, the same units) to
the five nearest training rows that the model accepts. Confidence is the model's own. Ours are asked by level, "just",
"safe" and "sure", and for numbers; treecf, which takes tree ensembles alone, by the same numbers. Neither NICE nor DiCE
can be asked for more than the decision. Methods whose package is not installed are left out.

    dicoflex bench nearer                             Adult, Bank and German, three models, two seeds (hours)
    dicoflex bench nearer --quick                     a slice in a minute
    dicoflex bench nearer --tables german --methods exact treecf
"""

from __future__ import annotations

__all__ = ["METHODS", "TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.nearer.measuring import METHODS, cells, measure
from benchmarks.experiments.nearer.page import TITLE, figures, page
