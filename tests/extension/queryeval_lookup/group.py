"""Cases by the first word of their gold query, such as `GET`."""

from pytest_queryeval.core.groups import Group
from pytest_queryeval.core.model import Case


def first_words(case: Case, path: str) -> list[str]:
    return (case.golds[0].query or "").split()[:1]


FIRST_WORD = Group(values=first_words, heading="first word", plural="first words", preposition="beginning with")
