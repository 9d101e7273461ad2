"""Transactions on a broker that dies, by clients that die: what is committed is there once, what is not is never read."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from ottla.compat_tests.abandoned_transaction import write_and_hang
from ottla.compat_tests.brokers import Restartable
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.session import ClientSession, eventually
from ottla.compat_tests.wire_client import Operator

pytestmark = pytest.mark.restart
KILLS = 5
COMMITS_BETWEEN_KILLS = 10


@pytest.fixture
def client(client_name: str, broker_process: Restartable) -> Iterator[ClientSession]:
    """The client under test, on a broker of the test's own."""
    driver = CLIENTS[client_name].connect(broker_process.bootstrap)
    session = ClientSession(client_name, driver)
    yield session
    session.close()
    driver.close()


class Writer(threading.Thread):
    """Commits one transaction after the other, each of three records; every fifth is aborted."""

    def __init__(self, client: ClientSession) -> None:
        super().__init__()
        self._client = client
        self.stopped = threading.Event()
        self.committed: list[bytes] = []
        self.in_doubt: set[bytes] = set()
        self.failures: list[BaseException] = []
        self._number = 0

    def run(self) -> None:
        while not self.stopped.is_set():
            try:
                producer = self._client.producer(transactional_id="writer", delivery_timeout_ms=30_000)
                while not self.stopped.is_set():
                    self._write(producer)
            except model.ClientFailure:
                continue  # the broker was away for too long for this producer: its successor goes on
            except BaseException as error:
                self.failures.append(error)
                return

    def _write(self, producer: model.Producer) -> None:
        self._number += 1
        value = b"%06d" % self._number
        producer.begin()
        for _ in range(3):
            producer.send("log", value, partition=0)
        if self._number % 5 == 0:
            producer.flush()
            producer.abort()
            return
        self.in_doubt.add(value)
        producer.commit()
        self.in_doubt.discard(value)
        self.committed.append(value)


@pytest.mark.capability("kill -9: transactions are all or nothing")
def test_transactions_survive_kills(client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    writer = Writer(client)

    def reached(count: int) -> bool:
        return bool(writer.failures) or len(writer.committed) >= count

    writer.start()
    try:
        for _ in range(KILLS):
            eventually(partial(reached, len(writer.committed) + COMMITS_BETWEEN_KILLS), timeout_s=120)
            assert not writer.failures
            broker_process.kill()
            broker_process.start()
        eventually(partial(reached, len(writer.committed) + COMMITS_BETWEEN_KILLS), timeout_s=120)
    finally:
        writer.stopped.set()
        writer.join(timeout=150)
    assert not writer.failures
    assert not writer.is_alive()
    after = ClientSession(client.name, CLIENTS[client.name].connect(broker_process.bootstrap))
    producer = after.producer(transactional_id="writer")
    producer.begin()
    producer.send("log", b"end", partition=0)
    producer.commit()
    values = read_until(after, b"end")
    after.close()
    assert values[-1] == b"end"
    found = values[:-1]
    distinct = list(dict.fromkeys(found))
    assert found == [value for value in distinct for _ in range(3)], "each transaction whole, and once"
    assert [value for value in distinct if value not in writer.in_doubt] == writer.committed


def read_until(client: ClientSession, last: bytes) -> list[bytes | None]:
    """The committed values of the topic up to one."""
    reader = client.consumer(read_committed=True)
    reader.assign({("log", 0): "beginning"})
    values: list[bytes | None] = []

    def is_read() -> bool:
        values.extend(message.value for message in reader.poll(0.2))
        return last in values

    eventually(is_read)
    return values


@pytest.mark.capability("kill -9 of a client: its successor aborts the open transaction")
def test_client_is_killed(client: ClientSession, broker_process: Restartable) -> None:
    Operator(broker_process.bootstrap).create_topic("log", 1, {})
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Event()
    victim = spawn.Process(target=write_and_hang, args=(client.name, broker_process.bootstrap, ready))
    victim.start()
    eventually(lambda: ready.is_set() or not victim.is_alive(), timeout_s=120)  # some clients need a JVM for it
    assert ready.is_set()
    victim.kill()
    victim.join()
    successor = client.producer(transactional_id="dies")
    successor.begin()
    successor.send("log", b"kept", partition=0)
    successor.commit()
    assert read_until(client, b"kept") == [b"kept"]
