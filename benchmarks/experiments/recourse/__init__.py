"""Rules about change and the verdict that there is no way, held against plain enumeration.

dicoflex bench recourse                           the audit, Adult, and draws under linked rules (an hour)
dicoflex bench recourse --quick                   a slice in a few seconds
dicoflex bench recourse --methods "DiCE, random"  one method of the audit alone
"""

from __future__ import annotations

__all__ = ["METHODS", "TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.recourse.measuring import METHODS, cells, measure
from benchmarks.experiments.recourse.page import TITLE, figures, page
