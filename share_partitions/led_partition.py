"""A share partition at the leader of its partition: the state in memory, and the writes that store it, one at a time.

Writes go to the store in the order of their changes, so that none is undone by an older one that was late. What is to be written
while a write is on its way goes together in the next one. Whoever changed something is told when it is stored, or why it is not.

Once the store says that there is a later leader or a later state (``is_fenced``), or that it is gone, the partition is of no use
any more: it is to be dropped and read anew. Nothing is written from then on.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.wakeup import Wakeup
from ..share_coordinator.state import SharePartitionKey, ShareStateStore
from . import acknowledgement, share_partition
from .acknowledgement import Acknowledgement
from .delivery import ARCHIVED, Run, painted
from .share_partition import SharePartition, Steps, Terms, Write

logger = logging.getLogger(__name__)

Spawn = Callable[..., None]
"""Starts an async function with its arguments as a task of its own. Raises KafkaError while the broker starts or stops."""

T = TypeVar("T")
_STORED_AT_ONCE = 500
"""So many batches are stored in one step of the loop. Where there are more and a later one fails, the first ones stay stored."""
_FENCED = (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH)
_GONE = (*_FENCED, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
_OF_CLIENTS = {
    **dict.fromkeys(_FENCED, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    **{
        code: code
        for code in (
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.GROUP_ID_NOT_FOUND,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.KAFKA_STORAGE_ERROR,
        )
    },
}
"""What clients are told of an error of the store; of others UNKNOWN_SERVER_ERROR (Kafka's SharePartition.fetchPersisterError)."""


def as_seen_by_members(error: KafkaError) -> KafkaError:
    """An error of the store as members are told of it."""
    return KafkaError(_OF_CLIENTS.get(error.code, ErrorCode.UNKNOWN_SERVER_ERROR), error.message)


class DeliveryEnd(enum.Enum):
    """How a test has a delivery end without its member."""

    RELEASED = "released"
    """As if the member had given the records back: they are delivered again, if they may be."""
    LOCK_EXPIRED = "lock expired"
    """As if it had not acknowledged them in time."""
    ARCHIVED = "archived"
    """As if they were delivered as often as they may be."""


class Outcome:
    """What becomes of one write."""

    __slots__ = ("_wakeup", "error", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self.error: KafkaError | None = None
        self._wakeup: Wakeup | None = None

    def tell(self, error: KafkaError | None) -> None:
        self.is_done, self.error = True, error
        if self._wakeup is not None:
            self._wakeup.set()

    async def wait(self) -> None:
        """Return once it is stored, or the client has gone. Raises KafkaError when it is not. One task waits, once."""
        if not self.is_done:
            self._wakeup = Wakeup()
            await self._wakeup.wait()
        if self.error is not None:
            raise self.error


class LedPartition:
    """One share partition, while this broker leads it."""

    def __init__(
        self,
        key: SharePartitionKey,
        store: ShareStateStore,
        state: SharePartition,
        state_epoch: int,
        leader_epoch: int,
        spawn: Spawn,
        on_change: Callable[[bool], None],
    ) -> None:
        """``on_change`` is called when something may be to be fetched, or it is of no use any more.

        With True where records are their members' again, so that another lock may be the first to end.
        """
        self.key = key
        self.state = state
        self.is_dropped = False
        """Whether it is of no use any more."""
        self.is_writing = False
        """Whether something is to be stored still."""
        self.lock_timeouts = 0
        """How many records were not acknowledged in time."""
        self._store = store
        self._state_epoch = state_epoch
        self._leader_epoch = leader_epoch
        self._spawn = spawn
        self._on_change = on_change
        self._queue: list[tuple[Write, Outcome]] = []

    async def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], terms: Terms, now: float
    ) -> Outcome | None:
        """What a member says of its records; None where nothing is to be stored. Raises KafkaError.

        It waits for turns of others where there is much to do, otherwise not.
        """
        steps = acknowledgement.acknowledge_in_steps(self.state, member_id, acknowledgements, terms, now)
        return self._submit(await _in_turns(steps))

    def release(self, member_id: str, terms: Terms) -> Outcome | None:
        """Release what a member has, whose session is over."""
        return self._submit(share_partition.release(self.state, member_id, terms))

    def expire(self, terms: Terms, now: float) -> None:
        """End the locks whose time is over, or some where they are many: those are the first to end then."""
        write = share_partition.expire(self.state, terms, now, share_partition.STEP)
        if write is not None:
            self.lock_timeouts += sum(batch.last_offset - batch.first_offset + 1 for batch in write.batches)
            self._submit(write)

    def end_deliveries(self, how: DeliveryEnd, offset: int | None, terms: Terms) -> tuple[list[int], Outcome | None]:
        """Have deliveries end, of the record at ``offset`` or of all; their offsets, and what becomes of the write.

        Archived are also records that wait for another delivery. Raises KafkaError INVALID_RECORD_STATE where the record at
        ``offset`` is not in such a state.
        """

        def next_state(run: Run) -> int | None:
            if how is DeliveryEnd.ARCHIVED:
                return ARCHIVED if run.is_held or run.is_available else None
            return run.released(terms.delivery_count_limit) if run.is_held else None

        state = self.state
        first, last = (state.start_offset, state.next_offset - 1) if offset is None else (offset, offset)
        write = share_partition.end_deliveries(state, first, last, next_state)
        batches = () if write is None else write.batches
        offsets = [each for batch in batches for each in range(batch.first_offset, batch.last_offset + 1)]
        if how is DeliveryEnd.LOCK_EXPIRED:
            self.lock_timeouts += len(offsets)
        if offset is not None and not offsets:
            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, f"no member has the record at {offset}")
        return offsets, self._submit(write)

    def drop(self) -> None:
        """It is of no use any more: another broker leads, or the state that is stored is not this one's."""
        self.is_dropped = True
        waiting, self._queue = self._queue, []
        error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the share partition has another leader")
        for _, outcome in waiting:
            outcome.tell(error)
        self._on_change(False)

    def _submit(self, write: Write | None) -> Outcome | None:
        if write is None:
            return None
        outcome = Outcome()
        if self.is_dropped:
            outcome.tell(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the share partition has another leader"))
            return outcome
        self._queue.append((write, outcome))
        if not self.is_writing:
            try:
                self._spawn(self._write_all)
            except KafkaError:
                self.drop()
            else:
                self.is_writing = True
        return outcome

    async def _write_all(self) -> None:
        while not self.is_dropped:
            together, self._queue = self._queue, []
            error = await self._write(together)
            writes = {write.write_id for write, _ in together}
            await _in_turns(share_partition.complete_in_steps(self.state, writes, is_stored=error is None))
            is_over = not self._queue
            self.is_writing = not is_over
            self._tell(together, error)
            if is_over:
                return

    def _tell(self, together: list[tuple[Write, Outcome]], error: KafkaError | None) -> None:
        for _, outcome in together:
            outcome.tell(None if error is None else as_seen_by_members(error))
        if error is not None and error.code in _GONE:
            self.drop()
        else:
            self._on_change(error is not None)

    async def _write(self, together: list[tuple[Write, Outcome]]) -> KafkaError | None:
        batches = together[0][0].batches
        for write, _ in together[1:]:
            batches = painted(batches, write.batches)
        state = self.state
        count = share_partition.delivery_complete_count(state, {write.write_id for write, _ in together})
        epochs = self._state_epoch, self._leader_epoch
        try:
            for first in range(0, len(batches), _STORED_AT_ONCE):
                if first:
                    await trio.lowlevel.checkpoint()
                stored = batches[first : first + _STORED_AT_ONCE]
                await self._store.write(self.key, *epochs, state.start_offset, count, stored)
        except KafkaError as error:
            level = logging.INFO if error.code in _GONE else logging.WARNING
            logger.log(level, "The state of share partition %s was not stored: %s", self.key.coordinator_key(), error)
            return error
        return None


async def _in_turns(steps: Steps[T]) -> T:
    """All steps, with turns of others between them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast("T", end.value)
        await trio.lowlevel.checkpoint()
