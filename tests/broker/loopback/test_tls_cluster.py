"""Brokers that speak TLS among each other, each with a certificate of its own: they replicate and fail over."""

from __future__ import annotations

import datetime
import logging

import pytest
import trio
import trio.testing

from ottla.broker.server import BrokerServer, StartError
from ottla.security.tls_certificates import issue

from ...helpers.memory_cluster import MemoryCluster, running_as, until, until_true
from ...security.helpers.certificates import authority, broker, now, settings_of
from ..helpers.replicas_in_sync import check_that_broker_3_takes_no_part, is_in_sync


class TlsCluster(MemoryCluster):
    """Clients are at PLAINTEXT listeners; brokers ask each other for certificates."""

    protocol = "SSL"

    def hosts(self, broker_id: int) -> tuple[str, ...]:
        return (f"broker{broker_id}",)

    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        stores = settings_of(broker(f"broker{broker_id}", self.hosts(broker_id)), ssl_client_auth="required")
        properties = {
            "listeners": f"PLAINTEXT://broker{broker_id}:9092,INSIDE://broker{broker_id}:9093",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,INSIDE:{self.protocol}",
            "inter.broker.listener.name": "INSIDE",
            **{f"listener.name.inside.{name}": value for name, value in stores.items()},
        }
        return super().make_server(broker_id, **properties, **own_properties)


class TlsAndSaslCluster(TlsCluster):
    protocol = "SASL_SSL"

    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        jaas = f'{module} required username="broker" password="pw" user_broker="pw";'
        sasl = {"sasl.enabled.mechanisms": "PLAIN", "listener.name.inside.plain.sasl.jaas.config": jaas}
        sasl["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
        return super().make_server(broker_id, **sasl, **own_properties)


class MistakenCluster(TlsCluster):
    """Broker 3 has the certificate of another host."""

    def hosts(self, broker_id: int) -> tuple[str, ...]:
        return ("elsewhere",) if broker_id == 3 else super().hosts(broker_id)


@pytest.mark.parametrize("kind", [TlsCluster, TlsAndSaslCluster])
async def test_brokers_replicate_and_fail_over(autojump_clock: trio.testing.MockClock, kind: type[TlsCluster]) -> None:
    async with running_as(kind) as cluster:
        await cluster.start(1, 2, 3)
        await cluster.create("t", [1, 2, 3])
        assert await cluster.produce(1, "t", 0, b"one", bytes(200_000)) == 0
        assert await is_in_sync(cluster, 2, 1, 2, 3)
        refused = [server.monitor.errors for server in cluster.servers.values()]
        assert not any(refused), refused
        await cluster.stop(1)
        await until_true(lambda: is_in_sync(cluster, 2, 2, 3))
        assert await cluster.produce(2, "t", 0, b"last") == 0
        logs = [cluster.services(each).replicas.partition("t", 0).log for each in (2, 3)]
        await until(lambda: [log.log_end_offset for log in logs] == [3, 3])


async def test_a_broker_whose_certificate_names_another_host_is_not_spoken_to(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await check_that_broker_3_takes_no_part(MistakenCluster)
    assert "certificate is not valid for 'broker3'" in caplog.text


async def test_a_certificate_that_has_expired_is_refused(autojump_clock: trio.testing.MockClock) -> None:
    expired = issue(authority(), "broker", 1, now() - datetime.timedelta(days=3), hosts=("broker1",))
    properties = {
        "listeners": "SSL://broker1:9092",
        "security.inter.broker.protocol": "SSL",
        **settings_of(expired, ssl_client_auth="required"),
    }
    async with running_as(MemoryCluster) as cluster:
        with pytest.raises(StartError, match="certificate has expired"):
            await MemoryCluster.make_server(cluster, 1, **properties).serve()


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100)])
async def test_a_client_that_leaves_a_handshake_is_closed_after_ten_seconds(
    autojump_clock: trio.testing.MockClock, said: bytes
) -> None:
    async with running_as(TlsCluster) as cluster:
        await cluster.start(1)
        silent = await cluster.network.connect("broker1", 9093)
        began = trio.current_time()
        if said:
            await silent.send([said])
        with trio.fail_after(60):
            assert await silent.receive() == b""
        assert trio.current_time() - began == pytest.approx(10, abs=0.1)
