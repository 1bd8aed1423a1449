"""What a model gives away: what its file says about people, and what attacks on it find."""

from __future__ import annotations

__all__ = ["LeakReport", "Revealed", "leak", "odd_rows", "reveals"]

from dicoflex.audit.leak import LeakReport, leak
from dicoflex.audit.odd_rows import odd_rows
from dicoflex.audit.reveals import Revealed, reveals
