"""The tables of data: how pages call them, what is frozen in them, and by which words the paper's tables name them."""

from __future__ import annotations

__all__ = [
    "ADULT", "BANK", "DEFAULT", "GENERATED", "GERMAN", "GMC", "LENDING_CLUB", "MAIN", "TABLES", "TWO_MOONS", "Table",
]  # fmt: skip

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """What the benchmarks know of a table beyond its recipe in `dicoflex.datasets`.

    frozen: features that are hard to change, for draws that must leave them alone. printed: words in the first column
    of the paper's tables.
    """

    title: str
    frozen: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()


TABLES: dict[str, Table] = {
    "adult": Table("Adult", ("age", "race", "sex"), ("Adult",)),
    "bank": Table("Bank", ("age", "job", "marital"), ("Bank",)),
    "default": Table("Default", ("SEX", "MARRIAGE", "AGE"), ("Default",)),
    "gmc": Table("GMC", ("age", "NumberOfDependents", "NumberRealEstateLoansOrLines"), ("GMC",)),
    "lending-club": Table("Lending Club", ("emp_length", "home_ownership", "annual_inc"), ("Lending", "Club")),
    "german": Table("German Credit", printed=("German", "Credit")),
    "two-moons": Table("Two moons"),
    "generated": Table("Generated, four continuous columns"),
}
ADULT, BANK, DEFAULT, GMC, LENDING_CLUB, GERMAN, TWO_MOONS, GENERATED = TABLES
MAIN = (ADULT, BANK, DEFAULT, GMC, LENDING_CLUB)
"""The tables of the paper's main comparison."""
