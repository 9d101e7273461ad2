"""Writes of partition states to ZooKeeper: many in one transaction, each fenced by the controller epoch.

Every transaction begins with a check of ``/controller_epoch``, so that a controller that was replaced without knowing can
change nothing any more (as in KafkaZkClient). Each state is written on the condition that its
node is as this controller knows it, because leaders of an older Kafka write states themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import trio

from ....base.errors import ErrorCode, KafkaError
from ....base.partitions import TopicPartition
from ....metadata.types import LeaderState
from ..nodes import znodes
from ..store.cluster_store import (
    BadVersionError,
    Check,
    ClusterStore,
    ConnectionLossError,
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
    size_of,
)
from .context import ControllerContext, PartitionState
from .loading import load_states

MAX_OPERATIONS = 2000
"""Operations in one transaction."""

MAX_BYTES = 1 << 19
"""Bytes of the operations in one transaction of several; ZooKeeper takes twice as many (``jute.maxbuffer``)."""

STATES_TOGETHER = 50
"""States in one transaction: enough to be fast, few enough to be written one by one after a conflict."""


def refusal(error: StoreError) -> KafkaError:
    """What a client is told when the store refuses a change."""
    if isinstance(error, (ControllerMovedError, SessionExpiredError)):
        return KafkaError(ErrorCode.NOT_CONTROLLER, "Another broker became controller.")
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))


async def fenced_multi(
    store: ClusterStore, context: ControllerContext, operations: Sequence[Operation]
) -> list[Result]:
    """``operations`` in as few transactions as they fit into. Raises StoreError; ControllerMovedError when fenced."""
    results: list[Result] = []
    fence = Check(znodes.CONTROLLER_EPOCH, context.epoch_version)
    for transaction in transactions(operations):
        try:
            results += (await store.multi([fence, *transaction]))[1:]
        except BadVersionError as error:
            if error.path == znodes.CONTROLLER_EPOCH:
                raise ControllerMovedError(error.path, str(error)) from error
            raise
    return results


def transactions(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    """``operations`` in their order, as few lists as each can be a transaction; an operation that is too large is alone."""
    together: list[Operation] = []
    size = 0
    for operation in operations:
        own_size = size_of(operation)
        if together and (len(together) == MAX_OPERATIONS or size + own_size > MAX_BYTES):
            yield together
            together, size = [], 0
        together.append(operation)
        size += own_size
    if together:
        yield together


def create_partition_operations(topic: str, partitions: Mapping[int, PartitionState]) -> list[Operation]:
    """What makes the nodes of new partitions, each with its first leader if it has one."""
    operations: list[Operation] = []
    for number, partition in partitions.items():
        operations.append(Create(znodes.partition_path(topic, number)))
        if partition.state is not None:
            operations.append(Create(znodes.state_path(topic, number), znodes.encode_state(partition.state)))
    return operations


async def write_states(
    store: ClusterStore, context: ControllerContext, states: Mapping[TopicPartition, LeaderState]
) -> set[TopicPartition]:
    """Write new states of known partitions, in the store and in the context.

    Returns the partitions where another writer was faster: the context has their stored states now, and they are to be decided
    again. Raises StoreError.
    """
    new = [key for key in states if context.partition(key).state is None]
    if new:
        await _make_parents(store, context, new)
    conflicts: set[TopicPartition] = set()
    failures: list[StoreError] = []

    async def write(keys: Sequence[TopicPartition]) -> None:
        try:
            conflicts.update(await _write_group(store, context, {key: states[key] for key in keys}))
        except StoreError as error:
            failures.append(error)

    keys = list(states)
    # All groups end, also after a failure: the context must have what the store has taken.
    async with trio.open_nursery() as nursery:
        for start in range(0, len(keys), STATES_TOGETHER):
            nursery.start_soon(write, keys[start : start + STATES_TOGETHER])
    if failures:
        # One of them may say that the term is over. No caller must miss it for another failure.
        raise next((error for error in failures if isinstance(error, ControllerMovedError)), failures[0])
    return await _read_again(store, context, states, conflicts) if conflicts else conflicts


async def _make_parents(store: ClusterStore, context: ControllerContext, keys: Sequence[TopicPartition]) -> None:
    """Make the nodes above the states of new partitions, as far as they do not exist."""
    folders = dict.fromkeys(znodes.partitions_path(key.topic) for key in keys)
    paths = [*folders, *(znodes.partition_path(*key) for key in keys)]
    while True:
        nodes = await store.get_many(paths)
        try:
            await fenced_multi(
                store, context, [Create(path) for path, node in zip(paths, nodes, strict=True) if node is None]
            )
            return
        except (NodeExistsError, ConnectionLossError):
            continue  # another writer was faster, or the answer was lost


async def _write_group(
    store: ClusterStore, context: ControllerContext, states: Mapping[TopicPartition, LeaderState]
) -> Iterable[TopicPartition]:
    """Write these states in one transaction; if that fails, those that can be one by one. The ones that could not."""
    try:
        results = await fenced_multi(store, context, [_operation(context, *item) for item in states.items()])
    except ConnectionLossError:
        return states  # reading will tell whether they were written
    except (BadVersionError, NodeExistsError, NoNodeError):
        if len(states) == 1:
            return states
        return [key for item in states.items() for key in await _write_group(store, context, dict([item]))]
    for (key, state), result in zip(states.items(), results, strict=True):
        partition = context.partition(key)
        partition.state = state
        partition.partition_epoch = result.version if isinstance(result, Stat) else 0
    return ()


def _operation(context: ControllerContext, key: TopicPartition, state: LeaderState) -> Operation:
    path, data = znodes.state_path(*key), znodes.encode_state(state)
    partition = context.partition(key)
    return Create(path, data) if partition.state is None else Set(path, data, partition.partition_epoch)


async def _read_again(
    store: ClusterStore,
    context: ControllerContext,
    states: Mapping[TopicPartition, LeaderState],
    conflicts: Iterable[TopicPartition],
) -> set[TopicPartition]:
    """Read those in conflict again; returns which of them differ from what was to be written.

    A state that is not understood is overwritten if the controller knows the one before it; else it is left alone.
    """
    found = {key: context.partition(key) for key in conflicts}
    lost = await load_states(store, found)
    hopeless = {key for key in lost if found[key].state is None}
    return {key for key, partition in found.items() if partition.state != states[key]} - hopeless
