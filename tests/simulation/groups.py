"""A consumer group of the classic protocol: members join, one of them assigns the partitions, and offsets are committed.

Offsets are unique numbers here, so that every commit can be identified.
"""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

from .clients import PARTITIONS, Actor
from .history import Commit, History, TopicPartition
from .network import Lost
from .world import World

GROUP = "workers"
_SESSION_MS = 4000


class GroupState:
    """The assignments that members of the group have got: the owner of each partition by generation."""

    def __init__(self) -> None:
        self.owners: dict[tuple[int, TopicPartition], str] = {}
        self.next_offset = 0


class Member(Actor):
    """A member. At times it dies or leaves, and comes back."""

    def __init__(self, world: World, history: History, name: str, state: GroupState) -> None:
        super().__init__(world, history, name)
        self._state = state
        self._member_id = ""
        self._generation = -1

    async def run(self, until: trio.Event) -> None:
        while not until.is_set():
            try:
                owned = await self._join()
                if owned is not None:
                    await self._work(owned, until)
            except Lost:
                await trio.sleep(0.1)
            if self.rng.random() < 0.2:
                await self._go()

    async def _join(self) -> list[TopicPartition] | None:
        """Join; returns the assigned partitions, or None when joining must be repeated. Raises Lost."""
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=3000,
            member_id=self._member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="share", metadata=b"")],
        )
        joined = await self.client.call(request, 5)
        code = ErrorCode(joined.error_code)
        self.log(f"join: {code.name} generation {joined.generation_id}")
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = joined.member_id
            return None
        if code is not ErrorCode.NONE:
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            await trio.sleep(0.2)
            return None
        self._member_id, self._generation = joined.member_id, joined.generation_id
        assignments = []
        if joined.leader == self._member_id:
            members = [member.member_id for member in joined.members]
            shares: dict[str, list[int]] = {member: [] for member in members}
            for at in range(len(PARTITIONS)):
                shares[members[at % len(members)]].append(at)
            assignments = [SyncGroupRequestAssignment(member_id=m, assignment=bytes(s)) for m, s in shares.items()]
        sync = SyncGroupRequest(
            group_id=GROUP, generation_id=self._generation, member_id=self._member_id, assignments=assignments
        )
        synced = await self.client.call(sync, 3)
        if synced.error_code:
            self.log(f"sync: {ErrorCode(synced.error_code).name}")
            if synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            return None
        owned = [PARTITIONS[at] for at in synced.assignment]
        for partition in owned:
            owner = self._state.owners.setdefault((self._generation, partition), self._member_id)
            if (
                owner != self._member_id and not self.world.mode.may_lose
            ):  # the number of a lost generation is used again
                self.world.violate(
                    f"{partition} has two owners in generation {self._generation}: {owner} and {self.name}"
                )
        return owned

    async def _work(self, owned: list[TopicPartition], until: trio.Event) -> None:
        """Commit and send heartbeats until the group rebalances. Raises Lost."""
        while not until.is_set():
            await trio.sleep(self.rng.uniform(0.1, 0.6))
            beat = HeartbeatRequest(group_id=GROUP, generation_id=self._generation, member_id=self._member_id)
            code = ErrorCode((await self.client.call(beat, 3)).error_code)
            if code is ErrorCode.NONE and owned:
                code = await self._commit(self.rng.choice(owned))
            if code is not ErrorCode.NONE:
                self.log(f"out of generation {self._generation}: {code.name}")
                if code is ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
                return
            if self.rng.random() < 0.1:
                return

    async def _commit(self, partition: TopicPartition) -> ErrorCode:
        self._state.next_offset += 1
        commit = Commit(self._state.next_offset, trio.current_time())
        self.history.commits.setdefault((GROUP, partition), []).append(commit)
        part = OffsetCommitRequestPartition(
            partition_index=partition[1], committed_offset=commit.offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            topics=[OffsetCommitRequestTopic(name=partition[0], partitions=[part])],
        )
        answer = await self.client.call(request, 7)
        code = ErrorCode(answer.topics[0].partitions[0].error_code)
        if code is ErrorCode.NONE:
            commit.answered = trio.current_time()
        else:
            commit.was_refused = code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID)
        return code

    async def _go(self) -> None:
        """Leave, or die without leaving, and come back as another member."""
        if self._member_id and self.rng.random() < 0.5:
            request = LeaveGroupRequest(group_id=GROUP, members=[MemberIdentity(member_id=self._member_id)])
            try:
                await self.client.call(request, 3)
            except Lost:
                pass
        self.client.close()
        self._member_id = ""
        await trio.sleep(self.rng.choice((0, 1.0)))
