"""TxnOffsetCommit (key 28): a group's offsets as part of a transaction.

v2  leader epoch (KIP-320)
v3  membership, for fencing (KIP-447)
v4  the response may be TRANSACTION_ABORTABLE (KIP-890)
v5  the request also adds the group to the transaction (KIP-890)
v6  topic ids in place of names (KIP-1319)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int16, int32, int64, request, response, string, struct, uuid


@struct
class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("2+", default=-1, ignorable=True)
    committed_metadata: string | None = field()


@struct
class TxnOffsetCommitRequestTopic(Struct):
    name: string = field("0-5", ignorable=True)
    topic_id: uuid = field("6+", ignorable=True)
    partitions: list[TxnOffsetCommitRequestPartition] = field()


@request(key=ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitRequest(Message):
    transactional_id: string = field()
    group_id: string = field()
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    generation_id_or_member_epoch: int32 = field("3+", default=-1)
    member_id: string = field("3+")
    group_instance_id: string | None = field("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field()


@struct
class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class TxnOffsetCommitResponseTopic(Struct):
    name: string = field("0-5", ignorable=True)
    topic_id: uuid = field("6+", ignorable=True)
    partitions: list[TxnOffsetCommitResponsePartition] = field()


@response(key=ApiKey.TXN_OFFSET_COMMIT, versions="0-6", flexible="3+")
class TxnOffsetCommitResponse(Message):
    throttle_time_ms: int32 = field()
    topics: list[TxnOffsetCommitResponseTopic] = field()
