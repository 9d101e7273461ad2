"""Errors for some partitions of a request, while the others are handled as usual.

Where the request lists partitions by topic, the failing ones are taken out of it and answered with the API's own error response,
and both responses are put together. A fetch and a Metadata request are handled as a whole, and the entries of the failing
partitions or topics are replaced in the response; so client and broker still agree on the fetch session. Other APIs get the error
for the whole request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.errors import KafkaError
from ..handlers.call import Call
from ..handlers.table import Handle, Handler
from ..wire.api_keys import ApiKey
from ..wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ..wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from ..wire.schema import replace
from . import names

IsHit = Callable[[str, int | None], bool]
"""Whether a partition of a topic is to fail; with None as its number, whether the topic as a whole is."""


class _Lists(NamedTuple):
    """Names of fields: the list of topics in a request and in its response, the list of partitions in a topic, their number."""

    topics: str
    partitions: str
    number: str
    answers: str


_LISTS = {
    ApiKey.PRODUCE: _Lists("topic_data", "partition_data", "index", "responses"),
    ApiKey.LIST_OFFSETS: _Lists("topics", "partitions", "partition_index", "topics"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _Lists("topics", "partitions", "partition", "topics"),
    ApiKey.OFFSET_COMMIT: _Lists("topics", "partitions", "partition_index", "topics"),
    ApiKey.TXN_OFFSET_COMMIT: _Lists("topics", "partitions", "partition_index", "topics"),
    ApiKey.DELETE_RECORDS: _Lists("topics", "partitions", "partition_index", "topics"),
}


async def answer(handler: Handler, handle: Handle, call: Call, request: Any, error: KafkaError, is_hit: IsHit) -> Any:
    """Handle ``request`` except for the failing partitions. Raises ``error`` for an API without errors by partition."""
    api = handler.api_key
    if api is ApiKey.FETCH:
        return await _fetch(handle, call, request, error, is_hit)
    if api is ApiKey.METADATA:
        return await _metadata(handle, call, request, error, is_hit)
    lists = _LISTS.get(api)
    if lists is None:
        raise error
    hit, rest = _split(call, request, lists, is_hit)
    assert handler.error_response is not None
    response = None
    if getattr(rest, lists.topics):
        response = await handle(call, rest)
    refused = handler.error_response(hit, error)
    if response is None or refused is None:
        return refused
    getattr(response, lists.answers).extend(getattr(refused, lists.answers))
    return response


def _split(call: Call, request: Any, lists: _Lists, is_hit: IsHit) -> tuple[Any, Any]:
    """The request with the failing partitions, and the one with the others."""
    halves: tuple[list[Any], list[Any]] = ([], [])
    for topic in getattr(request, lists.topics):
        name = names.topic_name(call, topic)
        for half, wanted in zip(halves, (True, False), strict=True):
            partitions = [
                entry
                for entry in getattr(topic, lists.partitions)
                if is_hit(name, getattr(entry, lists.number)) is wanted
            ]
            if partitions:
                half.append(replace(topic, **{lists.partitions: partitions}))
    hit, rest = (replace(request, **{lists.topics: half}) for half in halves)
    return hit, rest


async def _fetch(handle: Handle, call: Call, request: FetchRequest, error: KafkaError, is_hit: IsHit) -> FetchResponse:
    """Handle a fetch without waiting for records, because an error is answered at once."""
    hit = {
        (name, number): topic_id
        for name, topic_id, number in names.fetched_partitions(call, request)
        if is_hit(name, number)
    }
    response: FetchResponse = await handle(call, replace(request, max_wait_ms=0))
    for topic in response.responses:
        name = names.topic_name(call, topic)
        for place, data in enumerate(topic.partitions):
            if hit.pop((name, data.partition_index), None) is not None:
                release(data)
                topic.partitions[place] = _partition_error(data.partition_index, error)
    for (name, number), topic_id in hit.items():
        failed = [_partition_error(number, error)]
        response.responses.append(FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=failed))
    return response


def _partition_error(number: int, error: KafkaError) -> PartitionData:
    return PartitionData(partition_index=number, error_code=error.code, high_watermark=-1, records=b"")


def release(data: PartitionData) -> None:
    """Release the records of a response that is not sent."""
    records: Any = data.records
    if records is not None and not isinstance(records, bytes | bytearray | memoryview):
        records.release()


async def _metadata(handle: Handle, call: Call, request: Any, error: KafkaError, is_hit: IsHit) -> MetadataResponse:
    response: MetadataResponse = await handle(call, request)
    topics = [
        MetadataResponseTopic(error_code=error.code, name=topic.name, topic_id=topic.topic_id)
        if is_hit(topic.name or "", None)
        else topic
        for topic in response.topics
    ]
    return replace(response, topics=topics)
