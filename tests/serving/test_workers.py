"""Several workers, keys, and an end that fails nobody."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import uvicorn
from prometheus_client.parser import text_string_to_metric_families

from dicoflex.cli import main
from dicoflex.explainer import Explainer
from dicoflex.serving import Settings, serve
from serving.running import COMMAND, Running, question, started

EXPLAIN = "/v1/models/plain/explain"
REQUESTS = 1000


@pytest.mark.slow
def test_two_workers_keys_and_a_rolling_restart(models: Path, tmp_path: Path, plain: Explainer) -> None:
    keys = tmp_path / "keys"
    keys.write_text(f"team {hashlib.sha256(b'secret').hexdigest()} plain\n")
    body = question(plain)
    with started(models, "--keys", str(keys), "--metrics-port", "0", workers=2) as server:
        metrics = next(line["url"] for line in server.log if line["event"] == "metrics")
        with server.client() as nobody:
            assert nobody.get("/health/ready").status_code == 200
            assert nobody.get("/v1/models").status_code == 401
            assert nobody.post(EXPLAIN, json=body).status_code == 401
        with server.client(headers={"Authorization": "Bearer secret"}) as http:
            assert http.post("/v1/models/loans/explain", json=body).status_code == 403
            server.process.send_signal(signal.SIGHUP)
            statuses = asked_while(server, http, body)
            assert set(statuses) == {200}
            assert len(statuses) >= REQUESTS
            assert http.get("/metrics").status_code == 404
            families = text_string_to_metric_families(httpx.get(metrics, trust_env=False).text)
            counts = [
                sample.value for family in families for sample in family.samples
                if sample.name == "dicoflex_requests_total" and sample.labels["route"].endswith("/explain")
                and sample.labels["status"] == "200"
            ]  # fmt: skip
            assert sum(counts) == len(statuses)
        assert server.end() == 0


def asked_while(server: Running, http: httpx.Client, body: object) -> list[int]:
    """The statuses of requests on eight connections: until both workers were replaced, and `REQUESTS` at least."""
    over: list[bool] = []

    def ask() -> list[int]:
        found = []
        while not over or len(found) < REQUESTS / 8:
            found.append(http.post(EXPLAIN, json=body).status_code)
        return found

    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(ask) for _ in range(8)]
        try:
            for _ in range(2):
                server.logged("stopped", within=60)
            time.sleep(0.5)
        finally:
            over.append(True)
        return [status for one in waiting for status in one.result()]


@pytest.mark.slow
def test_told_to_end_a_server_answers_what_was_asked(models: Path, plain: Explainer) -> None:
    with started(models) as server, server.client() as http:
        body = question(plain, 200, n=5)
        with ThreadPoolExecutor(6) as pool:
            waiting = [pool.submit(http.post, EXPLAIN, json=body) for _ in range(6)]
            server.logged("request", within=60)
            server.process.send_signal(signal.SIGTERM)
            server.logged("draining", within=10)
            ready = http.get("/health/ready")
            assert (ready.status_code, ready.headers["connection"]) == (503, "close")
            assert ready.json()["code"] == "draining"
            assert [one.result().status_code for one in waiting] == [200] * 6
        assert server.process.wait(30) == 0


STUCK = """
import threading
from dicoflex.serving.registry import Registry
scan, scanned = Registry.scan, []
def stuck(self):
    if scanned:
        print('{"event": "stuck"}', flush=True)
        threading.Event().wait()
    scanned.append(scan(self))
Registry.scan = stuck
"""


@pytest.mark.slow
def test_told_to_end_while_models_are_loaded_anew_a_server_ends(models: Path) -> None:
    """SIGTERM during SIGHUP waited for over a minute."""
    with started(models, command=f"{STUCK}{COMMAND}") as server:
        server.process.send_signal(signal.SIGHUP)
        server.logged("stuck")
        server.process.send_signal(signal.SIGTERM)
        server.logged("draining")
        assert server.process.wait(60) == 0


def test_no_piece_of_an_answer_waits_for_another(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def run(_: uvicorn.Server, sockets: list[socket.socket]) -> None:
        with socket.create_connection(sockets[0].getsockname()) as _, sockets[0].accept()[0] as accepted:
            seen.append(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(uvicorn.Server, "run", run)
    monkeypatch.setenv("DICOFLEX_THREADS", os.environ.get("DICOFLEX_THREADS", "1"))
    monkeypatch.setenv("DICOFLEX_SERVING", "")
    before = signal.getsignal(signal.SIGTERM)
    try:
        serve(Settings(models=models, port=0))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [1]


def test_another_address_without_keys_is_refused(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(models), "--host", "0.0.0.0"]) == 2
    assert main(["serve", str(models / "none")]) == 2
    assert main(["serve", str(models), "--origin", "*"]) == 2
    assert main(["serve", str(models), "--audit-values"]) == 2
    told = capsys.readouterr().err
    assert "would let anybody ask" in told
    assert "--open" in told


def test_without_its_packages_serving_says_what_to_install(models: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['uvicorn'] = None\n"
        f"from dicoflex.cli import main\nsys.exit(main(['serve', {str(models)!r}]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True)
    assert ran.returncode == 2
    assert 'to serve models, the package uvicorn is needed: pip install "dicoflex[serve]"' in ran.stderr
