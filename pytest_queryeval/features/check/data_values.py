"""Texts that a gold compares columns with and the data does not have, but has in another spelling."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pytest_queryeval.features.check.gold_run import GoldRun
from pytest_queryeval.text.formatting import pluralize

MIN_LETTERS = 6  # of a text in which one letter more, less or other is a misspelling
_DIGITS = re.compile(r"\d+")


def value_not_in_data(gold: GoldRun) -> Iterator[str]:
    """Find texts that the compared column does not have, but does in other letter case, spacing or spelling."""
    if gold.table is None or gold.query is None or gold.kind.name != "sql":
        return
    from pytest_queryeval.languages.sql.compared_texts import MAX_VALUES, compared_texts

    schema = gold.session.schema(gold.case)
    all_compared = [*compared_texts(gold.query, gold.case.settings.dialect, schema)]
    texts_of_gold = {(compared.column.lower(), compared.text) for compared in all_compared}
    for compared in all_compared:
        alike = gold.run(compared.alike_query)
        if alike is None or any(is_equal for _, _, is_equal in alike.rows):
            continue
        counts = [(count, value) for value, count, _ in alike.rows]
        if not counts:
            values = gold.run(compared.values_query)
            if values is None or len(values.rows) > MAX_VALUES:
                continue
            counts = [(count, value) for value, count in values.rows if _is_respelling(compared.text, value)]
        numbers = [
            (count, value)
            for count, value in counts
            if isinstance(count, int)
            and isinstance(value, str)
            and (compared.column.lower(), value) not in texts_of_gold  # gold asks for both spellings
        ]
        if numbers:
            count, value = max(numbers)
            yield (
                f"'{compared.text}' is not in {compared.column}, '{value}' is, {pluralize(count, 'time')}: "
                "fix the gold, or the data"
            )


def _is_respelling(text: str, value: object) -> bool:
    """Return whether a value differs from a text in marks, blanks and accents only, or in one letter of a long text."""
    if not isinstance(value, str):
        return False
    word, other_word = _letters(text), _letters(value)
    if word == other_word:
        return word != ""
    if min(len(word), len(other_word)) < MIN_LETTERS or _DIGITS.findall(word) != _DIGITS.findall(other_word):
        return False
    return _differ_in_one_letter(word, other_word)


def _letters(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in decomposed if character.isalnum())


def _differ_in_one_letter(first: str, second: str) -> bool:
    """Return whether one letter more, less or other makes one text of the other.

    >>> _differ_in_one_letter("germany", "germny"), _differ_in_one_letter("germany", "gernamy")
    (True, False)
    """
    while first and second and first[0] == second[0]:
        first, second = first[1:], second[1:]
    return second[1:] in (first, first[1:]) or second == first[1:]
