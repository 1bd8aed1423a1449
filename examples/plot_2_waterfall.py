"""
How does one plan move the model?
=================================

The changes of one answer, applied one after another in the order in which each does most.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused.head(1), target="yes", n=6, confidence="safe", random_state=0)
plots.waterfall(cfs, cf=int(cfs.info["n_changed"].argmax()))
