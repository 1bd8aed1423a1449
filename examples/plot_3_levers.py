"""
Which single feature could do it?
=================================

How far each feature alone moves the model, over the values that the constraints permit.
Features that are enough by themselves come first.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused.head(1), target="yes", n=3, frozen=["age"], random_state=0)
plots.levers(cfs)
