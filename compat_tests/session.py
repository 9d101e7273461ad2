"""Client sessions of tests, which close their producers, consumers and admins, and helpers for short waits."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Protocol, TypeVar

from ottla.base.errors import ErrorCode
from ottla.compat_tests.clients import model

TIMEOUT_S = 30.0
Result = TypeVar("Result")


class Closable(Protocol):
    """Anything with close()."""

    def close(self) -> None:
        """Let go."""


Handle = TypeVar("Handle", bound=Closable)


class ClientSession:
    """One client for the length of one test. Its consumers are members of groups by ``group_protocol``, unless told another."""

    def __init__(
        self, name: str, driver: model.Client, group_protocol: Literal["classic", "consumer"] = "classic"
    ) -> None:
        self.name = name
        self.group_protocol: Literal["classic", "consumer"] = group_protocol
        self._driver = driver
        self._open: list[Closable] = []
        self._admin: model.Admin | None = None

    def _keep(self, handle: Handle) -> Handle:
        self._open.append(handle)
        return handle

    def producer(self, **settings: Any) -> model.Producer:
        """A producer with these ProducerSettings."""
        return self._keep(self._driver.producer(model.ProducerSettings(**settings)))

    def consumer(self, **settings: Any) -> model.Consumer:
        """A consumer with these ConsumerSettings."""
        settings = {"group_protocol": self.group_protocol, **settings}
        return self._keep(self._driver.consumer(model.ConsumerSettings(**settings)))

    @property
    def admin(self) -> model.Admin:
        """The test's admin client, made when it is first used."""
        if self._admin is None:
            self._admin = self._keep(self._driver.admin())
        return self._admin

    def produce(self, topic: str, values: list[bytes], *, partition: int | None = 0, **settings: Any) -> list[int]:
        """Send values and wait; their offsets."""
        with self.brief_producer(**settings) as producer:
            for value in values:
                producer.send(topic, value, partition=partition)
            return [delivery.offset for delivery in producer.flush()]

    @contextlib.contextmanager
    def brief_producer(self, **settings: Any) -> Iterator[model.Producer]:
        """A producer that goes with the block.

        Some clients ask for the topics of a producer again later, which creates a topic that was deleted.
        """
        producer = self.producer(**settings)
        yield producer
        self._open.remove(producer)
        producer.close()

    def read(
        self, topic: str, count: int, *, partition: int = 0, timeout_s: float = TIMEOUT_S, **settings: Any
    ) -> list[model.Message]:
        """The first ``count`` records of a partition, through a consumer of its own."""
        consumer = self.consumer(**settings)
        consumer.assign({(topic, partition): "beginning"})
        return consume(consumer, count, timeout_s)

    def close(self) -> None:
        """Close everything that the test has made."""
        for handle in reversed(self._open):
            with contextlib.suppress(model.ClientFailure):
                handle.close()


def consume(consumer: model.Consumer, count: int, timeout_s: float = TIMEOUT_S) -> list[model.Message]:
    """Poll until at least ``count`` records have arrived."""
    messages: list[model.Message] = []
    deadline = time.monotonic() + timeout_s
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} records after {timeout_s} s"
        messages += consumer.poll(0.2)
    return messages


def eventually(check: Callable[[], Result], timeout_s: float = TIMEOUT_S) -> Result:
    """Call ``check`` until it gives something true; for what a broker or a client does in the background."""
    deadline = time.monotonic() + timeout_s
    while not (result := check()):
        assert time.monotonic() < deadline, f"still {result!r} after {timeout_s} s"
        time.sleep(0.02)
    return result


def commit(consumer: model.Consumer, offsets: Mapping[tuple[str, int], model.Committed]) -> None:
    """Commit as a member, after polling once more if it joins again just now: kafka-python 3 may, when metadata come late.

    That poll is long, for 3.0.12 is in no group for ever when a poll ends at the moment it joins.
    """

    def is_done() -> bool:
        try:
            consumer.commit(offsets)
        except model.ClientFailure as failure:
            if failure.code != ErrorCode.REBALANCE_IN_PROGRESS:
                raise
            consumer.poll(10.0)
            return False
        return True

    eventually(is_done)
