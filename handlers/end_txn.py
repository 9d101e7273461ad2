"""EndTxn (key 26): commit or abort a transaction.

Behaviour: the response is sent when the decision is committed; the markers in the partitions follow.

Version notes: 2 may answer PRODUCER_FENCED, which is INVALID_PRODUCER_EPOCH before; 3 is flexible; 4 may answer
TRANSACTION_ABORTABLE; 5 is transactions V2 (KIP-890): the response names the id and epoch of the next transaction, and a
request that is repeated with the epoch before is answered like the first time.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..transaction_coordinator.transaction import TRANSACTIONS_V2
from ..wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from .call import Call
from .fenced import downgrade_fenced
from .rights import TRANSACTIONAL_ID, check

_PRODUCER_FENCED_FROM = 2
_V2_FROM = 5


async def handle(call: Call, request: EndTxnRequest) -> EndTxnResponse:
    check(call, Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    client_version = TRANSACTIONS_V2 if call.version >= _V2_FROM else 0
    producer = (request.producer_id, request.producer_epoch)
    try:
        producer_id, producer_epoch = await call.broker.transactions.end_transaction(
            request.transactional_id, producer, request.committed, client_version, call.flush
        )
    except KafkaError as error:
        raise downgrade_fenced(error, call.version >= _PRODUCER_FENCED_FROM) from error
    return EndTxnResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def error_response(request: EndTxnRequest, error: KafkaError) -> EndTxnResponse:
    return EndTxnResponse(error_code=error.code)
