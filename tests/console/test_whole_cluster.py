"""In a cluster every broker's own console shows every group with its lag, whoever coordinates it and leads its partitions."""

from __future__ import annotations

import errno
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import trio
import trio.testing

from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.broker.server import BrokerServer
from ottla.console.broker_console import ConsoleSide
from ottla.console.kafka_requests import GroupCoordinatorTarget
from ottla.console.own_broker import OwnBroker
from ottla.console.visitor import Visitor, visited_by
from ottla.handlers.connection_context import ConnectionContext
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

from ..helpers.memory_cluster import MemoryCluster, running_as
from .helpers.browsing import Browsing
from .test_cluster_actions import known

GROUPS = ("a", "b", "c", "d", "e", "f")
PARTITIONS = 6
RECORDS = 5


class Network(MemoryNetwork):
    """One from which hosts can be cut off."""

    def __init__(self) -> None:
        super().__init__()
        self._opened: list[tuple[str, MemoryConnection]] = []
        self._cut: set[str] = set()

    async def connect(self, host: str, port: int) -> MemoryConnection:
        if host in self._cut:
            raise OSError(errno.ECONNREFUSED, "connection refused")
        connection = await super().connect(host, port)
        self._opened.append((host, connection))
        return connection

    def cut_off(self, host: str) -> None:
        self._cut.add(host)
        for name, connection in self._opened:
            if name == host:
                connection.cut()


class Consoles(MemoryCluster):
    def __init__(self, nursery: trio.Nursery, **properties: str) -> None:
        super().__init__(nursery, **properties)
        self.network = Network()

    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        server = super().make_server(broker_id, console_listener=f"broker{broker_id}:8080", **own_properties)
        server._make_console = ConsoleSide
        return server


@asynccontextmanager
async def cluster_of_three() -> AsyncIterator[MemoryCluster]:
    """Five records in each of six partitions, of which each broker leads two."""
    async with running_as(
        Consoles, 1, 2, 3, offsets_topic_replication_factor="1", offsets_topic_num_partitions="6"
    ) as cluster:
        await cluster.create("orders", *[(1 + number % 3,) for number in range(PARTITIONS)])
        for broker_id in (1, 2, 3):
            await known(cluster, broker_id, "orders", PARTITIONS)
        for number in range(PARTITIONS):
            await cluster.produce(1 + number % 3, "orders", number, *[b"v"] * RECORDS)
        yield cluster


async def commit(cluster: MemoryCluster, group: str, offsets: Mapping[int, int]) -> None:
    partitions = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        for number, offset in offsets.items()
    ]
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name="orders", partitions=partitions)]
    )
    with visited_by(Visitor(ConnectionContext("CONSOLE", "127.0.0.1:1"), "")), trio.fail_after(60):
        while True:
            answer = await OwnBroker(cluster.servers[1]).ask(request, GroupCoordinatorTarget(group))
            if {each.error_code for each in answer.topics[0].partitions} == {0}:
                return
            await trio.sleep(0.1)


def coordinators(cluster: MemoryCluster) -> set[int]:
    return {
        broker_id
        for broker_id in cluster.servers
        for group in GROUPS
        if cluster.services(broker_id).groups.find(group) is not None
    }


async def test_every_console_shows_every_groups_lag(autojump_clock: trio.testing.MockClock) -> None:
    async with cluster_of_three() as cluster:
        for place, group in enumerate(GROUPS):
            await commit(cluster, group, dict.fromkeys(range(PARTITIONS), place % RECORDS))
        assert coordinators(cluster) == {1, 2, 3}
        for broker_id in (1, 2, 3):
            browser = Browsing(cluster.servers[broker_id], cluster.network)
            await browser.console.source.renew()
            page = (await browser.get("/groups?sort=-group")).page
            lags = {text.split()[0]: text for text in page.row_texts()[1:]}
            assert [*lags] == [*GROUPS][::-1] or [*lags] == [*GROUPS]
            for place, group in enumerate(GROUPS):
                lag = RECORDS - place % RECORDS
                assert f"{group} classic Empty 0 1 6 {6 * lag} {lag}" in lags[group], f"by broker {broker_id}"
                shown = (await browser.get(f"/group?id={group}")).page
                assert f"Lag {6 * lag} " in shown.text
                for number in range(PARTITIONS):
                    (row,) = [text for text in shown.row_texts() if text.startswith(f"orders {number} ")]
                    assert f"{RECORDS} {lag} " in row, "its end and its lag"
            topics = (await browser.get("/topics?q=orders")).page
            assert topics.row_texts()[1].endswith(f" {RECORDS}"), "the largest lag is that of group a"
            readers = (await browser.get("/topics/orders")).page
            assert [f"{group} Empty 0 6 {6 * (RECORDS - place % RECORDS)}" for place, group in enumerate(GROUPS)] == [
                text for text in readers.row_texts() if " Empty 0 6 " in text
            ]
            overview = (await browser.get("/")).page
            assert "Groups 6" in overview.text
            assert "what 6 groups have committed in 36 partitions" in overview.text
            assert (await browser.get("/group?id=nobody")).status == 404
            top = (await browser.get("/top.json")).json
            assert {row["group_id"]: row["lag"] for row in top["groups"]}["a"] == "30"


async def test_lag_in_time_is_of_partitions_that_others_lead_too(autojump_clock: trio.testing.MockClock) -> None:
    async with cluster_of_three() as cluster:
        for group in GROUPS:
            await commit(cluster, group, dict.fromkeys(range(PARTITIONS), 2))
        for broker_id in (1, 2, 3):
            source = Browsing(cluster.servers[broker_id], cluster.network).console.source
            for group in GROUPS:
                rows = (await source.group(group)).partitions
                assert [(row.number, row.committed, row.start, row.end, row.lag) for row in rows] == [
                    (number, 2, 0, RECORDS, 3) for number in range(PARTITIONS)
                ]
                assert all(row.lag_ms is not None for row in rows)


async def test_a_broker_that_does_not_answer_is_named_and_what_it_leads_is_unknown(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with cluster_of_three() as cluster:
        await commit(cluster, "a", dict.fromkeys(range(PARTITIONS), 2))
        (coordinator,) = coordinators(cluster)
        other, away = [broker_id for broker_id in (1, 2, 3) if broker_id != coordinator]
        browser = Browsing(cluster.servers[coordinator], cluster.network)
        assert isinstance(cluster.network, Network)
        cluster.network.cut_off(f"broker{away}")
        await browser.console.source.renew()
        (row,) = await browser.console.source.groups()
        assert (row.lag, row.unknown, row.max_lag) == (12, 2, 3)
        overview = (await browser.get("/")).page
        assert f"Broker {away} has not answered all that it was asked" in overview.text
        assert "No problem found" not in overview.text
        group = (await browser.get("/group?id=a")).page
        assert "Lag 12 " in group.text
        lags = [(row.number % 3 + 1, row.lag) for row in (await browser.console.source.group("a")).partitions]
        assert dict(lags) == {coordinator: 3, other: 3, away: None}
