"""LC-QuAD 2: `uid`, `question` and its variants, `sparql_wikidata` and `sparql_dbpedia18`."""

from __future__ import annotations

from pytest_queryeval.cli.importers import Import, ImportedCase, ImportRequest
from pytest_queryeval.cli.importers.databases import Databases
from pytest_queryeval.cli.importers.keys import check_request
from pytest_queryeval.cli.importers.predictions import cases_of, read_predictions
from pytest_queryeval.cli.importers.records import Record, RecordError, read_records

GOLD = "sparql_wikidata"
# In many records, the question as people wrote it is missing, empty or "n/a".
QUESTIONS = ("question", "paraphrased_question", "NNQT_question")
NO_QUESTION = ("", "n/a", "na", "none", "null")


def import_lcquad(request: ImportRequest) -> Import:
    """Return a case for each question, with the query for Wikidata, or of `--map gold=sparql_dbpedia18`."""
    check_request(request, columns=("gold", "question"), kind="sparql")
    databases = Databases(request, request.source)
    gold = request.columns.get("gold", GOLD)
    names = (request.columns["question"],) if "question" in request.columns else QUESTIONS

    def case_of(id_: str, record: Record) -> ImportedCase:
        databases.check_shared("sparql")
        texts = (record.text(name).strip() for name in names)
        question = next((text for text in texts if text.lower() not in NO_QUESTION), "")
        if not question:
            raise RecordError(f"it has no question in {', '.join(names)}")
        query = record.text(gold).strip()
        if not query:
            raise RecordError(f"it has no '{gold}'")
        return ImportedCase(id=id_, keys={"question": question, "gold": query})

    return Import(
        name=request.source.stem,
        settings={"kind": "sparql", **databases.settings},
        cases=cases_of(
            read_records(request.source),
            lambda record: record.id("uid"),
            case_of,
            read_predictions(request.predictions),
        ),
        has_predictions=request.predictions is not None,
    )
