"""``/top.json`` for ``ottla top``: the broker, and the first topics, groups and errors.

Whole numbers are strings.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ..view.source import ViewSource, seen_inside
from .tables import first, none_last

_ROWS = 20


class Top:
    def __init__(self, source: ViewSource) -> None:
        self._source = source

    async def page(self, request: Request) -> Response:
        """Raises NotFoundError where the source is no broker's own."""
        view = seen_inside(self._source)
        groups, pace = await self._source.groups(), view.pace()
        broker = await self._source.cluster()
        topics = await first(
            [row for row in await self._source.topics() if not row.is_internal],
            lambda row: ((row.rates.bytes_in or 0) + (row.rates.bytes_out or 0), none_last(row.size)),
            _ROWS,
            pace,
        )
        behind = await first(groups, lambda row: none_last(row.lag), _ROWS, pace)
        shown = {"topics": topics, "groups": behind, "errors": view.errors()[:_ROWS]}
        return JSONResponse({"broker": as_json(broker), **{name: as_json(rows) for name, rows in shown.items()}})


def as_json(row: Any) -> Any:
    """A row, and all in it, with whole numbers as text: a browser would round those of 64 bits."""
    if dataclasses.is_dataclass(row):
        return {field.name: as_json(getattr(row, field.name)) for field in dataclasses.fields(row)}
    if isinstance(row, tuple | list):
        return [as_json(each) for each in row]
    if isinstance(row, int) and not isinstance(row, bool):
        return str(row)
    return row
