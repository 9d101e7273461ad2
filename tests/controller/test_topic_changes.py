"""What other brokers and programs leave in the store: topics, partitions, deletions, notifications, nonsense."""

from __future__ import annotations

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SystemClock
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, Operation, Set
from ottla.metadata.types import LeaderState, ReplicaAssignment, TopicAssignment
from ottla.tests.controller.helpers.cluster import Cluster, running, until
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest
from ottla.wire.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from ottla.wire.messages.update_metadata import UpdateMetadataRequest
from ottla.wire.schema import ZERO_UUID

ID = bytes(range(16))


def topic_data(*replicas: tuple[int, ...], topic_id: bytes = ID) -> bytes:
    """A topic's node with these replicas by partition."""
    return znodes.encode_topic(TopicAssignment(topic_id, {n: ReplicaAssignment(r) for n, r in enumerate(replicas)}))


def made_by_another_broker(name: str, *replicas: tuple[int, ...], **configs: str) -> list[Operation]:
    return [
        Create(znodes.topic_config_path(name), znodes.encode_config(configs)),
        Create(znodes.topic_path(name), topic_data(*replicas)),
    ]


async def gone(cluster: Cluster, path: str) -> None:
    with trio.fail_after(10):
        while await cluster.session.exists(path) is not None:
            await trio.sleep(0.005)


# --- topics -----------------------------------------------------------------------------------------------------------


async def test_a_topic_made_by_another_broker_gets_its_first_leaders() -> None:
    async with running(brokers=2) as cluster:
        operations = made_by_another_broker("auto", (2, 1), (1,), **{"retention.ms": "5"})
        await cluster.session.multi(operations)
        await until(lambda: cluster.brokers[2].metadata.topic("auto") is not None)
        assert await cluster.state("auto", 0) == LeaderState(2, 0, (2, 1), 1)
        assert await cluster.state("auto", 1) == LeaderState(1, 0, (1,), 1)
        (lead,) = cluster.brokers[2].told(LeaderAndIsrRequest)
        assert [p.is_new for p in lead.topic_states[0].partition_states] == [True]
        assert cluster.brokers[1].metadata.topic_id("auto") == ID
        assert cluster.configs.metadata.image.topic_config("auto") == {"retention.ms": "5"}
        await cluster.controller.create_partitions("auto", 3)  # it is a topic as any other
        assert len(cluster.brokers[1].metadata.topics["auto"].partitions) == 3


async def test_partitions_added_in_the_store_get_their_first_leaders() -> None:
    async with running(brokers=2) as cluster:
        await cluster.session.multi(made_by_another_broker("t", (2, 1)))
        await until(lambda: cluster.brokers[1].metadata.topic("t") is not None)
        for count in (2, 3):  # the watch is armed again each time
            await cluster.session.multi([Set(znodes.topic_path("t"), topic_data(*[(2, 1)] * count))])
            await until(lambda count=count: len(cluster.brokers[1].metadata.topics["t"].partitions) == count)  # type: ignore[misc]
        assert await cluster.state("t", 2) == LeaderState(2, 0, (2, 1), 1)
        assert await cluster.state("t", 0) == LeaderState(2, 0, (2, 1), 1)


async def test_a_topic_that_another_broker_makes_again_is_watched_again() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t"))
        await cluster.controller.delete_topics(["t"])
        await until(lambda: cluster.controller._events.is_idle)
        await cluster.session.multi(made_by_another_broker("t", (2, 1)))
        await until(lambda: cluster.brokers[2].metadata.topic_id("t") == ID)
        await cluster.session.multi([Set(znodes.topic_path("t"), topic_data((2, 1), (2, 1)))])
        await until(lambda: len(cluster.brokers[2].metadata.topics["t"].partitions) == 2)


async def test_topics_made_while_the_session_is_suspected_are_found_after_it() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        cluster.controller.suspend()
        cluster.sessions[1]._watches.drop()
        await cluster.session.multi(made_by_another_broker("auto", (2, 1)))
        node = znodes.decode_topic((await cluster.session.get(znodes.topic_path("t"))).data)
        grown = topic_data((2, 1), (1, 2), topic_id=node.topic_id)
        await cluster.session.multi([Set(znodes.topic_path("t"), grown)])
        cluster.controller.resume()
        await until(lambda: cluster.brokers[2].metadata.topic("auto") is not None)
        await until(lambda: len(cluster.brokers[2].metadata.topics["t"].partitions) == 2)


async def test_a_topic_without_an_id_gets_one() -> None:
    async with running(brokers=1) as cluster:
        path = znodes.topic_path("old")
        await cluster.session.multi([Create(path, topic_data((1,), topic_id=ZERO_UUID))])
        await until(lambda: cluster.brokers[1].metadata.topic("old") is not None)
        topic_id = cluster.brokers[1].metadata.topic_id("old")
        assert topic_id != ZERO_UUID
        assert znodes.decode_topic((await cluster.session.get(path)).data).topic_id == topic_id


# --- deletions --------------------------------------------------------------------------------------------------------


async def test_a_deletion_marked_by_another_broker_is_done() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}), NewTopic("kept"))
        await cluster.session.multi([Create(znodes.delete_topic_path("t")), Create(znodes.delete_topic_path("none"))])
        await gone(cluster, znodes.delete_topic_path("t"))
        await gone(cluster, znodes.delete_topic_path("none"))
        assert await cluster.session.children(znodes.TOPICS) == ["kept"]
        assert list(cluster.brokers[2].metadata.topics) == ["kept"]


async def test_a_mark_goes_where_topics_are_not_to_be_deleted() -> None:
    async with running(settings={"delete.topic.enable": "false"}) as cluster:
        await cluster.create(NewTopic("t"))
        await cluster.session.multi([Create(znodes.delete_topic_path("t"))])
        await gone(cluster, znodes.delete_topic_path("t"))
        assert await cluster.session.children(znodes.TOPICS) == ["t"]


async def test_a_deletion_goes_as_far_as_it_can_and_is_finished_when_the_last_broker_is_back() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3], 1: [3, 1, 2]}))
        await cluster.die(2)
        await cluster.die(3)
        await cluster.controller.delete_topics(["t"])
        assert cluster.brokers[1].metadata.topic("t") is None
        assert len(cluster.brokers[1].told(StopReplicaRequest)) == 1
        await cluster.come_back(3)
        await until(lambda: cluster.brokers[3].told(StopReplicaRequest) != [])
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        await cluster.controller.resign()  # the next controller goes on with it
        await cluster.controller.elect()
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        for broker in cluster.brokers.values():
            broker.requests.clear()
        await cluster.come_back(2)
        await gone(cluster, znodes.delete_topic_path("t"))
        assert await cluster.session.children(znodes.TOPICS) == []
        (stop,) = cluster.brokers[2].told(StopReplicaRequest)
        assert [p.delete_partition for p in stop.topic_states[0].partition_states] == [True, True]
        assert cluster.brokers[2].told(LeaderAndIsrRequest) == []


async def test_a_replica_that_could_not_be_deleted_waits_for_the_restart_of_its_broker() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        cluster.brokers[2].lost = {0}
        await cluster.controller.delete_topics(["t"])
        await until(lambda: cluster.brokers[2].told(StopReplicaRequest) != [])
        await cluster.create(NewTopic("other"))
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        cluster.brokers[2].lost = set()
        await cluster.restart(2)
        await gone(cluster, znodes.delete_topic_path("t"))


async def test_a_replica_that_was_only_stopped_is_not_deleted_yet() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        original = cluster.brokers[2].stop_replica
        answers = [trio.Event(), trio.Event()]
        asked: list[StopReplicaRequest] = []

        async def stop_replica(request: StopReplicaRequest) -> StopReplicaResponse:
            asked.append(request)
            await answers[len(asked) - 1].wait()
            return await original(request)

        cluster.brokers[2].stop_replica = stop_replica  # type: ignore[method-assign]
        await cluster.controller.controlled_shutdown(ControlledShutdownRequest(broker_id=2))
        await until(lambda: len(asked) == 1)
        await cluster.controller.delete_topics(["t"])
        answers[0].set()
        await until(lambda: len(asked) == 2)
        await cluster.create(NewTopic("other", assignment={0: [1]}))  # the answer was handled before
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        answers[1].set()
        await gone(cluster, znodes.delete_topic_path("t"))


async def test_topics_are_made_and_enlarged_while_a_broker_is_down() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await cluster.die(2)
        results = await cluster.controller.create_topics([NewTopic("far", assignment={0: [2]}), NewTopic("new", 2, 2)])
        assert [r.code if isinstance(r, KafkaError) else 0 for r in results.values()] == [
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            0,
        ]
        await cluster.controller.create_partitions("t", 2, [[3, 1]])
        assert await cluster.state("t", 1) == LeaderState(3, 0, (3, 1), 1)
        await cluster.come_back(2)
        await until(lambda: len(cluster.brokers[2].metadata.topics) == 2)
        assert set(cluster.brokers[2].metadata.topics["new"].partitions[0].replicas) == {1, 3}


# --- notifications ----------------------------------------------------------------------------------------------------


async def test_states_that_an_older_leader_wrote_are_told_to_all() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2]}'
        change = b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"none","partition":0}]}'
        path = znodes.ISR_CHANGES + "/isr_change_"
        await cluster.session.multi(
            [
                Set(znodes.state_path("t", 0), state),
                Create(path, change, sequence=True),
                Create(path, b"?", sequence=True),
            ]
        )
        for broker in cluster.brokers.values():
            await until(lambda broker=broker: broker.metadata.partition("t", 0).isr == (2,))  # type: ignore[misc]
            assert isinstance(broker.requests[-1], UpdateMetadataRequest)
        with trio.fail_after(10):
            while await cluster.session.children(znodes.ISR_CHANGES):
                await trio.sleep(0.005)


async def test_a_failed_folder_of_a_broker_that_nobody_can_tell_is_passed_over() -> None:
    async with running() as cluster:
        await cluster.session.multi([Create(znodes.LOG_DIR_EVENT_PREFIX, b"?", sequence=True)])
        with trio.fail_after(10):
            while await cluster.session.children(znodes.LOG_DIR_EVENTS):
                await trio.sleep(0.005)
        assert cluster.controller.is_active


# --- nonsense ---------------------------------------------------------------------------------------------------------


async def test_a_topic_that_is_not_understood_is_passed_over_and_the_others_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    async with running(store=store) as cluster:
        await cluster.create(NewTopic("good"), NewTopic("state"), NewTopic("config"))
        await cluster.session.multi(
            [
                Create(znodes.topic_path("topic"), b'{"partitions":[]}'),
                Set(znodes.state_path("state", 0), b"{}"),
                Set(znodes.topic_config_path("config"), b"[]"),
            ]
        )
        await cluster.create(NewTopic("later"))
        assert "/brokers/topics/topic is ignored" in caplog.text
        assert cluster.controller.is_active
    async with running(store=store) as cluster:
        assert sorted(cluster.brokers[1].metadata.topics) == ["config", "good", "later"]
        assert "/brokers/topics/state/partitions/0/state is ignored" in caplog.text
        await cluster.create(NewTopic("more"))
        refused = (await cluster.controller.create_topics([NewTopic("state")]))["state"]
        assert isinstance(refused, KafkaError)
        assert refused.code == ErrorCode.TOPIC_ALREADY_EXISTS


async def test_a_state_that_is_not_understood_any_more_is_written_again() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await cluster.session.multi([Set(znodes.state_path("t", 0), b"nonsense")])
        await cluster.die(2)
        assert await cluster.state("t") == LeaderState(1, 1, (1,), 1)


async def test_a_first_state_that_is_not_understood_is_passed_over() -> None:
    async with running(brokers=2) as cluster:
        await cluster.controller.controlled_shutdown(ControlledShutdownRequest(broker_id=2))
        await cluster.create(NewTopic("t", assignment={0: [2]}))
        await cluster.session.multi([Create(znodes.state_path("t", 0), b"nonsense")])
        await cluster.restart(2)
        await cluster.create(NewTopic("other", assignment={0: [2]}))
        await cluster.until_state("other", LeaderState(2, 0, (2,), 1))


async def test_a_topic_that_another_program_removed_is_forgotten() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t"))
        nodes = [znodes.state_path("t", 0), znodes.partition_path("t", 0), znodes.partitions_path("t")]
        await cluster.session.multi([Delete(path) for path in (*nodes, znodes.topic_path("t"))])
        await cluster.create(NewTopic("other"))
        await cluster.create(NewTopic("t"))
