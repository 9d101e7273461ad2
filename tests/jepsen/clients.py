"""The base of all clients of the workload: a thread that works until it is told to stop, and records its operations.

Each object of a client library is a process of its own in the history (``kafka-python.3``), because the order of records is
guaranteed only for the same object. Clients give up so soon (``GIVE_UP_S``) that a run has unknown outcomes.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter

from .history import Partition, Recorder

PARTITIONS = 3
REPLICAS = 3
PLAIN, TRANSACTIONAL, MADE = "plain", "transactional", "made"
"""Topics: written by idempotent producers; in transactions; and transformed from the first one, each record once."""
TOPICS = (PLAIN, TRANSACTIONAL, MADE)
GIVE_UP_S = 20.0
BACKOFF_MS = 500
LIBRDKAFKA = {
    "socket.timeout.ms": 10_000,
    "reconnect.backoff.max.ms": BACKOFF_MS,
    "metadata.recovery.rebootstrap.trigger.ms": 10_000,
}
"""For each client on it. One that a broker told of no live broker has forgotten all of them, and asks nobody for five minutes."""


class Client(ABC):
    """``errors`` counts the errors of its library, ``unsure`` the records whose outcome is unknown."""

    def __init__(self, name: str, bootstrap: str, recorder: Recorder) -> None:
        self.name = name
        self.bootstrap = bootstrap
        self.recorder = recorder
        self.errors: Counter[str] = Counter()
        self.unsure = 0
        self.lives = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Tell it to stop, without waiting."""
        self._is_over.set()

    def join(self, limit_s: float) -> bool:
        """Wait for its end; False if it does not end."""
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    @property
    def is_over(self) -> bool:
        return self._is_over.is_set()

    def rest(self, seconds: float) -> None:
        """Wait for a while, or until the end."""
        self._is_over.wait(seconds)

    def next_life(self) -> str:
        """The name of its next process."""
        self.lives += 1
        return f"{self.name}.{self.lives}"

    def failed(self, error: object) -> None:
        """Count an error of the library."""
        self.errors[f"{type(error).__name__}: {error}"[:160]] += 1

    def gave_up(self, error: object) -> None:
        """Count a record whose outcome is unknown, and why."""
        self.unsure += 1
        self.failed(error)

    def _run(self) -> None:
        while not self.is_over:
            try:
                self.work(self.next_life())
            except Exception as error:  # whatever a library raises: a new object continues
                self.failed(error)
                self.rest(0.5)

    @abstractmethod
    def work(self, process: str) -> None:
        """Work with one object of the library, until ``is_over`` or an error after which the object cannot be used."""


def partitions_of(topic: str) -> list[Partition]:
    """All partitions of a topic."""
    return [Partition(topic, number) for number in range(PARTITIONS)]
