"""Variants of a source: other states of the same database, which distinguish queries that agree on the source."""

from __future__ import annotations

import glob

from pytest_queryeval.core.errors import SourceError
from pytest_queryeval.core.model import Source
from pytest_queryeval.core.setting_validators import TEXT, SettingValidator, is_text
from pytest_queryeval.engines import ENGINES

VARIANTS = "variants"
VARIANTS_SETTING = SettingValidator(is_text, "a pattern of file names, such as variants/*.sqlite", True, shape=TEXT)


def variants_of(source: Source) -> list[Source]:
    """Return the variants that a source names by the pattern `variants`, sorted by file name; none without one.

    The pattern is relative to the source's folder, and `**` matches any folders. What a file is depends on the engine,
    by its `VariantFormat`. Raises `SourceError` for a pattern that matches no file.
    """
    pattern = source.settings.get(VARIANTS)
    if pattern is None:
        return []
    names = sorted(glob.glob(pattern, root_dir=source.folder, recursive=True))  # noqa: PTH207 - Path.glob raises for an absolute pattern
    if not names:
        raise SourceError(
            f"source '{source.name}': no file matches the variants '{pattern}' in {source.folder}: correct the pattern"
        )
    return [
        Source(
            name=name,
            engine=source.engine,
            settings=dict(ENGINES[source.engine].variants.settings(source.settings, name)),
            folder=source.folder,
            location=source.location,
        )
        for name in names
    ]
