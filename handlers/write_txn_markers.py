"""WriteTxnMarkers (key 27): write the end of transactions into partitions that this broker leads.

Behaviour: sent by transaction coordinators, and by administrators who end a transaction that hangs. A marker with an old
producer epoch is refused with INVALID_PRODUCER_EPOCH, one of an old coordinator with TRANSACTION_COORDINATOR_FENCED. In
``__consumer_offsets`` the group coordinator applies, or drops, the offsets that the transaction committed.

Version notes: 1 is flexible; 2 says which protocol the transaction is of (KIP-1228): a marker of transactions V2 needs an
epoch above that of the open transaction.
"""

from __future__ import annotations

from ..base.errors import KafkaError
from ..security.acl import Operation
from ..wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from .call import Call
from .rights import CLUSTER, check, may


async def handle(call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    if not may(call, Operation.ALTER, CLUSTER, log_if_denied=False):
        check(call, Operation.CLUSTER_ACTION, CLUSTER)
    await call.flush()
    return await call.broker.end_markers.write(request)


def error_response(request: WriteTxnMarkersRequest, error: KafkaError) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error.code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )
