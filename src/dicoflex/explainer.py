"""DiCoFlex: fit on rows and the labels that a classifier gave them, then answer what would have to be different."""

from __future__ import annotations

__all__ = ["DiCoFlex", "load"]

import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator

from dicoflex import model_file
from dicoflex.answers import query as asking
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.answers.draws import Draws, Terms, draw
from dicoflex.answers.query import Query
from dicoflex.answers.selection import select
from dicoflex.constraints import Constraints
from dicoflex.errors import BlackBoxError, DataError, ModelFileError, NotFittedError, QueryError, SettingError, named
from dicoflex.generators import GENERATORS, get
from dicoflex.generators.base import Context, GeneratorConfig, Table
from dicoflex.learning.black_box import BlackBox, check_labels
from dicoflex.learning.config import FitConfig
from dicoflex.learning.judged import fit_judged
from dicoflex.learning.pairs import Conditions
from dicoflex.learning.plain import fit_plain
from dicoflex.learning.stand_in import Surrogate
from dicoflex.learning.stand_in import restore as restore_surrogate
from dicoflex.learning.steps import Fitted, Setting
from dicoflex.learning.training import TrainingConfig, pick_device
from dicoflex.limits.limits import Limits
from dicoflex.runtime.progress import Progress
from dicoflex.runtime.randomness import row_keys
from dicoflex.table.encoding import Encoding, Kept, Values
from dicoflex.table.inference import check_frame
from dicoflex.table.schema import Schema
from dicoflex.table.survey import take_rows
from dicoflex.values import is_number, plain

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CANDIDATES = 100
CHECK_ROUNDS = 5
UNLIKELY = 0.05
BLAMED = 64


class DiCoFlex(BaseEstimator):
    """Several plausible, close, different rows that the classifier would accept, under conditions set when asking.

    generator: the density to learn: "mixed" (default), or the paper's "maf", "nice", "realnvp", "kde".
    schema: what the columns are; inferred from the rows when None.
    exponents, k, alpha: p values to train for, neighbours per row (None: 16 as in the paper; 24 for "mixed"), and the
    weight of frozen features in the distance.
    masks: lists of features that are frozen together in training; None trains for any subset.
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
        self.generator_config = generator_config
        self.training = training
        self.fit_config = fit_config
        self.max_seconds = max_seconds
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """The paper's settings: MAF of 5 layers and 32 hidden features, K = 16, alpha = 10, Adam at 1e-4.

        Up to 1000 epochs, stopping after 300 without a better held-out likelihood.

        >>> DiCoFlex.paper(max_seconds=600).generator
        'maf'
        """
        settings: dict[str, Any] = {"generator": "maf", "k": 16, "alpha": 10.0, "training": PAPER_TRAINING}
        return cls(**(settings | overrides))

    # -- learning -----------------------------------------------------------------------------------------------

    def fit(
        self,
        X: pd.DataFrame,
        y: Any,
        *,
        predict_proba: Callable[[pd.DataFrame], Any] | None = None,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Learn from rows and the labels that the black box gave them; returns the explainer itself.

        predict_proba: the black box's probabilities for a frame like X, used during `fit` only. Its columns follow
        the sorted labels of `y`, or `classes`.

        A table of more than `FitConfig.most_rows` rows is sampled by class; `report_` says how many `rows` there were
        and how many were used, `rows_used`.
        """
        started = time.monotonic()
        check_frame(X)
        labels, names = _labels(y, len(X))
        setting = self._settings()
        seed, device = _seed(self.random_state), pick_device(self.device)
        schema = self._schema(X)
        rows = take_rows(X, schema, labels, most=setting.fit.most_rows, seed=seed)
        encoding, values, labels = rows.encoding, rows.values, rows.labels
        masks = self._mask_set(schema)
        black_box = _black_box(predict_proba, classes, names, encoding)
        probabilities = None if black_box is None else _checked(black_box, values, labels, names)
        confidence = None if probabilities is None else probabilities[np.arange(len(labels)), labels]
        fitted = self._fit(
            Setting(
                table=Table(encoding, values, labels, len(names), confidence),
                generator=get(self.generator),
                generator_config=setting.generator,
                config=setting.fit,
                training=setting.training,
                masks=masks,
                seed=seed,
                device=device,
                progress=Progress(self.verbose),
            ),
            black_box,
            probabilities,
        )
        facts = {
            **fitted.facts,
            "rows": len(X),
            "rows_used": len(values),
            "seconds": round(time.monotonic() - started, 2),
            "black_box_calls": 0 if black_box is None else black_box.calls,
            "black_box_rows": 0 if black_box is None else black_box.rows,
            "training_ended": fitted.histories[0].stopped,
            "held_out_loss": _finite(fitted.histories[-1].best),
        }
        self._keep(encoding, names, fitted, setting, facts, rows.known, black_box is not None)
        return self

    def _fit(self, setting: Setting, black_box: BlackBox | None, probabilities: Floats | None) -> Fitted:
        if self.generator == "mixed":
            return fit_judged(setting, black_box, probabilities)
        return fit_plain(setting)

    def _keep(
        self,
        encoding: Encoding,
        names: list[Any],
        fitted: Fitted,
        setting: _Settings,
        facts: dict[str, Any],
        known: NDArray[np.uint64],
        judged: bool,
    ) -> None:
        """Store what was learned, under names that end in an underscore."""
        self.encoding_ = encoding
        self.schema_ = encoding.schema
        self.classes_ = np.asarray(names, dtype=None if len({type(n) for n in names}) == 1 else object)
        self.generator_ = fitted.generator
        self.surrogate_: Surrogate = fitted.surrogate
        self.conditions_ = fitted.conditions
        self.history_ = [{"stage": i, **e} for i, h in enumerate(fitted.histories) for e in h.epochs]
        self.known_ = known
        self.has_confidence_ = judged and fitted.generator.name == "mixed"
        self.report_ = facts | {"confidence": self._confidences()}
        self.n_features_in_ = len(encoding.schema)
        self.feature_names_in_ = np.asarray(encoding.schema.names, dtype=object)
        self.exponents_ = setting.fit.exponents
        self.fingerprint_ = model_file.fingerprint(*self._content())

    def _confidences(self) -> dict[str, dict[str, float]]:
        if not self.has_confidence_:
            return {}
        rows = zip(self.classes_, self.conditions_.usual, self.conditions_.highest, strict=True)
        return {str(label): {"default": round(float(u), 4), "highest": round(float(h), 4)} for label, u, h in rows}

    def _settings(self) -> _Settings:
        """The settings of all parts, checked."""
        kind = get(self.generator)
        shared = {"exponents": _exponents(self.exponents), "alpha": self.alpha}
        shared |= {} if self.k is None else {"k": self.k}
        given = self.fit_config
        if isinstance(given, FitConfig):
            given = given.model_dump(exclude_unset=True)
        fit = _as(FitConfig, given, FIT_DEFAULTS.get(self.generator, {}) | shared)
        fit = fit.model_copy(update={"exponents": _exponents(fit.exponents)})
        training = _as(TrainingConfig, self.training, DEFAULT_TRAINING if self.generator == "mixed" else PAPER_TRAINING)
        if self.max_seconds is not None:
            training = _as(TrainingConfig, {"max_seconds": self.max_seconds}, training.model_dump())
        config = _as(kind.Config, self.generator_config, {})
        # What a density shares with the making of its pairs is said once.
        shared_fields = {"exponents", "k", "alpha"} & set(kind.Config.model_fields)
        config = config.model_copy(update={name: getattr(fit, name) for name in shared_fields})
        return _Settings(config, training, fit)

    def _schema(self, X: pd.DataFrame) -> Schema:
        if self.schema is None:
            return Schema.infer(X)
        if not isinstance(self.schema, Schema):
            raise SettingError(f"schema must be a Schema, got {type(self.schema).__name__}; make one with Schema.infer")
        return self.schema

    def _mask_set(self, schema: Schema) -> NDArray[np.bool_] | None:
        if self.masks is None:
            return None
        if len(self.masks) == 0:
            raise SettingError("masks is empty; give lists of features, or None for any subset")
        return np.stack([_mask(schema, mask) for mask in self.masks])

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
        random_state: int | None = None,
    ) -> Counterfactuals:
        """Up to `n` counterfactuals for every row: different from each other, close, and likely.

        target: a label, one label per row, or None for the other class of two. p: how few features should change, any
        value in the trained range (small: few); None is 2, or the least trained one under `max_changes`. frozen:
        features that may not change. constraints: what else an answer must obey; those of the schema bind too.
        confidence: how sure the black box should be. check: a callable that labels rows; only rows that it gives the
        target are returned, drawing up to five rounds. novel: no exact copy of a training row. Rows that got fewer than
        `n` are in `.shortfall`, with the reason.
        """
        query = self._query(rows, target, n, p, frozen, constraints, confidence, check, random_state)
        able = query.able(refuse=query.is_hopeless)
        terms = self._terms(query, filtered=True, novel=novel)
        draws = self._draw(query, able, n, terms)
        verdicts = np.full(len(draws.values), np.nan)
        refused = np.zeros(len(query.frame), dtype=np.int64)
        if check is not None:
            draws, verdicts, refused = self._confirm(query, draws, terms, check, n)
        chosen = self._choose(query, draws, n)
        return self._result(query, draws.take(chosen), verdicts[chosen], refused, novel)

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
        query = self._query(rows, target, n, p, frozen, constraints, confidence, None, random_state)
        query.able(refuse=True)
        terms = self._terms(query, filtered=filter, novel=novel)
        draws = draw(self.generator_, self.encoding_, query.context, query.keys, n, terms)
        without = np.flatnonzero(np.bincount(draws.query, minlength=len(query.frame)) == 0)
        if len(without):
            raise QueryError(self._why_none(query, int(without[0]), novel))
        return self._frame(query, draws)

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
        query = self._query(rows, target, 1, p, frozen, None, confidence, None, 0)
        answers = self.encoding_.encode(counterfactuals)
        context = query.context
        if len(context) == 1:
            context = context.repeat(len(answers))
        if len(context) != len(answers):
            raise QueryError(
                f"rows has {len(context)} entries and counterfactuals {len(answers)}; give as many, or one row"
            )
        return self.generator_.log_prob(context, answers)

    def _query(
        self,
        rows: pd.DataFrame,
        target: Any,
        n: int,
        p: float | None,
        frozen: Iterable[Any],
        constraints: Constraints | Mapping[str, Any] | None,
        confidence: float | None,
        check: Callable[[pd.DataFrame], Any] | None,
        random_state: int | None,
    ) -> Query:
        """Everything about a call, checked before any work starts."""
        self._check_fitted()
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise QueryError(f"n must be a whole number of at least 1, got {n!r}")
        if check is not None and not callable(check):
            raise BlackBoxError(f"check must be a callable, got {type(check).__name__}; pass clf.predict")
        wish = asking.wish(self.schema_, frozen, constraints)
        p = asking.exponent(p, self.exponents_, sparse=wish.max_changes is not None)
        seed = _seed(random_state)
        self.encoding_.check_columns(rows)
        if len(rows) == 0:
            raise QueryError("rows is empty; give at least one row to explain")
        frame, values = self.encoding_.conform(rows)
        mask = np.tile(self.schema_.mask(list(wish.frozen)), (len(rows), 1))
        self._check_changeable(mask[0])
        limits = Limits.build(wish, self.encoding_, values, mask) if asking.limited(wish) else None
        targets = self._targets(target, frame, values, check)
        sure = self._confidence(confidence, targets)
        context = Context(values, targets, np.full(len(rows), p), mask if limits is None else limits.frozen, sure)
        settings = {
            "n": int(n), "p": p, "frozen": list(wish.frozen), "constraints": wish.model_dump(mode="json"),
            "confidence": confidence, "random_state": seed,
        }  # fmt: skip
        return Query(frame, context, row_keys(values, seed), settings, wish, limits)

    def _draw(self, query: Query, which: Ints, n: int, terms: Terms, again: int = 0) -> Draws:
        """Distinct, undoubted draws to choose `n` from, for the queries `which`; `again` counts the calls for them."""
        keys = query.keys[which] + np.uint64(again)
        context = query.context.take(which)
        most, enough = max(CANDIDATES, 4 * n), max(CANDIDATES // 2, 4 * n)
        return draw(
            self.generator_, self.encoding_, context, keys, most, terms.take(which), enough=enough
        ).of(which)  # fmt: skip

    def _why_none(self, query: Query, i: int, novel: bool) -> str:
        row = f"row {query.label(i)}"
        if query.limits is not None:
            blamed = self._hardest(query, np.array([i])).get(i, "none")
            return f"{row}: no draw obeys the constraints; the hardest: {blamed}"
        return (
            f"{row}: every draw equals the row itself{' or a training row' if novel else ''}; "
            f"free a feature{' or leave novel out' if novel else ''}"
        )

    def _hardest(self, query: Query, which: Ints) -> dict[int, str]:
        """For each query in `which`, the constraint that most of the draws break which nothing but frozen binds."""
        mask = np.tile(self.schema_.mask(list(query.wish.frozen)), (len(which), 1))
        context = replace(query.context.take(which), frozen=mask)
        values, _ = self.generator_.sample(context, BLAMED, query.keys[which], 0)
        rows = self.encoding_.snap(values.reshape(len(which) * BLAMED, -1))
        return asking.hardest(query, which, rows)

    def _check_fitted(self) -> None:
        if not hasattr(self, "generator_"):
            raise NotFittedError("this DiCoFlex is not fitted yet; call .fit(X, y), or load() a model file")

    def _check_changeable(self, frozen: NDArray[np.bool_]) -> None:
        constant = np.array(
            [f.minimum == f.maximum and not f.missing if f.is_number else f.n_states < 2 for f in self.schema_.features]
        )
        if (frozen | constant).all():
            raise QueryError("nothing may change: every feature is frozen or constant; free at least one")

    def _targets(
        self, target: Any, frame: pd.DataFrame, values: Values, check: Callable[[pd.DataFrame], Any] | None
    ) -> Ints:
        known = {label: i for i, label in enumerate(self.classes_.tolist())}
        if target is None:
            if len(known) != 2:
                raise QueryError(f"target is needed with {len(known)} classes; choose from {list(known)}")
            if check is not None:
                now = np.array([known[label] for label in check_labels(check, frame, list(known))], dtype=np.int64)
            else:
                now = self.surrogate_.probabilities(values).argmax(axis=1)
            return 1 - now
        wanted = [target] * len(frame) if np.isscalar(target) else list(np.asarray(target, dtype=object).ravel())
        if len(wanted) != len(frame):
            raise QueryError(f"target has {len(wanted)} labels for {len(frame)} rows; give one, or one per row")
        for label in wanted:
            if not isinstance(label, Hashable) or label not in known:
                raise QueryError(named("target", label, known))
        return np.array([known[label] for label in wanted], dtype=np.int64)

    def _confidence(self, confidence: float | None, targets: Ints) -> Floats:
        conditions = self.conditions_
        if confidence is None:
            usual: Floats = conditions.usual[targets]
            return usual
        if not self.has_confidence_:
            raise QueryError(
                "confidence needs a model that was fitted with the default generator and predict_proba=; "
                "fit(X, y, predict_proba=clf.predict_proba), or leave confidence out"
            )
        if not is_number(confidence) or not 0 <= confidence <= 1:
            raise QueryError(f"confidence must lie between 0 and 1, got {confidence!r}")
        for label in np.unique(targets):
            highest = float(conditions.highest[label])
            if confidence > highest + 1e-9:
                raise QueryError(
                    f"confidence {confidence:g} is more than the training rows of {plain(self.classes_[label])!r} "
                    f"support; the highest is {np.floor(highest * 1e4) / 1e4:g}"
                )
        return np.full(len(targets), float(confidence))

    def _terms(self, query: Query, *, filtered: bool, novel: bool) -> Terms:
        floor = query.context.confidence
        if not self.has_confidence_:
            floor = np.maximum(floor, 0.5)
        return Terms(
            doubt=self._doubt if filtered else None,
            floor=floor,
            unlikely=UNLIKELY if filtered else 0.0,
            known=self.known_ if novel else None,
            limits=query.limits,
            scored=filtered,
        )

    def _doubt(self, values: Values, targets: Ints, each: int) -> Floats:
        return self.surrogate_.probabilities(values, each=each)[np.arange(len(values)), targets]

    def _confirm(
        self,
        query: Query,
        draws: Draws,
        terms: Terms,
        check: Callable[[pd.DataFrame], Any],
        n: int,
    ) -> tuple[Draws, Floats, Ints]:
        """Draws that `check` confirms; queries that are short get further rounds with fresh keys."""
        kept, refused = [], np.zeros(len(query.frame), dtype=np.int64)
        for round_number in range(CHECK_ROUNDS):
            shown = self._frame(query, draws).reset_index(drop=True)
            labels = check_labels(check, shown, self.classes_.tolist())
            wanted = np.asarray(self.classes_.astype(object)[query.context.target[draws.query]])
            good = labels == wanted
            np.add.at(refused, draws.query[~good], 1)
            kept.append(draws.take(np.flatnonzero(good)))
            have = np.bincount(np.concatenate([k.query for k in kept]), minlength=len(query.frame))
            short = np.flatnonzero((have < n) & query.feasible)
            if len(short) == 0 or round_number == CHECK_ROUNDS - 1:
                break
            draws = self._draw(query, short, n, terms, round_number + 1)
        everything = Draws.join(kept).without_repeats()
        return everything, np.ones(len(everything.values)), refused

    def _choose(self, query: Query, draws: Draws, n: int) -> Ints:
        chosen = []
        order = np.argsort(draws.query, kind="stable")
        edges = np.searchsorted(draws.query[order], np.arange(len(query.frame) + 1))
        for i in range(len(query.frame)):
            mine = order[edges[i] : edges[i + 1]]
            own, candidates = query.context.query[i], draws.values[mine]
            effort = query.cost(candidates, own)
            best = select(self.encoding_, own, candidates, draws.log_density[mine], n, effort=effort)
            chosen.append(mine[best])
        return np.concatenate(chosen)

    def _frame(self, query: Query, draws: Draws) -> pd.DataFrame:
        """The draws as a frame; frozen values and kept numbers are the rows' own, bit for bit, whatever the limits."""
        own = query.context.query
        same = ~self.encoding_.differs(draws.values, own[draws.query])
        # A level's code is all that there is to it, but a frozen one is still the row's own object.
        frozen = self.schema_.mask(query.settings["frozen"])
        same &= (frozen | ~self.encoding_.is_exact(own))[draws.query]
        index = asking.index_of(query.frame.index, draws.query)
        return self.encoding_.decode(draws.values, index, kept=Kept(query.frame, draws.query, same))

    def _result(self, query: Query, draws: Draws, verdicts: Floats, refused: Ints, novel: bool) -> Counterfactuals:
        frame = self._frame(query, draws)
        own = query.context.query[draws.query]
        before, after = self.encoding_.standardise(own), self.encoding_.standardise(draws.values)
        valid = pd.arrays.BooleanArray(verdicts == 1.0, np.isnan(verdicts))
        info = pd.DataFrame(
            {
                "target": self.classes_[query.context.target[draws.query]],
                "log_density": draws.log_density,
                "n_changed": self.encoding_.differs(draws.values, own).sum(axis=1),
                "proximity": np.sqrt(((before - after) ** 2).sum(axis=1)),
                "probability": draws.probability,
                "valid": valid,
            },
            index=frame.index,
        )
        cost = query.cost(draws.values, own)
        if cost is not None:
            info["cost"] = cost
        targets = [plain(label) for label in self.classes_[query.context.target]]
        settings = query.settings | {"targets": targets, "novel": novel, "model": self.fingerprint_}
        return Counterfactuals(
            queries=query.frame,
            frame=frame,
            info=info,
            positions=draws.query,
            shortfall=self._shortfall(query, draws, refused),
            schema=self.schema_,
            settings=settings,
            constraints=query.wish,
            density=self._density(query) if len(self.schema_) == 2 else None,
        )

    def _shortfall(self, query: Query, draws: Draws, refused: Ints) -> pd.DataFrame:
        """Who got fewer than asked for, and why."""
        got = np.bincount(draws.query, minlength=len(query.frame))
        short = np.flatnonzero((got < query.settings["n"]) & query.feasible & (refused == 0))
        blamed = self._hardest(query, short) if query.limits is not None and len(short) else {}
        return asking.shortfall(query, got, refused, blamed, rounds=CHECK_ROUNDS)

    def _density(self, query: Query) -> Callable[[int], Callable[[pd.DataFrame], Floats]]:
        def of(position: int) -> Callable[[pd.DataFrame], Floats]:
            context = query.context.take(slice(position, position + 1))

            def log_density(rows: pd.DataFrame) -> Floats:
                values = self.encoding_.encode(rows)
                return self.generator_.log_prob(context.repeat(len(values)), values)

            return log_density

        return of

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file; `load` reads it back with the same draws for the same seed."""
        self._check_fitted()
        model_file.write(path, *self._content())

    def _content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        conditions = self.conditions_
        header = {
            "generator": self.generator_.name,
            "generator_config": self.generator_.config.model_dump(mode="json"),
            "encoding": self.encoding_.state(),
            "classes": [plain(label) for label in self.classes_],
            "exponents": list(self.exponents_),
            "has_confidence": self.has_confidence_,
            "stand_in": self.surrogate_.kind,
            "report": self.report_,
        }
        arrays = {f"generator.{k}": v for k, v in self.generator_.state().items()}
        arrays |= {f"stand_in.{k}": v for k, v in self.surrogate_.arrays().items()}
        arrays |= {f"confidence.{k}": getattr(conditions, k) for k in ("lowest", "highest", "usual")}
        arrays["known"] = self.known_
        return header, arrays


def load(path: str | os.PathLike[str]) -> DiCoFlex:
    """The explainer that a model file holds, ready to answer.

    A file that is cut short, altered, or no model file at all is a `ModelFileError`; no code from it is run.
    """
    header, arrays = model_file.read(Path(path))
    try:
        return _restore(header, arrays)
    except ModelFileError:
        raise
    except (KeyError, TypeError, AttributeError, IndexError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"{path}: the header does not describe a model ({error}); save the model again") from None


def _restore(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DiCoFlex:
    encoding = Encoding.from_state(header["encoding"])
    names = header["classes"]
    if header["generator"] not in GENERATORS:
        raise ModelFileError(named("generator", header["generator"], GENERATORS))
    kind = GENERATORS[header["generator"]]
    config = kind.Config(**header["generator_config"])
    model = DiCoFlex(header["generator"], exponents=tuple(header["exponents"]))
    generator = kind.restore(encoding, len(names), config, _under("generator", arrays))
    surrogate = restore_surrogate(header["stand_in"], encoding, len(names), _under("stand_in", arrays))
    sure = _under("confidence", arrays)
    _check_shapes(encoding, len(names), sure, arrays["known"])
    conditions = Conditions(tuple(header["exponents"]), None, sure["lowest"], sure["highest"], sure["usual"])
    settings = _Settings(config, TrainingConfig(), FitConfig(exponents=tuple(header["exponents"])))
    facts = {k: v for k, v in header["report"].items() if k != "confidence"}
    model._keep(
        encoding, names, Fitted(generator, surrogate, conditions, []), settings, facts, arrays["known"],
        header["has_confidence"],
    )  # fmt: skip
    return model


def _check_shapes(encoding: Encoding, n_classes: int, sure: dict[str, NDArray[Any]], known: NDArray[np.uint64]) -> None:
    """Refuse arrays beside the generator's and the stand-in's own that don't fit the header."""
    shapes = {"mean": encoding.mean.shape, "scale": encoding.scale.shape}
    fine = all(shape == (len(encoding.schema),) for shape in shapes.values())
    fine &= all(sure[name].shape == (n_classes,) for name in ("lowest", "highest", "usual"))
    if not fine or known.ndim != 1 or known.dtype != np.uint64:
        raise ModelFileError("the model file's arrays do not fit its header; it is damaged: save the model again")


@dataclass(frozen=True)
class _Settings:
    generator: GeneratorConfig
    training: TrainingConfig
    fit: FitConfig


PAPER_TRAINING = {"epochs": 1000, "batch_size": 1024, "learning_rate": 1e-4, "patience": 300}
DEFAULT_TRAINING = {
    "epochs": 14,
    "batch_size": 1024,
    "learning_rate": 4e-3,
    "schedule": "cosine",
    "patience": 300,
    "weight_decay": 0.2,
    "min_steps": 600,
}
FIT_DEFAULTS: dict[str, dict[str, Any]] = {"mixed": {}}
FIT_DEFAULTS |= {name: {"k": 16, "passes": 8} for name in ("maf", "nice", "realnvp", "kde")}


def _as(kind: Any, given: Any, defaults: dict[str, Any]) -> Any:
    """A config of `kind` from an object, a dict over the defaults, or nothing."""
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, dict):
        raise SettingError(f"settings must be a {kind.__name__} or a dict, got {type(given).__name__}")
    try:
        return kind(**(defaults | (given or {})))
    except ValidationError as error:
        first = error.errors()[0]
    where = ".".join(map(str, first["loc"])) or "settings"
    if first["type"] == "extra_forbidden":
        raise SettingError(f"{kind.__name__}: {named('setting', where, kind.model_fields)}")
    raise SettingError(f"setting {where}: {first['msg']}, got {first['input']!r}")


def _mask(schema: Schema, names: Any) -> NDArray[np.bool_]:
    """One of the masks to train for, as a vector over the features."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise SettingError(f"masks must be lists of features, got {names!r} among them; write masks=[[{names!r}]]")
    known = list(names)
    for name in known:
        if name not in schema.names:
            raise SettingError(f"masks: {named('feature', name, schema.names)}")
    mask = schema.mask(known)
    if mask.all():
        raise SettingError(f"the mask {known} freezes every feature, so nothing could change; leave one out")
    return mask


def _labels(y: Any, n_rows: int) -> tuple[Ints, list[Any]]:
    """Class numbers and the sorted labels."""
    if np.ndim(y) > 1:
        raise DataError(f"y has {np.ndim(y)} dimensions; give one label per row, such as y.iloc[:, 0] or y.ravel()")
    column = pd.Series(y) if not isinstance(y, pd.Series) else y
    if len(column) != n_rows:
        raise DataError(f"y has {len(column)} labels for {n_rows} rows; give one label per row")
    if column.isna().any():
        raise DataError(f"y has {int(column.isna().sum())} missing labels; drop those rows")
    values = [plain(v) for v in column]
    odd = next((v for v in values if not isinstance(v, str | bool | int | float)), None)
    if odd is not None:
        raise DataError(f"y holds a {type(odd).__name__} ({odd!r}); labels may be text, whole numbers or booleans")
    names = sorted(set(values), key=lambda v: (type(v).__name__, v))
    if len(names) < 2:
        raise DataError(f"y has a single class, {names[0]!r}; counterfactuals need at least two")
    if len(names) > max(20, 0.2 * n_rows):
        raise DataError(f"y has {len(names)} different labels in {n_rows} rows; dicoflex explains classes, not numbers")
    lookup = {name: i for i, name in enumerate(names)}
    return np.array([lookup[v] for v in values], dtype=np.int64), names


def _black_box(
    predict_proba: Callable[[pd.DataFrame], Any] | None,
    classes: Sequence[Any] | None,
    names: list[Any],
    encoding: Encoding,
) -> BlackBox | None:
    if predict_proba is None:
        if classes is not None:
            raise SettingError("classes= says what the columns of predict_proba are; give predict_proba too")
        return None
    if not callable(predict_proba):
        raise BlackBoxError(
            f"predict_proba must be a callable, got {type(predict_proba).__name__}; pass clf.predict_proba"
        )
    if classes is None:
        return BlackBox(predict_proba, encoding, len(names))
    columns = [plain(c) for c in classes]
    lacking = [name for name in names if name not in columns]
    if lacking:
        raise SettingError(f"classes= lacks the label {lacking[0]!r} of y; list every column of predict_proba")
    unseen = [column for i, column in enumerate(columns) if column not in names or column in columns[:i]]
    if unseen:
        raise SettingError(
            f"classes= has {unseen[0]!r} twice, or no row of y has it; fit on rows of every class, each listed once"
        )
    order = [columns.index(name) for name in names]

    def reordered(frame: pd.DataFrame) -> NDArray[np.float64]:
        answer = np.asarray(predict_proba(frame), dtype=np.float64)
        if answer.ndim != 2 or answer.shape[1] != len(columns):
            raise BlackBoxError(f"predict_proba gave shape {answer.shape}, but classes= names {len(columns)} columns")
        picked: NDArray[np.float64] = answer[:, order]
        return picked

    return BlackBox(reordered, encoding, len(names))


def _checked(black_box: BlackBox, values: Values, labels: Ints, names: list[Any]) -> Floats:
    """The black box's answers for the training rows; refused where they contradict the labels."""
    answers = black_box.probabilities(values)
    agree = float(np.mean(answers.argmax(axis=1) == labels))
    if agree < 0.5:
        raise BlackBoxError(
            f"predict_proba agrees with y on only {agree:.0%} of the rows: its columns are probably in another order "
            f"than {names}; pass classes=clf.classes_, and labels that the black box itself gave"
        )
    return answers


def _exponents(exponents: Any) -> tuple[float, ...]:
    try:
        values = tuple(sorted(float(p) for p in exponents))
    except (TypeError, ValueError):
        raise SettingError(f"exponents must be numbers above 0, got {exponents!r}") from None
    if not values or not all(0 < p < np.inf for p in values) or len(set(values)) != len(values):
        raise SettingError(f"exponents must be different numbers above 0, got {exponents!r}")
    return values


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] % 2**63)
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer) or random_state < 0:
        raise SettingError(f"random_state must be a whole number of at least 0 or None, got {random_state!r}")
    return int(random_state)


def _finite(loss: float) -> float | None:
    """The loss, or None where there is none: training was stopped before its first epoch ended."""
    return loss if np.isfinite(loss) else None


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {k.removeprefix(f"{prefix}."): v for k, v in arrays.items() if k.startswith(f"{prefix}.")}
