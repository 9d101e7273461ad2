"""The members of the benchmark of consumer groups on a small broker: they come, share, go, and a wrong share is found."""

from __future__ import annotations

import gc
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

import ottla
from ottla.bench.brokers import Ottla, RunningBroker
from ottla.bench.consumer_groups import WithSettings
from ottla.bench.group_members import Members, all_joined, open_members
from ottla.bench.innocent_producer import InnocentProducer
from ottla.bench.loop_steps import Steps
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Operator

PARTITIONS = 24
INTERVALS = {
    "group.consumer.heartbeat.interval.ms": "50",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with ottla.Broker(properties=INTERVALS) as broker:
        Operator(broker.bootstrap_servers).create_topic("t", PARTITIONS, {})
        yield broker.bootstrap_servers


def port_of(bootstrap: str) -> int:
    return int(bootstrap.rpartition(":")[2])


async def join(members: Members, count: int) -> None:
    """So many more, until all have their partitions."""
    for _ in range(count):
        members.join(["t"])
    await all_joined(members.present)
    await members.settled(PARTITIONS)


def shares(members: Members) -> list[int]:
    return sorted(sum(map(len, member.owned.values())) for member in members.present)


def test_members_share_the_partitions_as_they_come_and_go(bootstrap: str) -> None:
    async def main() -> None:
        async with open_members("come and go", port_of(bootstrap), 3) as members:
            await join(members, 6)
            assert shares(members) == [4] * 6
            await join(members, 2)
            assert shares(members) == [3] * 8
            for member in members.present[:4]:
                members.leave(member)
            await members.settled(PARTITIONS)
            assert shares(members) == [6] * 4
            assert await members.send_idle_heartbeats(0.1, 2, 2) > 0
            for member in list(members.present):
                members.leave(member)
            while await members.state() != "Empty":
                await trio.sleep(0.01)

    trio.run(main)


def test_two_owners_of_a_partition_are_found(bootstrap: str) -> None:
    async def main() -> None:
        async with open_members("two owners", port_of(bootstrap), 1) as members:
            await join(members, 2)
            first, second = members.present
            second.owned = first.owned
            with pytest.raises(RuntimeError, match="has one owner"):
                await members.settled(PARTITIONS)

    trio.run(main)


def test_a_member_that_the_broker_refuses_ends_the_run(bootstrap: str) -> None:
    async def main() -> None:
        async with open_members("refused", port_of(bootstrap), 1) as members:
            await join(members, 1)
            while True:  # a response that is on its way sets it again
                members.present[0].epoch = 99
                await trio.sleep(0.01)

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="FENCED_MEMBER_EPOCH")):
        trio.run(main)


def test_an_innocent_producer_tells_its_latencies_of_each_time(bootstrap: str) -> None:
    Operator(bootstrap).create_topic("innocent", 1, {})

    def latencies() -> list[float]:
        producer.begin()
        return producer.end()

    with InnocentProducer(bootstrap, "innocent") as producer:
        found = [eventually(latencies) for _ in range(2)]
    assert min(map(min, found)) > 0


def test_an_innocent_producer_whose_records_are_refused_ends(bootstrap: str) -> None:
    with InnocentProducer(bootstrap, "no-such-topic") as producer, pytest.raises(RuntimeError, match="has ended"):
        while True:
            producer.begin()
            producer.end()


def test_steps_name_the_task_that_took_longest_and_leave_collections_out() -> None:
    steps = Steps()
    steps.watch_collections()
    looked_at = [[] for _ in range(300_000)]

    async def busy() -> None:
        sum(range(1_000_000))

    async def collects() -> None:
        for _ in range(10):
            gc.collect()
        looked_at.clear()

    async def main() -> None:
        trio.lowlevel.add_instrument(steps)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(busy, name="busy")
            nursery.start_soon(collects, name="collects")

    try:
        trio.run(main)
    finally:
        gc.callbacks.pop()
    assert steps.take()[0][2] == "busy"
    assert steps.take() == []
    assert steps.take_longest_collection() > 0
    assert steps.take_longest_collection() == 0


@pytest.mark.slow
def test_a_watched_broker_writes_its_longest_steps(tmp_path: Path) -> None:
    with RunningBroker(WithSettings(Ottla(), INTERVALS, is_watched=True), tmp_path / "own") as broker:
        broker.signal(signal.SIGUSR1)
        broker.create_topic("t", PARTITIONS)
        broker.signal(signal.SIGUSR2)
        file = broker.folder / "steps.json"
        eventually(file.exists)
        found = json.loads(file.read_text())
    assert found["steps"] == sorted(found["steps"], reverse=True)
    assert found["steps"][0][2].startswith("ottla.")
