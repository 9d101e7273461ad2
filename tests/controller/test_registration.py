"""Joining a cluster: its id, the broker's node, blocks of producer ids."""

from __future__ import annotations

import random

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SystemClock
from ottla.controller.random_uuids import random_uuid
from ottla.controller.zookeeper.nodes import znodes
from ottla.controller.zookeeper.producer_ids import BLOCK_SIZE, ProducerIds
from ottla.controller.zookeeper.registration import (
    ensure_cluster,
    find_cluster,
    generate_broker_id,
    register_broker,
    register_when_free,
    report_log_dir_failure,
)
from ottla.controller.zookeeper.store.cluster_store import ConnectionLossError, Set, ensure_paths
from ottla.metadata.types import AdvertisedListener, BrokerRegistration
from ottla.replication.metadata_cache import MetadataCache
from ottla.tests.zookeeper_double.embedded_store import EmbeddedSession, EmbeddedStore
from ottla.tests.zookeeper_double.store_link import StoreLink
from ottla.wire.schema import uuid_from_text, uuid_to_text


async def open_session() -> tuple[EmbeddedStore, EmbeddedSession]:
    store = EmbeddedStore(SystemClock())
    await store.open()
    return store, store.session()


async def test_a_new_cluster_has_kafkas_nodes_and_an_id_that_stays() -> None:
    store, session = await open_session()
    cluster_id = await ensure_cluster(session, random.Random(1))
    assert len(uuid_from_text(cluster_id)) == 16
    assert await ensure_cluster(store.session(), random.Random(2)) == cluster_id
    for path in znodes.PERSISTENT_PATHS:
        assert await session.exists(path) is not None


async def test_a_new_cluster_has_the_id_of_the_data_folder() -> None:
    _, session = await open_session()
    known = uuid_to_text(random_uuid(random.Random(5)))
    assert await find_cluster(session) is None
    assert await ensure_cluster(session, random.Random(1), known) == known
    another = uuid_to_text(random_uuid(random.Random(6)))
    assert await ensure_cluster(session, random.Random(1), another) == await find_cluster(session) == known


async def test_ids_of_brokers_that_were_given_none_are_above_the_reserved_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store, session = await open_session()
    await ensure_cluster(session, random.Random(1))
    assert [await generate_broker_id(session, 1000) for _ in range(2)] == [1001, 1002]
    link = StoreLink()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        link.lose_connection_at_next_multi(is_executed=True)
        assert await generate_broker_id(store.session(link, timeout=6), 1000) == 1004
        nursery.cancel_scope.cancel()


def test_uuids_are_ones_that_kafka_would_make() -> None:
    generator = random.Random(3)
    made = [random_uuid(generator) for _ in range(500)]
    assert len(set(made)) == 500
    for value in made:
        assert value[6] >> 4 == 4
        assert value[8] >> 6 == 2
        assert not uuid_to_text(value).startswith("-")


async def test_a_broker_comes_back_with_a_higher_epoch() -> None:
    store, session = await open_session()
    await ensure_cluster(session, random.Random(1))
    registration = BrokerRegistration(1, (AdvertisedListener("PLAINTEXT", "127.0.0.1", 9092),))
    first = await register_broker(session, registration, SystemClock())
    assert (await session.get("/brokers/ids/1")).stat.czxid == first
    with pytest.raises(KafkaError) as caught:
        await register_broker(store.session(), registration, SystemClock())
    assert caught.value.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION
    await session.close()
    assert await register_broker(store.session(), registration, SystemClock()) > first


async def test_a_registration_whose_answer_was_lost_is_the_brokers_own(autojump_clock: trio.testing.MockClock) -> None:
    store, session = await open_session()
    await ensure_cluster(session, random.Random(1))
    registration = BrokerRegistration(1, (AdvertisedListener("PLAINTEXT", "127.0.0.1", 9092),))
    own = store.session(link := StoreLink(), timeout=6)
    link.lose_connection_at_next_multi(is_executed=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        with pytest.raises(ConnectionLossError):
            await register_broker(own, registration, SystemClock())
        epoch = await register_broker(own, registration, SystemClock())
        assert (await session.get("/brokers/ids/1")).stat.czxid == epoch
        nursery.cancel_scope.cancel()


async def test_a_broker_that_was_killed_comes_back_when_the_session_it_left_has_ended(
    autojump_clock: trio.testing.MockClock,
) -> None:
    store, session = await open_session()
    await ensure_cluster(session, random.Random(1))
    registration = BrokerRegistration(1, (AdvertisedListener("PLAINTEXT", "127.0.0.1", 9092),))
    link = StoreLink()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        first = await register_broker(store.session(link, timeout=6), registration, SystemClock())
        link.leave()
        began = trio.current_time()
        again = await register_when_free(store.session(timeout=6), registration, SystemClock())
        assert 5.9 < trio.current_time() - began < 6.1
        assert (await session.get("/brokers/ids/1")).stat.czxid == again > first
        with pytest.raises(KafkaError, match=r"registered already by a broker at 127\.0\.0\.1:9092"):  # that one lives
            await register_when_free(store.session(timeout=6), registration, SystemClock())
        with pytest.raises(KafkaError, match="registered already"):
            await register_when_free(store.session(), registration, SystemClock())
        nursery.cancel_scope.cancel()


async def test_a_broker_with_the_address_of_another_one_is_refused() -> None:
    store, session = await open_session()
    await ensure_cluster(session, random.Random(1))
    shared = AdvertisedListener("INSIDE", "10.0.0.1", 9092)
    await register_broker(session, BrokerRegistration(1, (shared,)), SystemClock())
    own = AdvertisedListener("OUTSIDE", "10.0.0.2", 9092)
    with pytest.raises(
        KafkaError, match=r"10\.0\.0\.1:9092 in advertised listeners are already registered by broker 1"
    ):
        await register_when_free(
            store.session(), BrokerRegistration(2, (own, shared._replace(listener="X"))), SystemClock()
        )
    await register_when_free(store.session(), BrokerRegistration(2, (own,)), SystemClock())


async def test_a_failed_folder_is_told_though_the_answer_is_lost(autojump_clock: trio.testing.MockClock) -> None:
    store, session = await open_session()
    await ensure_cluster(session, random.Random(1))
    own = store.session(link := StoreLink(), timeout=6)
    link.lose_connection_at_next_multi(is_executed=False)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.run)
        await report_log_dir_failure(own, 1)
        nursery.cancel_scope.cancel()
    assert len(await session.children(znodes.LOG_DIR_EVENTS)) == 1


async def test_producer_ids_where_the_last_block_is_not_understood() -> None:
    _, session = await open_session()
    await ensure_paths(session, znodes.PERSISTENT_PATHS)
    await session.multi([Set(znodes.PRODUCER_ID_BLOCK, b"nonsense")])
    with pytest.raises(KafkaError) as caught:
        await ProducerIds(session, 1, MetadataCache()).next_producer_id()
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


async def test_producer_ids_never_repeat_across_brokers_and_restarts() -> None:
    store, session = await open_session()
    await ensure_paths(session, znodes.PERSISTENT_PATHS)
    given: list[int] = []

    async def take(ids: ProducerIds, count: int) -> None:
        given.extend([await ids.next_producer_id() for _ in range(count)])

    async with trio.open_nursery() as nursery:
        for broker_id in (1, 2):
            ids = ProducerIds(store.session(), broker_id, MetadataCache())
            for _ in range(3):
                nursery.start_soon(take, ids, BLOCK_SIZE // 2)
    await take(ProducerIds(store.session(), 1, MetadataCache()), 1)
    assert len(set(given)) == len(given) == 3 * BLOCK_SIZE + 1
    assert min(given) == 0


async def test_producer_ids_of_a_lost_store() -> None:
    _, session = await open_session()
    await session.close()
    with pytest.raises(KafkaError) as caught:
        await ProducerIds(session, 1, MetadataCache()).next_producer_id()
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
