"""The overview answers "what is wrong?": each finding comes with its cause and goes with it, in a line that leads to its page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import SimulatedClock
from ottla.broker.server import BrokerServer
from ottla.log.memory_disk import MemoryDisk
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.wire.messages.sync_group import SyncGroupRequest
from ottla.wire.records import Record

from ..helpers.memory_cluster import running_as
from .helpers.browsing import Browsing, Open, Page, alone_on, browsing, browsing_elsewhere, on_both
from .test_admin_pages import TRANSACTIONS_AT_ONCE, began
from .test_cluster_actions import known
from .test_inside_pages import AT_ONCE, Client, batch, client, produce_request
from .test_whole_cluster import GROUPS, Consoles, cluster_of_three, commit

Clock = trio.testing.MockClock
GIB = 1 << 30


def watched(browse: Open, folder: Path, **properties: str) -> Any:
    """A broker in simulated time, on a disk of its own."""
    return browse(folder, clock=SimulatedClock(), disk=MemoryDisk(), **properties)


def lines(page: Page) -> list[str]:
    """The findings of an overview."""
    return [Page(html).text for html in re.findall('<li class="warning".*?</li>', page.html)]


async def shown(browser: Browsing) -> list[str]:
    return lines((await browser.get("/")).page)


async def until_found(browser: Browsing, start: str, seconds: float = 120) -> tuple[str, Page]:
    """The finding that begins so, and its page."""
    with trio.fail_after(seconds):
        while True:
            page = (await browser.get("/")).page
            for line in lines(page):
                if line.startswith(start):
                    return line, page
            await trio.sleep(2)


async def until_gone(browser: Browsing, start: str, seconds: float = 120) -> None:
    with trio.fail_after(seconds):
        while any(line.startswith(start) for line in await shown(browser)):
            await trio.sleep(2)


class Member:
    """The only member of a group, in a session that lasts."""

    def __init__(self, group: str, connection: Client) -> None:
        self.group = group
        self.client = connection
        self.member_id = ""
        self.generation = -1

    async def join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=1_800_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")],
        )
        request.member_id = (await self.client.ask(request, 8)).member_id
        joined = await self.client.ask(request, 8)
        self.member_id, self.generation = joined.member_id, joined.generation_id
        sync = SyncGroupRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id)
        assert not (await self.client.ask(sync, 3)).error_code

    async def commit(self, topic: str, offset: int) -> None:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        answer = await self.client.ask(request, 8)
        assert answer.topics[0].partitions[0].error_code == 0


def put(browser: Browsing, topic: str, count: int) -> None:
    browser.put(topic, *[Record(timestamp=SimulatedClock().now_ms(), value=b"v")] * count)


@contextmanager
def limited(disk: MemoryDisk, free: int) -> Iterator[None]:
    """The disk has no more free than this; what takes the rest is no file of the broker."""
    capacity, space = disk.capacity, disk.space
    disk.space = lambda path: (space(path)[0], free)  # type: ignore[method-assign]
    try:
        yield
    finally:
        disk.space = space  # type: ignore[method-assign]
        assert disk.capacity == capacity


# --- nothing is wrong -------------------------------------------------------------------------------------------------


async def test_green_is_said_when_every_check_was_made(tmp_path: Path, autojump_clock: Clock) -> None:
    async with watched(browsing, tmp_path, **AT_ONCE) as browser:
        await browser.create("orders", 3)
        page = (await browser.get("/")).page
        assert lines(page) == []
        assert "fine" not in classes(page)
        assert "Not checked, or not completely: 4" in page.text
        assert "whether the lag of a group grows: it takes 5 min, and groups have been watched for 0 s" in page.text
        state = (await browser.get("/state")).page
        assert state.text == "Nothing found"
        tag, attributes = state.elements[0]
        assert (tag, attributes["href"], attributes.get("data-variant")) == ("a", "/", None)
        await trio.sleep(60)
        held = "open transactions in the 3 partitions that this broker leads: it takes 2 min to detect them"
        assert held in (await browser.get("/")).page.text
        await trio.sleep(250)
        page = (await browser.get("/")).page
        assert (
            "No problem found. Checked: whether this broker is ready; "
            "the leaders and in-sync replicas of 3 partitions; what 0 groups have committed in 0 partitions; "
            "whether the lag of a group grows; groups that have lag and no member; "
            "open transactions in the 3 partitions that this broker leads; "
            "responses to producers in the last 5 minutes; 1 log directory of this broker; "
            "the event loop's last minute; the 1 voter of the quorum." in page.text
        )
        assert "fine" in classes(page)
        assert "Not checked" not in page.text
        _, attributes = (await browser.get("/state")).page.elements[0]
        assert attributes["data-variant"] == "success"


def classes(page: Page) -> set[str | None]:
    return {attributes.get("class") for _, attributes in page.elements}


async def test_any_kafka_does_not_tell_everything_so_it_is_never_green(tmp_path: Path, autojump_clock: Clock) -> None:
    async with watched(browsing_elsewhere, tmp_path, **AT_ONCE) as browser:
        await browser.create("orders", 3)
        browser.renews = False
        for _ in range(11):
            page = (await browser.get("/")).page
            await trio.sleep(30)
        assert lines(page) == []
        assert "fine" not in classes(page)
        assert (
            "No problem found. Checked: the leaders and in-sync replicas of 3 partitions; "
            "what 0 groups have committed in 0 partitions; whether the lag of a group grows; "
            "groups that have lag and no member; open transactions in 3 partitions; 1 log directory; "
            "whether 1 broker answers; the 1 voter of the quorum." in page.text
        )
        assert "Not checked, or not completely: 1 responses to producers, and the event loops" in page.text
        state = (await browser.get("/state")).page
        assert state.text == "Nothing found"
        assert state.elements[0][1].get("data-variant") is None


async def test_nothing_is_looked_at_while_no_broker_answers(autojump_clock: Clock) -> None:
    network = MemoryNetwork()
    async with alone_on(network, clock=SimulatedClock()) as alone:
        browser = Browsing(BrokerServer(Config({})), network, alone)
        page = (await browser.get("/")).page
        (line,) = lines(page)
        assert line.startswith("No broker answers: test:9092: connection refused , since ")
        assert "No problem found" not in page.text
        assert "No other problem found" not in page.text
        assert "the leaders and in-sync replicas of 0 partitions: no broker answers" in page.text
        state = (await browser.get("/state")).page
        assert (state.text, state.elements[0][1]["data-variant"]) == ("1 problem", "danger")


# --- groups -----------------------------------------------------------------------------------------------------------


@on_both
async def test_the_lag_of_a_group_grows(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    async with watched(browsing, tmp_path, **AT_ONCE) as browser, client(browser, "reader") as connection:
        await browser.create("orders")
        await browser.put_offset("billing", "orders", 0, 0)
        member = Member("billing", connection)
        await member.join()
        for step in range(34):  # ten seconds each; it reads a tenth of what comes
            put(browser, "orders", 50)
            await member.commit("orders", step * 5)
            await trio.sleep(10)
            if step == 20:
                assert await shown(browser) == []
        line, page = await until_found(browser, "The lag of 1 group grows")
        assert line.startswith("The lag of 1 group grows : billing , since ")
        assert page.links["billing"] == "/group?id=billing"
        assert page.links["The lag of 1 group grows"] == "/groups?sort=lag"
        state = (await browser.get("/state")).page
        assert (state.text, state.elements[0][1]["data-variant"]) == ("1 warning", "warning")
        history = (await browser.get("/history.json?group=billing&series=lag")).json
        assert history["series"] == ["lag"]
        assert len(history["times"]) == len(history["values"][0]) >= 5
        known_lags = [value for value in history["values"][0] if value is not None]
        assert known_lags == sorted(known_lags)
        assert known_lags[-1] > 500
        await member.commit("orders", 34 * 50)
        await until_gone(browser, "The lag")


@on_both
async def test_groups_with_lag_and_no_member(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    """However many there are, they have one line, with the worst by name."""
    async with watched(browsing, tmp_path, **AT_ONCE) as browser:
        await browser.create("orders")
        put(browser, "orders", 5)
        for number in range(5):
            await browser.put_offset(f"group-{number}", "orders", 0, number)
        assert await shown(browser) == [], "they may have just been stopped"
        line, page = await until_found(browser, "5 groups have lag and no member")
        assert line.startswith("5 groups have lag and no member : group-0 , group-1 , group-2 , …, since ")
        assert page.links["group-1"] == "/group?id=group-1"
        for number in range(4):
            await browser.put_offset(f"group-{number}", "orders", 0, 5)
        line, _ = await until_found(browser, "1 group has lag and no member")
        assert line.startswith("1 group has lag and no member : group-4 , since ")
        await browser.put_offset("group-4", "orders", 0, 5)
        await until_gone(browser, "1 group")
        assert await shown(browser) == []


@on_both
async def test_a_group_that_missed_records(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    async with watched(browsing, tmp_path, **AT_ONCE) as browser:
        await browser.create("orders")
        put(browser, "orders", 5)
        await browser.put_offset("a&b/c", "orders", 0, 2)
        browser.partition("orders").log.delete_records_before(3)
        line, page = await until_found(browser, "1 group did not read records")
        assert line == "1 group did not read records before they were deleted : a&b/c"
        assert page.links["a&b/c"] == "/group?id=a%26b%2Fc"
        await browser.put_offset("a&b/c", "orders", 0, 5)
        await until_gone(browser, "1 group did not")


# --- partitions and brokers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["own", "elsewhere"])
async def test_partitions_without_leader_and_with_too_few_replicas(place: str, autojump_clock: Clock) -> None:
    replicas = {"offsets_topic_replication_factor": "1", "offsets_topic_num_partitions": "1"}
    async with running_as(Consoles, 1, 2, **replicas) as cluster:
        for number in range(5):
            await cluster.create(f"both-{number}", *[(1, 2)] * (number + 1))
        await cluster.create("only", (2,))
        await known(cluster, 1, "only", 1)
        async with alone_on(cluster.network, ("broker1", 9092), clock=SimulatedClock()) as alone:
            browser = Browsing(cluster.servers[1], cluster.network, alone if place == "elsewhere" else None)
            assert await shown(browser) == []
            await cluster.stop(2)
            line, page = await until_found(browser, "1 partition has no leader")
            assert line == "1 partition has no leader : only"
            assert page.links["only"] == "/topics/only"
            assert page.links["1 partition has no leader"] == "/cluster"
            line, _ = await until_found(browser, "15 partitions have fewer")
            assert line.endswith("fewer replicas in sync than there should be : both-4 , both-3 , both-2 , …")
            state = (await browser.get("/state")).page
            assert state.elements[0][1]["data-variant"] == "danger"
            assert state.text.startswith("1 problem, ")
            await cluster.start(2)
            await until_gone(browser, "1 partition has no leader")
            await until_gone(browser, "15 partitions have fewer")


# --- transactions and producers ---------------------------------------------------------------------------------------


@on_both
async def test_consumers_held_back_by_a_transaction(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    async with (
        watched(browsing, tmp_path, **TRANSACTIONS_AT_ONCE) as browser,
        client(browser, "loader") as loader,
    ):
        await browser.create("orders", configs={"retention.ms": "-1"})  # the batch's records are old
        producer_id, epoch = await began(browser, loader, "load/1", "orders", timeout_ms=900_000)
        assert await shown(browser) == []
        await trio.sleep(60)
        assert await shown(browser) == [], "it may end any moment"
        line, page = await until_found(browser, "An open transaction")
        assert line.startswith("An open transaction holds back consumers in 1 partition : orders-0 , since ")
        assert page.links["orders-0"] == "/topics/orders"
        assert 'data-variant="warning"' in page.html
        ended = EndTxnRequest(transactional_id="load/1", producer_id=producer_id, producer_epoch=epoch, committed=True)
        await loader.ask(ended, 3)
        await until_gone(browser, "An open transaction")


async def test_producers_that_are_refused(tmp_path: Path, autojump_clock: Clock) -> None:
    async with watched(browsing, tmp_path) as browser, client(browser, "shop & co") as shop:
        await browser.create("orders", configs={"max.message.bytes": "100"})
        too_large = produce_request("orders", {0: batch(b"x" * 200)})
        assert (await shop.ask(too_large, 9)).responses[0].partition_responses[0].error_code
        line, page = await until_found(browser, "1 producer was refused")
        assert line == "1 producer was refused in the last 5 minutes : shop & co (MESSAGE_TOO_LARGE)"
        assert page.links["shop & co (MESSAGE_TOO_LARGE)"] == "/requests?q=shop%20%26%20co"
        assert page.links["1 producer was refused in the last 5 minutes"] == "/requests/errors"
        assert "MESSAGE_TOO_LARGE" in (await browser.get(page.links["shop & co (MESSAGE_TOO_LARGE)"])).page.text
        await trio.sleep(240)
        assert len(await shown(browser)) == 1
        await trio.sleep(62)
        assert await shown(browser) == []


# --- the machine ------------------------------------------------------------------------------------------------------


@on_both
async def test_disks_that_fill_up(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    disk = MemoryDisk(capacity=100 * GIB)
    async with browsing(tmp_path, clock=SimulatedClock(), disk=disk) as browser:
        assert await shown(browser) == []
        with limited(disk, free=9 * GIB):
            line, page = await until_found(browser, "1 log directory is nearly full")
            assert line.endswith("of broker 1 (9.0% free)")
            assert 'data-variant="warning"' in page.html
        await until_gone(browser, "1 log directory")
        with limited(disk, free=GIB):
            _, page = await until_found(browser, "1 log directory is nearly full")
            assert 'data-variant="danger"' in page.html
        await until_gone(browser, "1 log directory")


@on_both
async def test_disks_that_will_be_full_soon(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    """Two GiB a minute of 100: it is told after ten minutes, with 78 GiB left."""
    disk = MemoryDisk(capacity=100 * GIB)
    async with browsing(tmp_path, clock=SimulatedClock(), disk=disk) as browser:
        assert await shown(browser) == []
        for minute in range(10):
            with limited(disk, free=(98 - 2 * minute) * GIB):
                await trio.sleep(50)
                assert await shown(browser) == []
                await trio.sleep(10)
        with limited(disk, free=78 * GIB):
            line, _ = await until_found(browser, "1 log directory will be full soon")
            assert "(in about " in line


@on_both
async def test_a_data_folder_that_has_failed(browsing: Open, tmp_path: Path, autojump_clock: Clock) -> None:
    folders = f"{tmp_path}/a,{tmp_path}/b"
    async with watched(browsing, tmp_path, log_dirs=folders) as browser:
        assert await shown(browser) == []
        browser.services.logs.folders[1].fail("writing", OSError("it broke"))
        line, page = await until_found(browser, "1 log directory has failed")
        assert f"{tmp_path}/b of broker 1" in line
        assert 'data-variant="danger"' in page.html


async def test_a_loop_that_stands_still(tmp_path: Path, autojump_clock: Clock) -> None:
    async with watched(browsing, tmp_path) as browser:
        await trio.sleep(1)
        assert await shown(browser) == []
        autojump_clock.jump(0.9)
        line, page = await until_found(browser, "The event loop was blocked for")
        assert page.links[line] == "/requests/slowest"
        await trio.sleep(61)
        assert await shown(browser) == []


# --- a cluster --------------------------------------------------------------------------------------------------------


async def test_groups_of_all_brokers_are_watched_by_each(autojump_clock: Clock) -> None:
    """Whoever coordinates them and leads what they read; also while nobody looks."""
    async with cluster_of_three() as cluster:
        for group in GROUPS:
            await commit(cluster, group, dict.fromkeys(range(6), 2))
        await trio.sleep(400)
        for broker_id in (1, 2, 3):
            browser = Browsing(cluster.servers[broker_id], cluster.network)
            began = trio.current_time()
            _, page = await until_found(browser, "6 groups have lag and no member")
            assert trio.current_time() - began < 1, "at once"
            assert "Not checked" not in page.text
            assert len([name for name in page.links if name in GROUPS]) == 3
            for group in GROUPS:
                history = (await browser.get(f"/history.json?group={group}&series=lag")).json
                assert set(history["values"][0]) - {None} == {18}
                assert len(history["times"]) >= 6
        assert (await browser.get("/history.json?group=nobody&series=lag")).status == 404
