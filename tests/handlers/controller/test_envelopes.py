"""Requests of clients that a broker forwards in an Envelope: whose rights and quotas count, and what is refused (KIP-590)."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.controller.quorum.envelope import enveloped
from ottla.replication.broker_client import PeerUnavailableError
from ottla.security.acl import Operation, ResourceType
from ottla.security.principal import USER, Principal
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterRequest
from ottla.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from ottla.wire.messages.envelope import EnvelopeRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.schema import Message

from .helpers.controller_world import BOB, World, running

Op = Operation


def creating(*names: str, timeout_ms: int = 1000) -> CreateTopicsRequest:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=topics, timeout_ms=timeout_ms)


async def test_only_who_may_act_as_a_node_speaks_for_others(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.add_broker()
        await world.grant("bob", Op.CREATE)
        refused = await world.forward("alice", creating("t"), 7)
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert "t" not in world.server.services.metadata.image.topics
        await world.grant("alice", Op.CLUSTER_ACTION)
        (made,) = (await world.forward("alice", creating("t"), 7)).topics
        assert made.error_code == 0
        assert "t" in world.server.services.metadata.image.topics


async def test_the_rights_are_those_of_the_client(autojump_clock: MockClock) -> None:
    """Not of the broker, which may do everything; and the client's errors are in its response."""
    async with running() as world:
        await world.add_broker()
        (refused,) = (await world.forward("admin", creating("t"), 7)).topics
        assert refused.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        response = await world.forward("admin", AllocateProducerIdsRequest(broker_id=11), 0)
        assert response.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        (made,) = (await world.forward("admin", creating("t"), 7, Principal(USER, "admin"))).topics
        assert made.error_code == 0


def _changed(**changes: object) -> Callable[[EnvelopeRequest], EnvelopeRequest]:
    def change(envelope: EnvelopeRequest) -> EnvelopeRequest:
        for name, value in changes.items():
            setattr(envelope, name, value)
        return envelope

    return change


def _cut(envelope: EnvelopeRequest) -> EnvelopeRequest:
    envelope.request_data = envelope.request_data[:-3]
    return envelope


def _at_version(version: int) -> Callable[[EnvelopeRequest], EnvelopeRequest]:
    def change(envelope: EnvelopeRequest) -> EnvelopeRequest:
        data = envelope.request_data
        envelope.request_data = data[:2] + version.to_bytes(2) + data[4:]
        return envelope

    return change


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_changed(request_principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (_changed(request_principal=b"\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (_changed(request_principal=b"\0\1\5User\4bob\0\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (_changed(request_principal=b"\0\0\5User\x7fbob\0\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (_changed(client_host_address=b"12345"), ErrorCode.INVALID_REQUEST),
        (_changed(request_data=b""), ErrorCode.UNSUPPORTED_VERSION),
        (_changed(request_data=b"\x7f\x7f\0\0\0\0\0\0\0\0"), ErrorCode.UNSUPPORTED_VERSION),
        (_cut, ErrorCode.UNSUPPORTED_VERSION),
        (_at_version(0), ErrorCode.UNSUPPORTED_VERSION),
        (_at_version(99), ErrorCode.UNSUPPORTED_VERSION),
        (_changed(client_host_address=bytes(16)), ErrorCode.NONE),
    ],
    ids=[
        "no principal",
        "a principal that is cut short",
        "a principal of a later version",
        "a principal that is none",
        "an address of 5 bytes",
        "no request",
        "an API that does not exist",
        "a request that is cut short",
        "a version that is too old",
        "a version that is too new",
        "an address of IPv6",
    ],
)
async def test_an_envelope_that_cannot_be_read(
    change: Callable[[EnvelopeRequest], EnvelopeRequest], error: ErrorCode, autojump_clock: MockClock
) -> None:
    async with running() as world:
        envelope = change(enveloped(creating("t"), 7, "c", BOB, "10.1.2.3"))
        assert (await world.ask("admin", envelope)).error_code == error


@pytest.mark.parametrize(
    ("request_", "version"),
    [(DescribeClusterRequest(), 1), (MetadataRequest(), 9), (enveloped(creating("t"), 7, "c", BOB, "10.1.2.3"), 0)],
    ids=["DescribeCluster", "Metadata", "Envelope"],
)
async def test_an_api_that_is_not_forwarded(request_: Message, version: int, autojump_clock: MockClock) -> None:
    async with running() as world:
        assert (await world.forward("admin", request_, version)).error_code == ErrorCode.INVALID_REQUEST


async def test_a_standby_has_the_broker_look_for_another_controller(autojump_clock: MockClock) -> None:
    """The error is the envelope's. What Raft answers with is NOT_LEADER_OR_FOLLOWER, and stays in the response."""
    async with running(voters=3) as world:
        refused = await world.forward("admin", creating("t"), 7, Principal(USER, "admin"))
        assert (refused.error_code, refused.response_data) == (ErrorCode.NOT_CONTROLLER, None)
        asked = TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])
        request = DescribeQuorumRequest(topics=[asked])
        response = await world.forward("admin", request, 2, Principal(USER, "admin"))
        assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def _limit_changes(world: World, user: str, rate: float = 0.01) -> None:
    ops = [OpData(key="controller_mutation_rate", value=rate, remove=False)]
    entry = EntryData(entity=[EntityData(entity_type="user", entity_name=user)], ops=ops)
    (result,) = (await world.ask("admin", AlterClientQuotasRequest(entries=[entry]))).entries
    assert result.error_code == 0


@pytest.mark.parametrize(
    ("version", "error"), [(6, ErrorCode.THROTTLING_QUOTA_EXCEEDED), (5, ErrorCode.NONE)], ids=["strict", "permissive"]
)
async def test_changes_are_charged_to_the_client(version: int, error: ErrorCode, autojump_clock: MockClock) -> None:
    """Neither to the broker nor to its other clients. The client is told to wait; the broker's connection goes on (KIP-599)."""
    async with running() as world:
        await world.add_broker()
        await _limit_changes(world, "bob")
        await world.grant("bob", Op.CREATE)
        first = await world.forward("admin", creating("a"), version)
        assert [each.error_code for each in first.topics] == [0]
        second = await world.forward("admin", creating("c"), version)
        assert [each.error_code for each in second.topics] == [error]
        assert second.throttle_time_ms > 0
        other = await world.forward("admin", creating("d"), version, Principal(USER, "admin"))
        assert ([each.error_code for each in other.topics], other.throttle_time_ms) == ([0], 0)


@pytest.mark.parametrize(
    ("principal", "owner", "error"),
    [
        (BOB, None, ErrorCode.NONE),
        (Principal(USER, "bob", token_authenticated=True), None, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED),
        (BOB, "carol", ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
        (Principal(USER, "admin"), "carol", ErrorCode.NONE),
    ],
    ids=["for oneself", "by a token", "for another user", "for another user, with the right"],
)
@pytest.mark.parametrize("version", [1, 3])
async def test_delegation_tokens(
    principal: Principal, owner: str | None, error: ErrorCode, version: int, autojump_clock: MockClock
) -> None:
    if owner is not None and version < 3:
        return  # it cannot be named
    async with running() as world:
        request = CreateDelegationTokenRequest(max_lifetime_ms=-1)
        if version >= 3:
            request.owner_principal_type, request.owner_principal_name = None if owner is None else USER, owner
        response = await world.forward("admin", request, version, principal)
        assert response.error_code == error
        assert response.principal_name == (owner or principal.name)
        if version >= 3:
            assert response.token_requester_principal_name == principal.name
        assert bool(response.hmac) == (error is ErrorCode.NONE)


async def test_a_right_to_make_tokens_for_a_user(autojump_clock: MockClock) -> None:
    async with running() as world:
        await world.grant("bob", Op.CREATE_TOKENS, ResourceType.USER, "User:carol")
        request = CreateDelegationTokenRequest(
            owner_principal_type=USER, owner_principal_name="carol", max_lifetime_ms=-1
        )
        assert (await world.forward("admin", request, 3)).error_code == 0


async def test_a_large_request_is_read_by_a_worker(autojump_clock: MockClock) -> None:
    """One of a client without any right to it is refused by its beginning: the envelope's is the broker's."""
    async with running() as world:
        await world.add_broker()
        names = [f"{number:0200}" for number in range(2000)]
        response = await world.forward("admin", creating(*names), 7)
        assert {each.error_code for each in response.topics} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert len(response.topics) == len(names)
        with pytest.raises(PeerUnavailableError):
            await world.forward("alice", creating(*names), 7)


async def test_a_client_of_the_controller_itself_waits(autojump_clock: MockClock) -> None:
    """Its connection is not read for the time that it is told (KIP-219)."""
    async with running() as world:
        await world.add_broker()
        await _limit_changes(world, "alice", 1.0)
        await world.grant("alice", Op.CREATE)
        topic = CreatableTopic(name="t", num_partitions=20, replication_factor=1)
        response = await world.ask("alice", CreateTopicsRequest(topics=[topic], timeout_ms=1000), 5)
        assert (response.topics[0].error_code, response.throttle_time_ms > 1000) == (0, True)
        began = trio.current_time()
        await world.ask("alice", creating("u"), 5)
        assert trio.current_time() - began == pytest.approx(response.throttle_time_ms / 1000, abs=0.5)


async def test_no_bytes_in_an_envelope_are_a_bug(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever a broker sends has a response, and the next envelope as well."""
    rng = random.Random(4)
    async with running() as world:
        await world.add_broker()
        for _ in range(300):
            envelope = enveloped(creating("t", "u"), 7, "c", Principal(USER, "admin"), "10.1.2.3")
            fields = ("request_data", "request_principal", "client_host_address")
            for name in rng.choices(fields, (6, 2, 1), k=2):
                data = bytearray(getattr(envelope, name))
                for _ in range(rng.randint(0, 3)):
                    data[rng.randrange(len(data))] = rng.randrange(256)
                setattr(envelope, name, bytes(data[: rng.choice((len(data), rng.randint(1, len(data))))]))
            response = await world.ask("admin", envelope)
            assert response.error_code != ErrorCode.UNKNOWN_SERVER_ERROR
        assert [each.getMessage() for each in caplog.records if each.exc_info] == []
