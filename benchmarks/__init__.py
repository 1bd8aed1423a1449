"""Benchmarks and the paper's experiments: measured cell by cell, kept in a cache, written as pages.

    dicoflex bench all --quick                        a slice of the paper's experiments, in a minute or two
    dicoflex bench comparison --tables adult bank     its main table, on two tables of data (about an hour)
    dicoflex bench all                                all of the paper's (about three hours on one core)
    dicoflex bench quality answers constraints targets speed scale leak    what the paper does not ask

`python -m benchmarks` is the same command. An experiment is a module with `cells`, `measure`, `page` and `figures`;
`registry.EXPERIMENTS` has them all.
"""
