"""The type of the fixture `records`, which reads the records of published evaluators."""

from collections.abc import Callable
from typing import Any

Records = Callable[[str], list[dict[str, Any]]]
