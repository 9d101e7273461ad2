"""The plan to balance a cluster, as the page shows it: what would be moved and why; looking moves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.balance.answers import cluster_of
from ottla.balance.proposal import propose
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.console import balance_page
from ottla.console.balance_page import GOALS
from ottla.log.disk import OsDisk
from ottla.security.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.view.layout import ReplicaLayout
from ottla.view.own.broker_view import BrokerView
from ottla.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

from ..helpers.memory_cluster import MemoryCluster, running
from .helpers.browsing import Browsing, Open, alone_on, browsing, on_both
from .helpers.secured import SECURED, allow, log_in


@on_both
async def test_one_broker_is_balanced(browsing: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OsDisk, "space", lambda disk, path: (1 << 40, 1 << 39))  # whatever else is on the machine's
    async with browsing(tmp_path) as browser:
        await browser.create("orders", 3)
        page = (await browser.get("/cluster")).page
        answer = await browser.get(page.links["A plan to balance the cluster"])
        assert answer.status == 200
        assert "Balanced by racks, disks, replicas, bytes and leaders." in answer.page.text
        assert "ottla cluster balance -b test:9092 --window 0 --dry-run" in answer.page.text
        assert [row for row in answer.page.row_texts() if row.startswith("1 3 3 ")]


@on_both
async def test_many_partitions_are_for_the_command(
    browsing: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance_page, "MOST_PARTITIONS", 3)
    async with browsing(tmp_path) as browser:
        await browser.create("orders", 4)
        page = (await browser.get("/cluster/plan")).page
        assert "plans for at most 3 partitions" in page.text
        assert "ottla cluster balance" in page.text


async def test_who_may_not_describe_the_cluster_sees_no_plan(tmp_path: Path) -> None:
    async with browsing(tmp_path, SECURED) as browser:
        await log_in(browser, "alice")
        assert (await browser.get("/cluster/plan")).status == 403
        await allow(browser, "alice", Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        assert (await browser.get("/cluster/plan")).status == 200


async def test_every_broker_and_any_console_plan_the_same(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2, 3) as cluster:
        await cluster.create("orders", *[(1, 2)] * 6)
        assert await cluster.produce(1, "orders", 0, b"x" * 10_000) == 0
        views = [BrokerView(cluster.servers[each], SystemClock(), InlineWorkers()) for each in (1, 2, 3)]
        with trio.fail_after(30):
            while any(len(cluster.services(each).metadata.topics) < 1 for each in (1, 2, 3)):
                await trio.sleep(0.05)
        layouts = [await each.administration.layout(1000) for each in views]
        async with alone_on(cluster.network, ("broker1", 9092)) as alone:
            page = (await Browsing(cluster.servers[1], cluster.network, alone).get("/cluster/plan")).page
            layouts.append(await alone.view.administration.layout(1000))
        plans = [planned(layout) for layout in layouts if layout is not None]
        assert len(plans) == 4
        assert plans[0]
        assert all(plan == plans[0] for plan in plans)
        for layout in layouts:
            assert layout is not None
            assert len(layout.disks) == 3
            assert layout.disks[1].replicas["orders", 0][1] > 10_000
        assert f"{len(plans[0])} partitions to move or to reorder" in page.text
        for (topic, number), replicas in plans[0]:
            assert [
                row
                for row in page.row_texts()
                if row.startswith(f"{topic} -{number} 1, 2 {replicas[0]}, {replicas[1]} ")
            ]
        assert [row for row in page.row_texts() if row.startswith("3 0 → 4 ")], "the third broker gets its part"
        assert page.links["orders"] == "/topics/orders"


def planned(layout: ReplicaLayout) -> list[tuple[tuple[str, int], tuple[int, ...]]]:
    cluster = cluster_of(layout.racks, layout.partitions, layout.disks)
    return [(move.key, move.after) for move in propose(cluster, GOALS).plan.moves]


async def test_moves_under_way_are_known_to_every_broker_and_count_as_done(
    autojump_clock: trio.testing.MockClock,
) -> None:
    slow = {"leader_replication_throttled_rate": "1", "follower_replication_throttled_rate": "1"}
    async with running(1, 2, 3, **slow) as cluster:
        await cluster.create("orders", (1,), leader_replication_throttled_replicas="*")
        for _ in range(3):
            assert await cluster.produce(1, "orders", 0, b"x" * 100_000) == 0
        views = [BrokerView(cluster.servers[each], SystemClock(), InlineWorkers()) for each in (1, 2)]
        await begin_move(cluster, (3,))
        for view in views:
            (move,) = (await view.administration.cluster()).moves or ()
            assert (move.topic, move.number, move.adding, move.removing) == ("orders", 0, (3,), (1,))
            layout = await view.administration.layout(1000)
            assert layout is not None
            assert layout.partitions["orders", 0].replicas == (3,)


async def begin_move(cluster: MemoryCluster, replicas: tuple[int, ...]) -> None:
    partition = ReassignablePartition(partition_index=0, replicas=list(replicas))
    topics = [ReassignableTopic(name="orders", partitions=[partition])]
    with trio.fail_after(30):
        answer = await cluster.ask(cluster.controller_id(), AlterPartitionReassignmentsRequest(topics=topics), 0)
    assert answer.responses[0].partitions[0].error_code == 0, answer
