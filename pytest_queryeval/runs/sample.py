"""Random samples of the cases of a run, in proportion to their files, and their random order."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from random import Random


def sample_of(nodeids: Sequence[str], number: int, seed: int) -> set[str]:
    """Return `number` of the node ids, from each file in proportion; the same ones in every process.

    It is a systematic sample: cases at equal distances, where those of a file stand together in random order.
    """

    def place(nodeid: str) -> tuple[str, bytes]:
        return nodeid.partition("::")[0], sha256(f"{seed} {nodeid}".encode(errors="backslashreplace")).digest()

    ordered = sorted(nodeids, key=place)
    start = Random(seed).randrange(len(ordered)) if ordered else 0  # noqa: S311 - no secret
    number = min(number, len(ordered))
    return {ordered[(at * len(ordered) + start) // number] for at in range(number)}


def random_place(nodeid: str, seed: int) -> bytes:
    """Return a random sort key of a case, which depends on the seed and the case only."""
    return sha256(f"stop {seed} {nodeid}".encode(errors="backslashreplace")).digest()
