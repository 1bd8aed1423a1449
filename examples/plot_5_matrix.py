"""
Which person changes what?
==========================

One row per person, one column per feature; a sign for the direction.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused.head(12), target="yes", n=3, random_state=0)
plots.matrix(cfs)
