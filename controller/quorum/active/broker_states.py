"""Partition changes that follow when a broker is fenced, unfenced, shut down, or loses a log directory.

All of it is one function over the partitions that are concerned: the broker leaves the ISR, or may lead again, and what differs
is a record. The records of an operation are made of one state: none of them sees what another one changes. Source: the
``handle…`` methods of Kafka's ReplicationControlManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ....wire.messages.broker_records import BrokerRegistrationChangeRecord, UnregisterBrokerRecord
from ....wire.metadata_records import VersionedRecord
from .context import OperationContext
from .image_index import PartitionKey
from .partition_changes import ElectionGoal, PartitionTarget

_FENCED, _UNFENCED = 1, -1
_IN_CONTROLLED_SHUTDOWN = 1
_FENCING, _SHUTDOWN, _DIRECTORIES, _CORDONED = 0, 1, 2, 3
"""The lowest version of BrokerRegistrationChange that carries a change; Kafka writes none above it."""


def fence(context: OperationContext, broker_id: int) -> list[VersionedRecord]:
    """The broker must be registered. The last record says that it is fenced: what came before may be in earlier batches."""
    return [
        *without_broker(context, broker_id, context.index.with_broker_in_isr(broker_id)),
        # Last: the next controller watches no broker that is fenced. If this one ended between two batches, it would lead on.
        registration_change(context, broker_id, fenced=_FENCED),
    ]


def unfence(context: OperationContext, broker_id: int) -> list[VersionedRecord]:
    """Partitions that nobody leads may now have a leader. While the records are made the broker still counts as fenced."""
    change = registration_change(context, broker_id, fenced=_UNFENCED)

    def is_alive(replica: int) -> bool:
        return replica == broker_id or context.is_active(replica)

    return [change, *_updates(context, context.index.without_leader(), is_alive)]


def begin_controlled_shutdown(context: OperationContext, broker_id: int) -> list[VersionedRecord]:
    """The broker gives up all that it leads, and leaves each ISR. It may do so more than once."""
    broker = context.broker(broker_id)
    assert broker is not None
    records = []
    if not broker.is_shutting_down:
        records.append(registration_change(context, broker_id, in_controlled_shutdown=_IN_CONTROLLED_SHUTDOWN))
    return [*records, *without_broker(context, broker_id, context.index.with_broker_in_isr(broker_id))]


def unregister(context: OperationContext, broker_id: int, broker_epoch: int) -> list[VersionedRecord]:
    """The broker leaves each ISR, and does not lead what it is an eligible leader replica of."""
    return [
        *without_broker(context, broker_id, context.index.with_broker_in_isr(broker_id)),
        *without_broker(context, broker_id, context.index.with_broker_in_elr(broker_id)),
        (UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker_epoch), 0),
    ]


def end_previous_life(context: OperationContext, broker_id: int, *, was_clean: bool) -> list[VersionedRecord]:
    """A broker registers as a new process. After an unclean shutdown it may have lost records, so it leaves the ELR (KIP-966)."""
    in_isr = context.index.with_broker_in_isr(broker_id)
    if was_clean or not context.has_elr:
        return without_broker(context, broker_id, in_isr)
    keys = [*in_isr, *context.index.with_broker_in_elr(broker_id)]
    return without_broker(context, broker_id, keys, unclean_shutdown=(broker_id,))


def lose_directories(context: OperationContext, broker_id: int, offline: Sequence[bytes]) -> list[VersionedRecord]:
    """Log directories have failed (KIP-858): the replicas in them leave the ISR. None if the broker had none of them online."""
    broker = context.broker(broker_id)
    assert broker is not None
    failed = [directory for directory in broker.directories if directory in offline]
    if not failed:
        return []
    records = [
        record
        for directory in failed
        for record in without_broker(context, broker_id, context.index.in_directory(directory))
    ]
    online = [directory for directory in broker.directories if directory not in offline]
    return [*records, registration_change(context, broker_id, log_dirs=online)]


def cordon_directories(
    context: OperationContext, broker_id: int, cordoned: Sequence[bytes] | None
) -> list[VersionedRecord]:
    """Log directories that get no new replicas. A broker that has not caught up yet says None, which changes nothing."""
    broker = context.broker(broker_id)
    assert broker is not None
    if cordoned is None or (broker.cordoned is not None and set(broker.cordoned) == set(cordoned)):
        return []
    return [registration_change(context, broker_id, cordoned_log_dirs=list(cordoned))]


def registration_change(
    context: OperationContext,
    broker_id: int,
    *,
    fenced: int = 0,
    in_controlled_shutdown: int = 0,
    log_dirs: Sequence[bytes] = (),
    cordoned_log_dirs: list[bytes] | None = None,
) -> VersionedRecord:
    """A change of a registered broker, in the lowest version that carries it."""
    broker = context.broker(broker_id)
    assert broker is not None, f"broker {broker_id} is not registered"
    version = _FENCING
    if cordoned_log_dirs is not None:
        version = _CORDONED
    elif not fenced:
        version = _SHUTDOWN if in_controlled_shutdown else _DIRECTORIES
    return (
        BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.epoch,
            fenced=fenced,
            in_controlled_shutdown=in_controlled_shutdown,
            log_dirs=list(log_dirs),
            cordoned_log_dirs=cordoned_log_dirs,
        ),
        version,
    )


def without_broker(
    context: OperationContext,
    broker_id: int,
    keys: Iterable[PartitionKey],
    unclean_shutdown: tuple[int, ...] = (),
) -> list[VersionedRecord]:
    """The broker leaves the ISR of these partitions and leads none of them, although the state says that it is active."""

    def is_alive(replica: int) -> bool:
        return replica != broker_id and context.is_active(replica)

    return _updates(context, keys, is_alive, broker_id, unclean_shutdown)


def _updates(
    context: OperationContext,
    keys: Iterable[PartitionKey],
    is_alive: Callable[[int], bool],
    leaves: int | None = None,
    unclean_shutdown: tuple[int, ...] = (),
) -> list[VersionedRecord]:
    records = []
    for topic_id, number in keys:
        topic = context.topic(topic_id)
        assert topic is not None, "the index has partitions of topics only"
        isr = tuple(replica for replica in topic.partitions[number].isr if replica != leaves)
        goal = ElectionGoal.UNCLEAN if context.allows_unclean_election(topic) else ElectionGoal.ONLINE
        target = PartitionTarget(isr=isr, unclean_shutdown=unclean_shutdown, goal=goal)
        record = context.change(topic, number, target, is_alive)
        if record is not None:
            records.append(record)
    return records
