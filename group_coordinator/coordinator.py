"""The group coordinator of a broker: its shards, its waiting requests, and the loops that run its timers.

A *shard* (``shard.py``) is one partition of ``__consumer_offsets`` that this broker leads.

Timers never fire straight after the loop stood still: no member could be heard meanwhile. The timer loop wakes at least once
a second while timers run; when it comes more than 100 ms late, that much is granted to every timer.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.seams import Clock, Workers
from ..base.wording import counted
from ..replication.coordinator_log import CoordinatorLog, CoordinatorTime, Flush, as_seen_by_clients, partition_of
from ..replication.coordinator_shards import CoordinatorShards
from ..share_coordinator.state import SharePartitionKey, ShareStateStore
from ..wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse
from ..wire.messages.consumer_group_describe import DescribedGroup as DescribedConsumerGroup
from ..wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ..wire.messages.delete_groups import DeletableGroupResult
from ..wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse
from ..wire.messages.describe_groups import DescribedGroup
from ..wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ..wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from ..wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from ..wire.messages.list_groups import ListedGroup
from ..wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ..wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ..wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from ..wire.messages.share_group_describe import DescribedGroup as DescribedShareGroup
from ..wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ..wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from ..wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from ..wire.messages.write_txn_markers import WritableTxnMarker
from . import (
    classic_members,
    consumer_membership,
    expiry,
    lifecycle,
    membership,
    offsets,
    share_heartbeat,
    transactional,
)
from .assignors.registry import assignor_of_group
from .classic_group import ClassicGroup
from .client import Client
from .consumer_group import ConsumerGroup
from .describe import describe, list_groups
from .describe_consumer_group import describe_consumer_group
from .describe_share_group import describe_share_group
from .expression_refreshes import ExpressionRefreshes, MayDescribe
from .group import Group
from .group_context import GroupContext
from .heartbeat_request import JOIN_EPOCH, MemberReport, check_heartbeat, member_report
from .rebalance_holds import RebalanceHolds
from .settings import TOPIC, GroupSettings
from .shard import GroupAndOffsets, GroupCoordinatorShard
from .share_group import ShareGroup
from .share_offsets import ShareOffsets, ShareStart
from .share_state_partitions import Partitions
from .share_state_requests import ShareStateRequests
from .target_assignments import TargetAssignments
from .timeline import Timeline
from .waiter import Waiter

logger = logging.getLogger(__name__)

TICK_MS = 1000
STALL_MS = 100
_GROUPS_PER_TURN = 64

T = TypeVar("T")


class GroupCoordinator:
    """Groups of the classic protocol on the partitions this broker leads.

    Every request method raises KafkaError for what concerns the request as a whole.
    """

    def __init__(
        self,
        log: CoordinatorLog,
        settings: GroupSettings,
        context: GroupContext,
        clock: Clock,
        randomness: random.Random,
        workers: Workers,
        share_store: ShareStateStore | None = None,
    ) -> None:
        self.settings = settings
        self._context = context
        self.timeline = Timeline()
        self._log = log
        self._clock = clock
        self._randomness = randomness
        self._shards = CoordinatorShards(
            "Group coordinator", TOPIC, log, self._new_shard, settings.offsets_commit_timeout_ms
        )
        self.holds = RebalanceHolds()
        self._targets = TargetAssignments(self._shards, self._now, clock.elapsed, self.holds)
        self._expressions = ExpressionRefreshes(self._shards, self._now, workers)
        self._share_states = ShareStateRequests(
            self._shards, self._now, share_store, context.share_settings.initialize_retry_interval_ms
        )
        self._share_offsets = ShareOffsets(self._shards, self._share_states)
        self._sleeps_until_ms = -math.inf
        self._wake = trio.Event()

    # Partitions

    def partition_for(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that keeps the group. The setting counts only until the topic exists."""
        return partition_of(group_id, self._log.partition_count() or self.settings.offsets_topic_num_partitions)

    def _new_shard(self, partition: int, leader_epoch: int) -> GroupCoordinatorShard:
        return GroupCoordinatorShard(
            partition, leader_epoch, self._log, self.settings, self._randomness, self.timeline, self._context
        )

    async def load(self, partition: int, leader_epoch: int) -> None:
        """This broker leads the partition from now on: replay its log, then serve its groups.

        Those it serves already go on, because a rebalance that is under way is not in the log (Kafka's
        ``GroupMetadataManager.addLoadingPartition``).
        """
        if self._shards.renew(partition, leader_epoch) or not self._shards.is_older(partition, leader_epoch):
            return
        self.unload(partition)
        shard = await self._shards.load(partition, leader_epoch)
        if shard is not None:
            lifecycle.resume(shard, self._now())
            self._timers_moved(shard)
            if shard.groups:
                logger.debug("Group coordinator: partition %d has %s", partition, counted(len(shard.groups), "group"))

    async def wait_loaded(self, partition: int) -> None:
        """Return once the groups of the partition are served here."""
        await self._shards.wait_loaded(partition)

    def unload(self, partition: int) -> None:
        """This broker does not lead the partition any more; nothing happens when it did not."""
        shard = self._shards.unload(partition)
        if shard is not None:
            lifecycle.release(shard)

    def stop(self) -> None:
        """Unload every partition, so that no request goes on waiting."""
        self.holds.release_all()
        for partition in self._shards.partitions():
            self.unload(partition)

    def _shard(self, group_id: str) -> GroupCoordinatorShard:
        # Offsets may be committed, read and deleted for the empty group id, which very old clients did.
        return self._shards.find(self.partition_for(group_id), group_id)

    def _shard_of_member(self, group_id: str) -> GroupCoordinatorShard:
        if not group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID, "the group id is empty")
        return self._shard(group_id)

    # Waiting

    def _now(self) -> CoordinatorTime:
        return CoordinatorTime(self._clock.now_ms(), trio.current_time() * 1000)

    async def _answer(
        self, shard: GroupCoordinatorShard, waiter: Waiter[T], flush: Flush, abandon: Callable[[], None]
    ) -> T:
        self._timers_moved(shard)
        try:
            if waiter.answer is None:
                await flush()
            response = await waiter.wait()
        finally:
            # The client has gone, or this task is cancelled. A shard that has moved has responded to all who waited.
            if waiter.answer is None and self._shards.is_current(shard):
                abandon()
                self._timers_moved(shard)
        await self._shards.committed(shard, waiter.offset, flush)
        return response

    # Membership

    async def join_group(self, request: JoinGroupRequest, client: Client, flush: Flush) -> JoinGroupResponse:
        """JoinGroup; returns when the round of joining has ended, and to a consumer group at once."""
        await self._targets.wait_written(request.group_id)
        shard = self._shard_of_member(request.group_id)
        settings = self.settings
        timeout_ms = request.session_timeout_ms
        if not settings.group_min_session_timeout_ms <= timeout_ms <= settings.group_max_session_timeout_ms:
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, f"a session of {timeout_ms} ms")
        group = classic_members.group_to_join(shard, request.group_id)
        if group is not None:
            response = await self._join_consumer_group(shard, group, request, client)
            await self._shards.committed(shard, shard.depends_on(request.group_id), flush)
            return response
        waiter = membership.join(shard, request, client, self._now())
        return await self._answer(
            shard,
            waiter,
            flush,
            lambda: membership.abandon_join(shard, request.group_id, waiter, client, self._now()),
        )

    async def _join_consumer_group(
        self, shard: GroupCoordinatorShard, group: ConsumerGroup, request: JoinGroupRequest, client: Client
    ) -> JoinGroupResponse:
        try:
            joining = classic_members.begin_join(shard, group, request, client, self._now())
            if isinstance(joining, JoinGroupResponse):
                return joining
            await self._targets.make(shard, joining, consumer_membership)
            return classic_members.complete_join(shard, joining, self._now())
        except KafkaError as error:
            return JoinGroupResponse(error_code=as_seen_by_clients(error).code)
        finally:
            self._timers_moved(shard)

    async def sync_group(self, request: SyncGroupRequest, flush: Flush) -> SyncGroupResponse:
        """SyncGroup; returns when the leader has sent the assignments."""
        await self.holds.wait(request.group_id, flush)
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
                # After loading the member is known again, and its session starts from the beginning.
                return HeartbeatResponse()
            raise
        offset = shard.depends_on(request.group_id)
        response = membership.heartbeat(shard, request, self._now())
        await self._shards.committed(shard, offset, flush)
        return response

    async def leave_group(self, request: LeaveGroupRequest, flush: Flush) -> LeaveGroupResponse:
        """LeaveGroup of ``request.members``."""
        shard = self._shard_of_member(request.group_id)
        response = membership.leave(shard, request, self._now())
        self._timers_moved(shard)
        await self._shards.committed(shard, shard.depends_on(request.group_id), flush)
        return response

    # Members of consumer groups

    async def consumer_group_heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: Client,
        flush: Flush,
        may_describe: MayDescribe | None = None,
    ) -> ConsumerGroupHeartbeatResponse:
        """ConsumerGroupHeartbeat. Its response says what the member is to do next, and waits for nobody else.

        ``may_describe``: whether the client may know of a topic that its regular expression matches; None for every topic.
        """
        check_heartbeat(request, client.version, self._context.settings.assignors)
        try:
            if request.member_epoch < JOIN_EPOCH:
                shard = self._shard(request.group_id)
                response = consumer_membership.leave(shard, request, self._now())
            else:
                shard, response = await self._heartbeat(request, client)
                self._expressions.begin_if_due(shard, request.group_id, may_describe)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        self._timers_moved(shard)
        await self._shards.committed(shard, shard.depends_on(request.group_id), flush)
        return response

    async def _heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client
    ) -> tuple[GroupCoordinatorShard, ConsumerGroupHeartbeatResponse]:
        member_id = request.member_id or self._shard(request.group_id).new_consumer_id()
        report = member_report(request, member_id, client)
        shard, heartbeat = await self._begin_heartbeat(report, request.member_epoch)
        if heartbeat.has_new_expression:
            await self._expressions.check(heartbeat.updated.expression)
            # Others have run meanwhile, and nothing is written yet.
            shard, heartbeat = await self._begin_heartbeat(report, request.member_epoch)
        try:
            await self._targets.make(shard, heartbeat, consumer_membership)
            return shard, consumer_membership.complete_heartbeat(shard, heartbeat, request.member_epoch, self._now())
        finally:
            # The first part of a heartbeat begins a session, even where the rest is refused.
            self._timers_moved(shard)

    async def _begin_heartbeat(
        self, report: MemberReport, member_epoch: int
    ) -> tuple[GroupCoordinatorShard, consumer_membership.Heartbeat]:
        await self._targets.wait_written(report.group_id)
        shard = self._shard(report.group_id)
        return shard, consumer_membership.begin_heartbeat(shard, report, member_epoch, self._now())

    # Members of share groups

    async def share_group_heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: Client, flush: Flush
    ) -> ShareGroupHeartbeatResponse:
        """ShareGroupHeartbeat. Its response says what the member is to read, and waits for nobody else."""
        share_heartbeat.check_share_heartbeat(request)
        group_id = request.group_id
        try:
            if request.member_epoch < JOIN_EPOCH:
                shard = self._shard(group_id)
                response = share_heartbeat.leave(shard, request, self._now())
            else:
                shard, response = await self._share_heartbeat(request, client)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error
        self._timers_moved(shard)
        await self._shards.committed(shard, shard.depends_on(group_id), flush)
        return response

    async def _share_heartbeat(
        self, request: ShareGroupHeartbeatRequest, client: Client
    ) -> tuple[GroupCoordinatorShard, ShareGroupHeartbeatResponse]:
        await self._targets.wait_written(request.group_id)
        shard = self._shard(request.group_id)
        heartbeat = share_heartbeat.begin_heartbeat(shard, request, client)
        try:
            await self._targets.make(shard, heartbeat, share_heartbeat)
            response = share_heartbeat.complete_heartbeat(shard, heartbeat, self._now())
        finally:
            # The first part of a heartbeat begins a session, even where the rest is refused.
            self._timers_moved(shard)
        self._share_states.begin(shard, heartbeat.group_id, heartbeat.to_initialize, heartbeat.group_epoch)
        return shard, response

    async def initialized_share_partitions(self, group_id: str, flush: Flush) -> dict[bytes, frozenset[int]]:
        """The partitions that members of a share group may be given, by topic id; none where there is no such group."""
        return await self._share_offsets.initialized(self._shard(group_id), group_id, flush)

    async def share_starts(self, group_id: str, partitions: Partitions) -> dict[SharePartitionKey, ShareStart]:
        """How far a share group has come in partitions, by topic id."""
        return await self._share_offsets.starts(group_id, partitions)

    async def alter_share_group_offsets(
        self, request: AlterShareGroupOffsetsRequest, flush: Flush
    ) -> AlterShareGroupOffsetsResponse:
        """AlterShareGroupOffsets."""
        try:
            return await self._share_offsets.alter(self._shard_of_member(request.group_id), request, flush)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error

    async def delete_share_group_offsets(
        self, request: DeleteShareGroupOffsetsRequest, flush: Flush
    ) -> DeleteShareGroupOffsetsResponse:
        """DeleteShareGroupOffsets."""
        try:
            return await self._share_offsets.delete(self._shard_of_member(request.group_id), request, flush)
        except KafkaError as error:
            raise as_seen_by_clients(error) from error

    # Offsets

    async def commit_offsets(self, request: OffsetCommitRequest, version: int, flush: Flush) -> OffsetCommitResponse:
        """OffsetCommit, with topics by name."""
        shard = self._shard(request.group_id)
        response = offsets.commit(shard, request, version, self._now())
        await self._shards.committed(shard, shard.depends_on(request.group_id), flush)
        return response

    async def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, flush: Flush
    ) -> TxnOffsetCommitResponse:
        """TxnOffsetCommit, with topics by name; what is committed counts once the transaction does.

        The append comes before the first wait, so that a check made just before this call still holds.
        """
        shard = self._shard_of_member(request.group_id)
        response = transactional.commit(shard, request, self._now())
        await self._shards.committed(shard, shard.depends_on(request.group_id), flush)
        return response

    def end_transaction(self, partition: int, marker: WritableTxnMarker) -> int:
        """Write a transaction's end marker to ``__consumer_offsets``, and take over or drop its commits.

        The offset after the marker, until which to wait. KafkaError when it was not written; NOT_LEADER_OR_FOLLOWER, which
        asks to try again, when the partition is not served here yet.
        """
        try:
            shard = self._shards.find(partition, f"producer {marker.producer_id}")
        except KafkaError as error:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, error.message) from error
        return shard.end_transaction(marker)

    async def fetch_offsets(
        self, request: OffsetFetchRequestGroup, require_stable: bool, flush: Flush
    ) -> OffsetFetchResponseGroup:
        """OffsetFetch of one group, with topics by name."""
        shard = self._shard(request.group_id)
        offset = shard.depends_on(request.group_id)
        response = offsets.fetch(shard, request, require_stable=require_stable)
        await self._shards.committed(shard, offset, flush)
        return response

    async def delete_offsets(self, request: OffsetDeleteRequest, flush: Flush) -> OffsetDeleteResponse:
        """OffsetDelete."""
        shard = self._shard_of_member(request.group_id)
        response = offsets.delete(shard, request, self._now())
        await self._shards.committed(shard, shard.depends_on(request.group_id), flush)
        return response

    # Administration

    async def describe_consumer_group(self, group_id: str, flush: Flush) -> DescribedConsumerGroup:
        """ConsumerGroupDescribe of one group."""
        shard = self._shard(group_id)
        offset = shard.depends_on(group_id)
        response = describe_consumer_group(shard, group_id)
        await self._shards.committed(shard, offset, flush)
        return response

    async def describe_share_group(self, group_id: str, flush: Flush) -> DescribedShareGroup:
        """ShareGroupDescribe of one group."""
        shard = self._shard(group_id)
        offset = shard.depends_on(group_id)
        response = describe_share_group(shard, group_id)
        await self._shards.committed(shard, offset, flush)
        return response

    async def describe_group(self, group_id: str, version: int, flush: Flush) -> DescribedGroup:
        """DescribeGroups of one group."""
        shard = self._shard(group_id)
        offset = shard.depends_on(group_id)
        response = describe(shard, group_id, version)
        await self._shards.committed(shard, offset, flush)
        return response

    async def list_groups(self, states: Collection[str], types: Collection[str], flush: Flush) -> list[ListedGroup]:
        """ListGroups of this broker. COORDINATOR_LOAD_IN_PROGRESS while some of it is not known yet."""
        if self._shards.loading:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"partitions are still loading: {self._shards.loading}"
            )
        listed: list[ListedGroup] = []
        waits = []
        # All shards are read before the first wait, during which one may move away or be loaded.
        for shard in self._shards:
            listed += list_groups(shard, states, types)
            waits.append((shard, shard.last_offset))
        for shard, offset in waits:
            await self._shards.committed(shard, offset, flush)
        return listed

    async def delete_groups(self, group_ids: Sequence[str], flush: Flush) -> list[DeletableGroupResult]:
        """DeleteGroups: a result for each distinct group id."""
        results = []
        for group_id in dict.fromkeys(group_ids):
            try:
                await self._share_states.delete_states_of(self._shard(group_id), group_id, flush)
                shard = self._shard(group_id)
                results.append(expiry.delete_group(shard, group_id, self._now()))
                await self._shards.committed(shard, shard.depends_on(group_id), flush)
            except KafkaError as error:
                results.append(
                    DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=error.message)
                )
        return results

    def delete_topics(self, topics: Collection[str]) -> None:
        """Delete the offsets committed for topics that have been deleted."""
        for shard in self._shards:
            try:
                expiry.delete_topics(shard, topics, self._now())
            except KafkaError as error:
                logger.warning("Offsets of deleted topics stay in partition %d: %s", shard.partition, error)

    def groups(self) -> Iterator[GroupAndOffsets]:
        """Every group of the partitions this broker leads, as it is now."""
        for shard in self._shards:
            yield from shard.groups_and_offsets()

    def find(self, group_id: str) -> GroupAndOffsets | None:
        """A group of the partitions this broker leads; None where there is none."""
        for shard in self._shards:
            if group_id in shard.groups:
                return GroupAndOffsets(shard.groups[group_id], shard.offsets.of(group_id))
        return None

    def assignor_of(self, group: Group) -> str:
        """The name of a group's assignor: of a consumer group the broker's, of a classic one its clients'."""
        if isinstance(group, ConsumerGroup):
            return assignor_of_group(group.preferred_assignor, self._context.settings.assignors).name
        return group.protocol_name

    # Time

    async def run(self) -> None:
        """Fire timers and expire offsets, for ever."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_timers)
            nursery.start_soon(self._expressions.run)
            nursery.start_soon(self._share_states.run)
            nursery.start_soon(self._run_expiry)

    def _timers_moved(self, shard: GroupCoordinatorShard) -> None:
        deadline = shard.timers.next_deadline()
        if deadline is not None and deadline < self._sleeps_until_ms:
            self._wake.set()

    async def _run_timers(self) -> None:
        while True:
            deadlines = [shard.timers.next_deadline() for shard in self._shards]
            deadline = min((deadline for deadline in deadlines if deadline is not None), default=math.inf)
            began_ms, began = trio.current_time() * 1000, self._clock.elapsed()
            tick = math.inf if deadline == math.inf else began_ms + TICK_MS
            self._sleeps_until_ms = min(deadline, tick)
            self._wake = trio.Event()
            # A microsecond more than rounding can take away: woken too early, it would find nothing to fire, and spin.
            with trio.move_on_at((self._sleeps_until_ms + 0.001) / 1000):
                await self._wake.wait()
            # What really went by: a clock that is set forward has not kept the loop from hearing members.
            late_ms = began_ms + (self._clock.elapsed() - began) * 1000 - self._sleeps_until_ms
            if late_ms > STALL_MS:
                logger.warning("The event loop was blocked for %d ms; sessions are extended by this time", late_ms)
                for shard in self._shards:
                    shard.timers.extend_all(late_ms)
            self._fire_timers()

    def _fire_timers(self) -> None:
        now = self._now()
        for shard in self._shards:
            while (name := shard.timers.pop_expired(now.monotonic_ms)) is not None:
                lifecycle.expire(shard, name, now)

    def expire_sessions(self, group_id: str, member: str | None) -> list[str]:
        """End sessions of a group now: of the member with this member id, client id or instance id, of all when None.

        Returns the ids of the members that are gone. A member that waits for the coordinator's answer stays, as it does
        whenever a session ends.
        Raises KafkaError: GROUP_ID_NOT_FOUND, and where the group is not served here.
        """
        shard = self._shard_of_member(group_id)
        if group_id not in shard.groups:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"no group {group_id}")
        before = _names_of_members(shard.groups[group_id])
        for member_id, names in before.items():
            if member is None or member in names:
                shard.timers.set(("session", group_id, member_id), self._now().monotonic_ms)
        self._fire_timers()
        self._timers_moved(shard)
        after = _names_of_members(shard.groups[group_id]) if group_id in shard.groups else {}
        return [member_id for member_id in before if member_id not in after]

    async def _run_expiry(self) -> None:
        while True:
            await trio.sleep(self.settings.offsets_retention_check_interval_ms / 1000)
            await self.expire_offsets()

    async def expire_offsets(self) -> None:
        """Remove the offsets that are too old now, and the groups that have nothing left."""
        for shard in self._shards:
            for count, group in enumerate(list(shard.groups.values()), 1):
                if not self._shards.is_current(shard):
                    break  # it moved away in one of the turns of other tasks
                try:
                    expiry.expire_group(shard, group, self._now())
                except KafkaError as error:
                    logger.warning("Group %s: could not expire offsets: %s", group.group_id, error)
                if count % _GROUPS_PER_TURN == 0:
                    await trio.lowlevel.checkpoint()


def _names_of_members(group: Group) -> dict[str, tuple[str | None, ...]]:
    """By member id, the names by which a person knows a member: its ids and that of its client."""
    if isinstance(group, ClassicGroup):
        members = group.live.members.values()
        return {each.member_id: (each.member_id, each.client_id, each.group_instance_id) for each in members}
    if isinstance(group, ConsumerGroup):
        return {
            each.member_id: (each.member_id, each.client_id, each.instance_id)
            for each in group.members.newest().values()
        }
    if isinstance(group, ShareGroup):
        return {each.member_id: (each.member_id, each.client_id) for each in group.members.newest().values()}
    return {}
