"""What a server does under load: requests per second, waits, and whether anything is lost when it changes or ends.

dicoflex bench serving                        all parts (about forty minutes)
dicoflex bench serving --quick                a slice in some minutes, without the parts that fetch packages
dicoflex bench serving --parts load hostile
"""

from __future__ import annotations

__all__ = ["TITLE", "cells", "figures", "measure", "page"]

from benchmarks.experiments.serving.measuring import cells, measure
from benchmarks.experiments.serving.page import TITLE, figures, page
