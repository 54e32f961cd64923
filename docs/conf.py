"""Sphinx configuration: Markdown pages, and a reference that is generated from the package."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from reference import write_reference  # next to this file
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

project = "pytest-queryeval"
author = "the authors of pytest-queryeval"
version = release = version_of("pytest-queryeval")

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["ci", "pictures"]
default_role = "code"  # docstrings have Markdown's `code`
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types in signatures need no page of their own
suppress_warnings = ["myst.header"]

myst_heading_anchors = 3
myst_links_external_new_tab = False

autodoc_typehints = "signature"
autodoc_member_order = "bysource"

html_theme = "furo"
html_title = "pytest-queryeval"
html_show_sourcelink = False
html_show_copyright = False

# Pages for those who work on the package itself, which a search of those who use it does not find.
INTERNAL_PAGES = ("developers/", "generated/changelog")


def escape_bars(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Keep `|x|` in docstrings, which Sphinx would take for a substitution."""
    lines[:] = [line.replace("|", "\\|") for line in lines]


def leave_out_of_search(app: Sphinx, environment: BuildEnvironment) -> None:
    """Mark the internal pages, which Sphinx then does not index."""
    for page in environment.found_docs:
        if page.startswith(INTERNAL_PAGES):
            environment.metadata[page]["nosearch"] = True


def setup(app: Sphinx) -> None:
    """Write the generated pages before Sphinx looks for pages."""
    write_reference(Path(__file__).parent / "generated")
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("env-updated", leave_out_of_search)
