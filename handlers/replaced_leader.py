"""A check for a replaced leader, made before a producer's sequence number is refused.

While its controller cannot reach it, a broker goes on as the leader that it was. What its successor appends is not in its log, so
a producer that comes to it, by metadata that is as old, has a sequence number that it does not expect. But
OUT_OF_ORDER_SEQUENCE_NUMBER is final: librdkafka's producer ends with a fatal error, Java's fails the batch and goes on under
another epoch. So whoever keeps the cluster's metadata is asked before that is said, once for each batch that is refused. Apache
Kafka does not look.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.produce import ProduceResponse
from .call import Call


async def refuse_where_replaced(call: Call, response: ProduceResponse) -> None:
    """Have batches that are out of order refused with NOT_LEADER_OR_FOLLOWER, at which producers look for the leader, where
    another one has been elected, or where that cannot be known.
    """
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                await call.flush()
                if not await _leads_still(call, topic.name, answer.index):
                    answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
                    answer.error_message = "this broker is not the leader any more, or does not know"
                    answer.log_start_offset = -1


async def _leads_still(call: Call, topic: str, index: int) -> bool:
    try:
        partition = call.broker.replicas.partition(topic, index)
    except KafkaError:
        return False
    return await call.broker.cluster.leader_epoch(topic, index) == partition.leader_epoch
