"""The words of the command line that state constraints, and what they mean for a table: its features and levels.

--increase NAMES, --decrease NAMES   features, with commas between
--range hours=20:50                  limits of the value; an end may be open, as in hours=20:
--range income=-10%:+25%             limits of the change, in percent of the row's value
--range age=+0:+5                    limits of the change itself: a limit with a plus makes it so
--allow housing=own,rent             values that a changed feature may take; 'missing' stands for a missing one
--forbid housing=rent                values that it may not take
--pin hours=45                       the value that it has in every answer
--transition degree=Master>PhD       where a value may go; degree=PhD> is nowhere
--step loan=500                      a changed number is a multiple of this
--cost move=5, --cost hours=0.5/unit what a change costs
"""

from __future__ import annotations

__all__ = ["FORMS", "PLAIN", "Flags", "constraints", "features", "matches"]

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dicoflex.cli.options import repeated
from dicoflex.constraints.kinds import KINDS, Flag, Kind
from dicoflex.errors import QueryError, SettingError, named

if TYPE_CHECKING:
    from dicoflex.constraints import Constraints
    from dicoflex.table.feature import Feature
    from dicoflex.table.schema import Schema

Words = Sequence[str]

MISSING = "missing"
PER_UNIT = "/unit"
PLAIN: dict[str, tuple[Any, Any]] = {
    "count": (int | None, None),
    "number": (float | None, None),
    "switch": (bool, False),
}
"""Forms of a single value: its type, and what it is where the option is not given."""


def _field(kind: Kind) -> tuple[str, Any, Any]:
    """The field of `Flags` that a kind of constraint fills, with its option."""
    flag = kind.flag
    if flag.form in PLAIN:
        type_, default = PLAIN[flag.form]
        return kind.field, Annotated[type_, typer.Option(flag.name, help=flag.help, show_default=False)], default
    return kind.field, Annotated[list[str], repeated(flag.name, flag.metavar, flag.help)], field(default_factory=list)


FILE = typer.Option("--constraints", help="Constraints as JSON; the flags below add to them.", show_default=False)
_FROZEN, *_OTHERS = map(_field, KINDS.values())
Flags: type[Any] = make_dataclass(
    "Flags", [_FROZEN, ("file", Annotated[Path | None, FILE], None), *_OTHERS], frozen=True
)
"""The constraints of a command line: a file of them, and each kind as the words given for it."""


def constraints(flags: Any, schema: Schema) -> Constraints:
    """What `Flags` demand, those of their file and their words together, in the names and levels of `schema`.

    >>> import pandas as pd
    >>> from dicoflex.table.schema import Schema
    >>> schema = Schema.infer(pd.DataFrame({"hours": [20, 60], "housing": ["own", "rent"]}))
    >>> constraints(Flags(ranges=["hours=+0:+5"], forbidden=["housing=rent"]), schema).model_dump()
    {'ranges': {'hours': {'delta': [0.0, 5.0]}}, 'forbidden': {'housing': ['rent']}}
    """
    from dicoflex.constraints import Constraints

    filed = Constraints() if flags.file is None else Constraints.load(flags.file)
    said = _said(flags, schema)
    if flags.max_cost is not None and not flags.cost:
        said["cost"] = filed.cost  # a budget on the command line bounds what the file's changes cost
    return filed.merge(Constraints(**said))


def _said(flags: Any, schema: Schema) -> dict[str, Any]:
    """The words as fields of `Constraints`, which checks them."""
    return {
        kind.field: FORMS.get(kind.flag.form, _as_given)(getattr(flags, kind.field), kind.flag, schema)
        for kind in KINDS.values()
    }


# -- words -------------------------------------------------------------------------------------------------------


def features(words: Words, known: Iterable[Any], option: str = "") -> list[Any]:
    """The columns of `known` that comma-separated words name; a name may have commas itself.

    >>> features(["age,sex", "a, b"], ["age", "sex", "a, b"])
    ['age', 'sex', 'a, b']
    """
    by_text = {str(name): name for name in known}
    names = [name for word in words for name in _pieces(word, by_text)]
    for name in names:
        if name not in by_text:
            raise QueryError(
                f"{option}: {named('feature', name, by_text)}" if option else named("column", name, by_text)
            )
    return [by_text[name] for name in names]


def matches(text: str, known: Iterable[Any]) -> list[Any]:
    """The values of `known` that a word can mean: by their text, or else as the same number or truth value.

    >>> matches("1", [0, 1]), matches("1", [0.0, 1.0]), matches("yes", ["no", "yes"]), matches("true", [False, True])
    ([1], [1.0], ['yes'], [True])
    """
    values = list(known)
    same = [value for value in values if str(value) == text]
    if same:
        return same
    truths = [value for value in values if isinstance(value, bool) and str(value).lower() == text.lower()]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return truths or [value for value in numbers if value == number(text)]


def number(text: str) -> float | None:
    """The number that a word is, whole where it is written so, or None."""
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _pieces(text: str, known: Iterable[str]) -> list[str]:
    """The parts between commas, blanks around them dropped; where several parts together are known, they are one.

    >>> _pieces("own, rent,a, b", ["own", "rent", "a, b"])
    ['own', 'rent', 'a, b']
    """
    names, parts, found = set(known), text.split(","), []
    at = 0
    while at < len(parts):
        ends = range(len(parts), at, -1)
        runs = ((end, run) for end in ends for run in _trims(",".join(parts[at:end])) if run in names)
        at, piece = next(runs, (at + 1, parts[at].strip()))
        found.append(piece)
    return [piece for piece in found if piece]


def _trims(text: str) -> tuple[str, str]:
    return text, text.strip()


def _assigned(words: Words, flag: Flag, schema: Schema) -> list[tuple[Feature, str, str]]:
    """For every `feature=text` word the feature, the text, and the word itself."""
    return [(*_assignment(word, flag, schema), word) for word in words]


def _assignment(word: str, flag: Flag, schema: Schema) -> tuple[Feature, str]:
    known = {str(feature.name): feature for feature in schema.features}
    # A name may have an equals sign itself, so that the longest name that fits is meant.
    name = max((name for name in known if word.startswith(f"{name}=")), key=len, default="")
    text = word[len(name) + 1 :]
    if not name:
        name, _, text = word.partition("=")
    name = name if name in known else name.strip()
    if not text.strip() or not name:
        raise _malformed(flag, word)
    if name not in known:
        raise QueryError(f"{flag.name} {word!r}: {named('feature', name, known)}")
    return known[name], text.strip()


def _malformed(flag: Flag, word: str) -> SettingError:
    return SettingError(f"{flag.name} {word!r} must read feature=..., as in {flag.name} {flag.example}")


# -- one form of words each ----------------------------------------------------------------------------------------


def _as_given(words: Any, _: Flag, __: Schema) -> Any:
    return words


def _features(words: Words, flag: Flag, schema: Schema) -> list[Any]:
    """Features with commas between; one that is named twice counts once."""
    return list(dict.fromkeys(features(words, schema.names, flag.name)))


def _ranges(words: Words, flag: Flag, schema: Schema) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for feature, text, word in _assigned(words, flag, schema):
        found.setdefault(feature.name, []).append(_range(text, flag, word))
    return found


def _range(text: str, flag: Flag, word: str) -> Any:
    """The range that `low:high` writes, in the form that `Constraints` reads."""
    ends = [end.strip() for end in text.split(":")]
    limits = [number(end.removesuffix("%")) for end in ends]
    if len(ends) != 2 or any(end and limit is None for end, limit in zip(ends, limits, strict=True)):
        raise _malformed(flag, word)
    marked = [end for end in ends if end not in ("", "0")]  # a plain 0 fits every kind
    if any(end.endswith("%") for end in marked):
        _check_alike(all(end.endswith("%") for end in marked), flag, word)
        return {"relative": [None if limit is None else limit / 100 for limit in limits]}
    if any(end.startswith("+") for end in marked):
        _check_alike(all(end[0] in "+-" for end in marked), flag, word)
        return {"delta": limits}
    return tuple(limits)


def _check_alike(alike: bool, flag: Flag, word: str) -> None:
    if not alike:
        raise SettingError(
            f"{flag.name} {word!r} mixes two kinds of limits; write both with %, both with a sign, or plain"
        )


def _listed(words: Words, flag: Flag, schema: Schema) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for feature, text, word in _assigned(words, flag, schema):
        found.setdefault(feature.name, []).extend(_values(text, feature, flag, word))
    return found


def _pins(words: Words, flag: Flag, schema: Schema) -> list[tuple[Any, Any]]:
    return [(feature.name, _value(text, feature, flag, word)) for feature, text, word in _assigned(words, flag, schema)]


def _moves(words: Words, flag: Flag, schema: Schema) -> dict[Any, dict[Any, list[Any]]]:
    found: dict[Any, dict[Any, list[Any]]] = {}
    for feature, text, word in _assigned(words, flag, schema):
        cuts = [i for i, sign in enumerate(text) if sign == ">"]
        if not cuts:
            raise _malformed(flag, word)
        # A level may have the sign itself, so that the first cut after a level is meant.
        cut = next((i for i in cuts if matches(text[:i].strip(), feature.levels)), cuts[0])
        origin = _value(text[:cut].strip(), feature, flag, word)
        ends = _values(text[cut + 1 :], feature, flag, word)
        found.setdefault(feature.name, {}).setdefault(origin, []).extend(ends)
    return found


def _values(text: str, feature: Feature, flag: Flag, word: str) -> list[Any]:
    return [_value(piece, feature, flag, word) for piece in _pieces(text, map(str, feature.levels))]


def _value(text: str, feature: Feature, flag: Flag, word: str) -> Any:
    """The level or number that a word means; one that the feature does not have is left for the schema to refuse."""
    found = matches(text, feature.levels)
    if any(value != found[0] for value in found):
        listed = " and ".join(map(repr, found))
        raise SettingError(f"{flag.name} {word!r} can mean the levels {listed}; say which in a --constraints file")
    if found:
        return found[0]
    if text == MISSING:
        return None
    meant = number(text) if feature.is_number else None
    return text if meant is None else meant


def _amounts(words: Words, flag: Flag, schema: Schema) -> list[tuple[Any, float]]:
    return [(feature.name, _amount(text, flag, word)) for feature, text, word in _assigned(words, flag, schema)]


def _amount(text: str, flag: Flag, word: str) -> float:
    amount = number(text)
    if amount is None:
        raise _malformed(flag, word)
    return amount


def _costs(words: Words, flag: Flag, schema: Schema) -> list[tuple[Any, Any]]:
    return [(feature.name, _cost(text, flag, word)) for feature, text, word in _assigned(words, flag, schema)]


def _cost(text: str, flag: Flag, word: str) -> Any:
    amount = _amount(text.removesuffix(PER_UNIT), flag, word)
    return {"per_unit": amount} if text.endswith(PER_UNIT) else amount


def _entries(words: Words, _: Flag, schema: Schema) -> list[str]:
    """Entries with commas between; one that names a rule or feature with commas stays whole."""
    known = [one.entry for one in schema.constraints.one_by_one()]
    return [entry for word in words for entry in _pieces(word, [*known, *map(str, schema.names)])]


FORMS: dict[str, Callable[[Any, Flag, Schema], Any]] = {
    "features": _features,
    "ranges": _ranges,
    "values": _listed,
    "value": _pins,
    "moves": _moves,
    "amounts": _amounts,
    "costs": _costs,
    "entries": _entries,
}
"""How words of a form become what `Constraints` takes; words of other forms are taken as they are."""
