"""Brokers that show each other by SASL who they are: three of them, on a network in memory, with a listener for that."""

from __future__ import annotations

import logging
from typing import ClassVar

import pytest
import trio
import trio.testing

from ottla.base.config import Config
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.base.settings import SettingError
from ottla.broker.auth.peer_security import peer_security
from ottla.broker.listener_config import ListenerConfig
from ottla.broker.server import BrokerServer
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.store.cluster_store import ensure_paths
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import USERS, Entity
from ottla.security.scram import ScramMechanism, new_credential

from ...helpers.memory_cluster import MemoryCluster, running_as, until, until_true
from ..helpers.replicas_in_sync import check_that_broker_3_takes_no_part, is_in_sync

_PLAIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="{0}" password="{1}" user_broker="pw";'
)
_SCRAM = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{0}" password="{1}";'
_BY_MECHANISM = {"PLAIN": _PLAIN, "SCRAM-SHA-512": _SCRAM}


class SaslCluster(MemoryCluster):
    """Clients are at PLAINTEXT listeners; brokers are user ``broker`` among themselves."""

    mechanism = "PLAIN"
    passwords: ClassVar[dict[int, str]] = {}

    def make_server(self, broker_id: int, /, **own_properties: str) -> BrokerServer:
        jaas = _BY_MECHANISM[self.mechanism].format("broker", self.passwords.get(broker_id, "pw"))
        properties = {
            "listeners": f"PLAINTEXT://broker{broker_id}:9092,INSIDE://broker{broker_id}:9093",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:SASL_PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": self.mechanism,
            f"listener.name.inside.{self.mechanism.lower()}.sasl.jaas.config": jaas,
        }
        return super().make_server(broker_id, **properties, **own_properties)


class ScramCluster(SaslCluster):
    mechanism = "SCRAM-SHA-512"


class MistakenCluster(SaslCluster):
    passwords: ClassVar = {3: "wrong"}


async def add_broker_user(cluster: MemoryCluster) -> None:
    """What ``ottla users add`` does before the first broker starts."""
    session = cluster.store.session()
    await ensure_paths(session, ("/config", znodes.CONFIG_CHANGES, "/config/users"))
    credential = new_credential(ScramMechanism.SHA_512, "pw").render()
    await ConfigStore(session, SystemClock(), MetadataCache()).change(
        Entity(USERS, "broker"), lambda before: {"SCRAM-SHA-512": credential}
    )
    await session.close()


@pytest.mark.parametrize("kind", [SaslCluster, ScramCluster])
async def test_brokers_replicate_and_fail_over(autojump_clock: trio.testing.MockClock, kind: type[SaslCluster]) -> None:
    """Their sessions end every five seconds meanwhile, and nothing is seen of it."""
    async with running_as(kind, connections_max_reauth_ms="5000") as cluster:
        await add_broker_user(cluster)
        await cluster.start(1, 2, 3)
        await cluster.create("t", [1, 2, 3])
        assert await cluster.produce(1, "t", 0, b"one") == 0
        for _ in range(20):
            await trio.sleep(2)
            assert await cluster.produce(1, "t", 0, b"more") == 0
            assert await is_in_sync(cluster, 2, 1, 2, 3)
        refused = [server.monitor.errors for server in cluster.servers.values()]
        assert not any(refused), refused
        await cluster.stop(1)
        await until_true(lambda: is_in_sync(cluster, 2, 2, 3))
        assert await cluster.produce(2, "t", 0, b"last") == 0
        logs = [cluster.services(each).replicas.partition("t", 0).log for each in (2, 3)]
        await until(lambda: [log.log_end_offset for log in logs] == [22, 22])


async def test_a_broker_with_a_wrong_password_takes_no_part(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await check_that_broker_3_takes_no_part(MistakenCluster)
    assert "Authentication failed: Invalid username or password" in caplog.text
    assert "wrong" not in caplog.text


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({}, "GSSAPI (Kerberos) is not served"),
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "GSSAPI (Kerberos) is not served"),
        ({"sasl.enabled.mechanisms": "SCRAM-SHA-1"}, "SCRAM-SHA-1 is not known"),
        ({"sasl.enabled.mechanisms": ""}, "listener INSIDE needs one"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, "listener.name.inside.plain.sasl.jaas.config"),
        (
            {"sasl.enabled.mechanisms": "PLAIN", "listener.name.inside.plain.sasl.jaas.config": _SCRAM},
            "the login module of PLAIN is org.apache.kafka.common.security.plain.PlainLoginModule",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "listener.name.inside.scram-sha-256.sasl.jaas.config": "x"},
            "after the login module a control flag is expected",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "it must be among those of sasl.enabled.mechanisms",
        ),
        (
            {"sasl.enabled.mechanisms": "SCRAM-SHA-256", "sasl.server.callback.handler.class": "com.example.Handler"},
            "Java classes cannot be run here",
        ),
    ],
)
def test_settings_that_end_a_start(properties: dict[str, str], why: str) -> None:
    with pytest.raises(SettingError) as caught:
        peer_security(ListenerConfig(Config(properties), "INSIDE", "SASL_PLAINTEXT"), InlineWorkers())
    assert why in str(caught.value)
    assert "password=" not in str(caught.value)
