"""Brokers that do not answer their controller: they are told in the end, and are not waited for meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.active.controller_channel_manager import ControllerChannelManager
from ottla.controller.zookeeper.active.request_batch import ControllerBrokerRequestBatch
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.state.context import LiveBroker
from ottla.tests.controller.helpers.cluster import Cluster, RecordingBroker, join, registration, running, until
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ottla.wire.messages.stop_replica import StopReplicaPartitionState, StopReplicaRequest, StopReplicaTopicState
from ottla.wire.messages.update_metadata import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

REQUESTS = ("leader_and_isr", "update_metadata", "stop_replica")


class Faults:
    """Stands between the controller and one broker: requests wait from ``hang`` to ``go_on``, and fail while it ``refuses``."""

    def __init__(self, broker: RecordingBroker) -> None:
        self.refuses = False
        self._may_go_on = trio.Event()
        self._may_go_on.set()
        self.attempts = 0
        self.in_flight = 0
        self.most_in_flight = 0
        for name in REQUESTS:
            setattr(broker, name, self._through(getattr(broker, name)))

    def hang(self) -> None:
        self._may_go_on = trio.Event()

    def go_on(self) -> None:
        self._may_go_on.set()

    def _through(self, original: Any) -> Any:
        async def ask(request: Any) -> Any:
            self.attempts += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                if self.refuses:
                    raise OSError("connection refused")
                await self._may_go_on.wait()
                return await original(request)
            finally:
                self.in_flight -= 1

        return ask


def topics_of(cluster: Cluster, broker_id: int) -> list[str]:
    return sorted(cluster.brokers[broker_id].metadata.topics)


async def test_nobody_waits_for_a_broker_that_hangs(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        faults = Faults(cluster.brokers[2])
        faults.hang()
        before = trio.current_time()
        await cluster.create(NewTopic("shared", assignment={0: [2, 1, 3]}), NewTopic("other"))
        await cluster.controller.create_partitions("other", 3)
        assert trio.current_time() - before < 1
        await cluster.sessions[3].expire()
        await until(lambda: not cluster.brokers[1].metadata.is_alive(3))
        await join(cluster.store.session(), 3)
        await until(lambda: topics_of(cluster, 3) == ["other", "shared"])
        assert faults.attempts == 1
        faults.go_on()
        await until(lambda: topics_of(cluster, 2) == ["other", "shared"])
        assert faults.most_in_flight == 1
        assert len(cluster.brokers[2].metadata.topics["other"].partitions) == 3


async def test_a_controller_that_stops_tells_first_who_leads_then(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        faults = Faults(cluster.brokers[3])

        async def stop(broker_id: int, held_up: float) -> float:
            before = trio.current_time()
            faults.hang()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(
                    cluster.controller.controlled_shutdown, ControlledShutdownRequest(broker_id=broker_id)
                )
                await trio.sleep(held_up)
                faults.go_on()
            return trio.current_time() - before

        assert await stop(1, 0.5) == 0.5
        assert cluster.brokers[3].leader_epochs("t") == {0: 1}
        faults.hang()
        before = trio.current_time()
        await cluster.controller.controlled_shutdown(ControlledShutdownRequest(broker_id=2))
        assert trio.current_time() == before, "the controller stays, and tells it later"
        await cluster.controller.controlled_shutdown(ControlledShutdownRequest(broker_id=1))
        assert trio.current_time() == before + 1, "a broker that is dead is not waited for"


async def test_what_waits_for_a_broker_is_counted(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2) as cluster:
        queues = dict(cluster.controller.figures.senders.queues())
        assert [queues[broker_id].size for broker_id in (1, 2)] == [0, 0]
        before = queues[2].times.sum
        faults = Faults(cluster.brokers[2])
        faults.hang()
        await cluster.create(NewTopic("a", assignment={0: [2, 1]}), NewTopic("b", assignment={0: [2]}))
        await cluster.create(NewTopic("c", assignment={0: [1]}))
        await cluster.create(NewTopic("d", assignment={0: [1]}))
        assert [queues[broker_id].size for broker_id in (1, 2)] == [0, 3], "LeaderAndIsr, and UpdateMetadata twice"
        await trio.sleep(4)
        faults.go_on()
        await until(lambda: not queues[2].size)
        assert queues[2].times.sum - before >= 8000


async def test_a_request_that_waits_for_its_own_broker_can_be_cancelled() -> None:
    async with running() as cluster:
        Faults(cluster.brokers[1]).hang()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(cluster.create, NewTopic("t"))
                while not await cluster.session.children(znodes.TOPICS):
                    await trio.lowlevel.checkpoint()
                await trio.testing.wait_all_tasks_blocked()
                scope.cancel()
        assert scope.cancelled_caught


async def test_a_request_waits_for_its_own_broker_for_thirty_seconds(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        Faults(cluster.brokers[1]).hang()
        before = trio.current_time()
        await cluster.create(NewTopic("t"))
        assert trio.current_time() - before == pytest.approx(30, abs=0.1)


async def test_a_broker_that_is_not_reached_is_told_all_in_order_once_it_is(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(brokers=2) as cluster:
        faults = Faults(cluster.brokers[2])
        faults.refuses = True
        cluster.brokers[2].requests.clear()
        for number in range(20):
            await cluster.create(NewTopic(f"t{number}", assignment={0: [2, 1]}))
        await cluster.controller.create_partitions("t19", 2, [[2, 1]])
        await trio.sleep(1)
        assert faults.attempts in range(9, 13)  # one each 100 ms
        assert cluster.brokers[2].requests == []
        faults.refuses = False
        await until(lambda: len(topics_of(cluster, 2)) == 20)
        kinds = [type(request) for request in cluster.brokers[2].requests]
        assert kinds == [LeaderAndIsrRequest, UpdateMetadataRequest] * 2
        led = [state for state in cluster.brokers[2].requests[2].topic_states if state.topic_name == "t19"]
        assert [(p.partition_index, p.is_new) for p in led[0].partition_states] == [(0, True), (1, True)]


async def test_a_broker_that_is_not_reached_is_given_up_with_its_registration(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        faults = Faults(cluster.brokers[2])
        faults.refuses = True
        await cluster.create(NewTopic("u", assignment={0: [2, 1]}))
        await cluster.sessions[2].expire()
        await until(lambda: not cluster.brokers[1].metadata.is_alive(2))
        attempts = faults.attempts
        await trio.sleep(10)
        assert faults.attempts == attempts
        state = cluster.brokers[1].metadata.partition("u", 0)
        assert (state.leader, state.isr) == (1, (1,))
        faults.refuses = False
        cluster.brokers[2].requests.clear()
        await join(cluster.store.session(), 2)
        await until(lambda: len(cluster.brokers[2].requests) == 3)
        kinds = [type(r) for r in cluster.brokers[2].requests]
        assert kinds == [UpdateMetadataRequest, LeaderAndIsrRequest, UpdateMetadataRequest]
        assert topics_of(cluster, 2) == ["t", "u"]


async def test_a_deletion_is_done_when_the_last_broker_has_answered(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}), NewTopic("own", assignment={0: [1]}))
        faults = Faults(cluster.brokers[2])
        faults.refuses = True
        before = trio.current_time()
        assert await cluster.controller.delete_topics(["t", "own"]) == {"t": None, "own": None}
        assert trio.current_time() - before < 1
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        assert topics_of(cluster, 1) == []
        faults.refuses = False
        while await cluster.session.children(znodes.DELETE_TOPICS):
            await trio.sleep(0.1)
        assert await cluster.session.children(znodes.TOPICS) == []
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await until(lambda: topics_of(cluster, 2) == ["t"])


async def test_a_session_that_expires_while_a_broker_hangs(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2) as cluster:
        faults = Faults(cluster.brokers[2])
        faults.hang()
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        before = cluster.member.broker_epoch
        await cluster.sessions[1].expire()
        await until(lambda: cluster.controller.is_active and cluster.member.broker_epoch > before)
        await cluster.create(NewTopic("u"))
        faults.go_on()
        await until(lambda: topics_of(cluster, 2) == ["t", "u"])


def lead(
    topic: str, *partitions: int, is_new: bool = False, topic_id: bytes = bytes(16)
) -> ControllerBrokerRequestBatch:
    states = [LeaderAndIsrPartitionState(partition_index=number, is_new=is_new) for number in partitions]
    leader = LeaderAndIsrLiveLeader(broker_id=len(partitions), host_name="h", port=1)
    named = LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id, partition_states=states)
    return ControllerBrokerRequestBatch(leader_and_isr=LeaderAndIsrRequest(topic_states=[named], live_leaders=[leader]))


def update(topic: str, leader: int, *partitions: int, topic_id: bytes = bytes(16)) -> ControllerBrokerRequestBatch:
    states = [UpdateMetadataPartitionState(partition_index=number, leader=leader) for number in partitions]
    named = UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=states)
    return ControllerBrokerRequestBatch(update_metadata=UpdateMetadataRequest(topic_states=[named]))


def stop(topic: str, *partitions: int, delete: bool) -> ControllerBrokerRequestBatch:
    states = [StopReplicaPartitionState(partition_index=number, delete_partition=delete) for number in partitions]
    named = StopReplicaTopicState(topic_name=topic, partition_states=states)
    return ControllerBrokerRequestBatch(stop_replica=StopReplicaRequest(topic_states=[named]))


def test_a_partition_that_is_new_stays_new_until_the_broker_has_heard_of_it() -> None:
    batch = lead("t", 0, 1, is_new=True)
    assert batch.take(lead("t", 1))
    assert batch.take(lead("u", 0, 1, 2))
    request = batch.leader_and_isr
    assert request is not None
    assert [
        [(state.partition_index, state.is_new) for state in topic.partition_states] for topic in request.topic_states
    ] == [[(0, True), (1, True)], [(0, False), (1, False), (2, False)]]
    assert [leader.broker_id for leader in request.live_leaders] == [2, 1, 3]


def test_a_topic_that_was_deleted_and_made_again_is_told_as_both_in_order() -> None:
    batch = update("t", -2, 0, 1, topic_id=b"a" * 16)
    assert batch.take(update("t", 1, 0, topic_id=b"b" * 16))
    assert batch.take(update("t", 2, 0, topic_id=b"b" * 16))
    request = batch.update_metadata
    assert request is not None
    assert [
        (topic.topic_id[:1], [(state.partition_index, state.leader) for state in topic.partition_states])
        for topic in request.topic_states
    ] == [(b"a", [(0, -2), (1, -2)]), (b"b", [(0, 2)])]


def test_a_replica_that_is_to_be_deleted_is_not_spared_by_a_later_stop() -> None:
    batch = stop("t", 0, delete=True)
    assert batch.take(stop("t", 0, 1, delete=False))
    assert batch.stop_replica is not None
    (topic,) = batch.stop_replica.topic_states
    assert [(state.partition_index, state.delete_partition) for state in topic.partition_states] == [
        (0, True),
        (1, False),
    ]


def test_a_replica_that_is_made_again_after_its_end_is_not_ended_after_that() -> None:
    batch = stop("t", 0, delete=True)
    assert batch.take(lead("t", 1))
    assert not batch.take(lead("t", 0))
    assert batch.leader_and_isr is not None
    assert [state.partition_index for state in batch.leader_and_isr.topic_states[0].partition_states] == [1]


async def test_a_broker_that_comes_while_the_senders_end_is_sent_to_by_the_next_run() -> None:
    """Events are handled until the controller's task itself is told of the end."""
    for ticks in [*range(4)] * 10:
        broker = RecordingBroker()
        senders = ControllerChannelManager(lambda live, broker=broker: broker, lambda answer: None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(senders.run)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
            for _ in range(ticks):
                await trio.lowlevel.cancel_shielded_checkpoint()
            senders.follow({2: LiveBroker(registration(2), 2)})
            senders.send({}, {2: UpdateMetadataRequest()}, {})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(senders.run)
            with trio.fail_after(10):
                while not broker.requests:
                    await trio.sleep(0)
            nursery.cancel_scope.cancel()
