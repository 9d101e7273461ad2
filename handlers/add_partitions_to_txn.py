"""AddPartitionsToTxn (key 25): partitions join a transaction, which begins with the first.

Behaviour: when one partition does not exist nothing is added: that one is answered UNKNOWN_TOPIC_OR_PARTITION, the others
OPERATION_NOT_ATTEMPTED. Likewise nothing is added when the client may not write to one of the topics, which is answered
TOPIC_AUTHORIZATION_FAILED; no client may write to the coordinators' own topics.

Version notes: 0-3 come from clients of the classic protocol, one transaction each; before 2 PRODUCER_FENCED is called
INVALID_PRODUCER_EPOCH; 3 is flexible. 4 and 5 come from brokers: many transactions, each either to add, for a client of
transactions V2, or only to verify (KIP-890), which answers TRANSACTION_ABORTABLE for partitions that were not added.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..metadata.rules.topic_names import INTERNAL_TOPICS
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
from .fenced import downgrade_fenced
from .rights import CLUSTER, TOPIC, TRANSACTIONAL_ID, allowed_names, check

_BROKERS_FROM = 4
_PRODUCER_FENCED_FROM = 2

_AT_ONCE = 1000

CodeOf = Callable[[TopicPartition], ErrorCode]
"""The response for each partition that was asked for."""


async def handle(call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.version >= _BROKERS_FROM:
        check(call, Operation.CLUSTER_ACTION, CLUSTER)
        results = []
        for asked in request.transactions:
            code_of = await _one(call, asked, asked.verify_only)
            results.append(
                AddPartitionsToTxnResult(
                    transactional_id=asked.transactional_id, topic_results=await _results(asked.topics, code_of)
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
    code_of = _forbidden(call, asked) or await _one(call, asked, False)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=await _results(asked.topics, code_of))


def _forbidden(call: Call, asked: AddPartitionsToTxnTransaction) -> CodeOf | None:
    """The response where the client may not write to each of the topics; None where it may."""
    names = {topic.name for topic in asked.topics}
    writable = allowed_names(call, Operation.WRITE, TOPIC, names - INTERNAL_TOPICS)
    if writable == names:
        return None
    metadata = call.broker.metadata

    def code_of(name: TopicPartition) -> ErrorCode:
        if name.topic not in writable:
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if metadata.partition(*name) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.OPERATION_NOT_ATTEMPTED

    return code_of


def _codes(others: ErrorCode, exceptions: Mapping[TopicPartition, ErrorCode] | None = None) -> CodeOf:
    known = exceptions or {}
    return lambda name: known.get(name, others)


async def _slices(topics: Iterable[AddPartitionsToTxnTopic]) -> AsyncIterator[list[TopicPartition]]:
    """The partitions of one topic after the other, some at a time; other tasks have their turn between those of a large one."""
    for topic in topics:
        for start in range(0, len(topic.partitions), _AT_ONCE):
            if start:
                await trio.lowlevel.checkpoint()
            yield [TopicPartition(topic.name, partition) for partition in topic.partitions[start : start + _AT_ONCE]]


async def _one(call: Call, asked: AddPartitionsToTxnTransaction, verify_only: bool) -> CodeOf:
    metadata = call.broker.metadata
    partitions: dict[TopicPartition, None] = {}
    unknown: dict[TopicPartition, ErrorCode] = {}
    async for names in _slices(asked.topics):
        partitions |= dict.fromkeys(names)
        for name in names:
            if metadata.partition(*name) is None:
                unknown[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if unknown:
        return _codes(ErrorCode.OPERATION_NOT_ATTEMPTED, unknown)
    transactions = call.broker.transactions
    producer = (asked.producer_id, asked.producer_epoch)
    transactional_id = asked.transactional_id
    try:
        if verify_only:
            verified = await transactions.verify_partitions(transactional_id, producer, partitions, call.flush)
            return _codes(ErrorCode.TRANSACTION_ABORTABLE, dict.fromkeys(verified, ErrorCode.NONE))
        client_version = TRANSACTIONS_V2 if call.version >= _BROKERS_FROM else 0
        await transactions.add_partitions(transactional_id, producer, partitions, client_version, call.flush)
        return _codes(ErrorCode.NONE)
    except KafkaError as error:
        return _codes(downgrade_fenced(error, call.version >= _PRODUCER_FENCED_FROM).code)


async def _results(topics: Iterable[AddPartitionsToTxnTopic], code_of: CodeOf) -> list[AddPartitionsToTxnTopicResult]:
    results = []
    for topic in topics:
        of_topic: list[AddPartitionsToTxnPartitionResult] = []
        async for names in _slices([topic]):
            of_topic += _partition_results(names, code_of)
        results.append(AddPartitionsToTxnTopicResult(name=topic.name, results_by_partition=of_topic))
    return results


def _partition_results(names: Iterable[TopicPartition], code_of: CodeOf) -> list[AddPartitionsToTxnPartitionResult]:
    return [
        AddPartitionsToTxnPartitionResult(partition_index=name.partition, partition_error_code=code_of(name))
        for name in names
    ]


def error_response(request: AddPartitionsToTxnRequest, error: KafkaError) -> AddPartitionsToTxnResponse:
    code_of = _codes(error.code)
    return AddPartitionsToTxnResponse(
        error_code=error.code,
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=_partition_results(
                    [TopicPartition(topic.name, partition) for partition in topic.partitions], code_of
                ),
            )
            for topic in request.v3_and_below_topics
        ],
    )
