"""A model's answers: what would have to be different for another label."""

from __future__ import annotations

__all__ = ["Explainer", "load"]

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dicoflex._types import Floats
from dicoflex.answers import asking as ask
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.directions import suggested_for
from dicoflex.answers.importance import necessity, sufficiency, who_is_answered
from dicoflex.constraints import Constraints
from dicoflex.errors import NotFittedError
from dicoflex.model import Model
from dicoflex.request import Request, switch
from dicoflex.table.native import Frame, Native, as_pandas, read_frame

if TYPE_CHECKING:
    from dicoflex.explorer import Texts
    from dicoflex.widget import ExplorerWidget


class Explainer:
    """Several plausible, close, different rows that the classifier would accept, under conditions set when asking.

    It answers from a model that was learned, and needs nothing that learning needs. What `load` gives is one, and so is
    `DiCoFlex`, which learns.
    """

    def __init__(self, model: Model) -> None:
        self._keep(model)
        self.history_: list[dict[str, float]] = []

    def __repr__(self) -> str:
        return f"Explainer({self._fitted.generator.name!r}, model {self._fitted.fingerprint})"

    def _repr_html_(self) -> str:
        report, schema = self.report_, self.schema_
        facts = {
            "classes": ", ".join(map(str, self.classes_)),
            "features": f"{len(schema)}, of which {sum(feature.is_number for feature in schema.features)} numbers",
            "training rows": f"{report['rows']:,}" if "rows" in report else "unknown",
            "surrogate": f"{report['surrogate_agreement']:.1%} agreement" if "surrogate_agreement" in report else "–",
            "fingerprint": self.fingerprint_[:16],
        }
        lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in facts.items())
        title = f"{type(self).__name__}, density {self._fitted.generator.name}"
        return f"<table><caption>{escape(title)}</caption><tbody>{lines}</tbody></table>"

    def _keep(self, model: Model) -> None:
        """Store what was learned, under the names that scikit-learn's users look for."""
        self.model_ = model
        self.schema_ = model.schema
        self.classes_ = model.classes
        self.n_features_in_ = len(model.schema)
        self.feature_names_in_ = np.asarray(model.schema.names, dtype=object)
        self.native_: Native | None = None

    @property
    def report_(self) -> dict[str, Any]:
        """What `fit` found out: rows, pairs, agreement of the surrogate, confidences per class, times."""
        return self._fitted.report

    @property
    def fingerprint_(self) -> str:
        """A name for exactly this model, the checksum of its file's content; it stands in every result."""
        return self._fitted.fingerprint

    @property
    def dependencies_(self) -> dict[Any, str]:
        """By feature, in words, what it follows from in every training row; in answers it follows too."""
        coherence = self._fitted.coherence
        return {} if coherence is None else dict(coherence.dependencies.told(self.schema_))

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

    def _read(self, rows: Frame) -> pd.DataFrame:
        """A caller's rows as a pandas frame; what is no frame is refused by who asks."""
        frame: pd.DataFrame = as_pandas(rows, self._fitted.schema.names)
        return frame

    # -- asking -------------------------------------------------------------------------------------------------

    def explain(
        self,
        rows: Frame,
        *,
        target: Any = None,
        n: int = 10,
        p: float | None = None,
        frozen: Iterable[Any] = (),
        features_to_vary: Iterable[Any] | None = None,
        constraints: Constraints | Mapping[str, Any] | None = None,
        confidence: float | str | None = None,
        check: Callable[[Any], Any] | None = None,
        novel: bool = False,
        refine: bool = True,
        coherent: bool = True,
        min_plausibility: float = 0.05,
        diversity: float = 0.2,
        exhaustive: bool = True,
        handle_unknown: str = "replace",
        random_state: int | None = None,
    ) -> Counterfactuals:
        """Find up to `n` counterfactuals for every row: close, plausible, and different from each other.

        Parameters
        ----------
        rows : frame
            The rows to explain, with the columns that `fit` got: of pandas, polars or Arrow, a dict of columns, or an
            array of two dimensions whose columns are those of `fit`, by place.
        target : label, target or list, optional
            The class that an answer must have; by default the other one of two classes. `"other"` is any class but the
            present one, a set or `one_of(...)` any of several. For a model of scores: `at_least(620)`, `at_most(5)`,
            `between(600, 700)` or `by(40)`, also written `">=620"`, `"<=5"`, `"600..700"`, `"+40"`. A list has one
            target per row.
        n : int
            How many answers to look for, per row.
        p : float, optional
            The exponent of the distance, anywhere in the trained range: 2 stays close in every feature, 0.01 changes as
            few features as possible. By default 2, or the smallest trained value where `max_changes` is set.
        frozen : list of features
            Features that keep the row's value, bit for bit.
        features_to_vary : list of features, optional
            The only features that may change; all others are frozen.
        constraints : Constraints or dict, optional
            What else an answer must satisfy. The schema's own constraints hold as well.
        confidence : float or {"just", "safe", "sure"}, optional
            How confident the model should be of the target. "just" is the decision itself; "safe", the default, is the
            least confidence at which an estimated 85 % of retrained models would accept the answer too, "sure" 95 %.
            `report_["confidence"]` has the numbers, and `.needed` those that were used.
        check : callable, optional
            The model at hand, such as `clf.predict` or `clf.predict_proba`. Only answers that it confirms are returned,
            brought nearer against it, in at most twelve calls for all rows; a search for answers may add one a row. It
            gets the kind of frame that `fit` got, or after `load` that `rows` are.
        novel : bool
            Return no exact copy of a training row; the model must have been fitted with `remember_rows`.
        refine : bool
            Remove needless changes and move answers as near as possible. False returns draws as they come.
        coherent : bool
            Return no combination of values that no training row has, and keep dependencies between features.
        min_plausibility : float
            Leave out answers that are less plausible than all but this share of the real rows of the target class.
        diversity : float
            How much answers that change other features are preferred, from 0 to 1.
        exhaustive : bool
            Where sampling finds nothing, search the feasible rows: all of them if they are few enough, and then
            `.status` says "infeasible".
        handle_unknown : {"replace", "error"}
            What to do with a row that has a value unknown to training: replace the value, or raise an error.
        random_state : int, optional
            The same number gives the same answers, however rows are batched.

        Returns
        -------
        Counterfactuals
            The answers. `.status` has a word per row; rows that got fewer than `n` stand in `.shortfall`, with the
            reason. A row that has the target already gets no answers.

        Raises
        ------
        QueryError
            If the rows or an argument do not fit the model; the message names the remedy.
        """
        request = Request.of(
            target=target, n=n, p=p, frozen=frozen, features_to_vary=features_to_vary,
            constraints=constraints, confidence=confidence, novel=novel,
            refine=refine, coherent=coherent, min_plausibility=min_plausibility, diversity=diversity,
            exhaustive=exhaustive, handle_unknown=handle_unknown, random_state=random_state,
        )  # fmt: skip
        fitted = self._fitted
        given, native = read_frame(rows, fitted.schema.names)
        of_model = self.native_ or native
        found = ask.explain(fitted, given, request, check=of_model.calling(check))
        return replace(found, native=native, native_of_model=of_model)

    def sample(
        self,
        rows: Frame,
        *,
        target: Any = None,
        n: int = 100,
        p: float | None = None,
        frozen: Iterable[Any] = (),
        features_to_vary: Iterable[Any] | None = None,
        constraints: Constraints | Mapping[str, Any] | None = None,
        confidence: float | str | None = None,
        filter: bool = True,
        novel: bool = False,
        random_state: int | None = None,
    ) -> pd.DataFrame:
        """Exactly `n` draws for every row, as they come: the layout of `Counterfactuals.frame`, nothing selected.

        Draws are distinct where the density allows it, never equal to the row, and obey the constraints. filter: leave
        out draws that the surrogate for the black box doubts, and the least likely 5 % of a row's draws.
        """
        request = Request.of(
            target=target, n=n, p=p, frozen=frozen, features_to_vary=features_to_vary,
            constraints=constraints, confidence=confidence, novel=novel,
            random_state=random_state,
        )  # fmt: skip
        return ask.sample(self._fitted, self._read(rows), request, filtered=switch(filter, "filter"))

    def log_density(
        self,
        rows: Frame,
        counterfactuals: Frame,
        *,
        target: Any = None,
        p: float | None = None,
        frozen: Iterable[Any] = (),
        features_to_vary: Iterable[Any] | None = None,
        confidence: float | str | None = None,
    ) -> Floats:
        """The log density of each row of `counterfactuals` given the row of `rows` at the same place.

        A single row in `rows` is taken for all of `counterfactuals`. It is the density before constraints; of the
        schema's own only what is frozen counts.
        """
        request = Request.of(
            target=target,
            n=1,
            p=p,
            frozen=frozen,
            features_to_vary=features_to_vary,
            confidence=confidence,
            random_state=0,
        )
        return ask.log_density(self._fitted, self._read(rows), self._read(counterfactuals), request)

    def probability(self, rows: Frame) -> pd.DataFrame:
        """What the model's surrogate for the black box says of rows: the probability of each class, a column each.

        Of a model of scores, the one column is `score`.

        It is what `explain` goes by, and not the black box itself: `report_["surrogate_agreement"]` is the share of
        held-out rows to which both give the same label.

        >>> from dicoflex.examples import EXAMPLES, rows_like
        >>> explainer = load(EXAMPLES[0])
        >>> rows = rows_like(explainer.schema_, 3)
        >>> found = explainer.probability(rows)
        >>> list(found.columns) == list(explainer.classes_), bool((found.sum(axis=1).round(6) == 1).all())
        (True, True)
        """
        return ask.probability(self._fitted, self._read(rows))

    def suggested(self, rows: Frame, *, target: Any) -> Constraints:
        """Constraints that the columns and the model suggest; nothing binds until they are given to `explain`.

        Besides what `Schema.suggested` finds in the names and in the rows, `increase` and `decrease` name numbers and
        ordinals of which the model likes more, or less, the better wherever it was followed: a step against that
        direction is no advice ("lower your grades").

        Parameters
        ----------
        rows : frame
            Rows like those that are explained, some hundred of them; the model is followed around them.
        target : label or target
            What is wanted. Of scores, an end: `at_least(620)` or `by(40)`, and not an interval between two.

        Returns
        -------
        Constraints

        Examples
        --------
        >>> from dicoflex.examples import EXAMPLES, rows_like
        >>> explainer = load(EXAMPLES[0])
        >>> found = explainer.suggested(rows_like(explainer.schema_, 50), target=explainer.classes_[0])
        >>> sorted(set(found.increase) & set(found.decrease))
        []
        """
        return suggested_for(self._fitted, self._read(rows), target)

    def necessity(
        self, rows: Frame, *, pairs: bool = False, usual: bool = False, **asked: Any
    ) -> pd.DataFrame:  # fmt: skip
        """Per feature the share of rows that have an answer and lose it when the feature is frozen: share, low, high.

        It speaks of the black box's decision: whatever has the target counts, also where it is unusual or the black box
        is barely sure. pairs: pairs of features, too. usual: count what `explain` would answer with. asked: as for
        `explain`; `confidence` and `coherent` may also be set one by one.
        """
        return necessity(self.schema_, self._answered(rows, asked, usual=usual), pairs=pairs)

    def sufficiency(
        self, rows: Frame, *, pairs: bool = False, usual: bool = False, **asked: Any
    ) -> pd.DataFrame:  # fmt: skip
        """Per feature the share of the rows that have an answer in which nothing else changes: share, low, high.

        pairs, usual, asked: as for `necessity`.

        >>> from dicoflex.examples import EXAMPLES, rows_like
        >>> explainer = load(EXAMPLES[0])
        >>> rows = rows_like(explainer.schema_, 3)
        >>> found = explainer.sufficiency(rows, target=explainer.classes_[0])
        >>> list(found.columns), sorted(found.index) == sorted(explainer.schema_.names)
        (['share', 'low', 'high'], True)
        """
        return sufficiency(self.schema_, self._answered(rows, asked, usual=usual), pairs=pairs)

    def _answered(self, rows: Frame, asked: dict[str, Any], *, usual: bool) -> Any:
        usual = switch(usual, "usual")
        asker = self if usual else Explainer(self._fitted.least_sure())
        asker.native_ = self.native_
        settled = {"n": 1, "random_state": 0, "coherent": usual, **asked}
        own = list(settled.pop("frozen", ()))

        def ask_with(frozen: list[Any]) -> Counterfactuals:
            return asker.explain(rows, frozen=[*own, *(name for name in frozen if name not in own)], **settled)

        return who_is_answered(ask_with, len(self._read(rows)))

    def explore(
        self, rows: pd.DataFrame, *, target: Any = None, texts: Texts | None = None, height: int = 640
    ) -> ExplorerWidget:
        """Show the live explorer of these rows in a notebook's cell.

        It is the page of `dicoflex explore`, over the notebook's own channel: no port is opened, and nothing is
        fetched. The extra `widget` is needed: `pip install "dicoflex[widget]"`.

        Parameters
        ----------
        rows : DataFrame
            The people to choose from; their index names them.
        target : label, optional
            The result that people hope for; by default the one that fewer of them have.
        texts : Texts, optional
            What features, levels and results are called.
        height : int
            The height in the cell, in pixels.

        Returns
        -------
        ExplorerWidget
            Its `person`, `request` and `saved` follow the page, and the page follows them; `result` has the answers.

        Examples
        --------
        >>> from dicoflex.examples import EXAMPLES, rows_like
        >>> explainer = load(EXAMPLES[2])
        >>> explainer.explore(rows_like(explainer.schema_, 20), target="yes")
        ExplorerWidget(20 people, person='')
        """
        from dicoflex.widget import ExplorerWidget

        return ExplorerWidget(self._fitted, as_pandas(rows), target=target, texts=texts, height=height)

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; `load` reads it back with the same draws for the same seed."""
        self._fitted.save(path)


def load(
    path: str | os.PathLike[str],
    *,
    trust: str | os.PathLike[str] | bytes | None = None,
    row_key: bytes | str | None = None,
) -> Explainer:
    """The explainer that a model file holds, ready to answer.

    row_key: the `row_key_` of the explainer that was fitted with `remember_rows`, for `novel=True`.

    A file that is cut short, altered, or no model file at all is a `ModelFileError`; no code from it is run.

    trust: a public key, as a PEM file or its bytes. A file that was not signed with the private one is then refused
    before anything in it is read; without a key, a file is as good as where it came from.
    """
    model = Model.load(path, trust=trust)
    return Explainer(model if row_key is None else model.opened(row_key))
