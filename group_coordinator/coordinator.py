"""The group coordinator of one broker: its shards, who waits on them, and the loops that drive their timers.

A *shard* (``shard.py``) is one partition of ``__consumer_offsets`` that this broker leads. It comes by ``load`` and goes
whole by ``unload``: whoever waits is told NOT_COORDINATOR, and another broker replays the same records. While it loads,
requests are told COORDINATOR_LOAD_IN_PROGRESS.

Every answer, of reads too, waits until the high watermark has passed the last record it depends on; otherwise a client
could see what a change of leader takes back.

Timers never fire straight after the loop stood still: nobody could be heard meanwhile. The timer loop wakes at least once
a second while timers run; when it comes more than 100 ms late, that much is granted to every timer.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError, ProtocolError
from ..base.seams import Clock
from ..wire.messages.delete_groups import DeletableGroupResult
from ..wire.messages.describe_groups import DescribedGroup
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ..wire.messages.list_groups import ListedGroup
from ..wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ..wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ..wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..wire.records import iter_batches
from . import expiry, membership, offsets, rebalance
from .coordinator_log import CoordinatorLog
from .describe import describe, list_groups
from .membership import Client
from .settings import GroupSettings
from .shard import Moment, Shard, as_seen_by_clients
from .waiter import Waiter

logger = logging.getLogger(__name__)

Flush = Callable[[], Awaitable[None]]
"""Sends what the connection has answered so far; called before any wait."""

TICK_MS = 1000
STALL_MS = 100
_BATCHES_PER_TURN = 16
_GROUPS_PER_TURN = 64

T = TypeVar("T")


def java_hash(text: str) -> int:
    """``String.hashCode`` of Java: over UTF-16 units, an int32."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(data), 2):
        value = (31 * value + (data[position] << 8) + data[position + 1]) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


class GroupCoordinator:
    """Groups of the classic protocol on the partitions this broker leads.

    Every request method raises KafkaError for what concerns the request as a whole.
    """

    def __init__(self, log: CoordinatorLog, settings: GroupSettings, clock: Clock, random: random.Random) -> None:
        self.settings = settings
        self._log = log
        self._clock = clock
        self._random = random
        self._shards: dict[int, Shard] = {}
        self._loading: dict[int, int] = {}
        self._loaded = trio.Event()
        self._sleeps_until_ms = -math.inf
        self._wake = trio.Event()

    # Partitions

    def partition_for(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that keeps the group. The setting counts only until the topic exists."""
        count = self._log.partition_count() or self.settings.offsets_topic_num_partitions
        return (java_hash(group_id) & 0x7FFFFFFF) % count

    async def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from now on: replay its log, then serve its groups."""
        known = self._shards.get(partition)
        known_epoch = self._loading.get(partition, -1) if known is None else known.leader_epoch
        if known_epoch >= leader_epoch:
            return
        self.unload(partition)
        self._loading[partition] = leader_epoch
        shard = Shard(partition, leader_epoch, self._log, self.settings, self._random)
        try:
            await self._replay(shard)
        except (KafkaError, ProtocolError) as error:
            logger.error("Group coordinator: partition %d cannot be loaded: %s", partition, error)
            if self._loading.get(partition) == leader_epoch:
                del self._loading[partition]
            return
        if self._loading.get(partition) != leader_epoch:
            return
        del self._loading[partition]
        self._shards[partition] = shard
        self._loaded.set()
        self._loaded = trio.Event()
        rebalance.resume(shard, self._now())
        self._timers_moved(shard)
        if shard.groups:
            logger.debug("Group coordinator: partition %d has %d groups", partition, len(shard.groups))

    async def _replay(self, shard: Shard) -> None:
        count = 0
        async for chunk in self._log.batches(shard.partition):
            for batch in iter_batches(chunk):
                shard.load(batch)
                count += 1
                if count % _BATCHES_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()
            if self._loading.get(shard.partition) != shard.leader_epoch:
                return

    async def wait_loaded(self, partition: int) -> None:
        """Return once the groups of the partition are served here."""
        while partition not in self._shards:
            await self._loaded.wait()

    def unload(self, partition: int) -> None:
        """This broker does not lead the partition any more; nothing happens when it did not."""
        self._loading.pop(partition, None)
        shard = self._shards.pop(partition, None)
        if shard is not None:
            rebalance.release(shard)

    def stop(self) -> None:
        """Let go of every partition, so that nobody goes on waiting."""
        for partition in [*self._shards, *self._loading]:
            self.unload(partition)

    def _shard(self, group_id: str) -> Shard:
        # Offsets may be committed, read and deleted for the empty group id, which very old clients did.
        partition = self.partition_for(group_id)
        shard = self._shards.get(partition)
        if shard is None:
            loading = partition in self._loading
            code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR
            raise KafkaError(code, f"group {group_id} belongs to partition {partition}")
        return shard

    def _shard_of_member(self, group_id: str) -> Shard:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        return self._shard(group_id)

    # Waiting

    def _now(self) -> Moment:
        return Moment(self._clock.now_ms(), trio.current_time() * 1000)

    async def _committed(self, shard: Shard, offset: int, flush: Flush) -> None:
        """Return when everything below ``offset`` is committed."""
        try:
            if self._log.high_watermark(shard.partition) < offset:
                await flush()
                with trio.fail_after(self.settings.offsets_commit_timeout_ms / 1000):
                    await self._log.wait_committed(shard.partition, offset)
        except trio.TooSlowError:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"offset {offset} is not committed yet") from None
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        if self._shards.get(shard.partition) is not shard:
            raise KafkaError(ErrorCode.NOT_COORDINATOR, "the partition has moved")

    async def _answer(self, shard: Shard, waiter: Waiter[T], flush: Flush, abandon: Callable[[], None]) -> T:
        self._timers_moved(shard)
        try:
            if waiter.answer is None:
                await flush()
            response = await waiter.wait()
        finally:
            if waiter.answer is None and self._shards.get(shard.partition) is shard:
                abandon()
                self._timers_moved(shard)
        await self._committed(shard, waiter.offset, flush)
        return response

    # Membership

    async def join_group(self, request: JoinGroupRequest, client: Client, flush: Flush) -> JoinGroupResponse:
        """JoinGroup; returns when the round of joining is over."""
        shard = self._shard_of_member(request.group_id)
        settings = self.settings
        timeout_ms = request.session_timeout_ms
        if not settings.group_min_session_timeout_ms <= timeout_ms <= settings.group_max_session_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, f"a session of {timeout_ms} ms")
        waiter = membership.join(shard, request, client, self._now())
        return await self._answer(
            shard,
            waiter,
            flush,
            lambda: membership.abandon_join(shard, request.group_id, waiter, client, self._now()),
        )

    async def sync_group(self, request: SyncGroupRequest, flush: Flush) -> SyncGroupResponse:
        """SyncGroup; returns when the leader has sent the assignments."""
        shard = self._shard_of_member(request.group_id)
        waiter = membership.sync(shard, request, self._now())
        return await self._answer(
            shard, waiter, flush, lambda: membership.abandon_sync(shard, request.group_id, waiter, self._now())
        )

    async def heartbeat(self, request: HeartbeatRequest, flush: Flush) -> HeartbeatResponse:
        """Heartbeat."""
        try:
            shard = self._shard_of_member(request.group_id)
        except KafkaError as error:
            if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                # The member is about to be known again; sessions begin anew after loading.
                return HeartbeatResponse()
            raise
        offset = shard.depends_on(request.group_id)
        response = membership.heartbeat(shard, request, self._now())
        await self._committed(shard, offset, flush)
        return response

    async def leave_group(self, request: LeaveGroupRequest, flush: Flush) -> LeaveGroupResponse:
        """LeaveGroup of ``request.members``."""
        shard = self._shard_of_member(request.group_id)
        response = membership.leave(shard, request, self._now())
        self._timers_moved(shard)
        await self._committed(shard, shard.depends_on(request.group_id), flush)
        return response

    # Offsets

    async def commit_offsets(self, request: OffsetCommitRequest, version: int, flush: Flush) -> OffsetCommitResponse:
        """OffsetCommit, with topics by name."""
        shard = self._shard(request.group_id)
        response = offsets.commit(shard, request, version, self._now())
        await self._committed(shard, shard.depends_on(request.group_id), flush)
        return response

    async def fetch_offsets(
        self, request: OffsetFetchRequestGroup, require_stable: bool, flush: Flush
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch of one group, with topics by name."""
        shard = self._shard(request.group_id)
        offset = shard.depends_on(request.group_id)
        response = offsets.fetch(shard, request, require_stable=require_stable)
        await self._committed(shard, offset, flush)
        return response

    async def delete_offsets(self, request: OffsetDeleteRequest, flush: Flush) -> OffsetDeleteResponse:
        """OffsetDelete."""
        shard = self._shard_of_member(request.group_id)
        response = offsets.delete(shard, request, self._now())
        await self._committed(shard, shard.depends_on(request.group_id), flush)
        return response

    # Administration

    async def describe_group(self, group_id: str, version: int, flush: Flush) -> DescribedGroup:
        """DescribeGroups of one group."""
        shard = self._shard(group_id)
        offset = shard.depends_on(group_id)
        response = describe(shard, group_id, version)
        await self._committed(shard, offset, flush)
        return response

    async def list_groups(self, states: Collection[str], types: Collection[str], flush: Flush) -> list[ListedGroup]:
        """ListGroups of this broker. COORDINATOR_LOAD_IN_PROGRESS while some of it is not known yet."""
        if self._loading:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{len(self._loading)} partitions are loading")
        listed: list[ListedGroup] = []
        waits = []
        for shard in self._shards.values():
            listed += list_groups(shard, states, types)
            waits.append((shard, shard.last_offset))
        for shard, offset in waits:
            await self._committed(shard, offset, flush)
        return listed

    async def delete_groups(self, group_ids: Sequence[str], flush: Flush) -> list[DeletableGroupResult]:
        """DeleteGroups: a result for each distinct group id."""
        results = []
        for group_id in dict.fromkeys(group_ids):
            try:
                shard = self._shard(group_id)
                results.append(expiry.delete_group(shard, group_id, self._now()))
                await self._committed(shard, shard.depends_on(group_id), flush)
            except KafkaError as error:
                results.append(
                    DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=error.message)
                )
        return results

    def delete_topics(self, topics: Collection[str]) -> None:
        """Topics are gone: so are all offsets committed for them."""
        for shard in self._shards.values():
            try:
                expiry.delete_topics(shard, topics, self._now())
            except KafkaError as error:
                logger.warning("Offsets of deleted topics stay in partition %d: %s", shard.partition, error)

    # Time

    async def run(self) -> None:
        """Fire timers and expire offsets, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_timers)
            nursery.start_soon(self._run_expiry)

    def _timers_moved(self, shard: Shard) -> None:
        deadline = shard.timers.next_deadline()
        if deadline is not None and deadline < self._sleeps_until_ms:
            self._wake.set()

    async def _run_timers(self) -> None:
        while True:
            deadlines = [shard.timers.next_deadline() for shard in self._shards.values()]
            deadline = min((deadline for deadline in deadlines if deadline is not None), default=math.inf)
            tick = math.inf if deadline == math.inf else trio.current_time() * 1000 + TICK_MS
            self._sleeps_until_ms = min(deadline, tick)
            self._wake = trio.Event()
            with trio.move_on_at(self._sleeps_until_ms / 1000):
                await self._wake.wait()
            late_ms = trio.current_time() * 1000 - self._sleeps_until_ms
            if late_ms > STALL_MS:
                logger.warning("The event loop stood still for %d ms; sessions are extended by that", late_ms)
                for shard in self._shards.values():
                    shard.timers.grant(late_ms)
            self._fire_timers()

    def _fire_timers(self) -> None:
        now = self._now()
        for shard in list(self._shards.values()):
            while (name := shard.timers.pop_expired(now.monotonic_ms)) is not None:
                rebalance.expire(shard, name, now)

    async def _run_expiry(self) -> None:
        while True:
            await trio.sleep(self.settings.offsets_retention_check_interval_ms / 1000)
            await self.expire_offsets()

    async def expire_offsets(self) -> None:
        """Remove the offsets that are too old now, and the groups that have nothing left."""
        for shard in list(self._shards.values()):
            for count, group in enumerate(list(shard.groups.values()), 1):
                if self._shards.get(shard.partition) is not shard:
                    break
                try:
                    expiry.expire_group(shard, group, self._now())
                except KafkaError as error:
                    logger.warning("Group %s: could not expire offsets: %s", group.group_id, error)
                if count % _GROUPS_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()
