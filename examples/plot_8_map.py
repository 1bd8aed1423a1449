"""
Where is the boundary?
======================

Two numbers of one person as a plane: the decision boundary, with all other features as they are, and the answers.
Hollow marks change other features as well.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(
    refused.head(1), target="yes", n=8, features_to_vary=["score", "visits", "price"], random_state=0
)
plots.map(cfs, background="decision")
