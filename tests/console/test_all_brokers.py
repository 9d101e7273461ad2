"""One console shows what every broker of the cluster knows, and names those that do not tell, with the reason."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.memory_network import MemoryConnection, MemoryNetwork
from ottla.broker.server import BrokerServer
from ottla.compat_tests.raw.requests import batch, fetch_request, produce_request
from ottla.console.broker_console import ConsoleSide
from ottla.handlers.api_versions import ASKING_SOFTWARE
from ottla.handlers.call import Call
from ottla.handlers.connection_context import ConnectionContext
from ottla.replication.broker_client import BrokerClient
from ottla.security.acl import CLUSTER_NAME, AclBinding, AclEntry, Permission, ResourcePattern, ResourceType
from ottla.security.acl import Operation as AclOperation
from ottla.security.authorizer_settings import ACL_AUTHORIZER
from ottla.security.principal import USER, Principal
from ottla.view.own.all_brokers import SECONDS
from ottla.view.own.told_rows import MOST_TOLD
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.describe_inside import DescribeInsideRequest, DescribeInsideResponse
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.schema import Message

from ..helpers.memory_cluster import MemoryCluster, running_as, until
from .helpers.browsing import Browsing, Page
from .helpers.quorum_browsing import console_world
from .helpers.secured import USERS_OF_PLAIN, log_in
from .test_cluster_actions import known
from .test_inside_pages import join

WITHOUT_CONSOLE = 3
Clock = trio.testing.MockClock
TABLES = ("/connections", "/applications", "/requests", "/requests/slowest", "/requests/errors")


class Network(MemoryNetwork):
    """One on which hosts may be silent: who connects to them waits for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.silent: set[str] = set()

    async def connect(self, host: str, port: int) -> MemoryConnection:
        if host in self.silent:
            await trio.sleep_forever()
        return await super().connect(host, port)


class Consoles(MemoryCluster):
    """Brokers 1 and 2 have consoles. Brokers reach each other by a listener that clients do not use."""

    def __init__(self, nursery: trio.Nursery, **properties: str) -> None:
        super().__init__(nursery, **properties)
        self.network: Network = Network()

    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        listener = {} if broker_id == WITHOUT_CONSOLE else {"console_listener": f"broker{broker_id}:8080"}
        server = super().make_server(broker_id, **listener, **self.listeners(broker_id), **own_properties)
        server._make_console = ConsoleSide
        return server

    def listeners(self, broker_id: int) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://broker{broker_id}:9092,CLIENTS://broker{broker_id}:9093",
            "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,CLIENTS:PLAINTEXT",
        }

    def browser(self, broker_id: int = 1) -> Browsing:
        return Browsing(self.servers[broker_id], self.network)


class OneListener(Consoles):
    """Clients connect where brokers do, and are not asked who they are."""

    def listeners(self, broker_id: int) -> dict[str, str]:
        return {"listeners": f"PLAINTEXT://broker{broker_id}:9092"}


class WithUsers(Consoles):
    """Clients log in; brokers, who do not, are super users."""

    def listeners(self, broker_id: int) -> dict[str, str]:
        return {
            "listeners": f"PLAINTEXT://broker{broker_id}:9092,SASL://broker{broker_id}:9093",
            "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            "sasl_enabled_mechanisms": "PLAIN",
            "listener_name_sasl_plain_sasl_jaas_config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {USERS_OF_PLAIN};"
            ),
            "authorizer_class_name": ACL_AUTHORIZER,
            "super_users": "User:ANONYMOUS",
        }


@asynccontextmanager
async def consoles(*broker_ids: int, kind: type[Consoles] = Consoles, **properties: str) -> AsyncIterator[Consoles]:
    async with running_as(kind, *broker_ids, **properties) as cluster:
        await until(lambda: all(cluster.services(each).inside for each in broker_ids if each != WITHOUT_CONSOLE))
        yield cluster


class Client:
    """A client at one broker. ``ask`` gives the answer."""

    def __init__(self, network: MemoryNetwork, broker_id: int, client_id: str) -> None:
        self._client = BrokerClient(network, f"broker{broker_id}", 9093, client_id)
        self.client_id = client_id

    async def ask(self, request: Message, version: int) -> Any:
        return await self._client.send(request, version)

    def close(self) -> None:
        self._client.close()


@contextmanager
def client(cluster: Consoles, broker_id: int, client_id: str) -> Any:
    made = Client(cluster.network, broker_id, client_id)
    yield made
    made.close()


def row_of(page: Page, text: str) -> str:
    """The first one with the text."""
    return next(each for each in page.row_texts() if text in each)


async def test_a_client_of_another_broker_is_among_the_rows(autojump_clock: Clock) -> None:
    async with consoles(1, 2, WITHOUT_CONSOLE) as cluster:
        browser = cluster.browser()
        with client(cluster, 2, "elsewhere") as elsewhere:
            await elsewhere.ask(ListGroupsRequest(), 4)
            await elsewhere.ask(produce_request("nothing", {0: batch(b"x")}), 9)
            for address in TABLES:
                page = (await browser.get(f"{address}?q=elsewhere")).page
                assert all(text.endswith(" 2") for text in page.row_texts() if "elsewhere" in text), address
                assert "elsewhere" in page.text, address
                assert "Broker 3 did not report its data: it has no console (console.listener)" in page.text
                assert "Broker 2 has not" not in page.text, address
            by_broker = (await browser.get("/connections?sort=-broker")).page
            assert by_broker.row_texts()[1].endswith(" 2")
            assert "Errors of the last hour" in (shown := await browser.get("/requests")).page.text
            assert "UNKNOWN_TOPIC_OR_PARTITION elsewhere 1" in shown.page.text


async def test_consoles_that_look_are_not_among_the_requests(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:
        for _ in range(3):
            await cluster.browser().get("/requests")
            await cluster.browser().renewed()
        assert "DescribeInside" not in (await cluster.browser(2).get("/requests")).page.text


async def test_a_request_to_another_broker_in_full(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:
        browser = cluster.browser()
        with client(cluster, 2, "tool") as tool:
            await tool.ask(ListGroupsRequest(states_filter=["Stable"]), 4)
            secret = ScramCredentialUpsertion(
                name="alice", mechanism=1, iterations=4096, salt=b"s" * 8, salted_password=b"secret"
            )
            await tool.ask(AlterUserScramCredentialsRequest(upsertions=[secret]), 0)
        listed = (await browser.get("/requests?q=tool")).page
        link = listed.links["ListGroups"]
        assert link.endswith("?broker=2")
        page = (await browser.get(link)).page
        assert '"states_filter": [ "Stable" ]' in page.text
        assert '"message": "ListGroupsResponse"' in page.text
        assert "Broker 2" in page.text
        kept = (await browser.get(listed.links["AlterUserScramCredentials"])).page
        assert "It is not kept" in kept.text
        assert b"secret".hex() not in kept.html
        assert (await browser.get("/requests/999999?broker=2")).status == 404
        gone = await browser.get("/requests/1?broker=77")
        assert gone.status == 404
        assert "No broker 77 is alive" in gone.page.text


# --- who is told ------------------------------------------------------------------------------------------------------


async def told(cluster: Consoles, port: int, software: str = ASKING_SOFTWARE) -> tuple[bool, int]:
    """Whether broker 2 names the request to a client that calls itself so, and what it answers."""
    asking = BrokerClient(cluster.network, "broker2", port, "curious")
    versions = ApiVersionsRequest(client_software_name=software, client_software_version="1")
    served = {each.api_key for each in (await asking.send(versions, 3)).api_keys}
    answer = await asking.send(DescribeInsideRequest(kind="connections"), 0)
    asking.close()
    assert answer.error_code == 0 or not answer.rows
    return ApiKey.DESCRIBE_INSIDE in served, answer.error_code


async def test_clients_are_refused_at_their_own_listener(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:
        assert await told(cluster, 9092) == (True, 0)
        assert await told(cluster, 9093) == (True, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert await told(cluster, 9092, "apache-kafka-java") == (False, 0)


async def test_where_clients_come_as_brokers_do_nobody_is_told(autojump_clock: Clock) -> None:
    async with consoles(1, 2, kind=OneListener) as cluster:
        assert await told(cluster, 9092) == (True, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        page = (await cluster.browser().get("/connections")).page
        assert "Broker 2 did not report its data: it reports to brokers only: clients reach its listener" in page.text
        assert "see docs/security.md" in page.text
        answer = await cluster.browser().get("/requests/1?broker=2")
        assert answer.status == 503


async def test_brokers_know_each_other_by_the_clusters_secret(autojump_clock: Clock, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sixteen or more characters")
    async with consoles(1, 2, kind=OneListener, cluster_secret_file=str(secret)) as cluster:
        assert await told(cluster, 9092) == (True, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        page = (await cluster.browser().get("/connections")).page
        assert "did not report" not in page.text
        assert row_of(page, "broker-1-inside").endswith(" 2")


async def test_a_visitor_sees_of_other_brokers_what_the_visitors_rights_show(autojump_clock: Clock) -> None:
    describe, alter = AclOperation.DESCRIBE, AclOperation.ALTER
    async with consoles(1, 2, kind=WithUsers) as cluster:
        await cluster.ask(2, ListGroupsRequest(), 4)
        browser = cluster.browser()
        await log_in(browser, "alice")
        for address in (*TABLES, "/requests/1?broker=2", "/topics/orders/consumers", "/group/timeline?id=g"):
            assert (await browser.get(address)).status == 403, address
        await grant(cluster, "alice", describe)
        for address in ("/connections", "/requests", "/applications"):
            assert any(text.endswith(" 2") for text in (await browser.get(address)).page.row_texts()), address
        link = (await browser.get("/requests?q=ListGroups")).page.links["ListGroups"]
        assert link.endswith("?broker=2")
        assert (await browser.get(link)).status == 403, "records may be in it"
        await grant(cluster, "alice", alter)
        assert "ListGroupsResponse" in (await browser.get(link)).page.text
        assert (await browser.get("/topics/orders/consumers")).status == 403, (
            "that needs the right to the topic as well"
        )


async def grant(cluster: Consoles, user: str, operation: AclOperation) -> None:
    pattern = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
    binding = AclBinding(pattern, AclEntry(f"User:{user}", Permission.ALLOW, "*", operation))
    assert await cluster.services(1).commands.create_acls([binding]) == [None]


async def test_clients_with_rights_of_their_own_are_no_brokers(autojump_clock: Clock) -> None:
    async with consoles(1, 2, kind=WithUsers) as cluster:
        services = cluster.services(2)
        connection = ConnectionContext("PLAINTEXT", "client:1", is_inter_broker_listener=True)
        connection.principal = Principal(USER, "alice")

        async def flush() -> None:
            return

        call = Call(services, connection, flush)
        call.key = ApiKey.DESCRIBE_INSIDE << 16
        handler = services.served.by_key[ApiKey.DESCRIBE_INSIDE]
        handler.load()
        assert handler.handle is not None
        with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await handler.handle(call, DescribeInsideRequest(kind="connections"))


# --- topics and groups ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def with_orders(**properties: str) -> AsyncIterator[Consoles]:
    """Each of brokers 1 and 2 leads a partition of the topic orders, of which the other has a replica."""
    quick = {"offsets_topic_num_partitions": "1", "group_initial_rebalance_delay_ms": "0", **properties}
    async with consoles(1, 2, offsets_topic_replication_factor="1", **quick) as cluster:
        await cluster.create("orders", (1, 2), (2, 1))
        await cluster.create("__consumer_offsets", (2,), cleanup_policy="compact")
        for broker_id in (1, 2):
            await known(cluster, broker_id, "orders", 2)
            await known(cluster, broker_id, "__consumer_offsets", 1)
        yield cluster


async def test_who_writes_to_partitions_that_others_lead(autojump_clock: Clock) -> None:
    async with with_orders() as cluster:
        with client(cluster, 1, "here") as here, client(cluster, 2, "there") as there:
            ids = {"producer_id": 77, "producer_epoch": 3, "base_sequence": 0}
            await here.ask(produce_request("orders", {0: batch(b"a")}), 9)
            await there.ask(produce_request("orders", {1: batch(b"b", **ids)}), 9)
            page = (await cluster.browser().get("/topics/orders/producers")).page
            assert row_of(page, "here").endswith(" 1")
            assert row_of(page, "there").startswith("1 there")
            assert row_of(page, "there").endswith(" 2")
            assert page.rows() == 3, "the follower's memory of a producer is not shown as well"
        cluster.network.silent.add("broker2")
        cluster.assembly(1).peers.client(2, "inside").close()
        await cluster.browser().renewed()
        page = (await cluster.browser().get("/topics/orders/producers")).page
        assert "Broker 2 did not report" in page.text
        assert row_of(page, " 77 ").endswith(" 1"), "without the leader, what this broker's replica remembers"


async def test_a_transaction_is_named_where_its_coordinator_is(autojump_clock: Clock) -> None:
    async with with_orders(transaction_state_log_num_partitions="1") as cluster:
        await cluster.create("__transaction_state", (1,), cleanup_policy="compact")
        await known(cluster, 1, "__transaction_state", 1)
        with client(cluster, 1, "shop") as shop, client(cluster, 2, "shop") as there:
            request = InitProducerIdRequest(transactional_id="payments", transaction_timeout_ms=60_000)
            given = await shop.ask(request, 4)
            assert given.error_code == 0
            ids = {"producer_id": given.producer_id, "producer_epoch": given.producer_epoch, "base_sequence": 0}
            await there.ask(produce_request("orders", {1: batch(b"b", **ids)}), 9)
            page = (await cluster.browser().get("/topics/orders/producers")).page
            assert page.links["payments"] == "/transaction?id=payments"


async def test_who_reads_is_joined_with_the_groups_coordinator(autojump_clock: Clock) -> None:
    async with with_orders() as cluster:
        with client(cluster, 1, "billing") as here, client(cluster, 2, "billing") as there:
            await join(there, "accounts", {"orders": [0]})  # type: ignore[arg-type]
            await here.ask(fetch_request("orders", {0: 0}), 12)
            await there.ask(fetch_request("orders", {1: 0}), 12)
            page = (await cluster.browser().get("/topics/orders/consumers?sort=partition")).page
            first, second = [text for text in page.row_texts() if "billing" in text]
            assert "accounts nothing" in first, "the coordinator is broker 2"
            assert first.endswith(" 1")
            assert "no group" in second
            assert second.endswith(" 2")
            timeline = (await cluster.browser().get("/group/timeline?id=accounts")).page
            assert row_of(timeline, "joined").endswith(" 2")


async def test_the_log_of_a_replica_elsewhere(autojump_clock: Clock) -> None:
    async with with_orders() as cluster:
        browser = cluster.browser()
        await cluster.create("far", (2,))
        await known(cluster, 1, "far", 1)
        for number in range(3):
            await cluster.produce(2, "far", 0, b"%d" % number)
        link = (await browser.get("/topics/far")).page.links["its log at broker 2"]
        page = (await browser.get(link)).page
        assert "Size" in page.text
        assert page.links["At broker 2"] == "/topics/far/0/log?broker=2"
        assert page.links["2"] == "/topics/far/records?partition=0&from=offset&at=2"
        assert page.links["0"] == "/topics/far/0/log?from=0&broker=2"
        later = (await browser.get("/topics/far/0/log?broker=2&from=2")).page
        assert [text.split()[0] for text in later.row_texts() if " none " in text] == ["2"]
        two = (await browser.get("/topics/orders/0/log")).page
        assert [text for text in two.links if text.startswith("At broker")] == ["At broker 1", "At broker 2"]
        assert (await browser.get("/topics/far/0/log?broker=1")).status == 404
        assert (await browser.get("/topics/nothing/0/log")).status == 404
        await cluster.stop(2)
        await until(lambda: cluster.services(1).metadata.topics["far"].partitions[0].leader < 0)
        gone = await browser.get("/topics/far/0/log")
        assert (gone.status, "This broker has no replica of far-0" in gone.page.text) == (404, True)


# --- who does not tell ------------------------------------------------------------------------------------------------


async def test_a_broker_that_is_silent_is_waited_for_once(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:
        cluster.network.silent.add("broker2")
        browser, began = cluster.browser(), trio.current_time()
        page = (await browser.get("/connections")).page
        assert SECONDS <= trio.current_time() - began < SECONDS + 0.5
        assert "Broker 2 did not report its data: it has not answered within 2 s" in page.text
        assert page.rows() > 1, "what this broker knows is there"
        began = trio.current_time()
        for address in TABLES:
            assert "Broker 2 did not report" in (await browser.get(address)).page.text
        assert trio.current_time() - began < 0.5
        overview = (await browser.get("/")).page
        assert "Broker 2 has not answered all requests" in overview.text
        top = (await browser.get("/top.json")).json
        assert any(each["kind"] == "silent broker" for each in top["broker"]["findings"])
        cluster.network.silent.clear()
        await trio.sleep(10)
        assert "Broker 2 has not" not in (await browser.get("/connections")).page.text


async def test_a_broker_that_refuses_connections_is_named(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:
        cluster.assembly(1).peers.client(2, "inside").close()
        page = (await cluster.browser().get("/connections")).page
        assert "Broker 2 did not report its data: broker2:9092: the client was closed" in page.text
        assert page.rows() > 1, "what this broker knows is there"


async def test_a_broker_that_the_controller_has_fenced_is_named(autojump_clock: Clock) -> None:
    async with console_world({1: "controller", 11: "broker", 12: "broker"}) as world:
        await world.kill(12)
        await until(lambda: 12 not in world.services(11).metadata.broker_ids())
        page = (await world.browsing(11).get("/connections")).page
        assert "Broker 12 did not report its data: it is fenced: it is down, or the controller" in page.text


async def test_a_broker_that_does_not_serve_the_request_is_named(autojump_clock: Clock) -> None:
    """So are Apache Kafka's, and Ottla's of an earlier version."""
    async with consoles(1, 2) as cluster:
        services = cluster.services(2)
        by_key = {key: each for key, each in services.served.by_key.items() if key != ApiKey.DESCRIBE_INSIDE}
        services.served = dataclasses.replace(services.served, by_key=by_key)
        page = (await cluster.browser().get("/connections")).page
        assert "Broker 2 did not report its data: it is not an Ottla broker of this version" in page.text
        assert "silent" not in (await cluster.browser().get("/")).page.text


async def test_an_answer_that_cannot_be_read_is_named(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:

        async def tell_nonsense(connection: Any, asked: DescribeInsideRequest) -> DescribeInsideResponse:
            return DescribeInsideResponse(total=1, rows=[b'{"peer": 7}'])

        cluster.services(2).inside = tell_nonsense
        page = (await cluster.browser().get("/connections")).page
        assert "Broker 2 did not report its data: its response cannot be read: 7 is no str" in page.text


async def test_an_answer_that_is_cut_says_so(autojump_clock: Clock) -> None:
    async with consoles(1, 2) as cluster:
        connections = [await cluster.network.connect("broker2", 9093) for _ in range(MOST_TOLD + 5)]
        await until(lambda: len([*cluster.servers[2].connections()]) > MOST_TOLD)
        page = (await cluster.browser().get("/connections")).page
        assert re.search(r"Of broker 2 there are 1,000 of 1,0\d\d here; its own console has all\.", page.text)
        assert (await cluster.browser().get("/applications")).page.text.count("Of broker 2 there are") == 0
        for each in connections:
            each.close()


async def test_another_broker_s_client_is_disconnected_by_that_broker_s_console(autojump_clock: Clock) -> None:
    async with consoles(1, 2, console_allow_writes="true") as cluster:
        browser = cluster.browser()
        with client(cluster, 2, "elsewhere") as elsewhere:
            await elsewhere.ask(ListGroupsRequest(), 4)
            page = (await browser.get("/connections?q=elsewhere")).page
            (grey,) = [each for tag, each in page.elements if each.get("aria-disabled") == "true"]
            assert "Only the console of broker 2 can do that" in str(grey["title"])
            await browser.console.view.find_consoles()
            link = (await browser.get("/connections?q=elsewhere")).page.links["Disconnect there…"]
            assert link.startswith("http://broker2:8080/connections?q=client")
            there = (await cluster.browser(2).get(link.removeprefix("http://broker2:8080"))).page
            assert "Disconnect…" in there.links
