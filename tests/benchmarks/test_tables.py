"""A table's name stands in one place, and what is said of it there is true."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import benchmarks
from benchmarks import paper
from benchmarks.tables import GENERATED, MAIN, TABLES, TWO_MOONS
from dicoflex import datasets
from dicoflex.errors import DataError

ROOT = Path(benchmarks.__file__).parents[1]
# The registry itself, the table that is generated, and the script that makes the shipped tables from UCI's files.
KNOWN = {"tables.py", "embed_data.py", "generated.py"}
MODULES = [path for path in sorted((ROOT / "benchmarks").rglob("*.py")) if path.name not in KNOWN]


@pytest.mark.parametrize("path", [*MODULES, ROOT / "docs" / "build.py"], ids=lambda path: path.stem)
def test_no_other_module_names_a_table(path: Path) -> None:
    tree = ast.parse(path.read_bytes())
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and node.value in TABLES]
    assert [(node.lineno, node.value) for node in names] == []


def test_the_registry_has_every_dataset() -> None:
    assert set(TABLES) == {*datasets.names(), TWO_MOONS, GENERATED}
    assert set(MAIN) < set(TABLES)


@pytest.mark.parametrize("name", MAIN)
def test_frozen_features_are_features_of_the_table(name: str) -> None:
    try:
        schema = datasets.load(name).schema
    except DataError as missing:
        pytest.skip(str(missing))
    assert len(TABLES[name].frozen) == 3
    assert set(TABLES[name].frozen) <= set(schema.names)


def test_the_papers_words_tell_tables_apart() -> None:
    words = [word for table in TABLES.values() for word in table.printed]
    assert len(words) == len(set(words)) == len(paper.DATASETS)
    assert all(table.printed for name, table in TABLES.items() if name not in (TWO_MOONS, GENERATED))


def test_titles_are_different() -> None:
    assert len({table.title for table in TABLES.values()}) == len(TABLES)
