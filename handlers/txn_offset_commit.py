"""TxnOffsetCommit (key 28): commit a group's offsets inside a transaction; see ``group_coordinator.transactional``.

Behaviour: partitions that do not exist are answered UNKNOWN_TOPIC_OR_PARTITION and the others are committed, if the group's
partition of ``__consumer_offsets`` is part of the transaction. While the producer's last transaction is ending the response is
CONCURRENT_TRANSACTIONS, as in Kafka; but a request of transactions V2 first waits a moment for that end, as a Produce does in
both, where Kafka answers at once.

Version notes: 2 adds the leader epoch, and knows COORDINATOR_LOAD_IN_PROGRESS, which is COORDINATOR_NOT_AVAILABLE before;
3 is flexible and names the member (KIP-447); 4 may answer TRANSACTION_ABORTABLE; 5 is transactions V2: the group need not
have been added to the transaction; 6 names topics by id.
"""

from __future__ import annotations

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..group_coordinator.settings import TOPIC
from ..security.acl import Operation
from ..wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from ..wire.schema import replace
from .call import Call
from .joining import check_known
from .rights import GROUP, TRANSACTIONAL_ID, check, may
from .rights import TOPIC as TOPIC_RESOURCE
from .transaction_partitions import Entry, verify_partitions

_LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
_LOAD_IN_PROGRESS_FROM = 2
_ABORTABLE_FROM = 4
_V2_FROM = 5
_TOPIC_IDS_FROM = 6
_NO_SEQUENCE = -1


async def handle(call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    check(call, Operation.WRITE, TRANSACTIONAL_ID, request.transactional_id)
    check(call, Operation.READ, GROUP, request.group_id)
    knows_loading = call.version >= _LOAD_IN_PROGRESS_FROM
    await check_known(call, _LOADING if knows_loading else ErrorCode.COORDINATOR_NOT_AVAILABLE)
    accepted: list[TxnOffsetCommitRequestTopic] = []
    refused: list[TxnOffsetCommitResponseTopic] = []
    for topic in request.topics:
        _sort(call, topic, accepted, refused)
    response = TxnOffsetCommitResponse()
    if accepted:
        wanted = replace(request, topics=accepted)
        try:
            await _enter(call, request)
            response = await call.broker.groups.commit_transactional_offsets(wanted, call.flush)
        except KafkaError as error:
            is_unknown = error.code is _LOADING and not knows_loading
            known = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) if is_unknown else error
            response = error_response(wanted, known)
    response.topics += refused
    return response


async def _enter(call: Call, request: TxnOffsetCommitRequest) -> None:
    """Let the transaction begin in the group's partition. Raises KafkaError."""
    index = call.broker.groups.partition_for(request.group_id)
    try:
        partition = call.broker.replicas.partition(TOPIC, index)
        partition.check_leader()
    except KafkaError as error:
        raise KafkaError(ErrorCode.NOT_COORDINATOR, error.message) from error
    entry = Entry(partition, request.producer_id, request.producer_epoch, _NO_SEQUENCE)
    refused = await verify_partitions(
        call,
        request.transactional_id,
        {TopicPartition(TOPIC, index): entry},
        adds=call.version >= _V2_FROM,
        knows_abortable=call.version >= _ABORTABLE_FROM,
    )
    for reason in refused.values():
        if reason.code is ErrorCode.NETWORK_EXCEPTION:
            # Older clients do not expect that one (GroupMetadataManager.maybeConvertOffsetCommitError).
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, reason.message)
        raise reason


def _sort(
    call: Call,
    topic: TxnOffsetCommitRequestTopic,
    accepted: list[TxnOffsetCommitRequestTopic],
    refused: list[TxnOffsetCommitResponseTopic],
) -> None:
    """Put the partitions that exist into ``accepted``, under the topic's name and id, and the others into ``refused``."""
    metadata = call.broker.metadata
    if call.version >= _TOPIC_IDS_FROM:
        name = metadata.topic_name(topic.topic_id)
        if name is None:
            refused.append(_refused(topic, ErrorCode.UNKNOWN_TOPIC_ID))
            return
        topic = replace(topic, name=name)
    if not may(call, Operation.READ, TOPIC_RESOURCE, topic.name):
        refused.append(_refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        return
    known = metadata.topic(topic.name)
    numbers = () if known is None else known.partitions
    if known is not None:
        topic = replace(topic, topic_id=known.topic_id)
    existing = [partition for partition in topic.partitions if partition.partition_index in numbers]
    missing = [partition for partition in topic.partitions if partition.partition_index not in numbers]
    if existing:
        accepted.append(replace(topic, partitions=existing))
    if missing:
        missing_topic = replace(topic, partitions=missing)
        refused.append(_refused(missing_topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
            for partition in topic.partitions
        ],
    )


def error_response(request: TxnOffsetCommitRequest, error: KafkaError) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[_refused(topic, error.code) for topic in request.topics])
