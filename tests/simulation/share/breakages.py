"""Rules of share partitions and of their coordinators (KIP-932), each broken on purpose: the simulation must detect it.

A breakage disables one rule of the product by replacing a function. ``test_share_simulation`` runs seeds with each until one
detects it, and so does ``make simulate SHARE=1 BREAK=anybody_acknowledges SEEDS=300``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.share_coordinator import share_group_offset
from ottla.share_coordinator.coordinator import ShareCoordinator
from ottla.share_coordinator.shard import ShareCoordinatorShard
from ottla.share_partitions import acknowledgement, acquisition, led_partition, manager, share_fetch, share_partition
from ottla.share_partitions.delivery import ACQUIRED, ARCHIVED, AVAILABLE, InFlightBatch, Run, painted
from ottla.share_partitions.led_partition import LedPartition, Outcome
from ottla.share_partitions.manager import SharePartitionEntry, SharePartitions
from ottla.share_partitions.share_partition import SharePartition
from ottla.wire.messages.share_group_state import ShareUpdateValue

from .coordinators import StateLog

ShareBreakage = Callable[[pytest.MonkeyPatch], None]


def _nothing(*arguments: object, **fields: object) -> None:
    pass


# --- deliveries -------------------------------------------------------------------------------------------------------


def deliveries_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    """A record that is delivered again has the count of before."""

    def acquired(self: Any, run: Run) -> Iterable[Run]:
        if not run.is_available:
            return (run,)
        count = max(1, run.delivery_count)
        self._note(run.first_offset, run.last_offset, count)
        return (self._run(run.first_offset, run.last_offset, count),)

    patch.setattr(acquisition._Acquisition, "_acquired", acquired)


def deliveries_have_no_limit(patch: pytest.MonkeyPatch) -> None:
    """A record is available again, however often it was delivered."""
    patch.setattr(Run, "released", lambda self, limit: AVAILABLE)


def last_deliveries_take_others_along(patch: pytest.MonkeyPatch) -> None:
    """A record near the limit is delivered with the others of its batch."""
    patch.setattr(acquisition, "_narrow_from", lambda limit: 100)
    patch.setattr(acquisition, "_LEAST_NARROWED", 100)


def acquired_records_are_given_again(patch: pytest.MonkeyPatch) -> None:
    """A record that a member has is given to another one."""
    patch.setattr(Run, "is_available", property(lambda self: self.state in (AVAILABLE, ACQUIRED)))


def the_window_has_no_end(patch: pytest.MonkeyPatch) -> None:
    """Any number of records is in flight."""
    patch.setattr(
        acquisition,
        "_room",
        lambda partition, found, wanted, terms: (wanted.max_records, found.batches[-1][1]),
    )
    patch.setattr(share_partition, "can_acquire", lambda partition, terms: True)
    patch.setattr(share_fetch.share_partition, "can_acquire", lambda partition, terms: True)


def aborted_records_are_delivered(patch: pytest.MonkeyPatch) -> None:
    """Who reads committed records gets those of aborted transactions."""
    patch.setattr(acquisition, "_archive_aborted", lambda partition, ranges, aborted: ranges)


def limits_are_not_exact(patch: pytest.MonkeyPatch) -> None:
    """In record_limit mode the last batch is given whole."""
    take = acquisition.acquire

    def inexact(partition: Any, member_id: str, found: Any, wanted: Any, *others: Any) -> Any:
        return take(partition, member_id, found, wanted._replace(is_exact=False), *others)

    patch.setattr(acquisition, "acquire", inexact)


# --- what members say -------------------------------------------------------------------------------------------------


def anybody_acknowledges(patch: pytest.MonkeyPatch) -> None:
    """A member may acknowledge what another one has."""
    end = acknowledgement._Said._end

    def of_anybody(self: Any, run: Run, acknowledgement: Any) -> Any:
        return end(self, run._replace(member_id=self._member_id), acknowledgement)

    patch.setattr(acknowledgement._Said, "_end", of_anybody)


def acknowledged_records_are_available(patch: pytest.MonkeyPatch) -> None:
    """Once the write is done a record is available again."""
    patch.setattr(Run, "settled", lambda self, state: Run(*self[:2], AVAILABLE, self.delivery_count))


def half_a_request_counts(patch: pytest.MonkeyPatch) -> None:
    """What came before a mistake in a request has been taken."""
    acknowledge = acknowledgement.acknowledge_in_steps

    def one_by_one(partition: Any, member_id: str, acknowledgements: Any, *others: Any) -> Any:
        write = None
        for each in acknowledgements:
            made = yield from acknowledge(partition, member_id, [each], *others)
            if made is not None and write is not None:
                made = made._replace(batches=painted(write.batches, made.batches))
            write = made or write
        return write

    patch.setattr(acknowledgement, "acknowledge_in_steps", one_by_one)


def members_are_told_before_the_write(patch: pytest.MonkeyPatch) -> None:
    """An acknowledgement is confirmed at once."""
    submit = LedPartition._submit

    def confirmed(self: LedPartition, write: Any) -> Outcome | None:
        outcome = submit(self, write)
        if outcome is not None:
            outcome.tell(None)
        return outcome

    patch.setattr(LedPartition, "_submit", confirmed)
    patch.setattr(LedPartition, "_tell", _tell_nobody)


def _tell_nobody(self: LedPartition, together: Any, error: KafkaError | None) -> None:
    self._on_change(error is not None)


def renewals_do_nothing(patch: pytest.MonkeyPatch) -> None:
    """A lock ends at its time, although it was renewed."""
    part = acknowledgement._Said._part
    patch.setattr(
        acknowledgement._Said,
        "_part",
        lambda self, run, kind: run if kind == acknowledgement.RENEW else part(self, run, kind),
    )


def locks_never_end(patch: pytest.MonkeyPatch) -> None:
    """A record that nobody speaks of is never available again."""
    patch.setattr(SharePartitions, "schedule", _nothing)


def failed_releases_stay(patch: pytest.MonkeyPatch) -> None:
    """After a failed write nothing becomes of its records."""
    complete = share_partition.complete_in_steps

    def if_stored(partition: SharePartition, writes: Any, *, is_stored: bool) -> Any:
        if is_stored:
            yield from complete(partition, writes, is_stored=True)

    patch.setattr(share_partition, "complete_in_steps", if_stored)


# --- the start offset, and other leaders ------------------------------------------------------------------------------


def start_moves_over_everything(patch: pytest.MonkeyPatch) -> None:
    """The start offset moves over records that are to be delivered again."""
    patch.setattr(Run, "is_terminal", property(lambda self: not self.is_held))


def start_moves_before_the_write(patch: pytest.MonkeyPatch) -> None:
    """The start offset moves over records whose acknowledgement is not stored yet."""
    patch.setattr(Run, "is_terminal", property(lambda self: self.state in (2, 4) or self.next_state in (2, 4)))


def unstored_records_are_done(patch: pytest.MonkeyPatch) -> None:
    """A new leader takes records between stored batches for acknowledged."""
    load = share_partition.load

    def without_gaps(state: Any, start_offset: int) -> SharePartition:
        partition = load(state, start_offset)
        stored = {each.first_offset for each in state.batches}
        for index, batch in enumerate(partition.batches):
            if batch.first_offset not in stored and batch.runs[0].delivery_count == 0:
                partition.batches[index] = InFlightBatch((batch.runs[0].settled(ARCHIVED),), batch.size)
        share_partition.advance_start(partition)
        return partition

    patch.setattr(share_partition, "load", without_gaps)


def first_start_is_not_stored(patch: pytest.MonkeyPatch) -> None:
    """Each leader of a group that has acknowledged nothing finds its own start offset."""
    load = SharePartitions._load

    async def unstored(self: SharePartitions, entry: SharePartitionEntry) -> None:
        store: Any = self._store
        write = store.write

        async def unless_first(
            key: Any, state_epoch: int, leader_epoch: int, start: int, count: int, batches: Any
        ) -> None:
            if batches:
                await write(key, state_epoch, leader_epoch, start, count, batches)

        self._store = _Replaced(store, unless_first)  # type: ignore[assignment]
        await load(self, entry)

    patch.setattr(SharePartitions, "_load", unstored)


class _Replaced:
    """A store with another ``write``."""

    def __init__(self, store: Any, write: Any) -> None:
        self.read, self.write = store.read, write


def fenced_leaders_go_on(patch: pytest.MonkeyPatch) -> None:
    """A leader that is told of a later one takes its writes for stored."""
    write = LedPartition._write

    async def unless_fenced(self: LedPartition, together: Any) -> KafkaError | None:
        error = await write(self, together)
        return None if error is not None and error.code == ErrorCode.FENCED_LEADER_EPOCH else error

    patch.setattr(LedPartition, "_write", unless_fenced)


def writes_overtake_each_other(patch: pytest.MonkeyPatch) -> None:
    """Each write is sent at once."""

    def at_once(self: LedPartition, write: Any) -> Outcome | None:
        if write is None:
            return None
        outcome = Outcome()

        async def store() -> None:
            error = await self._write([(write, outcome)])
            share_partition.complete(self.state, {write.write_id}, is_stored=error is None)
            self._tell([(write, outcome)], error)

        self._spawn(store)
        return outcome

    patch.setattr(LedPartition, "_submit", at_once)


def older_writes_win(patch: pytest.MonkeyPatch) -> None:
    """Where writes that go together overlap the older one decides."""

    def reversed_(older: Sequence[Any], newer: Sequence[Any]) -> tuple[Any, ...]:
        return painted(newer, older)

    patch.setattr(led_partition, "painted", reversed_)


def the_start_of_the_log_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """Records that the log does not have any more are looked for."""
    patch.setattr(share_fetch.share_partition, "log_start_moved", _nothing)


# --- waiting ----------------------------------------------------------------------------------------------------------


def released_records_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    """Fetches are not told of what happens to a share partition."""

    def changed(self: SharePartitions, entry: SharePartitionEntry, may_end_sooner: bool) -> None:
        wake = entry.wake
        entry.__class__.wake = _nothing  # type: ignore[method-assign]
        try:
            told(self, entry, may_end_sooner)
        finally:
            entry.__class__.wake = wake.__func__  # type: ignore[attr-defined,method-assign]

    told = SharePartitions._changed
    patch.setattr(SharePartitions, "_changed", changed)


def loaded_states_wake_nobody(patch: pytest.MonkeyPatch) -> None:
    """Fetches are not told when a share partition is loaded."""
    patch.setattr(manager.SharePartitionEntry, "wake_all", _nothing)


# --- the share coordinator --------------------------------------------------------------------------------------------


def answers_do_not_wait_for_the_watermark(patch: pytest.MonkeyPatch) -> None:
    """The coordinator answers before its record is committed."""
    patch.setattr(StateLog, "high_watermark", lambda self, partition: self.end)


def state_epochs_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    """A leader writes on after the group has begun anew."""
    patch.setattr(share_group_offset, "_check_state_epoch", _nothing)


def leader_epochs_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    """A leader reads and writes after a later one has read."""
    patch.setattr(share_group_offset, "_check_leader_epoch", _nothing)


def snapshots_forget_a_batch(patch: pytest.MonkeyPatch) -> None:
    """A snapshot has all batches but the last, if there are several."""
    after_snapshot = share_group_offset._after_snapshot

    def shortened(known: Any, value: Any, offset: int) -> Any:
        made = after_snapshot(known, value, offset)
        return dataclasses.replace(made, batches=made.batches[:1])

    patch.setattr(share_group_offset, "_after_snapshot", shortened)


def pruning_deletes_what_is_needed(patch: pytest.MonkeyPatch) -> None:
    """The log begins at the newest snapshot of all, not at the oldest that a share partition needs."""

    async def prune(self: ShareCoordinator) -> None:
        for shard in self._shards:
            newest = max((each.snapshot_offset for each in shard.share_partitions.values()), default=0)
            if newest <= self._log.high_watermark(shard.partition):
                self._log.delete_records(shard.partition, newest)  # type: ignore[attr-defined]

    patch.setattr(ShareCoordinator, "prune", prune)


def uncommitted_snapshots_count(patch: pytest.MonkeyPatch) -> None:
    """Records are deleted below a snapshot that is not committed."""

    async def prune(self: ShareCoordinator) -> None:
        for shard in self._shards:
            needed = min((each.snapshot_offset for each in shard.share_partitions.values()), default=0)
            # What is not committed cannot be deleted; the snapshot itself is one record after it.
            needed = min(needed, self._log.high_watermark(shard.partition))
            self._log.delete_records(shard.partition, needed)  # type: ignore[attr-defined]

    patch.setattr(ShareCoordinator, "prune", prune)


def replay_skips_updates(patch: pytest.MonkeyPatch) -> None:
    """Whoever loads the log takes only its snapshots."""
    load = ShareCoordinatorShard.load

    def snapshots_only(self: ShareCoordinatorShard, batch: Any, skipped: Any) -> Iterator[None]:
        replay = self._replay
        self._replay = lambda record, offset: (  # type: ignore[method-assign]
            None if isinstance(record.value, ShareUpdateValue) else replay(record, offset)
        )
        yield from load(self, batch, skipped)
        del self._replay

    patch.setattr(ShareCoordinatorShard, "load", snapshots_only)


BREAKAGES: dict[str, ShareBreakage] = {
    function.__name__: function
    for function in (
        deliveries_are_not_counted,
        deliveries_have_no_limit,
        last_deliveries_take_others_along,
        acquired_records_are_given_again,
        the_window_has_no_end,
        aborted_records_are_delivered,
        limits_are_not_exact,
        anybody_acknowledges,
        acknowledged_records_are_available,
        half_a_request_counts,
        members_are_told_before_the_write,
        renewals_do_nothing,
        locks_never_end,
        failed_releases_stay,
        start_moves_over_everything,
        start_moves_before_the_write,
        unstored_records_are_done,
        first_start_is_not_stored,
        fenced_leaders_go_on,
        writes_overtake_each_other,
        older_writes_win,
        the_start_of_the_log_is_ignored,
        released_records_wake_nobody,
        loaded_states_wake_nobody,
        answers_do_not_wait_for_the_watermark,
        state_epochs_are_not_checked,
        leader_epochs_are_not_compared,
        snapshots_forget_a_batch,
        pruning_deletes_what_is_needed,
        uncommitted_snapshots_count,
        replay_skips_updates,
    )
}
