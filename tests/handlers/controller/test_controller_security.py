"""Who gets in at a controller's listener: SASL, delegation tokens, TLS, and what happens before the access rules are known."""

from __future__ import annotations

import base64
import hashlib
import struct

import pytest
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.base.network import Connection
from ottla.base.seams import InlineWorkers
from ottla.base.tls import TlsConnection
from ottla.replication.broker_client import BrokerClient, PeerUnavailableError, SecuredConnection
from ottla.security.acl import Operation
from ottla.security.plain import PlainClient
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.security.tls_certificates import Identity
from ottla.security.tls_context import client_context
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.describe_acls import DescribeAclsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.metadata import MetadataRequest

from ...security.helpers.certificates import broker as certificate
from ...security.helpers.certificates import client as client_certificate
from ...security.helpers.certificates import parsed, settings_of
from .helpers.controller_world import HOST, PASSWORDS, PORT, SECURED, World, running

LISTED = ListPartitionReassignmentsRequest()
SHA_256 = ScramMechanism.SHA_256


async def is_let_in(client: BrokerClient) -> bool:
    """Whether the client is known; it may have no rights. Closes it."""
    try:
        response = await client.send(LISTED, 0)
    except PeerUnavailableError:
        return False
    finally:
        client.close()
    assert response.error_code in (ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return True


async def test_a_password_is_asked_for(autojump_clock: MockClock) -> None:
    async with running() as world:
        assert await is_let_in(world.connected("PLAIN", PlainClient("alice", PASSWORDS["alice"])))
        assert not await is_let_in(world.connected("PLAIN", PlainClient("alice", "wrong")))
        assert not await is_let_in(world.connected("PLAIN", PlainClient("nobody", "wrong")))
        assert not await is_let_in(world.plain_client())


async def test_users_of_scram_are_those_of_the_metadata_log(autojump_clock: MockClock) -> None:
    """From the moment on that the change of them is answered."""
    async with running() as world:
        secret = hashlib.pbkdf2_hmac("sha256", b"carol-secret", b"salt", 4096)
        added = ScramCredentialUpsertion(
            name="carol", mechanism=1, iterations=4096, salt=b"salt", salted_password=secret
        )
        assert not await is_let_in(world.connected(SHA_256.sasl_name, ScramClient(SHA_256, "carol", "carol-secret")))
        (result,) = (await world.ask("admin", AlterUserScramCredentialsRequest(upsertions=[added]))).results
        assert (result.error_code, result.error_message) == (0, None)
        assert await is_let_in(world.connected(SHA_256.sasl_name, ScramClient(SHA_256, "carol", "carol-secret")))
        assert not await is_let_in(world.connected(SHA_256.sasl_name, ScramClient(SHA_256, "carol", "wrong")))
        removed = ScramCredentialDeletion(name="carol", mechanism=1)
        await world.ask("admin", AlterUserScramCredentialsRequest(deletions=[removed]))
        assert not await is_let_in(world.connected(SHA_256.sasl_name, ScramClient(SHA_256, "carol", "carol-secret")))


async def test_a_delegation_token_stands_for_its_owner(autojump_clock: MockClock) -> None:
    """But for the right to ask for tokens."""
    async with running() as world:
        await world.grant("alice", Operation.DESCRIBE)
        token = await world.ask("alice", CreateDelegationTokenRequest(max_lifetime_ms=-1))
        assert token.error_code == 0
        password = base64.b64encode(token.hmac).decode()

        def client() -> BrokerClient:
            return world.connected(SHA_256.sasl_name, ScramClient(SHA_256, token.token_id, password, is_token=True))

        by_token = client()
        assert (await by_token.send(LISTED, 0)).error_code == ErrorCode.NONE
        refused = await by_token.send(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        refused = await by_token.send(ExpireDelegationTokenRequest(hmac=token.hmac), 2)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        by_token.close()
        ended = await world.ask("alice", ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1))
        assert ended.error_code == 0
        assert not await is_let_in(client())


async def test_who_is_not_known_gets_no_tokens(autojump_clock: MockClock) -> None:
    async with running({"delegation.token.secret.key": "secret"}, "PLAINTEXT") as world:
        client = world.plain_client()
        response = await client.send(CreateDelegationTokenRequest(max_lifetime_ms=-1), 3)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        client.close()


@pytest.mark.parametrize("size", [(1 << 30), (1 << 20), -1], ids=["1 GiB", "1 MiB", "a negative size"])
async def test_a_frame_is_small_before_its_client_is_known(size: int, autojump_clock: MockClock) -> None:
    async with running() as world:
        connection = await world.network.connect(HOST, PORT)
        await connection.send([struct.pack(">i", size)])
        assert await connection.receive() == b""


async def test_an_api_of_brokers_ends_the_connection(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.ask("alice", LISTED)
        with pytest.raises(PeerUnavailableError):
            await world.client("alice").send(MetadataRequest(), 9)


def over_tls(world: World, identity: Identity | None) -> BrokerClient:
    context = client_context(*parsed(settings_of(identity)))

    async def secure(connection: Connection, host: str) -> SecuredConnection:
        tls = TlsConnection(connection, context, InlineWorkers(), server_name=host)
        await tls.handshake()
        return SecuredConnection(tls)

    return BrokerClient(world.network, HOST, PORT, "test", timeout=20, secure=secure)


async def test_a_client_is_known_by_its_certificate(autojump_clock: MockClock) -> None:
    properties = {
        **settings_of(certificate(hosts=(HOST,))),
        "authorizer.class.name": SECURED["authorizer.class.name"],
        "ssl.client.auth": "required",
        "super.users": "User:CN=alice",
    }
    async with running(properties, "SSL") as world:
        known = over_tls(world, client_certificate("alice"))
        assert (await known.send(LISTED, 0)).error_code == ErrorCode.NONE
        known.close()
        other = over_tls(world, client_certificate("bob"))
        assert (await other.send(LISTED, 0)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        other.close()
        unknown = over_tls(world, None)
        with pytest.raises(PeerUnavailableError):
            await unknown.send(LISTED, 0)


async def test_before_the_rules_are_known_only_super_users_are_let_in(autojump_clock: MockClock) -> None:
    """Even where everybody may do everything that no rule is about (KAFKA-13649). Others are told to come again."""
    async with running({**SECURED, "allow.everyone.if.no.acl.found": "true"}, voters=3) as world:
        for request, version in ((LISTED, 0), (DescribeAclsRequest(), 3)):
            response = await world.ask("alice", request, version)
            assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert (await world.ask("admin", LISTED)).error_code == ErrorCode.NOT_CONTROLLER
        assert (await world.ask("admin", DescribeClusterRequest(endpoint_type=2))).error_code != ErrorCode.NONE
    async with running({**SECURED, "allow.everyone.if.no.acl.found": "true"}) as world:
        assert (await world.ask("alice", LISTED)).error_code == ErrorCode.NONE


async def test_rules_are_known_again_after_a_restart(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.grant("alice", Operation.DESCRIBE)
        await world.restart()
        assert (await world.ask("alice", LISTED)).error_code == ErrorCode.NONE
        assert (await world.ask("bob", LISTED)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_controllers_authenticate_at_each_other(autojump_clock: MockClock) -> None:
    """By the mechanism of ``sasl.mechanism.controller.protocol``, as the super user that their file names."""
    async with running(voters=3, starts=3) as world:
        await world.quorum.active()
        servers = world.quorum.servers.values()
        await world.until(lambda: all(len(each.services.metadata.image.quorum_controllers) == 3 for each in servers))
