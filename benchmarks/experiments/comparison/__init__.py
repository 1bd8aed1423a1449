"""The main table: every method on every table of data, beside the paper's figures.

Every method is asked for up to 100 candidates for each of 100 test rows that the black box puts in either class; 10
valid ones are kept at random and scored, as the paper does it. Methods of one answer give one.
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "findings", "measure", "page"]

from benchmarks.experiments.comparison.measuring import cells, measure
from benchmarks.experiments.comparison.page import TITLE, figures, page
from benchmarks.experiments.comparison.standing import findings
