"""Sphinx: pages in Markdown (myst), the theme furo, the reference from docstrings and declarations. `make docs` builds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

import declared  # noqa: E402

project = "gquery"
copyright = "the gquery authors"  # noqa: A001
author = "the gquery authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_ext", "_generated"]
default_role = "py:obj"
html_theme = "furo"
html_title = "gquery"
html_static_path: list[str] = []
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True, "inherited-members": True}
suppress_warnings = ["misc.highlighting_failure"]


def setup(app: Any) -> None:
    """Write the pages that come from declarations before the others are read."""
    app.connect("builder-inited", lambda _: declared.write(HERE / "_generated"))
