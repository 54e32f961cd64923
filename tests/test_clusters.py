"""Intervals of cases that share sources, in the texts of reports."""

import pytest
from report_parts import merge, part
from samples import entry

from pytest_queryeval.reports import REPORTS

pytestmark = pytest.mark.feature("ci", "page", "report_files")
FORMATS = ("md", "html")


def texts_of(*cases):
    """The report of these cases, and the texts in which people read it."""
    merged = merge(part(*cases))
    rendered = {name: REPORTS[name].render(merged.report).decode() for name in FORMATS}
    return merged.report, rendered | {"terminal": "\n".join(merged.lines)}


def alike(**changes):
    """Cases of twelve sources, of which each has all answers right or all wrong."""
    return [
        entry(
            source=f"db{number}",
            scores={"soft_f1": float(number % 3 > 0)},
            outcome="passed" if number % 3 else "failed",
            **changes,
        )
        for number in range(12)
        for _ in range(30)
    ]


def test_the_interval_of_clusters_is_shown_with_a_note():
    report, texts = texts_of(*alike())

    metric = report["metrics"]["soft_f1"]
    clustered, plain = ("{:.3f} to {:.3f}".format(*metric[name]) for name in ("ci95_clustered", "ci95"))
    rate = "{:.1f} to {:.1f}".format(*(100 * end for end in metric["ci95_clustered"]))
    for text in texts.values():
        assert clustered in text
        assert plain not in text
        assert "95 % intervals: clustered by 12 sources" in text
    assert all(rate in texts[name] for name in FORMATS)  # of the pass rate, whose scores are the same


def test_the_note_says_of_how_many_metrics():
    first, *others = alike()

    _, texts = texts_of(first | {"scores": first["scores"] | {"cell_f1": 0.5}}, *others)

    assert "95 % intervals: clustered by 12 sources for 1 of 2 metrics" in texts["terminal"]


def test_cases_without_a_source_have_the_plain_interval_and_no_note():
    report, texts = texts_of(*(case | {"source": None, "groups": {}} for case in alike()))

    plain = "{:.3f} to {:.3f}".format(*report["metrics"]["soft_f1"]["ci95"])
    assert report["metrics"]["soft_f1"]["ci95_clustered"] is None
    assert all(plain in text for text in texts.values())
    assert not any("clustered by" in text for text in texts.values())
