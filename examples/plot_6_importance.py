"""
Which features change most often?
=================================

The share of answers in which each feature changes, over all people who were asked for.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused, target="yes", n=3, random_state=0)
plots.importance(cfs)
