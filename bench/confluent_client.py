"""Produces or consumes with confluent-kafka, in its own process; prints one line of JSON.

``python -m bench.confluent_client produce|consume HOST:PORT TOPIC PARTITIONS RECORDS SIZE [SETTINGS]``; the settings are JSON.

The consumer is assigned its partitions, so the figure contains no group join, and ``fetch.queue.backoff.ms`` is 2: with
the default of 1,000 the client pauses whenever its queue is full, and mainly that pause would be measured.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition


def produce(bootstrap: str, topic: str, records: int, size: int, settings: dict[str, str]) -> float:
    """Seconds from the first record to the last acknowledgement."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": 1,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 262_144,
            **settings,
        }
    )
    value = b"x" * size
    started = time.perf_counter()
    for index in range(records):
        while True:
            try:
                producer.produce(topic, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        if index % 1000 == 0:
            producer.poll(0)
    left = producer.flush(300)
    seconds = time.perf_counter() - started
    if left or failed:
        raise RuntimeError(f"{left} records left, {len(failed)} failed: {failed[:1]}")
    return seconds


def consume(bootstrap: str, topic: str, partitions: int, records: int, more: dict[str, str]) -> float:
    """Seconds from the assignment to the last of ``records``."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "enable.auto.commit": False,
        "fetch.queue.backoff.ms": 2,
        **more,
    }
    consumer = Consumer(settings)
    started = time.perf_counter()
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    left = records
    while left > 0:
        messages = consumer.consume(min(10_000, left), timeout=60)
        if not messages:
            raise RuntimeError(f"no record for a minute, {left} left")
        for message in messages:
            if message.error():
                raise RuntimeError(str(message.error()))
        left -= len(messages)
    seconds = time.perf_counter() - started
    consumer.close()
    return seconds


def main() -> None:
    _, action, bootstrap, topic, partitions, records, size, *rest = sys.argv
    settings: dict[str, str] = json.loads(rest[0]) if rest else {}
    if action == "produce":
        seconds = produce(bootstrap, topic, int(records), int(size), settings)
    else:
        seconds = consume(bootstrap, topic, int(partitions), int(records), settings)
    print(json.dumps({"records_s": int(records) / seconds}))


if __name__ == "__main__":
    main()
