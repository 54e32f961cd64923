"""The query in what a model said: without its reasoning, a label before it, and the code block around it.

A wrong query would be scored as if the model had said it. So an answer that begins with a query is that query, what
stands in a code block or behind a label is taken only where it begins like one, and of several none that differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from pytest_queryeval.documents.fences import CodeBlock, code_blocks

LONGEST = 2**18  # characters; no query has more, and an answer is read several times
TOO_LONG = f"the answer has more than {LONGEST:,} characters, and no query was looked for in it"
UNENDED = "the answer ends within its reasoning"
GOES_ON = "the answer begins with a query, and goes on behind it"
_BEHIND_REASONING = "from behind reasoning"
_BEHIND_A_LABEL = "from behind a label"
_BEFORE_A_FENCE = "from before a closing fence"
_FROM_A_BLOCK = "from a code block"

_TAGS = r"(?i:</?think(?:ing)?>)"
# Lines that no query has but in its strings, quoted names and comments, and tags that none has but in its strings.
_MARKS = rf"^[ ]{{0,3}}(?:`{{3,}}+[^`\n]*+$|~{{3,}})|{_TAGS}"
_MARK = re.compile(_MARKS, re.MULTILINE)
_TAG = re.compile(r"<(?P<ends>/?)(?P<name>think(?:ing)?)>", re.IGNORECASE)
_REST_OF_COMMENT = rf"(?:[^\n<]++|(?!{_TAGS})<)*+"
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_LABEL = re.compile(
    r"\s*+(\*\*|__)?+\s*+(?:(?:SQL|SPARQL)(?:[ ]?Query)?|Query|Answer)\s*+(?(1)(?::\s*+\1|\1\s*+:)|:)\s*+",
    re.IGNORECASE,
)
_ENDS_OF_SENTENCES = (":", ".", "!", "?", "\u2026")


@dataclass(frozen=True, kw_only=True)
class Language:
    """What tells queries of a language from other text.

    `keywords` are the words that a query may begin with, and `fences` the names that code blocks in the language have
    in Markdown, both separated by blanks. The others are regular expressions: `ignored` for what may stand
    before the first keyword, such as comments; `strings` for strings, quoted names and comments, in which a code fence
    says nothing; `open_string` for the mark of one that does not end.
    """

    name: str
    keywords: str
    fences: str = ""
    ignored: str = r"#[^\n]*+|//[^\n]*+|--[^\n]*+"
    strings: str = r"""'[^']*+'|"[^"]*+"|`[^`]*+`"""
    open_string: str = r"""['"`]"""

    @cached_property
    def fence_names(self) -> frozenset[str]:
        """Return the names of code blocks in the language."""
        return frozenset((self.fences or self.name).split())

    @cached_property
    def start(self) -> re.Pattern[str]:
        """Return a pattern for the start of a query up to its first `word`."""
        words = "|".join(self.keywords.split())
        return re.compile(rf"(?:\s++|{self.ignored})*+(?P<word>{words})\b", re.IGNORECASE | re.DOTALL)

    @cached_property
    def parts(self) -> re.Pattern[str]:
        """Return a pattern for fences and tags as the group `mark`, and for strings; one without an end is `open`.

        What does not end is found once, since nothing is looked for behind it: no text takes more than one pass.
        """
        found = rf"(?P<mark>{_MARKS})|{self.strings}|(?P<open>{self.open_string})"
        return re.compile(found, re.MULTILINE | re.DOTALL)

    def is_query(self, text: str) -> bool:
        """Whether a text begins like a query, and no fence stands in it but in its strings, names and comments.

        Nor does a tag of reasoning but in its strings and names. Where one of these does not end, it cannot be told
        what stands in it, and the text is no query.
        """
        if not self.start.match(text):
            return False
        if not _MARK.search(text):
            return True
        return self.begins(text) and not any(match.lastgroup in ("mark", "open") for match in self.parts.finditer(text))

    def begins(self, text: str) -> bool:
        """Whether a text begins with a query, and not with a sentence such as "With the schema you sent:"."""
        found = self.start.match(text)
        if not found or not found["word"].istitle():
            return found is not None
        mark = _MARK.search(text)
        words = text[: mark.start() if mark else None].rstrip("*_ \t\r\n")
        return ";" in words or not words.endswith(_ENDS_OF_SENTENCES)


class _Read(NamedTuple):
    """The query of an answer, and from where it was read; else why there is none, where that is known."""

    query: str = ""
    places: tuple[str, ...] = ()
    why: str = ""

    def within(self, *places: str) -> _Read:
        return self._replace(places=(*places, *self.places))


SQL_TEXT = Language(
    name="sql",
    fences="sql sqlite sqlite3 postgresql postgres psql pgsql plpgsql mysql mariadb duckdb tsql plsql oracle bigquery"
    " snowflake trino presto clickhouse spark-sql sparksql vql",
    ignored=r"--[^\n]*+|\#[^\n]*+|/\*.*?\*/|[(;]",
    keywords="SELECT WITH VALUES FROM TABLE PIVOT UNPIVOT SUMMARIZE DESCRIBE DESC SHOW LIST EXISTS EXPLAIN ANALYZE"
    " PRAGMA CALL EXEC EXECUTE DECLARE SET USE BEGIN START COMMIT ROLLBACK INSERT UPDATE DELETE MERGE UPSERT REPLACE"
    " TRUNCATE CREATE ALTER DROP RENAME GRANT REVOKE ATTACH DETACH COPY LOAD INSTALL IMPORT EXPORT VACUUM REINDEX LOCK"
    " KILL DO",
    strings=rf"""--{_REST_OF_COMMENT}|/\*(?:(?!{_TAGS}).)*?\*/|'[^']*+'|"[^"]*+"|`[^`]*+`"""
    r"""|(?P<dollars>\$\w*+\$).*?(?P=dollars)""",
    open_string=r"""['"`]|/\*|\$\w*+\$""",
)
SPARQL_TEXT = Language(
    name="sparql",
    fences="sparql rq",
    ignored=r"\#[^\n]*+",
    keywords="PREFIX BASE VERSION SELECT ASK CONSTRUCT DESCRIBE INSERT DELETE WITH LOAD CLEAR CREATE DROP COPY"
    " MOVE ADD",
    strings=rf"""<[^<>"{{}}|^`\\\s]*+>|\#{_REST_OF_COMMENT}"""
    r"""|"{3}(?:"{0,2}(?:[^"\\]|\\.))*+"{3}|'{3}(?:'{0,2}(?:[^'\\]|\\.))*+'{3}"""
    r"""|"(?!"")(?:[^"\\\n]|\\.)*+"|'(?!'')(?:[^'\\\n]|\\.)*+'""",
    open_string=r"""["']""",
)
_MARKS_OF_LANGUAGES = SQL_TEXT.fence_names | SPARQL_TEXT.fence_names


def extract_query(said: str, language: Language) -> tuple[str, str]:
    r"""The query in what a model said, to the byte, and a note where there was more; else `said`, and why where known.

    Of several code blocks it is what all of them hold that may be meant, blanks at the ends aside. Takes time in
    proportion to the text; what is longer than LONGEST is not looked through.

    >>> extract_query("Here it is:\n```sql\nSELECT 1\n```", SQL_TEXT)
    ('SELECT 1', 'the query was read from a code block')
    >>> extract_query("SELECT 1", SQL_TEXT)
    ('SELECT 1', '')
    """
    if len(said) > LONGEST:
        return said, "" if language.start.match(said[:LONGEST]) else TOO_LONG
    if language.is_query(said):
        return said, ""
    read = _read(said, language)
    tags = list(_TAG.finditer(said))
    if len(_TAG.findall(read.query)) < len(tags):
        read = _behind_reasoning(said, tags, language)
    return (read.query, f"the query was read {' and '.join(read.places)}") if read.query else (said, read.why)


def _behind_reasoning(said: str, tags: Sequence[re.Match[str]], language: Language) -> _Read:
    """What stands behind the last end of reasoning, since reasoning may name its own tag.

    The template of some models begins the reasoning, so that their answers hold its end alone.
    """
    if not tags[0]["ends"] and language.begins(said[: tags[0].start()]):
        return _Read(why=GOES_ON)
    last = {tag["name"].lower(): tag["ends"] for tag in tags}
    if not all(last.values()):
        return _Read(why=UNENDED)
    return _read(said[tags[-1].end() :].lstrip(), language).within(_BEHIND_REASONING)


def _read(answer: str, language: Language) -> _Read:
    """The query of an answer without reasoning."""
    behind = _behind_a_label(answer)
    for text, places in ((answer, ()), (behind, (_BEHIND_A_LABEL,))):
        if language.is_query(text):
            return _Read(text, places)
        if language.begins(text):
            return _before_a_fence(text, language).within(*places)
    if _FENCE.match(behind) and _first_line(answer).endswith(_first_line(behind)):
        return _in_blocks(behind, language).within(_BEHIND_A_LABEL)
    return _in_blocks(answer, language)


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0]


def _behind_a_label(text: str) -> str:
    label = _LABEL.match(text)
    return text[label.end() :] if label else ""


def _before_a_fence(text: str, language: Language) -> _Read:
    """A query whose opening fence was given to the model, so that the answer holds the closing one alone."""
    query, _, last = text.rstrip().rpartition("\n")
    if _FENCE.fullmatch(last) and language.is_query(query):
        return _Read(query.removesuffix("\r"), (_BEFORE_A_FENCE,))
    return _Read(why=GOES_ON)


def _in_blocks(text: str, language: Language) -> _Read:
    """What all code blocks hold that may be meant: those that hold a query, or are said to."""
    blocks = list(code_blocks(text))
    meant = [(block, read) for block in blocks if (read := _in_block(block, language)) is not None]
    own = [read for block, read in meant if block.language not in _MARKS_OF_LANGUAGES - language.fence_names]
    reads = own or [read for _, read in meant]
    if reads and reads[0].query and len({read.query.strip() for read in reads}) == 1:
        return reads[0].within(_FROM_A_BLOCK)
    if len(reads) > 1:
        return _Read(why=f"the answer has {len(reads):,} code blocks that may be its {language.name} query, and differ")
    if len(blocks) > 1:
        return _Read(why=f"none of the {len(blocks):,} code blocks of the answer is said to be {language.name}")
    return _in_code(_between_fences(text.strip(), language), language).within(_FROM_A_BLOCK)


def _in_block(block: CodeBlock, language: Language) -> _Read | None:
    """The query in a block; none where one seems to begin beside the fence; None where nothing says that it has one."""
    if _begins_beside_the_fence(block, language):
        return _Read()
    read = _in_code(_content(block), language)
    is_said_so = block.language in language.fence_names and not block.content.isspace() and block.content
    return read if read.query or is_said_so else None


def _in_code(code: str, language: Language) -> _Read:
    if language.is_query(code):
        return _Read(code)
    behind = _behind_a_label(code)
    return _Read(behind, (_BEHIND_A_LABEL,)) if language.is_query(behind) else _Read()


def _begins_beside_the_fence(block: CodeBlock, language: Language) -> bool:
    """Whether a query seems to begin on the line of the fence; what follows may be a query as well, but another one."""
    words = block.info.split(maxsplit=1)
    return bool(words) and any(language.start.match(info) for info in (block.info, *words[1:]))


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
    return rest.lstrip() if first.lower() in language.fence_names else inner
