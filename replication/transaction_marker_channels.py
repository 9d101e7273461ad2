"""Delivery of transaction markers to partition leaders: WriteTxnMarkers requests, or local calls on this broker.

To each other broker one request is under way at a time, because its answer waits until the markers are committed there. The
markers that come meanwhile, of any transaction, go with the next one, as in Kafka's TransactionMarkerChannelManager.
"""

from __future__ import annotations

import dataclasses

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_LEADER
from ..metadata.delta import ClusterDelta
from ..metadata.image import ClusterImage
from ..wire.messages.write_txn_markers import (
    WritableTxnMarkerResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from .broker_client import NoAnswerError
from .metadata_cache import MetadataCache
from .peers import Peers
from .transaction_marker_writer import COMMIT_SECONDS, TransactionMarkerWriter

SETTLING_SECONDS = 60.0
"""Longer than it takes a new controller to tell this broker everything if the one before dies while telling."""

_PURPOSE = "txn-marker-sender"
_REQUEST_SECONDS = COMMIT_SECONDS + 5  # which the leader needs to say that they are not committed


@dataclasses.dataclass(eq=False, slots=True)
class _PendingMarkers:
    """Markers of one transaction that are to be sent, or are under way."""

    request: WriteTxnMarkersRequest
    response: WriteTxnMarkersResponse | None = None


@dataclasses.dataclass(slots=True)
class _Queue:
    """What waits for one broker. The task that has the turn sends everything that waits."""

    waiting: list[_PendingMarkers] = dataclasses.field(default_factory=list)
    turn: trio.StrictFIFOLock = dataclasses.field(default_factory=trio.StrictFIFOLock)


class TransactionMarkerChannelManager:
    """Finds leaders in the metadata cache.

    A partition that is not in the cache counts as deleted, and needs no marker, if its topic's deletion was seen; else only
    ``settling_seconds`` after this object was made: a broker that has just started may be told of the partition later, and
    without the marker the transaction would be open there for ever.
    """

    def __init__(
        self,
        broker_id: int,
        metadata: MetadataCache,
        markers: TransactionMarkerWriter,
        peers: Peers,
        settling_seconds: float = SETTLING_SECONDS,
    ) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._markers = markers
        self._peers = peers
        self._queues: dict[int, _Queue] = {}
        self._settled_at = trio.current_time() + settling_seconds
        self._deleted: set[str] = set()
        metadata.publishers.append(self._note_deletions)

    def _note_deletions(self, delta: ClusterDelta, image: ClusterImage) -> None:
        if delta.topics and not self._is_settled():
            self._deleted.update(topic.name for topic in delta.topics if topic.name not in image.topics)

    def _is_settled(self) -> bool:
        return bool(self._metadata.image.brokers) and trio.current_time() >= self._settled_at

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads; ``NO_LEADER`` when there is none now, None when there is no such partition."""
        state = self._metadata.partition(topic, partition)
        if state is not None:
            return max(state.leader, NO_LEADER)
        return None if topic in self._deleted or self._is_settled() else NO_LEADER

    async def write_txn_markers(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Have a broker write markers, and wait until they are committed. Raises KafkaError when it cannot be asked."""
        if broker_id == self._broker_id:
            return await self._markers.write(request)
        queue = self._queues.setdefault(broker_id, _Queue())
        waiting = _PendingMarkers(request)
        queue.waiting.append(waiting)
        try:
            async with queue.turn:
                if waiting.response is None:
                    await self._send(broker_id, _distinct([waiting, *queue.waiting]))
        finally:
            queue.waiting.remove(waiting)
        assert waiting.response is not None
        return waiting.response

    async def _send(self, broker_id: int, waiting: list[_PendingMarkers]) -> None:
        """Send all markers that wait. After a failure the next caller sends them again, together with its own."""
        request = WriteTxnMarkersRequest(markers=[marker for each in waiting for marker in each.request.markers])
        try:
            client = self._peers.client(broker_id, _PURPOSE, timeout=_REQUEST_SECONDS, max_in_flight=1)
            version = await client.negotiate(WriteTxnMarkersRequest)
            response: WriteTxnMarkersResponse = await client.send(request, version)
        except NoAnswerError as error:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, str(error)) from error
        results: dict[int, list[WritableTxnMarkerResult]] = {}
        for result in response.markers:
            results.setdefault(result.producer_id, []).append(result)
        for each in waiting:
            answered = [result for marker in each.request.markers for result in results.get(marker.producer_id, ())]
            each.response = WriteTxnMarkersResponse(markers=answered)


def _distinct(waiting: list[_PendingMarkers]) -> list[_PendingMarkers]:
    """Those that can go in one request: the earliest for each producer, because the answer names markers by producer only."""
    chosen: dict[int, _PendingMarkers] = {}
    for each in waiting:
        for marker in each.request.markers:
            chosen.setdefault(marker.producer_id, each)
    return list(dict.fromkeys(chosen.values()))
