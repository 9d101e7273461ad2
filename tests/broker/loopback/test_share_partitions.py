"""Members of share groups at the leaders of partitions: sessions, fetches, acknowledgements, locks, and moved leaders."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.broker.metrics.share_partitions import share_metrics
from ottla.compat_tests.raw.requests import batch, produce_request
from ottla.controller.quorum.features import SHARE_VERSION
from ottla.controller.quorum.supported_features import SUPPORTED
from ottla.handlers.connection_context import ConnectionContext
from ottla.metadata.types import VersionRange
from ottla.security.acl import Operation, ResourceType
from ottla.share_coordinator.state import SharePartitionKey
from ottla.wire.codec import encode_bytes
from ottla.wire.messages import share_acknowledge, share_fetch
from ottla.wire.messages.create_acls import AclCreation, CreateAclsRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.write_txn_markers import WritableTxnMarker
from ottla.wire.records import iter_batches

from ..helpers.controller_world import ControllerWorld, until
from ..helpers.quotas import set_quota

GROUP = "g"
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
LOCK_SECONDS = 15.0
WINDOWS_S = 10.0
"""Over how long the rate of a client is at least."""
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(autouse=True)
def supported(monkeypatch: pytest.MonkeyPatch) -> None:
    """New clusters have share groups."""
    monkeypatch.setitem(SUPPORTED, SHARE_VERSION, VersionRange(0, 1))  # type: ignore[arg-type]


@asynccontextmanager
async def cluster(*node_ids: int, partitions: int = 1, **properties: str) -> AsyncIterator[ControllerWorld]:
    """Nodes that run, with a topic t whose records group g reads from the beginning on."""
    async with trio.open_nursery() as nursery:
        world = ControllerWorld(nursery, dict.fromkeys(node_ids, "broker,controller"))
        world.format()
        replicas = str(len(node_ids))
        await world.start(
            *node_ids,
            share_coordinator_state_topic_num_partitions="3",
            share_coordinator_state_topic_replication_factor=replicas,
            group_share_record_lock_duration_ms="15000",
            **properties,
        )
        await world.active()
        await world.create(node_ids[0], "t", replicas=len(node_ids), partitions=partitions)
        await configure(world, share_auto_offset_reset="earliest")
        for node_id in node_ids:
            await until(lambda node_id=node_id: "t" in world.services(node_id).metadata.image.topics)
        for number in range(partitions):
            await world.services(node_ids[0]).share_state.initialize(key(world, number), 1, -1)
        yield world
        nursery.cancel_scope.cancel()


async def configure(world: ControllerWorld, **configs: str) -> None:
    """Configs of the group, with _ for the dots."""
    changed = [AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    resource = AlterConfigsResource(resource_type=32, resource_name=GROUP, configs=changed)
    at = next(iter(world.lives))
    response = await world.ask(at, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert response.responses[0].error_code == 0, response.responses[0].error_message


def key(world: ControllerWorld, number: int = 0) -> SharePartitionKey:
    image = next(world.services(each).metadata.image for each in world.lives)
    return SharePartitionKey(GROUP, image.topics["t"].topic_id, number)


async def produce(world: ControllerWorld, at: int, count: int, number: int = 0) -> None:
    """One batch."""
    request = produce_request("t", {number: batch(*(b"%d" % value for value in range(count)))})
    response = await world.ask(at, request, 9)
    assert response.responses[0].partition_responses[0].error_code == 0


class Member:
    """A client with a connection and a session of its own."""

    def __init__(self, world: ControllerWorld, at: int = 1, member_id: str = "m1") -> None:
        self._client = world.make_client(at)
        self._topic_id = key(world).topic_id
        self.member_id = member_id
        self.epoch = 0
        self.records: list[int] = []
        """The offsets of the records that were sent with the last response."""

    def disconnect(self) -> None:
        self._client.close()

    async def ask(self, *numbers: int, acks: Any = (), version: int = 2, **fields: Any) -> Any:
        """A ShareFetch of these partitions, with acknowledgements (first, last, types) of partition 0; the whole response."""
        partitions = {number: share_fetch.FetchPartition(partition_index=number) for number in numbers}
        if acks:
            partitions.setdefault(0, share_fetch.FetchPartition(partition_index=0)).acknowledgement_batches = [
                share_fetch.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
                for first, last, types in acks
            ]
        topic = share_fetch.FetchTopic(topic_id=self._topic_id, partitions=list(partitions.values()))
        wanted = {"max_wait_ms": 100, "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500}
        request = share_fetch.ShareFetchRequest(
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=fields.pop("epoch", self.epoch),
            topics=[topic] if partitions else [],
            **{**wanted, **fields},
        )
        response = await self._client.send(request, version)
        if not response.error_code:
            self.epoch += 1
        return response

    async def fetch(self, *numbers: int, **fields: Any) -> list[tuple[int, int, int]]:
        """What was acquired of the only partition that had something: first, last, delivery count."""
        response = await self.ask(*numbers, **fields)
        assert response.error_code == 0, response.error_message
        self.records = []
        if not response.responses:
            return []
        (partition,) = response.responses[0].partitions
        assert (partition.error_code, partition.acknowledge_error_code) == (0, 0), partition
        self.records = [
            found.base_offset + index
            for found in iter_batches(partition.records)
            for index, _ in enumerate(found.records())
        ]
        return [(each.first_offset, each.last_offset, each.delivery_count) for each in partition.acquired_records]

    async def acknowledge(self, *acks: Any, version: int = 2, **fields: Any) -> int:
        """ShareAcknowledge of partition 0; the error code of the partition, or of the request."""
        batches = [
            share_acknowledge.AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=list(types))
            for first, last, types in acks
        ]
        partition = share_acknowledge.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        topic = share_acknowledge.AcknowledgeTopic(topic_id=self._topic_id, partitions=[partition])
        request = share_acknowledge.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=fields.pop("epoch", self.epoch),
            topics=[topic] if acks else [],
            **fields,
        )
        response = await self._client.send(request, version)
        if response.error_code:
            return int(response.error_code)
        self.epoch += 1
        return int(response.responses[0].partitions[0].error_code) if response.responses else 0


# --- records ----------------------------------------------------------------------------------------------------------


async def test_records_go_to_one_member_until_they_are_acknowledged(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 10)
        one, two = Member(world), Member(world, member_id="m2")
        assert await one.fetch(0) == [(0, 9, 1)]
        assert one.records == list(range(10))
        assert await two.fetch(0) == []
        assert await one.acknowledge((0, 2, [ACCEPT]), (3, 3, [RELEASE]), (4, 4, [REJECT])) == 0
        assert await two.fetch() == [(3, 3, 2)]
        assert two.records == list(range(10)), "the whole batch is sent"
        assert await two.fetch(acks=[(3, 3, [ACCEPT])]) == []
        assert (await world.services(1).share_state.summary(key(world), -1))[2:] == (3, 2)
        assert await one.acknowledge((5, 9, [1, 1, 2, 3, 0])) == 0
        assert await one.fetch() == [(7, 7, 2)]
        assert await one.acknowledge((7, 7, [ACCEPT])) == 0
        assert (await world.services(1).share_state.summary(key(world), -1))[2:] == (7, 3), (
            "the start is that of before the write"
        )


async def test_a_lock_ends_and_the_limit_archives(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await configure(world, share_delivery_count_limit="2")
        await produce(world, 1, 4)
        one = Member(world)
        assert await one.fetch(0) == [(0, 3, 1)]
        assert await one.acknowledge((0, 0, [ACCEPT])) == 0
        began = trio.current_time()
        assert await one.fetch(max_wait_ms=60_000) == [(1, 3, 2)]
        assert LOCK_SECONDS <= trio.current_time() - began < LOCK_SECONDS + 1
        assert await one.acknowledge((1, 3, [RELEASE])) == 0
        assert await one.fetch() == []
        await until(lambda: state(world).start_offset == 4)
        assert (await world.services(1).share_state.summary(key(world), -1))[2:] == (1, 3)


def state(world: ControllerWorld, at: int = 1) -> Any:
    return world.services(at).share_partitions.find(key(world)).state


async def test_a_renewed_lock_lasts(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 4)
        one, two = Member(world), Member(world, member_id="m2")
        assert await one.fetch(0) == [(0, 3, 1)]
        assert await two.fetch(0) == []
        await trio.sleep(10)
        assert await one.acknowledge((0, 1, [RENEW]), is_renew_ack=True) == 0
        await trio.sleep(6)
        assert await two.fetch() == [(2, 3, 2)]
        assert await one.acknowledge((0, 1, [ACCEPT])) == 0
        nothing = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
        response = await two.ask(acks=[(2, 2, [RENEW])], **nothing)
        (partition,) = response.responses[0].partitions
        assert (partition.acknowledge_error_code, partition.acquired_records) == (0, [])
        assert response.acquisition_lock_timeout_ms == 15_000
        response = await two.ask(acks=[(2, 2, [RENEW])], is_renew_ack=True)
        assert response.error_code == ErrorCode.INVALID_REQUEST
        await configure(world, share_renew_acknowledge_enable="false")
        assert await two.acknowledge((2, 2, [RENEW]), is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE


async def test_max_records_is_exact_in_record_limit_mode_alone(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 12)
        one = Member(world)
        assert await one.fetch(0, share_acquire_mode=1, max_records=4) == [(0, 3, 1)]
        assert await one.fetch(share_acquire_mode=1, max_records=4) == [(4, 7, 1)]
        assert await one.fetch(max_records=2) == [(8, 11, 1)]


async def test_only_batches_with_acquired_records_are_sent(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        for _ in range(5):
            await produce(world, 1, 2)
        one = Member(world)
        assert await one.fetch(0, batch_size=2) == [(0, 1, 1), (2, 3, 1), (4, 5, 1), (6, 7, 1), (8, 9, 1)]
        assert await one.acknowledge((4, 7, [RELEASE])) == 0
        assert await one.fetch() == [(4, 5, 2), (6, 7, 2)]
        assert one.records == [4, 5, 6, 7]


async def test_a_fetch_waits_for_records_and_for_releases(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        one, two = Member(world), Member(world, member_id="m2")
        assert await one.fetch(0) == []
        found: list[Any] = []

        async def wait(member: Member, *numbers: int) -> None:
            found.append(await member.fetch(*numbers, max_wait_ms=60_000))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, one)
            await trio.sleep(5)
            await produce(world, 1, 3)
        assert found == [[(0, 2, 1)]]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, two, 0)
            await trio.sleep(5)
            assert await one.acknowledge((1, 1, [RELEASE])) == 0
        assert found[1:] == [[(1, 1, 2)]]
        assert trio.current_time() < 30, "nothing waits for its time"


async def test_committed_records_alone_are_delivered_where_the_group_says_so(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await configure(world, share_isolation_level="read_committed")
        await produce(world, 1, 2)
        partition = world.services(1).replicas.partition("t", 0)
        partition.log.producer_state.begin_verification(7, 0, 0, 0).is_confirmed = True
        transactional = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
        for sequence, count in ((0, 3), (3, 2)):
            content = batch(*[b"x"] * count, base_sequence=sequence, **transactional)
            partition.append(content, 1_700_000_000_000)
        one = Member(world)
        assert await one.fetch(0) == [(0, 1, 1)]
        partition.append_end_marker(WritableTxnMarker(producer_id=7, producer_epoch=0), 1_700_000_000_000)
        await produce(world, 1, 2)
        assert await one.fetch() == [(7, 9, 1)], "the marker, which the batch says is no record, and what follows"
        assert await one.acknowledge((0, 1, [ACCEPT]), (7, 9, [0, 1, 1])) == 0
        await until(lambda: state(world).start_offset == 10)


async def test_many_records_that_differ_are_stored_in_several_writes(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 1200)
        one, two = Member(world), Member(world, member_id="m2")
        assert await one.fetch(0, max_records=1200) == [(0, 1199, 1)]
        coordinator = world.services(1).share_coordinator
        before = coordinator.writes
        assert await one.acknowledge((0, 1199, [ACCEPT, RELEASE] * 600)) == 0
        assert coordinator.writes == before + 3
        one.disconnect()
        await until(lambda: not list(world.services(1).share_partitions.entries))
        found = await two.fetch(0, max_records=1200)
        assert found == [(offset, offset, 2) for offset in range(1, 1000, 2)], "as it was stored"


async def test_metrics_are_those_of_kafka(autojump_clock: MockClock) -> None:
    async with cluster(1, share_coordinator_snapshot_update_records_per_snapshot="0") as world:
        await produce(world, 1, 4)
        await produce(world, 1, 2)
        one = Member(world)
        assert await one.fetch(0, batch_size=2) == [(0, 3, 1), (4, 5, 1)]
        assert await one.acknowledge((0, 0, [ACCEPT]), (1, 2, [RELEASE, REJECT])) == 0
        assert await one.fetch(max_wait_ms=20_000) == [(1, 1, 2)]
        assert await one.acknowledge((1, 1, [ACCEPT])) == 0
        await until(lambda: figures(world)["acquisitionlocktimeout_total"] == 3)
        await until(lambda: figures(world)["coordinator_metrics_write_total"] == 3)
        assert figures(world) == {
            "sharesessionscount": 1,
            "sharepartitionscount": 1,
            "sharesessionevictions_total": 0,
            "inflightmessagecount": 3,
            "inflightbatchcount": 2,
            "acquisitionlocktimeout_total": 3,
            "recordacknowledgements_total Accept": 2,
            "recordacknowledgements_total Release": 1,
            "recordacknowledgements_total Reject": 1,
            "recordacknowledgements_total Renew": 0,
            "coordinator_metrics_write_total": 3,
            "archived_records_total": 1,
            "redelivered_records_total": 1,
        }
        await world.services(1).share_coordinator.prune()
        assert figures(world)["coordinator_metrics_last_pruned_offset"] == 3, "the snapshot of the last of three writes"
        one.disconnect()
        await until(lambda: figures(world)["sharesessionevictions_total"] == 1)
        assert figures(world)["sharesessionscount"] == 0


def figures(world: ControllerWorld) -> dict[str, float]:
    """By the names after Kafka's group of metrics."""
    found = {}
    for metric in share_metrics(world.services(1)):
        for sample in metric.samples:
            assert sample.labels.get("topic", "t") in ("t", "__share_group_state")
            name = sample.name.split("_", 3)[3]
            found[" ".join([name, *(value for label, value in sample.labels.items() if label == "ackType")])] = (
                sample.value
            )
    return found


# --- what is refused --------------------------------------------------------------------------------------------------


async def test_acknowledgements_are_checked(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 10)
        one, two = Member(world), Member(world, member_id="m2")
        assert await one.fetch(0) == [(0, 9, 1)]
        assert await two.fetch(0) == []
        assert await two.acknowledge((0, 9, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
        for wrong in (
            [(3, 2, [1])],
            [(0, 3, [1]), (2, 4, [1])],
            [(0, 3, [1, 1])],
            [(0, 3, [])],
            [(0, 0, [5])],
            [(0, 0, [-1])],
            [(0, 0, [RENEW])],
            [(0, 10, [1])],
            [(20, 21, [1])],
        ):
            assert await one.acknowledge(*wrong) == ErrorCode.INVALID_REQUEST, wrong
        assert await one.acknowledge((0, 3, [1]), (3, 4, [1])) == ErrorCode.INVALID_RECORD_STATE
        assert await one.acknowledge((0, 4, [ACCEPT])) == 0, "what was refused has changed nothing"
        assert await one.acknowledge((0, 4, [RELEASE])) == 0, "below the start offset nothing is looked at"
        assert await one.acknowledge((5, 5, [RENEW]), version=1) == ErrorCode.INVALID_REQUEST


async def test_unknown_topics_and_partitions_fail_alone(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 3)
        one = Member(world)
        response = await one.ask(0, 5)
        found = {each.partition_index: each for each in response.responses[0].partitions}
        assert len(found[0].acquired_records) == 1
        assert found[5].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        other = Member(world, member_id="m2")
        other._topic_id = bytes(15) + b"x"
        response = await other.ask(0)
        assert response.error_code == 0
        assert response.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID


async def test_groups_and_topics_are_readable_by_right(autojump_clock: MockClock) -> None:
    rules = {"authorizer_class_name": STANDARD_AUTHORIZER, "allow_everyone_if_no_acl_found": "true"}
    async with cluster(1, partitions=2, **rules) as world:
        await produce(world, 1, 4)
        one = Member(world)
        assert await one.fetch(0) == [(0, 3, 1)]
        await deny(world, ResourceType.TOPIC, "t")
        (partition,) = (await one.ask(1, acks=[(0, 1, [ACCEPT])])).responses[0].partitions[:1]
        assert partition.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert await one.acknowledge((0, 1, [ACCEPT])) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await deny(world, ResourceType.GROUP, GROUP)
        assert (await one.ask()).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await one.acknowledge((0, 1, [ACCEPT])) == ErrorCode.GROUP_AUTHORIZATION_FAILED


async def deny(world: ControllerWorld, kind: ResourceType, name: str) -> None:
    """Nobody may read it, from now on."""
    rule = AclCreation(
        resource_type=kind,
        resource_name=name,
        resource_pattern_type=3,
        principal="User:*",
        host="*",
        operation=Operation.READ,
        permission_type=2,
    )
    response = await world.ask(1, CreateAclsRequest(creations=[rule]), 2)
    assert response.results[0].error_code == 0, response.results[0].error_message
    authorizer = world.services(1).authorizer
    assert authorizer is not None
    context = ConnectionContext("PLAINTEXT", "h:1")
    await until(lambda: not authorizer.allows(context, Operation.READ, kind, name, False, "test"))


# --- sessions ---------------------------------------------------------------------------------------------------------


async def test_requests_have_the_epochs_of_their_session(autojump_clock: MockClock) -> None:
    async with cluster(1, group_share_max_share_sessions="2", group_share_max_size="2") as world:
        await produce(world, 1, 3)
        one = Member(world)
        assert (await one.ask(epoch=1)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert await one.acknowledge(epoch=-1) == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert (await one.ask(0, acks=[(0, 0, [1])])).error_code == ErrorCode.INVALID_REQUEST
        assert await one.fetch(0) == [(0, 2, 1)]
        assert (await one.ask(epoch=2)).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert await one.acknowledge((0, 0, [1]), epoch=0) == ErrorCode.INVALID_SHARE_SESSION_EPOCH
        assert await one.acknowledge((9, 9, [1])) == ErrorCode.INVALID_REQUEST
        assert await one.fetch() == [], "the request before has counted"
        assert (await one.ask(0, epoch=0)).error_code == 0
        one.epoch = 1
        assert await one.acknowledge((0, 0, [1])) == 0, "a new session keeps the records of the one before"
        assert (await Member(world, member_id="").ask(0)).error_code == ErrorCode.INVALID_REQUEST
        assert (await Member(world, member_id="m" * 37).ask(0)).error_code == ErrorCode.INVALID_REQUEST
        assert (await Member(world, member_id="m2").ask(0)).error_code == 0
        began = trio.current_time()
        response = await Member(world, member_id="m3").ask(0, max_wait_ms=2000)
        assert response.error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        assert trio.current_time() - began > 1.9


async def test_the_end_of_a_session_releases_at_once(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 6)
        one, two = Member(world), Member(world, member_id="m2")
        assert await one.fetch(0) == [(0, 5, 1)]
        assert await two.fetch(0) == []
        assert await one.acknowledge((0, 1, [ACCEPT]), epoch=-1) == 0
        assert await two.fetch() == [(2, 5, 2)]
        three = Member(world, member_id="m3")
        assert await three.fetch(0) == []
        two.disconnect()
        assert await three.fetch(max_wait_ms=1000) == [(2, 5, 3)]
        assert (await Member(world, member_id="m2").ask(epoch=4)).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


async def test_without_members_the_offsets_of_a_group_are_read_anew(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 6)
        one = Member(world)
        assert await one.fetch(0) == [(0, 5, 1)]
        assert await one.acknowledge((0, 5, [ACCEPT]), epoch=-1) == 0
        await world.services(1).share_state.initialize(key(world), 2, 4)
        one.epoch = 0
        assert await one.fetch(0) == [(4, 5, 1)]
        assert await one.acknowledge((4, 5, [ACCEPT])) == 0


# --- leaders ----------------------------------------------------------------------------------------------------------


async def test_another_leader_goes_on_with_what_is_stored(autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        leader = world.leader(1, "t")
        await produce(world, leader, 10)
        one = Member(world, leader)
        assert await one.fetch(0) == [(0, 9, 1)]
        assert await one.acknowledge((0, 1, [ACCEPT]), (2, 2, [RELEASE]), (4, 5, [ACCEPT])) == 0
        await world.stop(leader)
        at = next(iter(world.lives))
        await until(lambda: world.leader(at, "t") in world.lives)
        two = Member(world, world.leader(at, "t"), "m2")
        assert await two.fetch(0, max_wait_ms=20_000) == [(2, 2, 2), (3, 3, 1), (6, 9, 1)]
        assert await two.acknowledge((2, 3, [ACCEPT]), (6, 9, [ACCEPT])) == 0


async def test_who_leads_no_more_says_who_leads(autojump_clock: MockClock) -> None:
    async with cluster(1, 2, 3) as world:
        leader = world.leader(1, "t")
        await produce(world, leader, 4)
        one = Member(world, leader)
        assert await one.fetch(0) == [(0, 3, 1)]
        world.services(leader).replicas.partition("t", 0).stop()
        response = await one.ask(max_wait_ms=10_000)
        (partition,) = response.responses[0].partitions
        assert partition.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await one.acknowledge((0, 3, [ACCEPT])) == ErrorCode.NOT_LEADER_OR_FOLLOWER


# --- quotas -----------------------------------------------------------------------------------------------------------


async def test_members_that_have_used_up_their_quota_acquire_nothing_and_are_held_up(autojump_clock: MockClock) -> None:
    async with cluster(1) as world:
        await produce(world, 1, 600)
        await produce(world, 1, 10)
        one, two = Member(world), Member(world, member_id="m2")
        assert await two.fetch(0, max_records=1) == [(0, 599, 1)]
        assert await two.acknowledge((0, 0, [ACCEPT]), (1, 599, [RELEASE])) == 0
        await set_quota(world.make_client(1), "consumer_byte_rate", 300, user="ANONYMOUS")
        first = await one.ask(0, max_records=1)
        used = len(encode_bytes(first, 2))
        assert first.throttle_time_ms == pytest.approx((used / 300 - WINDOWS_S) * 1000, abs=100)
        assert first.responses[0].partitions[0].acquired_records[0].last_offset == 599, "what was acquired is sent"
        began = trio.current_time()
        empty = await two.ask()
        assert (empty.responses, empty.throttle_time_ms) == ([], pytest.approx(first.throttle_time_ms, abs=100))
        assert await one.acknowledge((1, 599, [ACCEPT])) == 0
        assert trio.current_time() - began == pytest.approx(first.throttle_time_ms / 1000, abs=0.1)
        assert await two.fetch() == [(600, 609, 1)]
