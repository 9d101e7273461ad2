"""Three nodes with both roles whose listeners are all guarded, by TLS and SASL, with access rules.

They form a cluster, fail over, and turn away at the controllers' listener who is no node, whatever is sent there.
"""

from __future__ import annotations

import logging
import random
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.base.network import WOULD_BLOCK, Connection
from ottla.base.seams import InlineWorkers
from ottla.base.tls import TlsConnection
from ottla.broker.auth.sasl_client import authenticate
from ottla.broker.server import StartError
from ottla.controller.quorum.envelope import enveloped
from ottla.controller.quorum.snapshot_records import credential_record
from ottla.handlers.controller.table import CONTROLLER_HANDLERS
from ottla.replication.broker_client import BrokerClient, PeerUnavailableError, SecuredConnection
from ottla.security.acl import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from ottla.security.authorizer_settings import STANDARD_AUTHORIZER
from ottla.security.plain import PlainClient
from ottla.security.principal import USER, Principal
from ottla.security.scram import ScramMechanism, new_credential
from ottla.security.scram_exchange import ScramClient
from ottla.security.tls_context import client_context
from ottla.wire.api_keys import ApiKey
from ottla.wire.error_codes import error_finder
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.registry import request_class

from ...helpers.memory_broker import frame
from ...security.helpers.certificates import broker as certificate
from ...security.helpers.certificates import client as client_certificate
from ...security.helpers.certificates import parsed, settings_of
from ..helpers.controller_world import ControllerWorld, until

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_ALICE, _ADMIN, _NODE = "alice", "admin", "node"
_FRAME_LIMIT = 524_288
"""sasl.server.max.receive.size."""


class GuardedWorld(ControllerWorld):
    """Clients come by SCRAM. ``controllers_by`` and ``brokers_by`` are the protocols of the listeners of nodes.

    ``node`` and ``admin`` are super users, ``alice`` is none. By TLS a client is whom its certificate names.
    """

    def __init__(self, nursery: trio.Nursery, controllers_by: str, brokers_by: str) -> None:
        super().__init__(nursery, dict.fromkeys((1, 2, 3), "broker,controller"))
        self.controllers_by, self.brokers_by = controllers_by, brokers_by
        self.credentials = [
            credential_record(name, ScramMechanism.SHA_256, new_credential(ScramMechanism.SHA_256, f"{name}-secret"))
            for name in (_ALICE, _ADMIN, _NODE)
        ]

    def properties(self, node_id: int, **own: str) -> dict[str, str]:
        host = f"node{node_id}"
        protocols = f"CLIENTS:SASL_PLAINTEXT,INSIDE:{self.brokers_by},CONTROLLER:{self.controllers_by}"
        known = " ".join(f'user_{name}="{name}-secret"' for name in (_ALICE, _ADMIN, _NODE))
        return {
            **super().properties(node_id),
            "listeners": f"CLIENTS://{host}:9092,INSIDE://{host}:9094,CONTROLLER://{host}:9093",
            "advertised.listeners": f"CLIENTS://{host}:9092,INSIDE://{host}:9094",
            "listener.security.protocol.map": protocols,
            "inter.broker.listener.name": "INSIDE",
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:admin;User:node;User:CN=node",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
            "listener.name.inside.scram-sha-256.sasl.jaas.config": f'{_SCRAM} username="node" password="node-secret";',
            "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.controller.plain.sasl.jaas.config": (
                f'{_PLAIN} username="node" password="node-secret" {known};'
            ),
            **settings_of(certificate("node", (host,)), ssl_client_auth="required"),
            **{name.replace("_", "."): value for name, value in own.items()},
        }

    def make_client(self, node_id: int) -> BrokerClient:
        return self.client(_ADMIN, node_id, 9092)

    def client(self, name: str, node_id: int, port: int) -> BrokerClient:
        """Of a user, at the clients' or the controllers' listener."""
        is_plain = port == 9093
        protocol = self.controllers_by if is_plain else "SASL_PLAINTEXT"

        async def secure(connection: Connection, host: str) -> SecuredConnection:
            if protocol in ("SSL", "SASL_SSL"):
                context = client_context(*parsed(settings_of(client_certificate(name))))
                tls = TlsConnection(connection, context, InlineWorkers(), server_name=host)
                await tls.handshake()
                connection = tls
            if protocol != "SSL":
                password = f"{name}-secret"
                scram = ScramClient(ScramMechanism.SHA_256, name, password)
                await authenticate(
                    connection,
                    "PLAIN" if is_plain else "SCRAM-SHA-256",
                    PlainClient(name, password) if is_plain else scram,
                )
            return SecuredConnection(connection)

        return BrokerClient(self.network, f"node{node_id}", port, name, timeout=20, secure=secure)

    def controller_client(self, name: str, node_id: int) -> BrokerClient:
        return self.client(name, node_id, 9093)

    async def grant(self, operation: Operation) -> None:
        """Give alice a right on the cluster, and wait until every node knows it."""
        creation = AclCreation(
            resource_type=ResourceType.CLUSTER,
            resource_name=CLUSTER_NAME,
            resource_pattern_type=PatternType.LITERAL,
            principal=f"User:{_ALICE}" if "SASL" in self.controllers_by else f"User:CN={_ALICE}",
            host="*",
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        before = len(self.services(1).metadata.image.acl_ids)
        (result,) = (await self.ask(1, CreateAclsRequest(creations=[creation]), 3)).results
        assert result.error_code == 0, result.error_message
        nodes = [self.role(each).node.controller for each in self.lives]
        await until(lambda: all(len(each.committed_state.image.acl_ids) > before for each in nodes))


WAYS = {
    "TLS among controllers, SCRAM among brokers": ("SSL", "SASL_PLAINTEXT"),
    "PLAIN among controllers, TLS among brokers": ("SASL_PLAINTEXT", "SSL"),
    "PLAIN and SCRAM over TLS": ("SASL_SSL", "SASL_SSL"),
}
every_way = pytest.mark.parametrize(("controllers_by", "brokers_by"), WAYS.values(), ids=WAYS)


@asynccontextmanager
async def world_of(controllers_by: str, brokers_by: str) -> AsyncIterator[GuardedWorld]:
    """Its nodes run, and have registered."""
    async with trio.open_nursery() as nursery:
        world = GuardedWorld(nursery, controllers_by, brokers_by)
        world.format()
        await world.start()
        yield world
        nursery.cancel_scope.cancel()


@every_way
async def test_they_form_a_cluster_and_fail_over(
    controllers_by: str, brokers_by: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with world_of(controllers_by, brokers_by) as world:
        await world.create(1, "t", replicas=3)
        await world.produce("t", b"a")
        killed = await world.active()
        await world.kill(killed)
        await world.produce("t", b"b")
        other = next(iter(world.lives))
        await world.create(other, "u", replicas=2)
        await world.start(killed)
        await world.in_sync(killed, "t", 3)
        await world.stop(await world.active())
        await world.produce("t", b"c")
        left = next(iter(world.lives))
        assert await world.values("t", left) == [b"a", b"b", b"c"]
    told = caplog.text
    assert "secret" not in told
    assert "uthorization" not in told and "Authentication failed" not in told, "nodes let each other in"


@every_way
async def test_who_is_no_node_is_refused(controllers_by: str, brokers_by: str, autojump_clock: MockClock) -> None:
    """At each API of controllers that takes a right to the cluster, at whichever controller; at brokers as well."""
    async with world_of(controllers_by, brokers_by) as world:
        for node_id in (1, 2, 3):
            alice = world.controller_client(_ALICE, node_id)
            for handler in CONTROLLER_HANDLERS:
                if handler.cluster_right is not None:
                    response = await alice.send(request_class(handler.api_key)(), handler.highest)
                    found = {code for code in error_finder(type(response))(response) if code}
                    # Those about users, quotas and rules have an error for each entry, and there is none.
                    assert found <= {ErrorCode.CLUSTER_AUTHORIZATION_FAILED}, handler.api_key
                    assert found or handler.api_key in _WITHOUT_AN_ERROR_OF_THEIR_OWN, handler.api_key
            alice.close()
        quorum = world.role(await world.active()).node.driver.node.quorum.log.quorum
        at_broker = world.client(_ALICE, 1, 9092)
        (result,) = (await at_broker.send(_creating("forbidden"), 7)).topics
        assert result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        at_broker.close()
        assert world.role(await world.active()).node.driver.node.quorum.log.quorum == quorum


_WITHOUT_AN_ERROR_OF_THEIR_OWN = {
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
}


def _creating(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])


@every_way
async def test_an_envelope_takes_cluster_action(
    controllers_by: str, brokers_by: str, autojump_clock: MockClock
) -> None:
    """A right to change the cluster as oneself is none to speak for others."""
    async with world_of(controllers_by, brokers_by) as world:
        await world.grant(Operation.ALTER)
        await world.grant(Operation.CREATE)
        alice = world.controller_client(_ALICE, await world.active())
        envelope = enveloped(_creating("t"), 7, "c", Principal(USER, _ADMIN), "10.1.2.3")
        refused = await alice.send(envelope, 0)
        assert (refused.error_code, refused.response_data) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
        await world.grant(Operation.CLUSTER_ACTION)
        assert (await alice.send(envelope, 0)).error_code == ErrorCode.NONE
        await until(lambda: "t" in world.services(1).metadata.image.topics)
        alice.close()


# --- bytes that no node sends -----------------------------------------------------------------------------------------


async def _receive(connection: Connection) -> int:
    """The number of bytes that came; 0 at the end."""
    buffer = memoryview(bytearray(1 << 16))
    while (received := connection.receive_into(buffer)) == WOULD_BLOCK:
        await connection.wait_readable()
    return received


async def _exchange(connection: Connection, data: bytes) -> None:
    """Send, and take what comes back until the other side has closed, or says nothing for a moment."""
    try:
        await connection.send([data])
        with trio.move_on_after(0.05):
            while await _receive(connection):
                pass
    except OSError:
        pass
    finally:
        connection.close()


def _frames() -> list[bytes]:
    """A request of each API of controllers, at each version."""
    return [
        frame(request_class(handler.api_key)(), version, 7)
        for handler in CONTROLLER_HANDLERS
        for version in range(handler.lowest, handler.highest + 1)
    ]


def _damaged(frames: Sequence[bytes], rng: random.Random, count: int) -> list[bytes]:
    """Cut short, with bytes changed, with another size, or random from the beginning."""
    found = []
    for number in range(count):
        data = bytearray(rng.choice(frames))
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(4, len(data))] = rng.randrange(256)
        if number % 4 == 1:
            data = data[: rng.randint(1, len(data))]
        if number % 4 == 2:
            data[4:] = rng.randbytes(rng.randrange(300))
        if number % 4 != 3:
            data[:4] = struct.pack(">i", max(len(data) - 4, 0))
        else:
            data[:4] = struct.pack(">i", rng.choice((-1, 0, 3, _FRAME_LIMIT + 1, 0x16030100, (1 << 31) - 1)))
        found.append(bytes(data))
    return found


async def _is_whole(world: GuardedWorld, name: str) -> None:
    """The nodes run, the quorum has a leader, and takes changes."""
    assert set(world.lives) == {1, 2, 3}
    assert not [each for each in world.lives.values() if each.over.is_set()]
    await world.create(1, name, replicas=3)
    await world.produce(name, b"a")


@every_way
async def test_malformed_frames_before_authentication(
    controllers_by: str, brokers_by: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """And behind a handshake of TLS, where that is asked for: also well-formed requests get nowhere."""
    rng = random.Random(35)
    async with world_of(controllers_by, brokers_by) as world:
        context = client_context(*parsed(settings_of(client_certificate(_ALICE))))
        frames = _frames()
        for number, data in enumerate([*_damaged(frames, rng, 300), *frames]):
            host = f"node{rng.randint(1, 3)}"
            connection: Connection = await world.network.connect(host, 9093)
            if "SSL" in controllers_by and number % 2:
                tls = TlsConnection(connection, context, InlineWorkers(), server_name=host)
                await tls.handshake()
                connection = tls
            await _exchange(connection, data)
        await _is_whole(world, "t")
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


@pytest.mark.parametrize("name", [_ALICE, _NODE])
async def test_malformed_frames_of_whom_is_known(
    name: str, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a stranger, and of one that may do all that a node may: no process ends by them."""
    caplog.set_level(logging.INFO)
    rng = random.Random(36)
    async with world_of("SASL_PLAINTEXT", "SASL_PLAINTEXT") as world:
        for data in _damaged(_frames(), rng, 400):
            connection = await world.network.connect(f"node{rng.randint(1, 3)}", 9093)
            await authenticate(connection, "PLAIN", PlainClient(name, f"{name}-secret"))
            await _exchange(connection, data)
        await _is_whole(world, "t")
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


async def test_bytes_before_authentication_are_bounded(autojump_clock: MockClock) -> None:
    """A frame that is larger than sasl.server.max.receive.size ends the connection before it is read."""
    async with world_of("SASL_PLAINTEXT", "SASL_PLAINTEXT") as world:
        connection = await world.network.connect("node1", 9093)
        await connection.send([struct.pack(">i", _FRAME_LIMIT + 1)])
        assert await connection.receive() == b""
        allowed = await world.network.connect("node1", 9093)
        await allowed.send([struct.pack(">i", _FRAME_LIMIT) + bytes(1000)])
        with trio.move_on_after(1) as waited:
            await allowed.receive()
        assert waited.cancelled_caught, "a frame of the limit is waited for"
        allowed.close()


async def test_a_node_with_another_password_has_no_part_in_the_quorum(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with world_of("SASL_PLAINTEXT", "SASL_PLAINTEXT") as world:
        await world.kill(3)
        known = world.properties(3)["listener.name.controller.plain.sasl.jaas.config"]
        wrong = known.replace('password="node-secret"', 'password="wrong"')
        server = world.make_server(3, **{"listener.name.controller.plain.sasl.jaas.config": wrong})
        with pytest.raises(StartError, match="controllers have not been reached"):
            await server.serve()
        await world.create(1, "t", replicas=2)
        await world.produce("t", b"a")
        asked = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        admin = world.controller_client(_ADMIN, await world.active())
        response: Any = await admin.send(DescribeQuorumRequest(topics=[asked]), 2)
        ends = {each.replica_id: each.log_end_offset for each in response.topics[0].partitions[0].current_voters}
        assert ends[3] < ends[1]
        admin.close()
    assert "Authentication failed" in caplog.text
    assert "wrong" not in caplog.text


async def test_a_stranger_without_a_certificate_or_password_is_not_let_in(autojump_clock: MockClock) -> None:
    for controllers_by in ("SSL", "SASL_PLAINTEXT"):
        async with world_of(controllers_by, "SASL_PLAINTEXT") as world:
            unknown = BrokerClient(world.network, "node1", 9093, "unknown", timeout=20)
            with pytest.raises(PeerUnavailableError):
                await unknown.send(_creating("t"), 7)
            unknown.close()
