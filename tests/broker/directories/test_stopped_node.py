"""Users of a stopped node that is its own quorum: its next start has them, and a crash leaves the old ones or the new."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest
import trio
from trio.testing import MockClock

from ottla.base.seams import SimulatedClock
from ottla.broker.directories.stopped_node import NotItsOwnQuorumError, StoppedNode, pending_credentials
from ottla.controller.quorum.active.result import MAX_RECORDS
from ottla.controller.quorum.snapshot_records import credential_record
from ottla.log.disk import Disk
from ottla.log.metadata_snapshots import BOOTSTRAP_ID, list_snapshots
from ottla.security.scram import ScramMechanism
from ottla.wire.messages.access_records import RemoveUserScramCredentialRecord
from ottla.wire.records import iter_batches

from ...controller.helpers.old_state import CREDENTIAL
from ..helpers.controller_world import ControllerWorld, quota_records
from ..helpers.dying_disk import DiedError, DyingDisk
from ..helpers.old_directories import full_disk, full_state, own

MECHANISM = ScramMechanism.SHA_256


def add(disk: Disk, *users: str) -> None:
    with closing(StoppedNode(disk, "/data", SimulatedClock())) as node:
        node.append([(credential_record(user, MECHANISM, CREDENTIAL), 0) for user in users])
        assert {*users} <= node.image.scram.keys()


def remove(disk: Disk, user: str) -> None:
    with closing(StoppedNode(disk, "/data", SimulatedClock())) as node:
        node.append([(RemoveUserScramCredentialRecord(name=user, mechanism=MECHANISM), 0)])
        assert user not in node.image.scram


def users(disk: Disk) -> set[str]:
    with closing(StoppedNode(disk, "/data", SimulatedClock())) as node:
        return {*node.image.scram}


@asynccontextmanager
async def world_of(*node_ids: int) -> AsyncIterator[ControllerWorld]:
    async with trio.open_nursery() as nursery:
        yield ControllerWorld(nursery, dict.fromkeys(node_ids, "broker,controller"))
        nursery.cancel_scope.cancel()


async def test_before_the_first_start(autojump_clock: MockClock) -> None:
    async with world_of(1) as world:
        world.format()
        add(world.disk(1), "alice", "bob")
        add(world.disk(1), "bob", "carol")
        remove(world.disk(1), "carol")
        assert users(world.disk(1)) == {"alice", "bob"}
        await world.start()
        image = world.services(1).metadata.image
        assert {user: dict(found) for user, found in image.scram.items()} == {
            user: {MECHANISM: CREDENTIAL} for user in ("alice", "bob")
        }


async def test_before_the_directories_are_formatted(autojump_clock: MockClock) -> None:
    disk = DyingDisk()
    disk.make_dir("/data")
    assert pending_credentials(disk, "/data") == []
    add(disk, "alice", "bob")
    remove(disk, "bob")
    assert [each.name for each in pending_credentials(disk, "/data")] == ["alice"]
    assert users(disk) == {"alice"}


@pytest.mark.parametrize("is_killed", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("snapshot_bytes", ["20971520", "1"], ids=["its log", "its log after a snapshot"])
async def test_while_it_is_stopped(is_killed: bool, snapshot_bytes: str, autojump_clock: MockClock) -> None:
    async with world_of(1) as world:
        world.format()
        own_settings = {"metadata_log_max_record_bytes_between_snapshots": snapshot_bytes}
        await world.start(**own_settings)
        await world.create(1, "t")
        await world.produce("t", b"a")
        for user, has in (("alice", {"alice"}), ("bob", {"alice", "bob"})):
            await (world.kill(1) if is_killed else world.stop(1))
            add(world.disk(1), user, "eve")
            remove(world.disk(1), "eve")
            assert users(world.disk(1)) == has
            await world.start(**own_settings)
            assert {*world.services(1).metadata.image.scram} == has
            assert await world.values("t", 1) == [b"a"]
        has_snapshots = list_snapshots(world.disk(1), "/data/__cluster_metadata-0") != [BOOTSTRAP_ID]
        assert has_snapshots == (snapshot_bytes == "1")


async def test_a_crash_leaves_the_old_users_or_the_new(autojump_clock: MockClock) -> None:
    async with world_of(1) as world:
        world.format()
        await world.start()
        await world.create(1, "t")
        await world.stop(1)
        add(world.disk(1), "alice")
        whole = DyingDisk.of(world.disk(1))
    counted = whole.copy()
    add(counted, "bob")
    outcomes = set()
    for number in range(counted.operations + 1):
        for seed in range(5):
            disk = whole.copy()
            disk.dies_at = number
            try:
                add(disk, "bob")
            except DiedError:
                pass
            disk.restart(random.Random(seed))
            outcomes.add(frozenset(users(disk)))
        assert number < counted.operations or users(disk) == {"alice", "bob"}, "it is on stable storage at the end"
    assert outcomes == {frozenset({"alice"}), frozenset({"alice", "bob"})}


@pytest.mark.slow
async def test_half_of_the_first_records_are_none(autojump_clock: MockClock) -> None:
    """The node died while its controller wrote them: the next one writes all of them anew, from the file."""
    async with world_of(1) as world:
        world.format(records=quota_records(10_100))
        await world.start()
        await world.stop(1)
        log = "/data/__cluster_metadata-0/00000000000000000000.log"
        batches = list(iter_batches(world.disk(1).read_file(log)))
        end = next(number for number, each in enumerate(batches) if each.record_count == MAX_RECORDS)
        world.disk(1).write_file(log, b"".join(each.view for each in batches[: end + 1]))
        add(world.disk(1), "alice")
        assert users(world.disk(1)) == {"alice"}
        await world.start()
        assert {*world.services(1).metadata.image.scram} == {"alice"}


async def test_a_quorum_of_several_is_refused(autojump_clock: MockClock) -> None:
    async with world_of(1, 2, 3) as world:
        world.format()
        with pytest.raises(
            NotItsOwnQuorumError, match="node 1 of a cluster with the controllers 1, 2, 3: only a running"
        ):
            users(world.disk(1))


def test_metadata_of_an_older_ottla_are_taken_over_first() -> None:
    with pytest.raises(
        NotItsOwnQuorumError, match="/a has the metadata of an Ottla before KRaft: start the broker once"
    ):
        StoppedNode(full_disk(full_state()), "/a")


def test_a_broker_of_zookeeper_mode_is_started_first() -> None:
    disk = DyingDisk()
    own(disk, "/data")
    with pytest.raises(NotItsOwnQuorumError, match="/data is of a broker of ZooKeeper mode"):
        users(disk)
