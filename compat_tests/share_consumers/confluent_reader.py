"""A share consumer of confluent-kafka that does what it is told on standard input, a command a line.

It has the arguments, the commands and the output of ``ShareReader.java``. Of the settings it knows those that librdkafka has.
"""

from __future__ import annotations

import sys
from typing import Any

from confluent_kafka import AcknowledgeType, KafkaException, Message, ShareConsumer

_UNKNOWN = ("share.acquire.mode",)
"""Settings of Java's consumer that librdkafka does not have."""


class Reader:
    """One consumer."""

    def __init__(self, bootstrap: str, group_id: str, settings: list[str]) -> None:
        given = dict(each.split("=", 1) for each in settings)
        known = {name: value for name, value in given.items() if name not in _UNKNOWN}
        self._consumer = ShareConsumer({"bootstrap.servers": bootstrap, "group.id": group_id, **known})
        self._records: dict[tuple[str, ...], Message] = {}

    def run(self, command: str, *words: str) -> None:
        """One command. Raises KafkaException and others."""
        getattr(self, command)(*words)

    def subscribe(self, topic: str) -> None:
        """To one topic."""
        self._consumer.subscribe([topic])

    def poll(self, milliseconds: str) -> None:
        """A line for each record."""
        for each in self._consumer.poll(int(milliseconds) / 1000):
            if each.error() is not None:
                raise KafkaException(each.error())
            where = (str(each.topic()), str(each.partition()), str(each.offset()))
            self._records[where] = each
            value: Any = each.value()
            print(*where, each.delivery_count(), value.decode())

    def acknowledge(self, *words: str) -> None:
        """Topic, partition, offset and type."""
        self._consumer.acknowledge(self._records[words[:3]], AcknowledgeType[words[3].upper()])

    def commit(self) -> None:
        """A line for each partition."""
        for where, error in self._consumer.commit_sync(30).items():
            print(where.topic, where.partition, "-" if error is None else error.args[0].name())

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def main() -> None:
    """Run the commands."""
    bootstrap, group_id, *settings = sys.argv[1:]
    reader = Reader(bootstrap, group_id, settings)
    for line in sys.stdin:
        words = line.split()
        try:
            reader.run(*words)
            print("done", flush=True)
        except Exception as error:  # the test says which one it expects
            print("failed", type(error).__name__, error, flush=True)
        if words[0] == "close":
            break


if __name__ == "__main__":
    main()
