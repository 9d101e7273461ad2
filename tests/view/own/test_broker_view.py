"""The rows of a broker are what was done to it; and what is read for them is read in slices, once for all who ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.handlers.activity import Activity
from ottla.replication.delayed_fetch import DelayedFetch, FetchedPartition
from ottla.view.own.activity import consumer_rows, writer_rows
from ottla.view.own.administration import cluster_detail
from ottla.view.own.applications import application_rows
from ottla.view.own.broker_view import MOST_TIMED, BrokerView, NotFoundError
from ottla.view.own.topics import ReplicasHere
from ottla.view.own.transactions import holder_rows
from ottla.view.pace import PROMPT_SECONDS, UNITS_PER_SLICE, Pace
from ottla.wire.messages.fetch import FetchPartition
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

from ...helpers.memory_cluster import MemoryCluster, running, until

ONE = (1,)


def view_of(cluster: MemoryCluster, broker_id: int = 1) -> BrokerView:
    return BrokerView(cluster.servers[broker_id], SimulatedClock(), InlineWorkers())


@asynccontextmanager
async def watched(**properties: str) -> AsyncIterator[tuple[MemoryCluster, BrokerView]]:
    async with running(1, offsets_topic_replication_factor="1", **properties) as cluster:
        yield cluster, view_of(cluster)


async def commit(cluster: MemoryCluster, group: str, topic: str, *offsets: int) -> None:
    """An offset for each partition, from the first one on."""
    partitions = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        for number, offset in enumerate(offsets)
    ]
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)])
    answer: OffsetCommitResponse
    with trio.fail_after(60):
        while True:
            answer = await cluster.ask(1, request, 8)
            if {each.error_code for found in answer.topics for each in found.partitions} == {0}:
                return
            await cluster.ask(1, FindCoordinatorRequest(key=group), 3)  # which makes the topic
            await trio.sleep(0.1)


async def test_topics_are_counted_as_they_are(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view):
        await cluster.create("t", ONE, ONE, **{"retention.ms": "60000", "segment.ms": "70000"})
        await cluster.produce(1, "t", 0, b"one", b"two")
        await cluster.produce(1, "t", 1, b"three")
        (row,) = await view.topics()
        assert (row.name, row.partitions, row.replicas, row.here, row.led) == ("t", 2, 1, 2, 2)
        assert row.records == 3
        assert row.size == sum(each.size for each in (await view.topic("t")).partitions if each.size)
        assert (row.cleanup_policy, row.retention_ms) == ("delete", 60000)
        assert not row.is_internal
        detail = await view.topic("t")
        assert [each.high_watermark for each in detail.partitions] == [2, 1]
        assert [each.leader for each in detail.partitions] == [1, 1]
        assert len(detail.topic_id) == 22
        sources = {each.name: (each.value, each.source) for each in detail.configs}
        assert sources["retention.ms"] == ("60000", "TOPIC_CONFIG")
        assert sources["segment.bytes"][1] == "DEFAULT_CONFIG"
        (segment,) = await view.segments("t", 0)
        assert (segment.base_offset, segment.next_offset, segment.is_active) == (0, 2, True)


async def test_what_is_not_there_is_named(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (_, view):
        with pytest.raises(NotFoundError, match="no topic nothing"):
            await view.topic("nothing")
        with pytest.raises(NotFoundError, match="coordinator of no group nobody"):
            await view.group("nobody")
        with pytest.raises(NotFoundError, match="no replica of nothing-0"):
            view.partition("nothing", 0)


async def test_lag_in_records_and_in_time(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view):
        await cluster.create("t", ONE, ONE, **{"message.timestamp.type": "LogAppendTime"})
        await cluster.produce(1, "t", 0, b"0")
        await trio.sleep(10)
        await cluster.produce(1, "t", 0, b"1")
        await cluster.produce(1, "t", 1, b"0")
        await commit(cluster, "g", "t", 1, 1)
        await trio.sleep(30)
        (row,) = await view.groups()
        assert (row.group_id, row.state, row.partitions, row.lag, row.max_lag) == ("g", "Empty", 2, 1, 1)
        assert (row.unknown, row.lost) == (0, 0)
        first, second = (await view.group("g")).partitions
        assert (first.committed, first.end, first.lag, first.is_lost) == (1, 2, 1, False)
        assert first.lag_ms is not None
        assert 30_000 <= first.lag_ms < 35_000, "since the second record came, and not the first"
        assert (second.lag, second.lag_ms) == (0, 0)
        (topic,) = [row for row in await view.topics() if row.name == "t"]
        assert topic.max_lag == 1
        (reader,) = (await view.topic("t")).readers
        assert (reader.group_id, reader.partitions, reader.lag) == ("g", 2, 1)


async def test_a_group_that_missed_records_is_told(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view):
        await cluster.create("t", ONE)
        for number in range(3):
            await cluster.produce(1, "t", 0, b"%d" % number)
        await commit(cluster, "late", "t", 1)
        cluster.services(1).replicas.partition("t", 0).log.delete_records_before(3)
        (row,) = await view.groups()
        assert row.lost == 1
        (partition,) = (await view.group("late")).partitions
        assert partition.is_lost
        (finding,) = (await view.cluster()).findings
        assert finding.what == "1 group did not read records before they were deleted"
        assert [subject.key for subject in finding.subjects] == ["late"]


async def test_members_and_the_connections_of_their_clients(autojump_clock: trio.testing.MockClock) -> None:
    async with watched(group_initial_rebalance_delay_ms="0") as (cluster, view):
        await cluster.create("t", ONE)
        await commit(cluster, "g", "t", 0)
        join = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        answer = await cluster.ask(1, join, 2)
        assert answer.error_code == 0
        detail = await view.group("g")
        (member,) = detail.members
        assert (member.client_id, member.assigned) == ("client", ())
        assert detail.row.state == "CompletingRebalance"
        assert detail.row.epoch == 1
        (connection,) = [row for row in await view.connections() if row.client_id == "client"]
        assert (connection.listener, connection.principal) == ("PLAINTEXT", "User:ANONYMOUS")
        assert connection.age_ms >= connection.idle_ms >= 0


async def test_rates_follow_what_comes_and_end_with_it(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view), trio.open_nursery() as nursery:
        await cluster.create("t", ONE)
        await cluster.create("quiet", ONE)
        nursery.start_soon(view.run)
        await trio.sleep(2.5)
        for _ in range(40):
            await cluster.produce(1, "t", 0, b"x" * 900)
            await trio.sleep(0.5)
        rates = view.traffic.of("t")
        assert rates.messages_in == pytest.approx(2, rel=0.2)
        assert rates.bytes_in == pytest.approx(2 * 970, rel=0.2)
        assert view.traffic.of("quiet").messages_in == 0
        (_, *_, in_the_last_second) = view.history.seconds.points(["messages_in"], 3600)
        assert in_the_last_second[1] == pytest.approx(2, abs=1.1)
        assert len(view.history.seconds.points(["messages_in"], 10)) == 10
        await trio.sleep(100)
        assert view.traffic.of("t").messages_in == 0
        assert [point[1] for point in view.history.seconds.points(["messages_in"], 3)] == [0, 0, 0]
        assert len(view.history.minutes.points(["messages_in"], 60)) == 2
        assert view.history.minutes.points(["messages_in"], 60)[0][1] > 0
        nursery.cancel_scope.cancel()


async def test_a_topic_that_is_made_anew_does_not_count_backwards(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view):
        await cluster.create("t", ONE)
        await cluster.create("other", ONE)
        await cluster.produce(1, "t", 0, b"x" * 100)
        await view.sample()
        await trio.sleep(1)
        partition = cluster.services(1).replicas.partition("t", 0)
        partition.bytes_in = partition.messages_in = 0
        await view.sample()
        assert view.traffic.total.bytes_in == 0


async def test_no_slice_is_longer_than_so_many_units(autojump_clock: trio.testing.MockClock) -> None:
    """A topic of many partitions, and a group that has committed each: work is counted, not time."""
    async with watched() as (cluster, view):
        await cluster.create("many", *[ONE] * 1200)
        for number in range(5):
            await commit(cluster, f"g{number}", "many", *[0] * 1200)
        paces: list[Pace] = []

        def pace() -> Pace:
            paces.append(Pace(view._clock.elapsed))
            return paces[-1]

        view.pace = pace  # type: ignore[method-assign]
        await view.topics()
        await view.groups()
        detail = await view.topic("many")
        assert len(detail.partitions) == 1200
        assert len((await view.group("g0")).partitions) == 1200
        await view.sample()
        assert sum(each.slices for each in paces) >= 1200 // UNITS_PER_SLICE * (5 + 4 + 2)
        assert max(each.largest for each in paces) < UNITS_PER_SLICE + 50


async def test_who_writes_and_reads_is_looked_up_in_slices(autojump_clock: trio.testing.MockClock) -> None:
    """Connections that have each written to and read from every partition of a topic of many."""
    async with watched() as (cluster, view):
        await cluster.create("many", *[ONE] * 900)
        services = cluster.services(1)
        topic = services.metadata.topics["many"]
        opened = [await cluster.network.connect("broker1", 9092) for _ in range(20)]
        await until(lambda: len(list(cluster.servers[1].connections())) >= len(opened))
        connections = [*cluster.servers[1].connections()][-len(opened) :]
        for connection in connections:
            activity = connection.call.activity = Activity()
            activity.produced = {("many", number): (1, 0, -1) for number in range(900)}
            activity.fetched = [
                FetchedPartition("many", topic.topic_id, FetchPartition(partition=number), DelayedFetch())
                for number in range(900)
            ]
        pace = Pace(view._clock.elapsed)
        replicas = ReplicasHere(services)
        assert len(await writer_rows(services, connections, topic, replicas, pace)) == 20 * 900
        assert len(await consumer_rows(services, connections, topic, replicas, pace)) == 20 * 900
        assert sum(row.connections for row in await application_rows(connections, pace)) == 20
        assert (await cluster_detail(services, (), pace)).nodes[0].led == 900
        assert await holder_rows(services, 1, pace) == []
        assert pace.slices >= 20 * 900 * 2 // UNITS_PER_SLICE
        assert pace.largest < UNITS_PER_SLICE + 150


async def test_a_page_is_made_without_rest_unless_it_takes_long(autojump_clock: trio.testing.MockClock) -> None:
    """Other tasks have a turn after each slice; when a page has taken what it may, they have as long as the slice took."""
    now = 0.0
    pace = Pace(lambda: now, 1)
    for number in range(1, 20):
        now += PROMPT_SECONDS / 10
        assert pace.is_due()
        before = trio.current_time()
        await pace.rest()
        rested = trio.current_time() - before
        assert rested == pytest.approx(0 if number <= 10 else PROMPT_SECONDS / 10)


async def test_the_lag_in_time_is_read_of_what_a_page_shows_and_of_several_partitions_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with watched() as (cluster, view):
        await cluster.create("many", *[ONE] * (MOST_TIMED + 50))
        for number in range(MOST_TIMED + 50):
            await cluster.produce(1, "many", number, b"x")
        await commit(cluster, "g", "many", *[0] * (MOST_TIMED + 50))
        jobs = 0
        run = view.workers.run

        async def counted(job: Callable[..., Any], *arguments: Any) -> Any:
            nonlocal jobs
            jobs += 1
            return await run(job, *arguments)

        view.workers.run = counted  # type: ignore[method-assign]
        rows = (await view.group("g")).partitions
        assert [row.lag_ms is not None for row in rows] == [True] * MOST_TIMED + [False] * 50
        assert jobs == MOST_TIMED / 10
        await view.group("g")
        assert jobs == MOST_TIMED / 10, "what was found is kept"


async def test_what_several_ask_for_is_read_once(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view):
        await cluster.create("t", ONE)
        results: list[object] = []

        async def ask() -> None:
            results.append(await view.topics())

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        first = results[0]
        assert all(each is first for each in results)
        assert await view.topics() is first
        await trio.sleep(1.1)
        assert await view.topics() is not first


async def test_who_leaves_while_it_is_read_leaves_it_to_the_others(autojump_clock: trio.testing.MockClock) -> None:
    async with watched() as (cluster, view):
        await cluster.create("many", *[ONE] * 1200)
        leaving = trio.CancelScope()

        async def ask_and_leave() -> None:
            with leaving:
                await view.topics()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_and_leave)
            await trio.testing.wait_all_tasks_blocked()
            leaving.cancel()
            (row,) = await view.topics()
        assert row.partitions == 1200
