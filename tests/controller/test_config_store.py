"""Topic overrides in the store: changes reach every broker, none is lost, old notifications go."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SystemClock
from ottla.controller.zookeeper.config_store import ConfigStore
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.nodes.notifications import NOTIFICATION_LIFETIME_MS
from ottla.controller.zookeeper.store.cluster_store import Create, Delete, ensure_paths
from ottla.controller.zookeeper.store.session import SessionState
from ottla.replication.metadata_cache import MetadataCache
from ottla.security.entities import (
    BROKERS,
    CLIENTS,
    DEFAULT,
    IPS,
    TOPICS,
    USERS,
    Entity,
    EntityName,
    UserClient,
)
from ottla.security.scram import ScramMechanism, new_credential
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore
from ottla.tests.zookeeper_double.store_link import StoreLink


class SettableClock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def now_ms(self) -> int:
        return self.now


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[EmbeddedSession, ConfigStore, ConfigStore, SettableClock]]:
    clock = SettableClock()
    store = EmbeddedStore(clock)
    await store.open()
    sessions = store.session(), store.session()
    await ensure_paths(sessions[0], znodes.PERSISTENT_PATHS)
    configs = [ConfigStore(session, clock, MetadataCache()) for session in sessions]
    async with trio.open_nursery() as nursery:
        for each in configs:
            await each.start()
            nursery.start_soon(each.run)
        yield sessions[0], configs[0], configs[1], clock
        nursery.cancel_scope.cancel()


def set_to(**overrides: str) -> Mapping[str, str]:
    return {name.replace("_", "."): value for name, value in overrides.items()}


async def test_a_change_is_seen_at_once_here_and_soon_elsewhere() -> None:
    async with two_brokers() as (_, here, there, _clock):
        heard: list[Mapping[Entity, Mapping[str, str]]] = []
        arrived = trio.Event()
        here.metadata.publishers.append(lambda delta, image: heard.append(delta.configs))
        there.metadata.publishers.append(lambda delta, image: arrived.set())
        await here.change(Entity(TOPICS, "t"), lambda before: set_to(retention_ms="1"))
        assert here.metadata.image.topic_config("t") == {"retention.ms": "1"}
        assert heard == [{Entity(TOPICS, "t"): {"retention.ms": "1"}}]
        with trio.fail_after(5):
            await arrived.wait()
        assert there.metadata.image.topic_config("t") == {"retention.ms": "1"}
        await here.change(Entity(TOPICS, "t"), lambda before: {})
        assert here.metadata.image.topic_config("t") == {}


async def test_a_change_starts_from_what_is_stored_now() -> None:
    async with two_brokers() as (_, here, there, _clock):
        await here.change(Entity(TOPICS, "t"), lambda before: {**before, "a": "1"})
        await there.change(Entity(TOPICS, "t"), lambda before: {**before, "b": "2"})
        assert there.metadata.image.topic_config("t") == {"a": "1", "b": "2"}


async def test_changes_at_the_same_time_are_all_kept() -> None:
    async with two_brokers() as (_, here, there, _clock):

        async def add(configs: ConfigStore, name: str) -> None:
            await configs.change(Entity(TOPICS, "t"), lambda before: {**before, name: "1"})

        async with trio.open_nursery() as nursery:
            for i in range(10):
                nursery.start_soon(add, here if i % 2 else there, f"n{i}")
        await here.load(["t"])
        assert sorted(here.metadata.image.topic_config("t")) == [f"n{i}" for i in range(10)]


async def test_a_refused_change_changes_nothing() -> None:
    async with two_brokers() as (session, here, _, _clock):

        def refuse(before: Mapping[str, str]) -> Mapping[str, str]:
            raise KafkaError(ErrorCode.INVALID_CONFIG, "no")

        with pytest.raises(KafkaError):
            await here.change(Entity(TOPICS, "t"), refuse)
        assert await session.children(znodes.TOPIC_CONFIGS) == []
        assert await session.children(znodes.CONFIG_CHANGES) == []


async def test_the_nodes_are_kafkas() -> None:
    async with two_brokers() as (session, here, _, _clock):
        await here.change(Entity(TOPICS, "t2"), lambda before: {"cleanup.policy": "compact"})
        node = await session.get("/config/topics/t2")
        assert node.data == b'{"version":1,"config":{"cleanup.policy":"compact"}}'
        change = await session.get("/config/changes/config_change_0000000000")
        assert change.data == b'{"version":2,"entity_path":"topics/t2"}'


async def test_quotas_and_credentials_are_kept_by_their_kinds(caplog: pytest.LogCaptureFixture) -> None:
    async with two_brokers() as (session, here, there, clock):
        person = "a b/~*é"
        user = znodes.entity_node(USERS, person)
        assert user == "a%20b%2F%7E%2A%C3%A9"  # as Kafka's Sanitizer has it
        assert znodes.entity_name(USERS, user) == person
        credential = new_credential(ScramMechanism.SHA_256, "secret")
        nodes = {
            f"users/{user}": b'{"version":1,"config":{"SCRAM-SHA-256":"%s"}}' % credential.render().encode(),
            f"users/{user}/clients": b"",
            f"users/{user}/clients/app": b'{"version":1,"config":{"producer_byte_rate":"1"}}',
            "users/<default>": b'{"version":1,"config":{"consumer_byte_rate":"2"}}',
            "clients/app": b'{"version":1,"config":{"request_percentage":"3"}}',
            "ips/127.0.0.1": b'{"version":1,"config":{"connection_creation_rate":"4"}}',
        }
        for path, data in nodes.items():
            await session.multi([Create(f"/config/{path}", data)])
            if data:
                kind, name = path.split("/", 1)
                told = b'{"version":2,"entity_path":"%s"}' % path.encode()
                if kind == "clients":
                    told = b'{"version":1,"entity_type":"clients","entity_name":"%s"}' % name.encode()
                await session.multi([Create(znodes.CONFIG_CHANGE_PREFIX, told, sequence=True)])
        told_later = ConfigStore(session, clock, MetadataCache())
        await told_later.start()
        await trio.testing.wait_all_tasks_blocked()
        for configs in (here, there, told_later):
            image = configs.metadata.image
            assert image.quotas == {
                Entity(USERS, DEFAULT): {"consumer_byte_rate": 2},
                Entity(USERS, UserClient(person, "app")): {"producer_byte_rate": 1},
                Entity(CLIENTS, "app"): {"request_percentage": 3},
                Entity(IPS, "127.0.0.1"): {"connection_creation_rate": 4},
            }
            assert image.scram == {person: {ScramMechanism.SHA_256: credential}}
        await session.multi([Delete("/config/clients/app")])
        told = b'{"version":2,"entity_path":"clients/app"}'
        await session.multi([Create(znodes.CONFIG_CHANGE_PREFIX, told, sequence=True)])
        await trio.testing.wait_all_tasks_blocked()
        assert Entity(CLIENTS, "app") not in here.metadata.image.quotas
    assert "ignored" not in caplog.text


async def test_notifications_that_are_not_understood_are_logged_and_passed_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with two_brokers() as (session, here, there, _clock):
        paths = "client-metrics/x", "users/a/b", "users/a/clients/", "topics", ""
        unknown = [b'{"version":2,"entity_path":"%s"}' % path.encode() for path in paths]
        for data in (*unknown, b'{"version":1,"entity_type":"topics"}', b"not JSON"):
            await session.multi([Create(znodes.CONFIG_CHANGE_PREFIX, data, sequence=True)])
        arrived = trio.Event()
        there.metadata.publishers.append(lambda delta, image: arrived.set())
        await here.change(Entity(TOPICS, "t"), lambda before: {"a": "1"})
        with trio.fail_after(5):
            await arrived.wait()
        assert there.metadata.image.topic_config("t") == {"a": "1"}
        assert all(f"A change of {path!r} is ignored" in caplog.text for path in paths)


async def test_old_notifications_are_removed() -> None:
    async with two_brokers() as (session, here, _, clock):
        await here.change(Entity(TOPICS, "t"), lambda before: {"a": "1"})
        clock.now += NOTIFICATION_LIFETIME_MS + 1
        await here.change(Entity(TOPICS, "t"), lambda before: {"a": "2"})
        with trio.fail_after(5):
            while await session.children(znodes.CONFIG_CHANGES) != ["config_change_0000000001"]:
                await trio.lowlevel.checkpoint()


async def test_a_connection_lost_while_old_notifications_are_removed_ends_nothing() -> None:
    clock = SettableClock()
    store = EmbeddedStore(clock)
    await store.open()
    other = ConfigStore(store.session(), clock, MetadataCache())
    session = store.session(link := StoreLink())
    await ensure_paths(session, znodes.PERSISTENT_PATHS)
    configs = ConfigStore(session, clock, MetadataCache())
    await configs.start()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(configs.run)
        await other.change(Entity(TOPICS, "t"), lambda before: {"a": "1"})
        await trio.testing.wait_all_tasks_blocked()
        link.lose_connection_at_next_multi(is_executed=False)
        clock.now += NOTIFICATION_LIFETIME_MS + 1
        await other.change(Entity(TOPICS, "t"), lambda before: {"a": "2"})
        await trio.testing.wait_all_tasks_blocked()
        assert session.state is SessionState.SUSPECTED
        session.reconnect()
        await configs.start()
        await other.change(Entity(TOPICS, "t"), lambda before: {"a": "3"})
        await trio.testing.wait_all_tasks_blocked()
        assert configs.metadata.image.topic_config("t") == {"a": "3"}
        nursery.cancel_scope.cancel()


async def test_a_forgotten_topic_has_no_overrides() -> None:
    store = EmbeddedStore(SystemClock())
    configs = ConfigStore(store.session(), SystemClock(), MetadataCache())
    configs.put("t", {"a": "1"})
    assert configs.metadata.image.topic_config("t") == {"a": "1"}
    configs.put("t", {})
    assert configs.metadata.image.topic_config("t") == {}


async def test_settings_of_brokers_are_kept_and_told_as_kafka_does() -> None:
    async with two_brokers() as (session, here, there, _clock):
        arrived = trio.Event()
        there.metadata.publishers.append(lambda delta, image: arrived.set())
        await here.change(Entity(BROKERS, DEFAULT), lambda before: {"log.cleaner.threads": "1"})
        with trio.fail_after(5):
            await arrived.wait()
        assert there.metadata.image.broker_config(DEFAULT) == {"log.cleaner.threads": "1"}
        assert there.metadata.image.topic_config(DEFAULT) == {}
        node = await session.get("/config/brokers/<default>")
        assert node.data == b'{"version":1,"config":{"log.cleaner.threads":"1"}}'
        change = await session.get("/config/changes/config_change_0000000000")
        assert change.data == b'{"version":2,"entity_path":"brokers/<default>"}'


async def test_what_a_user_has_by_a_client_is_under_the_user_and_goes_with_the_last_of_it() -> None:
    async with two_brokers() as (session, here, there, _clock):
        arrived: list[tuple[EntityName, Mapping[str, float]]] = []
        there.metadata.publishers.append(
            lambda delta, image: arrived.extend((entity.name, limits) for entity, limits in delta.quotas.items())
        )
        app = UserClient("alice", "app")
        for pair in (app, UserClient("alice", DEFAULT)):
            await here.change(Entity(USERS, pair), lambda before: {"producer_byte_rate": "1"})
        await here.change(Entity(USERS, "alice"), lambda before: {**before, "request_percentage": "2"})
        assert (await session.get("/config/users/alice/clients/app")).data == (
            b'{"version":1,"config":{"producer_byte_rate":"1"}}'
        )
        names: list[EntityName] = [UserClient("alice", DEFAULT), "alice"]
        for name in names:
            await here.change(Entity(USERS, name), lambda before: {})
        assert (await session.get("/config/users/alice")).data == b'{"version":1,"config":{}}'
        assert await session.children("/config/users/alice/clients") == ["app"]
        await here.change(Entity(USERS, UserClient("alice", "app")), lambda before: {})
        assert await session.children("/config/users") == []
        await trio.testing.wait_all_tasks_blocked()
        assert arrived[-1] == (app, {})
        assert there.metadata.image.quotas == here.metadata.image.quotas == {}


async def test_a_user_keeps_what_it_has_when_its_last_client_goes() -> None:
    async with two_brokers() as (session, here, _there, _clock):
        await here.change(Entity(USERS, "alice"), lambda before: {"SCRAM-SHA-256": "s"})
        await here.change(Entity(USERS, UserClient("alice", "app")), lambda before: {"producer_byte_rate": "1"})
        await here.change(Entity(USERS, UserClient("alice", "app")), lambda before: {})
        assert await session.children("/config/users/alice") == []
        assert here.metadata.image.scram.keys() == {"alice"}


async def test_quotas_of_clients_and_addresses_leave_no_node() -> None:
    async with two_brokers() as (session, here, there, _clock):
        for kind, name in ((CLIENTS, "app"), (IPS, "127.0.0.1")):
            await here.change(Entity(kind, name), lambda before: {"x": "1"})
            assert await session.children(f"/config/{kind}") == [name]
            await here.change(Entity(kind, name), lambda before: {})
            await here.change(Entity(kind, name), lambda before: {})
            assert await session.children(f"/config/{kind}") == []
        await here.change(Entity(TOPICS, "t"), lambda before: {})
        assert await session.children("/config/topics") == ["t"]
        await trio.testing.wait_all_tasks_blocked()
        assert there.metadata.image.quotas == {}


@pytest.mark.parametrize(
    ("kind", "name", "node"),
    [
        (USERS, "alice", "alice"),
        (USERS, "<default>", "%3Cdefault%3E"),
        (USERS, DEFAULT, "<default>"),
        (USERS, UserClient("a/b", DEFAULT), "a%2Fb/clients/<default>"),
        (USERS, UserClient(DEFAULT, "clients"), "<default>/clients/clients"),
        (CLIENTS, "a b", "a%20b"),
        (IPS, "::1", "%3A%3A1"),
        (TOPICS, "a.b_c-d", "a.b_c-d"),
        (BROKERS, DEFAULT, "<default>"),
    ],
)
def test_names_and_nodes_of_entities(kind: str, name: EntityName, node: str) -> None:
    assert znodes.entity_node(kind, name) == node
    assert znodes.entity_name(kind, node) == name


@pytest.mark.parametrize("path", ["users/", "users/a/b", "users/a/clients", "users/a/b/c", "clients/a/clients/b"])
def test_nodes_at_which_nothing_can_be_set(path: str) -> None:
    kind, _, node = path.partition("/")
    with pytest.raises(ValueError, match="is not an entity"):
        znodes.entity_name(kind, node)
