"""AddPartitionsToTxn (key 25): partitions join a transaction, or (from v4, between brokers) are checked to be part of one.

v2  the response may be PRODUCER_FENCED
v4  many transactions in one request, and ``verify_only`` (KIP-890); clients stay at v3, only brokers send v4 and later
v5  the response may be TRANSACTION_ABORTABLE
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct


@struct
class AddPartitionsToTxnTopic(Struct):
    name: string = field()
    partitions: list[int32] = field()


@struct
class AddPartitionsToTxnTransaction(Struct):
    transactional_id: string = field("4+")
    producer_id: int64 = field("4+")
    producer_epoch: int16 = field("4+")
    verify_only: bool = field("4+")
    topics: list[AddPartitionsToTxnTopic] = field("4+")


@request(key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest(Message):
    transactions: list[AddPartitionsToTxnTransaction] = field("4+")  # brokers
    v3_and_below_transactional_id: string = field("0-3")  # clients
    v3_and_below_producer_id: int64 = field("0-3")
    v3_and_below_producer_epoch: int16 = field("0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field("0-3")


@struct
class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int32 = field()
    partition_error_code: int16 = field()


@struct
class AddPartitionsToTxnTopicResult(Struct):
    name: string = field()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field()


@struct
class AddPartitionsToTxnResult(Struct):
    transactional_id: string = field("4+")
    topic_results: list[AddPartitionsToTxnTopicResult] = field("4+")


@response(key=ApiKey.ADD_PARTITIONS_TO_TXN, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse(Message):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field("4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field("0-3")
