"""ListTransactions (key 66): transactions that a broker coordinates (KIP-664).

v1  only those that run longer than a duration (KIP-994)
v2  only transactional ids that match a pattern (KIP-1152)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@request(key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsRequest(Message):
    state_filters: list[string] = field()
    producer_id_filters: list[int64] = field()
    duration_filter: int64 = field("1+", default=-1)  # ms; -1 for all
    transactional_id_pattern: string | None = field("2+", default=None)


@struct
class TransactionState(Struct):
    transactional_id: string = field()
    producer_id: int64 = field()
    transaction_state: string = field()


@response(key=ApiKey.LIST_TRANSACTIONS, versions="0-2", flexible="0+")
class ListTransactionsResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    unknown_state_filters: list[string] = field()
    transaction_states: list[TransactionState] = field()
