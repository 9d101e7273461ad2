"""Clients that write: idempotent producers of kafka-python and confluent-kafka, and a transactional one that aborts at times."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import confluent_kafka
import kafka

from .clients import BACKOFF_MS, GIVE_UP_S, LIBRDKAFKA, PARTITIONS, PLAIN, TRANSACTIONAL, Client
from .history import Act, Partition, Recorder, Type

_INTERVAL_S = 0.1
_FLUSH_S = GIVE_UP_S + 10
_PATIENCE_S = 300
TRANSACTION_TIMEOUT_S = 20.0
_ABORTED = 0.2


class KafkaPythonProducer(Client):
    """Idempotent, to every partition in turn.

    When kafka-python 3.0 gives up a batch that it has sent already, it resets its producer id and drops the batches that it was
    about to send (``Sender._send_producer_data``), whose partitions stay muted: it never sends again. So it is replaced.
    """

    def work(self, process: str) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=self.bootstrap.split(","),
            acks="all",
            enable_idempotence=True,
            delivery_timeout_ms=int(GIVE_UP_S * 1000),
            request_timeout_ms=10_000,
            max_block_ms=int(GIVE_UP_S * 1000),
            reconnect_backoff_max_ms=BACKOFF_MS,
        )
        unsure = self.unsure
        try:
            while not self.is_over and self.unsure == unsure:
                for number in range(PARTITIONS):
                    self._send(producer, process, Partition(PLAIN, number))
                self.rest(_INTERVAL_S)
            if self.unsure == unsure:
                producer.flush(_FLUSH_S)
        finally:
            producer.close(timeout=5)

    def _send(self, producer: Any, process: str, partition: Partition) -> None:
        value = self.recorder.number()
        told = partial(self.recorder.add, process, act=Act.SEND, partition=partition, value=value)
        told(type=Type.INVOKE)
        try:
            future = producer.send(partition.topic, b"%d" % value, partition=partition.number)
        except Exception as error:
            # It was in no batch, but it is not known what the library did with it before it gave up.
            told(type=Type.INFO)
            self.gave_up(error)
            return
        future.add_callback(lambda written: told(type=Type.OK, offset=written.offset))
        future.add_errback(lambda error: (told(type=Type.INFO), self.gave_up(error)))


class ConfluentProducer(Client):
    """Idempotent, to every partition in turn."""

    def work(self, process: str) -> None:
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                # After it has given up a message, librdkafka raises its epoch, and repeats messages that may be written.
                "message.timeout.ms": _PATIENCE_S * 1000,
                **LIBRDKAFKA,
                "error_cb": self.failed,
                "debug": "eos",
            }
        )
        is_fatal = False
        while not self.is_over and not is_fatal:
            for number in range(PARTITIONS):
                is_fatal |= not self._send(producer, process, Partition(PLAIN, number))
            producer.poll(0)
            self.rest(_INTERVAL_S)
        producer.flush(_FLUSH_S)

    def _send(self, producer: Any, process: str, partition: Partition) -> bool:
        """Send; False once the producer accepts nothing any more."""
        value = self.recorder.number()
        told = partial(self.recorder.add, process, act=Act.SEND, partition=partition, value=value)
        told(type=Type.INVOKE)
        try:
            send(producer, partition, value, told, self)
        except BufferError:
            told(type=Type.FAIL)
            producer.poll(1.0)
        except confluent_kafka.KafkaException as error:
            told(type=Type.FAIL)  # refused at once, so it is not in the queue
            self.failed(error.args[0])
            return not error.args[0].fatal()
        return True


def send(producer: Any, partition: Partition, value: int, told: Any, client: Client) -> None:
    """Produce a value with confluent-kafka; ``told`` is called with its outcome. Raises the errors of ``produce``."""

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            told(type=Type.OK, offset=message.offset())
        else:
            told(type=Type.INFO)
            client.gave_up(error)

    producer.produce(partition.topic, b"%d" % value, partition=partition.number, on_delivery=delivered)


class TransactionalProducer(Client):
    """One transaction at a time, with some records for some partitions; some transactions are aborted.

    librdkafka's ``abort_transaction`` drops records from its queue that are not acknowledged, and uses their sequence numbers for
    the records of the next transaction. Some of the dropped ones may have been written; then the broker treats the next ones as
    duplicates. So the producer is replaced by one with another epoch.
    """

    def __init__(self, name: str, bootstrap: str, recorder: Recorder, seed: int) -> None:
        super().__init__(name, bootstrap, recorder)
        self._rng = random.Random(f"{seed} {name}")

    def work(self, process: str) -> None:
        producer = transactional_producer(self, self.name)
        unsure = self.unsure
        while not self.is_over and self.unsure == unsure:
            transaction = f"{process}/{self.recorder.number()}"
            producer.begin_transaction()
            for _ in range(self._rng.randint(1, 6)):
                partition = Partition(TRANSACTIONAL, self._rng.randrange(PARTITIONS))
                send_in_transaction(self, producer, process, transaction, partition)
            if self._rng.random() < _ABORTED:
                producer.poll(0.1)
                abort(self, producer, process, transaction)
            else:
                commit(self, producer, process, transaction)
            self.rest(_INTERVAL_S)


def transactional_producer(client: Client, transactional_id: str) -> Any:
    """A transactional producer of confluent-kafka that is ready. Raises KafkaException after a time-out."""
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": client.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
            "message.timeout.ms": int(TRANSACTION_TIMEOUT_S * 1000),
            **LIBRDKAFKA,
            "error_cb": client.failed,
            "debug": "eos",
        }
    )
    producer.init_transactions(60.0)
    return producer


def send_in_transaction(
    client: Client, producer: Any, process: str, transaction: str, partition: Partition, source: int | None = None
) -> None:
    """Send. Raises KafkaException once the producer accepts nothing any more; then the send has failed."""
    value = client.recorder.number()
    about = {"partition": partition, "value": value, "transaction": transaction, "source": source}
    told = partial(client.recorder.add, process, act=Act.SEND, **about)
    told(type=Type.INVOKE)
    try:
        send(producer, partition, value, told, client)
    except (confluent_kafka.KafkaException, BufferError):
        told(type=Type.FAIL)
        raise


def commit(client: Client, producer: Any, process: str, transaction: str) -> bool:
    """Commit, or abort if that fails. Returns whether it was committed. Raises KafkaException when that is not known."""
    told = partial(client.recorder.add, process, act=Act.COMMIT, transaction=transaction)
    told(type=Type.INVOKE)
    while True:
        try:
            producer.commit_transaction(GIVE_UP_S)
        except confluent_kafka.KafkaException as error:
            client.failed(error.args[0])
            if error.args[0].retriable() and not client.is_over:
                continue
            if not error.args[0].txn_requires_abort():
                told(type=Type.INFO)
                raise
            told(type=Type.FAIL)
            abort(client, producer, process, transaction)
            return False
        told(type=Type.OK)
        return True


def abort(client: Client, producer: Any, process: str, transaction: str) -> None:
    """Abort. Raises KafkaException when the outcome is not known."""
    told = partial(client.recorder.add, process, act=Act.ABORT, transaction=transaction)
    told(type=Type.INVOKE)
    while True:
        try:
            producer.abort_transaction(GIVE_UP_S)
        except confluent_kafka.KafkaException as error:
            client.failed(error.args[0])
            if error.args[0].retriable() and not client.is_over:
                continue
            told(type=Type.INFO)
            raise
        told(type=Type.OK)
        return
