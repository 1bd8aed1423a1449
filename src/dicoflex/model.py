"""What was learned: all that a model file holds, and all that an answer needs."""

from __future__ import annotations

__all__ = ["BANDS", "CONFIDENCE_ARRAYS", "EXACT", "SAFE", "Confidence", "Model", "classes_of"]

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dicoflex import model_file, surrogate
from dicoflex._types import Arrays, Floats
from dicoflex.certificate import SURVIVES, Certificate, Survival
from dicoflex.coherence import Coherence
from dicoflex.errors import ConfidenceError, ModelFileError, SettingError, UserError, named
from dicoflex.generators import GENERATORS
from dicoflex.generators.base import Generator
from dicoflex.model_file.taking import refuse, refuse_others, taken
from dicoflex.refinement.judges import Judges
from dicoflex.score import Score
from dicoflex.signatures import Key
from dicoflex.surrogate import Surrogate
from dicoflex.table.encoding import Encoding
from dicoflex.table.marginals import Marginals
from dicoflex.table.plain_rows import PlainRows
from dicoflex.table.remembered import Remembered, read_key
from dicoflex.table.schema import Schema
from dicoflex.table.unseen import places_for_unseen
from dicoflex.targets import Interval
from dicoflex.values import plain

MOST_CHARACTERS = 2**20
MOST_EXPONENTS = 1000
EXACT = "exact"
"""What `report["surrogate"]` says where the surrogate is a copy of the black box itself."""
# The names that files have for the fields of `Confidence`.
JUST, SAFE = "just", "safe"
CONFIDENCE_ARRAYS = {"lowest": "lowest", "highest": "highest", "default": "usual"}


@dataclass(frozen=True)
class Confidence:
    """How sure the model should be of an answer, per class: the range that was trained, and the default, "safe"."""

    lowest: Floats
    highest: Floats
    default: Floats

    @classmethod
    def from_arrays(cls, n_classes: int, arrays: Arrays) -> Confidence:
        """What a file says of confidences; refused where they are no shares, or out of order."""
        found = {k: taken(arrays, name, np.float64, (n_classes,)) for k, name in CONFIDENCE_ARRAYS.items()}
        refuse_others(arrays, CONFIDENCE_ARRAYS.values())
        low, high, usual = found["lowest"], found["highest"], found["default"]
        if not ((low >= 0) & (low <= usual) & (usual <= high) & (high <= 1)).all():
            refuse("usual", "is not between the lowest and the highest confidence, or those not between 0 and 1")
        return cls(**found)

    @classmethod
    def same(cls, n_classes: int, value: float = 0.0) -> Confidence:
        """One confidence for all: where the black box gave labels alone."""
        all_ = np.full(n_classes, value)
        return cls(all_, all_, all_)


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds; it answers without an estimator around it.

    encoding: the table's features and how frames become values. classes: the sorted labels. generator: the density.
    surrogate: the small copy of the black box. confidence: what can be asked for, per class. exponents: the trained p.
    has_confidence: whether a confidence can be asked for. report: what `fit` found out, ready for JSON. remembered: the
    training rows as keyed hashes, where `fit` was asked to remember them. coherence, certificate: what goes together in
    the table and what held-out rows taught, where answers are to be refined. survival: how many retrained models would
    accept answers, where that was estimated. marginals: how many rows have what,
    feature by feature, where that may be told. score: how scores are spread, where the black box gives those; there are
    no classes then, and questions are asked of what `answers.aiming` makes of the model for an interval.
    """

    encoding: Encoding
    classes: NDArray[Any]
    generator: Generator
    surrogate: Surrogate
    confidence: Confidence
    exponents: tuple[float, ...]
    has_confidence: bool
    report: dict[str, Any]
    remembered: Remembered | None = None
    coherence: Coherence | None = None
    certificate: Certificate | None = None
    marginals: Marginals | None = None
    survival: Survival | None = None
    score: Score | None = None

    @property
    def schema(self) -> Schema:
        """The features of the training rows."""
        return self.encoding.schema

    @property
    def threshold(self) -> float | None:
        """The probability from which on the second of two labels is given; None where the likelier one is."""
        found: float | None = self.report.get("threshold")
        return found

    @cached_property
    def labels(self) -> list[Any]:
        """The classes as plain values."""
        return [plain(label) for label in self.classes]

    @property
    def example_target(self) -> Any:
        """Something that the model can be asked for: its last label, or a score above the middle."""
        if self.score is None:
            return self.labels[-1]
        return Interval(at_least=float(f"{self.score.score(np.array([0.6]))[0]:.4g}"))

    @cached_property
    def aims(self) -> dict[Any, Model]:
        """What a model of scores was made into for the intervals asked for last."""
        return {}

    @cached_property
    def plain_rows(self) -> PlainRows:
        """What reads and writes rows of plain cells."""
        return PlainRows(self.encoding)

    @cached_property
    def places_for_unseen(self) -> NDArray[np.float64]:
        """What stands in the place of values that training never had, feature by feature."""
        return places_for_unseen(self.encoding, self.marginals)

    @cached_property
    def judges(self) -> Judges:
        """All that judges a row, laid out for the refinement."""
        assert self.coherence is not None
        return Judges.of(self.encoding, self.surrogate, self.coherence)

    @cached_property
    def lenient_judges(self) -> Judges:
        """The same for questions to which anything may be an answer: nothing has to go together."""
        assert self.coherence is not None
        return Judges.of(self.encoding, self.surrogate, self.coherence.allowing_all())

    @cached_property
    def fingerprint(self) -> str:
        """A name for exactly this model: the checksum of its file's content."""
        return model_file.fingerprint(*self.content())

    def with_facts(self, **facts: Any) -> Model:
        """The same model with more to report, and so another name."""
        return replace(self, report=self.report | facts)

    def level(self, name: str) -> Floats:
        """The confidence per class that a named level stands for.

        Parameters
        ----------
        name : {"just", "safe", "sure"}
            The decision and no more, or the least confidence at which 85 % or 95 % of retrained models would accept.

        Raises
        ------
        ConfidenceError
            For "sure", where survival was not estimated.
        """
        if name == JUST:
            return self.confidence.lowest
        if name == SAFE:
            return self.confidence.default
        if self.survival is None:
            raise ConfidenceError(
                f"confidence {name!r} needs an estimate of how many retrained models accept an answer, and this model "
                "has none; fit with probabilities (model= or predict_proba=), or give a number"
            )
        found: Floats = np.clip(self.survival.least(SURVIVES[name]), self.confidence.default, self.confidence.highest)
        return found

    def levels(self, label: int) -> dict[str, dict[str, float]]:
        """By named level its confidence for a class, and where known the survival and the distance of answers there."""
        if not self.has_confidence:
            return {}
        names = (JUST, *SURVIVES) if self.survival is not None else (JUST, SAFE)
        found = {name: {"confidence": round(float(self.level(name)[label]), 4)} for name in names}
        if self.survival is not None:
            for one in found.values():
                one["survival"] = round(float(self.survival.share_at(label, one["confidence"])), 4)
                one["distance"] = round(self.survival.distance_at(label, one["confidence"]), 4)
        return found

    def least_sure(self) -> Model:
        """The same model, which asks by default for answers as near to the boundary as it was trained for."""
        return replace(self, confidence=replace(self.confidence, default=self.confidence.lowest))

    def opened(self, row_key: bytes | str) -> Model:
        """The same model with the key of its remembered rows at hand, so that it can be asked for novel rows."""
        if self.remembered is None:
            raise SettingError("row_key is given, and this model remembers no rows; leave it out")
        opened = replace(self, remembered=self.remembered.opened(read_key(row_key)))
        opened.__dict__["fingerprint"] = self.fingerprint
        return opened

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds what the model's file holds: no memory of torch's or of kernels goes along."""
        return type(self).from_content, self.content()

    # -- files --------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        model_file.write(path, *self.content())

    def content(self) -> tuple[dict[str, Any], Arrays]:
        """The header and the arrays of the model's file."""
        header = {
            "generator": self.generator.name,
            "generator_config": self.generator.config.model_dump(mode="json"),
            "encoding": self.encoding.state(),
            "classes": self.labels,
            "exponents": list(self.exponents),
            "has_confidence": self.has_confidence,
            "surrogate": self.surrogate.kind,
            "report": self.report,
            "row_key_mark": None if self.remembered is None else self.remembered.mark,
        }
        arrays = {f"generator.{k}": v for k, v in self.generator.state().items()}
        arrays |= {f"surrogate.{k}": v for k, v in self.surrogate.arrays().items()}
        arrays |= {f"confidence.{theirs}": getattr(self.confidence, ours) for ours, theirs in CONFIDENCE_ARRAYS.items()}
        if self.remembered is not None:
            arrays["remembered"] = self.remembered.hashes
        if self.score is not None:
            arrays |= {f"score.{k}": v for k, v in self.score.arrays().items()}
        if self.marginals is not None:
            arrays |= {f"marginals.{k}": v for k, v in self.marginals.arrays().items()}
        if self.survival is not None:
            arrays |= {f"survival.{k}": v for k, v in self.survival.arrays().items()}
        if self.coherence is not None and self.certificate is not None:
            header |= {"dependencies": self.coherence.facts(), "judge": self.certificate.judge}
            arrays |= {f"coherence.{k}": v for k, v in self.coherence.arrays().items()}
            arrays |= {f"certificate.{k}": v for k, v in self.certificate.arrays().items()}
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, trust: Key | None = None) -> Self:
        """The model that a file holds; one that is damaged, altered or no model file is a `ModelFileError`.

        trust: a public key (a PEM file or its bytes); a file that was not signed with its private one is refused.
        """
        header, arrays = model_file.read(path, trust=trust)
        try:
            model = cls.from_content(header, arrays)
        except Exception as error:
            # Whatever a stranger wrote into the file, the caller's remedy is the same; the cause is kept for us.
            why = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}; save it again"
            raise ModelFileError(f"{path} holds no model that can be used: {why}") from error
        # It was checked while reading; to take it again would hash all arrays twice.
        model.__dict__["fingerprint"] = header["fingerprint"]
        return model

    @classmethod
    def from_content(cls, header: dict[str, Any], arrays: Arrays) -> Self:
        """The model whose file has this header and these arrays; each part is checked before it is made."""
        encoding = Encoding.from_state(header["encoding"])
        score = _score(_under("score", arrays))
        names = _labels(header["classes"], scored=score is not None)
        kind = _generator(header["generator"])
        sizes = Sizes.of(len(names)) if score is None else SCORED
        config = kind.Config.model_validate_json(json.dumps(header["generator_config"]), strict=True)
        return cls(
            encoding=encoding,
            classes=classes_of(names),
            generator=kind.restore(encoding, sizes.told, config, _under("generator", arrays)),
            surrogate=surrogate.restore(header["surrogate"], encoding, sizes.said, _under("surrogate", arrays)),
            confidence=Confidence.from_arrays(sizes.asked, _under("confidence", arrays)),
            exponents=_exponents(header["exponents"]),
            has_confidence=_of_type(header, "has_confidence", bool),
            report=_report(_of_type(header, "report", dict)),
            remembered=_remembered(header["row_key_mark"], arrays),
            marginals=_marginals(encoding.schema, _under("marginals", arrays)),
            survival=_survival(sizes.asked, _under("survival", arrays)),
            score=score,
            **_refinement(encoding.schema, sizes, header, arrays),
        )


class Sizes(NamedTuple):
    """How many there are: numbers that tell the density a target, outputs of the surrogate, targets that a confidence
    can be asked of, and classes that are told apart in what is usual."""

    told: int
    said: int
    asked: int
    usual: int

    @classmethod
    def of(cls, n_classes: int) -> Sizes:
        """All as many as there are classes."""
        return cls(n_classes, n_classes, n_classes, n_classes)


BANDS = 10
"""Of how many classes, by rank, a model of scores tells apart what is usual."""
SCORED = Sizes(Score.CODE, 1, 1, BANDS)


def _refinement(schema: Schema, sizes: Sizes, header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """What answers are refined by, where a file has it."""
    if "dependencies" not in header:
        return {}
    return {
        "coherence": Coherence.restore(schema, sizes.usual, header["dependencies"], _under("coherence", arrays)),
        "certificate": Certificate.restore(sizes.asked, header["judge"], _under("certificate", arrays)),
    }


def classes_of(names: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array that keeps their types."""
    # Texts in an array of their own kind all take the room of the longest.
    room = len(names) * max((len(name) for name in names if isinstance(name, str)), default=0)
    alike = len({type(name) for name in names}) == 1 and room <= MOST_CHARACTERS
    return np.asarray(names, dtype=None if alike else object)


# -- reading a header --------------------------------------------------------------------------------------------


def _of_type(header: dict[str, Any], name: str, kind: type) -> Any:
    if type(header[name]) is not kind:
        raise ModelFileError(f"the model file's {name!r} is no {kind.__name__}; save the model again")
    return header[name]


def _score(arrays: Arrays) -> Score | None:
    """How scores are spread, where the file's model is one of scores."""
    return Score.restore(arrays) if arrays else None


def _labels(names: Any, *, scored: bool) -> list[Any]:
    if scored and names == []:
        return []
    plain_ones = isinstance(names, list) and all(isinstance(name, str | bool | int | float) for name in names)
    if scored or not plain_ones or len(names) < 2 or len(set(names)) < len(names):
        raise ModelFileError("the model file's classes are no list of different labels; save the model again")
    return list(names)


def _generator(name: Any) -> type[Generator]:
    if not isinstance(name, str) or name not in GENERATORS:
        raise ModelFileError(f"the model file's {named('generator', str(name), GENERATORS)}")
    return GENERATORS[name]


def _exponents(numbers: Any) -> tuple[float, ...]:
    fine = isinstance(numbers, list) and 0 < len(numbers) <= MOST_EXPONENTS
    if not fine or not all(type(p) in (int, float) and 0 < p < math.inf for p in numbers):
        raise ModelFileError("the model file's exponents are no list of numbers above 0; save the model again")
    return tuple(float(p) for p in numbers)


def _report(found: dict[str, Any]) -> dict[str, Any]:
    """What `fit` reported; the label column's name and the count of rows that may be told of are looked for later."""
    if not isinstance(found.get("label"), str | int | None):
        raise ModelFileError("the model file's report names a label column that is no name; save the model again")
    threshold = found.get("threshold")
    if threshold is not None and not (type(threshold) is float and 0 < threshold < 1):
        raise ModelFileError("the model file's report has a threshold that is no share; save the model again")
    count = found.get("min_count", 1)
    if type(count) is not int or count < 1:
        raise ModelFileError("the model file's report has a min_count that is no count; save the model again")
    return dict(found)


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(f"{prefix}."): v for k, v in arrays.items() if k.startswith(f"{prefix}.")}


def _marginals(schema: Schema, arrays: Arrays) -> Marginals | None:
    """How many rows have what, where a file says so."""
    return Marginals.restore(schema, arrays) if arrays else None


def _survival(n_classes: int, arrays: Arrays) -> Survival | None:
    """How many retrained models would accept answers, where a file says so."""
    return Survival.restore(n_classes, arrays) if arrays else None


def _remembered(mark: Any, arrays: Arrays) -> Remembered | None:
    """The remembered rows of a file, locked, and None where it has none."""
    if mark is None and "remembered" not in arrays:
        return None
    hashes = taken(arrays, "remembered", np.uint64, (None,))
    if (hashes[1:] < hashes[:-1]).any():
        refuse("remembered", "is not sorted")
    if not isinstance(mark, str):
        raise ModelFileError("the model file's remembered rows have no mark of their key; save the model again")
    return Remembered(hashes, mark)
