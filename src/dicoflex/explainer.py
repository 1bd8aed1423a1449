"""DiCoFlex: fit on rows and the labels that a classifier gave them, then answer what would have to be different."""

from __future__ import annotations

__all__ = ["DiCoFlex", "load"]

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dicoflex.answers import explain as ask
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.constraints import Constraints
from dicoflex.errors import NotFittedError
from dicoflex.learning.config import PAPER, FitConfig, FitSettings, GeneratorConfig, TrainingConfig
from dicoflex.learning.fitting import Plan, learn_model
from dicoflex.model import Model
from dicoflex.request import Request, switch
from dicoflex.table.schema import Schema

Floats = NDArray[np.float64]


class DiCoFlex(BaseEstimator):
    """Several plausible, close, different rows that the classifier would accept, under conditions set when asking.

    generator: the density to learn: "mixed" (default), or the paper's "maf", "nice", "realnvp", "kde".
    schema: what the columns are; inferred from the rows when None.
    exponents, k, alpha: p values to train for, neighbours per row (None: 16 as in the paper; 24 for "mixed"), and the
    weight of frozen features in the distance.
    masks: lists of features that are frozen together in training; None trains for any subset.
    coherence: also learn what goes together in the table, so that answers are refined: nothing needless, nothing that
    no training row has together, as near as possible; fitting takes some seconds longer.
    generator_config, training, fit_config: settings of the parts, as objects or dicts; None takes the defaults.
    max_seconds: a limit on the training time. device: "auto", "cpu" or "cuda".
    random_state: a whole number makes `fit` repeatable. verbose: progress bars; None shows them on a terminal.

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
        schema: Schema | None = None,
        exponents: tuple[float, ...] = (0.01, 0.08, 0.25, 1.0, 2.0),
        k: int | None = None,
        alpha: float = 10.0,
        masks: Sequence[Sequence[Any]] | None = None,
        coherence: bool = False,
        generator_config: GeneratorConfig | dict[str, Any] | None = None,
        training: TrainingConfig | dict[str, Any] | None = None,
        fit_config: FitConfig | dict[str, Any] | None = None,
        max_seconds: float | None = None,
        device: str = "auto",
        random_state: int | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.generator = generator
        self.schema = schema
        self.exponents = exponents
        self.k = k
        self.alpha = alpha
        self.masks = masks
        self.coherence = coherence
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

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(
        self,
        X: pd.DataFrame,
        y: Any,
        *,
        predict_proba: Callable[[pd.DataFrame], Any] | None = None,
        classes: Sequence[Any] | None = None,
        remember_rows: bool | bytes | str = False,
    ) -> Self:
        """Learn from rows and the labels that the black box gave them; returns the explainer itself.

        predict_proba: the black box's probabilities for a frame like X, used during `fit` only. Its columns follow
        the sorted labels of `y`, or `classes`.

        remember_rows: whether `novel=True` can be asked for. The model then holds a hash of every row, under a key that
        is in no file: True makes one, `row_key_`, to be kept and given to `load`; one's own is 32 bytes or their
        hexadecimal digits. "kde", which needs its rows, keeps them in plain sight and is refused without it.

        A table of more than `FitConfig.most_rows` rows is sampled by class; `report_` says how many `rows` there were
        and how many were used, `rows_used`.
        """
        learned = learn_model(X, y, self._plan(remember_rows), predict_proba=predict_proba, classes=classes)
        self._keep(learned.model)
        self.history_ = learned.history
        return self

    def _plan(self, remember_rows: Any) -> Plan:
        """The settings of all parts, checked."""
        settings = FitSettings.resolve(
            self.generator,
            shared={"exponents": self.exponents, "k": self.k, "alpha": self.alpha, "coherence": self.coherence or None},
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
        )

    def _keep(self, model: Model) -> None:
        """Store what was learned, under the names that scikit-learn's users look for."""
        self.model_ = model
        self.schema_ = model.schema
        self.classes_ = model.classes
        self.n_features_in_ = len(model.schema)
        self.feature_names_in_ = np.asarray(model.schema.names, dtype=object)

    @property
    def report_(self) -> dict[str, Any]:
        """What `fit` found out: rows, pairs, agreement of the stand-in, confidences per class, times."""
        return self._fitted.report

    @property
    def fingerprint_(self) -> str:
        """A name for exactly this model, the checksum of its file's content; it stands in every result."""
        return self._fitted.fingerprint

    @property
    def row_key_(self) -> bytes | None:
        """The key that the training rows are remembered under, to be kept for `load`; None where it is not at hand."""
        remembered = self._fitted.remembered
        return None if remembered is None else remembered.key

    @property
    def _fitted(self) -> Model:
        if "model_" not in vars(self):
            raise NotFittedError("this DiCoFlex is not fitted yet; call .fit(X, y), or load() a model file")
        return self.model_

    # -- asking -------------------------------------------------------------------------------------------------

    def explain(
        self,
        rows: pd.DataFrame,
        *,
        target: Any = None,
        n: int = 10,
        p: float | None = None,
        frozen: Iterable[Any] = (),
        constraints: Constraints | Mapping[str, Any] | None = None,
        confidence: float | None = None,
        check: Callable[[pd.DataFrame], Any] | None = None,
        novel: bool = False,
        refine: bool = True,
        coherent: bool = True,
        plausible: float = 0.05,
        variety: float = 0.2,
        random_state: int | None = None,
    ) -> Counterfactuals:
        """Up to `n` counterfactuals for every row: different from each other, close, and likely.

        target: a label, one label per row, or None for the other class of two. p: how few features should change, any
        value in the trained range (small: few); None is 2, or the least trained one under `max_changes`. frozen:
        features that may not change. constraints: what else an answer must obey; those of the schema bind too.
        confidence: how sure the black box should be. check: a callable that labels rows; only rows that it gives the
        target are returned, drawing up to five rounds. novel: no exact copy of a training row; the model must
        remember them. refine: nothing needless, as near as possible; False gives draws as they come. coherent: nothing
        that no training row has together, and exact dependencies kept. plausible: answers rarer than all but this share
        of the real rows of the class are left out. variety: how much other ways are preferred. Rows that got fewer than
        `n` are in `.shortfall`, with the reason.
        """
        request = Request.of(
            target=target, n=n, p=p, frozen=frozen, constraints=constraints, confidence=confidence, novel=novel,
            refine=refine, coherent=coherent, plausible=plausible, variety=variety, random_state=random_state,
        )  # fmt: skip
        return ask.explain(self._fitted, rows, request, check=check)

    def sample(
        self,
        rows: pd.DataFrame,
        *,
        target: Any = None,
        n: int = 100,
        p: float | None = None,
        frozen: Iterable[Any] = (),
        constraints: Constraints | Mapping[str, Any] | None = None,
        confidence: float | None = None,
        filter: bool = True,
        novel: bool = False,
        random_state: int | None = None,
    ) -> pd.DataFrame:
        """Exactly `n` draws for every row, as they come: the layout of `Counterfactuals.frame`, nothing selected.

        Draws are distinct where the density allows it, never equal to the row, and obey the constraints. filter: leave
        out draws that the stand-in for the black box doubts, and the least likely 5 % of a row's draws.
        """
        request = Request.of(
            target=target, n=n, p=p, frozen=frozen, constraints=constraints, confidence=confidence, novel=novel,
            random_state=random_state,
        )  # fmt: skip
        return ask.sample(self._fitted, rows, request, filtered=switch(filter, "filter"))

    def log_density(
        self,
        rows: pd.DataFrame,
        counterfactuals: pd.DataFrame,
        *,
        target: Any = None,
        p: float | None = None,
        frozen: Iterable[Any] = (),
        confidence: float | None = None,
    ) -> Floats:
        """The log density of each row of `counterfactuals` given the row of `rows` at the same place.

        A single row in `rows` is taken for all of `counterfactuals`. It is the density before constraints; of the
        schema's own only what is frozen counts.
        """
        request = Request.of(target=target, n=1, p=p, frozen=frozen, confidence=confidence, random_state=0)
        return ask.log_density(self._fitted, rows, counterfactuals, request)

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; `load` reads it back with the same draws for the same seed."""
        self._fitted.save(path)

    @classmethod
    def of(cls, model: Model) -> Self:
        """An explainer around a model, ready to answer."""
        explainer = cls(model.generator.name, exponents=model.exponents)
        explainer._keep(model)
        explainer.history_ = []
        return explainer


def load(
    path: str | os.PathLike[str],
    *,
    trust: str | os.PathLike[str] | bytes | None = None,
    row_key: bytes | str | None = None,
) -> DiCoFlex:
    """The explainer that a model file holds, ready to answer.

    row_key: the `row_key_` of the explainer that was fitted with `remember_rows`, for `novel=True`.

    A file that is cut short, altered, or no model file at all is a `ModelFileError`; no code from it is run.

    trust: a public key, as a PEM file or its bytes. A file that was not signed with the private one is then refused
    before anything in it is read; without a key, a file is as good as where it came from.
    """
    model = Model.load(path, trust=trust)
    return DiCoFlex.of(model if row_key is None else model.opened(row_key))
