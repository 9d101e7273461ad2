"""Delegation tokens of others: who may see them, and who may make them (KIP-373); a broker in memory."""

from __future__ import annotations

import trio.testing

from ottla.base.errors import ErrorCode
from ottla.security.acl import AclBinding, AclEntry, Operation, Permission, ResourcePattern, ResourceType
from ottla.security.authorizer_settings import ACL_AUTHORIZER

from ..helpers.memory_cluster import MemoryCluster
from ..helpers.memory_cluster import running as running_cluster
from .test_delegation_tokens import SASL, SECRET, created, logged_in, seen

AUTHORIZED = {**SASL, **SECRET, "authorizer.class.name": ACL_AUTHORIZER, "super.users": "User:admin"}


async def allow_bob(cluster: MemoryCluster, resource_type: ResourceType, name: str, operation: Operation) -> None:
    acls = cluster.services(1).cluster
    rule = AclBinding(ResourcePattern(resource_type, name), AclEntry("User:bob", Permission.ALLOW, "*", operation))
    assert await acls.create_acls([rule]) == [None]


async def test_a_token_for_another_is_made_with_a_right_to_that_user(autojump_clock: trio.testing.MockClock) -> None:
    async with running_cluster(1, **AUTHORIZED) as cluster:
        bob = await logged_in(cluster, "bob")
        refused = await created(bob, owner="alice")
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        await allow_bob(cluster, ResourceType.USER, "User:alice", Operation.CREATE_TOKENS)
        token = await created(bob, owner="alice")
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "alice", "bob")
        assert (await created(bob, owner="carol")).error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


async def test_tokens_of_others_are_seen_with_a_right_to_them_or_to_their_owner(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running_cluster(1, **AUTHORIZED) as cluster:
        alice, bob = await logged_in(cluster, "alice"), await logged_in(cluster, "bob")
        first, second = (await created(alice)).token_id, (await created(alice)).token_id
        assert await seen(bob) == []
        await allow_bob(cluster, ResourceType.DELEGATION_TOKEN, first, Operation.DESCRIBE)
        assert await seen(bob) == [(first, "alice")]
        await allow_bob(cluster, ResourceType.USER, "User:alice", Operation.DESCRIBE_TOKENS)
        assert sorted(await seen(bob)) == sorted([(first, "alice"), (second, "alice")])
