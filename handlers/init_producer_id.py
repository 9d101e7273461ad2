"""InitProducerId (key 22): a producer id and epoch.

Behaviour: without a transactional id every call gets a new id with epoch 0, even if the producer sends its own id and epoch
(after an error it could not resolve, KIP-360), since nothing is stored of it here. With a transactional id, earlier producers
are fenced by a higher epoch, and a transaction that they left open is aborted first: meanwhile, and while the last transaction
is ending, the response is CONCURRENT_TRANSACTIONS. A producer that sends its id and epoch resumes, unless another one has fenced
it.

Version notes: 2 is flexible; 3 adds the current id and epoch; 4 may answer PRODUCER_FENCED, which is
INVALID_PRODUCER_EPOCH before; 5 may answer TRANSACTION_ABORTABLE; 6 (two-phase commit, KIP-939) is still unstable in
Kafka and not served.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..security.acl import Operation
from ..wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..wire.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from .call import Call
from .fenced import downgrade_fenced
from .rights import CLUSTER, TOPIC, TRANSACTIONAL_ID, check, may, may_with_any, refusal

_PRODUCER_FENCED_FROM = 4


async def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    _check_rights(call, request)
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id without an epoch, or the other way round")
    if request.transactional_id is not None:
        return await _initialize(call, request, request.transactional_id)
    await call.flush()
    return InitProducerIdResponse(producer_id=await call.broker.cluster.next_producer_id(), producer_epoch=0)


def _check_rights(call: Call, request: InitProducerIdRequest) -> None:
    """Raises KafkaError. A client that may write to some topic may do so idempotently (KIP-679)."""
    if request.transactional_id is not None:
        check(call, Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    elif not may(call, Operation.IDEMPOTENT_WRITE, CLUSTER, log_if_denied=False) and not may_with_any(
        call, Operation.WRITE, TOPIC
    ):
        raise refusal(CLUSTER)


async def _initialize(call: Call, request: InitProducerIdRequest, transactional_id: str) -> InitProducerIdResponse:
    expected = (request.producer_id, request.producer_epoch) if request.producer_id >= 0 else None
    try:
        producer_id, producer_epoch = await call.broker.transactions.init_producer_id(
            transactional_id, request.transaction_timeout_ms, expected, call.flush
        )
    except KafkaError as error:
        raise downgrade_fenced(error, call.version >= _PRODUCER_FENCED_FROM) from error
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=producer_epoch)


def error_response(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
