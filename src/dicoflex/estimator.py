"""DiCoFlex: fit on rows and the labels that a classifier gave them, then answer what would have to be different."""

from __future__ import annotations

__all__ = ["DiCoFlex", "explain"]

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.errors import SettingError
from dicoflex.explainer import Explainer
from dicoflex.model import EXACT
from dicoflex.runtime.extras import extra
from dicoflex.table.native import Frame, as_column, read_frame
from dicoflex.table.schema import Schema
from dicoflex.table.survey import Whole

with extra("fit", to="learn a model"):
    from sklearn.base import BaseEstimator

    from dicoflex.learning.black_box import opened
    from dicoflex.learning.config import PAPER, FitConfig, FitSettings, GeneratorConfig, TrainingConfig, as_config
    from dicoflex.learning.fitting import learn_model
    from dicoflex.learning.plan import Plan
    from dicoflex.learning.private_rows import check_private
    from dicoflex.learning.score_box import is_score
    from dicoflex.learning.score_fitting import learn_scores
    from dicoflex.models.calls import CallConfig, Caller

SURROGATES = (None, "learned", EXACT)
PRIVACY = (None, "dp")
TASKS = (None, "labels", "scores")


class DiCoFlex(BaseEstimator, Explainer):
    """Several plausible, close, different rows that the classifier would accept, under conditions set when asking.

    generator: the density to learn: "mixed" (default), or the paper's "maf", "nice", "realnvp", "kde".
    task: what the black box gives: "labels", or "scores" such as a regressor's, whose targets are intervals. None:
    scores where `fit` gets `predict=` or a regressor, else labels; numbers that look like scores are refused.
    schema: what the columns are; inferred from the rows when None.
    exponents, k, alpha: p values to train for, neighbours per row (None: 16 as in the paper; 24 for "mixed"), and the
    weight of frozen features in the distance.
    min_count: what fewer rows have is not told by the model: rare levels are left out with their rows, extremes and
    edges rounded, counts merged; 1 tells all of it. A schema that is given is taken as stated.
    masks: lists of features that are frozen together in training; None trains for any subset.
    coherence: also learn what goes together in the table, so that answers are refined: nothing needless, nothing that
    no training row has together, as near as possible. None: for "mixed" yes, for the paper's densities no.
    marginals: also keep how many rows have what, feature by feature, for pages that show it; counts under ten, or under
    min_count, are not told.
    privacy, epsilon: privacy="dp" learns from rows that are drawn from counts with noise, so that the whole model is
    differentially private with this epsilon, given a schema that is public; answers are then less near and plausible.
    None learns from the rows themselves.
    generator_config, training, fit_config: settings of the parts, as objects or dicts; None takes the defaults.
    max_seconds: a limit on the time that `fit` takes; what was cut for it stands in `report_["cut"]`. device: "auto",
    "cpu" or "cuda".
    random_state: a whole number makes `fit` repeatable. verbose: progress bars; None shows them on a terminal.

    >>> import pandas as pd
    >>> rows = pd.DataFrame({"hours": [20, 25, 30, 35, 40, 45, 50, 55] * 8, "remote": [True, False] * 32})
    >>> labels = (rows["hours"] > 37).map({True: "yes", False: "no"})
    >>> explainer = DiCoFlex(random_state=0, max_seconds=2).fit(rows, labels)
    >>> cfs = explainer.explain(rows.head(1), target="yes", n=2, random_state=0)
    >>> cfs.frame.dtypes.equals(rows.dtypes), cfs.frame.index.names
    (True, FrozenList(['row', 'cf']))
    """

    def __init__(
        self,
        generator: str = "mixed",
        *,
        task: str | None = None,
        schema: Schema | None = None,
        exponents: tuple[float, ...] = (0.01, 0.08, 0.25, 1.0, 2.0),
        k: int | None = None,
        alpha: float = 10.0,
        min_count: int = 5,
        masks: Sequence[Sequence[Any]] | None = None,
        coherence: bool | None = None,
        marginals: bool = True,
        privacy: str | None = None,
        epsilon: float = 3.0,
        generator_config: GeneratorConfig | dict[str, Any] | None = None,
        training: TrainingConfig | dict[str, Any] | None = None,
        fit_config: FitConfig | dict[str, Any] | None = None,
        max_seconds: float | None = None,
        device: str = "auto",
        random_state: int | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.generator = generator
        self.task = task
        self.schema = schema
        self.exponents = exponents
        self.k = k
        self.alpha = alpha
        self.min_count = min_count
        self.masks = masks
        self.coherence = coherence
        self.marginals = marginals
        self.privacy = privacy
        self.epsilon = epsilon
        self.generator_config = generator_config
        self.training = training
        self.fit_config = fit_config
        self.max_seconds = max_seconds
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn is told of the rows: missing values, categories and text are taken, labels needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The paper's settings: MAF of 5 layers and 32 hidden features, K = 16, alpha = 10, Adam at 1e-4.

        Up to 1000 epochs, stopping after 300 without a better held-out likelihood.

        >>> DiCoFlex.paper(max_seconds=600).generator
        'maf'
        """
        return cls(**(PAPER | overrides))

    def fit(
        self,
        X: Frame,
        y: Any = None,
        *,
        feature_names: Sequence[str] | None = None,
        model: Any = None,
        surrogate: str | None = None,
        predict_proba: Callable[[Any], Any] | None = None,
        predict: Callable[[Any], Any] | None = None,
        classes: Sequence[Any] | None = None,
        calls: CallConfig | dict[str, Any] | None = None,
        threshold: float | None = None,
        remember_rows: bool | bytes | str = False,
        whole: Whole | None = None,
    ) -> Self:
        """Learn from rows and the labels that the black box gave them; returns the explainer itself.

        X: a frame of pandas, polars or Arrow, a dict of columns, or an array, whose columns `feature_names` names. The
        black box gets frames of the same kind.

        model: the black box as an object, in place of the callables below: a fitted classifier, or a regressor for
        scores, of any library that `dicoflex.models.wrap` knows. Without `y` the labels are those that it gives.

        surrogate: "exact" copies `model` into the explainer instead of learning from its answers what it does: answers
        then need no margin, and reach what was asked for and no more. **The model file then contains the model.** It
        takes linear models, perceptrons and trees of scikit-learn, XGBoost, LightGBM and CatBoost, also in pipelines; a
        model that is not recognised is refused. None, or "learned": a surrogate is learned.

        predict_proba: the black box's probabilities for a frame like X, used during `fit` only. Its columns follow
        the sorted labels of `y`, or `classes`.

        threshold: the probability of the second of two sorted labels from which on the owner gives that label, where it
        is not a half. Confidences are then told on the scale of the decision, on which the threshold is .5: the odds of
        the model's probability over those of the threshold. It can't be had with an exact surrogate.

        predict: a callable that gives a frame like X scores, such as a regressor's `predict`, used during `fit` only.
        With it, or with `DiCoFlex(task="scores")` and scores in `y`, the model is one of scores: its targets are
        intervals, `at_least(620)`, `at_most(5)`, `between(600, 700)`, `by(40)`.

        calls: how the black box is called, for one that stands behind a network: `{"chunk": 500}` rows a call at most,
        `"most_rows"` in all calls together, `"retries"` of a call that fails, after `"wait"` seconds, then twice as
        long each time. `report_` has `black_box_calls` and `black_box_rows`.

        remember_rows: whether `novel=True` can be asked for. The model then holds a hash of every row, under a key that
        is in no file: True makes one, `row_key_`, to be kept and given to `load`; one's own is 32 bytes or their
        hexadecimal digits. "kde", which needs its rows, keeps them in plain sight and is refused without it.

        whole: where `X` is a sample of a table that is too large to be a frame, a callable that gives all of its rows
        as frames, one after the other. Scales, counts of rows and remembered rows are then those of all rows; see
        `dicoflex.lake.fit_files`.

        A table of more than `FitConfig.most_rows` rows is sampled by class; `report_` says how many `rows` there were
        and how many were used, `rows_used`.
        """
        if predict is not None and predict_proba is not None:
            raise SettingError("predict gives scores and predict_proba classes; give one of them")
        exact = _is_exact(surrogate, model)
        frame, native = read_frame(X, getattr(self.schema, "names", None), feature_names=feature_names)
        y = as_column(y)
        how = as_config(CallConfig, calls, {})
        if model is not None:
            if predict is not None or predict_proba is not None or classes is not None:
                raise SettingError("model= stands for predict_proba=, predict= and classes=; give it or them")
            box = opened(model, None if calls is None else how, native)
            predict_proba, predict, classes = box.predict_proba, box.predict, box.classes
            if exact and (predict_proba is None or not hasattr(model, "predict_proba")):
                raise SettingError(
                    f"surrogate='exact' copies classifiers with predict_proba, and model= is a {type(model).__name__} "
                    "without; leave surrogate= out and one is learned"
                )
            if exact and threshold is not None:
                raise SettingError(
                    f"threshold={threshold!r} needs a surrogate that is learned, as an exact one decides as the model "
                    "does; leave surrogate= out, or threshold="
                )
            y = box.labels(frame, threshold) if y is None else y
        if callable(predict_proba) and not isinstance(predict_proba, Caller):
            predict_proba = Caller(predict_proba, "predict_proba", how, native)
        if callable(predict) and not isinstance(predict, Caller):
            predict = Caller(predict, "predict", how, native)
        scores = self._has_scores(y, predict=predict, classified=predict_proba is not None or classes is not None)
        plan = self._plan(remember_rows, epsilon=self._epsilon(remember_rows, exact=exact, scores=scores))
        plan = replace(plan, whole=whole)
        if scores:
            if threshold is not None:
                raise SettingError("threshold= is for labels, and this model gives scores; ask for at_least(...)")
            learned = learn_scores(frame, y, plan, predict=predict)
        else:
            learned = learn_model(
                frame,
                y,
                plan,
                predict_proba=predict_proba,
                classes=classes,
                exact=model if exact else None,
                threshold=threshold,
            )
        self._keep(learned.model)
        self.native_ = native
        self.history_ = learned.history
        return self

    def _has_scores(self, y: Any, *, predict: Any, classified: bool) -> bool:
        """Whether the black box gives scores. classified: whether probabilities or classes were given."""
        if self.task not in TASKS:
            raise SettingError(f"task must be one of {', '.join(map(repr, TASKS))}, got {self.task!r}")
        if self.task == "scores" and classified:
            raise SettingError("task='scores' takes predict=, and predict_proba= and classes= are for task='labels'")
        if self.task == "labels" and predict is not None:
            raise SettingError("task='labels' takes predict_proba=, and predict= is for task='scores'")
        if self.task is None and predict is None and not classified and is_score(y):
            raise SettingError(
                f"y holds {len(set(np.asarray(y).tolist()))} different numbers, which may be scores or labels; "
                "say DiCoFlex(task='scores') or DiCoFlex(task='labels')"
            )
        return predict is not None or self.task == "scores"

    def _epsilon(self, remember_rows: Any, *, exact: bool, scores: bool) -> float | None:
        """The epsilon of a private fit, checked; None where none is wanted."""
        if self.privacy not in PRIVACY:
            raise SettingError(f"privacy must be one of {', '.join(map(repr, PRIVACY))}, got {self.privacy!r}")
        if self.privacy is None:
            return None
        return check_private(
            self.schema, self.epsilon, remembers=remember_rows is not False, exact=exact, scores=scores
        )

    def _plan(self, remember_rows: Any, epsilon: float | None = None) -> Plan:
        """The settings of all parts, checked."""
        settings = FitSettings.resolve(
            self.generator,
            shared={
                "exponents": self.exponents,
                "k": self.k,
                "alpha": self.alpha,
                "min_count": self.min_count,
                "coherence": self.coherence,
                "marginals": self.marginals,
            },
            generator_config=self.generator_config,
            fit_config=self.fit_config,
            training=self.training,
            max_seconds=self.max_seconds,
        )
        return Plan.of(
            settings,
            schema=self.schema,
            masks=self.masks,
            random_state=self.random_state,
            device=self.device,
            verbose=self.verbose,
            remember_rows=remember_rows,
            max_seconds=self.max_seconds,
            epsilon=epsilon,
        )


def _is_exact(surrogate: Any, model: Any) -> bool:
    """Whether the surrogate is to be a copy of the model, checked."""
    if surrogate not in SURROGATES:
        raise SettingError(f"surrogate must be one of {', '.join(map(repr, SURROGATES))}, got {surrogate!r}")
    if surrogate == EXACT and model is None:
        raise SettingError("surrogate='exact' copies the model itself; give it with model=clf, or leave surrogate= out")
    return bool(surrogate == EXACT)


QUICKLY = 10.0


def explain(
    model: Any,
    X: Frame,
    rows: Frame,
    *,
    max_seconds: float = QUICKLY,
    random_state: int | None = 0,
    **question: Any,
) -> Counterfactuals:
    """Fit on `X` within a small budget and explain `rows`, in one line.

    For more than a first look, fit a `DiCoFlex` once, without a limit on its time, save it and ask it.

    Parameters
    ----------
    model : classifier or regressor
        The fitted model to explain. Answers are confirmed and brought nearer by it.
    X : DataFrame
        Rows that the model can judge, such as those it was trained on.
    rows : DataFrame
        The rows to explain.
    max_seconds : float
        A limit on the time of the fit.
    random_state : int, optional
        The seed of the fit and of the answers.
    **question : Any
        Arguments of `Explainer.explain`, such as `target`, `n`, `frozen` and `constraints`.

    Returns
    -------
    Counterfactuals
        The answers.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = pd.DataFrame({"hours": [20, 25, 30, 35, 40, 45, 50, 55] * 20, "age": list(range(20, 60)) * 4})
    >>> clf = LogisticRegression().fit(X, X["hours"] > 37)
    >>> cfs = explain(clf, X, X.head(1), target=True, n=1, frozen=["age"], max_seconds=2)
    >>> bool(clf.predict(cfs.frame)[0]), cfs.frame["age"].tolist()
    (True, [20])
    """
    explainer = DiCoFlex(max_seconds=max_seconds, random_state=random_state).fit(X, model=model)
    if explainer.model_.score is None:
        question.setdefault("check", getattr(model, "predict_proba", model.predict))
    return explainer.explain(rows, random_state=random_state, **question)
