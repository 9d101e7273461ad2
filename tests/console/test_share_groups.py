"""Share groups (KIP-932) on the pages: alike at their coordinator and elsewhere, with the members of each partition."""

from __future__ import annotations

import trio
import trio.testing

from ottla.share_partitions.acknowledgement import ACCEPT, REJECT, RELEASE
from ottla.wire.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
    ShareFetchResponse,
)
from ottla.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from ottla.wire.records import Record

from .helpers.browsing import Browsing, alone_on
from .helpers.consumers import Members, consumers
from .test_consumer_groups import page

Clock = trio.testing.MockClock


async def shared(beat: Members, *member_ids: str) -> dict[str, list[int]]:
    """The partitions of ``t`` that members have once all have some, and nothing changes any more."""
    before: dict[str, list[int]] = {}
    while True:
        parts = {member_id: await joined(beat, member_id) for member_id in member_ids}
        if parts == before and all(parts.values()):
            return parts
        before = parts
        await trio.sleep(1.1)


async def joined(beat: Members, member_id: str) -> list[int]:
    request = ShareGroupHeartbeatRequest(group_id="g", member_id=member_id, subscribed_topic_names=["t"])
    response: ShareGroupHeartbeatResponse = await beat.world.ask(beat.node_id, request, 1)
    if response.assignment is None:
        return []
    return sorted(number for topic in response.assignment.topic_partitions for number in topic.partitions)


async def test_each_console_shows_a_share_group(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers), alone_on(beat.world.network, ("node1", 9092)) as alone:
        parts = await shared(beat, *"ABCDE")
        browsers = {**browsers, 0: Browsing(browsers[1].server, beat.world.network, alone)}
        for where, browser in browsers.items():
            listed = await page(browser, "/groups")
            assert any(row.startswith("g share Stable 5 ") for row in listed.row_texts()), f"by broker {where}"
            shown = await page(browser, "/group?id=g")
            assert "State Stable Type share Members 5" in shown.text
            assert "Assignor simple" in shown.text
            for member_id, numbers in parts.items():
                (row,) = [text for text in shown.row_texts() if text.startswith(f"{member_id} ")]
                assert row.endswith(f"t : {', '.join(map(str, numbers))}"), f"by broker {where}"
            readers = [row for row in shown.row_texts() if row.startswith("t 0 ")]
            assert readers[0].endswith(", ".join(member_id for member_id in "ABCDE" if 0 in parts[member_id]))


async def leave(beat: Members, *member_ids: str) -> None:
    for member_id in member_ids:
        request = ShareGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=-1)
        response: ShareGroupHeartbeatResponse = await beat.world.ask(beat.node_id, request, 1)
        assert response.error_code == 0, response


async def test_a_share_group_without_members_is_reset_and_deleted(autojump_clock: Clock) -> None:
    reset = "/reset-offsets?id=g&to=latest"
    async with consumers() as (beat, browsers):
        await shared(beat, "A")
        for browser in browsers.values():
            refused = await browser.get(reset)
            assert "the current state is Stable" in refused.page.text
        await leave(beat, "A")
        before = "4 partitions had no offset"
        for browser in browsers.values():
            assert "/reset-offsets?id=g" in (await browser.get("/group?id=g")).page.links.values()
            plan = (await browser.get(reset)).page
            assert "ottla groups reset-offsets" in plan.text and "kafka-share-groups.sh" in plan.text
            shift = await browser.get("/reset-offsets?id=g&to=shift&at=-1")
            assert ("Cannot shift" in shift.page.text) == (before != "all are where they were")
            done = await browser.do(reset)
            assert (done.status, before in done.page.text) == (200, True), done.page.text
            before = "all are where they were"
        gone = await browsers[2].do("/delete-group?id=g", typed="g")
        assert "The group g was deleted, with its start offsets in 4 partitions." in gone.page.text
        assert "There is no group g." in (await browsers[1].get("/delete-group?id=g")).page.text


async def test_the_leader_shows_what_members_have(autojump_clock: Clock) -> None:
    async with consumers() as (beat, browsers):
        await shared(beat, "A")
        image = beat.world.services(1).metadata.image.topics["t"]
        leader, browser = image.partitions[0].leader, browsers[image.partitions[0].leader]
        assert "Share partitions" not in (await page(browser, "/group?id=g")).text
        fetched = fetch(image.topic_id, epoch=0)
        assert (await beat.world.ask(leader, fetched, 2)).error_code == 0
        browser.put("t", *(Record(value=b"v") for _ in range(5)), number=0)
        fetched = fetch(image.topic_id, 1)
        response: ShareFetchResponse = await beat.world.ask(leader, fetched, 2)
        (data,) = response.responses[0].partitions
        assert [(each.first_offset, each.last_offset) for each in data.acquired_records] == [(0, 4)]
        said = [
            AcknowledgementBatch(first_offset=0, last_offset=3, acknowledge_types=[ACCEPT, RELEASE, REJECT, REJECT])
        ]
        await beat.world.ask(leader, fetch(image.topic_id, 2, *said), 2)
        await trio.sleep(5)
        rows = (await page(browser, "/group?id=g")).row_texts()
        # Start, delivered up to, in flight, to deliver again, redelivered, archived, lock time-outs.
        assert "t 0 1 5 2 0 1 2 0" in rows


def fetch(topic_id: bytes, epoch: int, *acknowledgements: AcknowledgementBatch) -> ShareFetchRequest:
    partition = FetchPartition(partition_index=0, acknowledgement_batches=list(acknowledgements))
    return ShareFetchRequest(
        group_id="g",
        member_id="A",
        share_session_epoch=epoch,
        max_wait_ms=500,
        min_bytes=1,
        max_records=100,
        batch_size=100,
        topics=[FetchTopic(topic_id=topic_id, partitions=[partition])],
    )
