"""WriteTxnMarkers (key 27): a transaction coordinator has leaders write the end markers of transactions.

v2  version of the transaction protocol in each marker (KIP-1228)
"""

from ..api_keys import ApiKey
from ..schema import Message, Struct, field, int8, int16, int32, int64, request, response, string, struct


@struct
class WritableTxnMarkerTopic(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


@struct
class WritableTxnMarker(Struct):
    producer_id: int64 = field()
    producer_epoch: int16 = field()
    transaction_result: bool = field()  # true: commit
    topics: list[WritableTxnMarkerTopic] = field()
    coordinator_epoch: int32 = field()
    transaction_version: int8 = field("2+", ignorable=True)


@request(key=ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersRequest(Message):
    markers: list[WritableTxnMarker] = field()


@struct
class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()


@struct
class WritableTxnMarkerTopicResult(Struct):
    name: string = field()
    partitions: list[WritableTxnMarkerPartitionResult] = field()


@struct
class WritableTxnMarkerResult(Struct):
    producer_id: int64 = field()
    topics: list[WritableTxnMarkerTopicResult] = field()


@response(key=ApiKey.WRITE_TXN_MARKERS, versions="0-2", flexible="1+")
class WriteTxnMarkersResponse(Message):
    markers: list[WritableTxnMarkerResult] = field()
