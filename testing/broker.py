"""A broker in a thread of its own, for any program, and what a test may do to it.

Everything that touches the broker's parts runs in the broker's loop; the calling thread waits. No call needs a client, and
all may be made from synchronous code, from asyncio and from trio tasks alike: they take milliseconds, but for those that
are told to wait for something.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from ..base.errors import ErrorCode, KafkaError
from ..base.partitions import TopicPartition
from ..broker.embedded import describe, running_server
from ..handlers.services import Services
from ..replication.partition import Partition
from . import administration
from .access import Access
from .clock import AdjustableClock, BrokerClock
from .faults import Faults
from .interception import Interception
from .kafka_versions import served_by
from .loop_thread import LoopThread
from .records import KafkaRecord, wait_for_records
from .requests import Requests

T = TypeVar("T")


class Broker:
    """A broker in a thread of its own, for ``with``; or ``start`` and ``stop``.

    ``users`` are names with passwords, by which clients have to log in then (SASL with PLAIN or SCRAM), and with ``tls``
    connections are encrypted: ``client_properties`` says what a client needs. What users may do is for an authorizer to say,
    which the broker has with the property ``authorizer.class.name``. ``data_dir`` None is a temporary folder that goes with
    the broker; ``listen`` is ``HOST:PORT``, where port 0 picks a free one; ``properties`` are Kafka's broker properties by
    name; ``version`` ("3.9") lets it serve the API versions of that
    release of Apache Kafka (``kafka_versions``), those that Ottla does not serve left out.

    ``faults`` lets requests fail, ``requests`` records them, ``clock`` is the broker's time.
    """

    bootstrap_servers: str
    cluster_id: str
    broker_id: int
    data_dir: Path
    metrics_address: str | None

    def __init__(
        self,
        *,
        data_dir: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        properties: Mapping[str, str] | None = None,
        version: str | None = None,
        users: Mapping[str, str] | None = None,
        tls: bool = False,
    ) -> None:
        self._access = Access(users, tls)
        self._arguments = (data_dir, listen, properties)
        self._served = served_by(version)
        self._services: Services | None = None
        self._time = AdjustableClock()
        self._loop = LoopThread("broker", self._time)
        self._interception = Interception(self._loop.run_soon)
        self.faults: Faults = self._interception.faults
        self.requests: Requests = self._interception.requests
        self.clock = BrokerClock(self._time, self._loop.call, self._do_upkeep)

    def start(self) -> Broker:
        """Start; returns when clients can connect. Raises StartError, SettingError."""
        self._loop.start(self._serve)
        return self

    def stop(self) -> None:
        """Stop as SIGTERM does; returns when everything is flushed. Faults are removed."""
        self.faults.clear()
        self._loop.stop()
        self._access.close()

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # What a test may ask for

    @property
    def ca_file(self) -> Path | None:
        """What clients trust, a file in PEM that is there while the broker runs; None without TLS."""
        return self._access.ca_file

    def client_properties(self, user: str | None = None) -> dict[str, str]:
        """Kafka's client properties by which a user gets in, the first if none is named. KeyError for one that is unknown."""
        return {"bootstrap.servers": self.bootstrap_servers, **self._access.client_properties(user)}

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Make a topic; ``configs`` are Kafka's topic configs by name. Raises KafkaError."""
        self._call(lambda services: administration.create_topic(services, name, partitions, configs))

    def delete_topic(self, name: str) -> None:
        """Delete a topic and all in it. Raises KafkaError."""
        self._call(lambda services: administration.delete_topic(services, name))

    def records(self, topic: str, count: int = 0, timeout: float = 10.0) -> list[KafkaRecord]:
        """What a read_committed consumer would get of a topic from its beginning, by partition and offset.

        Waits, at most ``timeout`` seconds, until there are ``count``. Raises TimeoutError.
        """
        return self._call(
            lambda services: wait_for_records(lambda: _partitions(services, topic), topic, count, timeout)
        )

    def move_leader(self, topic: str, partition: int = 0) -> int:
        """Let the partition's leadership go elsewhere, as clients see it: the new leader epoch.

        Produce, Fetch and ListOffsets of this partition are answered NOT_LEADER_OR_FOLLOWER to each client id until that
        has asked for the topic's metadata. Raises KafkaError.
        """

        async def move(services: Services) -> int:
            epoch = await services.controller.elect_again(TopicPartition(topic, partition))
            self._interception.move_leader(topic, partition)
            services.replicas.partition(topic, partition).release_waiters()
            return epoch

        return self._call(move)

    def expire_session(self, group: str, member: str | None = None) -> list[str]:
        """End the session of a member as if it had been silent for too long; of every member when ``member`` is None.

        ``member`` is a member id, a client id or a group.instance.id. The ids of the members that are gone; one that
        waits for a rebalance to end is spared, as always. Raises KafkaError.
        """
        return self._call(lambda services: administration.expire_session(services, group, member))

    # The loop

    async def _serve(self) -> None:
        data_dir, listen, properties = self._arguments
        properties = {**self._access.server_properties(listen), **(properties or {})}
        async with running_server(data_dir, listen, properties, clock=self._time, served=self._served) as server:
            assert server.assembly is not None
            self.__dict__.update(dataclasses.asdict(describe(server)))
            self._services = server.assembly.services
            await administration.add_users(self._services, self._access.users)
            self._interception.attach(self._services)
            try:
                await self._loop.wait_stop()
            finally:
                self._services = None

    async def _do_upkeep(self) -> None:
        await administration.do_upkeep(self._running())

    def _running(self) -> Services:
        if self._services is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker is not running")
        return self._services

    def _call(self, function: Callable[[Services], Awaitable[T]]) -> T:
        """Run ``function`` in the broker's loop and wait for what it returns or raises."""

        async def run() -> T:
            return await function(self._running())

        return self._loop.call(run)


async def _partitions(services: Services, topic: str) -> list[Partition]:
    known = services.metadata.topic(topic)
    return [] if known is None else [services.replicas.partition(topic, number) for number in known.partitions]
