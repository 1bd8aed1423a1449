"""All that a server process has: its models, its queue, its keys, its log."""

from __future__ import annotations

__all__ = ["State"]

import asyncio
import contextlib
import signal
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dicoflex.answers.asking import explain
from dicoflex.examples import rows_like
from dicoflex.model import Model
from dicoflex.request import Request
from dicoflex.serving.audit import AuditLog
from dicoflex.serving.gathering import Gatherer
from dicoflex.serving.keys import Keys
from dicoflex.serving.monitoring import log
from dicoflex.serving.registry import Registry
from dicoflex.serving.server import LOADING
from dicoflex.serving.settings import Settings


class State:
    """What the routes share."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.keys = Keys(settings.keys)
        self.registry = Registry(settings.models, trust=settings.trust, ready=_try_out)
        self.audit = None if settings.audit is None else AuditLog(settings.audit, key=settings.audit_key)
        self.gatherer: Gatherer | None = None
        self.is_draining = False

    @property
    def is_ready(self) -> bool:
        """Whether all models are loaded, and the server is not about to stop."""
        return self.registry.is_complete and not self.is_draining

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The server's own tasks, for as long as it lives."""
        self.gatherer = Gatherer(most_waiting=self.settings.max_waiting, together=self.settings.gather)
        self._listen_to_signals()
        if self.settings.workers > 1:
            # A worker takes the place of another when it is ready, not before.
            await self._refreshed()
        tasks = [asyncio.create_task(self.gatherer.run()), asyncio.create_task(self._watch())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            self.gatherer.close()
            if self.audit is not None:
                self.audit.close()
            log.info("stopped")

    def _listen_to_signals(self) -> None:
        """Told to end, a server still answers for a while, and tells callers with each answer to connect anew.

        So nobody's request meets a connection that is being closed. SIGHUP looks at models and keys at once.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        loop, ending = asyncio.get_running_loop(), signal.getsignal(signal.SIGTERM)
        if not callable(ending):
            return

        def drain() -> None:
            self.is_draining = True
            log.info("draining", seconds=self.settings.drain_seconds)
            loop.call_later(self.settings.drain_seconds, ending, signal.SIGTERM, None)

        loop.add_signal_handler(signal.SIGTERM, drain)
        if self.settings.workers == 1:
            loop.add_signal_handler(signal.SIGHUP, lambda: self._begin_refresh(loop))

    async def _watch(self) -> None:
        """Load the models, then look again and again whether they, or the keys, have changed."""
        while True:
            try:
                await self._refreshed()
            except Exception:
                log.exception("the folder of models can't be read")
            await asyncio.sleep(self.settings.poll_seconds)

    async def _refreshed(self) -> None:
        """Wait until models and keys are up to date."""
        loop = asyncio.get_running_loop()
        await self._begin_refresh(loop)

    def _begin_refresh(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[None]:
        """Bring models and keys up to date in a thread that nobody waits for when the server ends.

        A thread of an executor would be: a large model takes its time to load.
        """
        done: asyncio.Future[None] = loop.create_future()

        def settle(error: Exception | None) -> None:
            if done.cancelled():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        def run() -> None:
            error: Exception | None = None
            try:
                self.refresh()
            except Exception as found:
                error = found
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, error)

        threading.Thread(target=run, name=LOADING, daemon=True).start()
        return done

    def refresh(self) -> None:
        """Bring models and keys up to date with their files."""
        self.keys.refresh()
        was = self.registry.is_complete
        self.registry.scan()
        if not was:
            log.info("ready", models=sorted(self.registry.served), failed=sorted(self.registry.failed))


def _try_out(model: Model) -> None:
    """Ask a model once before it is served: what can't answer is not ready."""
    explain(model, rows_like(model.schema, 1), Request.of(target=model.example_target, n=1, random_state=0))
