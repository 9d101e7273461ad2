"""InitProducerId (key 22): a producer id for an idempotent producer.

Behaviour: without a transactional id every call gets a new id with epoch 0; with the producer's own id and epoch (after
an error it could not resolve, KIP-360) too, since nothing is remembered of it here. Transactions are not served yet: a
transactional id is answered TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which stock producers report at once instead of
retrying.

Version notes: 2 is flexible; 3 adds the current id and epoch; 4 may answer PRODUCER_FENCED; 6 (two-phase commit,
KIP-939) is still unstable in Kafka and not served.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ..wire.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from .call import Call


async def handle(call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id == "":
        raise KafkaError(ErrorCode.INVALID_REQUEST, "an empty transactional id")
    if request.transactional_id is not None:
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactions are not served")
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a producer id without an epoch, or the other way round")
    await call.flush()
    return InitProducerIdResponse(producer_id=await call.broker.producer_ids.next_producer_id(), producer_epoch=0)


def error_response(request: InitProducerIdRequest, error: KafkaError) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_id=-1, producer_epoch=-1)
