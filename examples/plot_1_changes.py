"""
What could one person change?
=============================

One line per answer, one column per feature that changes: from what, to what, and how sure the model is.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused.head(1), target="yes", n=6, random_state=0)
plots.changes(cfs)
