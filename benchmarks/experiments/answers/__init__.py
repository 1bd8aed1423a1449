"""What people would say of the answers: nothing needless, nothing implausible, near, and different ways.

For every table and seed: a black box is trained, 100 test rows per predicted class are the queries, and `explain` gives
up to 10 answers each for the other class. The same is asked of other methods; of DiCE for 20 queries.

    dicoflex bench answers                            six tables, two seeds, all methods (hours)
    dicoflex bench answers --quick                    a slice in a few seconds
    dicoflex bench answers --tables adult --seeds 1 --methods "explain (p=2.0)"
"""

from __future__ import annotations

__all__ = ["METHODS", "TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.answers.measuring import METHODS, cells, measure
from benchmarks.experiments.answers.page import TITLE, figures, page
