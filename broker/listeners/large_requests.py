"""Large requests (above 256 KiB, except Produce), read and handled without blocking the event loop.

Invariants:

- A client that has none of the rights that an API looks at is refused as soon as the start of such a request is there: the
  connection is closed before more of it is received. (Produce is answered in any case: its records are not copied.)
- Its arrays have at most ``ottla.request.max.entries`` elements together, which bounds the memory that it takes beyond its own
  size; with more the connection is closed. What only brokers and administrators may send has no such limit.
- A worker decodes it, one at a time, and encodes its response.
- Where the entries of a request are independent of each other it is handled in parts, and other tasks have their turn between
  them. A group's offsets are committed part by part then.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import trio

from ...base.errors import KafkaError, ProtocolError
from ...base.worker_errors import run_expecting
from ...handlers.call import CloseConnection, NodeCall
from ...handlers.rights import Right
from ...handlers.table import Handler
from ...security.acl import CLUSTER_NAME, ResourceType
from ...wire.api_keys import ApiKey
from ...wire.codec import decode
from ...wire.headers import key_and_version
from ...wire.schema import Array, Struct, replace
from ..settings import BrokerSettings

LARGE_FRAME = 256 << 10
_ENTRIES_AT_ONCE = 500
_S = TypeVar("_S", bound=Struct)


@dataclasses.dataclass(frozen=True, slots=True)
class EntryArrays:
    """Where the independent entries of an API are: names of arrays, from the message down."""

    asked: Sequence[str]
    """In the request."""
    answered: Sequence[str]
    """In the response."""

    def parts(self, request: _S) -> Iterator[_S]:
        """Requests for the same entries, of which each has ``_ENTRIES_AT_ONCE`` at most."""
        return _parts(request, self.asked)

    def join(self, response: Struct, more: Struct) -> None:
        """Add the entries of another part's response, and its error if it is the first."""
        _join(response, more, self.answered)


_OF_TOPICS = EntryArrays(("topics", "partitions"), ("topics", "partitions"))
_INDEPENDENT: Mapping[ApiKey, Callable[[int], EntryArrays]] = {
    ApiKey.METADATA: lambda version: EntryArrays(("topics",), ("topics",)),
    ApiKey.LIST_OFFSETS: lambda version: _OF_TOPICS,
    ApiKey.OFFSET_COMMIT: lambda version: _OF_TOPICS,
    ApiKey.OFFSET_FETCH: lambda version: (
        EntryArrays(("groups", "topics", "partition_indexes"), ("groups", "topics", "partitions"))
        if version >= 8
        else EntryArrays(("topics", "partition_indexes"), ("topics", "partitions"))
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda version: _OF_TOPICS,
    ApiKey.OFFSET_DELETE: lambda version: _OF_TOPICS,
    ApiKey.DELETE_RECORDS: lambda version: _OF_TOPICS,
    ApiKey.DESCRIBE_PRODUCERS: lambda version: EntryArrays(("topics", "partition_indexes"), ("topics", "partitions")),
    ApiKey.DESCRIBE_CONFIGS: lambda version: EntryArrays(("resources",), ("results",)),
    ApiKey.DESCRIBE_GROUPS: lambda version: EntryArrays(("groups",), ("groups",)),
    ApiKey.DELETE_GROUPS: lambda version: EntryArrays(("groups_names",), ("results",)),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda version: EntryArrays(("transactional_ids",), ("transaction_states",)),
    ApiKey.FIND_COORDINATOR: lambda version: EntryArrays(("coordinator_keys",), ("coordinators",)),
}


def refuse_without_rights(call: NodeCall, start: memoryview, size: int) -> None:
    """Look at the start of a large frame of ``size`` bytes. Raises CloseConnection for a client without any right to its API."""
    api_key, _ = key_and_version(int.from_bytes(start[:4]))
    handler = call.node.served.by_key.get(api_key)
    authorizer = call.node.authorizer
    if handler is None or authorizer is None or not authorizer.is_loaded or api_key == ApiKey.PRODUCE:
        return
    if handler.looks_at and not any(_has(call, right) for right in handler.looks_at):
        raise CloseConnection(
            f"{handler.api_key.name} of {size} bytes from {call.connection.principal}, which has no right to it"
        )


def _has(call: NodeCall, right: Right) -> bool:
    authorizer = call.node.authorizer
    assert authorizer is not None
    if right.resource_type is ResourceType.CLUSTER:
        return authorizer.allows(call.connection, right.operation, right.resource_type, CLUSTER_NAME, False, "")
    return authorizer.allows_by_resource_type(call.connection, right.operation, right.resource_type)


async def decode_large(call: NodeCall, handler: Handler, version: int, body: memoryview) -> Any:
    """The request in ``body``, decoded by a worker. Raises ProtocolError."""
    assert handler.request_class is not None
    most = None
    if handler.cluster_right is None:
        most = call.node.config.settings(BrokerSettings).request_max_entries
    read = functools.partial(decode, handler.request_class, version, body, ignore_rest=True, most_elements=most)
    async with call.node.large_decoding:
        return await run_expecting(call.node.workers, ProtocolError, read)


async def handle_in_parts(call: NodeCall, handler: Handler, version: int, request: Any) -> Any:
    """The response to a large request. Raises what its handler raises."""
    assert handler.handle is not None
    assert handler.error_response is not None
    await call.flush()
    find = _INDEPENDENT.get(handler.api_key)
    if find is None:
        return await handler.handle(call, request)
    entries = find(version)
    response = None
    for part in entries.parts(request):
        try:
            answered = await handler.handle(call, part)
        except KafkaError as error:
            call.fail(error.message)
            answered = handler.error_response(part, error)
        if response is None:
            response = answered
        else:
            entries.join(response, answered)
        await trio.lowlevel.checkpoint()
    return response


def _parts(value: _S, path: Sequence[str]) -> Iterator[_S]:
    name, below = path[0], path[1:]
    items = getattr(value, name)
    if not items:
        yield value
        return
    if not below:
        for start in range(0, len(items), _ENTRIES_AT_ONCE):
            yield replace(value, **{name: items[start : start + _ENTRIES_AT_ONCE]})
        return
    taken: list[Struct] = []
    count = 0
    for item in items:
        for part in _parts(item, below):
            entries = _count(part, below)
            if taken and count + entries > _ENTRIES_AT_ONCE:
                yield replace(value, **{name: taken})
                taken, count = [], 0
            taken.append(part)
            count += entries
    yield replace(value, **{name: taken})


def _count(value: Struct, path: Sequence[str]) -> int:
    """The entries below ``value``, at least 1."""
    items = getattr(value, path[0]) or ()
    return max(len(items) if len(path) == 1 else sum(_count(item, path[1:]) for item in items), 1)


def _join(value: Struct, more: Struct, path: Sequence[str]) -> None:
    error_code = getattr(more, "error_code", 0)
    if error_code and not getattr(value, "error_code", 0):
        value.error_code = error_code  # type: ignore[attr-defined]
    name, below = path[0], path[1:]
    items, added = getattr(value, name), getattr(more, name)
    # A topic whose partitions were split over two parts is one topic of the response.
    if below and items and added and _identity(items[-1]) == _identity(added[0]):
        _join(items[-1], added[0], below)
        added = added[1:]
    items += added


def _identity(value: Struct) -> list[Any]:
    """The fields by which the responses for one topic or group, of two parts, are known to be the same one's."""
    return [
        getattr(value, spec.name)
        for spec in value.fields
        if not isinstance(spec.type, Array) and spec.name != "error_code"
    ]
