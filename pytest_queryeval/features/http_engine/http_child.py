"""The child process of the engine `http`, loaded by `host_child.py`: sends SQL over HTTP and reads answers in JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urljoin

from pytest_queryeval.documents.json_path import (
    DUPLICATE_MARK,
    dedupe_names,
    describe_document,
    json_type,
    names_one,
    read_json_with_duplicates,
    selected,
)
from pytest_queryeval.sandbox import driver
from pytest_queryeval.sandbox.cells import encode_rows
from pytest_queryeval.sandbox.driver import Answer, Fault, Settings, Verdict, make_answer
from pytest_queryeval.sandbox.http_messages import unreadable
from pytest_queryeval.sandbox.http_session import (
    QueryFailed,
    Request,
    RetryingRequest,
    Sessions,
    StatusPolicy,
    classify,
    make_request,
    next_page_request,
    origin,
)
from pytest_queryeval.text.redaction import register_secrets

# Services also send 404 for an unknown table; where the URL is wrong, the probe gets it too.
STATUS_POLICY = StatusPolicy(
    answers=range(200, 300),
    invalid={400, 404, 422},
    rejected={403, 405, 409, 410, 413, 414},
    follows_to_other_origins=False,
)


class Driver(driver.Driver):
    """Queries services over HTTP; `settings` are those of `sandbox/http_session.py` and of the engine."""

    def __init__(self) -> None:
        self._sessions = Sessions(trust_env=False)

    def run(self, settings: Settings, query: str, timeout: float) -> Answer:
        """Send `query`, read all pages, and return the encoded answer; raise the errors of `sandbox.http_session`.

        `timeout` limits all requests together.
        """
        deadline = time.monotonic() + timeout
        register_secrets(settings)
        request = RetryingRequest(self._sessions.get(settings), settings, STATUS_POLICY, deadline)
        columns, rows = table_of(Pages(request, settings, query), settings)
        return make_answer(columns, encode_rows(rows))

    def classify(self, error: Exception) -> Verdict:
        """Return the verdict on an error of `run`: whether the query or the service is at fault, and its message."""
        return classify(error)


class Page(NamedTuple):
    """The content of one page; rows, names and next URL are None if their JSONPath selects nothing."""

    rows: list[Any] | None
    names: list[str] | None
    """The names of the columns."""
    next_url: str | None
    shape: str
    """A description of the JSON document, for messages."""


class Pages:
    """The pages of an answer, requested one after the other until they have more than `max_rows` rows."""

    def __init__(self, request: RetryingRequest, settings: Settings, query: str) -> None:
        self._request = request
        self._settings = settings
        self._query = query

    def __iter__(self) -> Iterator[Page]:
        """Yield the pages: by `page_size` if it is set, else by the links of `next`.

        With `page_size`, pages follow up to the first empty page, because a shorter page may have been truncated. Raise
        `Fault` if a page is too long, or if a short page is followed by rows.
        """
        size = self._settings["page_size"]
        if not size:
            yield from self._linked_pages()
            return
        rows, number, previous_count = 0, 1, size
        while rows <= self._settings["max_rows"]:
            page = self._page(self._page_request(size, rows, number))
            yield page
            row_count = len(page.rows or ())
            if row_count > size:
                raise Fault(f"a page has {row_count:,} rows where `page_size` is {size:,}")
            if row_count and previous_count < size:
                raise Fault(f"a page has {previous_count:,} rows where `page_size` is {size:,}, and more follow")
            if not row_count:
                return
            rows, number, previous_count = rows + row_count, number + 1, row_count

    def _linked_pages(self) -> Iterator[Page]:
        """Yield the first page, then the page that the setting `next` selects in each page before it.

        Raise `Fault` if a link leads to another origin or to a page that was read.
        """
        request = self._page_request(self._settings["max_rows"] + 1, 0, 1)
        followed_urls = {request.url}
        rows = 0
        while rows <= self._settings["max_rows"]:
            page = self._page(request)
            yield page
            if page.next_url is None:
                return
            rows += len(page.rows or ())
            url = urljoin(request.url, page.next_url)
            if origin(url) != origin(self._settings["url"]):
                raise Fault(f"`next` ({self._settings['next']}) leads to another origin, which is not followed")
            if url in followed_urls:
                raise Fault(f"`next` ({self._settings['next']}) leads in a circle")
            followed_urls.add(url)
            request = next_page_request(url)

    def _page_request(self, limit: int, offset: int, page: int) -> Request:
        values: dict[str, str | int] = {"query": self._query, "limit": limit, "offset": offset, "page": page}
        return make_request(self._settings, values)

    def _page(self, request: Request) -> Page:
        headers, body = self._request.answer(request)
        kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
        try:
            document, repeating_objects = read_json_with_duplicates(body)
        except ValueError as error:
            raise Fault(unreadable(kind, body, error, expected="JSON")) from error
        refuse_error(document, self._settings)
        rows = self._rows(document)
        # Only rows may repeat a name: in any other object it is unclear which value counts.
        row_ids = {id(row) for row in rows or ()} if repeating_objects else set()
        if ambiguous_object := next((item for item in repeating_objects if id(item) not in row_ids), None):
            raise Fault(f"the answer is not valid JSON: an object has two members '{ambiguous_object.duplicate_name}'")
        next_urls = [url for url in _select(self._settings["next"], document) if url]
        if next_urls and not isinstance(next_urls[0], str):
            raise Fault(f"`next` ({self._settings['next']}) selects {json_type(next_urls[0])}, not a URL")
        selection = _select(self._settings["columns"], document)
        names = selection[0] if len(selection) == 1 and isinstance(selection[0], list) else selection
        if any(isinstance(name, dict | list) for name in names):
            path = self._settings["columns"]
            raise Fault(f"`columns` ({path}) selects no names: the answer is {describe_document(document)}")
        column_names = dedupe_names([str(name) for name in names]) or None
        return Page(rows, column_names, next_urls[0] if next_urls else None, describe_document(document))

    def _rows(self, document: Any) -> list[Any] | None:
        path = self._settings["rows"]
        if not _call_or_fault(names_one, path):
            raise Fault(f"`rows` ({path}) must select the list of rows, not the rows: `$.rows`, not `$.rows[*]`")
        row_lists = [value for value in _select(path, document) if value is not None]
        if row_lists and not isinstance(row_lists[0], list):
            selected_type, answer = json_type(row_lists[0]), describe_document(document)
            raise Fault(f"`rows` ({path}) selects {selected_type}, not a list: the answer is {answer}")
        return row_lists[0] if row_lists else None


def table_of(pages: Pages, settings: Settings) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Return the columns and the rows of all pages together.

    Raise `Fault` if `rows` selects nothing in any page, not even an empty list, or if `columns` selects no names. A
    page without rows is allowed if `next` is set.
    """
    nothing = f"`rows` ({settings['rows']}) selects nothing"
    rows: list[Any] | None = None
    names: list[str] | None = None
    answer_shape = ""
    for page in pages:
        # Services that name the next page leave out the rows where a page has none.
        if page.rows is None and not settings["next"]:
            raise Fault(f"{nothing}: the answer is {page.shape}")
        if page.rows is not None:
            rows = [] if rows is None else rows
            rows += page.rows
        names = names or page.names
        answer_shape = page.shape
    if rows is None and not names:
        raise Fault(f"{nothing}: the answer is {answer_shape}")
    if rows and settings["columns"] and not names:
        raise Fault(f"`columns` ({settings['columns']}) selects nothing: the answer is {answer_shape}")
    if settings["cells"]:
        rows = [_select(settings["cells"], row) for row in rows or []]
    columns, cells = _align(rows or [], names)
    return tuple(name.partition(DUPLICATE_MARK)[0] for name in columns), cells


def _align(rows: Sequence[Any], names: list[str] | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the names of the columns, and the rows as tuples in their order.

    Rows are all objects or all lists; a member that an object lacks becomes None. Lists without `names` get numbered
    columns. Raise `Fault` for rows of mixed types or lengths, and for objects with none of the `names`.
    """
    if all(isinstance(row, dict) for row in rows):
        row_names = dict.fromkeys(name for row in rows for name in row)
        if names and row_names and not row_names.keys() & set(names):
            raise Fault(f"rows are objects with none of the names that `columns` selects: {', '.join(names)}")
        names = names or list(row_names)
        return names, [tuple([row.get(name) for name in names]) for row in rows]
    kind = dict if isinstance(rows[0], dict) else list
    for number, row in enumerate(rows, 1):
        if not isinstance(row, kind):
            raise Fault(f"row {number} is {json_type(row)}: rows are all lists, or all objects")
    names = names or [f"column {number}" for number in range(1, len(rows[0]) + 1)]
    for number, row in enumerate(rows, 1):
        if len(row) != len(names):
            raise Fault(f"row {number} has {len(row)} cells, where there are {len(names)} columns")
    return names, list(map(tuple, rows))


def refuse_error(document: Any, settings: Settings) -> None:
    """Raise `QueryFailed` if the document has an error, or says that the answer was cut."""
    for value in _select(settings["error"], document):
        if value:
            raise QueryFailed("invalid", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    if any(_select(settings["truncated"], document)):
        raise QueryFailed("too_large", f"the service says that it cut the answer ({settings['truncated']})")


def _select(path: str | None, document: Any) -> list[Any]:
    return _call_or_fault(selected, path, document) if path else []


def _call_or_fault(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except ValueError as error:
        raise Fault(str(error)) from error
