"""Every link between pages leads somewhere, to a file of the repository and to a heading where it names one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part == "node_modules" for part in page.relative_to(ROOT).parts[:-1])
)
BLOCK = re.compile(r"^(```+)[^\n]*\n.*?^\1[ \t]*$", flags=re.DOTALL | re.MULTILINE)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", flags=re.MULTILINE)


@cache
def prose(page: Path) -> str:
    """The page without its blocks and its code, whose brackets are no links."""
    return re.sub(r"`[^`\n]*`", "``", BLOCK.sub("", page.read_text(encoding="utf-8")))


def links(page: Path) -> Iterator[tuple[str, str]]:
    """Path and heading of every link that stays in the repository."""
    for target in LINK.findall(prose(page)):
        if not re.match(r"[a-z][a-z+.-]*:", target):
            path, _, heading = target.partition("#")
            yield path, heading


@cache
def headings(page: Path) -> set[str]:
    """The names by which links know the headings of a page: small letters, words joined by hyphens."""
    titles = HEADING.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for path, heading in links(page):
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{page.name} links to {path}, which is not there"
        assert found.is_relative_to(ROOT), f"{page.name} links to {path}, outside of the repository"
        assert not heading or heading in headings(found), f"{page.name} links to {path}#{heading}; no such heading"


def test_pages_and_links_are_found() -> None:
    names = [page.relative_to(ROOT).as_posix() for page in PAGES]
    assert {"README.md", "CHANGELOG.md", "docs/how-to/guide.md", "benchmarks/results/quality.md"} <= set(names)
    assert ("docs/how-to/constraints.md", "") in set(links(ROOT / "README.md"))
    assert not any(name.startswith(".venv") for name in names)


def test_what_is_no_link_is_passed_over(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title: `x`!\n[a](b.md#c) ![](d.png) [e](https://f) `g[0](h)`\n```\n[i](j)\n```\n")
    assert list(links(page)) == [("b.md", "c"), ("d.png", "")]
    assert headings(page) == {"a-title-x"}
