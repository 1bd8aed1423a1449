"""What things are called on the page: labels, units, help, names of levels and results, from a `texts.json`."""

from __future__ import annotations

__all__ = ["FeatureTexts", "Names", "Texts"]

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dicoflex.errors import SettingError, named
from dicoflex.runtime import strict_json
from dicoflex.runtime.printable import printable
from dicoflex.runtime.whole_files import read_bytes
from dicoflex.table.feature import Feature
from dicoflex.table.schema import Schema
from dicoflex.views.cards import labels, pair_of
from dicoflex.views.words import MISSING, shown

MOST_BYTES = 2**22


class FeatureTexts(BaseModel):
    """What one feature is called: its label, unit, help, the group that it stands in, and its levels by their text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str = ""
    unit: str = ""
    help: str = ""
    group: str = ""
    levels: dict[str, str] = Field(default_factory=dict)


class Texts(BaseModel):
    """What a page calls things; all of it may be left out.

    name: of the model. word: for a person, "applicant". lead: a sentence at the top. owner: why the owner's locks can't
    be opened; without it the page says so itself. decider: who decides, "the bank"; "whoever decides" without it.
    wanted: the text of the result that people hope for. results: by a label's text. show: features that tell people
    apart in a list.

    >>> Texts.model_validate({"features": {"age": {"text": "Age", "unit": "years"}}}).features["age"].unit
    'years'
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = ""
    word: str = "person"
    lead: str = ""
    owner: str = ""
    decider: str = ""
    wanted: str | None = None
    results: dict[str, str] = Field(default_factory=dict)
    show: list[str] = Field(default_factory=list)
    features: dict[str, FeatureTexts] = Field(default_factory=dict)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Texts:
        """The texts in a JSON file; what is wrong in it is a `SettingError` that names the place."""
        try:
            found = strict_json.loads(read_bytes(Path(path), most=MOST_BYTES, error=SettingError))
            return cls.model_validate(found)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the whole"
            raise SettingError(
                f"{path}: {where}: {first['msg']}; see docs/how-to/explorer.md for what it may hold"
            ) from None
        except ValueError as error:
            if isinstance(error, SettingError):
                raise
            raise SettingError(
                f"{path} is no JSON ({error}); see docs/how-to/explorer.md for what it may hold"
            ) from None


class Names:
    """The texts that a schema's features, values and classes are shown with."""

    def __init__(self, schema: Schema, classes: list[Any], texts: Texts) -> None:
        self.schema, self.texts = schema, texts
        self.keys = labels(schema)
        """The features' names as JSON has them."""
        self.places = {key: j for j, key in enumerate(self.keys)}
        self.classes = [texts.results.get(str(label), printable(str(label))) for label in classes]
        for kind, given, known in (("feature", texts.features, self.keys), ("result", texts.results, classes)):
            odd = next((name for name in given if name not in map(str, known)), None)
            if odd is not None:
                raise SettingError(f"the texts: {named(kind, odd, known)}")

    @cached_property
    def labels(self) -> list[str]:
        """What each feature is called: its label, or its name with blanks for underscores."""
        named_so = [self.own(j).text or printable(key).replace("_", " ") for j, key in enumerate(self.keys)]
        return named_so if len(set(named_so)) == len(named_so) else list(self.keys)

    def labelled(self, sentence: str) -> str:
        """A sentence of the engine's, with what the page calls features, not their names; what is quoted stays."""
        return self._pattern.sub(lambda found: self._by_name.get(found[0], found[0]), sentence)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        # A number in a sentence is a value far more often than a name.
        pairs = zip(map(str, self.schema.names), self.labels, strict=True)
        return {name: label for name, label in pairs if not name.isdigit()}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self._by_name, key=len, reverse=True)
        return re.compile(rf"'[^']*'|(?<!\w)(?:{'|'.join(map(re.escape, longest_first)) or '$.'})(?!\w)")

    def own(self, j: int) -> FeatureTexts:
        """What the texts say of feature j."""
        return self.texts.features.get(self.keys[j], EMPTY)

    def place(self, key: Any) -> int | None:
        """Where the feature stands that JSON calls so; None where there is none."""
        return self.places.get(key) if isinstance(key, str) else None

    def shown(self, j: int, cell: Any) -> str:
        """A value of feature j as text."""
        feature = self.schema.features[j]
        return shown(cell, feature) if feature.is_number else self._level(j, cell)

    def pair(self, j: int, before: Any, after: Any) -> tuple[str, str]:
        """Two values of feature j as texts that differ where they do."""
        feature: Feature = self.schema.features[j]
        if feature.is_number:
            return pair_of(before, after, feature)
        return self._level(j, before), self._level(j, after)

    def _level(self, j: int, cell: Any) -> str:
        if cell is None:
            return MISSING
        given: Mapping[str, str] = self.own(j).levels
        return given.get(str(cell), printable(str(cell)))


EMPTY = FeatureTexts()
