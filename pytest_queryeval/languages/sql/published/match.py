"""A pair of queries under Spider's published evaluation, and what its table needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pytest_queryeval.core.case_report import ComponentName, SpiderDetails
from pytest_queryeval.core.db_schema import Schema
from pytest_queryeval.languages.sql.match import Component, exact_match, partial_match
from pytest_queryeval.languages.sql.published.grammar import published_view
from pytest_queryeval.languages.sql.published.normal import comparable_view
from pytest_queryeval.languages.sql.published.table import ScoredPair
from pytest_queryeval.languages.sql.published.tokens import UnreadableQueryError
from pytest_queryeval.languages.sql.view import hardness


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedMatch:
    """The verdict, the hardness of gold, the components; `rejected` says why the grammar does not read predicted."""

    exact: bool
    hardness: str
    components: Mapping[ComponentName, Component]
    rejected: str = ""

    def to_json(self) -> SpiderDetails:
        """Return `details.spider`: of each component the totals of gold and of predicted, and what they share."""
        components = {name: [part.gold_total, part.pred_total, part.count] for name, part in self.components.items()}
        found: SpiderDetails = {"hardness": self.hardness, "exact": self.exact, "components": components}
        if self.rejected:
            found["rejected"] = self.rejected
        return found


def match_as_published(gold: str, predicted: str, schema: Schema) -> PublishedMatch:
    """Compare two queries; raise `UnreadableQueryError` where the published grammar does not read gold."""
    level = hardness(published_view(gold, schema))
    rejected = ""
    try:
        published_view(predicted, schema)
    except UnreadableQueryError as error:
        rejected = str(error)
    one, other = comparable_view(gold, schema), comparable_view(predicted, schema)
    components = partial_match(one, other)
    exact = exact_match(one, other, components)
    return PublishedMatch(exact=exact, hardness=level, components=components, rejected=rejected)


def scored_pair(details: SpiderDetails, execution: float | None) -> ScoredPair:
    """Return what a pair adds to the table, from its `PublishedMatch.to_json`."""
    components = {name: Component(*totals) for name, totals in details["components"].items()}
    return ScoredPair(hardness=details["hardness"], exact=details["exact"], components=components, execution=execution)
