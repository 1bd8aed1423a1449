"""Settings of the documentation's site: `make docs` builds it into docs/_build/html, without a network."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import reference_pages  # noqa: E402

project = "dicoflex"
author = "the dicoflex developers"
release = version = version_of("dicoflex")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "reference/generated/*.md",
    "gallery/*.py",
    "gallery/*.ipynb",
    "gallery/sg_execution_times.rst",
    "sg_execution_times.rst",
]
default_role = "literal"

# The tutorial that saves the model which the others load.
FIRST = "tutorials/refusal-to-plan"

# Pages: MyST Markdown. Those with code cells are executed when the site is built, and an error ends the build.
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "auto"
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

# Reference: from the docstrings, whose examples the tests run.
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False
toc_object_entries = False

# The gallery: each script of examples/ is run, and shown with the picture that it draws.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "reset_modules": ("matplotlib",),
    "matplotlib_animations": False,
}

html_theme = "furo"
html_title = f"dicoflex {release}"
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "native"


def setup(app: Any) -> None:
    """Write the pages of the reference that follow from the source, before the pages are read."""
    reference_pages.write(HERE / "reference" / "generated")
    app.connect("env-before-read-docs", lambda _app, _env, names: names.sort(key=lambda name: name != FIRST))
    app.connect("autodoc-process-docstring", reference_pages.as_rst, priority=400)
