"""What a model file from a stranger can do: thousands of forged ones are inspected, loaded and asked.

dicoflex bench fuzz                        5,000 files, with bounds checks in every kernel (about ten minutes)
dicoflex bench fuzz --quick                150 files, without
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.fuzz.measuring import cells, measure
from benchmarks.experiments.fuzz.page import TITLE, figures, page
