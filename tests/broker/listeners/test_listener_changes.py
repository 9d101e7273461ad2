"""Listeners that are added, closed and advertised elsewhere while brokers run, on a network in memory."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.seams import InlineWorkers
from ottla.base.tls import TlsConnection
from ottla.replication.broker_client import BrokerClient, PeerUnavailableError
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.security.tls_context import client_context
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.metadata import MetadataRequest

from ...helpers.memory_cluster import MemoryCluster, running, until
from ...security.helpers.certificates import broker, parsed, settings_of
from ..helpers.sasl_clients import Client, add_user

_BROKER = 4
_SET, _DELETE = 0, 1
BOTH = "PLAINTEXT://broker1:9092,OUTSIDE://outside1:9093"
MAP = "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT"
PORT = 9093


async def change(cluster: MemoryCluster, **settings: str | None) -> ErrorCode:
    """Set or delete settings of broker 1, with _ for the dots."""
    configs = [
        AlterableConfig(name=name.replace("_", "."), config_operation=_DELETE if value is None else _SET, value=value)
        for name, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name="1", configs=configs)
    answer = await cluster.ask(1, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    return ErrorCode(answer.responses[0].error_code)


async def addresses(cluster: MemoryCluster, client: BrokerClient) -> set[tuple[str, int]]:
    brokers = (await client.send(MetadataRequest(topics=[]), 12)).brokers
    return {(broker.host, broker.port) for broker in brokers}


def outside(cluster: MemoryCluster) -> BrokerClient:
    return BrokerClient(cluster.network, "outside1", PORT, "client")


async def known_outside(cluster: MemoryCluster, *broker_ids: int) -> None:
    """Every broker comes to know of these and no others that they have the listener."""
    for number in cluster.servers:
        metadata = cluster.services(number).metadata
        await until(lambda metadata=metadata: set(metadata.nodes("OUTSIDE")) == set(broker_ids))


async def test_a_listener_comes_outlives_a_restart_and_goes(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        epoch = cluster.services(1).cluster.broker_epoch
        assert await change(cluster, listeners=BOTH, listener_security_protocol_map=MAP) == 0
        await known_outside(cluster, 1)
        client = outside(cluster)
        assert await addresses(cluster, client) == {("outside1", PORT)}
        assert cluster.services(1).cluster.broker_epoch == epoch
        client.close()

        await cluster.stop(1)
        await cluster.start(1)
        await known_outside(cluster, 1)
        client = outside(cluster)
        assert await addresses(cluster, client) == {("outside1", PORT)}

        assert await change(cluster, listeners=None, listener_security_protocol_map=None) == 0
        await known_outside(cluster)
        with pytest.raises(PeerUnavailableError):
            await addresses(cluster, client)
        with pytest.raises(PeerUnavailableError, match="refused"):
            await addresses(cluster, outside(cluster))


async def test_another_address_is_advertised(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        assert await change(cluster, advertised_listeners="PLAINTEXT://elsewhere:1") == 0
        for number in (1, 2):
            metadata = cluster.services(number).metadata
            await until(lambda metadata=metadata: metadata.nodes("PLAINTEXT")[1].host == "elsewhere")
        assert cluster.services(2).metadata.nodes("PLAINTEXT")[1].port == 1


async def test_a_listener_that_comes_may_ask_who_a_client_is(autojump_clock: trio.testing.MockClock) -> None:
    """As a cluster is secured without a stop: first a listener with SASL, then the clients go there, then the other one goes."""
    async with running(1) as cluster:
        await add_user(cluster, "alice", "secret")
        settings = {
            "listeners": BOTH,
            "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "listener_name_outside_sasl_enabled_mechanisms": "SCRAM-SHA-256",
        }
        unknown = settings | {"listener_name_outside_sasl_enabled_mechanisms": "NONE-SUCH"}
        assert await change(cluster, **unknown) == ErrorCode.INVALID_REQUEST
        assert await change(cluster, **settings) == 0
        await known_outside(cluster, 1)
        stranger, alice = [Client(await cluster.network.connect("outside1", PORT)) for _ in range(2)]
        assert not await stranger.is_let_in()
        mechanism = ScramMechanism.SHA_256
        assert (
            await alice.authenticate(mechanism.sasl_name, ScramClient(mechanism, "alice", "secret"))
        ).error_code == 0
        assert await alice.is_let_in()


async def test_a_listener_with_tls_comes_and_goes_with_its_key_store(
    autojump_clock: trio.testing.MockClock, tmp_path: Path
) -> None:
    key_store = tmp_path / "outside.pem"
    key_store.write_text(broker().key_store)
    own: dict[str, str | None] = {
        "listener_name_outside_ssl_keystore_type": "PEM",
        "listener_name_outside_ssl_keystore_location": str(key_store),
    }
    protocols = {"listeners": BOTH, "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,OUTSIDE:SSL"}
    async with running(1) as cluster:
        assert await change(cluster, **protocols) == ErrorCode.INVALID_REQUEST  # it has no certificate to show
        assert await change(cluster, **protocols, **own) == 0
        await known_outside(cluster, 1)
        connection = await cluster.network.connect("outside1", PORT)
        tls = TlsConnection(connection, client_context(*parsed(settings_of(None))), InlineWorkers(), server_name="test")
        await tls.handshake()
        assert await change(cluster, **dict.fromkeys([*protocols, *own])) == 0
        await known_outside(cluster)
        assert tls.receive_into(memoryview(bytearray(1))) == 0


@pytest.mark.parametrize(
    "settings",
    [
        {"listeners": "nonsense"},
        {"listeners": BOTH},
        {"listeners": "PLAINTEXT://broker1:9094"},
        {"listeners": "OUTSIDE://outside1:9093", "listener_security_protocol_map": MAP},
        {"listener_security_protocol_map": "OUTSIDE:PLAINTEXT"},
        {"listener_security_protocol_map": "PLAINTEXT:SSL"},
        {"advertised_listeners": "OUTSIDE://outside1:9093", "listener_security_protocol_map": MAP},
        {"listener_name_plaintext_sasl_enabled_mechanisms": "PLAIN"},
    ],
)
async def test_what_the_listeners_there_are_cannot_do_is_refused(
    autojump_clock: trio.testing.MockClock, settings: dict[str, str]
) -> None:
    async with running(1) as cluster:
        assert await change(cluster, **settings) == ErrorCode.INVALID_REQUEST
        assert set(cluster.services(1).metadata.nodes("PLAINTEXT")) == {1}


async def test_an_address_that_is_taken_leaves_the_other_listeners_as_they_are(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running(1) as cluster:
        taken = await cluster.network.listen("outside1", PORT, 1)
        assert await change(cluster, listeners=BOTH, listener_security_protocol_map=MAP) == 0
        await until(lambda: "Cannot listen at OUTSIDE" in caplog.text)
        assert not cluster.services(1).metadata.nodes("OUTSIDE")
        taken.close()
        third = ",THIRD://outside1:9094"
        assert (
            await change(cluster, listeners=BOTH + third, listener_security_protocol_map=MAP + ",THIRD:PLAINTEXT") == 0
        )
        await known_outside(cluster, 1)
        assert cluster.services(1).metadata.nodes("THIRD")[1].port == 9094
