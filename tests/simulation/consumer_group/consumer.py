"""A consumer as a client of a simulated world: it sends heartbeats, gives partitions up in its own time, and commits.

Its processes have the protocol of KIP-848, or in some worlds the classic one (``classic``). At times a process dies, leaves or
stands still, changes its subscription, or never gives up what it was told to. ``calm`` ends that: then it does its part.
``GroupKnowledge`` is what all clients of a group know together, and has the invariants of that:

* A response has no smaller epoch than the client that it is for.
* No partition is read by two members at epochs that overlap.
* A commit is not accepted from a member once a later owner's was.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

import trio

from ottla.base.errors import ErrorCode
from ottla.group_coordinator.topics import TopicSize
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.schema import uuid_to_text

from ..clients import RETRIABLE, Actor
from ..history import Commit, History, TopicPartition
from ..network import Lost
from .classic import ClassicMembership, ClassicProcess
from .membership import LEAVES, LEAVES_STATIC, ClientMembership, Subscription, TopicIdPartition

HEARTBEAT_VERSION = 1
CLASSIC_SESSION_MS = 6000
COMMIT_VERSION = 9
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
_FATAL = frozenset({ErrorCode.UNRELEASED_INSTANCE_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.GROUP_ID_NOT_FOUND})
_COMMIT_REFUSED = frozenset({ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})
_NEVER = float("inf")


@dataclasses.dataclass
class Span:
    """The epochs at which a member has read a partition."""

    owner: str
    era: int
    first: int
    last: int


@dataclasses.dataclass(frozen=True)
class Accepted:
    """A commit that was acknowledged."""

    owner: str
    era: int
    epoch: int
    answered: float


class GroupKnowledge:
    """What the clients of one group know. ``violate`` is told of what must not be."""

    def __init__(self, group_id: str, violate: Callable[[str], None]) -> None:
        self.group_id = group_id
        self.violate = violate
        self.next_offset = 0
        self.has_overlaps = True
        """Whether overlapping epochs are a violation. They are none where acknowledged records may be lost."""
        self.era = 0
        """Epochs are compared with those of the same era. Where an empty group is replaced, epochs begin anew, and an era."""
        self._spans: dict[TopicIdPartition, list[Span]] = {}
        self._open: dict[str, dict[TopicIdPartition, Span]] = {}
        """By owner, those that go on."""
        self._accepted: dict[TopicIdPartition, list[Accepted]] = {}

    def reads(self, member: ClientMembership | ClassicMembership) -> None:
        """A member reads its partitions at its epoch, and no others."""
        owner = member.owner
        before = self._open.get(owner, {})
        going_on = self._open[owner] = {}
        for partition in member.owned if member.is_member else ():
            spans = self._spans.setdefault(partition, [])
            own = before.get(partition)
            if own is None:
                own = Span(owner, self.era, member.epoch, member.epoch)
                spans.append(own)
            own.last = max(own.last, member.epoch)
            going_on[partition] = own
            for other in spans if self.has_overlaps else ():
                is_another = other.owner != owner and other.era == own.era
                if is_another and other.first <= own.last and own.first <= other.last:
                    self.violate(f"{short([partition])} is read by two members: {other}, {own}")

    def committed(self, owner: str, epoch: int, partition: TopicIdPartition, sent: float) -> None:
        """A commit that was sent at ``sent`` has just been acknowledged."""
        accepted = self._accepted.setdefault(partition, [])
        for other in accepted:
            is_another = other.owner != owner and other.era == self.era
            if is_another and other.epoch > epoch and other.answered <= sent and self.has_overlaps:
                self.violate(
                    f"{partition}: a commit of {owner} at epoch {epoch} was accepted after one of {other.owner} at {other.epoch}"
                )
        accepted.append(Accepted(owner, self.era, epoch, trio.current_time()))


class GroupConsumer(Actor):
    """One consumer, whose processes come one after the other."""

    def __init__(
        self,
        world: object,
        history: History,
        name: str,
        knowledge: GroupKnowledge,
        subscriptions: Sequence[Subscription],
        topic_name: Callable[[bytes], str | None],
        topics: Callable[[], Mapping[str, TopicSize]],
        *,
        classic_share: float = 0.0,
        is_cooperative: bool = True,
        instance_id: str | None = None,
        assignors: Sequence[str | None] = (None,),
        rebalance_timeout_ms: int = 4000,
        standstill_seconds: float = 10.0,
    ) -> None:
        """``topic_name``: of a topic's id. ``standstill_seconds``: the longest time in which a process does nothing.

        ``classic_share``: of the processes, those with the classic protocol, which are cooperative or eager.
        """
        super().__init__(world, history, name)  # type: ignore[arg-type]
        self.knowledge = knowledge
        self.calm = False
        """Whether it does nothing but its part from now on."""
        self.is_heard = False
        """Whether it had a response since it is calm."""
        self.is_gone = False
        """Whether it has no process, and will have none."""
        self.named_subscriptions = [each for each in subscriptions if not each.expression] or [Subscription()]
        """Those that a process with the classic protocol has."""
        if classic_share and instance_id is not None:
            # A classic group does not ask a static member that comes back what it reads.
            subscriptions = self.named_subscriptions = self.named_subscriptions[:1]
        self.subscriptions = subscriptions
        self.topic_name = topic_name
        self.topics = topics
        self._classic_share = classic_share
        self._is_cooperative = is_cooperative
        self._instance_id = instance_id
        self._assignors = assignors
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self.standstill_seconds = standstill_seconds
        self._memories: list[tuple[int, TopicIdPartition]] = []
        """Partitions that this process has had, with an epoch of then."""
        self._process = self._new_process()

    @property
    def member(self) -> ClientMembership | ClassicMembership:
        """The membership of its present process."""
        return self._process.member

    def tell_all(self) -> None:
        """It says all of itself with its next request, as after one without a response."""
        self._process.tell_all()

    def _new_process(self) -> ConsumerProcess | ClassicProcess:
        self._memories.clear()
        if self._classic_share and self.rng.random() < self._classic_share:
            classic = ClassicMembership(
                self.knowledge.group_id,
                self.rng.choice(self.named_subscriptions),
                instance_id=self._instance_id,
                is_cooperative=self._is_cooperative,
            )
            return ClassicProcess(self, classic, CLASSIC_SESSION_MS, self._rebalance_timeout_ms)
        member = ClientMembership(
            self.knowledge.group_id,
            uuid_to_text(uuid.UUID(int=self.rng.getrandbits(128), version=4).bytes),
            self.rng.choice(self.subscriptions),
            instance_id=self._instance_id,
            server_assignor=self.rng.choice(self._assignors),
            rebalance_timeout_ms=self._rebalance_timeout_ms,
        )
        return ConsumerProcess(self, member)

    async def run(self, until: trio.Event) -> None:
        while not until.is_set():
            await self._process.live(until)
            self.member.lose_all()
            self.knowledge.reads(self.member)
            if self.is_gone:
                return
            await trio.sleep(self.rng.choice((0, 0.5, 3.0)))
            self._process = self._new_process()

    # --- commits ------------------------------------------------------------------------------------------------------

    async def commit(self) -> None:
        """Commit an offset of a partition that it has, at times of one that it has had, at an epoch of then."""
        member, now = self.member, trio.current_time()
        is_late = bool(self._memories) and self.rng.random() < 0.4
        if not is_late:
            if not member.owned:
                return
            self._memories = [*self._memories[-9:], (member.epoch, self.rng.choice(sorted(member.owned)))]
        epoch, partition = self.rng.choice(self._memories) if is_late else self._memories[-1]
        topic = self.topic_name(partition[0])
        if topic is None:
            return
        knowledge = self.knowledge
        knowledge.next_offset += 1
        commit = Commit(knowledge.next_offset, now)
        key: TopicPartition = (topic, partition[1])
        self.history.commits.setdefault((knowledge.group_id, key), []).append(commit)
        part = OffsetCommitRequestPartition(
            partition_index=partition[1], committed_offset=commit.offset, committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=knowledge.group_id,
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            generation_id_or_member_epoch=epoch,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[part])],
        )
        try:
            response = await self.client.call(request, COMMIT_VERSION)
        except Lost:
            return
        code = ErrorCode(response.topics[0].partitions[0].error_code)
        if code is ErrorCode.NONE:
            commit.answered = trio.current_time()
            if not is_late:
                knowledge.committed(member.owner, epoch, partition, now)
        else:
            commit.was_refused = code in _COMMIT_REFUSED
            self.log(f"commit of {topic}-{partition[1]} at {epoch}: {code.name}")


class ConsumerProcess:
    """A process with the protocol of KIP-848."""

    def __init__(self, consumer: GroupConsumer, member: ClientMembership) -> None:
        self.member = member
        self._consumer = consumer
        self._rng = consumer.rng
        self._interval = 1.0
        self._gives_up_at = _NEVER

    def tell_all(self) -> None:
        """The next heartbeat has all fields."""
        self.member.failed()

    async def live(self, until: trio.Event) -> None:
        """One process, to its end."""
        while not until.is_set():
            self._reconcile()
            if not await self._heartbeat():
                return
            self._reconcile()
            if self.member.is_member and self._rng.random() < 0.3:
                await self._consumer.commit()
            await trio.sleep(self._pause())
            if not self._consumer.calm and self._rng.random() < 0.12 and await self._act():
                return

    def _pause(self) -> float:
        if self.member.has_news or not self.member.is_member:
            return self._rng.uniform(0, 0.1)
        until_given_up = max(self._gives_up_at - trio.current_time(), 0)
        return min(self._interval * self._rng.uniform(0.7, 1), until_given_up)

    # --- membership ---------------------------------------------------------------------------------------------------

    def _reconcile(self) -> None:
        member = self.member
        if member.to_give_up:
            if self._gives_up_at == _NEVER:
                delay = self._rng.choice((0, 0, 0.2, 1.5, 6.0, 1e9) if not self._consumer.calm else (0, 0.2))
                self._gives_up_at = trio.current_time() + delay
                self._consumer.log(f"gives up {short(member.to_give_up)} in {delay} s")
            if trio.current_time() < self._gives_up_at:
                return
        self._gives_up_at = _NEVER
        member.reconcile()
        self._consumer.knowledge.reads(member)

    async def _heartbeat(self) -> bool:
        """Send a heartbeat; False if the process ends with it."""
        member = self.member
        request, epoch = member.request(), member.epoch
        try:
            response = await self._consumer.client.call(request, HEARTBEAT_VERSION)
        except Lost as error:
            self._consumer.log(f"heartbeat at {epoch} lost: {error}")
            member.failed()
            return True
        code = ErrorCode(response.error_code)
        if code is ErrorCode.NONE:
            if response.member_epoch < epoch:
                self._consumer.knowledge.violate(
                    f"{self._consumer.name} at epoch {epoch} is told {response.member_epoch}"
                )
            self._consumer.is_heard = self._consumer.calm
            self._interval = response.heartbeat_interval_ms / 1000
            member.told(response)
            if response.assignment is not None or epoch != member.epoch:
                self._consumer.log(f"epoch {epoch} -> {member.epoch}, assigned {short(member.target or ())}")
            self._consumer.knowledge.reads(member)
            return True
        self._consumer.log(f"heartbeat at {epoch}: {code.name}")
        if code in _FENCED:
            self._gives_up_at = _NEVER
            member.lose_all()
        elif code in _FATAL:
            return False
        elif code in RETRIABLE:
            member.failed()
            await trio.sleep(self._rng.uniform(0, 0.2))
        else:
            what = f"{self._consumer.name}: a heartbeat at {epoch} gets {code.name}: {response.error_message}"
            self._consumer.knowledge.violate(what)
        return True

    async def _act(self) -> bool:
        """Do something else than its part. Returns whether the process has ended."""
        rng, member = self._rng, self.member
        action = rng.choice(("die", "leave", "leave", "stand still", "subscribe", "subscribe", "rejoin", "go"))
        self._consumer.log(action)
        if action in ("leave", "rejoin", "go"):
            is_static = member.instance_id is not None and rng.random() < 0.7 and action != "go"
            try:
                await self._consumer.client.call(
                    member.leaving(LEAVES_STATIC if is_static else LEAVES), HEARTBEAT_VERSION
                )
            except Lost as error:
                self._consumer.log(f"leave lost: {error}")
            self._gives_up_at = _NEVER
        if action == "stand still":
            await trio.sleep(rng.uniform(0, self._consumer.standstill_seconds))
        if action == "subscribe":
            member.subscription = rng.choice(self._consumer.subscriptions)
        if action == "die":
            self._consumer.client.close()
        self._consumer.is_gone = action == "go" and rng.random() < 0.3
        return action in ("die", "leave", "go")


def short(partitions: Iterable[TopicIdPartition]) -> str:
    """Partitions for people, by the beginning of their topic's id."""
    return " ".join(f"{_shown(topic_id[:4])}-{number}" for topic_id, number in sorted(partitions))


def _shown(data: bytes) -> str:
    return data.decode() if data.isascii() and data.decode().isprintable() else data.hex()
