"""What a fit costs as tables grow, and what it loses by learning from a sample of a large one.

dicoflex bench scale                              all sizes (about half an hour)
dicoflex bench scale --quick                      two tiny ones, in half a minute
dicoflex bench scale --rows 10000 100000 --seeds 0 1 2 3 4
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.scale.measuring import cells, measure
from benchmarks.experiments.scale.page import TITLE, figures, page
