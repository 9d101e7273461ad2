"""AddPartitionsToTxn (key 25): partitions join a transaction, which begins with the first.

Behaviour: when one partition does not exist nothing is added: that one is answered UNKNOWN_TOPIC_OR_PARTITION, the others
OPERATION_NOT_ATTEMPTED. Likewise nothing is added when the client may not write to one of the topics, which is answered
TOPIC_AUTHORIZATION_FAILED; no client may write to the coordinators' own topics.

Version notes: 0-3 come from clients of the classic protocol, one transaction each; before 2 PRODUCER_FENCED is called
INVALID_PRODUCER_EPOCH; 3 is flexible. 4 and 5 come from brokers: many transactions, each either to add, for a client of
transactions V2, or only to verify (KIP-890), which answers TRANSACTION_ABORTABLE for partitions that were not added.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..controller.topic_names import INTERNAL_TOPICS
from ..security.acl import Operation
from ..transaction_coordinator.transaction import TRANSACTIONS_V2
from ..wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from .call import Call
from .fenced import as_known
from .rights import CLUSTER, TOPIC, TRANSACTIONAL_ID, allowed_names, check

_BROKERS_FROM = 4
_PRODUCER_FENCED_FROM = 2

Codes = dict[TopicPartition, ErrorCode]


async def handle(call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.version >= _BROKERS_FROM:
        check(call, Operation.CLUSTER_ACTION, CLUSTER)
        results = []
        for asked in request.transactions:
            codes = await _one(call, asked, asked.verify_only)
            results.append(
                AddPartitionsToTxnResult(
                    transactional_id=asked.transactional_id, topic_results=_results(asked.topics, codes)
                )
            )
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    asked = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    check(call, Operation.WRITE, TRANSACTIONAL_ID, asked.transactional_id)
    codes = _forbidden(call, asked) or await _one(call, asked, False)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(asked.topics, codes))


def _forbidden(call: Call, asked: AddPartitionsToTxnTransaction) -> Codes:
    """The answer where the client may not write to each of the topics; nothing where it may."""
    names = {topic.name for topic in asked.topics}
    writable = allowed_names(call, Operation.WRITE, TOPIC, names - INTERNAL_TOPICS)
    if writable == names:
        return {}
    metadata = call.broker.metadata
    codes = {}
    for name in _partitions(asked.topics):
        if name.topic not in writable:
            codes[name] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif metadata.partition(*name) is None:
            codes[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            codes[name] = ErrorCode.OPERATION_NOT_ATTEMPTED
    return codes


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, partition) for topic in topics for partition in topic.partitions]


async def _one(call: Call, asked: AddPartitionsToTxnTransaction, verify_only: bool) -> Codes:
    partitions = _partitions(asked.topics)
    metadata = call.broker.metadata
    unknown = {name for name in partitions if metadata.partition(*name) is None}
    if unknown:
        return {
            name: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if name in unknown else ErrorCode.OPERATION_NOT_ATTEMPTED
            for name in partitions
        }
    transactions = call.broker.transactions
    producer = (asked.producer_id, asked.producer_epoch)
    transactional_id = asked.transactional_id
    try:
        if verify_only:
            verified = await transactions.verify_partitions(transactional_id, producer, partitions, call.flush)
            return {
                name: ErrorCode.NONE if name in verified else ErrorCode.TRANSACTION_ABORTABLE for name in partitions
            }
        client_version = TRANSACTIONS_V2 if call.version >= _BROKERS_FROM else 0
        await transactions.add_partitions(transactional_id, producer, partitions, client_version, call.flush)
        return dict.fromkeys(partitions, ErrorCode.NONE)
    except KafkaError as error:
        return dict.fromkeys(partitions, as_known(error, call.version >= _PRODUCER_FENCED_FROM).code)


def _results(topics: Iterable[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=partition, partition_error_code=codes[TopicPartition(topic.name, partition)]
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def error_response(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    topics = request.v3_and_below_topics
    codes = dict.fromkeys(_partitions(topics), error.code)
    return AddPartitionsToTxnResponse(
        error_code=error.code, results_by_topic_v3_and_below=_results(topics, codes) if topics else []
    )
