"""A model shows in a notebook what it is."""

from __future__ import annotations

from dicoflex import load
from dicoflex.examples import EXAMPLES


def test_a_fitted_model_names_its_classes_and_itself() -> None:
    explainer = load(EXAMPLES[2])
    html = explainer._repr_html_()
    assert explainer.fingerprint_[:16] in html
    assert ", ".join(explainer.classes_) in html
    assert f"{len(explainer.schema_)}, of which" in html
