"""Challenges that are kept in the user's cache folder, for later runs and for other processes of this one."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from pytest_queryeval.core.answer_json import decode_challenge, encode_challenge
from pytest_queryeval.core.files import KEPT_SECONDS, cache_folder, write_atomically
from pytest_queryeval.core.json_value import JsonValue
from pytest_queryeval.core.model import Challenge

FORMAT = 6  # greater after each change of how challenges are made or written


class ChallengeStore:
    """A file for each challenge, which is removed when no run has used it for 30 days.

    A file that is damaged counts as missing; where none can be written, none is kept.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        with suppress(OSError):
            self._folder = cache_folder("challenges")
            self._drop_unused(self._folder)

    def key(self, *facts: JsonValue) -> str:
        """Return the name of the challenge that depends on these facts, and on the version of this package."""
        content = json.dumps([FORMAT, version("pytest-queryeval"), *facts], sort_keys=True)
        return sha256(content.encode()).hexdigest()

    def load(self, key: str) -> Challenge | None:
        """Return the challenge of that name; None if there is none."""
        if self._folder is None:
            return None
        with suppress(OSError, ValueError, TypeError, KeyError):
            path = self._folder / f"{key}.json"
            challenge = decode_challenge(json.loads(path.read_bytes()))
            os.utime(path)
            return challenge
        return None

    def save(self, key: str, challenge: Challenge) -> None:
        """Keep a challenge under that name."""
        if self._folder is not None:
            with suppress(OSError, TypeError):
                write_atomically(self._folder / f"{key}.json", json.dumps(encode_challenge(challenge)).encode())

    def _drop_unused(self, folder: Path) -> None:
        oldest = time.time() - KEPT_SECONDS
        for path in folder.glob("*.json"):
            with suppress(OSError):  # another process may be removing it too
                if path.stat().st_mtime < oldest:
                    path.unlink()
