"""`python -m experiments`, from the folder `benchmarks`: the same as `dicoflex bench`."""

from __future__ import annotations

from experiments import main

main()
