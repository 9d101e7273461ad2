"""Inspects the metadata of a KRaft cluster: what controllers commit and respond, and what brokers make of it.

Invariants at any time:

- all controllers have the same state at the same offset of the metadata log;
- a partition that has a leader has no member in sync that is fenced, or in controlled shutdown; the leader is in sync;
- a broker epoch never falls, and a broker is unfenced only when it has applied its own registration;
- nobody is elected uncleanly while there is an eligible leader replica, unless the topic allows it;
- an active controller fences who was silent for a session, counted from the claim of the leadership where that is later;
- a response promises only what is committed, and no producer id is given out twice;
- a leader's proposal for the ISR is followed only if nothing has changed since, and no member has registered again;
- the metadata transaction that a controller has left open is ended by the next one;
- a broker that was in controlled shutdown is let go when no other active broker takes it for a leader;
- each partition state of a broker is one that was committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import trio

from ottla.base.partitions import NO_BROKER_EPOCH, NO_LEADER
from ottla.controller.quorum.active.context import UNCLEAN_ELECTION
from ottla.controller.quorum.active.controller import ActiveController
from ottla.controller.quorum.active.state import ControllerState
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import PartitionRegistration, QuorumBroker
from ottla.replication.metadata_cache import MetadataCache
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsResponse
from ottla.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from ottla.wire.messages.create_topics import CreateTopicsResponse
from ottla.wire.schema import ZERO_UUID, uuid_to_text

if TYPE_CHECKING:
    from .world import QuorumClusterWorld

_LATE_MS = 100
"""By so much a fencing may be late: the loop has other tasks."""
_TRANSACTION_MS = 1000
"""Whoever begins a metadata transaction ends it at once, or resigns."""

PartitionId = tuple[bytes, int]


class _Metadata(NamedTuple):
    """What is compared of a state."""

    partitions: Mapping[PartitionId, PartitionRegistration]
    brokers: Mapping[int, QuorumBroker]
    next_producer_id: int
    unclean: frozenset[bytes]
    """The ids of topics that allow an unclean election."""


def _metadata(image: ClusterImage) -> _Metadata:
    partitions = {
        (topic_id, number): partition
        for topic_id, topic in image.topics_by_id.items()
        for number, partition in topic.partitions.items()
    }
    unclean = frozenset(
        topic_id
        for topic_id, topic in image.topics_by_id.items()
        if image.topic_config(topic.name).get(UNCLEAN_ELECTION) == "true"
    )
    return _Metadata(partitions, dict(image.quorum_brokers), image.next_producer_id, unclean)


class MetadataInspector:
    """See the module. It is told of what controllers do, and asked to ``look`` at the brokers from time to time."""

    def __init__(self, world: QuorumClusterWorld) -> None:
        self._world = world
        self._newest = _Metadata({}, {}, -1, frozenset())
        self._states: dict[int, _Metadata] = {}
        """By the offset of the last record."""
        self._partitions: dict[tuple[bytes, int, int], PartitionRegistration] = {}
        """By partition epoch."""
        self._members: dict[tuple[bytes, int, int], Mapping[int, int]] = {}
        """The broker epochs of those in sync, by the same."""
        self._blocks: dict[int, int] = {}
        """The producer ids that were given out: the end of each block by its beginning."""
        self._claimed: dict[ActiveController, int] = {}
        self._heard: dict[tuple[ActiveController, int, int], int] = {}
        """When a controller has heard of a broker and its epoch. Both in ms of the loop's time."""
        self._open: dict[str, float] = {}
        """Since when an active controller has a transaction open."""
        self._leaving: set[tuple[ActiveController, int, int]] = set()
        """The brokers and their epochs that a controller has in controlled shutdown."""

    # --- what controllers do ------------------------------------------------------------------------------------------

    def committed(self, state: ControllerState) -> None:
        """A controller has applied this state, which is committed."""
        position = state.image.position
        if position is None:
            return
        metadata = _metadata(state.image)
        known = self._states.setdefault(position.offset, metadata)
        if known != metadata:
            self._world.violate(f"controllers differ at offset {position.offset}: {_difference(known, metadata)}")
        if known is metadata:
            self._check_brokers(state, metadata)
            self._check_partitions(metadata)
            self._newest = metadata

    def _check_brokers(self, state: ControllerState, metadata: _Metadata) -> None:
        for broker_id, broker in metadata.brokers.items():
            before = self._newest.brokers.get(broker_id)
            if before is not None and broker.epoch < before.epoch:
                self._world.violate(f"the epoch of broker {broker_id} falls from {before.epoch} to {broker.epoch}")
            if before is None or broker.is_fenced or not before.is_fenced:
                continue
            cache, registered = self._cache(broker_id, is_ready=False), state.registration_offsets[broker_id]
            applied = None if cache is None or cache.image.position is None else cache.image.position.offset
            if applied is not None and applied < registered:
                self._world.violate(f"{broker_id} is unfenced at {applied}, below its registration at {registered}")

    def _check_partitions(self, metadata: _Metadata) -> None:
        for (topic_id, number), partition in metadata.partitions.items():
            name = f"{uuid_to_text(topic_id)}-{number}"
            before = self._newest.partitions.get((topic_id, number))
            if partition is before:
                continue
            self._partitions[topic_id, number, partition.partition_epoch] = partition
            lives = {member: metadata.brokers[member].epoch for member in partition.isr if member in metadata.brokers}
            self._members[topic_id, number, partition.partition_epoch] = lives
            is_unclean = partition.is_recovering and before is not None and not before.is_recovering
            eligible = () if before is None or topic_id in metadata.unclean else before.elr
            if is_unclean and (left := [replica for replica in eligible if self._goes_on(replica, metadata)]):
                self._world.violate(f"{name}: {partition.leader} is elected uncleanly while {left} are eligible")
        for (topic_id, number), partition in metadata.partitions.items():
            if partition.leader == NO_LEADER:
                continue
            name = f"{uuid_to_text(topic_id)}-{number}"
            if partition.leader not in partition.isr:
                self._world.violate(f"{name}: the leader {partition.leader} is not in sync: {partition.isr}")
            for member in partition.isr:
                broker = metadata.brokers.get(member)
                if broker is None or broker.is_fenced or broker.is_shutting_down:
                    self._world.violate(f"{name}: {member} is in sync, and does not take part: {broker}")

    def _goes_on(self, broker_id: int, metadata: _Metadata) -> bool:
        """Whether a broker has not registered anew: it has not lost anything."""
        before, after = self._newest.brokers.get(broker_id), metadata.brokers.get(broker_id)
        return before is not None and after is not None and before.epoch == after.epoch

    # --- what controllers hear and respond ----------------------------------------------------------------------------

    def claimed(self, controller: ActiveController, now_ms: int) -> None:
        self._claimed[controller] = now_ms

    def heard(self, controller: ActiveController, request: BrokerHeartbeatRequest, now_ms: int) -> None:
        if controller.is_active:
            self._heard[controller, request.broker_id, request.broker_epoch] = now_ms

    def answered(self, controller: ActiveController, request: BrokerHeartbeatRequest, response: Any) -> None:
        """A heartbeat is responded to."""
        if not isinstance(response, BrokerHeartbeatResponse) or response.error_code:
            return
        broker_id, key = request.broker_id, (controller, request.broker_id, request.broker_epoch)
        if request.want_shut_down and not response.should_shut_down:
            self._leaving.add(key)
        if key not in self._leaving or not response.should_shut_down:
            return
        for other, broker in controller.state.image.quorum_brokers.items():
            cache = self._cache(other)
            if other == broker_id or broker.is_fenced or broker.is_shutting_down or cache is None:
                continue
            for topic in cache.image.topics.values():
                for number, partition in topic.partitions.items():
                    if partition.leader == broker_id:
                        self._world.violate(
                            f"{broker_id} is let go, and {other} takes it for {topic.name}-{number}'s leader"
                        )

    def registered(self, request: BrokerRegistrationRequest, response: Any) -> None:
        """A registration is responded to."""
        if isinstance(response, BrokerRegistrationResponse) and not response.error_code:
            broker = self._newest.brokers.get(request.broker_id)
            if broker is None or broker.epoch < response.broker_epoch:
                self._world.violate(f"{request.broker_id} is told of a registration that is not committed: {response}")

    def responded(self, response: Any) -> None:
        """Any other operation is responded to."""
        if isinstance(response, AllocateProducerIdsResponse) and not response.error_code:
            self._check_block(response.producer_id_start, response.producer_id_start + response.producer_id_len)
        elif isinstance(response, AlterPartitionResponse):
            for topic in response.topics:
                for each in topic.partitions:
                    if not each.error_code:
                        self._check_promise(topic.topic_id, each)
        elif isinstance(response, CreateTopicsResponse):
            known = {topic_id for topic_id, _ in self._newest.partitions}
            for made in response.topics:
                if not made.error_code and made.topic_id != ZERO_UUID and made.topic_id not in known:
                    self._world.violate(f"{made.name} is said to be made, and is not committed")

    def carried_out(self, request: Any, response: Any) -> None:
        """A request has come to a controller, and has had this response."""
        if not isinstance(request, AlterPartitionRequest):
            return
        asked = {(topic.topic_id, each.partition_index): each for topic in request.topics for each in topic.partitions}
        for topic in response.topics:
            for told in topic.partitions:
                proposal = asked[topic.topic_id, told.partition_index]
                if told.error_code:
                    continue
                if told.partition_epoch > proposal.partition_epoch + 1:
                    self._world.violate(f"a proposal of long ago is followed: {proposal}, in {told}")
                if told.partition_epoch == proposal.partition_epoch + 1:
                    self._check_lives(topic.topic_id, proposal, told)

    def _check_lives(self, topic_id: bytes, proposal: Any, told: Any) -> None:
        """Whoever joins is the life that has caught up (KIP-903)."""
        epochs = self._members.get((topic_id, told.partition_index, told.partition_epoch), {})
        for member in proposal.new_isr_with_epochs:
            epoch = epochs.get(member.broker_id, member.broker_epoch)
            if member.broker_epoch not in (NO_BROKER_EPOCH, epoch):
                self._world.violate(f"the life {epoch} of {member.broker_id} is in sync: {proposal}, {told}")

    def _check_block(self, first: int, end: int) -> None:
        if self._newest.next_producer_id < end:
            self._world.violate(f"producer ids up to {end} are given out before that is committed")
        if any(start < end and first < other for start, other in self._blocks.items()):
            self._world.violate(f"the producer ids from {first} on are given out twice")
        self._blocks[first] = end

    def _check_promise(self, topic_id: bytes, told: Any) -> None:
        known = self._partitions.get((topic_id, told.partition_index, told.partition_epoch))
        if known is None or known.isr != tuple(told.isr):
            self._world.violate(f"a leader is told of an ISR that is not committed: {told}, but {known}")

    # --- what brokers make of it --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check the present state of brokers and of active controllers."""
        self._check_sessions()
        self._check_transactions()
        for broker_id in self._world.machines:
            for topic_id, number, state in self._known_to(broker_id):
                leader, leader_epoch, partition_epoch = state
                known = self._partitions.get((topic_id, number, partition_epoch))
                if known is None or (known.leader, known.leader_epoch) != (leader, leader_epoch):
                    place = f"{uuid_to_text(topic_id)}-{number}"
                    self._world.violate(f"{broker_id} knows of {place} what was not committed: {state}, but {known}")

    def _known_to(self, broker_id: int) -> Iterator[tuple[bytes, int, tuple[int, int, int]]]:
        """Topic id, number, and leader with both epochs, of each partition in a broker's image."""
        cache = self._cache(broker_id)
        if cache is not None:
            for topic_id, topic in cache.image.topics_by_id.items():
                for number, each in topic.partitions.items():
                    yield topic_id, number, (each.leader, each.leader_epoch, each.partition_epoch)

    def _cache(self, broker_id: int, *, is_ready: bool = True) -> MetadataCache | None:
        """What a running broker knows of the cluster; ``is_ready``: only if it serves clients."""
        machine = self._world.machines[broker_id]
        is_there = machine.ready.is_set() or (machine.is_serving and not is_ready)
        if not is_there or machine.disk.is_dead or machine.is_faulty or machine.server is None:
            return None
        services = getattr(machine.server.assembly, "services", None)
        return None if services is None else services.metadata

    def _check_sessions(self) -> None:
        world, now_ms = self._world, trio.current_time() * 1000
        for machine in world.controllers.values():
            if not machine.controller.is_active:
                continue
            controller = machine.controller.node.controller
            for broker_id, broker in controller.state.image.quorum_brokers.items():
                heard_ms = self._heard.get((controller, broker_id, broker.epoch), 0)
                silent_ms = now_ms - max(heard_ms, self._claimed[controller])
                if not broker.is_fenced and silent_ms > world.session_timeout_ms + _LATE_MS:
                    world.violate(f"{broker_id} is not fenced by {machine.name}, after {silent_ms:.0f} ms of silence")

    def _check_transactions(self) -> None:
        now_ms = trio.current_time() * 1000
        for machine in self._world.controllers.values():
            is_open = machine.controller.is_active and machine.controller.node.controller.state.transaction is not None
            since_ms = self._open.setdefault(machine.name, now_ms) if is_open else self._open.pop(machine.name, now_ms)
            if now_ms - since_ms > _TRANSACTION_MS:
                self._world.violate(f"{machine.name} is active, and nobody ends the transaction in the metadata log")


def _difference(one: _Metadata, other: _Metadata) -> str:
    """The first difference."""
    for mine, theirs in ((one.partitions, other.partitions), (one.brokers, other.brokers)):
        for key in {**mine, **theirs}:  # type: ignore[dict-item]
            if mine.get(key) != theirs.get(key):  # type: ignore[attr-defined]
                return f"{key} is {mine.get(key)} and {theirs.get(key)}"  # type: ignore[attr-defined]
    return f"the next producer id is {one.next_producer_id} and {other.next_producer_id}"
