"""InitProducerId (key 22): gives a producer its id and epoch; with a transactional id, earlier producers with it are fenced.

v1  the response is sent before the throttling, not after it
v3  a producer that has an id can ask for a higher epoch (KIP-360)
v4  the response may be PRODUCER_FENCED
v5  the response may be TRANSACTION_ABORTABLE (KIP-890)
v6  two-phase commit (KIP-939); not stable yet in Kafka 4.4
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response, string


@request(key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+")
class InitProducerIdRequest(Message):
    transactional_id: string | None = field()  # null: idempotent only
    transaction_timeout_ms: int32 = field()
    producer_id: int64 = field("3+", default=-1)
    producer_epoch: int16 = field("3+", default=-1)
    enable_2pc: bool = field("6+")
    keep_prepared_txn: bool = field("6+")


@response(key=ApiKey.INIT_PRODUCER_ID, versions="0-6", flexible="2+")
class InitProducerIdResponse(Message):
    throttle_time_ms: int32 = field(ignorable=True)
    error_code: int16 = field()
    producer_id: int64 = field(default=-1)
    producer_epoch: int16 = field()
    ongoing_txn_producer_id: int64 = field("6+", default=-1)
    ongoing_txn_producer_epoch: int16 = field("6+", default=-1)
