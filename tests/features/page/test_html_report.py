"""report.html without a browser: what stands in it, what it may do, and that foreign text in it stays text."""

import base64
import hashlib
import json
import re
import zlib
from html.parser import HTMLParser

import pytest
from report_maker import HOSTILE, make_report, plain_report, with_baseline
from samples import entry

from pytest_queryeval.features.page import render_html

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


class Page(HTMLParser):
    """The tags, the attributes and the texts of a page, and what its scripts and styles are."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.attributes, self.texts, self.sources, self.packed = [], [], [], [], []
        self._within, self._kind = "", None
        self.feed(content.decode())
        self.text = " ".join(" ".join(self.texts).split())

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self._within, self._kind = tag, dict(attributes).get("type")

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        if self._within == "script" and self._kind == "text/plain":
            self.packed.append(json.loads(zlib.decompress(base64.b64decode(data))))
        elif self._within in ("script", "style"):
            self.sources.append(data)
        else:
            self.texts.append(data)

    def values(self, attribute):
        return [value for _, name, value in self.attributes if name == attribute]


def page_of(report):
    return Page(render_html(report))


@pytest.fixture(scope="module")
def usual():
    """A page with its charts."""
    return page_of(make_report(300))


@pytest.fixture(scope="module")
def hostile():
    """A page whose texts would like to act, with its charts."""
    return page_of(make_report(60, hostile=True))


def case(**changes):
    defaults = {"nodeid": "a::a", "question": "", "message": "", "gold": None, "predicted": None, "prediction": None}
    return entry(**defaults | changes)


def test_the_page_names_nothing_that_a_browser_would_load(usual):
    names = ("src", "srcset", "action", "data", "poster", "xlink:href")
    loading = [value for name in names for value in usual.values(name)]

    assert loading == []
    assert [value for value in usual.values("href") if not value.startswith("#")] == [
        value for value in usual.values("href") if value.startswith("data:image/svg+xml,")
    ]


def test_the_policy_admits_only_the_style_and_the_script_of_the_page(usual):
    hashes = {base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() for source in usual.sources}
    (policy,) = (value for value in usual.values("content") if "default-src" in value)

    assert policy.startswith("default-src 'none'; ")
    assert set(re.findall(r"'sha256-([^']+)'", policy)) == hashes
    assert "unsafe" not in policy
    assert len(hashes) == 2


def test_no_attribute_holds_style_or_script(usual, hostile):
    names = {name for page in (usual, hostile) for _, name, _ in page.attributes}

    assert "style" not in names
    assert {name for name in names if name.startswith("on")} == set()


def test_hostile_texts_make_no_elements(usual, hostile):
    assert set(hostile.tags) <= set(usual.tags) | {"br"}
    assert hostile.tags.count("script") == 1 + len(hostile.packed)
    assert len(hostile.sources) == 2


@pytest.mark.parametrize("text", [text for text in HOSTILE if not UNPRINTABLE.search(text)])
def test_hostile_texts_are_shown_as_they_are(hostile, text):
    shown = " ".join(text.split())

    assert f"recall[{shown}]" in hostile.text


def test_characters_that_hide_or_turn_text_are_shown_as_escapes(hostile):
    assert "recall[a\\u202eb\\u200bc\\x1b[31md\\x00e\\ufeff]" in hostile.text
    assert [text for text in hostile.texts if UNPRINTABLE.search(text)] == []
    assert [value for _, _, value in hostile.attributes if UNPRINTABLE.search(value)] == []


@pytest.mark.long
def test_pieces_tell_their_first_case():
    report = make_report(3_000)
    page = page_of(report)
    _, *pieces = page.packed
    firsts = [int(value) for value in page.values("data-first")]

    assert len(pieces) > 1
    assert firsts == [sum(map(len, pieces[:place])) for place in range(len(pieces))]
    assert sum(map(len, pieces)) == 3_000


def test_long_questions_and_messages_are_searched_by_their_beginnings_and_kept_whole():
    long = "so " * 200
    page = page_of(plain_report(case(question=long, message=long)))
    summaries, (details,) = page.packed

    assert len(summaries["question"][0]) == len(summaries["message"][0]) == 300
    assert details["question"] == details["message"] == long


@pytest.mark.parametrize(
    ("value", "packed"),
    [
        (9007199254740993, "#9007199254740993"),
        (-12345678901234567890, "#-12345678901234567890"),
        (1.0, "#1.0"),
        (1e22, "#1e+22"),
        ("9007199254740993", "9007199254740993"),
        ("#1", "##1"),
        (True, True),
        (None, None),
        ([{"#a": 1}], [{"#a": "#1"}]),
    ],
)
def test_numbers_of_answers_are_packed_with_all_their_digits(value, packed):
    side = {"query": "q", "columns": ["a"], "row_count": 1, "sample": [[value]], "seconds": 0.5}
    difference = {"summary": "#1", "missing": [[value]], "extra": [], "changed": [], "repeated": []}
    prediction = {"source": "", "seconds": 0.5, "metadata": {"told": value}}
    base_case = case(
        gold=side,
        predicted=side | {"error": None},
        difference=difference,
        prediction=prediction,
        details={"told": value},
    )
    page = page_of(plain_report(base_case))

    (details,) = page.packed[1]

    assert details["gold"]["sample"] == details["predicted"]["sample"] == [[packed]]
    assert details["difference"] == {**difference, "summary": "##1", "missing": [[packed]]}
    assert details["prediction"]["metadata"] == details["details"] == {"told": packed}
    assert details["gold"]["seconds"] == 0.5


@pytest.mark.long
def test_small_cases_take_less_than_two_hundred_bytes_each():
    few, many = (len(render_html(make_report(size))) for size in (100, 2_000))

    assert many - few < 1_900 * 200


def test_a_path_that_is_no_utf8_does_not_keep_the_page_from_being_made():
    path = "caf\udce9.queryeval.yaml"
    page = page_of(plain_report(case(path=path, nodeid=f"{path}::a")))

    assert page.packed[0]["path"] == [path]


def test_the_first_rows_are_the_worst_of_equal_ones_one_of_each_reason_and_wrong_answers_that_passed_follow():
    def found(number, label, outcome="failed", **about):
        edit = {"label": label, "clause": "", "change": "a"}
        cause = {"edits": [edit], "repaired_query": None} if label else None
        return case(id=str(number), line=number, outcome=outcome, cause=cause, **about)

    cases = [
        *(found(number, "syntax", scores={"m": 0.0}) for number in (1, 2, 3)),
        found(4, None, "passed"),
        found(5, "wrong-value", "passed"),
        found(6, None, "error", message="the service is down"),
        found(7, "wrong-order", scores={"m": 0.5}),
        found(8, "wrong-order", scores={"m": 0.2}),
        found(9, "wrong-order", scores={"m": 0.0}),
    ]
    summaries, *_ = page_of(plain_report(*cases)).packed

    assert [cases[place]["id"] for place in summaries["worst"]] == ["6", "1", "9", "2", "3", "8", "7", "5"]


def test_an_error_of_several_cases_is_listed_once_and_is_whole_on_their_pages():
    cases = [case(id=f"q{n}", nodeid=f"a::q{n}", line=n, outcome="error", message=f"q{n} is late") for n in range(3)]

    summaries, details = page_of(plain_report(*cases)).packed

    assert summaries["why"] == ["q0 is late", "the same error as a::q0", "the same error as a::q0"]
    assert [details_of_case["why"] for details_of_case in details] == ["q0 is late", "q1 is late", "q2 is late"]


def test_of_the_same_score_and_reason_a_regression_comes_first():
    def run(*outcomes):
        return plain_report(
            *(
                case(id=str(number), nodeid=str(number), outcome=outcome, message="m", scores={"m": 0.5})
                for number, outcome in enumerate(outcomes)
            )
        )

    after = run("failed", "failed", "failed", "passed")
    summaries, *_ = page_of(with_baseline(after, run("failed", "failed", "passed", "passed"))).packed

    assert [after["cases"][place]["id"] for place in summaries["worst"]] == ["2", "0", "1"]


def test_with_a_baseline_the_largest_drop_of_the_first_metric_comes_first_then_the_largest_sum():
    """Of equal drops that whose cause increased most; what fell in no score comes last."""
    labels = {"increased": "wrong-join-type", "equal": "wrong-value"}

    def run(*, first, second, lower, **outcomes):
        def found(name, score, f1, label=None):
            cause = {"edits": [{"label": label, "clause": "", "change": ""}], "repaired_query": None} if label else None
            scores = {"m": score, "f1": f1, "steps": 9.0}
            return case(id=name, nodeid=name, outcome="failed", message="m", scores=scores, cause=cause)

        return plain_report(
            found("same", 0.0, 0.0),
            found("sum", first, lower),
            found("equal", first, second, labels["equal"]),
            found("increased", first, second, outcomes.get("label")),
            found("lower", 0.5 + first / 2, 0.0),
            found("gain", 0.5 - first / 2, 0.0),
        )

    earlier = run(first=1.0, second=0.5, lower=1.0)
    after = with_baseline(run(first=0.0, second=0.5, lower=0.25, label=labels["increased"]), earlier)
    summaries, *_ = page_of(after).packed

    assert [after["cases"][place]["id"] for place in summaries["worst"]] == [
        *("sum", "increased", "equal", "lower", "same", "gain")
    ]
    assert after["baseline"]["earlier_scores"] == {
        "sum": {"m": 1.0, "f1": 1.0},
        "equal": {"m": 1.0},
        "increased": {"m": 1.0},
        "lower": {"m": 1.0},
        "gain": {"m": 0.0},
    }


SYNTAX = {"edits": [{"label": "syntax", "clause": "", "change": "a"}], "repaired_query": None}
OF_KINDS = [case(kind=kind, outcome=outcome) for kind in ("sql", "json") for outcome in ("failed", "passed", "not_run")]
MOST_HARD = [case(outcome="failed" if n < 3 else "passed", difficulty="hard" if n < 4 else "easy") for n in range(9)]
WITH_CAUSES = [case(outcome="failed", cause=SYNTAX), *[case(outcome="failed")] * 5]
WITH_CAUSES += [case(outcome="error"), case(outcome="passed", cause=SYNTAX)]


@pytest.mark.parametrize(
    ("cases", "parts"),
    [
        (WITH_CAUSES, ["Why answers are wrong syntax 2 no cause found 5 Cases"]),  # errors are no wrong answers
        (OF_KINDS, ["Where cases fail json kind 1 of 2 sql kind 1 of 2 Cases"]),  # only those that ran
        (MOST_HARD, ["Where cases fail hard difficulty 3 of 4"]),
        ([case(outcome="passed")], ["100 % 1 of 1 passed", "No case failed."]),
        ([], ["NO VERDICT", "No case was scored."]),
    ],
)
def test_the_first_lines_say_why_or_where_cases_fail(cases, parts):
    page = page_of(plain_report(*cases))

    assert [part for part in parts if part not in page.text] == []
    assert ("By kind" in page.text) is (cases is OF_KINDS)  # a group that tells cases apart
    shown = [value for tag, name, value in page.attributes if (tag, name) == ("a", "data-show")]
    assert (shown == ["passed", "all"]) is (len(cases) == 1)


def test_every_chart_has_a_title_a_description_and_its_numbers(usual):
    titles = ("Score distributions", "Prediction time and score")

    assert [title for title in titles if f"The numbers of “{title}”" not in usual.text] == []
    assert usual.tags.count("figcaption") == len(titles)
    # What is drawn stands next to it as text.
    assert usual.tags.count("svg") == usual.attributes.count(("svg", "aria-hidden", "true"))


def test_a_time_that_turns_text_is_shown_as_escapes():
    page = page_of(plain_report(case(), created="2024-03-01\u202e10:00:00+00:00"))

    assert page.text.count("2024-03-01\\u202e10:00") == 2
    assert "\u202e" not in "".join([page.text, *page.values("datetime")])


def test_scores_of_two_values_have_no_distribution():
    cases = [case(scores={"two": float(n > 2), "more": n / 9}) for n in range(9)]
    page = page_of(plain_report(*cases))

    assert "more 0.3 to 0.4 1" in page.text
    assert "two 0 to 0.1" not in page.text
    assert "Charts" not in page_of(plain_report(case(scores={"two": 1.0}))).text


def test_names_of_any_form_can_be_drawn():
    names = ["constructor", "toString", "__proto__", "", "null", "${a}", "a.b['c']\\", "a\ufffeb\uffff"]
    cases = [case(tags=[tag], scores=dict.fromkeys(names, 0.5)) for tag in names]

    page = page_of(plain_report(*cases))

    assert "By tag" in page.texts
    assert not {"\ufffe", "\uffff"} & set(page.text)


@pytest.mark.parametrize(
    ("scores", "told", "rows"),
    [
        ([0.0, 0.05, 0.5, 1.0, None], {}, "m 0 to 0.1 2 m 0.5 to 0.6 1 m 0.9 to 1 1"),
        ([0.0, 3.0, 20.0], {}, "m 0 to 2 1 m 2 to 4 1 m 18 to 20 1"),
        # Scores beyond what a stored report tells lie at the ends.
        ([-9e149, 0.5, 9e149], {"min": 0.0, "max": 1.0}, "m 0 to 0.1 1 m 0.5 to 0.6 1 m 0.9 to 1 1"),
    ],
)
def test_scores_are_counted_where_they_lie(scores, told, rows):
    report = plain_report(*(case(scores={"m": score}) for score in scores))
    report["metrics"]["m"] |= told

    assert f"metric scores cases {rows} About" in page_of(report).text


@pytest.mark.parametrize(
    ("score", "seconds"), [(-1e149, 0.0), (1e149, -1.0), (1e-300, 5e-324), (-1e149, 1e149), (1e-300, 1e149)]
)
def test_numbers_of_any_size_are_drawn(score, seconds):
    prediction = {"source": "", "seconds": seconds, "metadata": {}}
    cases = [case(prediction=prediction, scores={"m": own, "unit": 0.5}) for own in (0.0, score)]

    text = render_html(plain_report(*cases)).decode()

    assert "NaN" not in text.partition('type="text/plain"')[0]


RISKS = "confidence coverage risk answers"


def risk_case(number, outcome, *, abstained=False, **metadata):
    prediction = {"source": "p", "seconds": 0.0, "metadata": metadata, **({"abstained": True} if abstained else {})}
    return case(id=f"c{number}", outcome=outcome, prediction=prediction, scores={"execution_accuracy": 0.0})


@pytest.mark.feature("abstention")
def test_the_risk_is_that_of_the_answers_of_at_least_a_confidence():
    report = plain_report(
        risk_case(1, "passed", confidence=0.9),
        risk_case(2, "failed", confidence=0.5),
        risk_case(3, "passed", confidence=0.5),
        risk_case(4, "failed"),
        risk_case(5, "failed", abstained=True, confidence=0.1),
    )
    page = page_of(report)

    assert report["metrics"]["selective_accuracy"]["mean"] == 0.5
    assert f"{RISKS} 0.9 and more 0.200 0.000 1 0.5 and more 0.600 0.333 3 any 0.800 0.500 4 " in page.text
    assert page.values("points") == ["60.0,100.0 180.0,66.7 240.0,50.0 "]


@pytest.mark.feature("abstention")
@pytest.mark.parametrize("confidence", [True, "0.9", 10**400, None])
def test_a_run_without_confidences_that_are_numbers_is_one_point(confidence):
    answered, abstained = risk_case(1, "passed", confidence=confidence), risk_case(2, "failed", abstained=True)
    page = page_of(plain_report(answered, abstained))

    assert f"{RISKS} any 0.500 0.000 1 " in page.text
    assert page.values("points") == []


@pytest.mark.feature("abstention")
@pytest.mark.parametrize("abstained", [True, False])
def test_without_abstentions_or_without_answers_there_is_no_risk(abstained):
    assert "Risk and coverage" not in page_of(plain_report(risk_case(1, "passed", abstained=abstained))).text


@pytest.mark.feature("abstention")
def test_a_curve_has_at_most_a_hundred_points_and_ends_at_the_run():
    cases = [risk_case(number, "passed", confidence=number / 2_000) for number in range(2_000)]
    (points,) = page_of(plain_report(*cases, risk_case(2_000, "failed", abstained=True))).values("points")

    assert 90 < len(points.split()) <= 101
    assert points.split()[-1] == "299.9,100.0"


def with_label(name, label=None, outcome="failed"):
    """A case with an answer that is wrong for the cause with this label; None for an unknown cause."""
    cause = {"edits": [{"label": label, "clause": "", "change": ""}], "repaired_query": None} if label else None
    return case(id=name, nodeid=name, outcome=outcome, cause=cause)


def test_what_got_worse_has_every_regression_and_error():
    right = [case(id=name, nodeid=name) for name in "abcde"]
    before = [*right, with_label("f", "wrong-value"), with_label("g"), with_label("h", "extra-column")]
    after = [
        with_label("a", "wrong-join-type"),
        with_label("b", "wrong-join-type"),
        with_label("c", "wrong-value"),
        with_label("d"),
        with_label("e", outcome="error"),
        *(case(id=name, nodeid=name) for name in "fgh"),
    ]

    page = page_of(with_baseline(plain_report(*after), plain_report(*before)))

    rows = "wrong join type 0 → 2 no cause found 1 in error 1 wrong value 1 → 1 │ = baseline"
    assert f"What got worse {rows}" in page.text
    assert "Wrong join type increased most: 0 → 2." in page.text
    links = [link for link in page.values("href") if link.startswith("#show=") and "label=wrong" not in link]
    assert {"#show=regressions&label=failed", "#show=new-errors"} <= {*links}
    assert "What got worse" not in page_of(with_baseline(plain_report(*before), plain_report(*before))).text


def test_an_increase_by_a_single_case_is_no_headline():
    before, after = plain_report(case(id="a", nodeid="a")), plain_report(with_label("a", "wrong-value"))

    assert "increased most" not in page_of(with_baseline(after, before)).text


def test_the_change_of_the_pass_rate_has_both_rates_if_the_runs_have_other_cases():
    before = [case(id=name, nodeid=name) for name in "ab"]
    same = [before[0], with_label("b")]

    pages = [page_of(with_baseline(plain_report(*cases), plain_report(*before))) for cases in (same, [*same, case()])]

    assert "50.0 % 1 of 2 passed" in pages[0].text
    assert "\N{MINUS SIGN}50.0 points from 100 % , no significant" in pages[0].text
    assert "66.7 % 2 of 3 passed" in pages[1].text
    assert (
        "\N{MINUS SIGN}50.0 points from 100 % to 50.0 % in 2 cases of both runs, no significant change" in pages[1].text
    )
