"""The server: typed answers over HTTP."""

from __future__ import annotations

__all__ = ["Settings", "serve"]

from dicoflex.runtime.extras import extra
from dicoflex.serving.settings import Settings

with extra("serve", to="serve models"):
    from dicoflex.serving.server import serve
