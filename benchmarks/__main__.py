"""`python -m benchmarks`, from the root of a checkout: the same as `dicoflex bench`."""

from __future__ import annotations

from benchmarks.command import main

main()
