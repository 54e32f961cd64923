import io
import warnings
from datetime import datetime
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import load_workbook
from report_maker import plain_report, with_baseline
from samples import FINGERPRINT, HEAD, entry
from spreadsheets import HOSTILE, case, hostile_report, make_report, sdmx_case, skipped, timed, visible
from strategies import costly

from pytest_queryeval.core.errors import ReportError
from pytest_queryeval.features.excel import render_excel
from pytest_queryeval.reports import check_target

SUMMARY = [
    *("Difficulty", "Percent Subset", "Percent Correct Queries", "Number of Samples", "Mean Time (s)", "Time Std Dev"),
    *("Percent Row Count Match", "Bird Standard F1", "VES Score", "Percent Overlap"),
]
ABOUT = [*("id", "question", "gold", "predicted", "outcome", "what is wrong", "kind", "difficulty", "tags", "source")]
TIMES_AND_PLACE = ["prediction (s)", "gold (s)", "predicted (s)", "file", "line"]


def opened(report, layout="published"):
    """The workbook, read by another library."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what openpyxl deprecates in itself
        return load_workbook(io.BytesIO(render_excel(report, layout)))


def rows(worksheet):
    return [list(row) for row in worksheet.iter_rows(values_only=True)]


def records(worksheet):
    """The rows of a sheet as dictionaries."""
    header, *table = rows(worksheet)
    return [dict(zip(header, row, strict=True)) for row in table]


def details(report, name="Details"):
    return records(opened(report)[name])


def cases(report):
    """The rows of Cases as dictionaries."""
    return details(report, "Cases")


def summary(report):
    """The rows of Summary by difficulty, each as a dictionary."""
    table = rows(opened(report)["Summary"])
    start = next(place for place, row in enumerate(table) if row[0] == "Difficulty")
    end = next(place for place, row in enumerate(table) if row[0] == "Total")
    return {row[0]: dict(zip(table[start], row, strict=True)) for row in table[start + 1 : end + 1]}


def texts(report, name="Run"):
    """All texts of a sheet."""
    return [value for row in rows(opened(report)[name]) for value in row if isinstance(value, str)]


def block(report, title, name="Statistics"):
    """The rows below a title, header first, up to an empty row."""
    table = rows(opened(report)[name])
    start = next(place for place, row in enumerate(table) if row[0] == title)
    end = next((place for place in range(start, len(table)) if not any(table[place])), len(table))
    return [[value for value in row if value is not None] for row in table[start + 1 : end]]


def parts(report):
    """The files of the workbook, each parsed."""
    with ZipFile(io.BytesIO(render_excel(report, "published"))) as file:
        return {name: ElementTree.fromstring(file.read(name)) for name in file.namelist()}


def charts(report):
    return [tree for name, tree in parts(report).items() if name.startswith("xl/charts/chart")]


def named(tree, name):
    return [element for element in tree.iter() if element.tag.rpartition("}")[2] == name]


def test_without_its_package_the_target_is_refused_with_what_would_do(tmp_path, monkeypatch):
    monkeypatch.setattr("pytest_queryeval.reports.find_spec", lambda name: None)

    with pytest.raises(ReportError, match=r"report\.xlsx needs xlsxwriter: pip install 'pytest-queryeval\[excel\]'"):
        check_target(tmp_path / "report.xlsx")


def test_the_sheets_have_fixed_names():
    plain = ["Cases", "Run", "Statistics"]

    assert opened(make_report(case())).sheetnames == [*plain, "Summary", "Details"]
    assert opened(make_report(sdmx_case())).sheetnames == [*plain, "Summary", "Details", "Overview"]
    assert opened(make_report(sdmx_case()), "plain").sheetnames == plain
    assert opened(make_report(case()), "requested").sheetnames == plain
    assert opened(make_report(sdmx_case()), "requested").sheetnames == [*plain, "Overview"]
    requested = make_report(case(scores={"soft_f1_denodo": 1.0}))
    assert opened(requested, "requested").sheetnames == [*plain, "Summary", "Details"]


@pytest.mark.parametrize("layout", ["requested", "plain", "published"])
def test_the_workbook_opens_on_the_sheet_with_the_verdict(layout):
    book = opened(make_report(case()), layout)

    assert book.active.title == "Run"
    assert [sheet.title for sheet in book.worksheets if sheet.sheet_view.tabSelected] == ["Run"]
    assert "Verdict" in [cell.value for cell in book.active["A"]]


def test_times_of_what_was_not_run_are_empty():
    base_case = case(1, prediction=timed(0.0))
    timed_sides = {"gold": base_case["gold"] | {"seconds": 0}, "predicted": base_case["predicted"] | {"seconds": 0}}

    for each in (base_case | timed_sides, skipped()):
        (row,) = cases(make_report(each))
        assert [row[name] for name in TIMES_AND_PLACE[:3]] == [None, None, None]


def test_a_metric_with_the_name_of_a_column_is_told_from_it():
    row = cases(make_report(case(scores={"gold": 0.25})))[0]

    assert (row["gold"], row["score gold"]) == ("SELECT 1\n", 0.25)


def test_a_row_of_details_has_the_scores_and_the_times_that_are_known_of_a_case():
    told = {"sql_execution_time": 0.1, "vector_store_search_time": 0.2, "llm_time": 0.3, "total_execution_time": 1}
    known = {"Percent Overlap": 50, "Have Same Row Count": 1, "Outcome": "passed", "Predictor": "ours", **told}
    known |= {"VQL Generated": "SELECT 2", "Ground Truth VQL": "SELECT 1\n", "Prediction (s)": 3}
    scores = {"value_overlap": 0.5, "same_row_count": 1.0}

    row = details(make_report(case(scores=scores, prediction=timed(3.0, **told))))[0]

    assert {name: row[name] for name in known} == known


@pytest.mark.long
@pytest.mark.parametrize(
    ("ours", "theirs", "header", "value"),
    [
        ("subset_score", "subset_score_denodo", "Subsetting Percentage", 75),
        ("soft_f1", "soft_f1_denodo", "Bird Standard F1", 0.75),
        ("soft_f1", "soft_f1_bird", "Bird Standard F1", 0.75),
        ("ves", "r_ves", "VES Score", 0.75),
        ("execution_accuracy_bird", "execution_accuracy", "Results Match", 0.75),
    ],
)
def test_a_published_column_has_the_published_metric_where_the_run_has_it(ours, theirs, header, value):
    both = make_report(case(1, scores={ours: 0.5, theirs: 0.75}), case(2, scores={ours: 0.5}))

    assert [row[header] for row in details(both)] == [value, None]
    assert any(text.startswith(f"{header}: ") and f"{theirs}." in text for text in texts(both, "Summary") + notes(both))


def notes(report):
    """The notes at the headers of Details."""
    return [cell.comment.text for cell in opened(report)["Details"][1] if cell.comment]


def test_percent_correct_counts_cases_in_error_as_wrong_and_says_of_how_many_it_is():
    right, skipped = {"scores": {"execution_accuracy": 1.0}}, {"outcome": "skipped", "scores": {}}
    error = {"outcome": "error", "scores": {}, "fingerprint": FINGERPRINT | {"metrics": ["execution_accuracy"]}}
    second = error | {"fingerprint": FINGERPRINT | {"metrics": ["valid_query"]}}

    total = summary(
        make_report(
            *(case(n, **right) for n in range(6)),
            case(7, **error),
            case(8, **error),
            case(9, **second),
            case(10, **skipped),
        )
    )["Total"]

    assert total["Percent Correct Queries"] == 75
    assert (total["Cases of Percent Correct"], total["Number of Samples"]) == (8, 10)


@pytest.mark.parametrize(
    ("names", "match", "ves"),
    [
        (("execution_accuracy", "execution_accuracy_bird", "r_ves", "r_ves_bird"), "execution_accuracy", "r_ves"),
        (("execution_accuracy_bird", "r_ves", "r_ves_bird"), "execution_accuracy_bird", "r_ves_bird"),
        (("execution_accuracy_bird", "r_ves"), "execution_accuracy_bird", None),
        (("execution_accuracy", "r_ves_bird"), "execution_accuracy", None),
        (("execution_accuracy", "ves"), "execution_accuracy", "ves"),
        (("r_ves_bird",), None, "r_ves_bird"),
    ],
)
def test_results_match_and_ves_score_of_a_row_rest_on_one_equality(names, match, ves):
    scores = {name: number / 10 for number, name in enumerate(names, start=1)}

    (row,) = details(make_report(case(scores=scores)))

    assert (row["Results Match"], row["VES Score"]) == (scores.get(match), scores.get(ves))


def test_the_mean_time_is_what_the_system_told_where_it_did():
    report = make_report(case(1, prediction=timed(9.0, total_execution_time=2.0)), case(2, prediction=timed(9.0)))

    assert summary(report)["easy"]["Mean Time (s)"] == 2
    assert any("total_execution_time in the predictions' metadata" in text for text in texts(report, "Summary"))


def test_what_a_run_has_not_measured_is_empty_and_said():
    report = make_report(case(scores={"arity_f1": 1.0}, prediction=timed(0.0)))

    table = summary(report)["easy"]

    assert [name for name in SUMMARY if table[name] is None] == [
        name for name in SUMMARY if name not in ("Difficulty", "Number of Samples")
    ]
    said = texts(report, "Summary")
    assert "Percent Subset: empty, because the run has no subset_score_denodo and no subset_score." in said
    assert "Mean Time (s), Time Std Dev: empty, because no prediction was timed." in said


def test_a_run_without_cases_is_a_workbook_without_charts():
    report = make_report()

    assert details(report) == []
    assert summary(report)["Total"]["Number of Samples"] == 0
    assert charts(report) == []
    assert "NO VERDICT" in texts(report)


def flipping(number, score, **fingerprint):
    """A case that passes with the score 1, and fails with 0."""
    defaults = {"scores": {"soft_f1": score}, "outcome": "passed" if score else "failed"}
    return case(number, **defaults, fingerprint=FINGERPRINT | fingerprint)


def against_baseline(before, after):
    """The report of a run with the cases `after`, compared with one with the cases `before`."""
    return with_baseline(make_report(*after, **HEAD), make_report(*before, **HEAD))


def test_long_lists_of_a_comparison_are_cut_and_say_so():
    before, after = ([flipping(number, score) for number in range(150)] for score in (1.0, 0.0))

    table = texts(against_baseline(before, after))

    assert table.count("… and 50 more") == 1
    assert "music/s.queryeval.yaml::c99" in table
    assert "music/s.queryeval.yaml::c100" not in table


def test_statistics_have_the_trials():
    base_case = case()
    trials = [
        {"passed": passed, "prediction": base_case["prediction"], "predicted": base_case["predicted"]}
        for passed in (True, False)
    ]

    assert block(make_report(case(trials=trials)), "Trials") == [
        ["k", "cases", "pass@k", "pass^k"],
        [1, 1, 0.5, 0.5],
        [2, 1, 1, 0],
    ]
    assert "Trials" not in texts(make_report(case()), "Statistics")


def cells(workbook):
    return [cell for worksheet in workbook for row in worksheet.iter_rows() for cell in row]


def test_no_text_of_a_model_or_a_database_becomes_a_formula_or_a_link():
    workbook = opened(hostile_report())

    assert {cell.data_type for cell in cells(workbook)} == {"s", "n", "d"}
    assert [cell for cell in cells(workbook) if cell.hyperlink] == []
    trees = parts(hostile_report()).values()
    assert not any(named(tree, "hyperlink") for tree in trees)
    names = {element.get("name") for tree in trees for element in named(tree, "definedName")}
    assert names == {"_xlnm._FilterDatabase", "_xlnm.Print_Area", "_xlnm.Print_Titles"}


def test_every_text_is_seen_as_it_is_with_escapes_for_what_would_act_or_hide():
    workbook = opened(hostile_report())
    own_columns = ("Question ID", "VQL Generated", "Ground Truth VQL", "llm_time", "Predictor")
    plain_columns = ("id", "question", "gold", "predicted", "difficulty", "source", "tags", "file")
    pairs = zip(records(workbook["Details"]), records(workbook["Cases"]), strict=True)
    names = [{row[name] for name in own_columns} | {plain[name] for name in plain_columns} for row, plain in pairs]

    assert [texts for texts in names if len(texts) != 1] == []
    assert sorted(text.removesuffix(" ") for (text,) in names) == sorted(map(visible, HOSTILE))


@costly
@given(st.text(st.characters(codec=None), max_size=60))
def test_any_text_makes_a_workbook_that_is_xml(text):
    report = hostile_report([text])

    assert parts(report)
    assert {cell.data_type for cell in cells(opened(report))} == {"s", "n", "d"}


def utf16_units(text):
    return len(text.encode("utf-16-le")) // 2


@pytest.mark.long
@pytest.mark.parametrize("unit", ["a", "\N{GRINNING FACE}", "\x00"], ids=["letter", "emoji", "escape"])
def test_a_text_that_is_too_long_for_a_cell_is_cut_with_a_mark_and_a_note(unit):
    report, whole = (make_report(case(1, question=text)) for text in (unit * 40_000, "a" * 32_767))

    table = cases(report)[0]["question"]

    assert 32_760 < utf16_units(table) <= 32_767
    assert table.endswith(" characters]")
    note = "1 texts are longer than the 32,767 characters of a cell"
    assert [any(text.startswith(note) for text in texts(each)) for each in (report, whole)] == [True, False]
    assert cases(whole)[0]["question"] == "a" * 32_767


def test_markup_of_the_writing_library_is_text_also_where_it_fills_a_cell():
    for length in (20, 32_767, 32_768):
        text = f"<r>{'x' * (length - 7)}</r>"

        assert cases(make_report(case(1, question=text)))[0]["question"].startswith("<r>xxx")


def test_cases_beyond_the_last_row_of_a_sheet_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.excel.sheet.MAX_ROWS", 3)
    report = make_report(*(sdmx_case(number) for number in range(1, 6)))

    table = texts(report)

    assert len(details(report)) == 2
    for sheet in ("Cases", "Details", "Overview"):
        assert any(text.startswith(f"3 cases have no row in {sheet}") for text in table)
    assert summary(report)["Total"]["Number of Samples"] == 5


def test_metrics_beyond_the_last_column_of_a_sheet_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.features.excel.workbook.MAX_COLUMNS", 16)
    report = make_report(case(scores={f"metric_{number}": 1.0 for number in range(8)}))

    assert list(cases(report)[0]) == [*ABOUT, "metric_0", *TIMES_AND_PLACE]
    assert "7 metrics have no column in Cases, because a sheet has no more of them." in texts(report)


def test_long_groups_are_cut_and_say_so(monkeypatch):
    for module, name, limit in (("run", "MAX_MEMBERS", 10), ("run", "MAX_LISTED", 3), ("published", "MAX_LISTED", 3)):
        monkeypatch.setattr(f"pytest_queryeval.features.excel.{module}.{name}", limit)
    report = make_report(*(case(number, difficulty=f"level {number:04}") for number in range(12)))

    assert block(report, "By difficulty")[-1] == ["… and 2 more"]
    assert block(report, "Outcomes", "Run")[-2:] == [["… and 9 more"], ["all", 12, 1, 12]]
    assert any(text.startswith("9 of 12 difficulties are not listed above") for text in texts(report, "Summary"))


def test_the_file_says_when_the_run_was_and_its_parts_have_no_time():
    content = render_excel(make_report(case()))

    with ZipFile(io.BytesIO(content)) as file:
        assert {info.date_time for info in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert load_workbook(io.BytesIO(content)).properties.created == datetime(2024, 3, 1, 8)


def test_a_workbook_lists_the_worst_cases_and_says_of_how_many(monkeypatch):
    monkeypatch.setattr("pytest_queryeval.results.case_store.MAX_IN_MEMORY", 5)
    monkeypatch.setattr("pytest_queryeval.features.excel.workbook.CASES_LISTED", 3)
    outcomes = ("passed", "passed", "failed", "passed", "error", "passed", "missed", "passed", "failed")
    cases = [entry(id=str(number), nodeid=f"a::{number}", outcome=outcome) for number, outcome in enumerate(outcomes)]
    report = plain_report(*cases)

    book = opened(report)

    assert len([*book["Cases"].rows]) == len([*book["Details"].rows]) == 1 + 3
    texts = [cell.value for row in book["Run"].rows for cell in row]
    assert "The worst 3 of 9 cases are listed; report.json has all of them." in texts
