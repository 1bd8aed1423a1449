"""How quick the explorer is in a real browser: from a drag to new plans, from opening to the first ones, and its size.

dicoflex bench explorer                       all parts (about two minutes; needs Chromium)
dicoflex bench explorer --quick               a slice in some seconds
dicoflex bench explorer --methods size
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.explorer.measuring import cells, measure
from benchmarks.experiments.explorer.page import TITLE, figures, page
