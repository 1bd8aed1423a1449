"""A table that ships, learned in seconds, for who has no model yet."""

from __future__ import annotations

__all__ = ["german"]

from typing import TYPE_CHECKING

from dicoflex.runtime.extras import extra

if TYPE_CHECKING:
    import pandas as pd

    from dicoflex.explorer import Texts
    from dicoflex.model import Model

SECONDS = 4.0
FIT = {"passes": 2, "rounds": 0}
"""A page to try needs no better model: half of the work, and answers that hold."""
PEOPLE = 200


def german(*, seconds: float | None = SECONDS, seed: int = 0) -> tuple[Model, pd.DataFrame, Texts]:
    """A model of the German credit table, people that it was not learned from, and what things are called.

    Its surrogate is a copy of the classifier, so that a fit of seconds is right about who has which result.
    """
    from dicoflex import datasets
    from dicoflex.explorer import Texts

    with extra("fit", to="learn a model"):
        from sklearn.compose import make_column_transformer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        from dicoflex.estimator import DiCoFlex
    data = datasets.load("german")
    numbers = [f.name for f in data.schema.features if f.is_number]
    others = [f.name for f in data.schema.features if not f.is_number]
    columns = make_column_transformer((StandardScaler(), numbers), (OneHotEncoder(handle_unknown="ignore"), others))
    clf = make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(data.X_train, data.y_train)
    schema = data.schema.with_constraints(data.preset)
    explainer = DiCoFlex(schema=schema, fit_config=FIT, max_seconds=seconds, random_state=seed, verbose=False)
    explainer.fit(data.X_train, model=clf, surrogate="exact")
    texts = Texts(name="German credit", word="applicant", wanted="0", results={"0": "granted", "1": "refused"})
    return explainer.model_, data.X_test.head(PEOPLE), texts
