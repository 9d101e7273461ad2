"""Adoption of existing log directories without their cluster's metadata, as the topics of a new KRaft cluster.

The directories give a topic's name, its partitions, and, in ``partition.metadata``, its id. A partition's leader epoch is not
below those of its batches, and producer ids begin above those that were handed out, or two producers would share their sequence
numbers. A topic's configs are not there: they were in ZooKeeper or in another metadata log. So coordinators' topics get those
they always have, a topic that was compacted goes on to be compacted, and of the others nothing is deleted (``retention.ms=-1``)
until that is changed.
"""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Callable, Iterable, Mapping

from ...base.errors import ErrorCode, KafkaError
from ...log.partition_log import PartitionLog
from ...log.validation import MAX_DECOMPRESSED_BYTES
from ...metadata.delta import ClusterDelta, TopicDelta
from ...metadata.types import UNASSIGNED_DIRECTORY, PartitionRegistration
from ...security.entities import TOPICS, Entity
from ...wire.coordinator_records import decode_transaction_key, decode_transaction_value
from ...wire.messages.transaction_state import TransactionLogValue
from ...wire.schema import ZERO_UUID
from ..random_uuids import random_uuid
from .active.producer_ids import BLOCK_SIZE

logger = logging.getLogger(__name__)

TopicConfigs = Mapping[str, str | None]
_Logs = Mapping[int, PartitionLog]

_COMPACTED: TopicConfigs = {"cleanup.policy": "compact"}
_KEPT: TopicConfigs = {"retention.ms": "-1"}


@dataclasses.dataclass(frozen=True)
class AdoptionRules:
    """What the logs do not say."""

    broker_id: int
    coordinator_configs: Mapping[str, TopicConfigs]
    """By topic."""
    transactions_topic: str
    """The topic with the state of transactions."""
    directory_of: Callable[[PartitionLog], bytes]
    """The id of the log directory that a log is in."""
    only_directory: bytes | None = None
    """That of the node's only one, where new logs are made."""


def adopted_delta(logs: Iterable[PartitionLog], rules: AdoptionRules, randomness: random.Random) -> ClusterDelta:
    """What the logs add to an image without topics.

    Raises KafkaError INCONSISTENT_TOPIC_ID when the partitions of a topic belong to different ones, OSError.
    """
    topics: dict[str, dict[int, PartitionLog]] = {}
    for partition_log in logs:
        topics.setdefault(partition_log.topic, {})[partition_log.partition] = partition_log
    deltas = [_topic(name, partitions, rules, randomness) for name, partitions in sorted(topics.items())]
    configs: dict[Entity, Mapping[str, str]] = {}
    for name, partitions in topics.items():
        given = rules.coordinator_configs.get(name) or _guessed_configs(partitions)
        configs[Entity(TOPICS, name)] = {key: value for key, value in given.items() if value is not None}
    if topics:
        logger.warning(
            "The log directories hold topics that this broker did not make (%d); they are its own from now on. Their configs "
            "are not there: until you set them, records of these topics are deleted by compaction only",
            len(topics),
        )
    first_free = _first_free_producer_id(topics, topics.get(rules.transactions_topic, {}))
    return ClusterDelta(topics=deltas, configs=configs, next_producer_id=first_free)


def _guessed_configs(partitions: _Logs) -> TopicConfigs:
    was_compacted = any(partition_log.cleaned_offset is not None for partition_log in partitions.values())
    return _COMPACTED if was_compacted else _KEPT


def _topic(name: str, partitions: _Logs, rules: AdoptionRules, randomness: random.Random) -> TopicDelta:
    ids = {partition_log.topic_id for partition_log in partitions.values()} - {ZERO_UUID}
    if len(ids) > 1:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"the partitions of topic {name} belong to {len(ids)} different topics"
        )
    numbers = range(max(partitions) + 1)
    missing = [number for number in numbers if number not in partitions]
    if missing:
        logger.warning("Topic %s has no log of partitions %s; they begin empty", name, missing)
    replicas = (rules.broker_id,)
    registrations = {}
    for number in numbers:
        partition_log = partitions.get(number)
        directory = rules.only_directory or UNASSIGNED_DIRECTORY
        if partition_log is not None:
            directory = rules.directory_of(partition_log)
        registrations[number] = PartitionRegistration(
            leader=rules.broker_id,
            leader_epoch=0 if partition_log is None else max(partition_log.latest_epoch, 0),
            partition_epoch=0,
            isr=replicas,
            replicas=replicas,
            directories=(directory,),
        )
    return TopicDelta(name, ids.pop() if ids else random_uuid(randomness), registrations)


def _first_free_producer_id(topics: Mapping[str, _Logs], transactions: _Logs) -> int | None:
    """Of the block after the last one that was handed out, judging by the producers that are known; None when there are none."""
    last = -1
    for partitions in topics.values():
        for partition_log in partitions.values():
            last = max(last, max(partition_log.producer_state.producers, default=-1))
    for partition_log in transactions.values():
        last = max(last, _last_transactional_id(partition_log))
    return None if last < 0 else last - last % BLOCK_SIZE + BLOCK_SIZE


def _last_transactional_id(partition_log: PartitionLog) -> int:
    """The largest producer id that a partition of ``__transaction_state`` has given to a transactional id; -1 for none."""
    last = -1
    for segment in partition_log.segments:
        for _, batch in segment.scan(0):
            if batch.is_control:
                continue
            for record in batch.records(MAX_DECOMPRESSED_BYTES):
                if record.key is None or record.value is None:
                    continue
                value = decode_transaction_value(decode_transaction_key(record.key), record.value)
                if isinstance(value, TransactionLogValue):
                    last = max(last, value.producer_id, value.next_producer_id, value.previous_producer_id)
    return last
