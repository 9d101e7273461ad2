"""One controller on a network in memory, which keeps to access rules, and clients of it that have authenticated by PLAIN.

``admin`` is a super user, ``alice`` and ``bob`` are not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from ottla.base.memory_network import MemoryNetwork
from ottla.base.network import Connection
from ottla.base.seams import SimulatedClock
from ottla.broker.auth.sasl_client import authenticate
from ottla.controller.quorum.active.request_source import RequestSource
from ottla.controller.quorum.envelope import enveloped
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.broker_client import BrokerClient, SecuredConnection
from ottla.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.security.plain import PlainClient
from ottla.security.principal import USER, Principal
from ottla.security.sasl import SaslClient
from ottla.tests.controller.quorum.active.helpers.controller_server import (
    LEVELS,
    LISTENER,
    ControllerQuorum,
    ControllerServer,
    until,
)
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode
from ottla.wire.headers import decode_response_header
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, Feature
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.envelope import EnvelopeResponse
from ottla.wire.registry import response_class
from ottla.wire.schema import Message

CLUSTER_ID = "3Db5QLSqSZieL3rJBUUegA"
HOST, PORT = "controller1", 9093
BROKER_ID = 11
BOB = Principal(USER, "bob")
PASSWORDS = {name: f"{name}-secret" for name in ("admin", "alice", "bob")}
SECURED = {
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:admin",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "delegation.token.secret.key": "secret of all nodes",
    f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{password}"' for name, password in PASSWORDS.items())
        + ' username="admin" password="admin-secret";'
    ),
}


class World:
    """``server`` runs at HOST and PORT."""

    def __init__(self, network: MemoryNetwork, quorum: ControllerQuorum, nursery: trio.Nursery) -> None:
        self.network = network
        self._nursery = nursery
        self.quorum = quorum
        self._clients: dict[str, BrokerClient] = {}

    @property
    def server(self) -> ControllerServer:
        return self.quorum.servers[1]

    def client(self, name: str) -> BrokerClient:
        """Of a user by PLAIN."""
        if name not in self._clients:
            self._clients[name] = self.connected("PLAIN", PlainClient(name, PASSWORDS[name]))
        return self._clients[name]

    def plain_client(self) -> BrokerClient:
        """One that does not authenticate."""
        return BrokerClient(self.network, HOST, PORT, "test", timeout=20)

    async def until(self, condition: Callable[[], bool]) -> None:
        await until(condition)

    async def settle(self) -> None:
        """Wait until the controller is active, knows its access rules, and is registered."""
        await self.quorum.active()
        metadata = self.server.services.metadata
        await until(lambda: metadata.is_loaded and len(metadata.image.quorum_controllers) > 0)

    async def restart(self) -> None:
        await self.server.kill()
        await self._nursery.start(self.server.live)
        await self.settle()

    def connected(self, mechanism: str, sasl: SaslClient) -> BrokerClient:
        """A client that authenticates so."""

        async def secure(connection: Connection, host: str) -> SecuredConnection:
            await authenticate(connection, mechanism, sasl)
            return SecuredConnection(connection)

        return BrokerClient(self.network, HOST, PORT, "test", timeout=20, secure=secure)

    async def ask(self, name: str, request: Message, version: int | None = None) -> Any:
        """The response to a user's request, by default at the highest version."""
        highest = self.server.services.served.by_key[request.api_key].highest
        return await self.client(name).send(request, highest if version is None else version)

    async def grant(
        self, name: str, operation: Operation, kind: ResourceType = ResourceType.CLUSTER, resource: str = CLUSTER_NAME
    ) -> None:
        creation = AclCreation(
            resource_type=kind,
            resource_name=resource,
            resource_pattern_type=PatternType.LITERAL,
            principal=f"User:{name}",
            host="*",
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        (result,) = (await self.ask("admin", CreateAclsRequest(creations=[creation]))).results
        assert result.error_code == 0, result.error_message

    async def forward(self, broker: str, request: Message, version: int, principal: Principal = BOB) -> Any:
        """The response that a broker, authenticated as a user, gets to a request of a client; or the envelope's error."""
        envelope = enveloped(request, version, "client of the broker", principal, "10.1.2.3")
        response: EnvelopeResponse = await self.ask(broker, envelope)
        if response.error_code:
            return response
        assert response.response_data is not None
        _, start = decode_response_header(response.response_data, request.api_key, version)
        return decode(response_class(ApiKey(request.api_key)), version, response.response_data[start:])

    async def add_broker(self) -> None:
        """Have an unfenced broker in the cluster."""
        features = [
            Feature(name=name, min_supported_version=0, max_supported_version=level)
            for name, level in {**LEVELS, "kraft.version": 1}.items()
        ]
        registration = BrokerRegistrationRequest(
            broker_id=BROKER_ID,
            cluster_id=CLUSTER_ID,
            incarnation_id=b"incarnation 11 a",
            features=features,
            log_dirs=[b"directory of 11 "],
        )
        node = self.server.node
        epoch = (await node.ask(registration, RequestSource(4), LISTENER)).broker_epoch
        beat = BrokerHeartbeatRequest(broker_id=BROKER_ID, broker_epoch=epoch, current_metadata_offset=epoch)
        assert not (await node.ask(beat, RequestSource(1), LISTENER)).is_fenced

    async def create(self, *names: str) -> dict[str, bytes]:
        """Topics of one partition; their ids."""
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        made = (await self.ask("admin", CreateTopicsRequest(topics=topics, timeout_ms=10_000))).topics
        assert [(each.error_code, each.error_message) for each in made] == [(0, None)] * len(names)
        return {each.name: each.topic_id for each in made}


@asynccontextmanager
async def running(
    properties: Mapping[str, str] = SECURED,
    security_protocol: str = "SASL_PLAINTEXT",
    *,
    voters: int = 1,
    starts: int = 1,
    levels: Mapping[str, int] = LEVELS,
    is_registered: bool = True,
) -> AsyncIterator[World]:
    """So many of the ``voters`` run; with too few of them nothing is ever committed."""
    network = MemoryNetwork(1 << 20)
    quorum = ControllerQuorum(
        CLUSTER_ID,
        properties=properties,
        security_protocol=security_protocol,
        levels=levels,
        settings={"session_timeout_ms": 3_600_000},
    )
    for node_id in range(1, voters + 1):
        quorum.add(node_id, f"controller{node_id}", PORT, network, MemoryDisk(), "data", SimulatedClock())
    quorum.format()
    async with trio.open_nursery() as nursery:
        world = World(network, quorum, nursery)
        for node_id in range(1, starts + 1):
            await nursery.start(quorum.servers[node_id].live)
        if voters == 1 and is_registered:
            await world.settle()
        yield world
        nursery.cancel_scope.cancel()
