"""Models come, change and go while the server runs; a file that can't be used leaves the last good one in place."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx
import pytest

from dicoflex import load
from dicoflex.errors import SettingError
from dicoflex.model import Model
from dicoflex.serving.app import create, from_environment
from dicoflex.serving.keys import Keys
from dicoflex.serving.problems import Problem
from dicoflex.serving.registry import Registry
from dicoflex.serving.settings import Settings
from serving.running import question, started

RECORDING = Path(__file__).resolve().parents[1] / "recording"


def put(source: Path, target: Path) -> None:
    """Replace a file as model files are written: whole."""
    shutil.copy(source, target.with_suffix(".new"))
    os.replace(target.with_suffix(".new"), target)


def test_models_come_change_and_go(tmp_path: Path) -> None:
    used: list[Model] = []
    registry = Registry(tmp_path, ready=used.append)
    with pytest.raises(Problem, match="being loaded"):
        registry.get("m")
    registry.scan()
    with pytest.raises(Problem, match="is unknown"):
        registry.get("m")
    put(RECORDING / "mixed.dicoflex", tmp_path / "m.dicoflex")
    registry.scan()
    first = registry.get("m")
    registry.scan()
    assert len(used) == 1
    put(RECORDING / "mixed-labels.dicoflex", tmp_path / "m.dicoflex")
    registry.scan()
    assert registry.get("m").model.fingerprint != first.model.fingerprint
    with pytest.raises(Problem, match="is now"):
        registry.get(f"m@{first.model.fingerprint}")
    (tmp_path / "m.dicoflex").write_bytes(b"no model")
    registry.scan()
    assert "no model" not in registry.failed["m"]
    assert registry.get("m").model is used[1]
    (tmp_path / "m.dicoflex").unlink()
    (tmp_path / "a b.dicoflex").write_bytes(b"a name that no path has")
    registry.scan()
    assert registry.served == {}


def test_a_model_is_replaced_under_load(tmp_path: Path) -> None:
    put(RECORDING / "mixed.dicoflex", tmp_path / "m.dicoflex")
    old, new = (load(RECORDING / f"{name}.dicoflex") for name in ("mixed", "mixed-labels"))
    body, over = question(old), Event()
    with started(tmp_path, "--poll-seconds", "0.2") as server, server.client() as http:

        def ask() -> set[tuple[int, str]]:
            found = set()
            while not over.is_set():
                answer = http.post("/v1/models/m/explain", json=body)
                found.add((answer.status_code, answer.json()["model"]["fingerprint"]))
            return found

        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(ask) for _ in range(4)]
            put(RECORDING / "mixed-labels.dicoflex", tmp_path / "m.dicoflex")
            deadline = time.monotonic() + 30
            while http.get("/v1/models/m").json()["fingerprint"] == old.fingerprint_ and time.monotonic() < deadline:
                time.sleep(0.05)
            (tmp_path / "m.dicoflex").write_bytes(b"no model")
            while not http.get("/v1/models").json()["failed"] and time.monotonic() < deadline:
                time.sleep(0.05)
            over.set()
            found = set().union(*(one.result() for one in waiting))
        assert found == {(200, old.fingerprint_), (200, new.fingerprint_)}
        assert 'dicoflex_model_stale{model="m"} 1.0' in http.get("/metrics").text
        assert http.post("/v1/models/m/explain", json=body).json()["model"]["fingerprint"] == new.fingerprint_


# -- keys ------------------------------------------------------------------------------------------------------------

SECRET = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"  # of "secret"


def test_keys_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_text(f"# who may ask\nteam {SECRET}\nguest {'0' * 64} m,other\n")
    keys = Keys(path)
    assert keys.check(b"Bearer secret", "m").name == "team"
    for given in (None, b"", b"Bearer", b"Bearer wrong", b"Basic secret", b"secret"):
        with pytest.raises(Problem) as told:
            keys.check(given, "m")
        assert told.value.code == "unauthorised"
        assert told.value.headers == {"WWW-Authenticate": "Bearer"}
    path.write_text(f"guest {SECRET} other\n")
    os.utime(path, ns=(1, 1))
    keys.refresh()
    with pytest.raises(Problem, match="not for this model"):
        keys.check(b"bearer secret", "m")
    assert keys.check(b"bearer secret", "other").name == "guest"
    path.write_text("nonsense\n")
    keys.refresh()
    assert keys.check(b"Bearer secret", None).name == "guest"
    for text in ("", "team\n", "team abc\n", f"team {SECRET} a b\n"):
        path.write_text(text)
        with pytest.raises(SettingError):
            Keys(path)


def test_a_key_for_one_model_lists_only_its_models(models: Path, tmp_path: Path) -> None:
    """At 6054cd1 any key read the names, the classes and the features of all models."""
    path = tmp_path / "keys"
    path.write_text(f"team {SECRET} plain\nall {hashlib.sha256(b'other').hexdigest()}\n")
    app = create(Settings(models=models, keys=path))
    registry = app.state.own.registry
    registry.ready = lambda _: None
    registry.scan()
    registry.failed["loans"] = "damaged"

    async def ask(key: str, path: str) -> httpx.Response:
        headers = {"Authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            return await http.get(path, headers=headers)

    shown = asyncio.run(ask("secret", "/v1/models")).json()
    assert (shown["models"], shown["failed"]) == (["plain"], [])
    assert asyncio.run(ask("other", "/v1/models")).json()["models"] == ["loans", "plain"]
    assert "loans" not in asyncio.run(ask("secret", "/openapi.json")).text
    assert "loans" in asyncio.run(ask("other", "/openapi.json")).text
    assert asyncio.run(ask("secret", "/metrics")).status_code == 403
    assert asyncio.run(ask("other", "/metrics")).status_code == 200


# -- the application -------------------------------------------------------------------------------------------------


def test_pages_of_other_sites_may_ask_only_where_that_was_said(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def allowed(app: object, origin: str) -> str | None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
            answer = await http.get("/health/live", headers={"Origin": origin})
            return answer.headers.get("access-control-allow-origin")

    own = "https://recourse.example"
    settings = Settings(models=models, origins=(own,))
    monkeypatch.setenv("DICOFLEX_SERVING", settings.model_dump_json())
    for app in (create(settings), from_environment()):
        assert asyncio.run(allowed(app, own)) == own
        assert asyncio.run(allowed(app, "https://other.example")) is None
    assert asyncio.run(allowed(create(Settings(models=models)), own)) is None
