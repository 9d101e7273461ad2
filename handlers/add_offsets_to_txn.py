"""AddOffsetsToTxn (key 24): the offsets of a group will be committed inside a transaction.

Behaviour: the partition of ``__consumer_offsets`` that keeps the group joins the transaction.

Version notes: 2 may answer PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before; 3 is flexible; 4 may answer
TRANSACTION_ABORTABLE. Clients of transactions V2 do not send it.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..base.partitions import TopicPartition
from ..group_coordinator.settings import TOPIC
from ..security.acl import Operation
from ..wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from .call import Call
from .fenced import downgrade_fenced
from .rights import GROUP, TRANSACTIONAL_ID, check

_PRODUCER_FENCED_FROM = 2


async def handle(call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    check(call, Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    check(call, Operation.READ, GROUP, request.group_id)
    partition = TopicPartition(TOPIC, call.broker.groups.partition_for(request.group_id))
    producer = (request.producer_id, request.producer_epoch)
    try:
        await call.broker.transactions.add_partitions(request.transactional_id, producer, [partition], 0, call.flush)
    except KafkaError as error:
        raise downgrade_fenced(error, call.version >= _PRODUCER_FENCED_FROM) from error
    return AddOffsetsToTxnResponse()


def error_response(request: AddOffsetsToTxnRequest, error: KafkaError) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=error.code)
