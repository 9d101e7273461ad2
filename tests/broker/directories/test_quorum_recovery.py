"""A quorum that lost its majority, restored from one node: what is there afterwards, who may come back, and what is refused."""

from __future__ import annotations

import io
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import MockClock

from ottla.base.seams import SimulatedClock
from ottla.broker.directories.quorum_recovery import QuorumRecovery, QuorumRecoveryError, examine, recover_quorum
from ottla.controller.raft.leader import RaftLeader
from ottla.controller.raft.voter_set import ListenerEndpoint
from ottla.log.memory_disk import MemoryDisk
from ottla.wire.messages import add_raft_voter
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest

from ..helpers.controller_world import CLUSTER_ID, ControllerWorld, until

BOTH = "broker,controller"
LOG = "/data/__cluster_metadata-0"


@asynccontextmanager
async def begun(count: int = 3, *, is_static: bool = False) -> AsyncIterator[ControllerWorld]:
    """Nodes that have a topic on all of them, with a record."""
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, dict.fromkeys(range(1, count + 1), BOTH), is_static=is_static)
        world.format()
        await world.start()
        await world.create(1, "t", replicas=count)
        await world.produce("t", b"a")
        yield world
        nursery.cancel_scope.cancel()


def recovered(world: ControllerWorld, node_id: int) -> QuorumRecovery:
    return recover_quorum(world.disk(node_id), "/data", SimulatedClock())


def files(disk: MemoryDisk, path: str = "/data") -> dict[str, bytes]:
    """Every file below ``path``, the lock apart."""
    found: dict[str, bytes] = {}
    for name in disk.names(path):
        below = f"{path}/{name}"
        found |= files(disk, below) if disk.is_dir(below) else {below: disk.read_file(below)}
    found.pop("/data/.lock", None)
    return found


async def add_voter(world: ControllerWorld, node_id: int) -> None:
    """Have an observer vote, once it follows."""
    key = world.role(node_id).node.driver.node.quorum.identity.key
    request = AddRaftVoterRequest(
        cluster_id=CLUSTER_ID,
        timeout_ms=10_000,
        voter_id=node_id,
        voter_directory_id=key.directory_id,
        listeners=[add_raft_voter.Listener(name="CONTROLLER", host=f"node{node_id}", port=9093)],
    )
    with trio.fail_after(60):
        while (await world.ask(await world.active(), request, 1)).error_code:
            await trio.sleep(0.5)


async def lead_alone(world: ControllerWorld, node_id: int) -> None:
    """Have the node that is left lead the topic, once the others are missed.

    The sessions of all brokers end together, so that it is a matter of chance who is fenced last and leads.
    """
    await until(lambda: set(world.services(node_id).metadata.image.brokers) == {node_id})
    if world.leader(node_id, "t") != node_id:
        response = await world.ask(node_id, ElectLeadersRequest(election_type=1, topic_partitions=None), 2)
        assert not response.error_code
        await until(lambda: world.leader(node_id, "t") == node_id)


async def test_one_of_three_goes_on_alone_and_new_nodes_join_it(autojump_clock: MockClock) -> None:
    async with begun() as world:
        for node_id in (1, 2, 3):
            await world.kill(node_id)
        done = recovered(world, 1)
        assert done.before.voters.ids == (1, 2, 3)
        await world.start(1)
        raft = world.role(1).node.driver.node
        assert raft.epoch > done.epoch > done.before.epoch
        assert raft.quorum.voters.ids == (1,)
        await lead_alone(world, 1)
        assert await world.values("t", 1) == [b"a"]
        await world.create(1, "made-alone")
        for node_id in (2, 3):
            world.empty_disk(node_id)
            world.format(node_id, voters=[])
            await world.start(node_id)
            await add_voter(world, node_id)
        assert raft.quorum.voters.ids == (1, 2, 3)
        await world.in_sync(1, "t", 3)
        await world.stop(1)
        await until(lambda: world.leader(2, "t") != 1)
        await world.produce("t", b"b")
        assert await world.values("t", 2) == [b"a", b"b"]


@pytest.mark.parametrize("returning", [[2], [2, 3]], ids=["one", "both, which are a majority of the old voters"])
async def test_lost_nodes_that_come_back_and_reach_the_restored_one_follow_it(
    returning: list[int], autojump_clock: MockClock
) -> None:
    async with begun() as world:
        await world.kill(1)  # its log is a beginning of those of the others
        for node_id in (2, 3):
            await world.kill(node_id)
        recovered(world, 1)
        await world.start(1)
        for node_id in returning:
            world.start_soon(node_id)

        def follow() -> bool:
            nodes = [world.role(node_id).node.driver.node for node_id in returning]
            return all(each.leader_id == 1 and each.quorum.voters.ids == (1,) for each in nodes)

        await until(lambda: all(world.lives[node_id].ready.is_set() for node_id in returning))
        await until(follow)
        assert isinstance(world.role(1).node.driver.node.quorum.state, RaftLeader)


async def test_a_log_that_lacks_what_was_committed_takes_it_back(autojump_clock: MockClock) -> None:
    """What the others made without the node that is restored is gone, on a node that comes back with it as well."""
    async with begun() as world:
        await world.kill(1)
        at = await world.active()
        await world.create(at, "lost")
        for node_id in (2, 3):
            await world.kill(node_id)
        ends = [examine(world.disk(node_id), "/data", SimulatedClock()) for node_id in (1, 2)]
        assert (ends[0].epoch, ends[0].end_offset) < (ends[1].epoch, ends[1].end_offset), "node 2 is the better choice"
        recovered(world, 1)
        await world.start(1)
        assert set(world.services(1).metadata.image.topics) == {"t"}
        await world.start(2)
        assert set(world.services(2).metadata.image.topics) == {"t"}


async def test_looking_changes_nothing_and_the_old_state_is_kept(autojump_clock: MockClock) -> None:
    async with begun() as world:
        for node_id in (1, 2, 3):
            await world.kill(node_id)
        disk = world.disk(1)
        before = files(disk)
        remains = examine(disk, "/data", SimulatedClock())
        assert files(disk) == before
        assert (remains.key.node_id, remains.cluster_id, remains.voters.ids) == (1, CLUSTER_ID, (1, 2, 3))
        done = recovered(world, 1)
        assert done.before == remains
        with tarfile.open(fileobj=io.BytesIO(disk.read_file(done.kept))) as archive:
            kept = {f"/data/{each.name}": archive.extractfile(each) for each in archive}
        content = {path: file.read() for path, file in kept.items() if file is not None}
        assert content == {path: data for path, data in before.items() if path.startswith(LOG)}
        changed = {path for path, data in files(disk).items() if before.get(path) != data} - {done.kept}
        assert all(path.startswith(LOG) for path in changed)
        assert files(disk)[f"{LOG}/00000000000000000000.log"].startswith(before[f"{LOG}/00000000000000000000.log"])


async def test_a_broker_with_the_longest_log_becomes_the_voter(autojump_clock: MockClock) -> None:
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, {1: "controller", 2: "broker"})
        world.format()
        await world.start()
        await world.create(2, "t")
        await world.produce("t", b"a")
        await world.kill(1)
        await world.kill(2)
        disk = world.disk(2)
        with pytest.raises(QuorumRecoveryError, match="node 2 was not a voter with this directory: name its address"):
            recover_quorum(disk, "/data", SimulatedClock())
        recover_quorum(disk, "/data", SimulatedClock(), (ListenerEndpoint("CONTROLLER", "node2", 9093),))
        world.roles[2] = BOTH
        await world.start(2)
        await lead_alone(world, 2)
        assert await world.values("t", 2) == [b"a"]
        nursery.cancel_scope.cancel()


async def test_what_cannot_be_restored_is_left_alone(autojump_clock: MockClock) -> None:
    async with begun(1) as world:
        with pytest.raises(BlockingIOError):
            recovered(world, 1)
        await world.stop(1)
        before = files(world.disk(1))
        with pytest.raises(QuorumRecoveryError, match="node 1 is the only voter already"):
            recovered(world, 1)
        assert files(world.disk(1)) == before
    with pytest.raises(QuorumRecoveryError, match="has no metadata log"):
        recover_quorum(MemoryDisk(), "/data", SimulatedClock())


async def test_voters_that_are_a_property_are_changed_there(autojump_clock: MockClock) -> None:
    async with begun(3, is_static=True) as world:
        for node_id in (1, 2, 3):
            await world.kill(node_id)
        with pytest.raises(QuorumRecoveryError, match=r"name this node alone in controller\.quorum\.voters"):
            recovered(world, 1)
