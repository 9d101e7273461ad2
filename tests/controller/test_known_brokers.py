"""A broker that was restarted before any controller looked was away, whatever was written of its partitions meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio.testing

from ottla.base.seams import SystemClock
from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.active.known_brokers import KnownBrokers
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.state.context import ControllerContext, LiveBroker, PartitionState, TopicState
from ottla.controller.zookeeper.store.cluster_store import (
    ClusterStore,
    ControllerMovedError,
    Create,
    Set,
)
from ottla.metadata.types import LeaderState, ReplicaAssignment
from ottla.tests.controller.helpers.cluster import Cluster, join, registration, running
from ottla.tests.zookeeper_double.embedded_store import EmbeddedStore

from .test_alter_partition import ask

WRITTEN = 50
"""The transaction by which a partition's state was written."""


async def restart_while_written(cluster: Cluster, broker_id: int, isr: list[int]) -> None:
    """A broker is registered again while a leader's wish is on its way to the store; then the controller's session ends."""
    cluster.link.latency = lambda: 1.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(cluster.controller.alter_partition, ask(cluster, 2, "t", isr), 3)
        await trio.sleep(0.5)
        await cluster.sessions[broker_id].expire()
        cluster.sessions[broker_id] = cluster.store.session()
        await join(cluster.sessions[broker_id], broker_id)
        await trio.sleep(1)
        assert (await cluster.state("t")).isr == tuple(isr)
        await cluster.sessions[1].expire()


async def test_a_leader_that_was_away_while_its_wish_was_written_does_not_lead_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3, 1]}))
        await restart_while_written(cluster, 2, [2, 3])
        await cluster.until_state("t", LeaderState(3, 2, (3,), 2))


async def test_a_follower_that_was_away_while_its_leaders_wish_was_written_is_not_in_sync(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3, 1]}))
        await restart_while_written(cluster, 3, [2, 3])
        await cluster.until_state("t", LeaderState(2, 1, (2,), 2))


async def test_a_broker_that_a_controller_has_seen_come_back_is_in_sync_at_the_next_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(brokers=3) as cluster:
        await cluster.create(NewTopic("t", assignment={0: [2, 3, 1]}))
        await cluster.restart(3)
        await cluster.until_state("t", LeaderState(2, 1, (2, 1), 1))
        wish = ask(cluster, 2, "t", [2, 3, 1], leader_epoch=1, partition_epoch=1)
        assert (await cluster.controller.alter_partition(wish, 3)).error_code == 0
        await cluster.controller.resign()
        await cluster.controller.elect()
        assert await cluster.state("t") == LeaderState(2, 1, (2, 3, 1), 1)


# --- one controller after the other -----------------------------------------------------------------------------------


@asynccontextmanager
async def tree() -> AsyncIterator[ClusterStore]:
    """A session at a store in which there were no controllers yet."""
    store = EmbeddedStore(SystemClock())
    await store.open()
    session = store.session()
    await session.multi([Create(znodes.CONTROLLER_EPOCH, b"0")])
    yield session
    await session.close()


async def controller(store: ClusterStore, epochs: Mapping[int, int], written_by: int) -> KnownBrokers:
    """What the next controller knows: brokers by their epochs, and a partition whose state controller ``written_by`` wrote."""
    node = await store.get(znodes.CONTROLLER_EPOCH)
    epoch = int(node.data) + 1
    await store.multi([Set(znodes.CONTROLLER_EPOCH, str(epoch).encode())])
    context = ControllerContext(1, epoch, node.stat.version + 1)
    context.brokers = {b: LiveBroker(registration(b), broker_epoch) for b, broker_epoch in epochs.items()}
    context.topics["t"] = TopicState("t", bytes(16), {0: written(written_by)})
    known = KnownBrokers(store, context)
    await known.load()
    return known


def written(by: int) -> PartitionState:
    return PartitionState(ReplicaAssignment((1, 2, 3)), LeaderState(1, 0, (1, 2, 3), by), 0, WRITTEN)


async def test_a_controller_that_dies_while_it_takes_over_leaves_what_is_known() -> None:
    async with tree() as store:
        await (await controller(store, {1: 10, 2: 20, 3: 30}, written_by=0)).save()
        second = await controller(store, {1: 10, 2: 25, 3: 30}, written_by=1)
        assert second.stayed(written(1)) == {1, 3}
        await second.begin()  # then it writes the state, while 3 comes back
        third = await controller(store, {1: 10, 2: 25, 3: 35}, written_by=2)
        assert third.stayed(written(2)) == {1}
        await third.save()
        assert (await controller(store, {1: 10, 2: 25, 3: 35}, written_by=2)).stayed(written(2)) == {1, 2, 3}


async def test_what_one_of_kafkas_controllers_has_written_is_judged_by_who_was_registered_before() -> None:
    async with tree() as store:
        first = await controller(store, {1: 10, 2: 60, 3: 30}, written_by=0)
        await first.begin()
        assert first.stayed(written(0)) == {1, 3}
        await first.save()
        await store.multi([Set(znodes.CONTROLLER_EPOCH, b"2")])  # Kafka's, which has seen that 3 came back
        third = await controller(store, {1: 10, 2: 60, 3: 40}, written_by=2)
        await third.begin()
        assert third.stayed(written(2)) == {1, 3}
        assert third.stayed(written(1)) == {1, 2}


async def test_a_node_that_is_not_understood_is_written_anew(caplog: pytest.LogCaptureFixture) -> None:
    async with tree() as store:
        await store.multi([Create(znodes.KNOWN_BROKERS, b"?")])
        first = await controller(store, {1: 10, 2: 60}, written_by=0)
        assert znodes.KNOWN_BROKERS in caplog.text
        assert first.stayed(written(0)) == {1}
        await first.save()
        assert (await controller(store, {1: 10, 2: 60}, written_by=1)).stayed(written(1)) == {1, 2}


async def test_a_controller_that_was_replaced_writes_nothing() -> None:
    async with tree() as store:
        first = await controller(store, {1: 10}, written_by=0)
        second = await controller(store, {1: 10, 2: 20}, written_by=0)
        with pytest.raises(ControllerMovedError):
            await first.save()
        await second.save()
        assert znodes.decode_known_brokers((await store.get(znodes.KNOWN_BROKERS)).data).epochs == {1: 10, 2: 20}
