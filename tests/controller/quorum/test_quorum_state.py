"""``quorum-state`` of a broker: what it writes, and that a restart goes on with it."""

from __future__ import annotations

import json
from pathlib import Path

import trio
import trio.testing

from ottla.controller.raft.election_file import ElectionState, read_election, write_election
from ottla.log.disk import OsDisk
from ottla.wire.messages.control_records import Endpoint, KRaftVersionRecord, Voter, VotersRecord

from .helpers.following_world import World, ids, running, settle
from .helpers.scripted_quorum import HOST

Clock = trio.testing.MockClock


def file_of(world: World) -> Path:
    return world.folder / "__cluster_metadata-0" / "quorum-state"


def voters(world: World) -> VotersRecord:
    """The record of the controllers that the test plays."""
    return VotersRecord(
        voters=[
            Voter(voter_id=number, endpoints=[Endpoint(name="CONTROLLER", host=HOST, port=number)])
            for number in world.quorum.ids
        ]
    )


async def test_each_epoch_and_leader_is_written_in_the_form_of_the_level(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world, world.following():
        await settle(world)
        assert json.loads(file_of(world).read_text()) == {
            "clusterId": "",
            "leaderId": 1,
            "leaderEpoch": 1,
            "votedId": -1,
            "appliedOffset": 0,
            "currentVoters": [],
            "data_version": 0,
        }
        world.quorum.append_control(KRaftVersionRecord(k_raft_version=1), voters(world))
        await settle(world)
        assert json.loads(file_of(world).read_text())["data_version"] == 0
        world.quorum.elect(3)
        await settle(world)
        assert json.loads(file_of(world).read_text()) == {
            "leaderId": 3,
            "leaderEpoch": 2,
            "votedId": -1,
            "votedDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA",
            "data_version": 1,
        }


async def test_the_voters_of_the_log_are_written_while_the_level_is_0(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.quorum.append_control(voters(world))
        async with world.following():
            await settle(world)
            world.quorum.elect(2)
            await settle(world)
            assert json.loads(file_of(world).read_text())["currentVoters"] == [
                {"voterId": number} for number in world.quorum.ids
            ]


async def test_a_restart_asks_the_leader_that_it_knows(tmp_path: Path, autojump_clock: Clock) -> None:
    async with running(tmp_path) as world:
        world.quorum.append_control(KRaftVersionRecord(k_raft_version=1), voters(world))
        for leader_id in (1, 2, 3):
            async with world.following():
                world.quorum.elect(leader_id)
                await settle(world)
            world.quorum.asked.clear()
            async with world.following():
                await settle(world)
            assert set(world.quorum.asked) == {leader_id}


async def test_a_restart_does_not_go_back_to_an_earlier_epoch(tmp_path: Path, autojump_clock: Clock) -> None:
    """Also where no record of the later epoch has come: only the file knows of it."""
    async with running(tmp_path) as world:
        async with world.following():
            await settle(world)
            world.quorum.epoch, world.quorum.leader_id = 4, 2
            world.quorum.wake()
            await trio.sleep(2)
            assert world.leadership == (4, 2)
        world.quorum.epoch, world.quorum.leader_id = 1, 1
        world.quorum.append(ids(2))
        async with world.following():
            await trio.sleep(10)
            assert world.leadership == (4, 2)
            assert world.image.next_producer_id == -1
            world.quorum.epoch = 4
            world.quorum.elect(3)
            await world.sees_ids(2)


async def test_a_vote_stays_until_its_epoch_ends(tmp_path: Path, autojump_clock: Clock) -> None:
    """A node that was a voter, and is one again: it must not vote for another in that epoch."""
    async with running(tmp_path) as world:
        file_of(world).parent.mkdir()
        vote = ElectionState(1, -1, 3, b"v" * 16)
        write_election(OsDisk(), str(file_of(world).parent), vote, 1)
        world.quorum.append_control(KRaftVersionRecord(k_raft_version=1), voters(world))
        async with world.following():
            await settle(world)
            found = json.loads(file_of(world).read_text())
            assert (found["leaderEpoch"], found["leaderId"], found["votedId"]) == (1, 1, 3)
            world.quorum.elect(2)
            await settle(world)
            assert read_election(OsDisk(), str(file_of(world).parent)) == ElectionState(2, 2)


async def test_a_file_that_is_older_than_the_log_or_names_this_node_is_replaced(
    tmp_path: Path, autojump_clock: Clock
) -> None:
    async with running(tmp_path) as world:
        async with world.following():
            world.quorum.elect(2)
            await settle(world)
        world.quorum.is_silent = True
        for left, found in (
            (ElectionState(1, 1, 3), (2, -1)),
            (ElectionState(5, 7), (5, -1)),
            (ElectionState(5, 2), (5, 2)),
        ):
            write_election(OsDisk(), str(file_of(world).parent), left, 1)
            async with world.following():
                await trio.testing.wait_all_tasks_blocked()
                assert world.leadership == found
                assert json.loads(file_of(world).read_text())["leaderEpoch"] == found[0]
                assert json.loads(file_of(world).read_text())["votedId"] == -1
