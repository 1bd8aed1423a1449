"""A question over HTTP: a `Request` with rows, read with suspicion, before anything is asked."""

from __future__ import annotations

__all__ = [
    "Question", "Wish", "dump_json", "load_json", "of_instances", "read_question", "read_wish", "seeded", "targets_of",
]  # fmt: skip

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import orjson
from pydantic import BeforeValidator, ConfigDict, Field

from dicoflex.answers.tasks import check_goals, is_label
from dicoflex.errors import ConstraintError, UserError, named
from dicoflex.model import Model
from dicoflex.request import REPLACE, Request
from dicoflex.serving.problems import Problem, of_error
from dicoflex.serving.rows import RowReader, Rows, as_json_has_it
from dicoflex.serving.settings import Settings

Part = Literal["changes", "scores"]
PARTS: tuple[Part, ...] = ("changes", "scores")
KEPT_WISHES = 256


def _whole(given: Any) -> Any:
    """A number as JSON has whole ones: 10.0 is 10."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


Whole = BeforeValidator(_whole)


class Wish(Request):
    """All of a question but its rows: a `Request`, and what is told of the answers.

    seed: 0 unless another is given, so that the same question has the same answer; null draws one. verify: check every
    answer again. include: what is told of each answer besides its values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: Annotated[int, Whole] = Field(default=10, ge=1)
    seed: Annotated[int | None, Whole] = Field(default=0, ge=0, lt=2**63)
    verify: bool = False
    include: tuple[Part, ...] = PARTS


@dataclass(frozen=True)
class Question:
    """Rows, the label asked for by each (None: the other of two), what else is asked, and its settings as sent."""

    rows: Rows
    targets: list[Any]
    wish: Wish
    settings: dict[str, Any]

    @property
    def key(self) -> bytes:
        """The same bytes for questions that can be answered together."""
        own = {name: value for name, value in self.settings.items() if name not in ("target", "include")}
        return orjson.dumps([own, self.wish.seed], option=orjson.OPT_SORT_KEYS)

    @property
    def request(self) -> Request:
        """What is asked of a model, besides rows and targets."""
        return Request.model_construct(**{name: getattr(self.wish, name) for name in Request.model_fields})


def load_json(body: bytes) -> Any:
    """The value of a body; what is no JSON is a `Problem`."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Problem("malformed-json", f"the body is no JSON: {error}") from None


def dump_json(value: Any) -> bytes:
    """The JSON of a value that was read; one that is nested deeper than can be written is a `Problem`."""
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        raise Problem("invalid-request", "the settings are nested too deeply; no setting needs ten levels") from None


def of_instances(given: Any, model: Model) -> Any:
    """The question that a body of KServe's V1 protocol is: an instance is an object by feature, or a list in order."""
    if not isinstance(given, dict) or not isinstance(given.get("instances"), list):
        text = "the body must be an object with a list of instances"
        raise Problem("invalid-request", text, errors=[("/instances", "is no list")])
    if "rows" in given:
        raise Problem("invalid-request", "rows are unknown beside instances", errors=[("/rows", "is unknown")])
    names = [str(name) for name in model.schema.names]
    rows = []
    for i, instance in enumerate(given["instances"]):
        if isinstance(instance, list):
            if len(instance) != len(names):
                text = f"has {len(instance)} values, and there are {len(names)} features"
                raise Problem("invalid-rows", f"/instances/{i}: {text}", errors=[(f"/instances/{i}", text)])
            instance = dict(zip(names, instance, strict=True))
        rows.append({"values": instance})
    return {"rows": rows, **{name: value for name, value in given.items() if name != "instances"}}


def read_question(given: Any, model: Model, reader: RowReader, bounds: Settings) -> Question:
    """The question of a body, for a model; a `Problem` says what does not fit."""
    if not isinstance(given, dict):
        raise Problem("invalid-request", "the body must be an object with rows")
    if "rows" not in given:
        raise Problem("invalid-request", "rows are missing", errors=[("/rows", "is required")])
    given = dict(given)
    sent = given.pop("rows")
    if not isinstance(sent, list) or not sent:
        raise Problem("invalid-request", "rows must be a list of at least one row", errors=[("/rows", "is no list")])
    if len(sent) > bounds.max_rows:
        text = f"{len(sent)} rows are more than the {bounds.max_rows} of one request; send fewer, or use explain-lines"
        raise Problem("too-large", text)
    wish = read_wish(given, bounds)
    if len(sent) * wish.n > bounds.max_answers:
        text = f"{len(sent)} rows with n = {wish.n} ask for more than {bounds.max_answers} answers; ask for fewer"
        raise Problem("too-large", text)
    rows = reader.read(sent, unseen=wish.handle_unknown == REPLACE)
    return Question(rows, targets_of(wish, model, rows.targets), seeded(wish), given)


def read_wish(given: dict[str, Any], bounds: Settings) -> Wish:
    """The settings of a question; the same ones are read once."""
    wish = _wish(dump_json(given))
    if wish.n > bounds.max_n:
        raise Problem("too-large", f"n = {wish.n} is more than the {bounds.max_n} answers per row of one request")
    return wish


@lru_cache(maxsize=KEPT_WISHES)
def _wish(settings: bytes) -> Wish:
    try:
        return Wish.model_validate_json(settings, strict=True)
    except (ValueError, ConstraintError) as error:
        raise of_error(error) from None


def seeded(wish: Wish) -> Wish:
    """The wish with a seed of its own where none was to be fixed, so that it can be told and asked again."""
    if wish.seed is not None:
        return wish
    drawn = Request.of().seed
    return wish.model_copy(update={"seed": drawn})


def targets_of(wish: Wish, model: Model, own: list[Any]) -> list[Any]:
    """What each row asks for: its own, or that of all; None is the other of two."""
    if isinstance(wish.target, tuple):
        raise Problem("invalid-request", "target is one label; a row that asks for another has a target of its own")
    wanted = [wish.target if target is None else target for target in own]
    if all(is_label(model, one) and not isinstance(one, dict) for one in wanted):
        return _labels_of(model, wanted)
    try:
        goals = [Request.of(target=target).target for target in wanted]
        check_goals(model, goals)
    except UserError as error:
        raise Problem("invalid-request", str(error), errors=[("/target", "is no target of this model")]) from None
    return goals


def _labels_of(model: Model, wanted: list[Any]) -> list[Any]:
    known: dict[Any, Any] = {as_json_has_it(label): label for label in model.labels}
    if len(known) == 2:
        known[as_json_has_it(None)] = None
    found = []
    for label in wanted:
        typed = as_json_has_it(label)
        if typed not in known:
            text = f"target is needed with {len(known)} classes; choose from {model.labels[:20]}"
            text = text if label is None else named("target", label, model.labels)
            raise Problem("invalid-request", text, errors=[("/target", "is needed" if label is None else "is unknown")])
        found.append(known[typed])
    return found
