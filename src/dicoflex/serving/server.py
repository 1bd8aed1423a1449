"""The server as processes: where it listens, and its workers."""

from __future__ import annotations

__all__ = ["LOADING", "SETTINGS_VARIABLE", "listen", "serve"]

import os
import signal
import socket
import sys
import tempfile
import threading

import uvicorn
from uvicorn.supervisors import Multiprocess

from dicoflex.errors import SettingError
from dicoflex.runtime.threads import THREADS_VARIABLE
from dicoflex.serving.audit import AuditLog
from dicoflex.serving.connections import BoundedProtocol
from dicoflex.serving.settings import Settings

FACTORY = "dicoflex.serving.app:from_environment"
SETTINGS_VARIABLE = "DICOFLEX_SERVING"
SECONDS_TO_START = 300
KEEP_ALIVE = 75  # longer than proxies keep theirs, so that it is they who close
BACKLOG = 2048
LOADING = "loading models"
"""The name of the threads that bring models up to date."""


def serve(settings: Settings) -> None:
    """Serve until told to end (SIGTERM, SIGINT); with several workers SIGHUP replaces them one after the other."""
    if not settings.models.exists():
        raise SettingError(f"{settings.models} is neither a folder nor a model file; give the folder of the models")
    if settings.audit is not None:
        # Here, and not in a worker: there it would be a server that never gets ready.
        AuditLog(settings.audit, key=settings.audit_key).close()
    # One thread each: processes are what uses the cores.
    os.environ.setdefault(THREADS_VARIABLE, "1")
    os.environ[SETTINGS_VARIABLE] = settings.model_dump_json()
    listening = listen(settings.host, settings.port)
    config = uvicorn.Config(
        FACTORY,
        factory=True,
        workers=settings.workers,
        http=BoundedProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=settings.grace_seconds,
        timeout_worker_healthcheck=SECONDS_TO_START,
    )
    # uvicorn passes the signal on that ended it, which is no error.
    signal.signal(signal.SIGTERM, _end)
    if settings.workers == 1:
        _serve_metrics(settings)
        _say(listening, settings)
        uvicorn.Server(config).run(sockets=[listening])
        return
    with tempfile.TemporaryDirectory(prefix="dicoflex-metrics-") as folder:
        # The workers count into files, from which any of them tells the sum.
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        _serve_metrics(settings)
        _say(listening, settings)
        Multiprocess(config, sockets=[listening]).run()


def _end(*_: object) -> None:
    """End the process without an error, and without waiting for models that are still being loaded.

    Their thread may be within machine code, which must not meet an interpreter that is being taken down.
    """
    if any(thread.name == LOADING for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
    sys.exit(0)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; an address that can't be had is a `SettingError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # An answer is sent in two pieces, and without this the second one waits until the first is acknowledged, which a
    # caller's system puts off for 40 ms; connections have it from the socket that they came by.
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        raise SettingError(f"can't listen on {host}, port {port}: {error.strerror}") from None
    found.listen(BACKLOG)
    found.set_inheritable(True)
    return found


def _serve_metrics(settings: Settings) -> None:
    """Tell the counts on a port of their own, if that is asked for."""
    if settings.metrics_port is None:
        return
    from dicoflex.serving.monitoring import log, serve_page

    try:
        port = serve_page(settings.metrics_port, settings.host)
    except OSError as error:
        text = f"can't listen on {settings.host}, port {settings.metrics_port}: {error.strerror}"
        raise SettingError(f"{text}; choose another --metrics-port") from None
    log.info("metrics", url=f"http://{_shown(settings.host)}:{port}/metrics")


def _shown(host: str) -> str:
    """An address as URLs have it."""
    return f"[{host}]" if ":" in host else host


def _say(listening: socket.socket, settings: Settings) -> None:
    from dicoflex.serving.monitoring import log

    host, port = listening.getsockname()[:2]
    log.info("listening", url=f"http://{_shown(host)}:{port}", models=str(settings.models), workers=settings.workers)
