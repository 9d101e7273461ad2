"""Writing many states: together, singly where another writer was faster, and again where an answer was lost."""

from __future__ import annotations

import pytest
import trio.testing

from ottla.controller.new_topics import NewTopic
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.state import partition_states
from ottla.controller.zookeeper.state.partition_states import transactions
from ottla.controller.zookeeper.store.cluster_store import Create, Operation, Set
from ottla.metadata.types import LeaderState
from ottla.tests.controller.helpers.cluster import Cluster, running

WIDE = NewTopic("wide", assignment={number: [2, 1] for number in range(120)})


async def dead(cluster: Cluster) -> None:
    """Broker 1 leads everything after the death of broker 2, each partition under leader epoch 1."""
    for number in range(120):
        await cluster.until_state("wide", LeaderState(1, 1, (1,), 1), number)


async def test_many_states_are_a_few_writes() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(WIDE)
        tree = await cluster.store.sync()
        before = tree.zxid
        await cluster.die(2)
        await dead(cluster)
        assert tree.zxid == before + 1 + 3  # the end of the session; 50, 50 and 20 states


async def test_a_state_in_conflict_does_not_keep_the_others_back() -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(WIDE)
        state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":7,"isr":[2,1]}'
        await cluster.session.multi([Set(znodes.state_path("wide", 60), state)])
        tree = await cluster.store.sync()
        before = tree.zxid
        await cluster.die(2)
        assert await cluster.state("wide", 60) == LeaderState(1, 8, (1,), 1)
        assert await cluster.state("wide", 61) == LeaderState(1, 1, (1,), 1)
        assert await cluster.state("wide", 119) == LeaderState(1, 1, (1,), 1)
        assert tree.zxid == before + 1 + 2 + 50  # the group of 60 singly, and 60 once more
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"1"


@pytest.mark.parametrize("is_executed", [True, False])
async def test_states_whose_answer_was_lost_are_looked_at(
    is_executed: bool, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(brokers=2) as cluster:
        await cluster.create(WIDE)
        cluster.link.lose_connection_at_next_multi(is_executed=is_executed)
        await cluster.sessions[2].expire()
        await dead(cluster)
        assert (await cluster.session.get(znodes.CONTROLLER_EPOCH)).data == b"1"


def test_a_transaction_is_no_larger_than_zookeeper_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_states, "MAX_OPERATIONS", 3)
    monkeypatch.setattr(partition_states, "MAX_BYTES", 1000)
    small: list[Operation] = [Create(f"/{i}") for i in range(7)]
    assert list(transactions(small)) == [small[:3], small[3:6], small[6:]]
    large: list[Operation] = [Set("/n", bytes(size)) for size in (300, 400, 500, 2000, 10)]
    assert list(transactions(large)) == [large[:2], large[2:3], large[3:4], large[4:]]
    assert list(transactions([])) == []


async def test_a_topic_that_is_too_large_for_one_transaction_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_states, "MAX_BYTES", 5000)
    async with running(brokers=2) as cluster:
        tree = await cluster.store.sync()
        before = tree.zxid
        await cluster.create(WIDE)
        assert tree.zxid > before + 5
        assert await cluster.state("wide", 119) == LeaderState(2, 0, (2, 1), 1)
