"""The documentation's site builds without a warning and without a network, and its reference has every public name."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PYTHON = re.compile(r"^```(?:python|\{code-cell\})\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built pages. Everything that they show was executed on the way."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    env = {**os.environ, "DICOFLEX_THREADS": "1"}
    paths = ["-d", str(folder / "doctrees"), str(ROOT / "docs"), str(folder / "html")]
    built = subprocess.run([*command, *paths], env=env, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / "html"


def modules() -> dict[str, str]:
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        return dict(importlib.import_module("reference_pages").MODULES)
    finally:
        sys.path.remove(str(ROOT / "docs"))


def documented(site: Path) -> set[str]:
    """The names that the site can be linked to by, from the inventory that Sphinx writes."""
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    return {name for kind, entries in inventory.data.items() if kind.startswith("py:") for name in entries}


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    public = {
        f"{module}.{name}"
        for module in modules()
        for name in importlib.import_module(module).__all__
        if not name.startswith("__")
    }
    assert len(public) > 80
    assert sorted(public - documented(site)) == []


def test_what_pages_import_is_in_the_reference() -> None:
    known, private = set(modules()), {"dicoflex.runtime", "dicoflex.learning", "dicoflex.answers", "dicoflex.model"}
    used = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("tutorials/*.md"), *(ROOT / "docs").glob("how-to/*.md")]:
        for block in PYTHON.findall(page.read_text(encoding="utf-8")):
            used |= set(re.findall(r"^(?:>>> |\.\.\. )?(?:from|import) (dicoflex[\w.]*)", block, flags=re.MULTILINE))
    assert "dicoflex" in used
    assert sorted(used - known - private) == []


class Loads(HTMLParser):
    """What a page fetches by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "video"):
            self.found.append(own.get("src") or "")
        if tag == "link" and own.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.found.append(own.get("href") or "")


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        assert [url for url in loads.found if re.match(r"(https?:)?//", url)] == [], page.name


def test_the_search_works_without_a_server(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex(")
    assert '"how-to/constraints"' in index


def test_pages_show_what_was_computed(site: Path) -> None:
    page = (site / "tutorials" / "refusal-to-plan.html").read_text(encoding="utf-8")
    assert "cell_output" in page
    assert "Traceback" not in page
