"""The builder of PartitionChangeRecords, from a partition's registration and its target state.

Every operation on partitions ends here: elections, in-sync replicas, reassignments, directories, eligible leader replicas
(KIP-966). A record has the fields that differ; where nothing differs there is none, because each record raises the partition
epoch, and then a change that the leader has under way is refused (KAFKA-16624). Source of the rules and of their order: Kafka's
PartitionChangeBuilder.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from ....base.partitions import NO_LEADER
from ....metadata.types import PartitionRegistration
from ....wire.messages.topic_records import PartitionChangeRecord
from ....wire.metadata_records import VersionedRecord
from .. import metadata_version

SAME_LEADER = -2
"""In a record: the leader stays, and so does the leader epoch."""
_RECOVERING = 1  # in a record

Replicas = tuple[int, ...]


class ElectionGoal(Enum):
    """Which leader is wanted, if the present one may go on."""

    ONLINE = "the present one, else any that is eligible"
    PREFERRED = "the first replica, else as ONLINE"
    UNCLEAN = "as ONLINE, else any that is alive, although it may lack records"


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionTarget:
    """What a partition is to become. None leaves a field as it is."""

    isr: Replicas | None = None
    replicas: Replicas | None = None
    adding: Replicas | None = None
    removing: Replicas | None = None
    is_recovering: bool | None = None
    directories: Mapping[int, bytes] = dataclasses.field(default_factory=dict)
    """The directories of replicas that have moved, by broker."""
    unclean_shutdown: Collection[int] = ()
    """Brokers that may have lost records: they are no eligible leader replicas any more."""
    goal: ElectionGoal = ElectionGoal.ONLINE


class PartitionRules(NamedTuple):
    """What a change of a partition depends on, beside the partition."""

    may_lead: Callable[[int], bool]
    """Whether a broker is alive and has the partition in a directory that works."""
    default_directory: Callable[[int], bytes]
    """Where a broker puts a replica that is new."""
    level: int
    """Of ``metadata.version``."""
    min_isr: int
    """The effective ``min.insync.replicas``, never above the replication factor."""
    has_elr: bool
    """Whether ``eligible.leader.replicas.version`` is finalized."""


class ElectedLeader(NamedTuple):
    """The outcome of an election."""

    leader: int
    """NO_LEADER where nobody can lead."""
    is_unclean: bool
    """Whether the leader was elected although it may lack records."""


def partition_change(
    topic_id: bytes, number: int, partition: PartitionRegistration, target: PartitionTarget, rules: PartitionRules
) -> VersionedRecord | None:
    """The record that makes ``partition`` into its target, or None where nothing changes."""
    aim = _aim_at(partition, target)
    isr, elr = aim.isr, _eligible_replicas(partition, aim, target.unclean_shutdown, rules)
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=number)
    elected = elect(partition, aim.replicas, isr, elr, target.goal, rules)
    if elected.leader != partition.leader:
        if elected.leader in elr:
            # Elected without an ISR: it is now the only replica in sync. The others of the ELR stay eligible.
            isr, elr = (elected.leader,), tuple(replica for replica in elr if replica != elected.leader)
        record.leader = elected.leader
        if elected.is_unclean:
            record.isr = [elected.leader]
            if not partition.is_recovering:
                record.leader_recovery_state = _RECOVERING
    if record.leader == SAME_LEADER and not set(partition.replicas) <= set(aim.replicas):
        record.leader = partition.leader  # the next leader epoch, so that the replicas that are gone stop
    if record.isr is not None or not rules.has_elr:
        elr = ()
    if elr != partition.elr:
        record.eligible_leader_replicas = list(elr)
    if record.isr is None and (isr or rules.has_elr) and isr != partition.isr:
        record.isr = list(isr)
    shrinks = record.isr is not None and not set(partition.isr) <= set(record.isr)
    if shrinks and record.leader == SAME_LEADER and metadata_version.bumps_leader_epoch_on_shrink(rules.level):
        record.leader = partition.leader  # brokers of that time need it (KAFKA-15021)
    if rules.has_elr:
        _note_last_known_leader(record, partition)
    _set_assignment(record, partition, aim, target.directories, rules)
    if target.is_recovering not in (None, partition.is_recovering):
        record.leader_recovery_state = int(bool(target.is_recovering))
    if record == PartitionChangeRecord(topic_id=topic_id, partition_id=number):
        return None
    return record, metadata_version.partition_record_version(rules.level)


class _Aim(NamedTuple):
    isr: Replicas
    replicas: Replicas
    adding: Replicas
    removing: Replicas


def _aim_at(partition: PartitionRegistration, target: PartitionTarget) -> _Aim:
    """The target with everything that it leaves as it is; a reassignment that it completes is over in it."""
    aim = _Aim(
        partition.isr if target.isr is None else target.isr,
        partition.replicas if target.replicas is None else target.replicas,
        partition.adding if target.adding is None else target.adding,
        partition.removing if target.removing is None else target.removing,
    )
    completed = completed_reassignment(aim.replicas, aim.adding, aim.removing, aim.isr)
    if completed is None:
        return aim
    replicas, isr = completed
    return _Aim(isr, replicas, (), ())


def completed_reassignment(
    replicas: Replicas, adding: Replicas, removing: Replicas, isr: Replicas
) -> tuple[Replicas, Replicas] | None:
    """Replicas and in-sync replicas after a reassignment (KIP-455) that can end now, else None.

    It ends when all replicas that it adds are in sync. One that lowers the replication factor waits for all that stay, because
    otherwise it would take in-sync replicas away and leave replicas that are not. Source: PartitionReassignmentReplicas.
    """
    if not adding and not removing:
        return None
    next_replicas = tuple(replica for replica in replicas if replica not in removing)
    next_isr = tuple(replica for replica in isr if replica not in removing)
    if removing and not (next_isr and next_replicas):
        return None
    if not set(adding) <= set(next_isr):
        return None
    if len(adding) < len(removing) and not set(next_replicas) <= set(next_isr):
        return None
    return next_replicas, next_isr


def _eligible_replicas(
    partition: PartitionRegistration, aim: _Aim, unclean_shutdown: Collection[int], rules: PartitionRules
) -> Replicas:
    """The ELR beside the ISR aimed at: who left an ISR that is smaller than the minimum now, and has everything committed.

    A full ISR needs none. Records are committed only while the ISR has the minimum, so whoever was in it has all of them.
    """
    if not rules.has_elr:
        return partition.elr
    if len(aim.isr) >= rules.min_isr:
        return ()
    # Kafka (4.0 to 4.3) keeps a replica that was moved elsewhere. Moved back, it would be eligible with an empty log.
    candidates = {*partition.elr, *partition.isr} & set(aim.replicas)
    return tuple(sorted(candidates - set(aim.isr) - set(unclean_shutdown)))


def elect(
    partition: PartitionRegistration,
    replicas: Sequence[int],
    isr: Collection[int],
    elr: Collection[int],
    goal: ElectionGoal,
    rules: PartitionRules,
) -> ElectedLeader:
    """Who leads, NO_LEADER if nobody can. The present leader stays if it may, unless the preferred one is wanted."""

    def is_valid(replica: int) -> bool:
        return (replica in isr or (not isr and replica in elr)) and rules.may_lead(replica)

    candidates = (partition.leader, *replicas)
    if goal is ElectionGoal.PREFERRED:
        candidates = (replicas[0], *candidates)
    for replica in candidates:
        if is_valid(replica):
            return ElectedLeader(replica, is_unclean=False)
    if rules.has_elr and not elr and not isr and len(partition.last_known_elr) == 1:
        last_known_leader = partition.last_known_elr[0]
        if rules.may_lead(last_known_leader):
            return ElectedLeader(last_known_leader, is_unclean=True)
    if goal is ElectionGoal.UNCLEAN:
        for replica in replicas:
            if rules.may_lead(replica):
                return ElectedLeader(replica, is_unclean=True)
    return ElectedLeader(NO_LEADER, is_unclean=False)


def _note_last_known_leader(record: PartitionChangeRecord, partition: PartitionRegistration) -> None:
    """``last_known_elr`` has the last leader of a partition that has none: Kafka keeps nothing else there (4.0 to 4.3)."""
    if record.leader == NO_LEADER and not partition.last_known_elr:
        record.last_known_elr = [partition.leader]
    elif record.leader >= 0 and partition.last_known_elr:
        record.last_known_elr = []


def _set_assignment(
    record: PartitionChangeRecord,
    partition: PartitionRegistration,
    aim: _Aim,
    moved: Mapping[int, bytes],
    rules: PartitionRules,
) -> None:
    if aim.replicas and metadata_version.has_directories(rules.level):
        known = {**dict(zip(partition.replicas, partition.directories, strict=True)), **moved}
        directories = tuple(
            known[replica] if replica in known else rules.default_directory(replica) for replica in aim.replicas
        )
        if directories != partition.directories:
            record.directories = list(directories)
    if aim.replicas and aim.replicas != partition.replicas:
        record.replicas = list(aim.replicas)
    if aim.removing != partition.removing:
        record.removing_replicas = list(aim.removing)
    if aim.adding != partition.adding:
        record.adding_replicas = list(aim.adding)
