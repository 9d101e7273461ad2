"""The kinds of rows that an Ottla broker tells the console of another one, and ``tell``, which answers for this broker.

At most ``MOST_TOLD`` rows of a kind are told, those first that matter most: the newest, the slowest, the applications with most
connections.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.errors import ErrorCode, KafkaError
from ...wire.messages.describe_inside import DescribeInsideRequest, DescribeInsideResponse
from ..errors import NotFoundError
from ..inside_rows import (
    ApplicationRow,
    AssignedRow,
    BatchRow,
    ConsumerRow,
    EventRow,
    LogRow,
    WholeRequest,
    WriterRow,
)
from ..rows import ConnectionRow, ErrorRow, RequestRow, SegmentRow
from .row_json import row_as_json

if TYPE_CHECKING:
    from .broker_view import BrokerView

MOST_TOLD = 1000
CONNECTIONS, APPLICATIONS = "connections", "applications"
REQUESTS, ERRORS, SLOWEST = "requests", "errors", "slowest"
WRITERS, CONSUMERS, ASSIGNED = "writers", "consumers", "assigned"
"""Of a topic: producers of the partitions that the broker leads, connections that read, members of the groups it coordinates."""
TIMELINE = "timeline"
"""Of a group."""
REQUEST = "request"
"""One request in full, by its number."""
LOG, SEGMENTS, BATCHES = "log", "segments", "batches"
"""Of a replica: its one row, its newest segments, and its batches from an offset on."""

_Asked = DescribeInsideRequest


class RowKind(NamedTuple):
    row_class: type[Any]
    read: Callable[[BrokerView, DescribeInsideRequest], Awaitable[Sequence[Any]]]
    """Raises NotFoundError, KafkaError."""


async def tell(view: BrokerView, asked: DescribeInsideRequest) -> DescribeInsideResponse:
    """The answer to a request. Raises KafkaError."""
    try:
        rows = await own_rows(view, asked)
    except NotFoundError:
        return DescribeInsideResponse()
    told, pace = [], view.pace()
    for row in rows[:MOST_TOLD]:
        told.append(row_as_json(row))
        if pace.is_due(4):
            await pace.rest()
    return DescribeInsideResponse(total=len(rows), rows=told)


async def own_rows(view: BrokerView, asked: DescribeInsideRequest) -> Sequence[Any]:
    """This broker's rows of a kind, those first that are told first. Raises NotFoundError, KafkaError."""
    kind = KINDS.get(asked.kind)
    if kind is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"there are no {asked.kind!r} here")
    return await kind.read(view, asked)


# --- how each kind is read --------------------------------------------------------------------------------------------


async def _connections(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return list(reversed(await view.connections()))


async def _applications(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return sorted(await view.details.applications(), key=lambda row: -row.connections)


async def _requests(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return view.last_requests()


async def _errors(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return view.errors()


async def _slowest(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return view.details.slowest()


async def _writers(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    leaders, own = view.leaders(asked.name), view.node_id
    rows = [row for row in await view.details.writers(asked.name) if leaders.get(row.partition) == own]
    return sorted(rows, key=lambda row: -row.last_ms)


async def _consumers(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return await view.details.consumers(asked.name)


async def _assigned(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return await view.details.assigned(asked.name)


async def _timeline(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return view.details.timeline(asked.name)


async def _request(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return [await view.details.request(asked.number)]


async def _log(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return [view.details.log(asked.name, asked.number)]


async def _segments(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return (await view.segments(asked.name, asked.number))[::-1]


async def _batches(view: BrokerView, asked: _Asked) -> Sequence[Any]:
    return await view.details.batches(asked.name, asked.number, asked.offset)


KINDS = {
    CONNECTIONS: RowKind(ConnectionRow, _connections),
    APPLICATIONS: RowKind(ApplicationRow, _applications),
    REQUESTS: RowKind(RequestRow, _requests),
    ERRORS: RowKind(ErrorRow, _errors),
    SLOWEST: RowKind(RequestRow, _slowest),
    WRITERS: RowKind(WriterRow, _writers),
    CONSUMERS: RowKind(ConsumerRow, _consumers),
    ASSIGNED: RowKind(AssignedRow, _assigned),
    TIMELINE: RowKind(EventRow, _timeline),
    REQUEST: RowKind(WholeRequest, _request),
    LOG: RowKind(LogRow, _log),
    SEGMENTS: RowKind(SegmentRow, _segments),
    BATCHES: RowKind(BatchRow, _batches),
}
