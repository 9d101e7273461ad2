"""The controller on an embedded store: topics made, told to brokers, enlarged, deleted, and found again after a restart."""

from __future__ import annotations

import pytest
import trio

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SystemClock
from ottla.controller.new_topics import CreatedTopic, NewTopic
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.registration import report_log_dir_failure
from ottla.controller.zookeeper.store.cluster_store import Create, Delete
from ottla.metadata.image import TopicImage
from ottla.tests.controller.helpers.cluster import Cluster, join, running, until
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.wire.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from ottla.wire.messages.stop_replica import StopReplicaRequest
from ottla.wire.messages.update_metadata import UpdateMetadataRequest
from ottla.wire.schema import uuid_to_text


async def test_a_new_topic_is_ready_before_it_is_seen() -> None:
    async with running() as cluster:
        broker = cluster.brokers[1]
        broker.requests.clear()
        await cluster.create(NewTopic("orders", 3))
        first, second = broker.requests
        assert isinstance(first, LeaderAndIsrRequest)
        assert isinstance(second, UpdateMetadataRequest)
        assert all(p.is_new and p.leader == 1 and p.leader_epoch == 0 for p in first.topic_states[0].partition_states)
        topic = broker.metadata.topic("orders")
        assert topic is not None
        assert sorted(topic.partitions) == [0, 1, 2]
        assert first.topic_states[0].topic_id == topic.topic_id


async def test_a_restarted_cluster_has_its_topics_with_raised_leader_epochs() -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    async with running(store=store) as cluster:
        await cluster.create(NewTopic("orders", 2, configs={"retention.ms": "1000"}))
        topic = cluster.brokers[1].metadata.topic("orders")
        assert topic is not None
    async with running(store=store) as cluster:
        again = cluster.brokers[1].metadata.topic("orders")
        assert again is not None
        assert again.topic_id == topic.topic_id
        assert cluster.brokers[1].leader_epochs("orders") == {0: 1, 1: 1}
        assert cluster.configs.metadata.image.topic_config("orders") == {"retention.ms": "1000"}
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"2"


async def test_deletion_tells_clients_first_then_replicas_then_removes_every_node() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("orders", 2))
        broker = cluster.brokers[1]
        broker.requests.clear()
        assert await cluster.controller.delete_topics(["orders"]) == {"orders": None}
        update, stop = broker.requests
        assert {p.leader for p in update.topic_states[0].partition_states} == {-2}
        assert all(p.delete_partition and p.leader_epoch == -2 for p in stop.topic_states[0].partition_states)
        assert broker.metadata.topic("orders") is None
        assert await cluster.session.children(znodes.TOPICS) == []
        assert await cluster.session.children(znodes.TOPIC_CONFIGS) == []
        assert await cluster.session.children(znodes.DELETE_TOPICS) == []


async def test_a_topic_made_again_has_another_id() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("orders"))
        before = cluster.brokers[1].metadata.topic_id("orders")
        await cluster.controller.delete_topics(["orders"])
        await cluster.create(NewTopic("orders"))
        assert cluster.brokers[1].metadata.topic_id("orders") not in (before, None)
        assert cluster.brokers[1].metadata.topic_name(before or b"") is None


async def test_partitions_are_added_at_the_end() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("orders", 2))
        await cluster.controller.create_partitions("orders", 5)
        topic = cluster.brokers[1].metadata.topic("orders")
        assert topic is not None
        assert list(topic.partitions) == [0, 1, 2, 3, 4]
        with pytest.raises(KafkaError) as caught:
            await cluster.controller.create_partitions("orders", 5)
        assert caught.value.code == ErrorCode.INVALID_PARTITIONS


async def test_leadership_moves_when_a_broker_dies_and_its_replica_comes_back() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("orders", assignment={0: [2, 1, 3]}))
        metadata = cluster.brokers[1].metadata
        await cluster.sessions[2].expire()
        await until(lambda: not metadata.is_alive(2) and not cluster.brokers[3].metadata.is_alive(2))
        state = metadata.partition("orders", 0)
        assert state is not None
        assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1, 3))
        assert state.offline == (2,)
        cluster.brokers[2].requests.clear()
        cluster.brokers[3].requests.clear()
        await join(cluster.store.session(), 2)
        await until(lambda: len(cluster.brokers[2].requests) == 3 and len(cluster.brokers[3].requests) == 2)
        everything, lead, _ = cluster.brokers[2].requests
        assert isinstance(everything, UpdateMetadataRequest)
        assert [topic.topic_name for topic in everything.topic_states] == ["orders"]
        assert isinstance(lead, LeaderAndIsrRequest)
        who_is_there, back = cluster.brokers[3].requests
        assert [broker.id for broker in who_is_there.live_brokers] == [1, 2, 3]
        assert who_is_there.topic_states == []
        assert back.topic_states[0].partition_states[0].offline_replicas == []


async def test_partitions_in_a_failed_folder_lose_their_leader() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("orders", assignment={0: [2, 1]}), NewTopic("own", assignment={0: [2], 1: [2]}))
        metadata = cluster.brokers[1].metadata
        cluster.brokers[2].lost = {0}
        await report_log_dir_failure(cluster.sessions[2], 2)
        with trio.fail_after(5):
            while metadata.partition("orders", 0).offline != (2,):
                await trio.lowlevel.checkpoint()
            while await cluster.session.children(znodes.LOG_DIR_EVENTS):
                await trio.lowlevel.checkpoint()
        states = [metadata.partition(*key) for key in (("orders", 0), ("own", 0), ("own", 1))]
        assert [(state.leader, state.isr, state.offline) for state in states] == [
            (1, (1,), (2,)),
            (-1, (2,), (2,)),
            (2, (2,), ()),
        ]
        cluster.brokers[2].lost = set()
        await cluster.sessions[2].expire()
        await join(cluster.store.session(), 2)
        with trio.fail_after(5):
            while metadata.partition("own", 0).leader != 2:
                await trio.lowlevel.checkpoint()
        assert metadata.partition("own", 0).offline == ()


async def test_a_controller_finds_out_at_its_start_what_is_in_a_failed_folder() -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    async with running(store=store) as cluster:
        await cluster.create(NewTopic("orders", 2))
    cluster = Cluster(store)
    cluster.brokers[1].lost = {1}
    await report_log_dir_failure(cluster.session, 1)
    await cluster.start()
    states = [cluster.brokers[1].metadata.partition("orders", number) for number in range(2)]
    assert [(state.leader, state.isr, state.offline) for state in states] == [(1, (1,), ()), (-1, (1,), (1,))]
    assert await cluster.session.children(znodes.LOG_DIR_EVENTS) == []
    await cluster.session.close()


async def test_a_partition_without_live_replica_waits_for_one() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("orders", assignment={0: [2]}))
        metadata = cluster.brokers[1].metadata
        await cluster.sessions[2].expire()
        with trio.fail_after(5):
            while (state := metadata.partition("orders", 0)) is None or state.leader != -1:
                await trio.lowlevel.checkpoint()
        assert state.isr == (2,)
        await join(cluster.store.session(), 2)
        with trio.fail_after(5):
            while (state := metadata.partition("orders", 0)) is None or state.leader != 2:
                await trio.lowlevel.checkpoint()
        assert state.leader_epoch == 2


def partition_count(topic: TopicImage | None) -> int:
    return len(topic.partitions) if topic is not None else 0


async def refused(cluster: Cluster, *topics: NewTopic, validate_only: bool = False) -> list[ErrorCode]:
    """Error codes by topic, NONE where it was made."""
    results = await cluster.controller.create_topics(topics, validate_only=validate_only)
    return [r.code if isinstance(r, KafkaError) else ErrorCode.NONE for r in results.values()]


async def test_defaults_stand_for_what_is_not_named() -> None:
    async with running(brokers=3) as cluster:
        results = await cluster.controller.create_topics([NewTopic("a"), NewTopic("b", 4, 3)])
        made = [r for r in results.values() if isinstance(r, CreatedTopic)]
        assert [(m.partition_count, m.replication_factor) for m in made] == [(1, 1), (4, 3)]


async def test_one_topics_failure_does_not_touch_the_others() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("there"))
        codes = await refused(
            cluster,
            NewTopic("there"),
            NewTopic("a.b"),
            NewTopic("a_b"),
            NewTopic("bad name"),
            NewTopic("wide", replication_factor=2),
            NewTopic("odd", configs={"nope": "1"}),
            NewTopic("both", 1, assignment={0: [1]}),
            NewTopic("far", assignment={0: [7]}),
            NewTopic("fine", 2),
        )
        assert codes == [
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.NONE,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.NONE,
        ]
        assert sorted(cluster.brokers[1].metadata.topics) == ["a.b", "fine", "there"]


async def test_validation_alone_makes_nothing_and_sees_what_exists() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("there"))
        codes = await refused(cluster, NewTopic("there"), NewTopic("new"), validate_only=True)
        assert codes == [ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE]
        assert await cluster.session.children(znodes.TOPICS) == ["there"]


async def test_one_request_makes_no_more_than_ten_thousand_partitions() -> None:
    async with running() as cluster:
        codes = await refused(cluster, NewTopic("a", 9_000), NewTopic("b", 1_001), NewTopic("c", 1_000))
        assert codes == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION, ErrorCode.NONE]
        assert partition_count(cluster.brokers[1].metadata.topic("a")) == 9_000
        assert len(await cluster.session.children(znodes.partitions_path("a"))) == 9_000


async def test_the_nodes_of_a_topic_are_kafkas() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}, configs={"retention.ms": "1"}))
        get = cluster.session.get
        topic_id = uuid_to_text(cluster.brokers[1].metadata.topic_id("t") or b"")
        assert (await get("/config/topics/t")).data == b'{"version":1,"config":{"retention.ms":"1"}}'
        assert (await get("/brokers/topics/t")).data.decode() == (
            '{"partitions":{"0":[2,1]},"topic_id":"'
            + topic_id
            + '","adding_replicas":{},"removing_replicas":{},"version":3}'
        )
        assert (await get("/brokers/topics/t/partitions/0/state")).data == (
            b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":0,"isr":[2,1]}'
        )
        assert (await get("/controller")).data.startswith(b'{"version":2,"brokerid":1,"timestamp":"')


async def test_a_creation_cut_short_is_finished_by_the_next_controller() -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    async with running(store=store) as cluster:
        await cluster.create(NewTopic("t", 3))
        await cluster.session.multi(
            [
                Delete(znodes.state_path("t", 1)),
                Delete(znodes.state_path("t", 2)),
                Delete(znodes.partition_path("t", 2)),
            ]
        )
    async with running(store=store) as cluster:
        assert cluster.brokers[1].leader_epochs("t") == {0: 1, 1: 0, 2: 0}
        assert partition_count(cluster.brokers[1].metadata.topic("t")) == 3
    async with running(store=store) as cluster:
        assert cluster.brokers[1].leader_epochs("t") == {0: 2, 1: 1, 2: 1}


async def test_a_deletion_cut_short_is_finished_by_the_next_controller() -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    async with running(store=store) as cluster:
        await cluster.create(NewTopic("t", 3), NewTopic("kept"))
        await cluster.session.multi([Create(znodes.delete_topic_path("t")), Delete(znodes.state_path("t", 0))])
    async with running(store=store) as cluster:
        assert list(cluster.brokers[1].metadata.topics) == ["kept"]
        assert await cluster.session.children(znodes.TOPICS) == ["kept"]
        assert await cluster.session.children(znodes.DELETE_TOPICS) == []


async def test_a_topic_with_a_replica_out_of_reach_is_deleted_when_that_broker_is_back() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        metadata = cluster.brokers[1].metadata
        await cluster.sessions[2].expire()
        with trio.fail_after(5):
            while metadata.is_alive(2):
                await trio.lowlevel.checkpoint()
        assert await cluster.controller.delete_topics(["t"]) == {"t": None}
        assert await cluster.session.children(znodes.DELETE_TOPICS) == ["t"]
        assert await refused(cluster, NewTopic("t")) == [ErrorCode.TOPIC_ALREADY_EXISTS]
        await join(cluster.store.session(), 2)
        with trio.fail_after(5):
            while metadata.topic("t") is not None or await cluster.session.children(znodes.DELETE_TOPICS):
                await trio.lowlevel.checkpoint()
        stop = next(r for r in cluster.brokers[2].requests if isinstance(r, StopReplicaRequest))
        assert stop.topic_states[0].topic_name == "t"


async def test_deleting_what_is_not_there() -> None:
    async with running() as cluster:
        outcome = await cluster.controller.delete_topics(["none"])
        error = outcome["none"]
        assert error is not None
        assert error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("count", "assignments", "code"),
    [
        (2, None, ErrorCode.INVALID_PARTITIONS),
        (1, None, ErrorCode.INVALID_PARTITIONS),
        (-1, None, ErrorCode.INVALID_PARTITIONS),
        (4, [[1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[1], [9]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[1], []], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, [[1, 2], [2, 1]], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (20_000, None, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_partitions_that_cannot_be_added(
    count: int, assignments: list[list[int]] | None, code: ErrorCode
) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", 2))
        with pytest.raises(KafkaError) as caught:
            await cluster.controller.create_partitions("t", count, assignments)
        assert caught.value.code == code
        await cluster.controller.create_partitions("t", 4, [[2], [1]], validate_only=True)
        assert partition_count(cluster.brokers[1].metadata.topic("t")) == 2
        await cluster.controller.create_partitions("t", 4, [[2], [1]])
        state = cluster.brokers[1].metadata.partition("t", 2)
        assert state is not None
        assert state.replicas == (2,)


async def test_partitions_of_a_topic_that_is_not_there() -> None:
    async with running() as cluster:
        with pytest.raises(KafkaError) as caught:
            await cluster.controller.create_partitions("none", 2)
        assert caught.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_another_broker_becomes_controller_when_the_first_dies() -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    cluster = Cluster(store, brokers=2)
    await cluster.start()
    other = cluster.new_controller(2, cluster.sessions[2])
    metadata = cluster.brokers[2].metadata
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.controller.run)
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        await other.start()
        nursery.start_soon(other.run)
        with pytest.raises(KafkaError) as caught:
            await other.create_topics([NewTopic("early")])
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
        await cluster.sessions[1].close()
        await until(lambda: metadata.controller_id == 2 and metadata.partition("t", 0).leader == 2)
        nursery.cancel_scope.cancel()
    assert other.is_active
    state = metadata.partition("t", 0)
    assert state is not None
    # First without a leader, then with another one: Kafka's two writes at a failover.
    assert (state.leader, state.leader_epoch, state.isr) == (2, 2, (2,))
    stored = await cluster.sessions[2].get(znodes.state_path("t", 0))
    assert znodes.decode_state(stored.data).controller_epoch == 2


async def test_a_creation_goes_on_when_its_caller_gives_up() -> None:
    async with running() as cluster:
        with trio.CancelScope() as scope:
            broker = cluster.brokers[1]
            original = broker.leader_and_isr

            async def cancel_first(request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
                scope.cancel()
                await trio.lowlevel.checkpoint()
                return await original(request)

            broker.leader_and_isr = cancel_first  # type: ignore[method-assign]
            await cluster.create(NewTopic("t"))
        assert scope.cancelled_caught
        await until(lambda: cluster.brokers[1].metadata.topic("t") is not None)


async def test_a_topic_made_with_many_partitions_is_one_write() -> None:
    async with running() as cluster:
        tree = await cluster.store.sync()
        before = tree.zxid
        await cluster.create(NewTopic("__consumer_offsets", 50), NewTopic("wide", 900))
        assert tree.zxid == before + 2
