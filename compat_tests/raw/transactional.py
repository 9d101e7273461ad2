"""A transactional producer made of single requests, at versions the test chooses."""

from __future__ import annotations

import time
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.records import RecordsBuilder, iter_complete_batches

READ_COMMITTED = 1
CLASSIC_PRODUCE, V2_PRODUCE = 11, 12
CLASSIC_END, V2_END = 4, 5
GROUP, TRANSACTION = 0, 1
STARTING = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)


def find_coordinator(connection: Connection, key_type: int, key: str) -> None:
    """Ask until there is one."""

    def found() -> bool:
        answer = connection.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)
        return bool(answer.coordinators[0].error_code == ErrorCode.NONE)

    eventually(found)


class RawProducer:
    """One producer; ``producer_id`` and ``epoch`` are what its last InitProducerId or EndTxn said."""

    def __init__(self, connection: Connection, transactional_id: str) -> None:
        self.connection = connection
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[tuple[str, int], int] = {}

    def init(self, *, timeout_ms: int = 60_000, resume: bool = False, version: int = 4) -> ErrorCode:
        """InitProducerId, once."""
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms)
        if resume:
            request.producer_id, request.producer_epoch = self.producer_id, self.epoch
        answer = self.connection.call(request, version)
        if answer.error_code == ErrorCode.NONE:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences = {}
        return ErrorCode(answer.error_code)

    def start(self, **options: Any) -> RawProducer:
        """Find the coordinator and initialize, as clients do."""
        find_coordinator(self.connection, TRANSACTION, self.transactional_id)
        self.retried(lambda: self.init(**options))
        return self

    def retried(self, call: Any) -> None:
        """Repeat what is answered with an error that asks for it; it must succeed then."""
        codes = []

        def settled() -> bool:
            codes.append(call())
            return codes[-1] not in (*STARTING, ErrorCode.CONCURRENT_TRANSACTIONS)

        eventually(settled)
        assert codes[-1] == ErrorCode.NONE, codes[-1]

    def add(self, topic: str, *partitions: int, version: int = 3) -> dict[int, ErrorCode]:
        """AddPartitionsToTxn."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        (result,) = self.connection.call(request, version).results_by_topic_v3_and_below
        return {part.partition_index: ErrorCode(part.partition_error_code) for part in result.results_by_partition}

    def begin(self, topic: str, partition: int = 0) -> None:
        """AddPartitionsToTxn, repeated while the transaction before is ending."""
        self.retried(lambda: self.add(topic, partition)[partition])

    def batch(self, topic: str, partition: int, values: tuple[bytes, ...], *, transactional: bool = True) -> bytes:
        """The next batch of this producer."""
        sequence = self.sequences.get((topic, partition), 0)
        builder = RecordsBuilder(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=transactional,
        )
        for value in values:
            builder.append(None, value, time.time_ns() // 1_000_000)
        return bytes(builder.build())

    def produce_request(
        self, topic: str, *values: bytes, partition: int = 0, transactional: bool = True, names_id: bool = True
    ) -> ProduceRequest:
        """Produce of one batch, the next of this producer."""
        records = self.batch(topic, partition, values, transactional=transactional)
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=records)])
        return ProduceRequest(
            transactional_id=self.transactional_id if names_id else None,
            acks=-1,
            timeout_ms=20_000,
            topic_data=[data],
        )

    def send(
        self, topic: str, *values: bytes, partition: int = 0, version: int = CLASSIC_PRODUCE, **options: bool
    ) -> ErrorCode:
        """Produce one batch; the options are those of ``produce_request``."""
        request = self.produce_request(topic, *values, partition=partition, **options)
        (answer,) = self.connection.call(request, version).responses[0].partition_responses
        if answer.error_code == ErrorCode.NONE:
            self.sequences[topic, partition] = self.sequences.get((topic, partition), 0) + len(values)
        return ErrorCode(answer.error_code)

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        """EndTxn of the open transaction."""
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    def end(self, *, commit: bool, version: int = CLASSIC_END) -> ErrorCode:
        """EndTxn, once."""
        answer = self.connection.call(self.end_request(commit=commit), version)
        if answer.error_code == ErrorCode.NONE and version >= V2_END:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences = {}
        return ErrorCode(answer.error_code)

    def add_offsets(self, group_id: str, version: int = 3) -> ErrorCode:
        """AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group_id,
        )
        return ErrorCode(self.connection.call(request, version).error_code)

    def commit_offset(self, group_id: str, topic: str, offset: int, *, version: int = 4, **member: Any) -> ErrorCode:
        """TxnOffsetCommit of partition 0."""
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[part])],
            **member,
        )
        return ErrorCode(self.connection.call(request, version).topics[0].partitions[0].error_code)


def fetch(connection: Connection, topic: str, *, committed: bool = True, offset: int = 0, max_wait_ms: int = 0) -> Any:
    """Fetch of partition 0: its part of the answer."""
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=READ_COMMITTED if committed else 0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )
    return connection.call(request, 12).responses[0].partitions[0]


def values_in(part: Any, *, with_control: bool = False) -> list[bytes]:
    """The values of a fetched partition's records; ``*`` stands for a control record."""
    found = []
    for batch in iter_complete_batches(part.records or b""):
        for record in batch.records():
            if not batch.is_control:
                found.append(bytes(record.value or b""))
            elif with_control:
                found.append(b"*")
    return found


def end_offset(connection: Connection, topic: str, *, partition: int = 0, committed: bool = True) -> int:
    """ListOffsets of the end."""
    part = ListOffsetsPartition(partition_index=partition, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=int(committed), topics=[ListOffsetsTopic(name=topic, partitions=[part])]
    )
    (answer,) = connection.call(request, 5).topics[0].partitions
    assert answer.error_code == ErrorCode.NONE
    return int(answer.offset)


def committed_offset(connection: Connection, group_id: str, topic: str, *, stable: bool) -> tuple[ErrorCode, int]:
    """OffsetFetch of partition 0."""
    group = OffsetFetchRequestGroup(
        group_id=group_id, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    answer = connection.call(OffsetFetchRequest(groups=[group], require_stable=stable), 8)
    (part,) = answer.groups[0].topics[0].partitions
    return ErrorCode(part.error_code), part.committed_offset
