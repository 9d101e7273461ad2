"""Access rules in the store: the nodes are Kafka's, changes reach every broker, none is lost, old notifications go."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from ottla.controller.zookeeper.acl_store import AclStore
from ottla.controller.zookeeper.nodes import acl_znodes
from ottla.controller.zookeeper.nodes.notifications import NOTIFICATION_LIFETIME_MS
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, Operation, Set
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.acl import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
)
from ottla.security.acl import Operation as Op
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore

from .test_config_store import SettableClock

TOPIC = ResourceType.TOPIC
LITERAL = ResourcePattern(TOPIC, "t2")
PREFIXED = ResourcePattern(TOPIC, "pre", PatternType.PREFIXED)


def allow(operation: Op, principal: str = "User:alice") -> AclEntry:
    return AclEntry(principal, Permission.ALLOW, "*", operation)


class Broker:
    """A store of rules, and what is known of them."""

    def __init__(self, session: EmbeddedSession, clock: SettableClock) -> None:
        self.session = session
        self.metadata = MetadataCache()
        self.acls = AclStore(session, clock, self.metadata)

    def knows(self, pattern: ResourcePattern) -> frozenset[AclEntry]:
        return self.metadata.image.acls.get(pattern, frozenset())

    async def until(self, pattern: ResourcePattern, *entries: AclEntry) -> None:
        with trio.fail_after(5):
            while self.knows(pattern) != set(entries):
                await trio.sleep(0.001)


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[Broker, Broker, SettableClock]]:
    clock = SettableClock()
    store = EmbeddedStore(clock)
    await store.open()
    brokers = Broker(store.session(), clock), Broker(store.session(), clock)
    async with trio.open_nursery() as nursery:
        for broker in brokers:
            await broker.acls.start()
            nursery.start_soon(broker.acls.run)
        yield *brokers, clock
        nursery.cancel_scope.cancel()


SEEN = {
    **{
        f"{root}{kind}": ""
        for root in ("/kafka-acl", "/kafka-acl-extended/prefixed")
        for kind in ("", "/Cluster", "/DelegationToken", "/Group", "/Topic", "/TransactionalId", "/User")
    },
    "/kafka-acl-extended": "",
    "/kafka-acl-changes": "",
    "/kafka-acl-extended-changes": "",
    "/kafka-acl/Topic/t2": '{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*","operation":"Read"}],'
    '"version":1}',
    "/kafka-acl-changes/acl_changes_0000000000": "TOPIC:t2",
    "/kafka-acl-extended/prefixed/Topic/pre": '{"acls":[{"principal":"User:alice","permissionType":"Allow","host":"*",'
    '"operation":"Write"}],"version":1}',
    "/kafka-acl-extended-changes/acl_changes_0000000000": '{"version":1,"resourceType":"TOPIC","name":"pre",'
    '"patternType":"PREFIXED"}',
}
"""What brokers of Kafka 3.9.2 had in their ZooKeeper after kafka-acls had added the two rules of the test below."""


async def tree_of(session: EmbeddedSession, folder: str) -> dict[str, str]:
    found = {folder: (await session.get(folder)).data.decode()}
    for name in await session.children(folder):
        found |= await tree_of(session, f"{folder}/{name}")
    return found


async def test_the_nodes_are_those_that_kafka_makes() -> None:
    async with two_brokers() as (here, _there, _clock):
        outcome = await here.acls.create([AclBinding(LITERAL, allow(Op.READ)), AclBinding(PREFIXED, allow(Op.WRITE))])
        assert outcome == [None, None]
        nodes = {}
        for folder in (*acl_znodes.ROOTS, *acl_znodes.CHANGES):
            nodes |= await tree_of(here.session, folder)
    assert nodes == SEEN


async def test_a_change_is_seen_at_once_here_and_soon_elsewhere() -> None:
    async with two_brokers() as (here, there, _clock):
        for pattern in (LITERAL, PREFIXED):
            await here.acls.create([AclBinding(pattern, allow(Op.READ))])
            assert here.knows(pattern) == {allow(Op.READ)}
            await there.until(pattern, allow(Op.READ))
            await there.acls.create([AclBinding(pattern, allow(Op.WRITE))])
            await here.until(pattern, allow(Op.READ), allow(Op.WRITE))


async def test_what_is_there_is_created_again_without_a_change() -> None:
    async with two_brokers() as (here, _there, _clock):
        await here.acls.create([AclBinding(LITERAL, allow(Op.READ))])
        assert await here.acls.create([AclBinding(LITERAL, allow(Op.READ))]) == [None]
        assert len(await here.session.children(acl_znodes.LITERAL_CHANGES)) == 1


async def test_two_brokers_change_a_pattern_at_the_same_time_and_no_rule_is_lost() -> None:
    async with two_brokers() as (here, there, _clock):

        async def create(broker: Broker, operation: Op) -> None:
            assert await broker.acls.create([AclBinding(LITERAL, allow(operation))]) == [None]

        async with trio.open_nursery() as nursery:
            nursery.start_soon(create, here, Op.READ)
            nursery.start_soon(create, there, Op.WRITE)
        for broker in (here, there):
            await broker.until(LITERAL, allow(Op.READ), allow(Op.WRITE))


async def test_the_last_rule_of_a_pattern_takes_its_node_along() -> None:
    async with two_brokers() as (here, there, _clock):
        await here.acls.create([AclBinding(LITERAL, allow(Op.READ)), AclBinding(PREFIXED, allow(Op.READ))])
        await there.until(PREFIXED, allow(Op.READ))
        filters = [AclFilter(TOPIC, "t2", PatternType.LITERAL), AclFilter(), AclFilter(ResourceType.GROUP)]
        deleted = await there.acls.delete(filters)
        assert deleted == [
            [(AclBinding(LITERAL, allow(Op.READ)), None)],
            [(AclBinding(PREFIXED, allow(Op.READ)), None)],
            [],
        ]
        assert await here.session.exists(acl_znodes.path(LITERAL)) is None
        await here.until(LITERAL)
        await here.until(PREFIXED)


async def test_a_filter_that_names_its_pattern_deletes_what_this_broker_has_not_heard_of_yet() -> None:
    async with two_brokers() as (here, _there, _clock):
        data = acl_znodes.encode_entries([allow(Op.READ)])
        await here.session.multi([Create(acl_znodes.path(LITERAL), data)])  # and no notification
        ((deleted,),) = await here.acls.delete([AclFilter(TOPIC, "t2", PatternType.ANY)])
        assert deleted == (AclBinding(LITERAL, allow(Op.READ)), None)


async def test_what_kafka_wrote_is_understood_and_what_is_not_is_passed_over() -> None:
    async with two_brokers() as (here, _there, _clock):
        acl = {"principal": "User:bob", "permissionType": "Deny", "host": "10.0.0.1", "operation": "IdempotentWrite"}
        good = json.dumps({"version": 1, "acls": [acl]}).encode()
        await here.session.multi(
            [
                Create("/kafka-acl/Cluster/kafka-cluster", good),
                Create("/kafka-acl/Topic/broken", b"{"),
                Create("/kafka-acl-changes/acl_changes_", b"Topic:broken", sequence=True),
                Create("/kafka-acl-changes/acl_changes_", b"Nonsense:x", sequence=True),
                Create("/kafka-acl-changes/acl_changes_", b"CLUSTER:kafka-cluster", sequence=True),
            ]
        )
        denied = AclEntry("User:bob", Permission.DENY, "10.0.0.1", Op.IDEMPOTENT_WRITE)
        await here.until(ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"), denied)
        (error,) = await here.acls.create([AclBinding(ResourcePattern(TOPIC, "broken"), allow(Op.READ))])
        assert error is not None  # nothing is written over what may be a newer Kafka's


async def test_after_a_loss_of_watches_everything_is_read_again() -> None:
    async with two_brokers() as (here, there, _clock):
        await there.acls.create([AclBinding(PREFIXED, allow(Op.WRITE))])
        await here.until(PREFIXED, allow(Op.WRITE))
        changed = acl_znodes.encode_entries([allow(Op.READ)])
        silent: list[Operation] = [Create(acl_znodes.path(LITERAL), changed), Delete(acl_znodes.path(PREFIXED))]
        await here.session.multi(silent)
        here.acls.resync()
        await here.until(LITERAL, allow(Op.READ))
        await here.until(PREFIXED)


async def test_notifications_are_removed_after_fifteen_minutes() -> None:
    async with two_brokers() as (here, there, clock):
        await here.acls.create([AclBinding(LITERAL, allow(Op.READ))])
        await there.until(LITERAL, allow(Op.READ))
        clock.now += NOTIFICATION_LIFETIME_MS + 1
        await here.acls.create([AclBinding(LITERAL, allow(Op.WRITE))])
        with trio.fail_after(5):
            while len(names := await here.session.children(acl_znodes.LITERAL_CHANGES)) != 1:
                await trio.sleep(0.001)
        assert names == ["acl_changes_0000000001"]


DENY_ALL = AclEntry("User:*", Permission.DENY, "*", Op.ALL)


def acl(**changed: str | None) -> dict[str, str]:
    fields = {"principal": "User:bob", "permissionType": "Deny", "host": "*", "operation": "Read", **changed}
    return {name: value for name, value in fields.items() if value is not None}


@pytest.mark.parametrize(
    ("other", "instead"),
    [
        (acl(operation="Fold"), AclEntry("User:bob", Permission.DENY, "*", Op.ALL)),
        (acl(operation="Fold", host="10.0.0.1"), AclEntry("User:bob", Permission.DENY, "10.0.0.1", Op.ALL)),
        (acl(permissionType="Perhaps"), AclEntry("User:bob", Permission.DENY, "*", Op.ALL)),
        (acl(principal="bob"), DENY_ALL),
        (acl(principal=None), DENY_ALL),
        ("nonsense", DENY_ALL),
        (acl(permissionType="Allow", operation="Fold"), None),
        (acl(permissionType="Allow", principal=None), None),
    ],
)
async def test_an_entry_that_is_not_understood_leaves_the_others_and_allows_nothing(
    other: object, instead: AclEntry | None
) -> None:
    async with two_brokers() as (here, _there, _clock):
        data = json.dumps({"version": 1, "acls": [acl(permissionType="Allow", principal="User:alice"), other]})
        path = acl_znodes.path(LITERAL)
        await here.session.multi(
            [
                Create(path, data.encode()),
                Create(f"{acl_znodes.LITERAL_CHANGES}/acl_changes_", b"Topic:t2", sequence=True),
            ]
        )
        await here.until(LITERAL, allow(Op.READ), *([] if instead is None else [instead]))
        (error,) = await here.acls.create([AclBinding(LITERAL, allow(Op.WRITE))])
        assert error is not None
        assert (await here.session.get(path)).data.decode() == data, "what may be a newer Kafka's is written over"


async def test_a_node_that_is_not_understood_at_all_is_nobodys_way_in() -> None:
    """Of a pattern that was known before, what was known is gone by, as with Kafka."""
    async with two_brokers() as (here, there, _clock):
        await here.acls.create([AclBinding(LITERAL, allow(Op.READ))])
        await there.until(LITERAL, allow(Op.READ))
        await here.session.multi([Set(acl_znodes.path(LITERAL), b"{"), Create("/kafka-acl/Topic/new", b"{")])
        for broker in (here, there):
            broker.acls.resync()
            await broker.until(ResourcePattern(TOPIC, "new"), DENY_ALL)
            assert broker.knows(LITERAL) == {allow(Op.READ)}
