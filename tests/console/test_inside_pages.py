"""Who writes and who reads, what happened to a group, requests in full, a log: each on a page of its own."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from ottla.base.errors import ErrorCode
from ottla.base.memory_network import MemoryConnection
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.view.own.applications import why_old
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.compression import NAMES
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_protocol import AssignedTopicPartition, ConsumerProtocolAssignment
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ottla.wire.records import Record
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

from ..helpers.memory_broker import HOST, PORT, frame, read_answer
from .helpers.browsing import Browsing, browsing
from .test_pages import OFFSETS_AT_ONCE, commit

AT_ONCE = {**OFFSETS_AT_ONCE, "group_initial_rebalance_delay_ms": "0"}


class Client:
    """One connection that stays open. ``ask`` gives the answer."""

    def __init__(self, connection: MemoryConnection, client_id: str) -> None:
        self.connection = connection
        self.client_id = client_id

    async def ask(self, request: Message, version: int) -> Any:
        await self.connection.send([frame(request, version, 1, self.client_id)])
        _, answer = await read_answer(self.connection)
        _, start = decode_response_header(answer, request.api_key, version)
        return decode(response_class(request.api_key), version, memoryview(answer)[start:])


@asynccontextmanager
async def client(browser: Browsing, client_id: str, software: str = "") -> AsyncIterator[Client]:
    connection = await browser.network.connect(HOST, PORT)
    made = Client(connection, client_id)
    if software:
        name, _, version = software.partition(" ")
        await made.ask(ApiVersionsRequest(client_software_name=name, client_software_version=version), 3)
    yield made
    connection.close()


async def test_who_writes_here(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders", 2)
        async with client(browser, "shop", "apache-kafka-java 3.9.0") as shop, client(browser, "script") as script:
            idempotent = {"producer_id": 77, "producer_epoch": 3}
            await shop.ask(produce_request("orders", {0: batch(b"a", b"b", base_sequence=0, **idempotent)}), 9)
            await shop.ask(produce_request("orders", {0: batch(b"c", base_sequence=2, **idempotent)}), 9)
            await script.ask(produce_request("orders", {1: batch(b"d")}), 9)
            page = (await browser.get("/topics/orders/producers?sort=-partition")).page
            assert "apache-kafka-java 3.9.0" in page.text
            written = [text for text in page.row_texts() if "shop" in text or "script" in text]
            assert len(written) == 2
            ours = next(text for text in written if "shop" in text)
            assert ours.startswith("0 shop client:")
            assert "User:ANONYMOUS 77 3 2 2 " in ours
            theirs = next(text for text in written if "script" in text)
            assert theirs.startswith("1 script client:")
            assert "not idempotent" in theirs
            assert page.links["2"] == "/topics/orders/records?partition=0&from=offset&at=2"
            found = (await browser.get("/topics/orders/producers?q=script")).page
            assert "1 producer in partitions of 2" in found.text
            topic = (await browser.get("/topics/orders")).page
            assert topic.links["Who writes"] == "/topics/orders/producers"
        # What a partition remembers stays when the connection is gone; a producer without idempotence is not seen any more.
        await browser.settled()
        await browser.renewed()
        page = (await browser.get("/topics/orders/producers")).page
        (left,) = [text for text in page.row_texts() if "77" in text]
        assert "not connected here" in left
        assert "script" not in page.text


async def test_who_reads_and_commits_nothing(tmp_path: Path) -> None:
    async with browsing(tmp_path, **AT_ONCE) as browser:
        await browser.create("orders", 2)
        browser.put("orders", *[Record(timestamp=1, value=b"v")] * 5)
        async with client(browser, "peek", "librdkafka 1.6.0") as peek, client(browser, "billing") as billing:
            await peek.ask(fetch_request("orders", {0: 3}), 12)
            await commit(browser, "accounts", "orders", 1, "other")
            member = await join(billing, "accounts", {"orders": [0]})
            assert member
            session = (await billing.ask(fetch_request("orders", {0: 4, 1: 0}, session=(0, 0)), 12)).session_id
            await billing.ask(fetch_request("orders", {0: 5}, session=(session, 1)), 12)
            page = (await browser.get("/topics/orders/consumers")).page
            rows = {text.partition(" client:")[0]: text for text in page.row_texts() if " client:" in text}
            assert rows.keys() == {"0 peek", "0 billing", "1 billing"}
            assert rows["0 peek"].endswith("librdkafka 1.6.0 User:ANONYMOUS 3 2 no group")
            assert rows["0 billing"].endswith("unknown unknown User:ANONYMOUS 5 0 accounts 1")
            assert rows["1 billing"].endswith("0 0 no group")
            group = (await browser.get("/group?id=accounts")).page
            assert "orders 0 1 5 5 4" in group.text, "committed, where it reads from, end, lag"
            applications = (await browser.get("/applications")).page
            (old,) = [text for text in applications.row_texts() if text.startswith("peek")]
            assert "librdkafka 1.6.0 old" in old
            assert applications.links["peek"] == "/connections?q=peek"


async def join(member: Client, group: str, assigned: dict[str, list[int]]) -> str:
    """Become the only member of a group; its member id."""
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\0\0\0\0")]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=protocols,
        reason="the first one",
    )
    request.member_id = (await member.ask(request, 8)).member_id
    joined = await member.ask(request, 8)
    topics = [AssignedTopicPartition(topic=topic, partitions=numbers) for topic, numbers in assigned.items()]
    assignment = b"\0\0" + encode_bytes(ConsumerProtocolAssignment(assigned_partitions=topics), 0)
    assignments = [SyncGroupRequestAssignment(member_id=request.member_id, assignment=assignment)]
    synced = await member.ask(
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=request.member_id,
            assignments=assignments,
        ),
        3,
    )
    assert synced.error_code == 0
    return str(request.member_id)


async def test_the_timeline_of_a_group_stays_when_it_is_gone(tmp_path: Path) -> None:
    async with browsing(tmp_path, **AT_ONCE) as browser:
        await browser.create("orders")
        await commit(browser, "accounts", "orders", 0)
        async with client(browser, "billing") as billing:
            member = await join(billing, "accounts", {"orders": [0]})
            why = MemberIdentity(member_id=member, reason="the consumer poll timeout has expired")
            await billing.ask(LeaveGroupRequest(group_id="accounts", members=[why]), 5)
            group = (await browser.get("/group?id=accounts")).page
            page = (await browser.get(group.links["Timeline"])).page
            kinds = [text for text in page.row_texts() if "UTC" in text]
            for kind, text in zip(
                (
                    "group is empty",
                    "rebalance begins",
                    "left",
                    "assignments are made",
                    "generation begins",
                    "rebalance begins",
                    "joined",
                ),
                kinds,
                strict=True,
            ):
                assert kind in text, kinds
            assert f"{member[:14]} … {member[-6:]}" in kinds[2]
            assert ("span", {"class": "id", "title": member}) in page.elements
            assert "the consumer poll timeout has expired" in kinds[2]
            assert "the first one" in kinds[6]
            await billing.ask(DeleteGroupsRequest(groups_names=["accounts"]), 2)
            assert (await browser.get("/group?id=accounts")).status == 404
            assert (await browser.get("/group/timeline?id=accounts")).page.text == page.text
        assert "Nothing has happened" in (await browser.get("/group/timeline?id=nobody")).page.text


async def test_normal_steps_of_the_protocol_are_no_errors(tmp_path: Path) -> None:
    async with browsing(tmp_path, **AT_ONCE) as browser:
        await browser.create("orders")
        await commit(browser, "accounts", "orders", 0)
        view = browser.console.view
        failed = view.requests.failed
        known = {(row.api, row.error) for row in view.errors()}
        async with client(browser, "billing") as billing, client(browser, "second") as second:
            member = await join(billing, "accounts", {"orders": [0]})  # answered MEMBER_ID_REQUIRED first
            heartbeat = HeartbeatRequest(group_id="accounts", generation_id=1, member_id=member)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(join, second, "accounts", {})
                with trio.fail_after(20):
                    while (await billing.ask(heartbeat, 4)).error_code != ErrorCode.REBALANCE_IN_PROGRESS:
                        await trio.sleep(0.01)
                nursery.cancel_scope.cancel()
            assert view.requests.failed == failed
            assert {(row.api, row.error) for row in view.errors()} == known
            page = (await browser.get("/requests?q=MEMBER_ID_REQUIRED")).page
            (row,) = [text for text in page.row_texts() if "billing" in text]
            assert "MEMBER_ID_REQUIRED" in row, "it can be found all the same"
            wrong = HeartbeatRequest(group_id="accounts", generation_id=99, member_id=member)
            assert (await billing.ask(wrong, 4)).error_code == ErrorCode.ILLEGAL_GENERATION
            assert view.requests.failed == failed + 1
        assert "Heartbeat ILLEGAL_GENERATION billing 1" in (await browser.get("/requests/errors")).page.text


async def test_a_request_with_its_answer(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        async with client(browser, "tool") as tool:
            await tool.ask(ListGroupsRequest(states_filter=["Stable"]), 4)
            secret = ScramCredentialUpsertion(
                name="alice", mechanism=1, iterations=4096, salt=b"s" * 8, salted_password=b"secret"
            )
            await tool.ask(AlterUserScramCredentialsRequest(upsertions=[secret]), 0)
            await tool.ask(produce_request("nothing", {0: batch(b"x")}), 9)
        listed = (await browser.get("/requests")).page
        page = (await browser.get(listed.links["ListGroups"])).page
        assert '"states_filter": [ "Stable" ]' in page.text
        assert '"message": "ListGroupsResponse"' in page.text
        kept = (await browser.get(listed.links["AlterUserScramCredentials"])).page
        assert "It is not kept" in kept.text
        assert b"secret".hex() not in kept.html
        assert "alice" not in kept.text
        failed = (await browser.get(listed.links["Produce"])).page
        assert "UNKNOWN_TOPIC_OR_PARTITION" in failed.text
        assert '"error_code": 3' in failed.text
        slow = (await browser.get("/requests/slowest")).page
        assert "ListGroups" in slow.text
        errors = (await browser.get("/requests/errors?q=unknown_topic")).page
        assert "Produce UNKNOWN_TOPIC_OR_PARTITION tool 1" in errors.text
        assert (await browser.get("/requests/999999")).status == 404


async def test_a_log(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders", configs={"retention.ms": "3600000", "segment.bytes": "1000"})
        await browser.create("state", configs={"cleanup.policy": "compact", "segment.bytes": "1000"})
        async with client(browser, "shop") as shop:
            await shop.ask(produce_request("orders", {0: batch(b"a" * 3000, compression=NAMES.index("gzip"))}), 9)
            for _ in range(3):
                for topic in ("orders", "state"):
                    browser.put(topic, Record(timestamp=1_700_000_000_000, key=b"k", value=b"b" * 600))
        page = (await browser.get("/topics/orders/0/log?from=0")).page
        assert "Offsets 0 to" in page.text
        assert "Its newest record is then as old as retention.ms." in page.text
        (packed,) = [text for text in page.row_texts() if "gzip" in text]
        ratio = float(packed.split("gzip ")[1].split()[0])
        assert ratio > 5
        assert "active" in page.text
        compacted = (await browser.get("/topics/state/0/log")).page
        assert "nothing is deleted because it is old" in compacted.text
        assert "It is next, from offset 0 to 2." in compacted.text
        for odd in ("?from=-1", "?from=x", "?from=99999", "?from=" + "9" * 30):
            assert (await browser.get(f"/topics/orders/0/log{odd}")).status == 200
        assert (await browser.get("/topics/orders/9/log")).status == 404
        assert (await browser.get("/topics/nothing/0/log")).status == 404


def test_clients_are_called_old_by_what_they_say_of_themselves() -> None:
    assert why_old("apache-kafka-java", "2.8.1")
    assert why_old("kafka-python", "2.0.2")
    assert not why_old("apache-kafka-java", "3.9.0")
    assert not why_old("apache-kafka-java", "4.1.0-SNAPSHOT")
    assert not why_old("librdkafka", "unknown")
    assert not why_old("something else", "0.1")


async def test_the_last_hour_of_a_topic(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders")
        view = browser.console.view
        await view.sample()
        async with client(browser, "shop") as shop:
            await shop.ask(produce_request("orders", {0: batch(*[b"x"] * 60)}), 9)
        view._look_at = 0.0  # there is no need to wait for the next look
        await view.sample()
        later = view.now_ms() // 60_000 + 1
        assert sum(point[1] for point in view.traffic.hours.of("orders", later)) == 1.0
        history = (await browser.get("/history.json?topic=orders&series=bytes_in,bytes_out")).json
        assert history["series"] == ["bytes_in", "bytes_out"]
        assert {len(values) for values in history["values"]} == {len(history["times"])}
        page = (await browser.get("/topics/orders")).page
        assert [found["data-of"] for _, found in page.elements if "data-of" in found] == [
            "topic=orders",
            "topic=orders",
        ]


async def test_an_error_says_why_and_leads_to_its_client(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders", 2, configs={"max.message.bytes": "300"})
        async with client(browser, "importer") as importer:
            await importer.ask(produce_request("orders", {1: batch(b"x" * 200)}), 9)
            await importer.ask(produce_request("orders", {0: batch(b"x" * 500)}), 9)
            for address in ("/", "/requests", "/requests/errors"):
                page = (await browser.get(address)).page
                (row,) = [text for text in page.row_texts() if "MESSAGE_TOO_LARGE importer 1" in text]
                assert "bytes" in row, "the reason is the response's"
                assert page.links["importer"] == "/requests?q=importer"
        page = (await browser.get("/topics/orders")).page
        assert re.search(r"Largest partition 1 ?: [0-9]+ B ?, leader 1", page.text)
        assert "Broker 1" in (await browser.get("/topics/orders/1/log")).page.text
