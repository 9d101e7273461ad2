"""End markers of transactions: WriteTxnMarkers on the partitions that this broker leads.

A partition that a coordinator keeps its state in (``__consumer_offsets``) is given to that coordinator, because the marker
and what it changes in the coordinator's state belong together. The answer waits until every marker is committed.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock
from ..wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from .replica_manager import ReplicaManager

COMMIT_SECONDS = 30.0
"""How long all markers of a request together may take to be committed; the coordinator waits a little longer."""

AppendMarker = Callable[[int, WritableTxnMarker], int]
"""(partition, marker) -> the offset after the marker. KafkaError when it is not written."""


class TransactionMarkerWriter:
    """Writes markers to the partitions that this broker leads."""

    def __init__(self, replicas: ReplicaManager, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self.owners: dict[str, AppendMarker] = {}
        """By topic, for the topics whose coordinator writes the markers itself."""

    async def write(self, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Append every marker, then wait until they are committed; errors are per partition."""
        waits: list[tuple[WritableTxnMarkerPartitionResult, Callable[[float], Awaitable[None]]]] = []
        response = WriteTxnMarkersResponse()
        for marker in request.markers:
            topics = []
            for topic in marker.topics:
                results = []
                for index in topic.partition_indexes:
                    result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=ErrorCode.NONE)
                    results.append(result)
                    try:
                        waits.append((result, self._append(topic.name, index, marker)))
                    except KafkaError as error:
                        result.error_code = error.code
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=results))
            response.markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        deadline = trio.current_time() + COMMIT_SECONDS
        for result, wait in waits:
            try:
                await wait(deadline - trio.current_time())
            except KafkaError as error:
                result.error_code = error.code
        return response

    def _append(self, topic: str, index: int, marker: WritableTxnMarker) -> Callable[[float], Awaitable[None]]:
        """Append one marker; returns a function that waits, for so many seconds, until it is committed."""
        partition = self._replicas.partition(topic, index)
        owner = self.owners.get(topic)
        if owner is None:
            offset = partition.append_end_marker(marker, self._clock.now_ms())
        else:
            offset = owner(index, marker)
        return functools.partial(partition.wait_for_high_watermark, offset, role=partition.leader)
