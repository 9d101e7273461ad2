"""A controller that is not what it thinks: its session has ended, its epoch has ended, another writer was faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.partitions import TopicPartition
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.active.controller import ZooKeeperController
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, Set, Stat, Watch
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import TOPICS, Entity
from ottla.tests.controller.helpers.cluster import Cluster, join, running, until


def leader(cluster: Cluster, topic: str, partition: int = 0) -> tuple[int, int, list[int]] | None:
    """Leader, its epoch and the ISR as the controller's own broker was told."""
    state = cluster.brokers[1].metadata.partition(topic, partition)
    return None if state is None else (state.leader, state.leader_epoch, list(state.isr))


async def epoch_of(cluster: Cluster, broker_id: int) -> int:
    return (await cluster.session.get(znodes.broker_path(broker_id))).stat.czxid


def others_configs(cluster: Cluster) -> ConfigStore:
    """The configs as another broker changes them."""
    return ConfigStore(cluster.session, cluster.clock, MetadataCache())


async def test_a_controller_whose_session_expires_comes_back_with_a_higher_epoch() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        before = await epoch_of(cluster, 1)
        await cluster.sessions[1].expire()
        await until(lambda: cluster.controller.is_active and cluster.member.broker_epoch > before)
        assert await epoch_of(cluster, 1) == cluster.member.broker_epoch > before
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"2"
        await until(lambda: leader(cluster, "t") == (2, 2, [2]))  # which was not away
        await cluster.create(NewTopic("later"))
        await join(cluster.store.session(), 3)
        await until(lambda: cluster.brokers[1].metadata.is_alive(3))


async def test_another_broker_takes_over_from_a_controller_whose_session_expires() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        other = cluster.new_controller(2, cluster.sessions[2])
        await other.start()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.run)
            session = cluster.sessions[1]
            session.suspect()  # broker 1 hears of the end of its session only when broker 2 is the controller
            await trio.testing.wait_all_tasks_blocked()
            assert not cluster.controller.is_active
            await cluster.store.end_session(session.session_id)
            await until(lambda: other.is_active)
            await session.expire()
            await until(lambda: cluster.brokers[2].metadata.is_alive(1))
            assert not cluster.controller.is_active
            with pytest.raises(KafkaError) as caught:
                await cluster.controller.create_topics([NewTopic("refused")])
            assert caught.value.code == ErrorCode.NOT_CONTROLLER
            await other.create_topics([NewTopic("made")])
            nursery.cancel_scope.cancel()


async def test_a_suspected_controller_does_not_act_until_its_session_is_known_to_live() -> None:
    async with running(brokers=2) as cluster:
        epoch = await epoch_of(cluster, 1)
        cluster.sessions[1].suspect()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(KafkaError) as caught:
            await cluster.controller.create_topics([NewTopic("t")])
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
        await cluster.sessions[2].expire()
        await others_configs(cluster).change(Entity(TOPICS, "t"), lambda before: {"retention.ms": "1"})
        await trio.testing.wait_all_tasks_blocked()
        assert cluster.brokers[1].metadata.is_alive(2)
        cluster.sessions[1].reconnect()
        await until(lambda: not cluster.brokers[1].metadata.is_alive(2))
        assert cluster.configs.metadata.image.topic_config("t") == {"retention.ms": "1"}
        assert cluster.controller.is_active
        assert await epoch_of(cluster, 1) == epoch


async def test_a_connection_that_is_back_before_it_was_missed_has_lost_its_watches() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t"))
        cluster.sessions[1].suspect()
        cluster.sessions[1].reconnect()
        await trio.testing.wait_all_tasks_blocked()
        await others_configs(cluster).change(Entity(TOPICS, "t"), lambda before: {"retention.ms": "1"})
        await cluster.sessions[2].expire()
        await until(lambda: cluster.configs.metadata.image.topic_config("t") == {"retention.ms": "1"})
        await until(lambda: not cluster.brokers[1].metadata.is_alive(2))


async def test_configs_that_changed_between_two_sessions_are_read() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t", configs={"retention.ms": "1"}), NewTopic("u", configs={"retention.ms": "1"}))
        first = cluster.sessions[1]
        heard: list[tuple[Any, Any]] = []
        cluster.configs.metadata.publishers.append(
            lambda delta, image: heard.extend((name, values) for (_, name), values in delta.configs.items())
        )
        first.suspect()  # what happens now is in no watch
        await others_configs(cluster).change(Entity(TOPICS, "t"), lambda before: {})
        await first.expire()
        await until(lambda: ("t", {}) in heard)
        assert heard == [("t", {})]
        await others_configs(cluster).change(Entity(TOPICS, "u"), lambda before: {})
        await until(lambda: ("u", {}) in heard)


async def test_a_state_that_another_writer_changed_is_read_again_and_decided_anew() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1, 3]}))
        state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":4,"isr":[2,3]}'
        await cluster.session.multi([Set(znodes.state_path("t", 0), state)])
        await cluster.sessions[2].expire()
        await until(lambda: leader(cluster, "t") == (3, 5, [3]))
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"1"
        assert await cluster.controller.elect_again(TopicPartition("t", 0)) == 6


async def test_an_election_by_hand_begins_with_what_another_writer_left() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        state = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":7,"isr":[1]}'
        await cluster.session.multi([Set(znodes.state_path("t", 0), state)])
        assert await cluster.controller.elect_again(TopicPartition("t", 0)) == 8
        assert leader(cluster, "t") == (1, 8, [1])
        with pytest.raises(KafkaError, match="2 is not an in-sync replica"):
            await cluster.controller.elect_again(TopicPartition("t", 0), 2)


async def test_an_election_by_hand_may_have_another_winner() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2]}))
        assert await cluster.controller.elect_again(TopicPartition("t", 0), 2) == 1
        assert leader(cluster, "t") == (2, 1, [1, 2])


async def test_partitions_are_added_to_a_topic_as_another_writer_left_it() -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t", 2))
        node = await cluster.session.get(znodes.topic_path("t"))
        await cluster.session.multi([Set(znodes.topic_path("t"), node.data)])
        await cluster.controller.create_partitions("t", 3)
        topic = cluster.brokers[1].metadata.topic("t")
        assert topic is not None
        assert list(topic.partitions) == [0, 1, 2]


async def create(controller: ZooKeeperController) -> None:
    (result,) = (await controller.create_topics([NewTopic("new")])).values()
    if isinstance(result, KafkaError):
        raise result


@pytest.mark.parametrize(
    "change",
    [
        create,
        lambda controller: controller.delete_topics(["t"]),
        lambda controller: controller.create_partitions("t", 5),
        lambda controller: controller.elect_again(TopicPartition("t", 0)),
    ],
)
async def test_a_controller_whose_epoch_is_over_changes_nothing_and_is_elected_again(
    change: Callable[[ZooKeeperController], Awaitable[object]],
) -> None:
    async with running() as cluster:
        await cluster.create(NewTopic("t"))
        controller = cluster.controller
        await cluster.session.multi([Set(znodes.CONTROLLER_EPOCH, b"9")])
        with pytest.raises(KafkaError) as caught:
            await change(controller)
        assert caught.value.code == ErrorCode.NOT_CONTROLLER
        assert await cluster.session.children(znodes.TOPICS) == ["t"]
        assert await cluster.session.children(znodes.partitions_path("t")) == ["0"]
        assert await cluster.session.children(znodes.DELETE_TOPICS) == []
        await until(lambda: controller.is_active)
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"10"
        await change(controller)


async def test_a_controller_that_hears_of_its_end_by_a_refused_write_forgets_what_it_knew() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        # Another controller has had broker 1 lead.
        state = b'{"controller_epoch":9,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
        await cluster.session.multi([Set(znodes.CONTROLLER_EPOCH, b"9"), Set(znodes.state_path("t", 0), state)])
        results = await cluster.controller.create_topics([NewTopic("new")])
        assert isinstance(results["new"], KafkaError)
        assert results["new"].code == ErrorCode.NOT_CONTROLLER
        await until(lambda: leader(cluster, "t") == (1, 4, [1, 2]))
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"10"


async def test_between_two_sessions_a_broker_is_no_candidate() -> None:
    async with running() as cluster:
        await cluster.controller.resign()
        await cluster.session.multi([Delete(znodes.CONTROLLER)])
        await trio.testing.wait_all_tasks_blocked()
        assert await cluster.session.exists(znodes.CONTROLLER) is None
        await cluster.controller.elect()
        assert cluster.controller.is_active


async def test_a_controller_that_cannot_take_over_tries_again(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running() as cluster:
        await cluster.session.multi([Set(znodes.CONTROLLER_EPOCH, b"9"), Delete(znodes.DELETE_TOPICS)])
        await trio.sleep(1)
        assert not cluster.controller.is_active
        assert "The controller cannot follow the cluster" in caplog.text
        await cluster.session.multi([Create(znodes.DELETE_TOPICS)])
        await until(lambda: cluster.controller.is_active)
        await cluster.create(NewTopic("t"))


async def test_a_takeover_that_fails_while_the_broker_starts_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(brokers=2) as cluster:
        await cluster.controller.resign()
        session = cluster.sessions[2]
        exists = session.exists

        async def exists_for_the_last_time(path: str, watch: Watch | None = None) -> Stat | None:
            stat = await exists(path, watch)
            monkeypatch.undo()
            await cluster.session.multi([Delete(znodes.CONTROLLER), Delete(znodes.DELETE_TOPICS)])
            return stat

        monkeypatch.setattr(session, "exists", exists_for_the_last_time)
        other = cluster.new_controller(2, session)
        await other.start()
        assert not other.is_active
        await cluster.session.multi([Create(znodes.DELETE_TOPICS)])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other.run)
            await until(lambda: other.is_active)
            nursery.cancel_scope.cancel()
