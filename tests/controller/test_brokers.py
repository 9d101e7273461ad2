"""Brokers that die, come back, were away between two looks, shut down, or change their endpoints."""

from __future__ import annotations

import dataclasses
import logging
import random
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.partitions import TopicPartition
from ottla.base.seams import SystemClock
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.active.controller_channel_manager import Answer
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.registration import ensure_cluster
from ottla.controller.zookeeper.store.cluster_store import Create, Set
from ottla.metadata.types import AdvertisedListener, LeaderState
from ottla.security.entities import TOPICS, Entity
from ottla.tests.controller.helpers.cluster import Cluster, registration, running, until
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore
from ottla.wire.messages.controlled_shutdown import ControlledShutdownRequest
from ottla.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from ottla.wire.messages.stop_replica import StopReplicaRequest
from ottla.wire.messages.update_metadata import UpdateMetadataRequest

from .test_alter_partition import ask, only


def last_told(cluster: Cluster, broker_id: int, topic: str = "t") -> LeaderAndIsrPartitionState:
    """What a broker was last told of partition 0 of a topic by LeaderAndIsr."""
    told = [
        partition
        for request in cluster.brokers[broker_id].told(LeaderAndIsrRequest)
        for state in request.topic_states
        if state.topic_name == topic
        for partition in state.partition_states
    ]
    return told[-1]


# --- death and return -------------------------------------------------------------------------------------------------


async def test_a_dead_leader_is_followed_in_one_write_and_a_dead_follower_leaves_the_isr() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("led", assignment={0: [2, 1, 3]}), NewTopic("t", assignment={0: [3, 2, 1]}))
        await cluster.die(2)
        assert await cluster.state("led") == LeaderState(1, 1, (1, 3), 1)
        assert await cluster.state("t") == LeaderState(3, 1, (3, 1), 1)
        await until(lambda: cluster.brokers[3].leader_epochs("t") == {0: 1})
        assert list(last_told(cluster, 3).isr) == [3, 1]


async def test_the_log_tells_who_is_gone_and_what_that_means(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.controller")
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3], 1: [3, 2]}), NewTopic("alone", assignment={0: [3]}))
        await cluster.die(3)
        assert ("WARNING", "Broker 3 is gone: 3 partitions changed, 1 without a leader") in said(caplog)
        await cluster.controller.delete_topics(["t"])
        await until(lambda: ("INFO", "The deletion of topic t waits for broker 3") in said(caplog))
        await cluster.come_back(3)
        await until(lambda: ("INFO", "Broker 3 is in the cluster: 1 partition led again") in said(caplog))


def said(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records]


async def test_the_last_in_sync_replica_stays_and_only_it_leads_again() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}))
        await cluster.die(2)
        assert await cluster.state("t") == LeaderState(3, 1, (3,), 1)
        await cluster.die(3)
        assert await cluster.state("t") == LeaderState(-1, 2, (3,), 1)
        await cluster.come_back(2)
        assert await cluster.state("t") == LeaderState(-1, 2, (3,), 1)
        await cluster.come_back(3)
        await cluster.until_state("t", LeaderState(3, 3, (3,), 1))


async def test_a_leader_that_was_not_in_sync_is_recovering_until_it_says_otherwise() -> None:
    async with running(brokers=3) as cluster:
        unclean = {"unclean.leader.election.enable": "true"}
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}, configs=unclean))
        assert only(await cluster.controller.alter_partition(ask(cluster, 2, "t", [2]), 3)).error_code == 0
        await cluster.die(2)
        stored = (await cluster.session.get(znodes.state_path("t", 0))).data
        assert b'"leader":3,"version":1,"leader_epoch":1,"isr":[3],"leader_recovery_state":1}' in stored
        await until(lambda: cluster.brokers[3].leader_epochs("t") == {0: 1})
        assert last_told(cluster, 3).leader_recovery_state == 1
        recovered = ask(cluster, 3, "t", [3], leader_epoch=1, partition_epoch=2)
        assert only(await cluster.controller.alter_partition(recovered, 3)).leader_recovery_state == 0
        assert b"leader_recovery_state" not in (await cluster.session.get(znodes.state_path("t", 0))).data


async def test_a_replica_that_is_not_in_sync_leads_as_soon_as_that_is_allowed() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}))
        assert only(await cluster.controller.alter_partition(ask(cluster, 2, "t", [2]), 3)).error_code == 0
        await cluster.die(2)
        assert await cluster.state("t") == LeaderState(-1, 1, (2,), 1)
        await cluster.configs.change(Entity(TOPICS, "t"), lambda before: {"unclean.leader.election.enable": "true"})
        await cluster.until_state("t", LeaderState(3, 2, (3,), 1, is_recovering=True))


async def test_the_answer_of_a_registration_that_is_over_says_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        term = cluster.controller._term
        assert term is not None
        stale = cluster.epochs[2]
        await cluster.restart(2)
        await cluster.until_state("t", LeaderState(1, 1, (1,), 1))
        failed = {TopicPartition("t", 0): int(ErrorCode.KAFKA_STORAGE_ERROR)}
        await term.process_response(Answer(2, stale, False, failed))
        assert term.context.offline_replicas.get(2, set()) == set()


# --- away between two looks -------------------------------------------------------------------------------------------


async def test_a_leader_that_was_away_does_not_lead_on_where_another_replica_is_in_sync() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1, 3]}))
        await cluster.restart(2)
        await cluster.until_state("t", LeaderState(1, 1, (1, 3), 1))
        await until(lambda: cluster.brokers[2].leader_epochs("t") == {0: 1})
        assert last_told(cluster, 2).leader == 1


async def test_a_leader_that_was_away_leads_under_a_new_epoch_where_no_other_replica_is_in_sync() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}))
        await cluster.controller.alter_partition(ask(cluster, 2, "t", [2]), 3)
        await cluster.restart(2)
        await cluster.until_state("t", LeaderState(2, 2, (2,), 1))
        await until(lambda: cluster.brokers[2].leader_epochs("t") == {0: 2})


async def test_a_follower_that_was_away_leaves_the_isr() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [1, 2, 3]}))
        await cluster.restart(2)
        await cluster.until_state("t", LeaderState(1, 1, (1, 3), 1))


async def test_replicas_that_were_all_away_are_all_in_sync_still() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3]}))
        await cluster.restart(2, 3)
        await cluster.until_state("t", LeaderState(2, 2, (2, 3), 1))


async def test_a_leader_that_was_away_while_there_was_no_controller_does_not_lead_on() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1, 3]}), NewTopic("own", assignment={0: [2]}))
        await cluster.controller.resign()
        await cluster.restart(2)
        await cluster.controller.elect()
        assert await cluster.state("t") == LeaderState(1, 2, (1, 3), 2)
        assert await cluster.state("own") == LeaderState(2, 1, (2,), 2)


# --- a broker that shuts down -----------------------------------------------------------------------------------------


def shutdown(cluster: Cluster, broker_id: int, *, behind: int = 0) -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=broker_id, broker_epoch=cluster.epochs[broker_id] - behind)


async def test_what_a_broker_leads_is_moved_away_before_it_stops() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(
            NewTopic("led", assignment={0: [2, 1, 3]}),
            NewTopic("followed", assignment={0: [1, 2]}),
            NewTopic("alone", assignment={0: [2]}),
            NewTopic("stuck", assignment={0: [2, 3]}),
        )
        await cluster.controller.alter_partition(ask(cluster, 2, "stuck", [2]), 3)
        await until(lambda: cluster.brokers[2].metadata.topic("stuck") is not None)
        cluster.brokers[2].requests.clear()
        response = await cluster.controller.controlled_shutdown(shutdown(cluster, 2))
        assert response.error_code == ErrorCode.NONE
        assert [(r.topic_name, r.partition_index) for r in response.remaining_partitions] == [("stuck", 0)]
        assert await cluster.state("led") == LeaderState(1, 1, (1, 3), 1)
        assert await cluster.state("followed") == LeaderState(1, 1, (1,), 1)
        assert await cluster.state("alone") == LeaderState(2, 0, (2,), 1)
        assert await cluster.state("stuck") == LeaderState(2, 0, (2,), 1)
        await until(lambda: len(cluster.brokers[2].told(StopReplicaRequest)) == 1)
        (stop,) = cluster.brokers[2].told(StopReplicaRequest)
        assert [(t.topic_name, t.partition_states[0].delete_partition) for t in stop.topic_states] == [
            ("followed", False)
        ]
        told = [t.topic_name for r in cluster.brokers[2].told(LeaderAndIsrRequest) for t in r.topic_states]
        assert told == ["led"]


async def test_a_leader_that_shuts_down_alone_in_sync_may_have_an_heir_yet() -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3, 1]}))
        alone = only(await cluster.controller.alter_partition(ask(cluster, 2, "t", [2]), 3))
        left = (await cluster.controller.controlled_shutdown(shutdown(cluster, 2))).remaining_partitions
        assert [each.topic_name for each in left] == ["t"]
        caught_up = ask(cluster, 2, "t", [2, 3], partition_epoch=alone.partition_epoch)
        assert only(await cluster.controller.alter_partition(caught_up, 3)).error_code == ErrorCode.NONE
        assert (await cluster.controller.controlled_shutdown(shutdown(cluster, 2))).remaining_partitions == []
        assert await cluster.state("t") == LeaderState(3, 1, (3,), 1)


async def test_a_broker_that_shuts_down_leads_nothing_new_until_it_is_back() -> None:
    async with running(brokers=2) as cluster:
        await cluster.controller.controlled_shutdown(shutdown(cluster, 2))
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}), NewTopic("own", assignment={0: [2]}))
        assert await cluster.state("t") == LeaderState(1, 0, (1,), 1)
        assert await cluster.session.exists(znodes.state_path("own", 0)) is None
        await cluster.die(2)
        await cluster.come_back(2)
        await cluster.until_state("own", LeaderState(2, 0, (2,), 1))
        again = ask(cluster, 1, "t", [1, 2])
        assert only(await cluster.controller.alter_partition(again, 3)).isr == [1, 2]


async def test_who_may_not_shut_down() -> None:
    async with running(brokers=2) as cluster:
        controller = cluster.controller
        stale = await controller.controlled_shutdown(shutdown(cluster, 2, behind=1))
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
        unknown = await controller.controlled_shutdown(ControlledShutdownRequest(broker_id=7))
        assert unknown.error_code == ErrorCode.BROKER_NOT_AVAILABLE
        unchecked = await controller.controlled_shutdown(ControlledShutdownRequest(broker_id=2))
        assert unchecked.error_code == ErrorCode.NONE
        request = shutdown(cluster, 2)
        await controller.resign()
        assert (await controller.controlled_shutdown(request)).error_code == ErrorCode.NOT_CONTROLLER


# --- what else happens to a registration ------------------------------------------------------------------------------


async def test_other_endpoints_are_told_to_all() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await until(lambda: cluster.brokers[2].metadata.topic("t") is not None)
        moved = dataclasses.replace(registration(2), endpoints=(AdvertisedListener("PLAINTEXT", "elsewhere", 1),))
        for broker in cluster.brokers.values():
            broker.requests.clear()
        await cluster.session.multi([Set(znodes.broker_path(2), znodes.encode_broker(moved, 0))])
        for broker in cluster.brokers.values():
            await until(lambda broker=broker: broker.requests != [])  # type: ignore[misc]
            (update,) = broker.requests
            assert isinstance(update, UpdateMetadataRequest)
            assert update.topic_states == []
            assert broker.metadata.nodes("PLAINTEXT")[2].host == "elsewhere"
        assert await cluster.state("t") == LeaderState(2, 0, (2, 1), 1)


async def test_brokers_know_one_another_before_they_replicate() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        await cluster.controller.resign()
        for broker in cluster.brokers.values():
            broker.requests.clear()
        await cluster.controller.elect()
        for broker in cluster.brokers.values():
            await until(lambda broker=broker: len(broker.requests) == 3)  # type: ignore[misc]
            first, second, third = broker.requests
            assert isinstance(first, UpdateMetadataRequest)
            assert [b.id for b in first.live_brokers] == [1, 2]
            assert first.topic_states == []
            assert isinstance(second, LeaderAndIsrRequest)
            assert isinstance(third, UpdateMetadataRequest)


async def test_a_registration_that_is_not_understood_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    async with running(brokers=2) as cluster:
        await cluster.session.multi([Set(znodes.broker_path(2), b"nonsense")])
        await until(lambda: not cluster.brokers[1].metadata.is_alive(2))
        assert "/brokers/ids/2 is ignored" in caplog.text
        assert cluster.controller.is_active


# --- a Kafka that is too old ------------------------------------------------------------------------------------------

_FIRST_LAYOUT = b'{"version":1,"host":"10.0.0.9","port":9092,"jmx_port":-1,"timestamp":"1"}'
_LAYOUT_4 = (
    b'{"version":4,"endpoints":["PLAINTEXT://10.0.0.9:9092"],"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"host":"10.0.0.9","port":9092,"jmx_port":-1,"timestamp":"1"}'
)


async def until_true(condition: Callable[[], Awaitable[bool]]) -> None:
    """Return once ``condition`` holds. Raises trio.TooSlowError."""
    with trio.fail_after(10):
        while not await condition():
            await trio.sleep(0.005)


async def has_resigned(cluster: Cluster) -> bool:
    return not cluster.controller.is_active and await cluster.session.exists(znodes.CONTROLLER) is None


@pytest.mark.parametrize("layout", [_FIRST_LAYOUT, _LAYOUT_4], ids=["1", "4"])
async def test_a_controller_that_sees_a_broker_of_kafka_before_2_7_says_so_and_resigns(
    layout: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 1]}))
        old = cluster.store.session()
        await old.multi([Create(znodes.broker_path(9), layout, ephemeral=True)])
        await until_true(lambda: has_resigned(cluster))
        told = [text for level, text in said(caplog) if level == "ERROR"]
        version = 1 if layout is _FIRST_LAYOUT else 4
        why = f"a broker of Kafka before 2.7 is registered (version {version}), whose controller Ottla cannot be"
        assert told == [f"The controller cannot follow the cluster: /brokers/ids/9: {why}"]
        await cluster.sessions[2].expire()  # others come and go meanwhile
        await old.multi([Set(znodes.broker_path(9), layout)])
        await until_true(lambda: has_resigned(cluster))
        assert len([text for level, text in said(caplog) if level == "ERROR"]) == 1
        await old.expire()

        async def is_led_by_1() -> bool:
            state = await cluster.state("t")
            return (state.leader, state.isr) == (1, (1,))

        await until_true(is_led_by_1)
        assert cluster.controller.is_active


async def test_and_stands_for_no_election_where_one_is_there_already(caplog: pytest.LogCaptureFixture) -> None:
    store = EmbeddedStore(SystemClock())
    await store.open()
    old = store.session()
    await ensure_cluster(old, random.Random(1))
    await old.multi([Create(znodes.broker_path(9), _LAYOUT_4, ephemeral=True)])
    async with running(store=store) as cluster:
        assert await has_resigned(cluster)
        await old.expire()
        await until(lambda: cluster.controller.is_active)
