"""A data folder that another broker has filled: its topics are registered in a cluster store that is still empty.

The folders give a topic's name, its partitions, and, in ``partition.metadata``, its id. A partition's leader epoch is not below
those of its batches, and producer ids begin above those that were handed out, or two producers would share their sequence
numbers. A topic's configs are not in the folder: they were in ZooKeeper or in KRaft's metadata log. So coordinators' topics get
those they always have, a topic that was compacted goes on to be compacted, and of the others nothing is deleted
(``retention.ms=-1``) until that is changed.

All of it is one transaction of the store: after a crash either all of it is done or nothing.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterable, Mapping

from ...base.errors import ErrorCode, KafkaError
from ...log.partition_log import PartitionLog
from ...log.validation import MAX_DECOMPRESSED_BYTES
from ...metadata.types import LeaderState, ReplicaAssignment, TopicAssignment
from ...wire.coordinator_records import decode_transaction_key, decode_transaction_value
from ...wire.messages.transaction_state import TransactionLogValue
from ...wire.schema import ZERO_UUID
from ..random_uuids import random_uuid
from ..zookeeper import znodes
from .producer_id_blocks import BLOCK_SIZE
from .store.cluster_store import ClusterStore, Create, Operation

logger = logging.getLogger(__name__)

Configs = Mapping[str, str | None]
Logs = Mapping[int, PartitionLog]

_COMPACTED: Configs = {"cleanup.policy": "compact"}
_KEPT: Configs = {"retention.ms": "-1"}


async def is_new(store: ClusterStore) -> bool:
    """Whether the store has never known a topic. Raises StoreError."""
    return await store.exists(znodes.TOPICS) is None


async def adopt_logs(
    store: ClusterStore,
    broker_id: int,
    logs: Iterable[PartitionLog],
    coordinator_configs: Mapping[str, Configs],
    transactions_topic: str,
    randomness: random.Random,
) -> None:
    """Register the topics of ``logs``, where the store ``is_new``; ``coordinator_configs`` are by topic,
    and ``transactions_topic`` is the one with the state of transactions.

    Raises KafkaError INCONSISTENT_TOPIC_ID when the partitions of a topic belong to different ones, OSError, StoreError.
    """
    topics: dict[str, dict[int, PartitionLog]] = {}
    for partition_log in logs:
        topics.setdefault(partition_log.topic, {})[partition_log.partition] = partition_log
    if not topics:
        return
    block = _producer_id_block(broker_id, topics, topics.get(transactions_topic, {}))
    there = await store.get_many(znodes.PERSISTENT_PATHS)
    operations: list[Operation] = [
        Create(path, block if path == znodes.PRODUCER_ID_BLOCK else b"")
        for path, node in zip(znodes.PERSISTENT_PATHS, there, strict=True)
        if node is None  # users may have been added before the first start
    ]
    for name, partitions in sorted(topics.items()):
        configs = coordinator_configs.get(name) or _guessed_configs(partitions)
        operations += _topic_operations(broker_id, name, partitions, configs, randomness)
    await store.multi(operations)
    logger.warning(
        "The folder holds topics that this broker did not make (%d); they are its own from now on. Their configs are not "
        "in the folder: until you set them, records of these topics are deleted by compaction only",
        len(topics),
    )


def _guessed_configs(partitions: Logs) -> Configs:
    was_compacted = any(partition_log.cleaned_offset is not None for partition_log in partitions.values())
    return _COMPACTED if was_compacted else _KEPT


def _topic_operations(
    broker_id: int, name: str, partitions: Logs, configs: Configs, randomness: random.Random
) -> list[Operation]:
    """The operations that create the nodes of a topic."""
    ids = {partition_log.topic_id for partition_log in partitions.values()} - {ZERO_UUID}
    if len(ids) > 1:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID, f"the partitions of topic {name} belong to {len(ids)} different topics"
        )
    topic_id = ids.pop() if ids else random_uuid(randomness)
    numbers = range(max(partitions) + 1)
    missing = [number for number in numbers if number not in partitions]
    if missing:
        logger.warning("Topic %s has no folder for partitions %s; they begin empty", name, missing)
    replicas = (broker_id,)
    assignment = TopicAssignment(topic_id, {number: ReplicaAssignment(replicas) for number in numbers})
    operations: list[Operation] = [
        Create(
            znodes.topic_config_path(name), znodes.encode_config({k: v for k, v in configs.items() if v is not None})
        ),
        Create(znodes.topic_path(name), znodes.encode_topic(assignment)),
        Create(znodes.partitions_path(name)),
    ]
    for number in numbers:
        leader_epoch = partitions[number].latest_epoch if number in partitions else 0
        state = LeaderState(broker_id, max(leader_epoch, 0), replicas, 0)
        operations.append(Create(znodes.partition_path(name, number)))
        operations.append(Create(znodes.state_path(name, number), znodes.encode_state(state)))
    return operations


def _producer_id_block(broker_id: int, topics: Mapping[str, Logs], transactions: Logs) -> bytes:
    """The last block that was handed out, judging by the producers that are known; nothing when there are none."""
    last = -1
    for partitions in topics.values():
        for partition_log in partitions.values():
            last = max(last, max(partition_log.producer_state.producers, default=-1))
    for partition_log in transactions.values():
        last = max(last, _last_transactional_id(partition_log))
    if last < 0:
        return b""
    first = last - last % BLOCK_SIZE
    return znodes.encode_producer_id_block(broker_id, first, first + BLOCK_SIZE - 1)


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
