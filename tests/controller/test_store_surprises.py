"""What a broker finds in the store that it was not told of, that should not have been written there, or that it cannot know:
whether a transaction was carried out whose answer was lost.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.broker.config_file import load_config
from ottla.controller.new_topics import CreatedTopic, NewTopic
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Set
from ottla.controller.zookeeper.topic_writer import TopicWriter
from ottla.metadata.types import AdvertisedListener, BrokerRegistration, LeaderState, ReplicaAssignment, TopicAssignment
from ottla.security.entities import TOPICS, Entity
from ottla.tests.controller.helpers.cluster import Cluster, running, until
from ottla.tests.zookeeper_double.store_link import StoreLink
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.leader_and_isr import LeaderAndIsrRequest

from .test_replica_elections import rejoin

LOST = pytest.mark.parametrize("is_executed", [True, False], ids=["carried out", "lost"])


async def test_what_a_topic_was_made_with_decides_whether_a_replica_out_of_sync_may_lead() -> None:
    """Of that a broker without a replica was not told: the topic's configs are written without a notification."""
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}))
        await rejoin(cluster, "t", 2, [2])
        overrides = {"unclean.leader.election.enable": "true"}
        await cluster.session.multi([Set(znodes.topic_config_path("t"), znodes.encode_config(overrides))])
        await cluster.die(2)
        assert await cluster.state("t") == LeaderState(3, 1, (3,), 1, is_recovering=True)


async def test_a_new_controller_does_not_elect_by_what_it_knew_of_the_configs() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}, configs={"unclean.leader.election.enable": "true"}))
        await rejoin(cluster, "t", 2, [2])
        await cluster.session.multi([Set(znodes.topic_config_path("t"), znodes.encode_config({}))])
        await cluster.controller.resign()
        await cluster.sessions[2].expire()
        await cluster.controller.elect()
        assert await cluster.state("t") == LeaderState(-1, 1, (2,), 2)


async def test_leaders_are_named_by_the_listener_that_brokers_use() -> None:
    async with running() as cluster:
        outside = AdvertisedListener("OUTSIDE", "203.0.113.1", 443)
        inside = AdvertisedListener("PLAINTEXT", "10.0.0.2", 9092)
        session = cluster.store.session()
        data = znodes.encode_broker(BrokerRegistration(2, (outside, inside)), 0)
        await session.multi([Create(znodes.broker_path(2), data, ephemeral=True)])
        await until(lambda: cluster.brokers[1].metadata.is_alive(2))
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        (leader,) = cluster.brokers[1].told(LeaderAndIsrRequest)[-1].live_leaders
        assert (leader.broker_id, leader.host_name, leader.port) == (2, "10.0.0.2", 9092)


async def test_a_deletion_takes_nodes_with_it_that_no_kafka_makes() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t"), NewTopic("u"))
        path = znodes.topic_path("t")
        await cluster.session.multi(
            [Create(f"{path}/notes"), Create(f"{path}/notes/deep"), Create(f"{path}/partitions/0/state/lock")]
        )
        with trio.fail_after(5):
            await cluster.controller.delete_topics(["t", "u"])
        assert await cluster.session.children(znodes.TOPICS) == []


async def test_a_block_of_producer_ids_that_is_not_understood_is_not_guessed() -> None:
    async with running() as cluster:
        await cluster.session.multi([Set(znodes.PRODUCER_ID_BLOCK, b"{}")])
        request = AllocateProducerIdsRequest(broker_id=1, broker_epoch=cluster.epochs[1])
        answer = await cluster.controller.allocate_producer_ids(request)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert cluster.controller.is_active


async def test_an_epoch_that_is_not_understood_leaves_the_cluster_without_a_controller_until_it_is(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as cluster:
        await cluster.controller.resign()
        await cluster.session.multi([Set(znodes.CONTROLLER_EPOCH, b"one")])
        await cluster.sessions[1].expire()
        await trio.sleep(10)
        assert not cluster.controller.is_active
        await cluster.session.multi([Set(znodes.CONTROLLER_EPOCH, b"7")])
        await until(lambda: cluster.controller.is_active)
    assert len([record for record in caplog.records if "is not an epoch" in record.getMessage()]) < 5


@pytest.mark.parametrize("partitions", ['{"0":[]}', '{"1":[1]}'])
async def test_a_topic_without_replicas_or_first_partition(
    partitions: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        topic = b'{"version":3,"topic_id":"SMx-fMfhTDmzm4BDOL2bxg","partitions":%b}' % partitions.encode()
        await cluster.session.multi([Create(znodes.topic_path("odd"), topic)])
        await trio.sleep(10)  # a balance of leaders is among what looks at it
        await grow(cluster)
        assert cluster.controller.is_active


async def grow(cluster: Cluster) -> None:
    await cluster.create(NewTopic("t"))
    await cluster.controller.create_partitions("t", 2)


@pytest.mark.parametrize("isr", ["[]", "[2]", "[9]"])
async def test_a_leader_that_is_not_in_sync_in_the_store(isr: str) -> None:
    """No Kafka writes that. It leads on while it is alive, and then no broker does that was not in sync."""
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [3, 2]}))
        state = b'{"controller_epoch":1,"leader":3,"version":1,"leader_epoch":0,"isr":%b}' % isr.encode()
        await cluster.session.multi([Set(znodes.state_path("t", 0), state)])
        await cluster.controller.resign()
        await cluster.controller.elect()
        assert (await cluster.state("t")).leader == 3
        await cluster.die(3)
        assert (await cluster.state("t")).leader == (2 if isr == "[2]" else -1)
        await cluster.come_back(3)
        assert cluster.controller.is_active


@LOST
async def test_a_topic_is_made_though_the_answer_of_the_store_is_lost(
    is_executed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(brokers=2) as cluster:
        cluster.link.lose_connection_at_next_multi(is_executed=is_executed)
        results = await cluster.controller.create_topics([NewTopic("t", assignment={0: [2, 1]})])
        created = results["t"]
        assert isinstance(created, CreatedTopic)
        node = await cluster.session.get(znodes.topic_path("t"))
        assert znodes.decode_topic(node.data).topic_id == created.topic_id
        await until(lambda: cluster.brokers[2].leader_epochs("t") == {0: 0})
        assert await cluster.state("t") == LeaderState(2, 0, (2, 1), 1)
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"1"


async def test_a_topic_of_many_transactions_is_led_though_an_answer_was_lost(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as cluster:
        cluster.link.lose_connection_at_next_multi(is_executed=True)
        with pytest.raises(AssertionError):
            await cluster.create(NewTopic("wide", 1500))
        await until(lambda: len(cluster.brokers[1].leader_epochs("wide")) == 1500)
        await cluster.until_state("wide", LeaderState(1, 0, (1,), 1), 1499)


@LOST
async def test_a_topic_that_a_client_names_is_made_though_the_answer_of_the_store_is_lost(
    is_executed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        session = cluster.store.session(link := StoreLink())
        link.lose_connection_at_next_multi(is_executed=is_executed)
        writer = TopicWriter(session, load_config({}), random.Random(1))
        assert await writer.create([NewTopic("t")]) == {"t": None}
        await until(lambda: cluster.brokers[1].leader_epochs("t") == {0: 0})
        await cluster.until_state("t", LeaderState(1, 0, (1,), 1))


@LOST
async def test_a_config_is_changed_once_though_the_answer_of_the_store_is_lost(
    is_executed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t", configs={"retention.ms": "1"}))

        def double(before: Mapping[str, str]) -> Mapping[str, str]:
            return {"retention.ms": str(2 * int(before["retention.ms"]))}

        cluster.link.lose_connection_at_next_multi(is_executed=is_executed)
        await cluster.configs.change(Entity(TOPICS, "t"), double)
        node = await cluster.session.get(znodes.topic_config_path("t"))
        assert (
            znodes.decode_config(node.data) == {"retention.ms": "2"} == cluster.configs.metadata.image.topic_config("t")
        )
        assert len(await cluster.session.children(znodes.CONFIG_CHANGES)) == 1


@LOST
async def test_partitions_are_added_though_the_answer_of_the_store_is_lost(
    is_executed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t"))
        cluster.link.lose_connection_at_next_multi(is_executed=is_executed)
        await cluster.controller.create_partitions("t", 3)
        await until(lambda: cluster.brokers[1].leader_epochs("t") == {0: 0, 1: 0, 2: 0})
        assert await cluster.state("t", 2) == LeaderState(1, 0, (1,), 1)


async def test_partitions_that_another_writer_adds_at_the_same_time_are_led_too() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t"))
        path = znodes.topic_path("t")
        assignment = znodes.decode_topic((await cluster.session.get(path)).data)
        grown = {number: ReplicaAssignment((1,)) for number in range(2)}
        events = cluster.controller._events
        events.hold()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.controller.create_partitions, "t", 3)
            await trio.testing.wait_all_tasks_blocked()
            await cluster.session.multi([Set(path, znodes.encode_topic(TopicAssignment(assignment.topic_id, grown)))])
            events.resume()  # the request has its turn before the controller hears of the other writer
        await until(lambda: cluster.brokers[1].leader_epochs("t") == {0: 0, 1: 0, 2: 0})
