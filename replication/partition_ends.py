"""The ends of partitions as consumers see them, whichever brokers lead these: own ones by a call, others by ListOffsets."""

from __future__ import annotations

from collections.abc import Iterable

import trio

from ..base.errors import ErrorCode, KafkaError, known_code
from ..wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from .broker_client import NoAnswerError
from .metadata_cache import MetadataCache
from .peers import Peers
from .replica_manager import ReplicaManager

_PURPOSE = "partition-ends"
_LATEST, _CONSUMER = -1, -1
_TIMEOUT_SECONDS = 10.0

TopicPartition = tuple[str, int]
Ends = dict[TopicPartition, "int | KafkaError"]
"""The high watermark of each partition, or why it is not known."""


class PartitionEnds:
    """Asks the leaders that the metadata cache has."""

    def __init__(self, broker_id: int, metadata: MetadataCache, peers: Peers, replicas: ReplicaManager) -> None:
        self._broker_id = broker_id
        self._metadata = metadata
        self._peers = peers
        self._replicas = replicas

    async def of(self, partitions: Iterable[TopicPartition]) -> Ends:
        """The ends, each leader asked once, and all at the same time."""
        by_leader: dict[int, list[TopicPartition]] = {}
        ends: Ends = {}
        for topic, number in partitions:
            state = self._metadata.partition(topic, number)
            if state is None:
                ends[topic, number] = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif state.leader < 0:
                ends[topic, number] = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
            else:
                by_leader.setdefault(state.leader, []).append((topic, number))
        async with trio.open_nursery() as nursery:
            for leader, led in by_leader.items():
                if leader == self._broker_id:
                    ends |= {partition: self._own(*partition) for partition in led}
                else:
                    nursery.start_soon(self._ask, leader, led, ends)
        return ends

    def _own(self, topic: str, number: int) -> int | KafkaError:
        try:
            partition = self._replicas.partition(topic, number)
            partition.check_leader(-1)
        except KafkaError as error:
            return error
        return partition.log.high_watermark

    async def _ask(self, leader: int, led: list[TopicPartition], ends: Ends) -> None:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for topic, number in led:
            asked = ListOffsetsPartition(partition_index=number, timestamp=_LATEST)
            topics.setdefault(topic, []).append(asked)
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            topics=[ListOffsetsTopic(name=name, partitions=asked) for name, asked in topics.items()],
        )
        missing = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "the response has nothing about the partition")
        ends |= dict.fromkeys(led, missing)
        try:
            client = self._peers.client(leader, _PURPOSE, timeout=_TIMEOUT_SECONDS)
            response = await client.send(request, await client.negotiate(ListOffsetsRequest))
        except (NoAnswerError, KafkaError) as failure:
            error = (
                failure if isinstance(failure, KafkaError) else KafkaError(ErrorCode.NETWORK_EXCEPTION, str(failure))
            )
            ends |= dict.fromkeys(led, error)
            return
        for topic in response.topics:
            for answer in topic.partitions:
                ends[topic.name, answer.partition_index] = (
                    KafkaError(known_code(answer.error_code)) if answer.error_code else answer.offset
                )
