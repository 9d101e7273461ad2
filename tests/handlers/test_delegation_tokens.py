"""Delegation tokens asked for over SASL: created, seen, renewed, ended, and used to log in; a broker in memory."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.security.acl import AclBinding, AclEntry, Operation, Permission, ResourcePattern, ResourceType
from ottla.security.plain import PlainClient
from ottla.security.scram import ScramMechanism
from ottla.security.scram_exchange import ScramClient
from ottla.wire.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from ottla.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from ottla.wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ottla.wire.messages.renew_delegation_token import RenewDelegationTokenRequest

from ..broker.helpers.sasl_clients import LISTENER, Client, connected
from ..helpers.memory_cluster import MemoryCluster
from ..helpers.zookeeper_broker import QUORUM, ZOOKEEPER, on_both_kinds, running_one

__all__ = ["on_both_kinds"]

DAY_MS = 24 * 3600 * 1000
SECRET = {"delegation.token.secret.key": "planted"}
SASL = {**LISTENER, "inter.broker.listener.name": "SASL"}


Running = Callable[..., AbstractAsyncContextManager[MemoryCluster]]
"""(**properties) -> a cluster of one broker, with a listener for SASL and a secret."""


@pytest.fixture
def running(cluster_kind: str) -> Running:
    return lambda **properties: running_one(cluster_kind, **{**SASL, **SECRET, **properties})


async def logged_in(cluster: MemoryCluster, name: str) -> Client:
    client = await connected(cluster)
    response = await client.authenticate("PLAIN", PlainClient(name, {"alice": "secret", "bob": "other"}[name]))
    assert response.error_code == ErrorCode.NONE
    return client


async def created(
    client: Client, *renewers: str, owner: str | None = None, **more: Any
) -> CreateDelegationTokenResponse:
    request = CreateDelegationTokenRequest(
        owner_principal_type="User" if owner else None,
        owner_principal_name=owner,
        renewers=[CreatableRenewers(principal_type="User", principal_name=name) for name in renewers],
        max_lifetime_ms=more.pop("max_lifetime_ms", -1),
    )
    response: CreateDelegationTokenResponse = await client.ask(request, 3)
    return response


async def seen(client: Client, *owners: str) -> list[tuple[str, str]]:
    """(token id, owner) of what the client is shown, of all owners where none is named."""
    named = [DescribeDelegationTokenOwner(principal_type="User", principal_name=owner) for owner in owners]
    response: DescribeDelegationTokenResponse = await client.ask(
        DescribeDelegationTokenRequest(owners=named or None), 3
    )
    assert response.error_code == ErrorCode.NONE
    return [(token.token_id, token.principal_name) for token in response.tokens]


async def test_a_token_is_made_seen_renewed_and_ended(
    running: Running, cluster_kind: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        alice, bob = await logged_in(cluster, "alice"), await logged_in(cluster, "bob")
        token = await created(alice, "bob")
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "alice", "alice")
        assert token.expiry_timestamp_ms == token.issue_timestamp_ms + DAY_MS
        assert token.max_timestamp_ms == token.issue_timestamp_ms + 7 * DAY_MS
        assert await seen(alice) == await seen(bob) == await seen(alice, "bob") == [(token.token_id, "alice")]
        assert await seen(alice, "carol") == []
        renewed = await bob.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=5 * DAY_MS), 2)
        lifetime_ms = DAY_MS if cluster_kind == QUORUM else 5 * DAY_MS  # a quorum gives no more than a new token has
        assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, token.issue_timestamp_ms + lifetime_ms)
        ended = await alice.ask(ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1), 2)
        assert ended.error_code == 0
        assert await seen(alice) == []
        for request in (
            RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1),
            ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1),
        ):
            response = await alice.ask(request, 2)
            no_time = 0 if cluster_kind == QUORUM else -1
            found = response.error_code, response.expiry_timestamp_ms
            assert found == (ErrorCode.DELEGATION_TOKEN_NOT_FOUND, no_time)


async def test_no_owners_named_are_all_and_an_empty_list_is_none(
    running: Running, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        alice = await logged_in(cluster, "alice")
        await created(alice)
        response = await alice.ask(DescribeDelegationTokenRequest(owners=[]), 3)
        assert (response.error_code, response.tokens) == (0, [])


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
async def test_whoever_has_a_token_is_its_owner_but_asks_for_no_other(
    running: Running, mechanism: ScramMechanism, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        token = await created(await logged_in(cluster, "alice"), max_lifetime_ms=10_000)
        worker = await connected(cluster)
        password = base64.b64encode(token.hmac).decode()
        shown = ScramClient(mechanism, token.token_id, password, is_token=True)
        response = await worker.authenticate(mechanism.sasl_name, shown)
        assert (response.error_code, response.session_lifetime_ms) == (0, 10_000)
        refused = await created(worker)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        described = await worker.ask(DescribeDelegationTokenRequest(owners=None), 3)
        assert described.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


async def test_a_wrong_password_and_a_user_of_that_name_are_no_token(
    running: Running, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        token = await created(await logged_in(cluster, "alice"))
        password = base64.b64encode(token.hmac).decode()
        for shown in (
            ScramClient(ScramMechanism.SHA_256, token.token_id, password[:-4] + "AAA=", is_token=True),
            ScramClient(ScramMechanism.SHA_256, token.token_id, password),
            ScramClient(ScramMechanism.SHA_256, "alice", "secret", is_token=True),
        ):
            response = await (await connected(cluster)).authenticate("SCRAM-SHA-256", shown)
            assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("cluster_kind", [ZOOKEEPER], indirect=True)
async def test_for_tokens_of_other_users_one_needs_a_right(
    running: Running, autojump_clock: trio.testing.MockClock
) -> None:
    authorizer = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:carol"}
    async with running(**authorizer) as cluster:
        alice, bob = await logged_in(cluster, "alice"), await logged_in(cluster, "bob")
        for_bob = await created(alice, owner="bob")
        assert for_bob.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (for_bob.principal_name, for_bob.token_requester_principal_name) == ("bob", "alice")
        assert (for_bob.issue_timestamp_ms, for_bob.expiry_timestamp_ms, for_bob.token_id) == (-1, -1, "")
        token = await created(alice)
        assert (await seen(alice), await seen(bob)) == ([(token.token_id, "alice")], [])
        acls = cluster.services(1).cluster
        may_create = AclEntry("User:alice", Permission.ALLOW, "*", Operation.CREATE_TOKENS)
        may_see = AclEntry("User:bob", Permission.ALLOW, "*", Operation.DESCRIBE)
        bindings = [
            AclBinding(ResourcePattern(ResourceType.USER, "User:bob"), may_create),
            AclBinding(ResourcePattern(ResourceType.DELEGATION_TOKEN, token.token_id), may_see),
        ]
        assert await acls.create_acls(bindings) == [None, None]
        assert await seen(bob) == [(token.token_id, "alice")]
        assert (await created(alice, owner="bob")).error_code == 0


async def test_what_is_refused(running: Running, autojump_clock: trio.testing.MockClock) -> None:
    async with running() as cluster:
        alice, bob = await logged_in(cluster, "alice"), await logged_in(cluster, "bob")
        token = await created(alice)
        response = await bob.ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), 2)
        assert response.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        group = CreateDelegationTokenRequest(
            renewers=[CreatableRenewers(principal_type="Group", principal_name="g")], max_lifetime_ms=-1
        )
        assert (await alice.ask(group, 2)).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE


async def test_without_an_authorizer_every_user_sees_and_makes_all_tokens(
    running: Running, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        alice, bob = await logged_in(cluster, "alice"), await logged_in(cluster, "bob")
        token = await created(alice, owner="bob")
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "bob", "alice")
        assert await seen(bob) == await seen(alice) == [(token.token_id, "bob")]


async def test_without_a_secret_there_are_no_tokens(running: Running, autojump_clock: trio.testing.MockClock) -> None:
    async with running(**{"delegation.token.secret.key": ""}) as cluster:
        alice = await logged_in(cluster, "alice")
        assert (await created(alice)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        for request in (
            RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=-1),
            ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=-1),
            DescribeDelegationTokenRequest(owners=None),
        ):
            assert (await alice.ask(request, 2)).error_code == ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


async def test_tokens_are_not_asked_for_on_plaintext(running: Running, autojump_clock: trio.testing.MockClock) -> None:
    listener = {"listener.security.protocol.map": "SASL:PLAINTEXT", "sasl.enabled.mechanisms": ""}
    async with running(**listener) as cluster:
        stranger = await connected(cluster)
        refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        response = await created(stranger)
        assert (response.error_code, response.principal_name, bytes(response.hmac)) == (refused, "ANONYMOUS", b"")
        for request in (
            RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=-1),
            ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=-1),
            DescribeDelegationTokenRequest(owners=None),
        ):
            assert (await stranger.ask(request, 2)).error_code == refused


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_every_version_is_answered(
    running: Running, version: int, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as cluster:
        alice = await logged_in(cluster, "alice")
        token = await alice.ask(CreateDelegationTokenRequest(renewers=[], max_lifetime_ms=-1), version)
        assert (token.error_code, token.principal_name) == (0, "alice")
        assert token.token_requester_principal_name == ("alice" if version >= 3 else "")
        described = await alice.ask(DescribeDelegationTokenRequest(owners=None), version)
        assert [(each.token_id, each.hmac) for each in described.tokens] == [(token.token_id, token.hmac)]
        assert described.tokens[0].token_requester_principal_name == ("alice" if version >= 3 else "")
        for request in (
            RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1),
            ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1),
        ):
            assert (await alice.ask(request, min(version, 2))).error_code == 0
