"""EndTxn (key 26)."""

from ..api_keys import ApiKey
from ..schema import Message, field, int16, int32, int64, request, response, string


@request(key=ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnRequest(Message):
    transactional_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    committed: bool = field()


@response(key=ApiKey.END_TXN, versions="0-5", flexible="3+")
class EndTxnResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    producer_id: int64 = field("5+", default=-1, ignorable=True)
    producer_epoch: int16 = field("5+", default=-1, ignorable=True)
