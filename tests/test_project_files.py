"""What people expect beside the code: who to cite, how to report, which version; and that none of it disagrees."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import dicoflex

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_written_down_once() -> None:
    assert dicoflex.__version__ == PROJECT["version"]
    written = re.compile(rf"[\"' ]v?{re.escape(PROJECT['version'])}[\"'\s]")
    places = [ROOT / "CITATION.cff", *(ROOT / "src").rglob("*.py"), *(ROOT / "docs").glob("*.py")]
    assert [path.name for path in places if written.search(path.read_text(encoding="utf-8"))] == []


def test_the_citation_is_complete() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors", "preferred-citation"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    assert citation["preferred-citation"]["year"] == 2025


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md")), ids=lambda path: path.stem)
def test_issue_templates_have_what_the_form_needs(path: Path) -> None:
    head = path.read_text(encoding="utf-8").split("---")[1]
    assert {"name", "about"} <= set(yaml.safe_load(head))


def test_every_extra_is_in_the_page_on_installing() -> None:
    page = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
    for_users = set(PROJECT["optional-dependencies"]) - {"test", "bench", "docs"}
    assert sorted(name for name in for_users if f"dicoflex[{name}" not in page) == []


def test_the_readme_fits_on_a_page_or_two() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120
