"""Stock clients at brokers of Ottla in a cluster of KRaft: they write transactions and read what is committed.

With transactions of version 2 (KIP-890) a producer has an epoch for each transaction. A client that does not have them is served
as before; of these, librdkafka is one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.spark.kafka_format import PATIENCE_S, KafkaFormat
from ottla.spark.session import SparkSetupError, build_session
from ottla.wire.records import iter_batches

from ..mixed.helpers.mixed import BOTH, OTTLA
from ..mixed.test_mixed_coordinators import TRANSACTION, coordinated_by
from .helpers.on_quorum import QuorumMixed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

CLASSIC, V2 = "classic transactions", "transactions of version 2"
TRANSACTIONS = 6
"""Every third one is aborted."""
COMMITTED = [b"%d" % number for number in range(TRANSACTIONS) if number % 3 < 2]
READ_COMMITTED = {"kafka.isolation.level": "read_committed"}


def bootstrap(mixed: QuorumMixed, brokers: str) -> str:
    """The addresses of the brokers of one kind."""
    return ",".join(mixed.cluster.broker(each).address for each in mixed.quorum.of_kind(brokers))


@contextlib.contextmanager
def client_of(mixed: QuorumMixed, client: str, brokers: str) -> Iterator[ClientSession]:
    """A stock client that is told of the brokers of one kind only."""
    driver = CLIENTS[client].connect(bootstrap(mixed, brokers))
    with contextlib.closing(driver), contextlib.closing(ClientSession(client, driver)) as session:
        yield session


def create(mixed: QuorumMixed, topic: str, brokers: str) -> None:
    """Two brokers of a kind lead a partition each, and follow in the other."""
    replicas = mixed.quorum.of_kind(brokers)[:2]
    mixed.create(topic, replicas, replicas[::-1], min_insync_replicas="2")


def write_transactions(mixed: QuorumMixed, client: ClientSession, topic: str, coordinator: int) -> None:
    """Transactions of a record for each partition; ``COMMITTED`` are the values to be read."""
    transactional_id = coordinated_by(mixed, TRANSACTION, coordinator, topic)
    producer = client.producer(transactional_id=transactional_id)
    for number in range(TRANSACTIONS):
        value = b"%d" % number
        producer.begin()
        for partition in range(2):
            producer.send(topic, value, partition=partition)
        if value in COMMITTED:
            producer.commit()
        else:
            producer.flush()
            producer.abort()


@pytest.mark.parametrize("brokers", BOTH)
@pytest.mark.parametrize(
    ("name", "kind"), [("confluent-kafka", CLASSIC), ("franz-go", V2)], ids=["confluent-kafka", "franz-go"]
)
def test_a_client_writes_transactions_and_reads_those_that_are_committed(
    mixed: QuorumMixed, name: str, kind: str, brokers: str, topic: str
) -> None:
    """At brokers of either kind: Apache Kafka's show which transactions the client has."""
    create(mixed, topic, brokers)
    with client_of(mixed, name, brokers) as client:
        write_transactions(mixed, client, topic, mixed.one(brokers))
        for partition in range(2):
            found = client.read(topic, len(COMMITTED), partition=partition, read_committed=True)
            assert [message.value for message in found] == COMMITTED
            assert len(client.read(topic, TRANSACTIONS, partition=partition)) == TRANSACTIONS
    for partition in range(2):
        batches = iter_batches(mixed.wait_same(topic, partition))
        epochs = [batch.producer_epoch for batch in batches if batch.is_control]
        assert len(epochs) == TRANSACTIONS
        assert len(set(epochs)) == (TRANSACTIONS if kind == V2 else 1)


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    try:
        session = build_session(
            "quorum", master="local[2]", settings={"spark.sql.warehouse.dir": str(tmp_path / "warehouse")}
        )
    except SparkSetupError as error:
        toolchains.missing(str(error))
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_spark_reads_what_is_committed_and_writes_it_on(
    mixed: QuorumMixed, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    """As a batch and as a stream."""
    source, target = f"{topic}-source", f"{topic}-target"
    kafka = KafkaFormat(spark, bootstrap(mixed, OTTLA), tmp_path)
    for each in (source, target):
        create(mixed, each, OTTLA)
    with client_of(mixed, "confluent-kafka", OTTLA) as client:
        write_transactions(mixed, client, source, mixed.one(OTTLA))
        rows = kafka.read(subscribe=source, **READ_COMMITTED)
        assert sorted(row.value for row in rows.select("value").collect()) == sorted(COMMITTED * 2)
        stream = kafka.read_stream(subscribe=source, **READ_COMMITTED).select("partition", "value")
        query = kafka.write_stream(stream, topic=target, checkpointLocation=kafka.new_checkpoint())
        running = query.trigger(availableNow=True).start()
        assert running.awaitTermination(PATIENCE_S)
        for partition in range(2):
            found = client.read(target, len(COMMITTED), partition=partition)
            assert [message.value for message in found] == COMMITTED
