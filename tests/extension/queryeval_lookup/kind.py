"""Queries such as `GET apples, pears`, which a dictionary answers."""

from pytest_queryeval.languages.extract_query import Language
from pytest_queryeval.languages.query_language import QueryLanguage


class Lookup(QueryLanguage):
    """The kind `lookup`."""

    name = "lookup"
    language = Language(name="lookup", keywords="GET ALL")


LOOKUP = Lookup()
