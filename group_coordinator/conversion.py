"""The classic protocol on groups of newer protocols (``modern``): permitted operations, and conversion to classic groups.

As Kafka 4.3 does where ``group.consumer.migration.policy`` is ``disabled``:

* A group with members refuses those of the classic protocol (INCONSISTENT_GROUP_PROTOCOL), and any share group does.
* One without members becomes a classic group when a classic member joins; its offsets stay.
* Members of a consumer group that are not heard for a session are removed. Nobody is heard here, so that they all go one
  session after the group was loaded. Only then is the group id free for clients with the classic protocol.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from ..base.errors import ErrorCode, KafkaError
from ..base.wording import counted
from ..replication.coordinator_log import CoordinatorTime, as_seen_by_clients
from ..wire.messages.consumer_group_records import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from ..wire.schema import Message
from .modern import ModernGroup, ModernKind
from .records import CoordinatorRecord
from .shard import GroupCoordinatorShard
from .timers import TimerName

logger = logging.getLogger(__name__)

SESSION_TIMEOUT_MS = 45_000
"""Kafka's default of ``group.consumer.session.timeout.ms``."""
RECORDS_PER_BATCH = 1000


def sessions_timer(group: ModernGroup) -> TimerName:
    """Name of the timer that ends the sessions of the members of a group."""
    return ("modern", group.group_id)


def begin_sessions(shard: GroupCoordinatorShard, now: CoordinatorTime) -> None:
    """The shard has been loaded: the members of consumer groups have a session to be heard in."""
    for group in shard.modern.values():
        if group.kind is ModernKind.CONSUMER and group.members:
            shard.timers.set(sessions_timer(group), now.monotonic_ms + SESSION_TIMEOUT_MS)


def end_sessions(shard: GroupCoordinatorShard, group_id: str, now: CoordinatorTime) -> None:
    """Remove the members of a consumer group, of which none was heard."""
    group = shard.modern.get(group_id)
    if group is None or group.kind is not ModernKind.CONSUMER or not group.members:
        return
    members = counted(len(group.members), "member")
    empty = ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=group.epoch + 1)
    try:
        write_all(shard, [*tombstones(group.member_keys()), CoordinatorRecord(*empty)], now)
    except KafkaError as error:
        logger.warning("Group %s: could not remove its %s: %s", group_id, members, error)
        shard.timers.set(sessions_timer(group), now.monotonic_ms + SESSION_TIMEOUT_MS)
        return
    logger.info(
        "Group %s: removed %s of the consumer protocol (KIP-848), of which nothing was heard for %d s",
        group_id,
        members,
        SESSION_TIMEOUT_MS // 1000,
    )


def make_room(shard: GroupCoordinatorShard, group_id: str, now: CoordinatorTime) -> None:
    """A member of the classic protocol is about to join: remove the group of a newer protocol that has the id, if it may go.

    KafkaError INCONSISTENT_GROUP_PROTOCOL where it stays, and why its records could not be written.
    """
    group = shard.modern.get(group_id)
    if group is None:
        return
    if not group.may_become_classic:
        why = _refusal(group)
        if not group.is_refusal_logged:
            logger.warning("Group %s: a member of the classic protocol cannot join: %s", group_id, why)
            group.is_refusal_logged = True
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, why)
    try:
        write_all(shard, tombstones(group.keys.values()), now)
    except KafkaError as error:
        raise as_seen_by_clients(error) from error
    logger.info("Group %s: the empty %s group is a classic group from now on", group_id, group.kind.value)


def _refusal(group: ModernGroup) -> str:
    if group.kind is ModernKind.SHARE:
        return "it is a share group, and those are not served here; use another group id, or delete the group"
    members = (
        f"it has {counted(len(group.members), 'member')} of the {group.kind.value} protocol, which is not served here"
    )
    if group.kind is ModernKind.STREAMS:
        return f"{members}; use another group id"
    return f"{members}; that ends with their sessions, {SESSION_TIMEOUT_MS // 1000} s after this broker has loaded the group"


def tombstones(keys: Iterable[Message]) -> list[CoordinatorRecord]:
    """The removal of the records with these keys."""
    return [CoordinatorRecord(key, None) for key in keys]


def write_all(shard: GroupCoordinatorShard, records: Sequence[CoordinatorRecord], now: CoordinatorTime) -> None:
    """Write removals, which need not be atomic, in batches that stay below max.message.bytes. Raises KafkaError."""
    for start in range(0, len(records), RECORDS_PER_BATCH):
        shard.write(records[start : start + RECORDS_PER_BATCH], now)
