"""The page of the quorum: of a broker's own console and of one that asks, with all that may be wrong."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.view.quorum_rows import QuorumDetail, quorum_row
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

from ..broker.helpers.controller_world import CLUSTER_ID, until
from ..helpers.memory_cluster import running_as
from .helpers.browsing import Browsing, Page, alone_on
from .helpers.quorum_browsing import ConsoleWorld, console_world
from .helpers.served import EVIL
from .test_whole_cluster import Consoles

BOTH = "broker,controller"
APART = {1: "controller", 2: "controller", 3: "controller", 11: "broker"}
Clock = trio.testing.MockClock


async def shown(browser: Browsing, target: str = "/quorum") -> Page:
    """A page with what is so now."""
    await browser.console.source.renew()
    return (await browser.get(target)).page


def rows(page: Page, beginning: str) -> list[str]:
    return [text for text in page.row_texts() if text.startswith(beginning)]


async def test_voters_observers_and_the_nodes_own_log(autojump_clock: Clock) -> None:
    async with console_world(APART) as world:
        await world.create(11, "t")
        active = await world.active()
        page = await shown(world.browsing(11))
        assert f"Active controller node {active} Leader epoch" in page.text
        assert "Voters 3 Observers 1" in page.text
        (leader,) = rows(page, f"{active} active controller")
        assert f"CONTROLLER node{active} :9093" in leader
        followers = [rows(page, f"{each} follows")[0] for each in (1, 2, 3) if each != active]
        assert all(" ago " in row and ":9093 AAAAAAAAAAAAAAAAAAAA" in row for row in followers)
        assert len(rows(page, "11 follows this node")) == 1
        assert "A change of the cluster takes effect once 2 of them have it." in page.text
        assert "metadata.version 30 7 to 30" in rows(page, "metadata.version")
        assert "kraft.version 1 0 to 1" in rows(page, "kraft.version")
        assert all(
            f"{each} CONTROLLER node{each} :9093 nothing that is finalized" in page.row_texts() for each in (1, 2, 3)
        )
        assert f"State observer Follows node {active}, epoch" in page.text
        assert "None: its log is complete from the beginning." in page.text
        assert "ottla cluster quorum -b node11:9092" in page.text
        assert "kafka-metadata-quorum.sh --bootstrap-server node11:9092 describe --replication" in page.text


async def test_links_to_it_and_who_is_the_controller(autojump_clock: Clock) -> None:
    async with console_world(APART) as world:
        active, browser = await world.active(), world.browsing(11)
        overview = await shown(browser, "/")
        assert overview.links["controller"] == "/quorum"
        assert f"Brokers 11; controller {active}" in overview.text
        assert "the 3 voters of the quorum" in overview.text, "which are looked at"
        cluster = await shown(browser, "/cluster")
        assert cluster.links["Quorum"] == cluster.links["the quorum of controllers"] == "/quorum"
        assert f"its controller is node {active}, of the quorum of controllers" in cluster.text
        assert (await shown(browser, "/users")).links["Quorum"] == "/quorum"


async def test_a_voter_that_is_gone(autojump_clock: Clock) -> None:
    async with console_world(APART) as world:
        active, browser = await world.active(), world.browsing(11)
        gone = next(each for each in (1, 2, 3) if each != active)
        await world.kill(gone)
        await trio.sleep(12)
        page = await shown(browser)
        (row,) = rows(page, str(gone))[:1]
        assert f"{gone} has not fetched for 1" in row
        overview = await shown(browser, "/")
        assert f"Controller {gone}, a voter of the quorum, has not fetched for 1" in overview.text
        await world.start(gone)
        await trio.sleep(5)
        assert "has not fetched" not in (await shown(browser, "/")).text


async def test_no_leader(autojump_clock: Clock) -> None:
    async with console_world(APART) as world:
        browser = world.browsing(11)
        for each in (1, 2):
            await world.kill(each)
        await until(lambda: world.role(3).node.driver.node.leader_id != 3)
        await trio.sleep(10)
        page = await shown(browser)
        warning = "The quorum of controllers has no leader: nothing in the cluster can be changed until it has one."
        assert warning in page.text
        assert "Active controller none" in page.text
        assert "Metadata log" in page.text, "what the node knows itself is shown"
        assert warning.removesuffix(".") in (await shown(browser, "/")).text
        began = trio.current_time()
        await browser.get("/quorum")
        assert trio.current_time() - began < 0.2, "a page does not wait for a leader"


async def test_a_quorum_of_one_with_snapshots(autojump_clock: Clock) -> None:
    async with trio.open_nursery() as nursery:
        world = ConsoleWorld(nursery, {1: BOTH})
        world.format()
        await world.start(metadata_log_max_record_bytes_between_snapshots="2000")
        await world.create(1, "t", partitions=100)
        log = world.role(1).node.driver.storage.log
        await until(lambda: log.newest_snapshot is not None)
        page = await shown(world.browsing(1))
        assert len(rows(page, "1 active controller this node")) == 1
        assert "takes effect once 1 of them has it" in page.text
        assert "None: every node that fetches the metadata votes." in page.text
        (row,) = rows(page, f"{log.newest_snapshot.end_offset:,} ")
        assert "KiB" in row or " B " in row
        assert "UTC" in row
        nursery.cancel_scope.cancel()


async def test_the_page_of_a_console_that_asks(autojump_clock: Clock) -> None:
    async with console_world(APART) as world, alone_on(world.network, ("node11", 9092)) as alone:
        browser = Browsing(world.browsing(11).server, world.network, alone)
        active = await world.active()
        page = (await browser.get("/quorum")).page
        assert f"Active controller node {active}" in page.text
        assert len(rows(page, f"{active} active controller")) == 1
        assert "11 follows" in page.text
        assert "metadata.version 30 7 to 30" in page.row_texts()
        assert "Only a node itself knows changes of the voters" in page.text
        assert (await browser.get("/")).page.links["controller"] == "/quorum"
        assert "the 3 voters of the quorum" in (await browser.get("/")).page.text


async def test_on_zookeeper_there_is_no_page(autojump_clock: Clock) -> None:
    async with running_as(Consoles, 1) as cluster, alone_on(cluster.network, ("broker1", 9092)) as alone:
        server = cluster.servers[1]
        for browser in (Browsing(server, cluster.network), Browsing(server, cluster.network, alone)):
            answer = await browser.get("/quorum")
            assert answer.status == 404
            assert "This cluster has no quorum of controllers" in answer.page.text
            for address in ("/", "/cluster", "/users"):
                assert "/quorum" not in (await browser.get(address)).page.links.values()


async def test_changes_of_the_voters_under_way(autojump_clock: Clock) -> None:
    async with console_world({1: BOTH, 2: BOTH, 3: BOTH}) as world:
        active = await world.active()
        driver, browser = world.role(active).node.driver, world.browsing(active)
        assert "Changes of the voters under way" not in (await shown(browser)).text
        gone = [each for each in (1, 2, 3) if each != active]
        for each in gone:
            await world.kill(each)
        key = driver.node.quorum.voters.voters[gone[0]].key
        request = RemoveRaftVoterRequest(
            cluster_id=CLUSTER_ID, voter_id=key.node_id, voter_directory_id=key.directory_id
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(driver.ask, request, "CONTROLLER")
            await trio.testing.wait_all_tasks_blocked()
            page = await shown(browser)
            assert f"Changes of the voters under way Node {gone[0]} is being removed." in page.text
            nursery.cancel_scope.cancel()


def response(*voters: ReplicaState, leader: int = 1, **fields: object) -> DescribeQuorumResponse:
    partition = ResponsePartitionData(
        partition_index=0,
        leader_id=leader,
        leader_epoch=7,
        high_watermark=100,
        current_voters=list(voters),
        observers=[],
    )
    for name, value in fields.items():
        setattr(partition, name, value)
    return DescribeQuorumResponse(topics=[ResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])])


def replica(node_id: int, end: int, fetched: int, caught_up: int) -> ReplicaState:
    return ReplicaState(
        replica_id=node_id, log_end_offset=end, last_fetch_timestamp=fetched, last_caught_up_timestamp=caught_up
    )


LEADER = replica(1, 200, 1_000_000, 1_000_000)
TROUBLES = {
    "it follows": (replica(2, 200, 999_600, 999_600), ""),
    "it is behind for a moment": (replica(2, 100, 999_600, 995_000), ""),
    "it is behind for long": (replica(2, 100, 999_600, 980_000), "is 100 records behind"),
    "it was never at the end": (replica(2, 100, 999_600, -1), "is 100 records behind"),
    "it is silent": (replica(2, 100, 988_000, 988_000), "has not fetched for 12 seconds"),
    "it was never heard of": (replica(2, -1, -1, -1), "has not fetched since the leader was elected"),
    "its clock is ahead": (replica(2, 200, 1_000_500, 1_000_500), ""),
}


@pytest.mark.parametrize(("state", "trouble"), TROUBLES.values(), ids=TROUBLES)
def test_what_is_wrong_with_a_voter(state: ReplicaState, trouble: str) -> None:
    row = quorum_row(response(LEADER, state))
    leader, voter = row.voters
    assert (leader.trouble, voter.trouble) == ("", trouble)
    assert list(row.warnings()) == ([f"Controller 2, a voter of the quorum, {trouble}."] if trouble else [])


def test_a_leader_that_tells_no_times_accuses_nobody() -> None:
    row = quorum_row(response(replica(1, 200, -1, -1), replica(2, 100, -1, -1)))
    assert [each.trouble for each in row.voters] == ["", ""]
    assert row.voters[1].lag == 100


def test_a_response_without_a_leader_and_one_that_is_refused() -> None:
    nobody = quorum_row(response(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert (nobody.leader, nobody.why) == (None, "")
    assert len(list(nobody.warnings())) == 1
    denied = quorum_row(
        DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message=EVIL, topics=[])
    )
    assert denied.leader is None
    assert denied.why.startswith(EVIL)
    assert list(denied.warnings()) == [], "nothing is known to be wrong"


async def test_what_a_leader_says_is_escaped(autojump_clock: Clock) -> None:
    async with console_world({1: BOTH}) as world:
        browser = world.browsing(1)
        await browser.console.source.renew()
        told = response(LEADER)
        told.nodes = [Node(node_id=1, listeners=[Listener(name=EVIL, host=EVIL, port=9093)])]
        quorum = browser.console.source._quorum
        detail = quorum.value
        assert detail is not None
        for row in (
            quorum_row(told),
            quorum_row(response(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message=EVIL)),
        ):
            quorum.value = QuorumDetail(row, detail.features, detail.own)
            page = (await browser.get("/quorum")).page
            assert [tag for tag, _ in page.elements].count("img") == 0
            assert "alert(1)" in page.text
            assert "\u202e" not in page.html
