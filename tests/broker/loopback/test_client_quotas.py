"""Clients are held to their quotas: answered at once, told for how long to wait, and not listened to for so long (KIP-219)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.base.seams import InlineWorkers, SystemClock
from ottla.broker.config_file import load_config
from ottla.broker.server import BrokerServer
from ottla.compat_tests.raw.requests import fetch_request
from ottla.handlers.request_cost import RequestCost
from ottla.log.memory_disk import MemoryDisk
from ottla.replication.broker_client import BrokerClient
from ottla.security.client_quotas import ClientQuotas
from ottla.security.entities import DEFAULT
from ottla.security.quota_precedence import QuotaEntity
from ottla.security.quota_settings import ClientQuotaSettings
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.schema import Message

from ...helpers.memory_broker import frame
from ...helpers.memory_broker import running as serving
from ...helpers.memory_cluster import MemoryCluster, running, until
from ..helpers.quotas import client, produce_of, set_quota

LENGTH = 4
"""Of a frame, which does not count."""
WINDOWS_MS = 10_000
"""Over how long a client's rate is at least."""
MAX_THROTTLE_MS = 1_000


def size(request: Message, version: int, client_id: str) -> int:
    return len(frame(request, version, 1, client_id)) - LENGTH


async def timed(asked: BrokerClient, request: Message, version: int) -> tuple[float, Any]:
    """After how many seconds the answer came, and what it is."""
    began = trio.current_time()
    answer = await asked.send(request, version)
    return trio.current_time() - began, answer


async def test_a_producer_beyond_its_quota_is_answered_at_once_and_not_heard_for_a_while(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        fast, other = client(cluster, "fast"), client(cluster, "other")
        await set_quota(other, "producer_byte_rate", 1000, client_id="fast")
        within, beyond = produce_of("t", 5000), produce_of("t", 8000)
        seconds, answer = await timed(fast, within, 9)
        assert (seconds, answer.throttle_time_ms) == (pytest.approx(0, abs=0.1), 0)
        seconds, answer = await timed(fast, beyond, 9)
        used = size(within, 9, "fast") + size(beyond, 9, "fast")
        expected_ms = used - WINDOWS_MS  # at 1000 bytes a second, a byte is a millisecond
        assert answer.throttle_time_ms == pytest.approx(expected_ms, abs=100)
        assert seconds == pytest.approx(0, abs=0.1)
        assert (await timed(other, beyond, 9))[0] == pytest.approx(0, abs=0.1)
        seconds, answer = await timed(fast, MetadataRequest(topics=[]), 9)
        assert seconds == pytest.approx(expected_ms / 1000, abs=0.1)
        assert answer.throttle_time_ms == 0


async def test_requests_that_were_sent_together_wait_one_after_the_other(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        await set_quota(client(cluster, "admin"), "producer_byte_rate", 1000, user="ANONYMOUS")
        fast = client(cluster, "fast")
        throttles: list[int] = []

        async def send() -> None:
            throttles.append((await fast.send(produce_of("t", 20_000), 9)).throttle_time_ms)

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(send)
        assert trio.current_time() - began == pytest.approx(sum(throttles[:2]) / 1000, abs=0.1)
        assert min(throttles) > 9_000


async def test_a_producer_that_wants_no_answer_is_not_heard_either(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        admin = client(cluster, "admin")
        await set_quota(admin, "producer_byte_rate", 1000, client_id=None)
        await set_quota(admin, "request_percentage", 1e-9, client_id=None)
        connection = await cluster.network.connect("broker1", 9092)
        unanswered = frame(produce_of("t", 15_000, acks=0), 9, 1, "fast")
        began = trio.current_time()
        await connection.send([unanswered + frame(MetadataRequest(topics=[]), 9, 2, "fast")])
        assert await connection.receive(4)
        expected = (len(unanswered) - LENGTH - WINDOWS_MS) / 1000
        assert trio.current_time() - began == pytest.approx(expected, abs=0.1)
        connection.close()


async def test_a_fetch_beyond_the_quota_is_empty_and_leaves_its_session_as_it_was(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        for _ in range(3):
            assert await cluster.produce(1, "t", 0, bytes(6000)) == 0
        reader = client(cluster, "reader")
        await set_quota(reader, "consumer_byte_rate", 1000, user="ANONYMOUS", client_id="reader")
        began = trio.current_time()
        first = await reader.send(fetch_request("t", {0: 0}, partition_max_bytes=1, session=(0, 0)), 12)
        assert first.throttle_time_ms == 0
        session = first.session_id
        assert len(first.responses[0].partitions[0].records) > 6000
        again = fetch_request("t", {0: 1}, partition_max_bytes=1, session=(session, 1))
        held_up = await reader.send(again, 12)
        assert held_up.responses == []
        assert held_up.session_id == session
        read = 2 * len(first.responses[0].partitions[0].records)
        assert held_up.throttle_time_ms == pytest.approx(read - WINDOWS_MS, abs=300)
        seconds, answer = await timed(reader, fetch_request("t", {0: 1}, session=(session, 2)), 12)
        assert seconds == pytest.approx(held_up.throttle_time_ms / 1000, abs=0.1)
        epoch = 3
        while not answer.responses:
            assert answer.throttle_time_ms > 0
            seconds, answer = await timed(reader, fetch_request("t", {0: 1}, session=(session, epoch)), 12)
            epoch += 1
        assert len(answer.responses[0].partitions[0].records) > 6000
        assert trio.current_time() - began < 15  # the first one is forgotten, and what was not sent has not counted


async def test_a_new_session_that_is_held_up_is_none(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        assert await cluster.produce(1, "t", 0, bytes(20_000)) == 0
        reader = client(cluster, "reader")
        await set_quota(reader, "consumer_byte_rate", 1000, user=None, client_id="reader")
        held_up = await reader.send(fetch_request("t", {0: 0}, session=(0, 0)), 12)
        assert held_up.throttle_time_ms > 9_000
        assert (held_up.responses, held_up.session_id) == ([], 0)
        assert len(cluster.services(1).fetch_sessions) == 0


async def test_a_fetch_reads_no_more_than_it_could_ever_be_given(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        for _ in range(20):
            assert await cluster.produce(1, "t", 0, bytes(1000)) == 0
        reader = client(cluster, "reader")
        await set_quota(reader, "consumer_byte_rate", 800, user=None, client_id=None)
        answer = await reader.send(fetch_request("t", {0: 0}), 12)
        assert 4_000 < len(answer.responses[0].partitions[0].records) <= 8_000
        assert answer.throttle_time_ms == 0


async def test_changes_beyond_the_quota_are_refused_and_older_versions_held_up(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At one partition a second, eleven may come at once, and once more than there is left (KIP-599)."""

    def create(*names: str, partitions: int = 4, validate_only: bool = False) -> CreateTopicsRequest:
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=1) for name in names]
        return CreateTopicsRequest(topics=topics, validate_only=validate_only)

    refused = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    async with running(1) as cluster:
        admin = client(cluster, "admin")
        await set_quota(admin, "controller_mutation_rate", 1, user="ANONYMOUS")
        answer = await admin.send(create("free", partitions=100, validate_only=True), 6)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 0)
        answer = await admin.send(create("a", "b", "c", "d"), 6)
        assert {topic.name: topic.error_code for topic in answer.topics} == {"a": 0, "b": 0, "c": 0, "d": refused}
        assert answer.throttle_time_ms == pytest.approx(1000, abs=100)
        more = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name="a", count=6, assignments=None)], timeout_ms=10_000
        )
        seconds, answer = await timed(admin, more, 3)
        assert (answer.results[0].error_code, answer.throttle_time_ms) == (0, 0)  # at 0 there may be one more
        assert seconds == pytest.approx(1, abs=0.1)
        seconds, answer = await timed(admin, more, 3)
        assert answer.results[0].error_code == ErrorCode.INVALID_PARTITIONS  # what cannot be done costs nothing
        delete = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in ("a", "b")], timeout_ms=10_000)
        answer = await admin.send(delete, 6)
        assert {topic.name: topic.error_code for topic in answer.responses} == {"a": refused, "b": refused}
        assert answer.throttle_time_ms == pytest.approx(2000, abs=100)
        seconds, answer = await timed(admin, create("e"), 5)
        assert seconds == pytest.approx(2, abs=0.1)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, pytest.approx(4000, abs=100))
        old_delete = DeleteTopicsRequest(topic_names=["b"], timeout_ms=10_000)
        seconds, answer = await timed(admin, old_delete, 4)
        assert (answer.responses[0].error_code, answer.throttle_time_ms) == (0, pytest.approx(4000, abs=100))
        assert seconds == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("rate", [0, -5])
async def test_a_rate_of_changes_that_allows_none_refuses_and_holds_nobody_up(
    rate: float, autojump_clock: trio.testing.MockClock
) -> None:
    """In Kafka the time overflows, or is negative."""
    async with running(1) as cluster:
        admin = client(cluster, "admin")
        await set_quota(admin, "controller_mutation_rate", rate, user="ANONYMOUS")
        codes = [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED] if rate == 0 else 2 * [ErrorCode.THROTTLING_QUOTA_EXCEEDED]
        for name, version, code in (("a", 7, codes[0]), ("b", 7, codes[1]), ("c", 5, 0)):
            topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            seconds, answer = await timed(admin, CreateTopicsRequest(topics=[topic]), version)
            assert (answer.topics[0].error_code, answer.throttle_time_ms) == (code, 0)
            assert seconds < 1
        assert (await timed(admin, MetadataRequest(topics=[]), 9))[0] < 1


@pytest.mark.cpython
async def test_client_ids_that_a_client_makes_up_take_no_room(autojump_clock: trio.testing.MockClock) -> None:
    import tracemalloc

    quotas = ClientQuotas(ClientQuotaSettings.from_properties({}))
    quotas.update(QuotaEntity("", DEFAULT), {"request_percentage": 1, "producer_byte_rate": 1000})
    tracemalloc.start()
    try:
        for number in range(300):
            cost = RequestCost(quotas, SystemClock(), "ANONYMOUS", f"{number}{'€' * 10_000}")
            cost.charge(ApiKey.PRODUCE, 1, has_response=True)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(list(quotas.produce.in_use())) == 300
    assert kept < 5_000_000


async def test_topics_that_are_made_because_they_are_named_count_and_are_not_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1, num_partitions="20") as cluster:
        await set_quota(client(cluster, "admin"), "controller_mutation_rate", 1, user="ANONYMOUS", client_id="client")
        answer = await cluster.metadata(1, "named", create=True)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 0)
        topic = CreatableTopic(name="asked", num_partitions=1, replication_factor=1)
        answer = await cluster.ask(1, CreateTopicsRequest(topics=[topic]), 7)
        assert answer.topics[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert answer.throttle_time_ms == pytest.approx(9_000, abs=100)


async def test_the_time_of_requests_is_held_against_clients_and_not_against_brokers(
    autojump_clock: trio.testing.MockClock,
) -> None:
    properties = {"broker.id": "1", "log.dirs": "/data", "listeners": "PLAINTEXT://broker1:9092"}
    async with running() as cluster:
        server = BrokerServer(
            load_config(properties),
            network=cluster.network,
            clock=SystemClock(),  # in which requests take some time
            workers=InlineWorkers(),
            disk=MemoryDisk(),
        )
        async with serving(server):
            slow = client(cluster, "slow")
            await set_quota(slow, "request_percentage", 1e-6, client_id="slow")
            answer = await slow.send(MetadataRequest(topics=[]), 9)
            assert answer.throttle_time_ms == MAX_THROTTLE_MS
            seconds, answer = await timed(slow, fetch_request("missing", {0: 0}), 12)
            assert seconds == pytest.approx(1, abs=0.1)
            assert (answer.throttle_time_ms, answer.responses) == (MAX_THROTTLE_MS, [])
            as_broker = fetch_request("missing", {0: 0})
            as_broker.replica_id = 2
            assert (await slow.send(as_broker, 12)).throttle_time_ms == 0
            await set_quota(client(cluster, "admin"), "request_percentage", None, client_id="slow")
            assert (await slow.send(MetadataRequest(topics=[]), 9)).throttle_time_ms == 0


async def test_a_quota_holds_on_every_broker_and_after_a_restart(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("t", (2,))
        await set_quota(client(cluster, "admin"), "producer_byte_rate", 1000, user="ANONYMOUS", client_id=None)
        await until(lambda: cluster.services(2).client_quotas.is_on)
        assert (await client(cluster, "a", 2).send(produce_of("t", 20_000), 9)).throttle_time_ms > 9_000
        assert (await client(cluster, "b", 2).send(produce_of("t", 5_000), 9)).throttle_time_ms == 0
        await cluster.stop(2)
        await cluster.start(2)
        await until(lambda: cluster.services(1).metadata.partition("t", 0).leader == 2)
        assert (await client(cluster, "a", 2).send(produce_of("t", 20_000), 9)).throttle_time_ms > 9_000
        await set_quota(client(cluster, "admin"), "producer_byte_rate", None, user="ANONYMOUS", client_id=None)
        await until(lambda: not cluster.services(2).client_quotas.is_on)
        assert (await client(cluster, "c", 2).send(produce_of("t", 20_000), 9)).throttle_time_ms == 0


async def test_followers_keep_up_whatever_quotas_there_are(autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, 2) as cluster:
        await cluster.create("t", (1, 2))
        for key in ("consumer_byte_rate", "request_percentage"):
            await set_quota(client(cluster, "admin"), key, 1, user=None)
        await until(lambda: cluster.services(1).client_quotas.is_on)
        began = trio.current_time()
        for _ in range(5):
            assert (await client(cluster, "p").send(produce_of("t", 100_000, acks=-1), 9)).throttle_time_ms == 0
        assert trio.current_time() - began < 5


async def test_what_one_tenant_does_beyond_its_quota_takes_nothing_from_another(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Five connections of one tenant push without a pause; the other's requests are answered as if there were none."""
    async with running(1) as cluster:
        await cluster.create("t", (1,))
        await set_quota(client(cluster, "admin"), "producer_byte_rate", 10_000, client_id="greedy")
        taken = 0

        async def push() -> None:
            nonlocal taken
            greedy = client(cluster, "greedy")
            while True:
                request = produce_of("t", 5000)
                await greedy.send(request, 9)
                taken += size(request, 9, "greedy")

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(push)
            await trio.sleep(10)
            modest = client(cluster, "modest")
            for _ in range(100):
                seconds, answer = await timed(modest, produce_of("t", 1000), 9)
                assert (seconds, answer.throttle_time_ms) == (pytest.approx(0, abs=0.05), 0)
                await trio.sleep(0.5)
            assert 0.9 < taken / (10_000 * 60) < 1.5
            nursery.cancel_scope.cancel()


async def connect(cluster: MemoryCluster) -> tuple[float, bool]:
    """After how many seconds a new connection is answered or closed, and whether it is answered."""
    began = trio.current_time()
    connection = await cluster.network.connect("broker1", 9092)
    await connection.send([frame(MetadataRequest(topics=[]), 9, 1)])
    try:
        is_answered = bool(await connection.receive(4))
    except OSError:
        is_answered = False
    connection.close()
    return trio.current_time() - began, is_answered


@pytest.mark.parametrize("prefix", ["", "listener_name_plaintext_"])
async def test_connections_that_come_too_fast_wait(prefix: str, autojump_clock: trio.testing.MockClock) -> None:
    async with running(1, **{f"{prefix}max_connection_creation_rate": "2"}) as cluster:
        found = [await connect(cluster) for _ in range(25)]
        assert all(is_answered for _, is_answered in found)
        assert max(seconds for seconds, _ in found[:15]) < 0.1
        assert 0.2 < max(seconds for seconds, _ in found) <= 1.1  # a window at most


async def test_an_address_that_comes_too_often_is_closed_after_a_while(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running(1) as cluster:
        admin = client(cluster, "admin")
        ip = [EntityData(entity_type="ip", entity_name=None)]
        op = OpData(key="connection_creation_rate", value=2)
        (answer,) = (await admin.send(AlterClientQuotasRequest(entries=[EntryData(entity=ip, ops=[op])]), 1)).entries
        assert answer.error_code == 0
        found = [await connect(cluster) for _ in range(25)]
        assert all(is_answered for _, is_answered in found[:20])
        seconds, is_answered = next(each for each in found if not each[1])
        assert 0.4 < seconds <= 1.1
        assert not is_answered
        await trio.sleep(12)
        assert (await connect(cluster))[1]
