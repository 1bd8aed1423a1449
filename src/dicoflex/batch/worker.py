"""A worker process: a job and then parts come in, results go out; it ends with the process that began it."""

from __future__ import annotations

__all__ = ["main"]

import os
import pickle
import sys
import threading
from queue import SimpleQueue
from typing import Any


def main() -> None:
    """Work off parts until there are no more."""
    inbox: SimpleQueue[Any] = SimpleQueue()
    # What prints must not stand among the results.
    outbox = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_receive, args=(sys.stdin.buffer, inbox), daemon=True).start()
    job = inbox.get()
    _send(outbox, job if isinstance(job, Exception) else "ready")
    while True:
        span = inbox.get()
        try:
            result = job.run(span)
        except Exception as error:
            result = error
        _send(outbox, result)


def _receive(stream: Any, inbox: SimpleQueue[Any]) -> None:
    """Read on while a part is worked off: when the stream ends, whoever began this process is gone."""
    while True:
        try:
            inbox.put(pickle.load(stream))
        except EOFError:
            os._exit(0)
        except Exception as error:
            inbox.put(error)
            return


def _send(outbox: Any, message: Any) -> None:
    try:
        sent = pickle.dumps(message)
    except Exception:
        sent = pickle.dumps(RuntimeError(f"{type(message).__name__}: {message}"))
    outbox.write(sent)
    outbox.flush()
