"""Raft nodes on real logs: elections, commits, ends of processes and disks, snapshots and voters."""

from __future__ import annotations

import errno
import random

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.controller.raft import effects
from ottla.controller.raft.events import RequestReceived
from ottla.controller.raft.messages import vote_request
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener

from .helpers.driven_quorum import LISTENER, driven_quorum, until


async def test_what_a_leader_appends_is_committed_on_all(autojump_clock: trio.testing.MockClock) -> None:
    async with driven_quorum(1, 2, 3) as quorum:
        leader = await quorum.leader()
        last = leader.append(b"a", b"b")
        leader.append(b"c")
        for node in quorum.nodes.values():
            await until(lambda node=node: node.values() == [b"a", b"b", b"c"])
        assert leader.driver.node.quorum.log.end_offset == last + 2
        others = [node for node in quorum.nodes.values() if node is not leader]
        for node in quorum.nodes.values():
            changes = [each for each in node.news if isinstance(each, effects.LeaderChanged)]
            assert changes[-1].leader_id == leader.node_id
        with pytest.raises(KafkaError) as refused:
            others[0].append(b"d")
        assert refused.value.code is ErrorCode.NOT_CONTROLLER


async def test_one_node_leads_and_commits_alone_and_is_idle_then(autojump_clock: trio.testing.MockClock) -> None:
    async with driven_quorum(1) as quorum:
        node = await quorum.leader()
        node.append(b"a")
        await until(lambda: node.values() == [b"a"])
        end = node.driver.node.quorum.log.end_offset
        await trio.sleep(3600)
        assert node.driver.node.quorum.log.end_offset == end
        assert node.driver.node.deadline_ms == float("inf")


@pytest.mark.parametrize("seed", range(8))
async def test_what_is_committed_outlives_any_node(autojump_clock: trio.testing.MockClock, seed: int) -> None:
    """Killed or without power, one after the other, and then all together."""
    rng = random.Random(seed)
    async with driven_quorum(1, 2, 3) as quorum:
        expected: list[bytes] = []
        for turn in range(6):
            leader = await quorum.leader()
            value = b"turn %d" % turn
            offset = leader.append(value)
            await until(lambda leader=leader, offset=offset: (leader.driver.node.quorum.high_watermark or 0) > offset)
            expected.append(value)
            dying = [*quorum.nodes.values()] if turn == 4 else [rng.choice([*quorum.nodes.values()])]
            for node in dying:
                await node.kill(loses_power=random.Random(seed + turn) if rng.random() < 0.7 else None)
            await trio.sleep(rng.uniform(0, 5))
            await quorum.start(*(node.node_id for node in dying))
        for node in quorum.nodes.values():
            await until(lambda node=node: node.values() == expected)


async def test_a_leader_that_is_gone_is_replaced(autojump_clock: trio.testing.MockClock) -> None:
    async with driven_quorum(1, 2, 3) as quorum:
        first = await quorum.leader()
        epoch = first.driver.node.epoch
        await first.kill()
        second = await quorum.leader(but=first.node_id)
        assert second.driver.node.epoch > epoch
        second.append(b"a")
        await quorum.start(first.node_id)
        await until(lambda: first.values() == [b"a"])


async def test_a_leader_that_leaves_waits_for_another(autojump_clock: trio.testing.MockClock) -> None:
    async with driven_quorum(1, 2, 3) as quorum:
        first = await quorum.leader()
        before = trio.current_time()
        await first.driver.leave(5_000)
        assert trio.current_time() - before < 1, "the others do not wait for a timeout"
        await first.kill()
        second = await quorum.leader(but=first.node_id)
        assert second is not first


@pytest.mark.parametrize("operation", ["write", "sync", "rename"])
async def test_a_disk_that_fails_ends_the_node_and_not_the_quorum(
    autojump_clock: trio.testing.MockClock, operation: str
) -> None:
    async with driven_quorum(1, 2, 3) as quorum:
        leader = await quorum.leader()
        leader.disk.fail(operation, errno.EIO)
        if operation == "rename":
            await leader.driver.leave(5_000)
        else:
            leader.append(b"lost")
        await until(lambda: leader.failure is not None)
        another = await quorum.leader(but=leader.node_id)
        another.append(b"a")
        await until(lambda: another.values()[-1:] == [b"a"])


@pytest.mark.parametrize("turn", range(24))
async def test_a_flush_that_fails_beside_a_vote_ends_the_node_with_its_error(
    autojump_clock: trio.testing.MockClock, turn: int
) -> None:
    """The vote waits for the disk, too, and comes at each of the flush's steps."""
    async with driven_quorum(1, 2, 3) as quorum:
        leader = await quorum.leader()
        other = next(node for node in quorum.nodes.values() if node is not leader)
        leader.disk.fail("sync", errno.EIO)
        leader.append(b"lost")
        for _ in range(turn // 3):
            await trio.lowlevel.checkpoint()
        known = leader.driver.node.quorum
        vote = vote_request(
            "quorum", other.key, leader.key, known.epoch + 1, (known.log.last_epoch, known.log.end_offset), False
        )
        if leader.failure is None:
            leader.driver.step(RequestReceived(1 << 20, vote, LISTENER))
        await until(lambda: leader.failure is not None)
        assert isinstance(leader.failure, OSError | KafkaError)


async def test_a_new_node_begins_with_the_snapshot_and_becomes_a_voter(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with driven_quorum(1, 2, 3, further=[4]) as quorum:
        leader = await quorum.leader()
        leader.append(b"in the snapshot")
        await until(lambda: leader.values() == [b"in the snapshot"])
        leader.take_snapshot()
        leader.append(b"after it")
        await quorum.start(4)
        new = quorum.nodes[4]
        await until(lambda: new.values() == [b"after it"])
        assert new.driver.node.quorum.log.start_offset == leader.driver.node.quorum.log.start_offset > 0
        request = AddRaftVoterRequest(
            cluster_id="quorum",
            timeout_ms=5_000,
            voter_id=4,
            voter_directory_id=new.key.directory_id,
            listeners=[Listener(name=LISTENER, host=new.endpoint.host, port=new.endpoint.port)],
        )
        response = await leader.driver.ask(request, LISTENER)
        assert response.error_code == ErrorCode.NONE
        await until(lambda: all(node.driver.node.quorum.voters.ids == (1, 2, 3, 4) for node in quorum.nodes.values()))
        dead = next(node for node in quorum.nodes.values() if node not in (leader, new))
        await dead.kill()
        leader.append(b"by three of four")
        await until(lambda: new.values()[-1] == b"by three of four")


async def test_a_node_that_was_away_for_long_fetches_the_snapshot(autojump_clock: trio.testing.MockClock) -> None:
    async with driven_quorum(1, 2, 3) as quorum:
        leader = await quorum.leader()
        away = next(node for node in quorum.nodes.values() if node is not leader)
        leader.append(b"before")
        await until(lambda: away.values() == [b"before"])
        await away.kill()
        leader.append(b"meanwhile")
        await until(lambda: leader.values() == [b"before", b"meanwhile"])
        leader.take_snapshot()
        leader.append(b"after it")
        await quorum.start(away.node_id)
        await until(lambda: away.values() == [b"after it"])
        await away.kill(loses_power=random.Random(1))
        await quorum.start(away.node_id)
        await until(lambda: away.values() == [b"after it"])
