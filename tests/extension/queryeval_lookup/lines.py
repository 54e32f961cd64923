"""Cases as lines of a question, a tab and a query; predictions as lines of queries."""

from collections.abc import Sequence

from pytest_queryeval.documents.document import file_at
from pytest_queryeval.features.transfer.exporters import Exported, PredictionFile, check_kind
from pytest_queryeval.features.transfer.importers import Import, ImportedCase, ImportRequest, SkippedRecord

MAX_BYTES = 2**20


def import_question_lines(request: ImportRequest) -> Import:
    lines = file_at(request.source).text(MAX_BYTES).splitlines()
    return Import(
        name=request.source.stem,
        settings={"kind": "lookup", "source": {"dictionary": {"entries": {"apples": 3, "pears": 5}}}},
        cases=(_case(str(number), line) for number, line in enumerate(lines)),
    )


def _case(id_: str, line: str) -> ImportedCase | SkippedRecord:
    question, _, query = line.partition("\t")
    if not query:
        return SkippedRecord(id_, "it has no query")
    return ImportedCase(id=id_, keys={"question": question, "gold": query})


def query_lines_file(cases: Sequence[Exported]) -> PredictionFile:
    check_kind(cases, "lookup")
    lines = "".join(f"{' '.join((case.query or '').split())}\n" for case in cases)
    return PredictionFile(lines.encode(errors="replace"))
