"""A broker that stops, dies and comes back: nothing acknowledged is lost, doubled or reordered, and clients go on.

These tests start a broker of their own; there is nothing for them to do with one that runs already.

Not here, but in the tests of the log, on a disk that fails when it is told to: a crash while logs are loaded, a tail of
zeros, a full disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from ottla.compat_tests.brokers import Restartable
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.raw.requests import batch, fetch, new_producer, produce
from ottla.compat_tests.session import ClientSession, commit, consume, eventually
from ottla.compat_tests.wire_client import Operator, connect

pytestmark = pytest.mark.restart
KILLS = 10
CONFIRMED_BETWEEN_KILLS = 40


@pytest.fixture
def client(client_name: str, broker_process: Restartable) -> Iterator[ClientSession]:
    """The client under test, on a broker of the test's own."""
    driver = CLIENTS[client_name].connect(broker_process.bootstrap)
    session = ClientSession(client_name, driver)
    yield session
    session.close()
    driver.close()


def again(client: ClientSession, broker_process: Restartable) -> ClientSession:
    """The same client, which knows nothing of before."""
    return ClientSession(client.name, CLIENTS[client.name].connect(broker_process.bootstrap), client.group_protocol)


@pytest.mark.capability("restart: everything is still there")
def test_clean_restart(group_client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("kept", 2, {"retention.ms": "987654321"})
    group_client.produce("kept", [b"%d" % number for number in range(20)])
    reader = group_client.consumer(group_id="kept-group")
    reader.subscribe(["kept"])
    consume(reader, 20)
    commit(reader, {("kept", 0): model.Committed(13)})
    reader.close()
    cluster_id = group_client.admin.describe_cluster().cluster_id
    broker_process.stop()
    broker_process.start()
    after = again(group_client, broker_process)
    assert after.admin.describe_topic("kept").leaders.keys() == {0, 1}
    assert after.admin.describe_configs("topic", "kept")["retention.ms"].value == "987654321"
    assert after.admin.describe_cluster().cluster_id == cluster_id
    assert [message.value for message in after.read("kept", 20)] == [b"%d" % number for number in range(20)]
    resumed = after.consumer(group_id="kept-group")
    resumed.subscribe(["kept"])
    assert [message.offset for message in consume(resumed, 7)] == list(range(13, 20))
    after.close()


@pytest.mark.capability("restart: running clients continue")
def test_running_clients_go_on(group_client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    # Nothing is in flight while the broker stops, so that one without idempotence repeats nothing either.
    producer = group_client.producer(idempotent="idempotent producer" not in CLIENTS[group_client.name].lacks)
    consumer = group_client.consumer(group_id="group")
    consumer.subscribe(["log"])
    for round_number in range(3):
        producer.send("log", b"%d" % round_number, partition=0)
        producer.flush()
        (message,) = consume(consumer, 1, timeout_s=60)
        assert (message.offset, message.value) == (round_number, b"%d" % round_number)
        commit(consumer, {("log", 0): model.Committed(message.offset + 1)})
        if round_number < 2:
            broker_process.stop()
            broker_process.start()


@pytest.mark.capability("kill -9: acknowledged records, once and in order")
def test_acknowledged_records_survive_kills(client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    acknowledged: list[tuple[int, bytes]] = []
    stop = threading.Event()
    failures: list[BaseException] = []

    def produce() -> None:
        """Ten records at a time, for as long as the test goes on; acks=all, idempotent."""
        try:
            producer = client.producer(idempotent=True, delivery_timeout_ms=120_000, linger_ms=2)
            number = 0
            while not stop.is_set():
                values = [b"%08d" % (number + step) for step in range(10)]
                for value in values:
                    producer.send("log", value, partition=0)
                deliveries = producer.flush()
                acknowledged.extend(
                    (delivery.offset, value) for delivery, value in zip(deliveries, values, strict=True)
                )
                number += 10
        except BaseException as error:
            failures.append(error)

    def reached(count: int) -> bool:
        return bool(failures) or len(acknowledged) >= count

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        for _ in range(KILLS):
            target = len(acknowledged) + CONFIRMED_BETWEEN_KILLS
            eventually(partial(reached, target), timeout_s=90)
            assert not failures
            broker_process.kill()
            broker_process.start()
    finally:
        stop.set()
        thread.join(timeout=150)
    assert not failures
    assert not thread.is_alive()
    # Every record was acknowledged in the end, so the log holds exactly these.
    after = ClientSession(client.name, CLIENTS[client.name].connect(broker_process.bootstrap))
    messages = after.read("log", len(acknowledged))
    after.close()
    assert [(message.offset, message.value) for message in messages] == acknowledged
    assert [message.offset for message in messages] == list(range(len(messages)))


@pytest.mark.capability("kill -9: groups and committed offsets survive")
def test_committed_offsets_survive_a_kill(group_client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    group_client.produce("log", [b"%d" % number for number in range(10)])
    consumer = group_client.consumer(group_id="group")
    consumer.subscribe(["log"])
    consume(consumer, 10)
    commit(consumer, {("log", 0): model.Committed(4)})
    consumer.close()
    broker_process.kill()
    broker_process.start()
    after = again(group_client, broker_process)
    resumed = after.consumer(group_id="group")
    resumed.subscribe(["log"])
    assert [message.offset for message in consume(resumed, 6)] == list(range(4, 10))
    after.close()


@pytest.mark.capability("KIP-848: kill -9: members keep their partitions")
def test_members_keep_their_partitions(group_client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 4, {})
    members = [group_client.consumer(group_id="group") for _ in range(2)]

    def polled() -> list[model.Message]:
        return [message for member in members for message in member.poll(0.2)]

    def owned() -> list[frozenset[tuple[str, int]]]:
        return [member.assignment() for member in members]

    for member in members:
        member.subscribe(["log"])
    eventually(lambda: polled() is not None and sorted(map(len, owned())) == [2, 2])
    before, told = owned(), [member.rebalances() for member in members]
    broker_process.kill()
    broker_process.start()
    for partition in range(4):
        group_client.produce("log", [b"%d" % partition], partition=partition)
    received: list[model.Message] = []

    def all_received() -> bool:
        received.extend(polled())
        return len(received) == 4

    eventually(all_received, timeout_s=60)
    for member in members:
        commit(member, {(topic, partition): model.Committed(1) for topic, partition in member.assignment()})
    assert owned() == before
    assert [member.rebalances() for member in members] == told


@pytest.mark.client("wire")
@pytest.mark.capability("kill -9: a repeated batch is still known")
def test_sequences_survive_kills(broker_process: Restartable) -> None:
    operator = Operator(broker_process.bootstrap)
    operator.create_topic("log", 1, {})
    with connect(broker_process.bootstrap) as connection:
        producer_id, epoch = new_producer(connection)
    now_ms = int(time.time() * 1000)  # the age of a producer is that of its newest record
    producer: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": epoch, "timestamp_ms": now_ms}
    batches = [batch(b"%d" % sequence, base_sequence=sequence, **producer) for sequence in range(6)]
    for written in (2, 4, 6):
        # The last batch from before the kill again, and two more. (Kafka's snapshots hold one batch of each producer.)
        sequences = range(max(0, written - 3), written)
        operator.wait_until_ready("log", 1)
        with connect(operator.leader("log")) as connection:
            answers = [produce(connection, "log", batches[sequence]) for sequence in sequences]
            assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, each) for each in sequences]
        broker_process.kill()
        broker_process.start()
    with connect(broker_process.bootstrap) as connection:
        assert new_producer(connection)[0] != producer_id
    operator.wait_until_ready("log", 1)
    with connect(operator.leader("log")) as connection:
        assert fetch(connection, "log", {0: 0})[0].high_watermark == 6
