"""What was learned: all that a model file holds, and all that an answer needs."""

from __future__ import annotations

__all__ = ["Confidence", "Model", "classes_of"]

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dicoflex import model_file, stand_in
from dicoflex.certificate import Certificate
from dicoflex.coherence import Coherence
from dicoflex.errors import ModelFileError, SettingError, named
from dicoflex.generators import GENERATORS
from dicoflex.generators.base import Generator
from dicoflex.refinement.judges import Judges
from dicoflex.stand_in import StandIn
from dicoflex.table.encoding import Encoding
from dicoflex.table.remembered import Remembered, read_key
from dicoflex.table.schema import Schema
from dicoflex.values import plain

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
# The names that files have for the fields of `Confidence`.
CONFIDENCE_ARRAYS = {"lowest": "lowest", "highest": "highest", "default": "usual"}


@dataclass(frozen=True)
class Confidence:
    """How sure the black box should be of an answer, per class: the range that was trained, and what is usual."""

    lowest: Floats
    highest: Floats
    default: Floats

    @classmethod
    def same(cls, n_classes: int, value: float = 0.0) -> Confidence:
        """One confidence for all: where the black box gave labels alone."""
        all_ = np.full(n_classes, value)
        return cls(all_, all_, all_)


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds; it answers without an estimator around it.

    encoding: the table's features and how frames become values. classes: the sorted labels. generator: the density.
    stand_in: the small copy of the black box. confidence: what can be asked for, per class. exponents: the trained p.
    has_confidence: whether a confidence can be asked for. report: what `fit` found out, ready for JSON. remembered: the
    training rows as keyed hashes, where `fit` was asked to remember them. coherence, certificate: what goes together in
    the table and what held-out rows taught, where answers are to be refined.
    """

    encoding: Encoding
    classes: NDArray[Any]
    generator: Generator
    stand_in: StandIn
    confidence: Confidence
    exponents: tuple[float, ...]
    has_confidence: bool
    report: dict[str, Any]
    remembered: Remembered | None = None
    coherence: Coherence | None = None
    certificate: Certificate | None = None

    @property
    def schema(self) -> Schema:
        """The features of the training rows."""
        return self.encoding.schema

    @property
    def labels(self) -> list[Any]:
        """The classes as plain values."""
        return [plain(label) for label in self.classes]

    @cached_property
    def judges(self) -> Judges:
        """All that judges a row, laid out for the refinement."""
        assert self.coherence is not None
        return Judges.of(self.encoding, self.stand_in, self.coherence)

    @cached_property
    def fingerprint(self) -> str:
        """A short name for exactly this model."""
        return model_file.fingerprint(*self.content())

    def with_facts(self, **facts: Any) -> Model:
        """The same model with more to report, and so another fingerprint."""
        return replace(self, report=self.report | facts)

    def opened(self, row_key: bytes | str) -> Model:
        """The same model with the key of its remembered rows at hand, so that it can be asked for novel rows."""
        if self.remembered is None:
            raise SettingError("row_key is given, and this model remembers no rows; leave it out")
        opened = replace(self, remembered=self.remembered.opened(read_key(row_key)))
        opened.__dict__["fingerprint"] = self.fingerprint
        return opened

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds what the model's file holds: no memory of torch's or of compiled code goes along."""
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
            "stand_in": self.stand_in.kind,
            "report": self.report,
            "row_key_mark": None if self.remembered is None else self.remembered.mark,
        }
        arrays = {f"generator.{k}": v for k, v in self.generator.state().items()}
        arrays |= {f"stand_in.{k}": v for k, v in self.stand_in.arrays().items()}
        arrays |= {f"confidence.{theirs}": getattr(self.confidence, ours) for ours, theirs in CONFIDENCE_ARRAYS.items()}
        if self.remembered is not None:
            arrays["remembered"] = self.remembered.hashes
        if self.coherence is not None and self.certificate is not None:
            header |= {"dependencies": self.coherence.facts(), "judge": self.certificate.judge}
            arrays |= {f"coherence.{k}": v for k, v in self.coherence.arrays().items()}
            arrays |= {f"certificate.{k}": v for k, v in self.certificate.arrays().items()}
        return header, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model that a file holds; one that is damaged, altered or no model file is a `ModelFileError`."""
        header, arrays = model_file.read(path)
        try:
            model = cls.from_content(header, arrays)
        except ModelFileError:
            raise
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, RuntimeError) as error:
            raise ModelFileError(
                f"{path}: the header does not describe a model ({error}); save the model again"
            ) from None
        # It was checked while reading; to take it again would hash all arrays twice.
        model.__dict__["fingerprint"] = header["fingerprint"]
        return model

    @classmethod
    def from_content(cls, header: dict[str, Any], arrays: Arrays) -> Self:
        """The model whose file has this header and these arrays."""
        encoding = Encoding.from_state(header["encoding"])
        names, exponents = header["classes"], tuple(header["exponents"])
        if not exponents or not all(isinstance(p, int | float) and 0 < p < np.inf for p in exponents):
            raise ModelFileError("the model file's exponents are no numbers above 0; save the model again")
        if header["generator"] not in GENERATORS:
            raise ModelFileError(named("generator", header["generator"], GENERATORS))
        kind = GENERATORS[header["generator"]]
        config = kind.Config(**header["generator_config"])
        confidence = Confidence(**{k: arrays[f"confidence.{name}"] for k, name in CONFIDENCE_ARRAYS.items()})
        _check_shapes(encoding, len(names), confidence)
        return cls(
            encoding=encoding,
            classes=classes_of(names),
            generator=kind.restore(encoding, len(names), config, _under("generator", arrays)),
            stand_in=stand_in.restore(header["stand_in"], encoding, len(names), _under("stand_in", arrays)),
            confidence=confidence,
            exponents=exponents,
            has_confidence=header["has_confidence"],
            report=dict(header["report"]),
            remembered=_remembered(header["row_key_mark"], arrays),
            **_refinement(encoding.schema, len(names), header, arrays),
        )


def _refinement(schema: Schema, n_classes: int, header: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    """What answers are refined by, where a file has it."""
    if "dependencies" not in header:
        return {}
    return {
        "coherence": Coherence.restore(schema, n_classes, header["dependencies"], _under("coherence", arrays)),
        "certificate": Certificate.restore(n_classes, header["judge"], _under("certificate", arrays)),
    }


def classes_of(names: Sequence[Any]) -> NDArray[Any]:
    """Labels as an array that keeps their types."""
    return np.asarray(names, dtype=None if len({type(name) for name in names}) == 1 else object)


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {k.removeprefix(f"{prefix}."): v for k, v in arrays.items() if k.startswith(f"{prefix}.")}


def _remembered(mark: Any, arrays: Arrays) -> Remembered | None:
    """The remembered rows of a file, locked, and None where it has none."""
    if mark is None and "remembered" not in arrays:
        return None
    hashes = arrays["remembered"]
    if not isinstance(mark, str) or hashes.ndim != 1 or hashes.dtype != np.uint64:
        raise ModelFileError("the model file's remembered rows do not fit its header; it is damaged: save it again")
    return Remembered(hashes, mark)


def _check_shapes(encoding: Encoding, n_classes: int, sure: Confidence) -> None:
    """Refuse arrays beside the generator's and the stand-in's own that don't fit the header."""
    fine = {encoding.mean.shape, encoding.scale.shape} == {(len(encoding.schema),)}
    fine &= {array.shape for array in (sure.lowest, sure.highest, sure.default)} == {(n_classes,)}
    if not fine:
        raise ModelFileError("the model file's arrays do not fit its header; it is damaged: save the model again")
