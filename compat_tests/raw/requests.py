"""Helpers for the requests of the wire tests, with the defaults of a plain client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

PRODUCE_VERSION = 9
FETCH_VERSION = 12
NAMES_TRIED = 1_000
NO_V2 = "a cluster on ZooKeeper serves no request of transactions V2, of which is Produce from 12 on"
NewName = Callable[[], str]


def batch(*values: bytes, timestamp_ms: int = 1_600_000_000_000, **header: Any) -> bytearray:
    """A batch of records without keys, timestamps counting up from ``timestamp_ms``."""
    return build_batch([Record(value=value, timestamp=timestamp_ms + n) for n, value in enumerate(values)], **header)


def produce_request(
    topic: str, records: Mapping[int, bytes | bytearray | None], acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    """A request for some partitions of one topic."""
    data = [PartitionProduceData(index=index, records=content) for index, content in records.items()]
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=20_000,
        topic_data=[TopicProduceData(name=topic, partition_data=data)],
    )


def produce(
    connection: Connection,
    topic: str,
    *batches: bytes | bytearray | None,
    partition: int = 0,
    version: int = PRODUCE_VERSION,
) -> Any:
    """Each batch in a request of its own; the last answer's partition."""
    answer: Any = None
    for content in batches:
        response = connection.call(produce_request(topic, {partition: content}), version)
        (answer,) = response.responses[0].partition_responses
    return answer


def fetch_request(
    topic: str,
    offsets: Mapping[int, int],
    *,
    partition_max_bytes: int = 1 << 20,
    max_bytes: int = 1 << 25,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
    session: tuple[int, int] = (0, -1),
    forget: Sequence[int] = (),
    current_leader_epoch: int = -1,
) -> FetchRequest:
    """A consumer's fetch; ``session`` is (id, epoch), by default no session."""
    partitions = [
        FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=current_leader_epoch,
        )
        for partition, offset in offsets.items()
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session[0],
        session_epoch=session[1],
        topics=[FetchTopic(topic=topic, partitions=partitions)] if partitions else [],
        forgotten_topics_data=[ForgottenTopic(topic=topic, partitions=list(forget))] if forget else [],
    )


def partitions_of(response: Any) -> dict[int, Any]:
    """The answered partitions of a fetch of one topic, in the order of the answer."""
    return {part.partition_index: part for topic in response.responses for part in topic.partitions}


def fetch(connection: Connection, topic: str, offsets: Mapping[int, int], **how: Any) -> dict[int, Any]:
    """Fetch without a session; the answered partitions."""
    return partitions_of(connection.call(fetch_request(topic, offsets, **how), FETCH_VERSION))


def list_offset(connection: Connection, topic: str, timestamp: int, version: int = 11, partition: int = 0) -> Any:
    """ListOffsets of one partition; its answer."""
    wanted = [ListOffsetsPartition(partition_index=partition, timestamp=timestamp)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=wanted)])
    return connection.call(request, version).topics[0].partitions[0]


def new_producer(connection: Connection) -> tuple[int, int]:
    """A producer id and its epoch; a broker that has just started may need a moment for its first one."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

    def answered() -> Any:
        answer = connection.call(request, 4)
        return answer if answer.error_code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else None

    answer = eventually(answered)
    assert answer.error_code == ErrorCode.NONE
    return answer.producer_id, answer.producer_epoch


def coordinated(connection: Connection, key_type: int, new_name: NewName, broker_id: int) -> str:
    """A new name, of a group or of transactions, that this broker coordinates."""

    def coordinator(name: str) -> Any:
        (answer,) = connection.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name]), 4).coordinators
        return answer if answer.error_code == ErrorCode.NONE else None

    for name in (new_name() for _ in range(NAMES_TRIED)):
        if eventually(partial(coordinator, name)).node_id == broker_id:
            return name
    raise AssertionError(f"broker {broker_id} coordinates none of {NAMES_TRIED} names")
