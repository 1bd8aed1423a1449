"""The command line: demo, schema, fit, explain, inspect; signatures, serving, the audit log."""

from __future__ import annotations

__all__ = ["main"]

from dicoflex.cli.entry import main
