"""Describe- and AlterUserScramCredentials (KIP-554): Kafka's rules and words, and that a user's quotas stay (ZkAdminManager)."""

from __future__ import annotations

import pytest
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.security.entities import USERS, Entity
from ottla.security.scram import ScramMechanism, new_credential
from ottla.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ottla.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

from ..helpers.memory_cluster import MemoryCluster, running
from ..helpers.zookeeper_broker import QUORUM, on_both_kinds, running_one

__all__ = ["on_both_kinds"]

SHA_256, SHA_512 = ScramMechanism.SHA_256, ScramMechanism.SHA_512
SALT = b"salt"
Outcome = dict[str, tuple[ErrorCode, str | None]]


def setting(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, password: str = "pw"
) -> ScramCredentialUpsertion:
    salted = ScramMechanism.SHA_256.salted_password(password, SALT, 1) if password else b""
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=SALT, salted_password=salted
    )


def removal(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


async def alter(
    cluster: MemoryCluster, *changes: ScramCredentialUpsertion | ScramCredentialDeletion, broker_id: int = 1
) -> Outcome:
    request = AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    results = (await cluster.ask(broker_id, request, 0)).results
    assert len({result.user for result in results}) == len(results)
    return {result.user: (ErrorCode(result.error_code), result.error_message) for result in results}


async def describe(cluster: MemoryCluster, *names: str) -> DescribeUserScramCredentialsResponse:
    users = [UserName(name=name) for name in names] or None
    answer: DescribeUserScramCredentialsResponse = await cluster.ask(
        1, DescribeUserScramCredentialsRequest(users=users), 0
    )
    assert answer.error_code == ErrorCode.NONE
    return answer


async def users(cluster: MemoryCluster) -> list[tuple[str, list[tuple[int, int]]]]:
    return [
        (result.user, [(info.mechanism, info.iterations) for info in result.credential_infos])
        for result in (await describe(cluster)).results
    ]


async def test_credentials_are_set_listed_and_removed(
    cluster_kind: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with running_one(cluster_kind) as cluster:
        assert await users(cluster) == []
        done = (ErrorCode.NONE, None if cluster_kind == QUORUM else "")
        assert await alter(cluster, setting("b c*~"), setting("alice")) == {"b c*~": done, "alice": done}
        assert await alter(cluster, setting("b c*~", SHA_512, 8192)) == {"b c*~": done}
        assert await users(cluster) == [("alice", [(1, 4096)]), ("b c*~", [(1, 4096), (2, 8192)])]
        assert await alter(cluster, setting("alice", iterations=16384), removal("b c*~", SHA_512)) == {
            "b c*~": done,
            "alice": done,
        }
        assert await users(cluster) == [("alice", [(1, 16384)]), ("b c*~", [(1, 4096)])]
        assert await alter(cluster, removal("alice")) == {"alice": done}
        assert await alter(cluster, setting("alice", SHA_512)) == {"alice": done}
        assert await users(cluster) == [("alice", [(2, 4096)]), ("b c*~", [(1, 4096)])]


async def test_both_credentials_of_a_user_in_one_request(
    cluster_kind: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A quorum changes one of a user at a time, as Kafka's does."""
    async with running_one(cluster_kind) as cluster:
        await alter(cluster, setting("bob"))
        expected = ErrorCode.DUPLICATE_RESOURCE if cluster_kind == QUORUM else ErrorCode.NONE
        for name, changes in (
            ("alice", (setting("alice"), setting("alice", SHA_512))),
            ("bob", (removal("bob"), setting("bob", SHA_512))),
        ):
            assert (await alter(cluster, *changes))[name][0] == expected


async def test_what_is_kept_is_the_credential_of_the_password(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        configs = cluster.services(1).cluster.configs
        await configs.change(Entity(USERS, "alice"), lambda before: {"producer_byte_rate": "1024"})
        salted = SHA_512.salted_password("pencil", SALT, 5000)
        change = ScramCredentialUpsertion(name="alice", mechanism=2, iterations=5000, salt=SALT, salted_password=salted)
        await alter(cluster, change)
        metadata = cluster.services(1).metadata
        assert metadata.image.quotas == {Entity(USERS, "alice"): {"producer_byte_rate": 1024}}
        assert metadata.image.scram == {"alice": {SHA_512: new_credential(SHA_512, "pencil", 5000, SALT)}}
        await alter(cluster, removal("alice", SHA_512))
        assert metadata.image.quotas == {Entity(USERS, "alice"): {"producer_byte_rate": 1024}}
        assert metadata.image.scram == {}
        assert await users(cluster) == []


async def test_what_is_refused(cluster_kind: str, autojump_clock: trio.testing.MockClock) -> None:
    async with running_one(cluster_kind) as cluster:
        await alter(cluster, setting("there"))
        changes = [
            setting(""),
            setting("few", iterations=4095),
            setting("many", iterations=16385),
            setting("unknown", mechanism=3),
            removal("no mechanism", mechanism=0),
            setting("empty", password=""),
            setting("twice"),
            setting("twice"),
            removal("there"),
            setting("there"),
            setting("half"),
            removal("half", SHA_512),
            removal("nobody"),
            setting("fine"),
        ]
        unacceptable, twice = (
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            "A user credential cannot be altered twice in the same request",
        )
        missing = (ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
        unknown = (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
        done = (ErrorCode.NONE, None if cluster_kind == QUORUM else "")
        assert await alter(cluster, *changes) == {
            "": (unacceptable, "Username must not be empty"),
            "few": (unacceptable, "Too few iterations"),
            "many": (unacceptable, "Too many iterations"),
            "unknown": unknown,
            "no mechanism": unknown,
            "empty": done if cluster_kind == QUORUM else (unacceptable, "Empty salt or salted password"),
            "twice": (ErrorCode.DUPLICATE_RESOURCE, twice),
            "there": (ErrorCode.DUPLICATE_RESOURCE, twice),
            "half": missing,
            "nobody": missing,
            "fine": done,
        }
        made = ["empty"] if cluster_kind == QUORUM else []
        assert [name for name, _ in await users(cluster)] == [*made, "fine", "there"]


async def test_users_who_are_named(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await alter(cluster, setting("alice"), setting("bob"))
        configs = cluster.services(1).cluster.configs
        await configs.change(Entity(USERS, "quota"), lambda before: {"producer_byte_rate": "1024"})
        await configs.change(Entity(USERS, "damaged"), lambda before: {"SCRAM-SHA-256": "salt=hidden"})
        answer = await describe(cluster, "alice", "bob", "bob", "", "nobody", "quota", "damaged")
        missing = "Attempt to describe a user credential that does not exist: "
        assert [(result.user, result.error_code, result.error_message) for result in answer.results] == [
            ("alice", ErrorCode.NONE, ""),
            (
                "bob",
                ErrorCode.DUPLICATE_RESOURCE,
                "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
            ),
            ("", ErrorCode.RESOURCE_NOT_FOUND, "Username must not be empty"),
            ("nobody", ErrorCode.RESOURCE_NOT_FOUND, missing + "nobody"),
            ("quota", ErrorCode.RESOURCE_NOT_FOUND, missing + "quota"),
            (
                "damaged",
                ErrorCode.UNKNOWN_SERVER_ERROR,
                "a SCRAM credential has salt, stored_key, server_key and iterations",
            ),
        ]
        assert [result.user for result in (await describe(cluster)).results] == ["alice", "bob", "damaged"]


async def test_the_controller_sets_and_every_broker_knows(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        controller = cluster.controller_id()
        other = 3 - controller
        refused = await alter(cluster, setting("alice"), removal("bob"), broker_id=other)
        assert {code for code, _ in refused.values()} == {ErrorCode.NOT_CONTROLLER}
        assert refused.keys() == {"alice", "bob"}
        await alter(cluster, setting("alice"), broker_id=controller)
        with trio.fail_after(20):
            while "alice" not in cluster.services(other).metadata.image.scram:
                await trio.sleep(0.01)


@pytest.mark.parametrize("name", ["ä", "a,b=c", "<default>", "%41", "a/clients/b"])
async def test_names_that_are_not_those_of_nodes(autojump_clock: trio.testing.MockClock, name: str) -> None:
    async with running(1) as cluster:
        await alter(cluster, setting(name))
        assert await users(cluster) == [(name, [(1, 4096)])]
        assert (await describe(cluster, name)).results[0].error_code == ErrorCode.NONE
