"""The query in the answer of a model: without reasoning, a label before it, and the code block around it.

A wrong query would be scored as if it were the model's. So an answer that begins with a query is that query. The text
in a code block or after a label is used only if it begins like a query. Of several queries that differ, none is used.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice, pairwise
from typing import NamedTuple

from pytest_queryeval.core.model import Failure
from pytest_queryeval.text.formatting import one_line

_FENCE_LINE = re.compile(r"^( {0,3})(`{3,}|~{3,})([^\n]*)(?:\n|\Z)", re.MULTILINE)
# Characters that look like those of a query, by what to write instead.
_INSTEAD = {
    "a space": "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    "nothing": "\u00ad\u200b\u200c\u200d\u2060\ufeff",
    "a straight quote": "\u2018\u2019\u201a\u201b\u2032\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u2039\u203a",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\uff0d",
    "its ASCII form": "\uff08\uff09\uff0c\uff1b\uff1d\uff1c\uff1e\uff0a\uff0e\uff0f\uff0b",
}
_REMEDIES = {character: remedy for remedy, characters in _INSTEAD.items() for character in characters}
LOOKALIKES = f"[{''.join(_REMEDIES)}]"


class _Block(NamedTuple):
    """A fenced block within a text: its fence, info string and indentation, and the start and end of its content."""

    fence: str
    info: str
    indentation: int
    start: int
    end: int


class CodeBlock(NamedTuple):
    """A fenced block: its fence and info string, its content and first line, and whether a fence closes it."""

    fence: str
    info: str
    content: str
    line: int
    is_closed: bool

    @property
    def language(self) -> str:
        """The first word of the info string, in lower case; empty if there is none."""
        return next(iter(self.info.lower().split(maxsplit=1)), "")


def code_blocks(text: str) -> Iterator[CodeBlock]:
    r"""Yield the fenced code blocks of a text.

    Fences are those of CommonMark outside of lists and quotes; a block that nothing closes ends with the text. The
    content has no line end at its end. The time is linear in the text.

    >>> [(block.language, block.content, block.line) for block in code_blocks("It is:\n```json\n{}\n```")]
    [('json', '{}', 3)]
    """
    line, counted = 1, 0
    for block in _blocks(text):
        line, counted = line + text.count("\n", counted, block.start), block.start
        yield CodeBlock(block.fence, block.info.strip(), _content(text, block), line, is_closed=block.end < len(text))


def _blocks(text: str) -> Iterator[_Block]:
    opening: re.Match[str] | None = None
    for fence in _FENCE_LINE.finditer(text):
        if opening is None:
            # Backticks followed by backticks are code within a line.
            opening = fence if fence[2][0] == "~" or "`" not in fence[3] else None
        elif fence[2].startswith(opening[2]) and not fence[3].strip(" \t\r"):
            yield _block(opening, fence.start())
            opening = None
    if opening is not None:
        yield _block(opening, len(text))


def _block(opening: re.Match[str], end: int) -> _Block:
    return _Block(fence=opening[2], info=opening[3], indentation=len(opening[1]), start=opening.end(), end=end)


def _content(text: str, block: _Block) -> str:
    content = text[block.start : block.end].removesuffix("\n").removesuffix("\r")
    return re.sub(rf"(?m)^ {{1,{block.indentation}}}", "", content) if block.indentation else content


def lookalike(query: str, parts: re.Pattern[str]) -> str:
    """Return the place of the first lookalike character outside of strings and comments, and what to write.

    Return an empty text if there is none. `parts` is a pattern that finds strings and comments, the group `open` for a
    string that does not end, and the group `lookalike` for a character of LOOKALIKES. Nothing behind an open string is
    searched.
    """
    for part in parts.finditer(query):
        if part.lastgroup == "open":
            return ""
        if part.lastgroup == "lookalike":
            line = query.count("\n", 0, part.start()) + 1
            column = part.start() - query.rfind("\n", 0, part.start())
            name = unicodedata.name(part[0]).lower()
            return f"line {line}, column {column} is U+{ord(part[0]):04X}, {name}: write {_REMEDIES[part[0]]}"
    return ""


MAX_ANSWER = 2**18  # characters; no query has more, and an answer is read several times
TOO_LONG = f"the answer has more than {MAX_ANSWER:,} characters, so it was not searched for a query"
NO_END = "the answer ends within its reasoning: raise the token limit of the model if that has cut it"
GOES_ON = "the answer begins with a query, and more text follows"
_AFTER_REASONING = "from the text after reasoning"
_AFTER_LABEL = "from the text after a label"
_BEFORE_FENCE = "from the text before a closing fence"
_FROM_BLOCK = "from a code block"
AFTER_PROSE = "the query was read from the text after prose"
STARTS_WITH_PROSE = "the text starts with prose, not with a query"
STARTS_ABOVE_QUERY = "other text precedes the query, which begins on line {line}: leave it out of the answer"
IN_JSON = "the text is a JSON object, whose '{key}' begins like a query: return this alone"
ENDS_WITH_PROSE = "prose follows the query"
MAX_PARAGRAPHS = 50  # of prose, after which a query is looked for
ALIKE = 0.8  # the share of equal characters from which a word is taken for a misspelt keyword
MIN_WORDS = 3  # of a sentence
MAX_PROSE = 60  # characters of it in a message

# Ends of reasoning, and its beginnings. Some of these are names of a query as well, and no tags within its lines.
_ATTRIBUTES = r"""(?:\s++[\w-]++=(?:"[^"<>]*+"|'[^'<>]*+'))*+\s*+"""
_END_TAG = (
    r"(?i:</(?:think(?:ing)?|thoughts?|reasoning|scratchpad|reflection)>)|(?-i:\[/THINK\])"
    r"|<\|channel\|>final[^<\n]*+(?:<\|constrain\|>[^<\n]*+)?<\|message\|>"
)
_FIRM_TAG = rf"(?i:<think(?:ing)?{_ATTRIBUTES}>)|<\|channel\|>(?:analysis|commentary)"
_OTHER_TAG = rf"(?i:<(?:thoughts?|reasoning|scratchpad|reflection){_ATTRIBUTES}>)|(?-i:\[THINK\])"
_TAGS = rf"(?:{_END_TAG}|{_FIRM_TAG}|^[ \t]*+(?:{_OTHER_TAG}))"
# Lines that a query has only in strings, quoted names and comments, and tags that it has only in strings.
_MARKS = rf"^[ ]{{0,3}}(?:`{{3,}}+[^`\n]*+$|~{{3,}})|{_TAGS}"
_MARK = re.compile(_MARKS, re.MULTILINE)
_TAG = re.compile(rf"(?P<ends>{_END_TAG})|{_FIRM_TAG}|{_OTHER_TAG}")
_END_OF_MESSAGE = re.compile(r"<\|(?:return|end|eot_id|im_end)\|>\s*+\Z")
_REST_OF_COMMENT = rf"(?:[^\n<\[]++|(?!{_TAGS})[<\[])*+"
_FENCE = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_LABEL = r"\s*+(\*\*|__)?+\s*+(?:(?:SQL|SPARQL|{name})(?:[ ]?Query)?|Query|Answer)\s*+(?(1)(?::\s*+\1|\1\s*+:)|:)\s*+"
_END_OF_PARAGRAPH = re.compile(r":[ \t]*\r?\n\s*+|\n[ \t\r]*\n\s*+")
_END_OF_QUERY = re.compile(r";[ \t\r]*\n\s*+|\n[ \t\r]*\n\s*+")
_END_OF_INTRODUCTION = re.compile(r"[:.!][*_]*+[ \t]++")
_ENDS_OF_SENTENCES = (":", ".", "!", "?", "\u2026")


@dataclass(frozen=True, kw_only=True)
class Language:
    """What distinguishes queries of a language from other text.

    `ignored`, `strings` and `open_string` are regular expressions.
    """

    name: str
    keywords: str
    """The words that a query may begin with, separated by spaces."""
    fences: str = ""
    """The info strings of code blocks in the language, separated by spaces; `name` if empty."""
    ignored: str = r"#[^\n]*+|//[^\n]*+|--[^\n]*+"
    """Text that may precede the first keyword, such as comments."""
    strings: str = r"""'[^']*+'|"[^"]*+"|`[^`]*+`"""
    """Strings, quoted names and comments, in which a code fence has no meaning."""
    open_string: str = r"""['"`]"""
    """The opening mark of a string, quoted name or comment that does not end."""

    @cached_property
    def fence_names(self) -> frozenset[str]:
        """The info strings of code blocks in the language."""
        return frozenset((self.fences or self.name).split())

    @cached_property
    def start(self) -> re.Pattern[str]:
        """A pattern that matches the start of a query up to its first keyword, the group `word`."""
        words = "|".join(self.keywords.split())
        return re.compile(rf"(?:\s++|{self.ignored})*+(?P<word>{words})\b", re.IGNORECASE | re.DOTALL)

    @cached_property
    def label(self) -> re.Pattern[str]:
        """A pattern that matches a label before a query, such as `SQL query:`."""
        return re.compile(_LABEL.format(name=re.escape(self.name)), re.IGNORECASE)

    @cached_property
    def parts(self) -> re.Pattern[str]:
        """A pattern that finds fences and tags as the group `mark`, and strings; a string without an end is `open`.

        Nothing after an open string is searched, so that a text is read only once.
        """
        pattern = rf"(?P<mark>{_MARKS})|{self.strings}|(?P<open>{self.open_string})"
        return re.compile(pattern, re.MULTILINE | re.DOTALL)

    @cached_property
    def lookalikes(self) -> re.Pattern[str]:
        """A pattern for `lookalike`: strings and comments, and characters outside of them that look like others."""
        pattern = rf"{self.strings}|(?P<lookalike>{LOOKALIKES})|(?P<open>{self.open_string})"
        return re.compile(pattern, re.MULTILINE | re.DOTALL)

    def is_query(self, text: str) -> bool:
        """Return whether a text begins like a query and contains no code fence or reasoning tag outside the query.

        A text without fences and tags only has to begin like a query. In any other text, fences may be in strings,
        names and comments; reasoning tags only in strings and names. Such a text is no query if it begins with a
        sentence, or if a string, name or comment does not end.
        """
        if not self.start.match(text):
            return False
        if not _MARK.search(text):
            return True
        return self.begins(text) and not any(match.lastgroup in ("mark", "open") for match in self.parts.finditer(text))

    def begins(self, text: str) -> bool:
        """Return whether a text begins with a query, and not with a sentence such as "With the schema you sent:"."""
        match = self.start.match(text)
        if not match or not match["word"].istitle():
            return match is not None
        mark = _MARK.search(text)
        words = text[: mark.start() if mark else None].rstrip("*_ \t\r\n")
        return ";" in words or not words.endswith(_ENDS_OF_SENTENCES)


class _Read(NamedTuple):
    """The result of reading an answer: its query and where that was, or why it has none."""

    query: str = ""
    """The query, or empty if the answer has none."""
    places: tuple[str, ...] = ()
    """Where the query was, from the outside in: phrases for the note."""
    why: str = ""
    """Why there is no query, if known."""

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
_FENCES_OF_LANGUAGES = SQL_TEXT.fence_names | SPARQL_TEXT.fence_names


def extract_query(answer: str, language: Language) -> tuple[str, str]:
    r"""Return the query in the answer of a model, and a note on the text around the query.

    If no query is found, return the answer, and the reason if it is known. Several code blocks count if all candidates
    are the same query, apart from spaces at the ends. The time is linear in the text; an answer longer than MAX_ANSWER
    is not searched.

    >>> extract_query("Here it is:\n```sql\nSELECT 1\n```", SQL_TEXT)
    ('SELECT 1', 'the query was read from a code block')
    >>> extract_query("SELECT 1", SQL_TEXT)
    ('SELECT 1', '')
    """
    if len(answer) > MAX_ANSWER:
        return answer, "" if language.start.match(answer[:MAX_ANSWER]) else TOO_LONG
    if language.is_query(answer):
        return answer, ""
    reading = _read_without_reasoning(answer, language)
    tags = reasoning_tags(answer)
    if len(_TAG.findall(reading.query)) < len(tags):
        reading = _after_reasoning(answer, tags, language)
    if not reading.query:
        return answer, reading.why
    return reading.query, f"the query was read {' and '.join(reading.places)}"


def after_prose(answer: str, language: Language) -> str:
    r"""Return the text that begins like a query after prose that ends with a blank line or a colon.

    Return an empty text if there is none.

    >>> after_prose("Here is the query:\n\nSELECT 1", SQL_TEXT)
    'SELECT 1'
    """
    if len(answer) > MAX_ANSWER or _MARK.search(answer) or language.start.match(answer):
        return ""
    for end in islice(_END_OF_PARAGRAPH.finditer(answer), MAX_PARAGRAPHS):
        prose, query = answer[: end.end()].rstrip("*_ \t\r\n"), answer[end.end() :]
        if language.begins(query):
            return query if prose.endswith(_ENDS_OF_SENTENCES) and ";" not in prose else ""
    return ""


def text_hint(query: str, language: Language) -> str:
    """Return a likely reason why the text of a query is invalid: text around it, JSON, or a lookalike.

    Return an empty text if there is none.
    """
    if len(query) > MAX_ANSWER:
        return ""
    if language.start.match(query):
        if sentences_behind(query):
            return ENDS_WITH_PROSE
    elif key := _key_of_query(query, language):
        return IN_JSON.format(key=key)
    elif why := _in_blocks(query, language).why:
        return why
    elif _starts_with_prose(query, language):
        return STARTS_WITH_PROSE
    elif line := _first_line_of_query(query, language):
        return STARTS_ABOVE_QUERY.format(line=line)
    return lookalike(query, language.lookalikes)


def _key_of_query(text: str, language: Language) -> str:
    """Return the key under which a JSON object, also one in a code block, has a query; else an empty text."""
    blocks = list(code_blocks(text))
    content = blocks[0].content if len(blocks) == 1 else text
    if not content.lstrip().startswith("{"):
        return ""
    try:
        entries = json.loads(content).items()
    except (ValueError, RecursionError):
        return ""
    return next((key[:40] for key, value in entries if isinstance(value, str) and language.begins(value)), "")


def _starts_with_prose(text: str, language: Language) -> bool:
    """Return whether a sentence precedes a possible query.

    The first line is a sentence, or begins with an introduction such as `Answer: ` before a query, or prose is a
    paragraph of its own (`after_prose`).
    """
    first_line = _first_line(text).strip()
    if first_line.endswith(_ENDS_OF_SENTENCES) and ";" not in first_line and len(first_line.split()) >= MIN_WORDS:
        return True
    introductions = (
        first_line[: end.end()] for end in islice(_END_OF_INTRODUCTION.finditer(first_line), MAX_PARAGRAPHS)
    )
    return any(
        _is_capitalized(introduction) and ";" not in introduction and language.begins(first_line[len(introduction) :])
        for introduction in introductions
    ) or bool(after_prose(text, language))


def _first_line_of_query(text: str, language: Language) -> int:
    """Return the number of the line, from 2, on which a query begins after other text; 0 if there is none.

    A first word in capitals, or one that is like a keyword, is probably part of an invalid query, as is a semicolon.
    """
    first_word = _first_line(text).partition(" ")[0]
    keywords = language.keywords.lower().split()
    if first_word.isupper() or get_close_matches(first_word.lower(), keywords, n=1, cutoff=ALIKE):
        return 0
    ends = islice(re.finditer("\n", text), MAX_PARAGRAPHS)
    start = next(filter(None, (language.start.match(text, end.end()) for end in ends)), None)
    before = text[: start.start("word")] if start else ";"
    return 0 if ";" in before else before.count("\n") + 1


def sentences_behind(query: str) -> str:
    """Return the text from the first sentences on that follow a query; empty if there are none.

    They have to follow a blank line, or a semicolon that ends its line.
    """
    ends = [end.end() for end in islice(_END_OF_QUERY.finditer(query), MAX_PARAGRAPHS)]
    paragraphs = pairwise([*ends, len(query)])
    return next(
        (query[start:] for start, end in paragraphs if is_sentence(_END_OF_QUERY.sub("", query[start:end]))), ""
    )


def text_follows(prose: str) -> Failure:
    """Return the failure of a query that no engine runs because prose follows it."""
    return Failure(kind="invalid", message=f"text follows the query: {one_line(prose, MAX_PROSE)}")


def is_sentence(text: str) -> bool:
    """Return whether all of a text reads like sentences, and not like a part of a query."""
    end = text.rstrip("*_`) \t\r\n")
    return (
        _is_capitalized(text)
        and len(text.split(maxsplit=MIN_WORDS)) >= MIN_WORDS
        and end.endswith((".", "!"))
        and not end[-2:-1].isdigit()
        and ";" not in text
    )


def _is_capitalized(text: str) -> bool:
    """Return whether the first word has a capital and then a small letter, unlike most keywords."""
    first_letters = text.lstrip("*_ \t\r\n")[:2]
    return first_letters[:1].isupper() and not first_letters[1:].isupper()


def _after_reasoning(answer: str, tags: Sequence[re.Match[str]], language: Language) -> _Read:
    """Return the reading of the text after the last end of reasoning; without such an end, only why there is no query.

    The prompt template of some models begins the reasoning, so that their answers have only its end.
    """
    if not tags[0]["ends"] and language.begins(answer[: tags[0].start()]):
        return _Read(why=GOES_ON)
    span = span_after_reasoning(answer, tags)
    if span is None:
        return _Read(why=NO_END)
    return _read_without_reasoning(answer[slice(*span)].lstrip(), language).within(_AFTER_REASONING)


def reasoning_tags(answer: str) -> list[re.Match[str]]:
    """Return the matches of tags where reasoning begins, or ends (group `ends`), also of tags within texts."""
    return list(_TAG.finditer(answer))


def span_after_reasoning(answer: str, tags: Sequence[re.Match[str]]) -> tuple[int, int] | None:
    """Return the start and the end of the text after the last tag of reasoning; None if some reasoning does not end.

    `tags` are all tags of the answer, at least one. Reasoning may contain its own tag, so only the last counts.
    """
    names = [re.findall(r"\w+", tag[0])[0].lower() for tag in tags]
    if not all({name: tag["ends"] for name, tag in zip(names, tags, strict=True)}.values()):
        return None
    start = tags[-1].end()
    end = _END_OF_MESSAGE.search(answer, start)
    return start, end.start() if end else len(answer)


def _read_without_reasoning(answer: str, language: Language) -> _Read:
    """Return the reading of an answer without reasoning.

    The query is the answer itself, its text after a label, one of these before a closing fence, or a code block. If
    text follows a query, there is no query but a reason.
    """
    text_after_label = _after_label(answer, language)
    for text, places in ((answer, ()), (text_after_label, (_AFTER_LABEL,))):
        if language.is_query(text):
            return _Read(text, places)
        if language.begins(text):
            # The opening fence may be part of the prompt, so that the answer has only the closing one.
            query, _, last_line = text.rstrip().rpartition("\n")
            if _FENCE.fullmatch(last_line) and language.is_query(query):
                return _Read(query.removesuffix("\r"), (*places, _BEFORE_FENCE))
            return _Read(why=GOES_ON)
    if _FENCE.match(text_after_label) and _first_line(answer).endswith(_first_line(text_after_label)):
        return _in_blocks(text_after_label, language).within(_AFTER_LABEL)
    return _in_blocks(answer, language)


def _first_line(text: str) -> str:
    return text.lstrip().partition("\n")[0]


def _after_label(text: str, language: Language) -> str:
    label = language.label.match(text)
    return text[label.end() :] if label else ""


def _in_blocks(text: str, language: Language) -> _Read:
    """Return the reading of the code blocks that contain a query or are marked as one.

    Blocks marked as another language count only if there are no others. There is no query, but a reason, if the blocks
    differ or none is a candidate. A block on a single line is read too.
    """
    blocks = list(code_blocks(text))
    candidates = [(block, read) for block in blocks if (read := _in_block(block, language)) is not None]
    language_reads = [
        read for block, read in candidates if block.language not in _FENCES_OF_LANGUAGES - language.fence_names
    ]
    reads = language_reads or [read for _, read in candidates]
    if reads and reads[0].query and len({read.query.strip() for read in reads}) == 1:
        return reads[0].within(_FROM_BLOCK)
    if len(reads) > 1:
        return _Read(why=f"the answer has {len(reads):,} code blocks that may be its {language.name} query, and differ")
    if len(blocks) > 1:
        return _Read(why=f"none of the {len(blocks):,} code blocks of the answer is marked as {language.name}")
    text = text.strip()
    if not (text.startswith("```") and text.endswith("```") and text.count("```") == 2):
        return _Read()
    fenced_text = text[3:-3].strip()  # on the line of the fence: ```sql SELECT 1```
    first_word, _, code = fenced_text.partition(" ")
    return _in_code(code.lstrip() if first_word.lower() in language.fence_names else fenced_text, language).within(
        _FROM_BLOCK
    )


def _in_block(block: CodeBlock, language: Language) -> _Read | None:
    """Return the reading of a code block; None if it is not a candidate.

    The reading has no query if one seems to begin on the line of the fence.
    """
    words = block.info.split(maxsplit=1)
    if words and any(language.start.match(info) for info in (block.info, *words[1:])):
        return _Read()  # the content may be a query, too, but not the whole one
    content, trimmed_content = block.content, block.content.rstrip()
    # A fence at the end of a line is not a fence in Markdown.
    if not block.is_closed and trimmed_content.endswith(block.fence):
        content = trimmed_content.removesuffix(block.fence)
    reading = _in_code(content, language)
    is_marked = block.language in language.fence_names and not block.content.isspace() and block.content
    return reading if reading.query or is_marked else None


def _in_code(code: str, language: Language) -> _Read:
    if language.is_query(code):
        return _Read(code)
    text_after_label = _after_label(code, language)
    return _Read(text_after_label, (_AFTER_LABEL,)) if language.is_query(text_after_label) else _Read()
