"""Paged tables: the filter, the sort order and the page are in the address.

What is filtered and sorted is taken in parts, so that the loop goes on meanwhile.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from ..view.own.all_brokers import BrokersRows
from ..view.pace import Pace

T = TypeVar("T")

PAGE_ROWS = 50
_MOST_PAGES = 100_000
_PART = 1000


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    title: str
    key: Callable[[Any], Any] | None = None
    """The sort key of a row; None if the column cannot be sorted by."""
    is_number: bool = False
    """Sorting begins with the largest."""


class Part(NamedTuple, Generic[T]):
    """A page of a list."""

    rows: Sequence[T]
    found: int
    """The number of rows that match the filter, on all pages."""
    total: int
    page: int
    pages: int


class TableQuery:
    """The filter, order and page in an address: ``q``, ``sort`` and ``page``."""

    def __init__(self, request: Request, columns: Sequence[TableColumn], default: str) -> None:
        self._path = request.url.path
        self._given = dict(request.query_params)
        self.columns = columns
        self.q = self._given.get("q", "").strip()[:500]
        """A part of the name."""
        sort = self._given.get("sort", default)
        known = {column.name: column for column in columns if column.key is not None}
        if sort.removeprefix("-") not in known:
            sort = default
        self.sort = sort.removeprefix("-")
        """A column; in the address, a leading - turns the order round."""
        self.is_turned = sort.startswith("-")
        key = known[self.sort].key
        assert key is not None
        self._key = key
        self._is_number = known[self.sort].is_number
        page = self._given.get("page", "1")
        self.page = min(max(int(page), 1), _MOST_PAGES) if page.isascii() and page.isdigit() and len(page) < 10 else 1
        """From 1 on."""

    def has(self, name: str) -> bool:
        return bool(self._given.get(name))

    def address(self, **changed: str | int | None) -> str:
        """This page's address with something changed; None takes it out."""
        given: Mapping[str, str | int | None] = self._given | changed
        query = urlencode({name: value for name, value in given.items() if value not in (None, "")})
        return f"{self._path}?{query}" if query else self._path

    def sorted_by(self, name: str) -> str:
        """The address with the rows sorted by a column, or by it the other way round where they are already."""
        return self.address(sort=f"-{name}" if name == self.sort and not self.is_turned else name, page=None)

    def direction(self, name: str) -> str:
        """As aria-sort has it."""
        if name != self.sort:
            return "none"
        return "descending" if self._is_number != self.is_turned else "ascending"

    async def part(self, rows: Sequence[T], matches: Callable[[T], bool], pace: Pace) -> Part[T]:
        """The rows of the page that was asked for."""
        key, is_falling = self._key, self._is_number != self.is_turned
        parts: list[list[T]] = []
        for start in range(0, len(rows), _PART):
            some = [row for row in rows[start : start + _PART] if matches(row)]
            parts.append(sorted(some, key=key, reverse=is_falling))
            if pace.is_due(_PART):
                await pace.rest()
        found = sum(map(len, parts))
        pages = max((found + PAGE_ROWS - 1) // PAGE_ROWS, 1)
        page = min(self.page, pages)
        first = (page - 1) * PAGE_ROWS
        merged = heapq.merge(*parts, key=key, reverse=is_falling)
        taken = 0
        while taken + _PART <= first:
            taken += sum(1 for _ in islice(merged, _PART))
            if pace.is_due(_PART):
                await pace.rest()
        return Part(list(islice(merged, first - taken, first - taken + PAGE_ROWS)), found, len(rows), page, pages)


_BROKER = TableColumn("broker", "Broker", lambda row: -row.broker, is_number=True)


def of_brokers(columns: Sequence[TableColumn], told: BrokersRows) -> Sequence[TableColumn]:
    """The columns, with the broker as the last one where there are several."""
    return (*columns, _BROKER) if told.several else columns


async def first(rows: Sequence[T], key: Callable[[T], Any], count: int, pace: Pace) -> list[T]:
    """The ``count`` rows with the largest keys, largest first."""
    found: list[T] = []
    for start in range(0, len(rows), _PART):
        found = heapq.nlargest(count, [*found, *rows[start : start + _PART]], key=key)
        if pace.is_due(_PART):
            await pace.rest()
    return found


def none_last(value: float | None) -> float:
    """A number to sort by, where what is not known is smaller than everything."""
    return -1 if value is None else value
