"""The explorer in a cell of a notebook: its page and its messages, over the notebook's own channel.

The widget is the same page as `dicoflex explore` shows and asks the same `Explorer`; nothing listens on a port, and
nothing is fetched from anywhere. It works wherever anywidget does: JupyterLab, Notebook, VS Code, marimo, Colab.
"""

from __future__ import annotations

__all__ = ["ExplorerWidget"]

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dicoflex.answers import asking
from dicoflex.answers.counterfactuals import Counterfactuals
from dicoflex.constraints import Constraints
from dicoflex.errors import QueryError, UserError
from dicoflex.explorer import Explorer, Texts
from dicoflex.explorer.explorer import STREAMED
from dicoflex.explorer.messages import Asking, read
from dicoflex.explorer.question import feature_in
from dicoflex.explorer.texts import Names
from dicoflex.explorer.user_limits import as_body
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.runtime.extras import extra

with extra("widget", to="show the explorer in a notebook"):
    import traitlets
    from anywidget import AnyWidget

STATIC = Path(__file__).parent / "explorer" / "static"
FILES = ("explorer.js", "later.js", "explorer.css", "de.json")
SHOWN = 3
"""So many people are explained in what stands where widgets can't run."""
CAN_SHOW = {
    "frozen", "ranges", "increase", "decrease", "allowed", "forbidden", "max_changes", "max_cost", "rules", "steps",
    "strict", "override",
}  # fmt: skip
ASKED = {"target", "n", "p", "frozen", "features_to_vary", "constraints", "confidence", "seed"}
"""The fields of a request that the page has a control for."""


def _module() -> str:
    """The widget's module with the page's files in it: a notebook imports it as one text."""
    files = {name: (STATIC / name).read_text(encoding="utf-8") for name in FILES}
    return f"const FILES = {json.dumps(files)};\n{(STATIC / 'widget.js').read_text(encoding='utf-8')}"


class RequestTrait(traitlets.Instance[Any]):
    """A request that the page can show; a dict of its fields will do."""

    def __init__(self) -> None:
        super().__init__(Request, allow_none=True)
        self.tag(sync=True, to_json=self._to_page, from_json=self._from_page)

    def validate(self, obj: Any, value: Any) -> Any:
        """The request, checked before the page is asked to show it."""
        if isinstance(value, Mapping):
            value = Request.of(**value)
        checked = super().validate(obj, value)
        if checked is not None:
            obj.body_of(checked)
        return checked

    @staticmethod
    def _to_page(value: Request | None, widget: Any) -> Any:
        return None if value is None else widget.body_of(value)

    @staticmethod
    def _from_page(value: Any, widget: Any) -> Any:
        return None if value is None else widget.request_of(value)


class ExplorerWidget(AnyWidget):
    """The live explorer in a cell; `Explainer.explore` makes one.

    Parameters
    ----------
    model : Model
        The model that answers.
    rows : DataFrame
        The people, with the model's columns; their index names them.
    target : label, optional
        The result that people hope for; by default the one that fewer of them have.
    texts : Texts, optional
        What features, levels and results are called.
    height : int
        The height in the cell, in pixels.

    Attributes
    ----------
    person : str
        The name of the person who is shown, "" while there is none. Set it to show another one.
    request : Request
        What is asked for, once a gesture has ended. Set it, also to a dict of its fields, to ask for something else.
    saved : list of dict
        The plans that were saved, each with `plan`, `who` and `asking`.

    Examples
    --------
    >>> from dicoflex import Constraints, Request, load
    >>> from dicoflex.examples import EXAMPLES, rows_like
    >>> explainer = load(EXAMPLES[2])
    >>> widget = explainer.explore(rows_like(explainer.schema_, 20), target="yes")
    >>> widget.person = "3"
    >>> widget.request = Request(target="yes", n=2, constraints=Constraints(max_changes=1), seed=0)
    >>> len(widget.result.queries)
    1
    """

    _esm = _module()
    person = traitlets.Unicode("").tag(sync=True)
    own: Any = traitlets.Dict(None, allow_none=True).tag(sync=True)
    request = RequestTrait()
    saved: Any = traitlets.List().tag(sync=True)
    height = traitlets.Int(640).tag(sync=True)

    def __init__(
        self, model: Model, rows: pd.DataFrame, *, target: Any = None, texts: Texts | None = None, height: int = 640
    ) -> None:
        self.explorer = Explorer(model, rows, target=target, texts=texts)
        super().__init__(height=height)
        self.on_msg(self._answer)

    def __repr__(self) -> str:
        return f"ExplorerWidget({len(self.explorer.people)} people, person={self.person!r})"

    @property
    def result(self) -> Counterfactuals:
        """The answers of `explain` to `request`, for the person who is shown.

        Raises
        ------
        QueryError
            If no person was chosen yet, here or in the page.
        """
        rows = self._row()
        return asking.explain(self.explorer.model, rows, self.request or Request(n=4, seed=0))

    def _row(self) -> pd.DataFrame:
        """The row of the person who is shown, or the one that was entered."""
        if self.own:
            cells = self.explorer.cells.by_name(self.own, self.explorer.names.keys)
            return self.explorer.model.encoding.decode(self.explorer.cells.encoded(cells)[None])
        if not self.person:
            raise QueryError("no person was chosen yet; choose one in the page, or set `person`")
        place = self.explorer.people.place(self.person)
        return self.explorer.people.frame.iloc[[place]]

    # -- what the page and Python both know ---------------------------------------------------------------------

    @traitlets.validate("person")
    def _known(self, proposal: Any) -> Any:
        if proposal["value"]:
            self.explorer.people.place(proposal["value"])
        return proposal["value"]

    def body_of(self, request: Request) -> dict[str, Any]:
        """A request as the page states it; what it has no control for is refused."""
        odd = [name for name in type(request).model_fields if name not in ASKED and _differs(request, name)]
        if odd:
            raise QueryError(f"the explorer has no control for {', '.join(odd)}; leave it as it is by default")
        schema = self.explorer.model.schema
        vary = request.features_to_vary
        fixed = [*request.frozen, *([] if vary is None else [name for name in schema.names if name not in vary])]
        wish = request.constraints.merge(Constraints(frozen=fixed)) if fixed else request.constraints
        body: dict[str, Any] = {
            "target": request.target, "n": request.n, "p": request.p, "confidence": request.confidence,
            "constraints": _shown(wish, self.explorer.names), "pinned": {}, "refused": [], "seed": request.seed or 0,
        }  # fmt: skip
        self.request_of(body)
        return body

    def request_of(self, body: dict[str, Any]) -> Request:
        """The request that the page's statement is."""
        people = self.explorer.people.ids
        whose = {"values": self.own} if self.own else {"person": self.person or people[0]}
        return self.explorer.question(read(Asking, {**body, **whose})).request

    # -- messages -----------------------------------------------------------------------------------------------

    def _answer(self, _: Any, content: Any, __: Any) -> None:
        """Answer one message of the page; what is wrong with it is told as over HTTP."""
        back = {"view": content["view"], "id": content["id"]}
        kind, body = content["kind"], content["body"]
        try:
            for part in self.explorer.stream(kind, body):
                self.send({**back, "answer": part})
            if kind in STREAMED:
                self.send({**back, "last": True})
        except UserError as error:
            more = {"feature": feature_in(error, self.explorer.names), "place": getattr(error, "place", "") or None}
            self.send({**back, "problem": {"status": 422, "detail": str(error), **more}})
        except Exception:
            self.send({**back, "problem": {"status": 500, "detail": "something is wrong in the kernel; see its log"}})
            raise

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and for where none can run a few answers as they stand."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return {**data, "text/plain": repr(self), "text/html": self._page()}, metadata

    def _page(self) -> str:
        """The answers to the first who lack the result, without anything that can be moved."""
        people, wanted = self.explorer.people, self.explorer.wanted
        rows = people.frame.iloc[np.flatnonzero(people.result != wanted)[:SHOWN]]
        request = Request(target=self.explorer.model.labels[wanted], n=4, seed=0)
        return asking.explain(self.explorer.model, rows, request)._repr_html_()


def _differs(request: Request, name: str) -> bool:
    return bool(getattr(request, name) != type(request).model_fields[name].default)


def _shown(wish: Constraints, names: Names) -> dict[str, Any]:
    """Constraints in the page's words; what it has no control for is refused, and not left out."""
    stated = as_body(wish, names)
    odd = [name for name in stated if name not in CAN_SHOW]
    odd += [f"forbidden {name}" for name, values in stated.get("forbidden", {}).items() if values != [None]]
    odd += [f"range of {name}" for name, ends in stated.get("ranges", {}).items() if not isinstance(ends, list)]
    if odd:
        raise QueryError(f"the explorer has no control for {', '.join(odd)}; use `explain`")
    return stated
