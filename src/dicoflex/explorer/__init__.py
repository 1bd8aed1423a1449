"""The explorer: what a page of limits and plans asks of a model, as plain messages; it knows no HTTP."""

from __future__ import annotations

__all__ = ["Explorer", "Texts"]

from dicoflex.explorer.explorer import Explorer
from dicoflex.explorer.texts import Texts
