"""
What does more confidence cost?
===============================

A surer answer is usually further away. The line joins answers to which no other is
both nearer and surer.
"""

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused.head(1), target="yes", n=30, confidence="just", diversity=1.0, random_state=0)
plots.tradeoff(cfs)
