"""The share partitions of a broker: those of the partitions that it leads, as the groups that fetch read them.

A share partition is loaded by the first fetch of it: the state comes from the store, and where the group has not begun, the start
offset by its ``share.auto.offset.reset``. One that depends on the time is stored before anything is delivered, otherwise than in
Kafka: a later leader would skip what nobody has acknowledged. A share partition lives in an *entry*, which is dropped

- when this broker does not lead the partition any more, or the partition is gone,
- when the store knows a later leader or state,
- when no session of the group is left here: what its records are to be is stored first. So offsets that an administrator sets for
  a group without members hold from its next fetch on.

Fetches that wait are woken by what happens to a share partition (``watch``): it was loaded, or records were released, their locks
have ended, the start offset has moved. Those that wait for data are woken by the partition itself.

Locks end by one clock for all (``run``).
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import trio

from ..base.errors import ErrorCode, KafkaError
from ..replication.leader import LeaderRole
from ..replication.partition import Partition
from ..share_coordinator.state import NOT_BEGUN, SharePartitionKey, ShareStateStore
from . import share_partition
from .acknowledgement import Acknowledgement
from .led_partition import DeliveryEnd, LedPartition, Outcome, as_seen_by_members
from .share_partition import Terms

FindPartition = Callable[[bytes, int], Partition]
"""Takes a topic's id and a partition's number. Raises KafkaError where this broker has no such partition."""
TermsOf = Callable[[str], Terms]
StartOf = Callable[[str, Partition], Awaitable["GroupStart"]]
"""Takes a group's id; returns where it begins in a partition. Raises KafkaError."""


class GroupStart(NamedTuple):
    """Where a group begins."""

    offset: int
    is_lasting: bool
    """Whether a later leader would find the same, or what is left of it."""


class Watcher(Protocol):
    """What waits for a change of a share partition."""

    def wake(self, entry: SharePartitionEntry) -> None:
        """It has changed. Nothing more is told."""
        ...


class SharePartitionEntry:
    """A share partition, from the moment when somebody wants it. It waits for data in the partition as a ``FetchWatch``.

    When there may be something to fetch, one of those that wait is told. It tells the next one if it has taken something, or if
    it does not look: so a record does not wake all members of a large group.
    """

    __slots__ = ("_watchers", "error", "is_retiring", "key", "led", "lock_end", "partition", "role")

    def __init__(self, key: SharePartitionKey, partition: Partition, role: LeaderRole) -> None:
        self.key = key
        self.partition = partition
        self.role = role
        """The leadership during which it holds."""
        self.led: LedPartition | None = None
        """None until it is loaded."""
        self.error: KafkaError | None = None
        """Why it could not be loaded."""
        self.is_retiring = False
        """Whether it is dropped once what happened to it is stored; nothing is delivered until then."""
        self.lock_end = math.inf
        """When its locks are looked at next."""
        self._watchers: dict[Watcher, None] = {}

    @property
    def is_led(self) -> bool:
        """Whether this broker leads as it did when the entry was made."""
        return self.partition.leader is self.role and self.partition.topic_id == self.key.topic_id

    def watch(self, watcher: Watcher) -> None:
        """Tell ``watcher`` once, after the others that wait."""
        self._watchers[watcher] = None
        self.partition.fetches.consumers.add(self)

    def leave(self, watcher: Watcher) -> None:
        """``watcher`` waits no more."""
        self._watchers.pop(watcher, None)
        if not self._watchers:
            self.partition.fetches.consumers.discard(self)

    def wake(self) -> None:
        """Something may be to be fetched: tell one that waits."""
        for watcher in self._watchers:
            del self._watchers[watcher]
            watcher.wake(self)
            return

    def wake_all(self) -> None:
        """It is loaded, or of no use any more."""
        watchers, self._watchers = self._watchers, {}
        for watcher in watchers:
            watcher.wake(self)

    # --- as a FetchWatch ----------------------------------------------------------------------------------------------

    @property
    def owner(self) -> object:
        return self

    @property
    def is_waiting(self) -> bool:
        return False

    @property
    def reads_committed(self) -> bool:
        return False

    @property
    def uncounted(self) -> int:
        return 0

    def on_change(self, visible: int) -> bool:
        self.wake()
        return bool(self._watchers)

    def on_end(self) -> None:
        self.wake_all()


class SharePartitions:
    """See the module."""

    def __init__(self, find: FindPartition, store: ShareStateStore, terms_of: TermsOf, start_of: StartOf) -> None:
        self.terms_of = terms_of
        self.acknowledged: Counter[int] = Counter()
        """How many records members have said this type of."""
        self._find = find
        self._store = store
        self._start_of = start_of
        self._entries: dict[SharePartitionKey, SharePartitionEntry] = {}
        self._groups: dict[str, dict[SharePartitionEntry, None]] = {}
        self._heap: list[tuple[float, int, SharePartitionEntry]] = []
        self._numbers = itertools.count()
        self._sleep = trio.CancelScope()
        self._nursery: trio.Nursery | None = None

    async def run(self) -> None:
        """End locks when their time is over, until cancelled; states are written by tasks of this one."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await self._end_locks_in_time()
            finally:
                self._nursery = None

    async def _end_locks_in_time(self) -> None:
        while True:
            self._end_locks(trio.current_time())
            self._sleep = trio.CancelScope(deadline=self._heap[0][0] if self._heap else math.inf)
            with self._sleep:
                await trio.sleep_forever()

    # --- entries ------------------------------------------------------------------------------------------------------

    def open(self, key: SharePartitionKey) -> SharePartitionEntry:
        """The entry of a share partition, which may still be loaded. Raises KafkaError where this broker does not lead."""
        entry = self._entries.get(key)
        if entry is not None and not entry.is_led:
            self._drop(entry)
            entry = None
        if entry is None:
            partition = self._find(key.topic_id, key.partition)
            partition.check_leader()
            assert partition.leader is not None
            entry = self._entries[key] = SharePartitionEntry(key, partition, partition.leader)
            self._groups.setdefault(key.group_id, {})[entry] = None
            try:
                self._spawn(self._load, entry)
            except KafkaError:
                self._drop(entry)
                raise
        return entry

    def find(self, key: SharePartitionKey) -> LedPartition:
        """A share partition that is loaded. Raises KafkaError, also where nobody has fetched it from here yet."""
        entry = self._entries.get(key)
        if entry is None or not entry.is_led:
            self._find(key.topic_id, key.partition).check_leader()
        if entry is None or entry.led is None or not entry.is_led:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the share partition was not fetched from here")
        return entry.led

    @property
    def entries(self) -> Iterator[SharePartitionEntry]:
        """All of them, for metrics."""
        return iter(self._entries.values())

    def of_group(self, group_id: str) -> list[SharePartitionEntry]:
        """Those of one group."""
        return list(self._groups.get(group_id, ()))

    def _spawn(self, function: Callable[..., Awaitable[None]], *arguments: object) -> None:
        if self._nursery is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the broker is starting or stopping")
        self._nursery.start_soon(function, *arguments)

    async def _load(self, entry: SharePartitionEntry) -> None:
        key, partition = entry.key, entry.partition
        try:
            leader_epoch = partition.leader_epoch
            stored = await self._store.read(key, leader_epoch)
            start_offset = stored.start_offset
            if start_offset == NOT_BEGUN:
                start_offset, is_lasting = await self._start_of(key.group_id, partition)
                if not is_lasting:
                    await self._store_start(key, stored.state_epoch, leader_epoch, start_offset)
            state = share_partition.load(stored, start_offset)
        except KafkaError as error:
            entry.error = as_seen_by_members(error)
            self._drop(entry)
            return
        epochs = stored.state_epoch, leader_epoch
        entry.led = LedPartition(key, self._store, state, *epochs, self._spawn, functools.partial(self._changed, entry))
        if entry.is_retiring or not entry.is_led:
            self._drop(entry)
        entry.wake_all()

    async def _store_start(
        self, key: SharePartitionKey, state_epoch: int, leader_epoch: int, start_offset: int
    ) -> None:
        """Store where a group begins. Raises KafkaError."""
        try:
            await self._store.write(key, state_epoch, leader_epoch, start_offset, 0, ())
        except KafkaError as error:
            # Nobody has joined the group, whose state is made then. As in Kafka records can be fetched, and not acknowledged.
            if error.code != ErrorCode.INVALID_REQUEST:
                raise

    def _drop(self, entry: SharePartitionEntry) -> None:
        """Forget an entry: who wants it next gets a new one."""
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
            group = self._groups[entry.key.group_id]
            del group[entry]
            if not group:
                del self._groups[entry.key.group_id]
        if entry.led is not None and not entry.led.is_dropped:
            entry.led.drop()
        entry.wake_all()

    def _changed(self, entry: SharePartitionEntry, may_end_sooner: bool) -> None:
        """Something has happened to a share partition that is loaded, and may be locks that end sooner than those known."""
        led = entry.led
        assert led is not None
        if led.is_dropped or not entry.is_led or (entry.is_retiring and not led.is_writing):
            self._drop(entry)
            return
        if may_end_sooner:
            lock_end = share_partition.lock_end(led.state)
            if lock_end is not None:
                self.schedule(entry, lock_end)
        entry.wake()

    # --- locks --------------------------------------------------------------------------------------------------------

    def schedule(self, entry: SharePartitionEntry, lock_end: float) -> None:
        """Look at the locks of a share partition at ``lock_end``, if not before."""
        if lock_end >= entry.lock_end:
            return
        entry.lock_end = lock_end
        heapq.heappush(self._heap, (lock_end, next(self._numbers), entry))
        self._sleep.deadline = min(self._sleep.deadline, lock_end)

    def _end_locks(self, now: float) -> None:
        for _ in range(len(self._heap)):
            if self._heap[0][0] > now:
                break
            lock_end, _, entry = heapq.heappop(self._heap)
            if lock_end != entry.lock_end:
                continue  # it was to be looked at before
            entry.lock_end = math.inf
            led = entry.led
            if led is None or led.is_dropped:
                continue
            led.expire(self.terms_of(entry.key.group_id), now)
            self._changed(entry, may_end_sooner=True)

    # --- members ------------------------------------------------------------------------------------------------------

    async def acknowledge(
        self, key: SharePartitionKey, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> Outcome | None:
        """What a member says of its records in one share partition; None where nothing is to be stored. Raises KafkaError."""
        led = self.find(key)
        outcome = await led.acknowledge(member_id, acknowledgements, self.terms_of(key.group_id), trio.current_time())
        for first, last, types in acknowledgements:
            if len(types) == 1:
                self.acknowledged[types[0]] += last - first + 1
            else:
                self.acknowledged.update(types)
        return outcome

    def end_deliveries(
        self, key: SharePartitionKey, how: DeliveryEnd, offset: int | None
    ) -> tuple[list[int], Outcome | None]:
        """Have deliveries end without their members, as a test wishes; see ``LedPartition``. Raises KafkaError."""
        led = self.find(key)
        offsets, outcome = led.end_deliveries(how, offset, self.terms_of(key.group_id))
        if offsets:
            self._changed(self._entries[key], may_end_sooner=False)
        return offsets, outcome

    def release(self, group_id: str, member_id: str) -> list[Outcome]:
        """Release all that a member has here, as its session is over."""
        terms = self.terms_of(group_id)
        outcomes = []
        for entry in list(self._groups.get(group_id, ())):
            if entry.led is not None and not entry.led.is_dropped:
                outcome = entry.led.release(member_id, terms)
                if outcome is not None:
                    outcomes.append(outcome)
        return outcomes

    def retire(self, group_id: str) -> None:
        """No session of the group is left: drop its share partitions, once what happened to them is stored."""
        for entry in list(self._groups.get(group_id, ())):
            entry.is_retiring = True
            if entry.led is not None:
                self._changed(entry, may_end_sooner=False)
