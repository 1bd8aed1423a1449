"""Targets that are no label, over HTTP: scores, changes of one's own, any of some labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pandas as pd
import pytest

from dicoflex import DiCoFlex, at_least, by, one_of
from dicoflex.client import Client
from dicoflex.examples import rows_like
from dicoflex.request import Request
from dicoflex.serving.schemas import request_schema
from dicoflex.serving.settings import Settings
from serving.running import Running, started


@pytest.fixture(scope="module")
def running(scored: DiCoFlex, three: DiCoFlex, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder: Path = tmp_path_factory.mktemp("targets")
    scored.save(folder / "scores.dicoflex")
    three.save(folder / "three.dicoflex")
    with started(folder) as server:
        yield server


@pytest.fixture(scope="module")
def rows(scored: DiCoFlex) -> pd.DataFrame:
    return rows_like(scored.schema_, 3, seed=1)


def values(http: httpx.Client, model: str, **asked: Any) -> httpx.Response:
    return http.post(f"/v1/models/{model}/explain", json=asked)


def sent(rows: pd.DataFrame) -> list[dict[str, Any]]:
    cells = rows.astype(object).where(rows.notna(), None)
    return [
        {"values": {str(k): getattr(v, "item", lambda v=v: v)() for k, v in row.items()}} for _, row in cells.iterrows()
    ]


@pytest.mark.parametrize("target", [at_least(600), by(20), [at_least(600), by(20), at_least(560)]])
def test_scores_are_answered_as_by_the_model_at_hand(
    running: Running, scored: DiCoFlex, rows: pd.DataFrame, target: Any
) -> None:
    far = Client(running.url).explain("scores", rows, Request.of(target=target, n=2, random_state=3))
    near = scored.explain(rows, target=target, n=2, random_state=3)
    pd.testing.assert_frame_equal(far.frame, near.frame)
    assert far.info["score"].tolist() == pytest.approx(near.info["score"].tolist())
    assert list(far.targets) == list(near.targets)


@pytest.mark.parametrize("target", ["other", one_of("low", "high")])
def test_sets_are_answered_as_by_the_model_at_hand(running: Running, three: DiCoFlex, target: Any) -> None:
    rows = rows_like(three.schema_, 4, seed=2)
    far = Client(running.url).explain("three", rows, Request.of(target=target, n=3, random_state=3))
    near = three.explain(rows, target=target, n=3, random_state=3)
    pd.testing.assert_frame_equal(far.frame, near.frame)
    assert far.info["target"].tolist() == near.info["target"].tolist()
    assert list(far.targets) == list(near.targets)


def test_what_a_model_can_not_be_asked_is_a_problem(running: Running, rows: pd.DataFrame) -> None:
    body = {"rows": sent(rows)}
    with running.client() as http:
        for target in ("yes", {"at_least": 1e6}, {"at_leats": 3}, {"at_least": "x"}, {}, {"by": 0}, {"one_of": ["a"]}):
            answer = values(http, "scores", target=target, **body)
            assert answer.status_code in (400, 422), (target, answer.text)
            assert answer.json()["detail"]
        answer = values(http, "scores", target=">=600", n=1, **body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["results"][0]["target"] == ">= 600"


def test_the_schema_says_what_may_be_asked_for(scored: DiCoFlex, three: DiCoFlex, rows: pd.DataFrame) -> None:
    of_scores, of_three = (request_schema(model.model_, Settings(models=Path())) for model in (scored, three))
    body = {"rows": sent(rows), "n": 1}
    for target in ({"at_least": 600}, {"at_most": 560}, {"at_least": 520, "at_most": 600}, {"by": 20}):
        jsonschema.validate({**body, "target": target}, of_scores)
    for target in ("other", "low", {"one_of": ["low", "high"]}):
        jsonschema.validate({**body, "target": target}, of_three)
    for schema, target in ((of_scores, "low"), (of_scores, {"at_least": "x"}), (of_three, {"at_least": 600})):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**body, "target": target}, schema)
