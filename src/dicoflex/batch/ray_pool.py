"""Parts worked off by the actors of a Ray cluster; an actor that dies, with its node or alone, is replaced."""

from __future__ import annotations

__all__ = ["RayPool"]

import os
from typing import Any, Self

from dicoflex.batch.pools import Event, Lost, outcome_of
from dicoflex.batch.sources import Span
from dicoflex.batch.work import Job
from dicoflex.errors import SettingError
from dicoflex.runtime.extras import extra

PATIENCE = 5.0
"""Seconds to wait for a part before idle actors are ended."""


class RayPool:
    """Actors of a Ray cluster, one processor each; the cluster is started here if there is no address."""

    def __init__(self, job: Job, workers: int | None, address: str | None) -> None:
        # Ray reports its use to its makers unless it is told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        with extra("ray", to="use a Ray cluster"):
            import ray
        self.ray, self.job, self.address, self.wanted = ray, job, address, workers
        self.slots = 1
        self.idle: list[Any] = []
        self.running: dict[Any, tuple[Span, Any]] = {}

    def __enter__(self) -> Self:
        ray = self.ray
        self.owned = not ray.is_initialized()
        if self.owned:
            local = {} if self.address else {"num_cpus": self.wanted, "include_dashboard": False}
            ray.init(address=self.address, log_to_driver=False, logging_level="error", **local)
        processors = int(ray.cluster_resources().get("CPU", 0))
        if processors < 1:
            raise SettingError(
                "the Ray cluster has no processor for an actor; start a node with num_cpus of at least 1"
            )
        self.slots = min(self.wanted or processors, processors)
        self.job_ref = ray.put(self.job)
        self.Actor = ray.remote(num_cpus=1, max_restarts=0, max_task_retries=0)(_Worker)
        return self

    def __exit__(self, *_: Any) -> None:
        for actor in [*self.idle, *(actor for _, actor in self.running.values())]:
            self.ray.kill(actor)
        if self.owned:
            self.ray.shutdown()

    def start(self, span: Span) -> None:
        """Begin a part."""
        actor = self.idle.pop() if self.idle else self.Actor.remote(self.job_ref)
        self.running[actor.run.remote(span)] = span, actor

    def wait(self) -> Event:
        """The next part that ended, and what came of it."""
        errors = self.ray.exceptions
        while not (found := self.ray.wait(list(self.running), timeout=PATIENCE)[0]):
            self._free()
        (done,) = found
        span, actor = self.running.pop(done)
        try:
            outcome = self.ray.get(done)
            self.idle.append(actor)
        except (errors.RayActorError, errors.WorkerCrashedError, errors.ObjectLostError) as error:
            outcome = Lost(f"was lost ({type(error).__name__})")
        return span, outcome

    def _free(self) -> None:
        """End actors that have nothing to do: where a node is gone, others may wait for their processors."""
        while self.idle:
            self.ray.kill(self.idle.pop())


class _Worker:
    """A worker on one processor of a cluster."""

    def __init__(self, job: Job) -> None:
        from dicoflex.runtime.threads import use_threads

        use_threads(1)
        self.job = job

    def run(self, span: Span) -> Any:
        return outcome_of(self.job, span)
