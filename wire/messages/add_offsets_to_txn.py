"""AddOffsetsToTxn (key 24): a transactional producer will commit offsets of a group inside its transaction.

v2  the response may be PRODUCER_FENCED
v4  the response may be TRANSACTION_ABORTABLE (KIP-890)
"""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response, string


@request(key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest(Message):
    transactional_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    group_id: string = field()


@response(key=ApiKey.ADD_OFFSETS_TO_TXN, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
