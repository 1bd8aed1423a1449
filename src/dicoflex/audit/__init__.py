"""What a model gives away: what its file says about people, and what attacks on it find."""

from __future__ import annotations

__all__ = ["Effort", "LeakReport", "Revealed", "leak", "model_card", "odd_rows", "reveals"]

from dicoflex.audit.leaking import Effort, LeakReport, leak, odd_rows
from dicoflex.audit.model_cards import model_card
from dicoflex.audit.revealed import Revealed, reveals
