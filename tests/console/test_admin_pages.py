"""Transactions and who holds back consumers, the cluster, users and quotas: each on a page of its own."""

from __future__ import annotations

from pathlib import Path

import trio

from ottla.base.config import Config
from ottla.base.memory_network import MemoryNetwork
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.broker.server import BrokerServer
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.view.admin_rows import AclRow
from ottla.view.own.broker_view import BrokerView
from ottla.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

from ..helpers.memory_broker import HOST, PORT, running
from .helpers.browsing import Browsing, Open, alone_on, browsing, browsing_elsewhere, on_both
from .test_inside_pages import Client, client
from .test_pages import OFFSETS_AT_ONCE, ask

TRANSACTIONS_AT_ONCE = {
    "transaction_state_log_replication_factor": "1",
    "transaction_state_log_num_partitions": "1",
    "transaction_state_log_min_isr": "1",
}


async def began(
    browser: Browsing, producer: Client, transactional_id: str, topic: str, timeout_ms: int = 60_000
) -> tuple[int, int]:
    """A transaction with a record in it; the producer's id and epoch."""
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    with trio.fail_after(30):
        while (given := await producer.ask(request, 4)).error_code:
            await ask(browser, FindCoordinatorRequest(key=transactional_id, key_type=1), 3)
            await trio.sleep(0.02)
    who = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch}
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=[0])]
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=given.producer_id,
        v3_and_below_producer_epoch=given.producer_epoch,
        v3_and_below_topics=topics,
    )
    await producer.ask(added, 3)
    records = batch(b"x", base_sequence=0, is_transactional=True, **who)
    answer = await producer.ask(produce_request(topic, {0: records}, transactional_id=transactional_id), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return given.producer_id, given.producer_epoch


async def test_who_holds_back_consumers(tmp_path: Path) -> None:
    async with browsing(tmp_path, **TRANSACTIONS_AT_ONCE) as browser:
        await browser.create("orders")
        assert "No transaction is open" in (await browser.get("/transactions")).page.text
        async with client(browser, "loader") as loader, client(browser, "later") as later:
            producer_id, epoch = await began(browser, loader, "load/1", "orders")
            await began(browser, later, "late", "orders")
            await later.ask(produce_request("orders", {0: batch(b"y")}), 9)
            await browser.renewed()
            page = (await browser.get("/transactions?open=1&sort=id")).page
            rows = page.row_texts()
            (first,) = [text for text in rows if text.startswith("orders -0 load/1")]
            assert f" {producer_id} {epoch} 0 " in first
            assert first.endswith(" 0 3")
            assert [text for text in rows if text.startswith("orders -0 late") and text.endswith("behind another")]
            (listed,) = [text for text in rows if text.startswith("load/1 Ongoing")]
            assert "1 min" in listed
            assert "kafka-transactions.sh --bootstrap-server test:9092 list" in page.text
            one = (await browser.get(page.links["load/1"])).page
            assert "State Ongoing" in one.text
            assert "orders -0 0 0 3" in one.text
            written = (await browser.get("/topics/orders/producers")).page
            assert [text for text in written.row_texts() if "loader" in text and "load/1 open since offset 0" in text]
            ended = EndTxnRequest(
                transactional_id="load/1", producer_id=producer_id, producer_epoch=epoch, committed=True
            )
            await loader.ask(ended, 3)
            await browser.renewed()
            assert "load/1 Complete" in (await browser.get("/transactions")).page.text.replace(
                "PrepareCommit", "Complete"
            )
        assert (await browser.get("/transaction?id=nobody")).status == 404


async def test_the_cluster(tmp_path: Path) -> None:
    async with browsing(tmp_path, broker_rack="north") as browser:
        await browser.create("orders", 3)
        page = (await browser.get("/cluster")).page
        (this,) = [text for text in page.row_texts() if "controller" in text]
        assert "this one north PLAINTEXT test :9092 3 3 0" in this
        assert "None: each of 3 has a leader" in page.text
        assert "kafka-topics.sh --bootstrap-server test:9092 --describe --under-replicated-partitions" in page.text


async def test_the_cluster_as_it_tells_itself(tmp_path: Path) -> None:
    async with browsing_elsewhere(tmp_path, broker_rack="north") as browser:
        await browser.create("orders", 3)
        page = (await browser.get("/cluster")).page
        assert "As its brokers report it; its controller is node 1, of the quorum of controllers" in page.text
        (only,) = [text for text in page.row_texts() if "controller" in text]
        assert "north test :9092 3 3 0" in only
        assert "None: each of 3 has a leader" in page.text
        assert "Replicas being moved None." in page.text


async def test_transactions_of_a_cluster_that_is_asked(tmp_path: Path) -> None:
    async with browsing_elsewhere(tmp_path, **TRANSACTIONS_AT_ONCE) as browser:
        await browser.create("orders")
        async with client(browser, "loader") as loader:
            await began(browser, loader, "load/1", "orders")
            page = (await browser.get("/transactions?open=1")).page
            assert [text for text in page.row_texts() if text.startswith("load/1 Ongoing")]
            assert "ottla transactions find-hanging" in page.text
            one = (await browser.get(page.links["load/1"])).page
            assert "State Ongoing" in one.text
            assert one.links["orders"] == "/topics/orders"
            assert "open since offset 0" in (await browser.get("/topics/orders")).page.text
        assert (await browser.get("/transaction?id=nobody")).status == 404


@on_both
async def test_users_quotas_and_rules(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        given = ScramCredentialUpsertion(name="alice", mechanism=2, iterations=8192, salt=b"s" * 8)
        given.salted_password = b"secret"
        await ask(browser, AlterUserScramCredentialsRequest(upsertions=[given]), 0)
        entity = [
            EntityData(entity_type="user", entity_name="alice"),
            EntityData(entity_type="client-id", entity_name=None),
        ]
        quota = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000.0)])
        await ask(browser, AlterClientQuotasRequest(entries=[quota]), 1)
        users = (await browser.get("/users")).page
        assert "alice SCRAM-SHA-512 8,192" in users.text
        assert b"secret".hex() not in users.html
        quotas = (await browser.get("/quotas?q=ali")).page
        assert "user alice , client-id default producer_byte_rate = 1,000" in quotas.text
        assert "1 quota" in quotas.text
        assert "There is no such quota" in (await browser.get("/quotas?q=bob")).page.text
        assert "every client may do everything" in (await browser.get("/acls?topic=orders")).page.text


async def test_rules_are_the_same_whoever_is_asked(tmp_path: Path) -> None:
    """A broker's own view, and requests: all rules, and those about a topic by its name, its beginning, and all topics'."""
    network = MemoryNetwork()
    config = Config(
        {
            "log.dirs": str(tmp_path),
            "listeners": f"PLAINTEXT://{HOST}:{PORT}",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
    )
    server = BrokerServer(config, network=network, workers=InlineWorkers())
    async with running(server), alone_on(network) as alone:
        browser = Browsing(server, network, alone)
        await browser.create("orders")
        rules = [
            rule(2, "orders", 3, "User:alice", 3, 3),
            rule(2, "ord", 4, "User:bob", 4, 3),
            rule(2, "*", 3, "User:eve", 2, 2),
            rule(3, "orders", 3, "User:carol", 3, 3),
        ]
        await ask(browser, CreateAclsRequest(creations=rules), 3)
        inside = BrokerView(server, SystemClock(), InlineWorkers()).administration
        asked = alone.view.administration
        for rows in (await inside.acls(), await asked.acls()):
            assert rows is not None
            assert {row.principal for row in rows} == {"User:alice", "User:bob", "User:eve", "User:carol"}
        for rows in (await inside.acls_of_topic("orders"), await asked.acls_of_topic("orders")):
            assert rows is not None
            assert sorted(rows, key=lambda row: row.principal) == [
                AclRow("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
                AclRow("TOPIC", "ord", "PREFIXED", "User:bob", "*", "WRITE", "ALLOW"),
                AclRow("TOPIC", "*", "LITERAL", "User:eve", "*", "ALL", "DENY"),
            ]
        page = (await browser.get((await browser.get("/topics/orders")).page.links["Access rules"])).page
        assert "TOPIC ord PREFIXED User:bob ALLOW WRITE *" in page.text
        assert "3 rules" in page.text
        assert "kafka-acls.sh --bootstrap-server test:9092 --list --topic orders" in page.text


def rule(kind: int, name: str, pattern: int, principal: str, operation: int, permission: int) -> AclCreation:
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=pattern,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=permission,
    )


async def test_a_group_that_a_transaction_holds_back_says_so(tmp_path: Path) -> None:
    async with browsing(tmp_path, **TRANSACTIONS_AT_ONCE, **OFFSETS_AT_ONCE) as browser:
        await browser.create("orders")
        await browser.put_offset("billing", "orders", 0, 0)
        async with client(browser, "loader") as loader:
            await loader.ask(produce_request("orders", {0: batch(b"before")}), 9)
            await began(browser, loader, "load/1", "orders")
            await browser.renewed()
            page = (await browser.get("/group?id=billing")).page
            assert "held back" not in page.text, "it has not come so far"
            await browser.put_offset("billing", "orders", 0, 1)
            await browser.renewed()
            page = (await browser.get("/group?id=billing")).page
            assert page.links["held back by a transaction"] == "/transaction?id=load/1"
            assert (await browser.get(page.links["held back by a transaction"])).status == 200
