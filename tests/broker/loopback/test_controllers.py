"""Nodes with the role of a controller: their starts and stops, and a cluster that goes on while they come and go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from ottla.broker.server import StartError
from ottla.controller.raft.events import ResignRequested

from ..helpers.controller_world import ControllerWorld, quota_records, until

BOTH = "broker,controller"


@asynccontextmanager
async def world_of(roles: dict[int, str], *, is_static: bool = False) -> AsyncIterator[ControllerWorld]:
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, roles, is_static=is_static)
        yield world
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("is_static", [False, True], ids=["its voters are records", "its voter is a property"])
async def test_a_quorum_of_one_serves_and_keeps_what_it_has(is_static: bool, autojump_clock: MockClock) -> None:
    async with world_of({1: BOTH}, is_static=is_static) as world:
        world.format()
        await world.start()
        await world.create(1, "t")
        await world.produce("t", b"a")
        await world.stop(1)
        await world.start()
        assert await world.values("t", 1) == [b"a"]
        await world.produce("t", b"b")
        await world.kill(1)
        await world.start()
        await until(lambda: world.leader(1, "t") == 1)
        assert await world.values("t", 1) == [b"a", b"b"]


async def test_a_cluster_begins_with_more_records_than_a_batch_has(autojump_clock: MockClock) -> None:
    async with world_of({1: BOTH}) as world:
        world.format(records=quota_records(10_100))
        await world.start()
        assert len(world.services(1).metadata.image.quotas) == 10_100
        await world.create(1, "t")
        await world.kill(1)
        await world.start()
        assert len(world.services(1).metadata.image.quotas) == 10_100


async def test_three_nodes_with_both_roles_go_on_without_the_active_controller(autojump_clock: MockClock) -> None:
    async with world_of({1: BOTH, 2: BOTH, 3: BOTH}) as world:
        world.format()
        await world.start()
        await world.create(1, "t", replicas=3)
        await world.produce("t", b"a")
        killed = await world.active()
        await world.kill(killed)
        await world.produce("t", b"b")
        assert await world.active() != killed
        other = next(each for each in world.lives)
        await world.create(other, "u", replicas=2)
        await world.start(killed)
        await world.in_sync(killed, "t", 3)
        assert await world.values("t", killed) == [b"a", b"b"]


async def test_a_clean_stop_of_each_in_turn_loses_no_leader_for_long(autojump_clock: MockClock) -> None:
    async with world_of({1: BOTH, 2: BOTH, 3: BOTH}) as world:
        world.format()
        await world.start()
        await world.create(1, "t", replicas=3)
        for number in (1, 2, 3):
            stopped = await world.active()
            await world.stop(stopped)
            began = trio.current_time()
            assert await world.active() != stopped
            assert trio.current_time() - began < 0.5, "it resigned, and waited for the next leader"
            await world.produce("t", b"%d" % number)
            assert all(world.leader(each, "t") != stopped for each in world.lives)
            await world.start(stopped)
            await world.in_sync(stopped, "t", 3)
        assert await world.values("t", 1) == [b"1", b"2", b"3"]


async def test_the_last_node_stops_without_anybody_to_let_it_go(
    autojump_clock: MockClock,
) -> None:
    async with world_of({1: BOTH, 2: BOTH, 3: BOTH}) as world:
        world.format()
        await world.start()
        await world.create(1, "t", replicas=3)
        await world.produce("t", b"a")
        await world.stop(1, 2)
        began = trio.current_time()
        await world.stop(3)
        assert trio.current_time() - began < 9 + 5 + 3, "a session, the wait for another leader, and the last responses"
        assert '"brokerEpoch"' in world.disk(3).read_file("/data/.kafka_cleanshutdown").decode()
        await world.start()
        await world.in_sync(1, "t", 3)
        assert await world.values("t", 1) == [b"a"]


async def test_controllers_and_brokers_as_nodes_of_their_own(autojump_clock: MockClock) -> None:
    roles = {1: "controller", 2: "controller", 3: "controller", 11: "broker", 12: "broker"}
    async with world_of(roles) as world:
        world.format()
        await world.start()
        await world.create(11, "t", replicas=2)
        await world.produce("t", b"a")
        await world.stop(await world.active())
        await world.create(11, "u", replicas=2)
        stopped = next(each for each in (1, 2, 3) if each not in world.lives)
        await world.start(stopped)
        await world.kill(await world.active())
        await world.create(12, "v", replicas=2)
        await world.produce("t", b"b")
        assert await world.values("t", 11) == [b"a", b"b"]
        names = {"t", "u", "v"}
        await until(lambda: set(world.role(stopped).node.controller.committed_state.image.topics) == names)


async def test_a_controller_that_stopped_has_let_go_of_its_folders(autojump_clock: MockClock) -> None:
    async with world_of({1: "controller"}) as world:
        world.format()
        await world.start()
        await world.active()
        with pytest.raises(StartError, match="cannot listen"):
            await world.make_server(1).serve()
        with pytest.raises(StartError, match="in use by another process"):
            await world.make_server(1, listeners="CONTROLLER://node1:9094").serve()
        await world.stop(1)
        await world.start()
        await world.active()


async def test_what_a_controller_says_of_itself(autojump_clock: MockClock) -> None:
    async with world_of({1: "controller"}) as world:
        world.format()
        await world.start(advertised_listeners="CONTROLLER://known.as:7")
        await world.active()
        image = lambda: world.role(1).node.controller.committed_state.image  # noqa: E731
        await until(lambda: 1 in image().quorum_controllers)
        (endpoint,) = image().quorum_controllers[1].endpoints
        assert (endpoint.listener, endpoint.host, endpoint.port) == ("CONTROLLER", "known.as", 7)


async def test_brokers_are_not_told_of_the_controllers_listener(autojump_clock: MockClock) -> None:
    async with world_of({1: BOTH}) as world:
        world.format()
        await world.start()
        registration = world.services(1).metadata.image.brokers[1]
        assert [(each.listener, each.port) for each in registration.endpoints] == [("PLAINTEXT", 9092)]


ELSEWHERE = {"controller_quorum_bootstrap_servers": "node2:9093"}

REFUSED = {
    "no voters": (BOTH, {"controller_quorum_bootstrap_servers": ""}, "either controller.quorum.bootstrap.servers must"),
    "a controller that is no voter": (
        "controller",
        {"controller_quorum_voters": "2@node2:9093"},
        r"the node id 1 must be included in the set of voters controller.quorum.voters=\[2\]",
    ),
    "a broker that is a voter": (
        "broker",
        {"controller_quorum_voters": "1@node1:9093,2@node2:9093"},
        "the node id 1 must not be included in the set of voters",
    ),
    "a controller without a listener": (
        "controller",
        {"controller_listener_names": "OTHER", "listener_security_protocol_map": "CONTROLLER:SSL,OTHER:SSL"},
        "must contain at least one value appearing in the 'listeners'",
    ),
    "a listener that is missing": (
        BOTH,
        {"controller_listener_names": "CONTROLLER,OTHER"},
        "must only contain values appearing in the 'listeners'",
    ),
    "a controller with another listener": (
        "controller",
        {"listeners": "PLAINTEXT://node1:9092,CONTROLLER://node1:9093"},
        "must only contain KRaft controller listeners",
    ),
    "a broker with a controller's listener": (
        "broker",
        {"listeners": "PLAINTEXT://node1:9092,CONTROLLER://node1:9093", **ELSEWHERE},
        "must not contain a value appearing in the 'listeners'",
    ),
    "controllers' listeners only": (
        BOTH,
        {"listeners": "CONTROLLER://node1:9093"},
        "There must be at least one broker advertised listener",
    ),
    "a broker that joins": (
        "broker",
        {"controller_quorum_auto_join_enable": "true", **ELSEWHERE},
        "only supported when process.roles contains the 'controller' role",
    ),
    "a ZooKeeper": ("controller", {"zookeeper_connect": "z:2181"}, "process.roles is set"),
    "no id": ("controller", {"node_id": ""}, "node.id"),
    "a console": ("controller", {"console_listener": "node1:1"}, "'ottla console -b BROKER'"),
    "metrics without a port": ("controller", {"metrics_listener": "node1"}, "metrics.listener: "),
}


@pytest.mark.parametrize(("roles", "properties", "why"), REFUSED.values(), ids=REFUSED)
async def test_properties_that_no_node_can_have(
    roles: str, properties: dict[str, str], why: str, autojump_clock: MockClock
) -> None:
    async with world_of({1: roles}) as world:
        world.format(voters=[1])
        with pytest.raises(Exception, match=why):
            await world.make_server(1, **properties).serve()


@pytest.mark.parametrize("roles", ["controller", BOTH])
async def test_directories_that_are_not_formatted(roles: str, autojump_clock: MockClock) -> None:
    async with world_of({1: roles, 2: roles}) as world:
        with pytest.raises(StartError, match="have you run `ottla format`"):
            await world.make_server(1).serve()


async def test_features_that_ottla_lacks_are_told_of_before_a_cluster_begins_with_them(
    autojump_clock: MockClock,
) -> None:
    async with world_of({1: BOTH}) as world:
        world.format(as_kafka=True)
        with pytest.raises(StartError, match=r"format them with .*--feature streams\.version=0"):
            await world.make_server(1).serve()


async def test_both_roles_and_no_other_controller_on_an_empty_folder_are_a_quorum_of_one(
    autojump_clock: MockClock,
) -> None:
    async with world_of({1: BOTH}) as world:
        await world.start()
        await world.create(1, "t")
        await world.produce("t", b"a")
        for end in (world.stop, world.kill):
            await end(1)
            await world.start()
            assert await world.values("t", 1) == [b"a"]


async def test_a_controller_joins_a_quorum_by_itself(autojump_clock: MockClock) -> None:
    async with world_of({1: BOTH, 2: BOTH, 3: "controller"}) as world:
        world.format(1, 2, voters=[1, 2])
        world.format(3, voters=[])
        await world.start(1, 2)
        await world.start(3, controller_quorum_auto_join_enable="true")
        active = await world.active()
        raft = world.role(active).node.driver.node
        await until(lambda: set(raft.quorum.voters.ids) == {1, 2, 3})
        await world.kill(active)
        assert await world.active() != active


@pytest.mark.parametrize("roles", ["controller", BOTH])
async def test_a_node_whose_metadata_log_cannot_be_kept_ends(roles: str, autojump_clock: MockClock) -> None:
    async with world_of({1: roles}) as world:
        world.format()
        await world.start()
        await world.active()
        driver = world.role(1).node.driver
        for operation in ("write", "sync"):
            world.disk(1).fail(operation, where=lambda path: "__cluster_metadata" in path)
        driver.step(ResignRequested(driver.node.epoch))
        assert "the metadata log cannot be followed any more" in str(await world.failure(1))
