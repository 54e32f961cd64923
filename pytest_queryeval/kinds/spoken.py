"""The query in what a model said: without its reasoning, a label before it, and the code block around it.

A wrong query would be scored as if the model had said it. So an answer that is a query stays as it is, and what stands
in a code block or behind a label is taken only where it begins like a query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_queryeval.documents.fences import CodeBlock, code_blocks

UNENDED = "the answer ends within its reasoning"
_BEHIND_REASONING = "from behind reasoning"
_BEHIND_A_LABEL = "from behind a label"
_FROM_A_BLOCK = "from a code block"

# Lines that no query has but in its strings, quoted names and comments: fences, and ends of reasoning.
_MARKS = r"^[ ]{0,3}(?:`{3,}+[^`\n]*+$|~{3,})|^[ \t]*+</think(?:ing)?>"
_MARK = re.compile(_MARKS, re.MULTILINE)
_LABEL = re.compile(
    r"\s*+(\*\*|__)?+\s*+(?:(?:SQL|SPARQL)(?:[ ]?Query)?|Query|Answer)\s*+(?(1)(?::\s*+\1|\1\s*+:)|:)\s*+",
    re.IGNORECASE,
)
_REASONING = re.compile(r"\s*+<(think(?:ing)?)>(?:.*?</\1>\s*+|(?P<unended>))", re.IGNORECASE | re.DOTALL)
# The template of some models begins the reasoning, so that their answers hold its end alone.
_END_OF_REASONING = re.compile(r"^[ \t]*+</think(?:ing)?>\s*+", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Language:
    """What tells queries of a language from other text.

    `marks` are the words by which code blocks are said to be in it. `start` matches the start of a query, `texts` its
    strings, quoted names and comments, or else, as the group `open`, the mark of one that does not end.
    """

    name: str
    marks: frozenset[str]
    start: re.Pattern[str]
    texts: re.Pattern[str]

    def is_query(self, text: str) -> bool:
        """Whether a text begins like a query, and no fence stands in it but in its strings, names and comments.

        Where one of these does not end, it cannot be told what stands in it, and the text is no query.
        """
        if not self.start.match(text):
            return False
        if not _MARK.search(text):
            return True
        return not any(match.lastgroup in ("mark", "open") for match in self.texts.finditer(text))


def _language(name: str, *, marks: str, skipped: str, words: str, texts: str, opened: str) -> Language:
    # What does not end is found once, since nothing is looked for behind it: no text takes more than one pass.
    start = rf"(?:\s++|{skipped})*+(?:{'|'.join(words.split())})\b"
    found = rf"(?P<mark>{_MARKS})|{texts}|(?P<open>{opened})"
    return Language(
        name,
        frozenset(marks.split()),
        re.compile(start, re.IGNORECASE | re.DOTALL),
        re.compile(found, re.MULTILINE | re.DOTALL),
    )


SQL_TEXT = _language(
    "sql",
    marks="sql sqlite sqlite3 postgresql postgres psql pgsql plpgsql mysql mariadb duckdb tsql plsql oracle bigquery"
    " snowflake trino presto clickhouse spark-sql sparksql vql",
    skipped=r"--[^\n]*+|\#[^\n]*+|/\*.*?\*/|[(;]",
    words="SELECT WITH VALUES FROM TABLE PIVOT UNPIVOT SUMMARIZE DESCRIBE DESC SHOW LIST EXISTS EXPLAIN ANALYZE PRAGMA"
    " CALL EXEC EXECUTE DECLARE SET USE BEGIN START COMMIT ROLLBACK INSERT UPDATE DELETE MERGE UPSERT REPLACE TRUNCATE"
    " CREATE ALTER DROP RENAME GRANT REVOKE ATTACH DETACH COPY LOAD INSTALL IMPORT EXPORT VACUUM REINDEX LOCK KILL DO",
    texts=r"""--[^\n]*+|/\*.*?\*/|'[^']*+'|"[^"]*+"|`[^`]*+`|(\$\w*+\$).*?\2""",
    opened=r"""['"`]|/\*|\$\w*+\$""",
)
SPARQL_TEXT = _language(
    "sparql",
    marks="sparql rq",
    skipped=r"\#[^\n]*+",
    words="PREFIX BASE VERSION SELECT ASK CONSTRUCT DESCRIBE INSERT DELETE WITH LOAD CLEAR CREATE DROP COPY MOVE ADD",
    texts=r"""<[^<>"{}|^`\\\s]*+>|\#[^\n]*+"""
    r"""|"{3}(?:"{0,2}(?:[^"\\]|\\.))*+"{3}|'{3}(?:'{0,2}(?:[^'\\]|\\.))*+'{3}"""
    r"""|"(?!"")(?:[^"\\\n]|\\.)*+"|'(?!'')(?:[^'\\\n]|\\.)*+'""",
    opened=r"""["']""",
)


def unwrapped(said: str, language: Language) -> tuple[str, str]:
    r"""The query in what a model said, to the byte, and a note where there was more; else `said`, and why where known.

    Of several code blocks it is the one that is marked with the language, if just one is. Takes time in proportion to
    the text.

    >>> unwrapped("Here it is:\n```sql\nSELECT 1\n```", SQL_TEXT)
    ('SELECT 1', 'the query was read from a code block')
    >>> unwrapped("SELECT 1", SQL_TEXT)
    ('SELECT 1', '')
    """
    if language.is_query(said):
        return said, ""
    start = _start_of_answer(said)
    if start is None:
        return said, UNENDED
    answer = said[start:]
    for text, places in _readings(answer, language):
        if language.is_query(text):
            return text, f"the query was read {' and '.join(places if not start else (_BEHIND_REASONING, *places))}"
    return said, _several(answer, language)


def _start_of_answer(said: str) -> int | None:
    """Where the reasoning before an answer ends, 0 if there is none, None if it does not end."""
    if reasoning := _REASONING.match(said):
        return None if reasoning["unended"] is not None else reasoning.end()
    end = _END_OF_REASONING.search(said)
    return end.end() if end else 0


def _readings(answer: str, language: Language) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What may be the query of an answer, and where it stands, the most likely first."""
    behind = _behind_a_label(answer)
    yield answer, ()
    yield behind, (_BEHIND_A_LABEL,)
    for text, places in ((answer, ()), (behind, (_BEHIND_A_LABEL,))):
        code = _code(text, language)
        yield code, (*places, _FROM_A_BLOCK)
        yield _behind_a_label(code), (*places, _FROM_A_BLOCK, _BEHIND_A_LABEL)


def _behind_a_label(text: str) -> str:
    label = _LABEL.match(text)
    return text[label.end() :] if label else ""


def _code(text: str, language: Language) -> str:
    """What stands in the code block of a text; empty where there is none, or several that could be meant."""
    blocks = list(code_blocks(text))
    if len(blocks) > 1:
        blocks = [block for block in blocks if block.language in language.marks]
    if len(blocks) == 1 and not _begins_beside_the_fence(blocks[0], language):
        return _content(blocks[0])
    return _between_fences(text.strip(), language) if len(blocks) < 2 else ""


def _begins_beside_the_fence(block: CodeBlock, language: Language) -> bool:
    """Whether a query seems to begin on the line of the fence; what follows may be a query as well, but another one."""
    words = block.info.split(maxsplit=1)
    return any(language.start.match(info) for info in (block.info, *words[1:]))


def _content(block: CodeBlock) -> str:
    """The content of a block, without a fence at the end of its last line, which closes none in Markdown."""
    last = block.content.rstrip()
    if block.is_closed or not last.endswith(block.fence):
        return block.content
    return last.removesuffix(block.fence)


def _between_fences(text: str, language: Language) -> str:
    """What stands between backticks as of a fence that are in line with it: "```sql SELECT 1```"."""
    if not (text.startswith("```") and text.endswith("```") and text.count("```") == 2):
        return ""
    inner = text[3:-3].strip()
    first, _, rest = inner.partition(" ")
    return rest.lstrip() if first.lower() in language.marks else inner


def _several(answer: str, language: Language) -> str:
    """A note where code blocks are too many to know which one is meant."""
    count = sum(1 for _ in code_blocks(answer))
    if count < 2:
        return ""
    return f"the answer has {count:,} code blocks, and not one alone is marked {language.name}"
