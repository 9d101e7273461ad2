"""Ending a prepared transaction: write its marker to every partition, then the record that it is complete.

It begins once the Prepare record is committed, and goes on until it is done: after a crash the next coordinator finds the
Prepare record and begins anew, which is safe, because a marker that is written twice changes nothing. A partition
whose topic is gone needs no marker. A partition without a leader, or whose leader cannot write now, is tried again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import NO_LEADER, TopicPartition
from ..wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from .transaction import Transaction

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
_NOT_NEEDED = (
    ErrorCode.NONE,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_VERSION,
)


class FencedError(Exception):
    """A newer coordinator or producer has written already: this one is out of date."""


class MarkerChannels(Protocol):
    """The way to the leaders of partitions: this broker by a call, others over the network."""

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads; ``NO_LEADER`` when there is none now, None when there is no such partition."""
        ...

    async def write_txn_markers(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Have a broker write markers and wait until they are committed; errors are in the answer, one per partition."""
        ...


async def write_markers(channels: MarkerChannels, transaction: Transaction, coordinator_epoch: int) -> None:
    """Return once every partition has the marker. Raises FencedError."""
    left = set(transaction.partitions)
    fenced: list[str] = []
    while left:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in sorted(left):
            leader = channels.leader(*partition)
            if leader is None:
                left.discard(partition)
            elif leader != NO_LEADER:
                by_leader.setdefault(leader, []).append(partition)
        async with trio.open_nursery() as nursery:
            for leader, partitions in by_leader.items():
                request = _request(transaction, coordinator_epoch, partitions)
                nursery.start_soon(_write, channels, leader, request, left, fenced)
        if fenced:
            raise FencedError(fenced[0])
        if left:
            await trio.sleep(RETRY_SECONDS)


async def _write(
    channels: MarkerChannels,
    broker_id: int,
    request: WriteTxnMarkersRequest,
    left: set[TopicPartition],
    fenced: list[str],
) -> None:
    """Take the partitions that are done with out of ``left``; those where we are out of date go to ``fenced``."""
    try:
        response = await channels.write_txn_markers(broker_id, request)
    except KafkaError as error:
        logger.info("Broker %d could not write end markers and is asked again: %s", broker_id, error)
        return
    for marker in response.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                if partition.error_code in _FENCED:
                    code = ErrorCode(partition.error_code)
                    fenced.append(f"{topic.name}-{partition.partition_index} answers {code.name}")
                if partition.error_code in _NOT_NEEDED:
                    left.discard(TopicPartition(topic.name, partition.partition_index))


def _request(
    transaction: Transaction, coordinator_epoch: int, partitions: Iterable[TopicPartition]
) -> WriteTxnMarkersRequest:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    marker = WritableTxnMarker(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_result=transaction.commits,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=ids) for topic, ids in topics.items()],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction.client_version,
    )
    return WriteTxnMarkersRequest(markers=[marker])
