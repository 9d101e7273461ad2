"""Clients that consume, transform and produce in one transaction: each record of one topic gives exactly one in another."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import confluent_kafka

from .clients import GIVE_UP_S, MADE
from .consumers import ConfluentReader, Member
from .history import Partition, Read
from .producers import abort, commit, send_in_transaction, transactional_producer

_GRACE_S = 5.0


class Transformer(Member):
    """After an aborted transaction it is replaced by one that continues from the group's committed offsets."""

    def read(self, process: str, until: float) -> None:
        producer = transactional_producer(self, self.name)
        reader = ConfluentReader(self, process, **{"enable.auto.commit": False})
        with contextlib.closing(reader):
            while self.goes_on(until):
                taken = reader.poll()
                if taken and not self._transform(reader, producer, process, taken):
                    return

    def _transform(
        self, reader: ConfluentReader, producer: Any, process: str, taken: dict[Partition, list[Read]]
    ) -> bool:
        """Transform some records in a transaction. Returns whether it was committed."""
        transaction = f"{process}/{self.recorder.number()}"
        producer.begin_transaction()
        try:
            for partition, reads in taken.items():
                for read in reads:
                    target = Partition(MADE, partition.number)
                    send_in_transaction(self, producer, process, transaction, target, source=read.value)
            self._send_offsets_in_time(reader, producer, taken)
        except (confluent_kafka.KafkaException, BufferError) as error:
            self.failed(error)
            abort(self, producer, process, transaction)
            return False
        return commit(self, producer, process, transaction)

    def _send_offsets_in_time(self, *arguments: Any) -> None:
        """As ``_send_offsets``; raises TimeoutError if librdkafka's call does not return, as when the coordinator dies during the
        request. The producer cannot be used then, and the next one fences it.
        """
        errors: list[confluent_kafka.KafkaException] = []

        def run() -> None:
            try:
                self._send_offsets(*arguments)
            except confluent_kafka.KafkaException as error:
                errors.append(error)

        thread = threading.Thread(target=run, name=f"{self.name} sends offsets", daemon=True)
        thread.start()
        thread.join(2 * GIVE_UP_S + _GRACE_S)
        if thread.is_alive():
            raise TimeoutError("send_offsets_to_transaction does not return")
        if errors:
            raise errors[0]

    def _send_offsets(self, reader: ConfluentReader, producer: Any, taken: dict[Partition, list[Read]]) -> None:
        offsets = [
            confluent_kafka.TopicPartition(partition.topic, partition.number, reads[-1].offset + 1)
            for partition, reads in taken.items()
        ]
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            try:
                producer.send_offsets_to_transaction(offsets, reader.consumer.consumer_group_metadata(), GIVE_UP_S)
                return
            except confluent_kafka.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
