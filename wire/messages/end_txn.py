"""EndTxn (key 26): commits or aborts a transaction.

v2  the response may be PRODUCER_FENCED
v4  the response may be TRANSACTION_ABORTABLE (KIP-890)
v5  each transaction gets a new producer epoch, and the response names it (KIP-890)
"""

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
    producer_id: int64 = field("5+", default=-1, ignorable=True)  # for the next transaction
    producer_epoch: int16 = field("5+", default=-1, ignorable=True)
