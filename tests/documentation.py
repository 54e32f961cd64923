"""The pages of the documentation, by name."""

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def page(name):
    """The text of the page with this name, in whichever folder of the documentation it is but that of tutorials."""
    (path,) = (path for path in DOCS.rglob(f"{name}.md") if path.parent.name not in ("generated", "tutorials"))
    return path.read_text(encoding="utf-8")
