"""The page that ships is what its source makes, is small, and says everything in both languages."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FRONT = ROOT / "front"
STATIC = ROOT / "src" / "dicoflex" / "explorer" / "static"
AT_ONCE = ["explorer.css", "explorer.js", "explorer.svg", "index.html"]
LATER = ["de.json", "later.js", "licences.txt", "widget.js"]
"""Words of another language, where it is spoken; what dialogs and drawers show, once the plans are there; and the frame
of a notebook's cell."""
SHIPPED = sorted([*AT_ONCE, *LATER])
MOST_BYTES = 44_000
MOST_LATER = 10_000


def texts(language: str) -> dict[str, str]:
    files = [f"{language}.json", *(["en-later.json"] if language == "en" else [])]
    return {
        key: text for name in files for key, text in json.loads((FRONT / "texts" / name).read_text("utf-8")).items()
    }


def weight(names: list[str]) -> int:
    """What files weigh as they are sent."""
    return sum(len(gzip.compress((STATIC / name).read_bytes(), 9)) for name in names)


@pytest.mark.slow
def test_a_rebuild_makes_the_same_files(tmp_path: Path) -> None:
    if shutil.which("node") is None or not (FRONT / "node_modules" / "esbuild").is_dir():
        say = "Node or the page's modules are missing: `make ui` installs them where npm is present"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(say)
    subprocess.run(["node", "build.mjs", str(tmp_path)], cwd=FRONT, check=True, capture_output=True)
    for name in SHIPPED:
        assert (tmp_path / name).read_bytes() == (STATIC / name).read_bytes(), (
            f"{name} is older than front/: run `make ui`"
        )


def test_the_page_is_small() -> None:
    assert sorted(path.name for path in STATIC.iterdir()) == SHIPPED
    assert weight(AT_ONCE) <= MOST_BYTES
    assert max(weight([name]) for name in LATER) <= MOST_LATER


def test_licences_of_others_are_kept() -> None:
    text = (STATIC / "licences.txt").read_text(encoding="utf-8")
    for part in ("preact", "@preact/signals", "Permission is hereby granted"):
        assert part in text
    for name in {*SHIPPED} - {"widget.js"}:  # which holds code of this package alone
        assert not name.endswith(".js") or "licences.txt" in (STATIC / name).read_text(encoding="utf-8")


def test_the_page_loads_nothing_from_elsewhere() -> None:
    """No address of another host but the names of formats, and no style or script in the markup."""
    document = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|<style|\sstyle=|\son\w+=", document)
    assert not re.search(r"url\(|@import", (STATIC / "explorer.css").read_text(encoding="utf-8"))


def test_both_languages_say_the_same() -> None:
    english, german = texts("en"), texts("de")
    assert list(english) == list(german)
    for key, text in english.items():
        places = set(re.findall(r"\{(\w+)\}", text)) - {"aPerson", "person"}
        assert places == set(re.findall(r"\{(\w+)\}", german[key])) - {"aPerson", "person"}, key
        assert text.count("|") == german[key].count("|"), key


def test_every_text_is_used_and_every_text_is_there() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in FRONT.glob("src/*.js"))
    said = set(re.findall(r"""["']([a-zA-Z]+(?:\.[a-zA-Z/?\[\]]+)*)["']""", source))
    openings = tuple(re.findall(r"`([a-z]+\.)\$\{", source))
    unused = [key for key in texts("en") if key not in said and not key.startswith(openings)]
    assert unused == []
    asked = set(re.findall(r"""\b(?:t|parts)\("([^"]+)\"""", source))
    assert asked <= set(texts("en"))
