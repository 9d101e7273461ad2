"""The completion of a prepared transaction: its marker in every partition, then the record that it is complete.

It begins once the Prepare record is committed, and goes on until it is done: after a crash the next coordinator finds the
Prepare record and begins again, which is safe, because a marker that is written twice changes nothing. A partition
whose topic is gone needs no marker. A partition without a leader, or whose leader cannot write now, is tried again.

A partition may know a later epoch of the producer than its coordinator does, when a loss of power took the newest records of
``__transaction_state`` but not those of the partition. Then the partition has the end of the earlier transaction already, and
may have a later one open, which ``bump_epoch_past`` aborts. Kafka's coordinator leaves the transaction as it is, and the
transactional id unusable.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Iterable
from typing import Protocol

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..base.partitions import NO_LEADER, TopicPartition
from ..wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from .transaction import MAX_EPOCH, Transaction, TransactionStatus

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.1

_FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
_NOT_NEEDED = (
    ErrorCode.NONE,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode.UNSUPPORTED_VERSION,
)


class FencedError(Exception):
    """A newer coordinator has written markers already: this broker no longer coordinates the transaction."""


class OutdatedError(Exception):
    """In these partitions a later epoch of the producer has written."""

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        super().__init__(f"a later epoch is known in {', '.join(f'{t}-{number}' for t, number in sorted(partitions))}")
        self.partitions = frozenset(partitions)


class MarkerChannels(Protocol):
    """The way to the leaders of partitions: this broker by a call, others over the network."""

    def leader(self, topic: str, partition: int) -> int | None:
        """The broker that leads; ``NO_LEADER`` when there is none now, None when there is no such partition."""
        ...

    async def write_txn_markers(self, broker_id: int, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Have a broker write markers and wait until they are committed; errors are in the answer, one per partition."""
        ...


async def write_markers(channels: MarkerChannels, transaction: Transaction, coordinator_epoch: int) -> None:
    """Return once every partition has the marker. Raises FencedError; OutdatedError, once all but its partitions have it."""
    left = set(transaction.partitions)
    refused: dict[TopicPartition, ErrorCode] = {}
    logged: dict[int, str] = {}
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
                nursery.start_soon(_write, channels, leader, request, left, refused, logged)
        fenced = [partition for partition, code in refused.items() if code is not ErrorCode.INVALID_PRODUCER_EPOCH]
        if fenced:
            raise FencedError(f"{fenced[0][0]}-{fenced[0][1]} answers {refused[fenced[0]].name}")
        if left:
            await trio.sleep(RETRY_SECONDS)
    if refused:
        raise OutdatedError(refused)


async def bump_epoch_past(
    channels: MarkerChannels, transaction: Transaction, partitions: Collection[TopicPartition], coordinator_epoch: int
) -> int:
    """Abort what a later epoch of the producer has open in these partitions; returns the epoch that they have now.

    Their answers don't name the epoch that they know, so greater and greater ones are tried. Raises FencedError.
    """
    step = 1
    while True:
        epoch = min(transaction.producer_epoch + step, MAX_EPOCH)
        later = dataclasses.replace(
            transaction,
            producer_epoch=epoch,
            state=TransactionStatus.PREPARE_ABORT,
            partitions=frozenset(partitions),
            client_version=0,  # version 2 asks for an epoch above that of the batches, and there may be no greater one
        )
        try:
            await write_markers(channels, later, coordinator_epoch)
            return epoch
        except OutdatedError:
            step *= 2


async def _write(
    channels: MarkerChannels,
    broker_id: int,
    request: WriteTxnMarkersRequest,
    left: set[TopicPartition],
    refused: dict[TopicPartition, ErrorCode],
    logged: dict[int, str],
) -> None:
    """Take finished partitions out of ``left``; those that know a later epoch or coordinator are added to ``refused``.

    ``logged`` is the trouble with each broker that has a line in the log already.
    """
    try:
        response = await channels.write_txn_markers(broker_id, request)
    except KafkaError as error:
        if logged.get(broker_id) != str(error):
            logger.info(
                "Broker %d could not write end markers; the request is repeated until it does: %s", broker_id, error
            )
        logged[broker_id] = str(error)
        return
    for marker in response.markers:
        for topic in marker.topics:
            for result in topic.partitions:
                partition, code = TopicPartition(topic.name, result.partition_index), known_code(result.error_code)
                if code in _FENCED:
                    refused[partition] = code
                if code in _FENCED or code in _NOT_NEEDED:
                    left.discard(partition)


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
