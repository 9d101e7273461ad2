"""Produce requests of the pages that write records: one batch for one partition, with acks=all.

What the visitor may do, quotas and validation are those of the broker, as for any client, and so are the errors.
"""

from __future__ import annotations

from kafka.partitioner.default import murmur2

from ..wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from .kafka_requests import KafkaRequests, LeaderTarget, check

_TIMEOUT_MS = 30_000
_ALL_REPLICAS = -1


async def produce_batch(kafka: KafkaRequests, topic: str, partition: int, batch: bytes | bytearray) -> int:
    """The offset of the batch's first record. Raises KafkaError."""
    data = PartitionProduceData(index=partition, records=batch)
    request = ProduceRequest(
        acks=_ALL_REPLICAS,
        timeout_ms=_TIMEOUT_MS,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    response = await kafka.ask(request, LeaderTarget(topic, partition))
    answer = response.responses[0].partition_responses[0]
    reasons = [each.batch_index_error_message for each in answer.record_errors or () if each.batch_index_error_message]
    check(answer.error_code, answer.error_message or " ".join(reasons))
    return int(answer.base_offset)


def partition_of(key: bytes | None, count: int, otherwise: int) -> int:
    """Of so many partitions, as Kafka's clients choose: by the key; ``otherwise``, any number, decides without one."""
    hashed = otherwise if key is None else int(murmur2(key))
    return (hashed & 0x7FFFFFFF) % max(count, 1)
