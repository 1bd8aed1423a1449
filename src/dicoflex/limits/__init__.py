"""Constraints for the rows of one call, in arrays."""

from __future__ import annotations

__all__ = ["SLACK"]

SLACK = 1e-9
"""Room for rounding where sums are compared."""
