"""How fast the parts are, beside what one would use instead: search, draws, latency, a million rows, start-up.

    dicoflex bench speed                              all parts on three tables (about an hour, models included)
    dicoflex bench speed --quick                      a slice in a minute
    dicoflex bench speed --parts latency startup --tables adult

The cost of constraints is measured by `constraints`, that of a fit by `scale`.
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.speed.measuring import cells, measure
from benchmarks.experiments.speed.page import TITLE, page
from benchmarks.experiments.speed.picture import figures
