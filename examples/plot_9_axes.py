"""
Several pictures in one figure
==============================

Every function of ``dicoflex.plots`` draws on the axes that it is given, and returns them.
"""

import matplotlib.pyplot as plt

from dicoflex import load, plots
from dicoflex.examples import EXAMPLES, rows_like

explainer = load(EXAMPLES[2])
rows = rows_like(explainer.schema_, 60, seed=1)
refused = rows[explainer.probability(rows)["no"] > 0.5]
cfs = explainer.explain(refused, target="yes", n=3, random_state=0)

figure, (left, right) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
plots.importance(cfs, ax=left)
plots.burden(cfs, "member", ax=right)
