"""Names, values and numbers of constraints, from Python and JSON.

A reader of a field takes what was given and the name of the field, for its errors.
"""

from __future__ import annotations

__all__ = [
    "MOST_RULES",
    "Name",
    "Value",
    "amount",
    "by_feature",
    "consequences",
    "entries",
    "features",
    "json_object",
    "lists",
    "number",
    "pins",
    "positive",
    "rules",
    "steps",
    "transitions",
    "whole_number",
    "within",
]

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dicoflex.constraints.kinds import KINDS
from dicoflex.constraints.rules.parser import parse, parse_value
from dicoflex.constraints.words import Value
from dicoflex.errors import ConstraintError
from dicoflex.runtime import strict_json
from dicoflex.values import is_missing

Name = int | str

MAX_NUMBER = 1e300  # sums and products with it stay finite where it matters
MOST_VALUES = 10_000
MOST_RULES = 64
MOST_COUNTED = 1_000_000


# -- fields ------------------------------------------------------------------------------------------------------


def features(given: Any, field: str) -> tuple[Name, ...]:
    """A list of features."""
    return _unique([_name(v, field) for v in _items(given, field)], field)


def lists(given: Any, field: str) -> dict[Name, tuple[Value, ...]]:
    """Features with a list of values each."""
    read = {name: _values(value, f"{field} {name!r}") for name, value in by_feature(given, field)}
    for name, values in read.items():
        if not values:
            raise ConstraintError(f"{field} {name!r}: the list is empty; {KINDS[field].if_empty}")
    return read


def transitions(given: Any, field: str) -> dict[Name, dict[Value, tuple[Value, ...]]]:
    """Features with, for some values, the values to go to."""
    return {name: _moves(value, f"{field} {name!r}") for name, value in by_feature(given, field)}


def rules(given: Any, field: str) -> tuple[str, ...]:
    """Rules as they were written, each one once."""
    texts = _items(given, field)
    if len(texts) > MOST_RULES:
        raise ConstraintError(f"{field} has {len(texts):,} entries, and {MOST_RULES} are the most; leave some out")
    parsed = [parse(text) for text in texts]
    _unique([str(rule) for rule in parsed], field)
    return tuple(rule.text for rule in parsed)


def consequences(given: Any, field: str) -> dict[Name, str]:
    """Features with what they follow from, as it was written."""
    read = by_feature(given, field)
    if len(read) > MOST_RULES:
        raise ConstraintError(f"{field} has {len(read):,} entries, and {MOST_RULES} are the most; leave some out")
    return {name: within(name, field, parse_value, text).text for name, text in read}


def pins(given: Any, field: str) -> dict[Name, Value]:
    """Features with a value each; None for missing."""
    return {name: _value(value, f"{field} {name!r}") for name, value in by_feature(given, field)}


def steps(given: Any, field: str) -> dict[Name, float]:
    """Features with a step each."""
    return {name: positive(value, f"{field} {name!r}: the step") for name, value in by_feature(given, field)}


def whole_number(given: Any, field: str) -> int | None:
    """A count of at least 1, or None; 4.0 is one, as JSON has one kind of numbers."""
    value = _native(given)
    if type(value) is float and value.is_integer():
        value = int(value)
    if value is not None and (type(value) is not int or value < 1):
        raise ConstraintError(f"{field} must be a whole number of at least 1, got {value!r}")
    if value is not None and value > MOST_COUNTED:
        raise ConstraintError(f"{field} is more than {MOST_COUNTED:,}, which no table has features; leave it out")
    return value


def amount(given: Any, field: str) -> float | None:
    """A number above 0, or None."""
    return None if given is None else positive(given, field)


def entries(given: Any, field: str) -> tuple[str, ...]:
    """Texts that name constraints of a schema."""
    found = _items(given, field)
    odd = [entry for entry in found if not isinstance(entry, str)]
    if odd:
        raise ConstraintError(f"{field} takes text such as 'age' or 'increase:age', got {odd[0]!r}")
    return _unique(found, field)


# -- lists and mappings --------------------------------------------------------------------------------------------


def by_feature(given: Any, field: str) -> list[tuple[Name, Any]]:
    """The items of a mapping by feature, or of a list of [feature, item] pairs."""
    return _pairs(given, field, "feature", _name)


def within(name: Name, field: str, read: Callable[[Any], Any], value: Any) -> Any:
    """What `read` makes of `value`; its error is told with the field and the feature."""
    try:
        return read(value)
    except ConstraintError as error:
        raise ConstraintError(f"{field} {name!r}: {error}") from None


def _items(given: Any, field: str) -> list[Any]:
    """The items of a list; a lone text is refused, as its letters are hardly meant."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ConstraintError(f"{field} must be a list, got {given!r}; write [{given!r}]")
    items = sorted(given, key=str) if isinstance(given, set | frozenset) else list(given)
    if len(items) > MOST_VALUES:
        raise ConstraintError(f"{field} has {len(items):,} entries, and {MOST_VALUES:,} are the most; use a range")
    return items


def _pairs(given: Any, where: str, key: str, read: Callable[[Any, str], Any]) -> list[tuple[Any, Any]]:
    """The items of a mapping or of a list of pairs, their keys read and different."""
    pairs = list(given.items()) if isinstance(given, Mapping) else given
    fine = isinstance(pairs, list | tuple) and all(isinstance(p, list | tuple) and len(p) == 2 for p in pairs)
    if not fine:
        raise ConstraintError(f"{where} must be a mapping by {key}, or a list of [{key}, ...] pairs, got {given!r}")
    keys = [read(pair[0], where) for pair in pairs]
    _unique(keys, where)
    return [(k, pair[1]) for k, pair in zip(keys, pairs, strict=True)]


def _unique(items: list[Any], field: str) -> tuple[Any, ...]:
    twice = _repeated(items)
    if twice:
        raise ConstraintError(f"{field} names {twice[0]!r} twice; say it once")
    return tuple(items)


def _repeated(items: list[Any]) -> list[Any]:
    """The first item that equals an earlier one, if there is one; 1, 1.0 and True are equal."""
    seen: set[Any] = set()
    for item in items:
        if item in seen:
            return [item]
        seen.add(item)
    return []


# -- names, values and numbers -----------------------------------------------------------------------------------


def number(value: Any, rule: str) -> float:
    """A finite number; `rule` is what an error says."""
    value = _native(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise ConstraintError(f"{rule}, got {value!r}")
    return float(value)


def positive(value: Any, what: str) -> float:
    """A finite number above 0; `what` is what it is called in an error."""
    found = number(value, f"{what} must be a finite number above 0")
    if found <= 0:
        raise ConstraintError(f"{what} must be a finite number above 0, got {value!r}")
    return found


def _name(value: Any, field: str) -> Name:
    value = _native(value)
    if not isinstance(value, str) and type(value) is not int:
        raise ConstraintError(f"{field}: a feature's name is text or a whole number, got {value!r}")
    return value


def _native(value: Any) -> Any:
    """A scalar of an array library as its Python value; others as they are."""
    return value.item() if hasattr(value, "item") and getattr(value, "shape", None) == () else value


def _value(value: Any, where: str) -> Value:
    """A value as a column holds it; None for missing."""
    value = _native(value)
    endless = isinstance(value, int | float) and abs(value) > MAX_NUMBER
    if isinstance(value, str | bool | int) and not endless:
        return value
    if isinstance(value, list | tuple | Mapping) or endless:
        raise ConstraintError(f"{where}: a value is text, a finite number, true, false or None, got {value!r}")
    if is_missing(value):
        return None
    if not isinstance(value, float):
        raise ConstraintError(f"{where}: a value is text, a finite number, true, false or None, got {value!r}")
    return value


def _values(given: Any, where: str) -> tuple[Value, ...]:
    values = [_value(value, where) for value in _items(given, where)]
    twice = _repeated(values)
    if twice:
        raise ConstraintError(f"{where} lists {twice[0]!r} twice; list it once")
    return tuple(values)


def _moves(given: Any, where: str) -> dict[Value, tuple[Value, ...]]:
    moves = dict(_pairs(given, where, "value", _value))
    if not moves:
        raise ConstraintError(f"{where}: the mapping is empty; leave the feature out")
    return {key: _values(value, f"{where} from {key!r}") for key, value in moves.items()}


# -- JSON --------------------------------------------------------------------------------------------------------


def json_object(text: str | bytes) -> dict[str, Any]:
    """The object in JSON text, keys that repeat and numbers that are none refused."""
    try:
        read = strict_json.loads(text)
    except strict_json.RepeatedNameError as error:
        raise ConstraintError(f"the JSON names {error.name!r} twice; say it once") from None
    except strict_json.NotFiniteError as error:
        raise ConstraintError(
            f"the JSON holds {error.written}; write null for a missing value or an open limit"
        ) from None
    except ValueError as error:
        raise ConstraintError(f"this is not JSON: {error}") from None
    if not isinstance(read, dict):
        raise ConstraintError(
            f'constraints are a JSON object such as {{"frozen": ["age"]}}, got a {type(read).__name__}'
        )
    return read
