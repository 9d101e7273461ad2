"""The state of one share partition, and the records that change it. All pure.

A request gives a record, or a ``KafkaError``; ``after`` gives the state after a record, for one that was just written as for one
that is replayed. The rules are those of Kafka's ShareCoordinatorShard.

Epochs: a *state epoch* is set by ``initialize``, which the group's coordinator asks for, a *leader epoch* by ``read``, which the
leader of the partition does first. A request under a lower one than the highest that was ever seen is refused. -1 in a request
stands for none, and is not compared. A write under a higher epoch is taken, and changes none.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ..base.errors import ErrorCode, KafkaError
from ..wire.messages.share_group_state import ShareSnapshotValue, ShareUpdateValue
from .batches import merge
from .records import batches_of, written_batches
from .state import NOT_BEGUN, UNKNOWN_COUNT, ShareState, StateBatch

_ANY_EPOCH = -1
_FIRST_EPOCH = 0
_NO_TIMESTAMP = 0


@dataclasses.dataclass(frozen=True, slots=True)
class ShareGroupOffset:
    """The state of one share partition."""

    snapshot_epoch: int
    """The number of the newest snapshot, from 0 on."""
    state_epoch: int
    leader_epoch: int
    start_offset: int
    batches: tuple[StateBatch, ...]
    delivery_complete_count: int
    created_ms: int
    """Wall time at which the newest snapshot was made of a request, ..."""
    written_ms: int
    """... and at which it was written: a later one where it was only written again."""
    snapshot_offset: int
    """Of the newest snapshot in the log; what is below is not needed for this share partition any more."""
    update_count: int
    """The number of updates since. Kafka goes on counting after a snapshot that came for another reason."""
    highest_state_epoch: int
    highest_leader_epoch: int

    @property
    def is_rewritten(self) -> bool:
        """Whether its newest snapshot was only written again."""
        return self.created_ms != self.written_ms

    def as_read(self) -> ShareState:
        """As its leader reads it."""
        return ShareState(self.state_epoch, self.start_offset, self.batches, UNKNOWN_COUNT)


def after(
    known: ShareGroupOffset | None, value: ShareSnapshotValue | ShareUpdateValue, offset: int
) -> ShareGroupOffset:
    """The state after the record with ``value`` at ``offset``."""
    if isinstance(value, ShareSnapshotValue):
        return _after_snapshot(known, value, offset)
    if known is None:  # a log whose beginning is lost
        known = ShareGroupOffset(
            value.snapshot_epoch,
            _FIRST_EPOCH,
            value.leader_epoch,
            NOT_BEGUN,
            (),
            UNKNOWN_COUNT,
            _NO_TIMESTAMP,
            _NO_TIMESTAMP,
            offset,
            0,
            _ANY_EPOCH,
            value.leader_epoch,
        )
    start_offset = known.start_offset if value.start_offset == NOT_BEGUN else value.start_offset
    return dataclasses.replace(
        known,
        leader_epoch=known.leader_epoch if value.leader_epoch == _ANY_EPOCH else value.leader_epoch,
        start_offset=start_offset,
        batches=merge(known.batches, batches_of(value), start_offset),
        delivery_complete_count=value.delivery_complete_count,
        update_count=known.update_count + 1,
        highest_leader_epoch=max(known.highest_leader_epoch, value.leader_epoch),
    )


def _after_snapshot(known: ShareGroupOffset | None, value: ShareSnapshotValue, offset: int) -> ShareGroupOffset:
    state_epoch, leader_epoch = value.state_epoch, value.leader_epoch
    return ShareGroupOffset(
        value.snapshot_epoch,
        state_epoch,
        leader_epoch,
        value.start_offset,
        merge((), batches_of(value), NOT_BEGUN),
        value.delivery_complete_count,
        value.create_timestamp,
        value.write_timestamp,
        offset,
        0,
        state_epoch if known is None else max(known.highest_state_epoch, state_epoch),
        leader_epoch if known is None else max(known.highest_leader_epoch, leader_epoch),
    )


def initialize(known: ShareGroupOffset | None, state_epoch: int, start_offset: int, now_ms: int) -> ShareSnapshotValue:
    """Begin anew at ``start_offset``. KafkaError FENCED_STATE_EPOCH."""
    if known is not None:
        _check_state_epoch(known, state_epoch)
    return ShareSnapshotValue(
        snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
        state_epoch=state_epoch,
        leader_epoch=_FIRST_EPOCH,
        start_offset=start_offset,
        # Of a partition that nobody has read, the distance to the end is not known.
        delivery_complete_count=UNKNOWN_COUNT if start_offset == NOT_BEGUN else 0,
        create_timestamp=now_ms,
        write_timestamp=now_ms,
    )


def write(
    known: ShareGroupOffset | None,
    state_epoch: int,
    leader_epoch: int,
    change: ShareUpdateValue,
    snapshot_after: int,
    now_ms: int,
) -> ShareSnapshotValue | ShareUpdateValue:
    """The record of a ``change``: an update, but a snapshot once there are ``snapshot_after`` updates since the last one.

    ``change`` has the start offset, the count and the batches only. KafkaError INVALID_REQUEST where nothing was initialized, or
    a batch ends before it begins; FENCED_LEADER_EPOCH, FENCED_STATE_EPOCH.
    """
    if known is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the share partition was not initialized, and cannot be written")
    _check_leader_epoch(known, leader_epoch)
    _check_state_epoch(known, state_epoch)
    if any(batch.first_offset > batch.last_offset for batch in change.state_batches):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a batch ends before it begins")
    return _record(known, known.leader_epoch, change, snapshot_after, now_ms)


def check_read(known: ShareGroupOffset | None, leader_epoch: int) -> ShareGroupOffset:
    """What may be read. KafkaError INVALID_REQUEST where nothing was initialized; FENCED_LEADER_EPOCH."""
    if known is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the share partition was not initialized, and cannot be read")
    _check_leader_epoch(known, leader_epoch)
    return known


def read(
    known: ShareGroupOffset, leader_epoch: int, snapshot_after: int, now_ms: int
) -> ShareSnapshotValue | ShareUpdateValue | None:
    """The record that a read leaves: of the leader epoch, if that is new."""
    if leader_epoch in (_ANY_EPOCH, known.highest_leader_epoch):
        return None
    change = ShareUpdateValue(start_offset=known.start_offset, delivery_complete_count=known.delivery_complete_count)
    return _record(known, leader_epoch, change, snapshot_after, now_ms)


def rewritten(known: ShareGroupOffset, now_ms: int) -> ShareSnapshotValue:
    """The state as a snapshot, for a log that is to begin later."""
    return ShareSnapshotValue(
        snapshot_epoch=known.snapshot_epoch + 1,
        state_epoch=known.state_epoch,
        leader_epoch=known.leader_epoch,
        start_offset=known.start_offset,
        delivery_complete_count=known.delivery_complete_count,
        create_timestamp=known.created_ms,
        write_timestamp=now_ms,
        state_batches=written_batches(known.batches),
    )


def summary(known: ShareGroupOffset | None) -> tuple[int, int, int, int]:
    """State epoch, leader epoch, start offset and delivery complete count."""
    if known is None:
        return _FIRST_EPOCH, _FIRST_EPOCH, NOT_BEGUN, UNKNOWN_COUNT
    return known.state_epoch, known.leader_epoch, known.start_offset, known.delivery_complete_count


def change(start_offset: int, delivery_complete_count: int, batches: Sequence[StateBatch]) -> ShareUpdateValue:
    """What ``write`` takes."""
    return ShareUpdateValue(
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=written_batches(batches),
    )


def _record(
    known: ShareGroupOffset, leader_epoch: int, change: ShareUpdateValue, snapshot_after: int, now_ms: int
) -> ShareSnapshotValue | ShareUpdateValue:
    if known.update_count < snapshot_after:
        return ShareUpdateValue(
            snapshot_epoch=known.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=change.start_offset,
            delivery_complete_count=change.delivery_complete_count,
            state_batches=written_batches(merge((), batches_of(change), change.start_offset)),
        )
    start_offset = known.start_offset if change.start_offset == NOT_BEGUN else change.start_offset
    return ShareSnapshotValue(
        snapshot_epoch=known.snapshot_epoch + 1,
        state_epoch=known.state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=change.delivery_complete_count,
        create_timestamp=now_ms,
        write_timestamp=now_ms,
        state_batches=written_batches(merge(known.batches, batches_of(change), start_offset)),
    )


def _check_leader_epoch(known: ShareGroupOffset, leader_epoch: int) -> None:
    if leader_epoch != _ANY_EPOCH and leader_epoch < known.highest_leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH, f"leader epoch {leader_epoch} is older than {known.highest_leader_epoch}"
        )


def _check_state_epoch(known: ShareGroupOffset, state_epoch: int) -> None:
    if state_epoch != _ANY_EPOCH and state_epoch < known.highest_state_epoch:
        raise KafkaError(
            ErrorCode.FENCED_STATE_EPOCH, f"state epoch {state_epoch} is older than {known.highest_state_epoch}"
        )
