"""Writing partition states to the store: many in one transaction, each fenced by the controller's epoch.

Every transaction begins with a check of ``/controller_epoch``, so that a controller that was replaced without knowing can
change nothing any more (KIP-22's fencing as Kafka's ZooKeeper mode has it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from . import znodes
from .context import ControllerContext, PartitionState
from .loading import load_states
from .store import (
    BadVersionError,
    Check,
    ClusterStore,
    ControllerMovedError,
    Create,
    NodeExistsError,
    NoNodeError,
    Operation,
    Result,
    SessionExpiredError,
    Set,
    Stat,
    StoreError,
    ensure_paths,
)
from .znodes import LeaderState

MAX_OPERATIONS = 2000
"""Operations in one transaction; ZooKeeper takes about a megabyte."""


def refusal(error: StoreError) -> KafkaError:
    """What a client is told when the store refuses a change."""
    if isinstance(error, (ControllerMovedError, SessionExpiredError)):
        return KafkaError(ErrorCode.NOT_CONTROLLER, "Another broker became controller.")
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


async def fenced_multi(
    store: ClusterStore, context: ControllerContext, operations: Sequence[Operation]
) -> list[Result]:
    """``operations`` in as few transactions as they fit. Raises StoreError, ControllerMovedError before any other."""
    results: list[Result] = []
    fence = Check(znodes.CONTROLLER_EPOCH, context.epoch_version)
    for start in range(0, len(operations), MAX_OPERATIONS):
        try:
            results += (await store.multi([fence, *operations[start : start + MAX_OPERATIONS]]))[1:]
        except BadVersionError as error:
            if error.path == znodes.CONTROLLER_EPOCH:
                raise ControllerMovedError(error.path, str(error)) from error
            raise
    return results


def create_partition_operations(topic: str, partitions: Mapping[int, PartitionState]) -> list[Operation]:
    """What makes the nodes of new partitions, each with its first leader."""
    operations: list[Operation] = []
    for number, partition in partitions.items():
        assert partition.state is not None
        operations.append(Create(znodes.partition_path(topic, number)))
        operations.append(Create(znodes.state_path(topic, number), znodes.encode_state(partition.state)))
    return operations


async def write_states(
    store: ClusterStore, context: ControllerContext, states: Mapping[TopicPartition, LeaderState]
) -> bool:
    """Write new states of known partitions, and take them over into the context.

    False when another writer was faster at one of them (a leader of an older Kafka writes its ISR itself): then all of
    them are in the context as they are stored now, and are to be decided anew. Raises StoreError.
    """
    unborn = [key for key in states if context.partition(key).state is None]
    if unborn:
        paths = dict.fromkeys(znodes.partitions_path(key.topic) for key in unborn)
        await ensure_paths(store, [*paths, *(znodes.partition_path(*key) for key in unborn)])
    operations: list[Operation] = []
    for key, state in states.items():
        path, data = znodes.state_path(*key), znodes.encode_state(state)
        partition = context.partition(key)
        operations.append(Create(path, data) if partition.state is None else Set(path, data, partition.partition_epoch))
    try:
        results = await fenced_multi(store, context, operations)
    except (BadVersionError, NodeExistsError, NoNodeError):
        await load_states(store, {key: context.partition(key) for key in states})
        return False
    for (key, state), result in zip(states.items(), results, strict=True):
        partition = context.partition(key)
        partition.state = state
        if isinstance(result, Stat):
            partition.partition_epoch, partition.modified_zxid = result.version, result.mzxid
        else:
            partition.partition_epoch, partition.modified_zxid = 0, context.newest_zxid()
    return True
