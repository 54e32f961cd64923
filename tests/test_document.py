import json
import os
import random
import string
import threading
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from trees import is_one_line, outcome, trees

from pytest_queryeval.core.errors import CaseError
from pytest_queryeval.documents import yaml_nodes
from pytest_queryeval.documents.document import File, file_at
from pytest_queryeval.documents.values import json_value
from pytest_queryeval.documents.yaml_nodes import MAX_ALIAS_NODES, parse_yaml, read_yaml

TESTS = Path(__file__).parent


@pytest.fixture(params=["libyaml", "python"])
def parser(request, monkeypatch):
    """Both parsers of PyYAML: the one in Python stands in where libyaml is missing."""
    if request.param == "python":
        monkeypatch.setattr(yaml_nodes, "_PARSER", yaml_nodes.PythonParser)


@pytest.fixture
def working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def file(name="suite.yaml"):
    return file_at(name)


def root(text):
    document = parse_yaml(text, file())
    assert not document.problems
    return document.root


def refusal(text):
    with pytest.raises(CaseError) as caught:
        parse_yaml(text, file("suite.yaml"))
    return str(caught.value).removeprefix(f"{file().shown}:")


def problems(text):
    return [str(problem).removeprefix(f"{file().shown}:") for problem in parse_yaml(text, file()).problems]


def form_of(written):
    return root(f"gold: {written}").value["gold"].form


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("written", ["012", "1.10", "on", "NO", "12:30", "~", "0x1F", "1_000", "2024-01-01", "=", "<<"])
def test_plain_scalars_keep_their_source_text(written):
    assert root(f"a: {written}").value["a"].value == written


@pytest.mark.usefixtures("parser")
def test_values_know_the_line_of_their_key():
    node = root("a:\n  b:\n    - x\n    -\n      c: y\n")

    assert node.value["a"].line == 1
    assert node.value["a"].value["b"].line == 2
    assert [item.line for item in node.value["a"].value["b"].value] == [3, 5]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("written", "form"),
    [
        ("SELECT 1", "plain"),
        ("SELECT 1 # all", "cut"),
        ("SELECT 1 -- all", "plain"),
        ("'SELECT 1' # all", "quoted"),
        ('"SELECT 1"', "quoted"),
        ('"SELECT\n  1"', "quoted"),
        ('"SELECT -- a\n  1"', "joined"),
        ("'SELECT ''--''\n  1'", "quoted"),
        ("|\n  SELECT 1\n", "literal"),
        (">\n  SELECT 1\n", "folded"),
        ("> # the least\n  SELECT 1\n", "folded"),
        (">\n  SELECT 1 -- all\n", "folded"),
        (">\n  SELECT -- all\n  1\n", "joined"),
        ("[SELECT 1]", "sequence"),
        ("{SELECT: 1}", "mapping"),
        ("é😀 # all", "cut"),
    ],
)
def test_nodes_know_how_they_were_written(written, form):
    assert form_of(written) == form


def test_comment_behind_a_tab_is_seen():
    assert form_of("SELECT 1\t# all") == "cut"


@pytest.mark.usefixtures("parser")
def test_comment_behind_is_seen_in_files_with_carriage_returns():
    assert root("b: é\r\ngold: SELECT 1 # all\r\n").value["gold"].form == "cut"


@pytest.mark.usefixtures("parser")
def test_duplicate_keys_of_an_item_may_be_another_item():
    assert problems("cases:\n  - id: a\n    id: b\n") == [
        "3: duplicate key 'id', first on line 2: remove one, or begin another item by `- `"
    ]


@pytest.mark.usefixtures("parser")
def test_duplicate_keys_are_reported_with_both_lines():
    assert problems("a: 1\nb: 2\na: 3\n'b': 4\n") == [
        "3: duplicate key 'a', first on line 1: remove one",
        "4: duplicate key 'b', first on line 2: remove one",
    ]


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!!binary", "!!int", "!!null", "!mine", "!!seq"])
def test_tags_beyond_text_list_and_mapping_are_refused(tag):
    (problem,) = problems(f"a: b\nc: {tag} d")

    assert problem == f"2: tag '{tag}' is refused: remove it, or quote the text if ! is part of it"


@pytest.mark.usefixtures("parser")
def test_tags_of_text_list_and_mapping_are_read():
    assert json_value(root("!!map {a: !!str 5, b: !!seq [!!str true], c: ! 5}")) == {"a": "5", "b": ["true"], "c": "5"}


def test_tagged_text_with_a_comment_behind_is_refused():
    assert problems("gold: !!str SELECT 1 # all") == ["1: a comment follows this text: quote the text"]


@pytest.mark.usefixtures("parser")
def test_aliases_share_what_they_name():
    node = root("a: &x [1, {b: 2}]\nc: *x\n")

    assert json_value(node) == {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}
    assert node.value["c"].line == 2


@pytest.mark.usefixtures("parser")
def test_alias_bombs_are_refused():
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    for name, inner in zip("bcdefgh", "abcdefg", strict=True):
        bomb += f"{name}: &{name} [{', '.join([f'*{inner}'] * 10)}]\n"

    assert refusal(bomb) == f"5: aliases repeat more than {MAX_ALIAS_NODES:,} values"


@pytest.mark.usefixtures("parser")
def test_aliases_that_name_nothing_or_themselves_are_refused():
    assert refusal("a: 1\nb: *x") == "2: alias '*x' names nothing above it: quote text that begins with *"
    assert refusal("a: &x [1, *x]") == "1: alias '*x' is inside of the value that it names"
    assert refusal("a: &x\n  b: *x") == "2: alias '*x' is inside of the value that it names"


@pytest.mark.usefixtures("parser")
def test_deep_nesting_is_refused():
    assert refusal("a:\n " + "[" * 2000) == "2: nested deeper than 100 levels"
    assert refusal("- " * 2000) == "1: nested deeper than 100 levels"


@pytest.mark.usefixtures("parser")
def test_deep_nesting_by_aliases_is_refused():
    deep = "- &a " + "[" * 60 + "]" * 60 + "\n- " + "[" * 39 + "*a" + "]" * 39 + "\n"

    assert root(deep)
    assert refusal(f"{deep}- " + "[" * 40 + "*a" + "]" * 40) == "3: nested deeper than 100 levels"
    assert refusal(f"{deep}- &b [[*a]]\n- " + "[" * 38 + "*b") == "4: nested deeper than 100 levels"


@pytest.mark.usefixtures("parser")
def test_keys_that_are_no_text_are_refused():
    assert refusal("a: 1\n? [b, c]\n: d") == "2: a key is text: quote it"


@pytest.mark.usefixtures("parser")
def test_several_documents_in_a_file_are_refused():
    assert refusal("a: 1\n---\nb: 2\n") == "2: a second YAML document starts here: remove the `---`, or split the file"


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "--- ~\n", "null"])
def test_files_without_content_have_no_root(text):
    assert root(text) is None


CASES = "cases:\n  - id: a\n"
IN_BLOCK = f"{CASES}    gold: |\n      SELECT a\n"


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{CASES}   gold: S\n", "3:4: indented by 3 spaces: indent it by 4 as 'id: a' on line 2"),
        (f"{CASES}     gold: S\n", "3:6: indented by 5 spaces: indent it by 4 as 'id: a' on line 2"),
        (f"{CASES}    gold: S\n - id: b\n", "4:2: indented by 1 space: indent it by 2 as '- id: a' on line 2"),
        (f"{CASES}    gold: S\n   - id: b\n", "4:4: indented by 3 spaces: indent it by 2 as '- id: a' on line 2"),
        (f"{IN_BLOCK}   predicted: x\n", "5:4: indented by 3 spaces: indent it by 4 as 'gold: |' on line 3"),
        ("kind: sql\n source: a\n", "2:2: indented by 1 space: indent it by 0 as 'kind: sql' on line 1"),
        (" kind: sql\nsource: a\n", "1:2: indented by 1 space, but line 2 is not: indent both alike"),
        (
            f"{CASES}    gold: S\n  id: b\n",
            "4:3: a key in line with the `- ` of line 2: indent it by 4 spaces, or begin another item by `- `",
        ),
        ("kind: sql\n- id: a\n", "2:1: a list item among the keys of a mapping: put it under a key"),
        (
            f"{IN_BLOCK}    FROM t\n",
            "5:5: a line of the text that begins on line 3 has to start with 6 spaces, this one starts with 4 spaces",
        ),
        (
            f"{CASES}    gold: |\n    SELECT a\n    predicted: x\n",
            "4:5: a line of the text that begins on line 3 has to start with 6 spaces, this one starts with 4 spaces",
        ),
        (
            f"{CASES}    gold: |\n    PREFIX : <http://e/>\n    PREFIX e: <http://e/e>\n    ASK {{}}\n",
            "4:5: a line of the text that begins on line 3 has to start with 6 spaces, this one starts with 4 spaces",
        ),
        (
            f"{IN_BLOCK}     prefix e: <http://e/>\n      ASK {{}}\n",
            "5:6: a line of the text that begins on line 3 has to start with 6 spaces, this one starts with 5 spaces",
        ),
        ("thresholds:\n\tarity_f1: 1\n", "2:1: a tab, where YAML takes spaces only: replace it by spaces"),
        (f"{CASES}  \tgold: S\n", "3:3: a tab, where YAML takes spaces only: replace it by spaces"),
        ("kind:sql\nsource: a\n", "1:1: 'kind:sql' is not `key: value`: put a space behind the colon"),
        ("kind: sql\nsource:a.db\ntags: []\n", "2:1: 'source:a.db' is not `key: value`: put a space behind the colon"),
        (
            "cases:\n  - id:a\n    gold: S\n",
            "2:3: '- id:a' is not `key: value`: put a space behind the colon",
        ),
        ("// x\nkind: sql\n", "1:1: '// x' is not `key: value`: add the key, or `# ` before a comment"),
        ("question: a\nb\nid: c\n", "2:1: 'b' is not `key: value`: indent it to continue the line above"),
        ("question: Ratio a: b\n", "1:18: a plain value cannot hold `: `: quote the value"),
        (
            "question: one\n  two: three\n  four: five\n",
            "2:3: indented by 2 spaces: indent it by 0 as 'question: one' on line 1",
        ),
        ("question: one\n  two\n  three: four\n", "3:8: a plain value cannot hold `: `: quote the value"),
        ("question: *x\n", "1: alias '*x' names nothing above it: quote text that begins with *"),
        ("question: @x\n", "1:11: a plain value cannot begin with @: quote the value"),
        ("question: & x\n", "1:11: a plain value cannot begin with &: quote the value"),
        ("question: - x\n", "1:11: a plain value cannot begin with -: quote the value"),
        ("question: , x\n", "1:11: a plain value cannot begin with ,: quote the value"),
        ("question: > x\n", "1:11: text follows `>`: begin the block on the next line, or quote the text"),
        ('question: "How many\nid: a\n', '1:11: the quote " that opens here is not closed: close it, or leave it out'),
        (
            'question: "the "x"?"\n',
            '1:17: text follows the closing ": quote the whole value, with \\" for each " in it',
        ),
        (
            "question: 'What's up'\n",
            "1:17: text follows the closing ': quote the whole value, with '' for each ' in it",
        ),
        ("question: [a] b\n", "1:15: text follows the closing ]: quote the whole value"),
        ("source: {sqlite: ${DB}}\n", '1:18: quote a variable within { } and [ ]: "${NAME}"'),
        (
            "source: {sqlite: a.db\nid: a\n",
            "1:9: the { that opens here is not closed by line 2, column 3: close it by }, or quote the text in it",
        ),
        ("tags: [a, , b]\n", "1:11: a value is missing before ,: add it, or quote the text"),
        ("```yaml\nkind: sql\n```\n", "1:1: a code fence is not part of the file: delete this line"),
    ],
)
def test_syntax_errors_say_what_to_do_at_the_place_where_to_do_it(text, message):
    place, _, problem = refusal(text).partition(" ")

    assert f"{place} {problem.removeprefix('not YAML: ')}" == message


@pytest.mark.usefixtures("parser")
def test_escapes_that_yaml_does_not_know_are_refused():
    assert refusal(r'question: "\d"').endswith("not YAML: an escape that YAML does not know: use single quotes")
    assert refusal(r'gold: "SELECT \d"').endswith(
        "an escape that YAML does not know: write the query as a block: `gold: |`"
    )


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize(
    "text",
    [
        "gold: SELECT 'a: b', x: y",
        "gold: SELECT 1 # all\n  FROM t\nid: b",
        "gold: SELECT 1\n  FROM t # all\n  WHERE x\nid: b",
        'predicted: "SELECT "a" FROM t"',
        "gold: %x",
        "- gold: {SELECT",
    ],
)
def test_syntax_errors_near_a_query_advise_a_block(text):
    assert refusal(text).endswith("write the query as a block: `gold: |`")


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", ["gold: `a`", "gold_any:\n  - SELECT `a`\n  - `a`"])
def test_backticks_around_a_query_are_to_be_removed(text):
    assert refusal(text).endswith("cannot begin with `: remove the backticks")


@pytest.mark.usefixtures("parser")
@pytest.mark.parametrize("text", ["question: a: b", "gold: |\n  SELECT 1\nquestion: a: b"])
def test_syntax_errors_far_from_a_query_advise_nothing(text):
    assert "block: `gold" not in refusal(text)


@pytest.mark.usefixtures("parser")
def test_control_characters_are_reported_with_their_place():
    assert refusal("a: b\nc: é\x07") == "2:5: not YAML: a character that YAML does not allow: delete U+0007"
    assert refusal("a: \x00").startswith("1:4: not YAML: ")
    assert refusal("a: b\nc: d\ufeffe") == "2:5: not YAML: a character that YAML does not allow: delete U+FEFF"


@pytest.mark.usefixtures("working_folder")
def test_bytes_that_are_not_utf8_are_reported_with_their_place():
    file("x.yaml").path.write_bytes("a: b\nc: é".encode() + b"\xff\n")

    with pytest.raises(CaseError, match=r"^x\.yaml:2:5: byte 0xff is not UTF-8: save the file as UTF-8$"):
        read_yaml(file("x.yaml"))


@pytest.mark.usefixtures("working_folder", "parser")
def test_byte_order_marks_and_carriage_returns_are_read_over():
    file("x.yaml").path.write_bytes(b"\xef\xbb\xbfa: |\r\n  x\r\n  y\r\nb: z\r\n")

    document = read_yaml(file("x.yaml"))

    assert json_value(document.root) == {"a": "x\ny\n", "b": "z"}


@pytest.mark.usefixtures("working_folder")
def test_too_large_files_are_refused(monkeypatch):
    monkeypatch.setattr(yaml_nodes, "MAX_YAML_BYTES", 1024 * 1024)
    file("x.yaml").path.write_bytes(b"a" * (1024 * 1024 + 1))

    with pytest.raises(CaseError, match=r"^x\.yaml: is larger than 1 MiB: split it$"):
        read_yaml(file("x.yaml"))


@pytest.mark.usefixtures("working_folder")
def test_missing_files_and_folders_are_problems():
    with pytest.raises(CaseError, match=r"^none\.yaml: no such file: correct the path, which leads to /.*/none\.yaml$"):
        read_yaml(file("none.yaml"))
    with pytest.raises(CaseError, match="is not a file"):
        read_yaml(file("."))
    with pytest.raises(CaseError, match="cannot be read"):
        read_yaml(File(file("a").path / "\0", file("a").path))


def test_a_pipe_is_refused_and_not_waited_for(working_folder):
    os.mkfifo(working_folder / "pipe.yaml")
    outcome = []
    reading = threading.Thread(target=lambda: outcome.append(refused(working_folder / "pipe.yaml")), daemon=True)

    reading.start()
    reading.join(10)

    assert outcome == ["pipe.yaml: is not a file"]


def refused(path):
    with pytest.raises(CaseError) as caught:
        read_yaml(file_at(path))
    return str(caught.value)


@pytest.mark.usefixtures("working_folder")
def test_paths_are_shown_relative_below_the_current_folder_only(working_folder, monkeypatch):
    (working_folder / "below").mkdir()

    assert str(file_at(working_folder / "x.yaml").shown) == "x.yaml"
    monkeypatch.chdir(working_folder / "below")
    assert file_at(working_folder / "x.yaml").shown == working_folder / "x.yaml"


def as_yaml(value, indent=0):
    """Block style for lists and mappings, JSON for the rest."""
    margin = "\n" + "  " * indent
    if isinstance(value, dict) and value:
        return "".join(
            f"{margin}{json.dumps(key, ensure_ascii=False)}: {as_yaml(item, indent + 1)}" for key, item in value.items()
        )
    if isinstance(value, list) and value:
        return "".join(f"{margin}- {as_yaml(item, indent + 1)}" for item in value)
    return json.dumps(value, ensure_ascii=False)


@given(trees)
@example({"": ""})
def test_any_tree_that_is_written_as_yaml_is_read_back(tree):
    document = parse_yaml(as_yaml(tree), file())

    assert document.problems == []
    assert (None if document.root is None else json_value(document.root)) == tree


@pytest.mark.usefixtures("parser")
def test_surrogate_pairs_as_json_writes_them_are_characters_in_double_quotes_only():
    document = parse_yaml(
        r"""{"\ud83d\ude00": "a \ud83d\ude00", b: '\ud83d\ude00', c: \ud83d\ude00, "d": "\\ud83d"}""", file()
    )

    assert json_value(document.root) == {"😀": "a 😀", "b": r"\ud83d\ude00", "c": r"\ud83d\ude00", "d": r"\ud83d"}
    assert refusal(r'a: "\ud83d"').startswith("1:5: not YAML: half of a surrogate pair, which is no character")


def test_both_parsers_say_the_same_of_suites_and_of_suites_with_mistakes():
    suites, tables = TESTS.parent.glob("example_suite/**/*.y*ml"), TESTS.glob("messages/*.yaml")
    suite_texts, table_texts = (
        [path.read_text(encoding="utf-8") for path in sorted(paths)] for paths in (suites, tables)
    )
    chance = random.Random(1)
    texts = [*suite_texts, *table_texts, *(mistaken(chance.choice(suite_texts)[:1500], chance) for _ in range(500))]

    assert [text for text in texts if said_by(yaml.CBaseLoader, text) != said_by(yaml_nodes.PythonParser, text)] == []


def mistaken(text, chance):
    """A text with a character more, or some less."""
    place = chance.randrange(len(text) + 1)
    added = chance.choice([*":'\"{}[]-,#&*!|>@`?\\~", ": ", " #", "\n  ", "\n- ", r"\ud83d\ude00", "\x00", "é", ""])
    return text[:place] + added + text[place + (0 if added else chance.randint(1, 3)) :]


def said_by(parser, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml_nodes, "_PARSER", parser)
        try:
            document = parse_yaml(text, file())
        except CaseError as error:
            return str(error)
    return plain(document.root), [str(problem) for problem in document.problems]


def plain(node):
    if node is None or isinstance(node.value, str):
        return node and (node.value, node.line, node.form)
    if isinstance(node.value, dict):
        return {key: plain(value) for key, value in node.value.items()}
    return [plain(item) for item in node.value]


syntax = st.text(string.ascii_lowercase[:3] + "  \n\n:-[]{}&*!|>'\"#%,?@`\\\t\r0\x00\x85\u2028é")


@given(syntax | st.text())
@example('"\\UFFFFFFFF"')
@example('"\\ud800"')
@example("%YAML 9.9\n--- a")
@example("!<tag:yaml.org,2002:int> 5")
def test_no_text_makes_yaml_raise_anything_else(text):
    for parser in (yaml.CBaseLoader, yaml_nodes.PythonParser):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(yaml_nodes, "_PARSER", parser)
            assert is_one_line(outcome(lambda: parse_yaml(text.encode("utf-8", "ignore").decode(), file()).root))
