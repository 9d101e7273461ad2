"""DescribeTransactions (key 65): state of transactions by transactional id (KIP-664)."""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@request(key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsRequest(Message):
    transactional_ids: list[string] = field()


@struct
class TopicData(Struct):
    topic: string = field()
    partitions: list[int32] = field()


@struct
class TransactionState(Struct):
    error_code: int16 = field()
    transactional_id: string = field()
    transaction_state: string = field()
    transaction_timeout_ms: int32 = field()
    transaction_start_time_ms: int64 = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    topics: list[TopicData] = field()


@response(key=ApiKey.DESCRIBE_TRANSACTIONS, versions="0", flexible="0+")
class DescribeTransactionsResponse(Message):
    throttle_time_ms: int32 = field()
    transaction_states: list[TransactionState] = field()
