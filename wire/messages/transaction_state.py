"""Records of ``__transaction_state``: the newest one of each transactional id counts (KIP-98).

TransactionLogValue  v1 is flexible and adds what version 2 of the transaction protocol needs (KIP-890)

States: 0 empty, 1 ongoing, 2 prepare commit, 3 prepare abort, 4 complete commit, 5 complete abort, 6 dead,
7 prepare epoch fence.
"""

from ..schema import Message, Struct, field, int8, int16, int32, int64, message, string, struct


@message(versions="0", key=0)
class TransactionLogKey(Message):
    transactional_id: string = field("0")


@struct
class PartitionsSchema(Struct):
    topic: string = field()
    partition_ids: list[int32] = field()


@message(versions="0-1", flexible="1+", key=0)
class TransactionLogValue(Message):
    producer_id: int64 = field()
    # of the last transaction, after ids ran out
    previous_producer_id: int64 = field("1+", default=-1, tag=0)
    next_producer_id: int64 = field("1+", default=-1, tag=1)  # given to the producer, not used yet
    producer_epoch: int16 = field()
    next_producer_epoch: int16 = field("1+", default=-1, tag=3)
    transaction_timeout_ms: int32 = field()
    transaction_status: int8 = field()
    transaction_partitions: list[PartitionsSchema] | None = field()  # null when there are none
    transaction_last_update_timestamp_ms: int64 = field()
    transaction_start_timestamp_ms: int64 = field()
    client_transaction_version: int16 = field("1+", tag=2)
