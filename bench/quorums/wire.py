"""The requests of the benchmark, each on a connection of its own unless one is given.

Errors of sockets count as no response.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import Connection, connect
from ottla.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import RecordsBuilder

ANSWER_S = 5.0
_METADATA, _PRODUCE, _CREATE, _ELECT = 12, 9, 7, 2
_ACKS_ALL = -1
_SERVER_MS = 30_000


def metadata(connection: Connection, topic: str | None) -> MetadataResponse:
    """What a broker tells of a topic, or of all."""
    topics = None if topic is None else [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    response: MetadataResponse = connection.call(request, _METADATA)
    return response


def partitions_by(address: str, topic: str) -> list[Any]:
    """The partitions of a topic as a broker tells of them; none where it does not answer."""
    with contextlib.suppress(OSError, EOFError), connect(address, ANSWER_S) as connection:
        return list(metadata(connection, topic).topics[0].partitions)
    return []


def produce_request(topic: str, numbers: Sequence[tuple[int, int]]) -> ProduceRequest:
    """One record for each partition, of (partition, number), with acks=all."""
    data = []
    for partition, number in numbers:
        builder = RecordsBuilder()
        builder.append(None, b"%d" % number, int(time.time() * 1000))
        data.append(PartitionProduceData(index=partition, records=bytes(builder.build())))
    topics = [TopicProduceData(name=topic, partition_data=data)]
    return ProduceRequest(acks=_ACKS_ALL, timeout_ms=_SERVER_MS, topic_data=topics)


def send_produce(connection: Connection, topic: str, numbers: Sequence[tuple[int, int]]) -> None:
    """Send it, without waiting."""
    connection.send(produce_request(topic, numbers), _PRODUCE)


def create_topic(
    address: str, topic: str, partitions: int = 1, assignment: Sequence[Sequence[int]] = (), limit_s: float = 60.0
) -> str:
    """Create a topic with as many replicas as the brokers give; the name of the error, NONE for success."""
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=-1)
    if assignment:
        new.num_partitions = -1
        new.assignments = [
            CreatableReplicaAssignment(partition_index=number, broker_ids=list(brokers))
            for number, brokers in enumerate(assignment)
        ]
    request = CreateTopicsRequest(topics=[new], timeout_ms=_SERVER_MS)
    try:
        with connect(address, limit_s) as connection:
            code: int = connection.call(request, _CREATE).topics[0].error_code
    except (OSError, EOFError) as error:
        return type(error).__name__
    return ErrorCode(code).name


def elect_preferred(address: str, topic: str, partitions: int) -> None:
    """Ask for the preferred leaders of a topic."""
    chosen = [TopicPartitions(topic=topic, partitions=list(range(partitions)))]
    with contextlib.suppress(OSError, EOFError), connect(address, ANSWER_S) as connection:
        connection.call(ElectLeadersRequest(election_type=0, topic_partitions=chosen, timeout_ms=5000), _ELECT)
