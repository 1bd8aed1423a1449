"""Millions of rows: record batches, folders of files, processes, clusters. See docs/how-to/batch.md."""

from __future__ import annotations

__all__ = ["BatchPlan", "BatchReport", "Explained", "explain_batches", "explain_files", "plan_files"]

from dicoflex.runtime.extras import extra

with extra("batch", to="explain batches and files"):
    import pyarrow  # noqa: F401

from dicoflex.batch.explaining import Explained, explain_batches
from dicoflex.batch.reporting import BatchPlan, BatchReport
from dicoflex.batch.running import explain_files, plan_files
