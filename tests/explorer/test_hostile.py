"""Whatever is sent, the explorer answers or says what is wrong; nothing else ever comes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicoflex.constraints import Constraints
from dicoflex.errors import UserError
from dicoflex.explorer import Explorer

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "7", "age", "the age", "visits", "city", "Ulm", "yes", "no", "missing", "\x00", "é\u202e"])
)
THINGS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["visits", "city", "7", "the age", "gain", "x", "relative"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
FIELDS = st.dictionaries(st.sampled_from([*Constraints.model_fields, "colour"]), THINGS, max_size=3)
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "person": st.sampled_from(["7", "3", "nobody", "r0-3"]) | SCALARS,
        "values": THINGS,
        "target": SCALARS,
        "n": st.integers(-1, 14) | SCALARS,
        "p": SCALARS,
        "confidence": SCALARS,
        "constraints": FIELDS | THINGS,
        "pinned": THINGS,
        "refused": st.lists(
            st.fixed_dictionaries({"feature": st.sampled_from(["visits", "city", "x"]), "value": SCALARS}), max_size=2
        )
        | THINGS,
        "seed": st.integers(0, 3) | SCALARS,
        "groups": SCALARS,
        "people": THINGS,
        "keys": THINGS,
        "search": SCALARS,
        "features": THINGS,
    },
)


@pytest.mark.parametrize("kind", ["ask", "score", "people", "person", "model", "relax", "settle", "receipt", "cohort"])
def test_any_body_is_answered_or_refused(loans: Explorer, awkward: Explorer, kind: str) -> None:
    known = {"ask": ("person", "target", "n", "p", "confidence", "constraints", "pinned", "refused", "seed", "values")}
    own = {
        "people": ("search", "target"), "person": ("person",), "score": ("values", "target", "features"),
        "cohort": (*known["ask"][1:-1], "people", "groups"), "settle": (*known["ask"], "keys"),
        "receipt": (*known["ask"], "keys"), "model": (), "relax": known["ask"], **known,
    }[kind]  # fmt: skip

    @settings(max_examples=60 if kind == "ask" else 15)
    @given(BODIES | st.builds(lambda body: {"person": "7", **body}, BODIES) | THINGS, st.booleans())
    def tried(body: Any, odd: bool) -> None:
        sent = {name: value for name, value in body.items() if name in own} if isinstance(body, dict) else body
        try:
            answer = (awkward if odd else loans).answer(kind, sent)
        except UserError:
            return
        assert json.dumps(answer, allow_nan=False)

    tried()
