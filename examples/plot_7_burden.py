"""
Is it harder for some groups?
=============================

The distance of each person's nearest answer, by group. A difference is a question to ask, and not a proof of
unfairness.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused, target="yes", n=2, random_state=0)
plots.burden(cfs, "city")
