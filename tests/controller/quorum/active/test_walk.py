"""Random operations on a small cluster: whatever comes, the state is the replay of the log, and no partition breaks a rule."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.base.errors import KafkaError
from ottla.controller.quorum.active.brokers import unregister_broker
from ottla.controller.quorum.active.context import ActiveSettings, OperationContext
from ottla.controller.quorum.active.directories import assign_replicas
from ottla.controller.quorum.active.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from ottla.controller.quorum.active.image_index import ImageIndex
from ottla.controller.quorum.active.reassignments import alter_reassignments
from ottla.controller.quorum.active.state import ControllerState
from ottla.controller.quorum.active.topics import create_topics
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition, PartitionRegistration
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    DirectoryData,
    PartitionData,
    TopicData,
)
from ottla.wire.messages.create_partitions import CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.topic_records import PartitionChangeRecord

from ..helpers.images import contents
from .helpers.world import World, assigned_topic, counted_topic

BROKERS = range(1, 6)
TOPICS = ("a", "b.c", "d_e")


class Walk:
    """Brokers that come, go, die and say what is not so, and clients that want everything."""

    def __init__(self, seed: int, *, has_elr: bool) -> None:
        self.random = random.Random(seed)
        self.world = World(has_elr=has_elr, min_insync_replicas=2, default_replication_factor=3)
        self.lives = dict.fromkeys(BROKERS, 1)

        for broker_id in BROKERS:
            self.world.start(broker_id, directories=1 + broker_id % 2)
        self._do_create()
        self._operations = [getattr(self, name) for name, weight in _WEIGHTS.items() for _ in range(weight)]

    def step(self) -> None:
        """One operation; it may be refused."""
        try:
            self.random.choice(self._operations)()
        except KafkaError:
            self.world.commit()

    # --- brokers ------------------------------------------------------------------------------------------------------

    def _registered(self) -> list[int]:
        return list(self.world.image.quorum_brokers)

    def _do_register(self) -> None:
        broker_id = self.random.choice(BROKERS)
        known = self.world.image.quorum_brokers.get(broker_id)
        self.lives[broker_id] += self.random.random() < 0.7
        was_clean = known is not None and self.random.random() < 0.5
        self.world.register(
            broker_id,
            self.lives[broker_id],
            directories=1 + broker_id % 2,
            previous_broker_epoch=known.epoch if known is not None and was_clean else -1,
        )

    def _do_heartbeat(self) -> None:
        for broker_id in self._registered():
            if self.random.random() < 0.8:
                self.world.heartbeat(
                    broker_id, current_metadata_offset=self.world.log.next_offset - self.random.randint(1, 3)
                )

    def _do_shut_down(self) -> None:
        if self._registered():
            self.world.heartbeat(self.random.choice(self._registered()), want_shut_down=True)

    def _do_fence(self) -> None:
        if self._registered():
            self.world.heartbeat(self.random.choice(self._registered()), want_fence=True)

    def _do_pass_time(self) -> None:
        self.world.pass_time(self.random.randint(0, 6_000))

    def _do_lose_directory(self) -> None:
        if self._registered():
            broker = self.world.broker(self.random.choice(self._registered()))
            if len(broker.directories) > 1:
                self.world.heartbeat(broker.registration.broker_id, offline_log_dirs=[broker.directories[0]])

    def _do_unregister(self) -> None:
        if self._registered() and self.random.random() < 0.2:
            broker_id = self.random.choice(self._registered())
            self.world.do(lambda context: unregister_broker(context, broker_id))

    # --- topics -------------------------------------------------------------------------------------------------------

    def _partition(self) -> tuple[str, int, PartitionRegistration] | None:
        topics = list(self.world.image.topics)
        if not topics:
            return None
        name = self.random.choice(topics)
        number = self.random.choice(list(self.world.image.topics[name].partitions))
        return name, number, self.world.partition(name, number)

    def _do_create(self) -> None:
        name = self.random.choice(TOPICS)
        configs = self.random.choice([{}, {"unclean_leader_election_enable": "true"}, {"min_insync_replicas": "3"}])
        topic = counted_topic(name, self.random.randint(1, 4), self.random.randint(1, 4), **configs)
        self.world.create(CreateTopicsRequest(topics=[topic]))

    def _do_delete(self) -> None:
        if self.world.image.topics and self.random.random() < 0.15:
            name = self.random.choice(list(self.world.image.topics))
            self.world.delete(DeleteTopicsRequest(topics=[DeleteTopicState(name=name)]))

    def _do_add_partitions(self) -> None:
        if self.world.image.topics and self.random.random() < 0.2:
            name = self.random.choice(list(self.world.image.topics))
            count = len(self.world.image.topics[name].partitions) + 1
            self.world.add_partitions(CreatePartitionsTopic(name=name, count=count, assignments=None))

    def _do_propose(self) -> None:
        chosen = self._partition()
        if chosen is None or chosen[2].leader < 0 or chosen[2].leader not in self._registered():
            return
        name, number, partition = chosen
        others = [each for each in partition.replicas if each != partition.leader]
        isr = [partition.leader, *self.random.sample(others, self.random.randint(0, len(others)))]
        recovers = partition.is_recovering and self.random.random() < 0.5
        self.world.propose(
            name,
            *isr,
            number=number,
            partition_epoch=partition.partition_epoch - (self.random.random() < 0.1),
            leader_recovery_state=int(recovers),
        )

    def _do_reassign(self) -> None:
        chosen = self._partition()
        if chosen is None:
            return
        name, number, _ = chosen
        replicas = None if self.random.random() < 0.3 else self.random.sample(BROKERS, self.random.randint(1, 4))
        wanted = ReassignableTopic(
            name=name, partitions=[ReassignablePartition(partition_index=number, replicas=replicas)]
        )
        request = AlterPartitionReassignmentsRequest(topics=[wanted])
        self.world.do(lambda context: alter_reassignments(context, request))

    def _do_assign_directory(self) -> None:
        chosen = self._partition()
        if chosen is None:
            return
        name, number, partition = chosen
        broker_id = self.random.choice(partition.replicas)
        broker = self.world.broker(broker_id) if broker_id in self._registered() else None
        if broker is None:
            return
        topic = TopicData(
            topic_id=self.world.image.topics[name].topic_id, partitions=[PartitionData(partition_index=number)]
        )
        chosen_directory = DirectoryData(id=self.random.choice(broker.directories), topics=[topic])
        request = AssignReplicasToDirsRequest(
            broker_id=broker_id, broker_epoch=broker.epoch, directories=[chosen_directory]
        )
        self.world.do(lambda context: assign_replicas(context, request))

    def _do_elect(self) -> None:
        request = ElectLeadersRequest(election_type=self.random.randint(0, 1), topic_partitions=None)
        self.world.do(lambda context: elect_leaders(context, request))

    def _do_balance(self) -> None:
        self.world.do(balance_leaders)
        self.world.do(elect_unclean_leaders)

    def _do_renounce(self) -> None:
        """The leadership ends and is claimed again; what was not committed is gone."""
        if self.random.random() < 0.3:
            self.world.controller.renounce()
            self.world.controller.claim(2, self.world.now_ms)


_WEIGHTS = {
    "_do_heartbeat": 12,
    "_do_propose": 12,
    "_do_reassign": 4,
    "_do_pass_time": 4,
    "_do_fence": 3,
    "_do_register": 3,
    "_do_create": 3,
    "_do_elect": 2,
    "_do_balance": 2,
    "_do_shut_down": 2,
    "_do_assign_directory": 2,
    "_do_lose_directory": 1,
    "_do_unregister": 1,
    "_do_delete": 1,
    "_do_add_partitions": 1,
    "_do_renounce": 1,
}


class LogReplay:
    """The state that a node has which only reads the log."""

    def __init__(self, world: World) -> None:
        self._log = world.log
        self._settings = world.settings
        self._taken = self._end = 0
        self.state = ControllerState()

    def catch_up(self) -> ControllerState:
        for batch in self._log.batches[self._taken :]:
            self._end += len(batch)
            before = self.state.image.detached()
            self.state = self.state.apply([record for record, _ in batch], LogPosition(self._end - 1, 1, 0))
            check_batch(before, self.state.image, self._settings)
        self._taken = len(self._log.batches)
        return self.state


def plain(image: ClusterImage) -> dict[str, Any]:
    """Everything but what tells where in the log it is from."""
    found = contents(image)
    return found | {"position": None, "features": image.features and dict(image.features.levels)}


def index_of(index: ImageIndex) -> dict[str, Any]:
    by_broker = {
        name: {broker: set(keys) for broker, keys in getattr(index, name).items() if keys}
        for name in ("isr_members", "leaders", "elr_members", "directories")
    }
    sets = {name: set(getattr(index, name)) for name in ("not_preferred", "moving")}
    return {**by_broker, **sets, "names": {key: set(names) for key, names in index.similar_names.items()}}


def partitions(image: ClusterImage) -> Iterator[tuple[str, bytes, int, PartitionRegistration]]:
    for name, topic in image.topics.items():
        for number, partition in topic.partitions.items():
            yield name, topic.topic_id, number, partition


def check_partitions(image: ClusterImage, *, has_elr: bool) -> None:
    for name, _, number, partition in partitions(image):
        where = f"{name}-{number}: {partition}"
        assert set(partition.isr) <= set(partition.replicas), where
        assert len(set(partition.replicas)) == len(partition.replicas) == len(partition.directories), where
        assert partition.leader == -1 or partition.leader in partition.isr, where
        assert partition.isr or has_elr, where
        assert not set(partition.isr) & set(partition.elr), where
        assert set(partition.adding) <= set(partition.replicas), where
        assert set(partition.removing) <= set(partition.replicas), where
        if not has_elr:
            assert not partition.elr and not partition.last_known_elr, where
        if partition.leader >= 0:
            leader = image.quorum_brokers.get(partition.leader)
            assert leader is not None and not leader.is_fenced, f"a fenced broker leads {where}"
            assert not partition.last_known_elr, where
        for replica in partition.isr:
            if partition.leader >= 0:
                broker = image.quorum_brokers.get(replica)
                assert broker is not None and not broker.is_fenced, f"a fenced broker is in sync in {where}"


def check_batch(before: ClusterImage, after: ClusterImage, settings: ActiveSettings) -> None:
    """Epochs grow with what changes. Who becomes eligible has been in sync, and a full ISR needs nobody beside it."""
    known = {(topic_id, number): partition for _, topic_id, number, partition in partitions(before)}
    contexts = [OperationContext(ControllerState(image), settings) for image in (before, after)]
    for name, topic_id, number, partition in partitions(after):
        old = known.get((topic_id, number))
        if old is None or old == partition:
            continue
        where = f"{name}-{number}: {old} became {partition}"
        assert partition.partition_epoch > old.partition_epoch, where
        assert partition.leader_epoch >= old.leader_epoch, where
        if partition.leader != old.leader:
            assert partition.leader_epoch > old.leader_epoch, where
        assert set(partition.elr) <= {*old.elr, *old.isr}, where
        minimum = max(min_isr(context, topic_id) for context in contexts)
        was_elected_of_elr = (
            partition.isr == (partition.leader,) and partition.leader in old.elr
        )  # the others stay for now
        if len(partition.isr) >= minimum and not was_elected_of_elr:
            assert not partition.elr, where


def min_isr(context: OperationContext, topic_id: bytes) -> int:
    topic = context.topic(topic_id)
    assert topic is not None
    return context.min_isr(topic)


@pytest.mark.parametrize("has_elr", [True, False], ids=["elr", "no elr"])
@pytest.mark.parametrize("seed", range(6))
def test_a_walk(seed: int, has_elr: bool) -> None:
    walk = Walk(seed, has_elr=has_elr)
    world, replay = walk.world, LogReplay(walk.world)
    for _ in range(200):
        walk.step()
        state = replay.catch_up()
        assert plain(state.image) == plain(world.image)
        assert index_of(world.controller.state.index) == index_of(state.index) == index_of(ImageIndex.of(state.image))
        assert state.registration_offsets == world.controller.state.registration_offsets
        assert state.counts == world.controller.state.counts == state.counts.replaced(state.image)
        check_partitions(state.image, has_elr=has_elr)
    assert sum(isinstance(record, PartitionChangeRecord) for record in world.log.records) > 30


@pytest.mark.parametrize("seed", range(4))
def test_a_leadership_that_ends_leaves_what_was_committed(seed: int) -> None:
    walk = Walk(seed, has_elr=True)
    for _ in range(60):
        walk.step()
    world = walk.world
    world.pass_time(world.settings.session_timeout_ms + 1)
    world.start(1, life=9)
    committed = plain(LogReplay(world).catch_up().image)
    for number in range(3):
        request = CreateTopicsRequest(topics=[assigned_topic(f"uncommitted.{number}", (1,))])
        world.controller.run(_creation(world, request), lambda response: None)
    assert any(name.startswith("uncommitted") for name in world.image.topics)
    world.controller.renounce()
    assert plain(world.controller.state.image) == committed
    assert index_of(world.controller.state.index) == index_of(ImageIndex.of(world.image))


def _creation(world: World, request: CreateTopicsRequest) -> Any:
    return lambda context: create_topics(context, request, world.creation())
