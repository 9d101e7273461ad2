"""A broker in a thread of its own, for any program, and what a test may do to it.

Everything that touches the broker's parts runs in the broker's loop; the calling thread waits. No call needs a client, and
all may be made from synchronous code, from asyncio and from trio tasks alike: they take milliseconds, but for those that
are told to wait for something.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..broker.embedded import describe, running_server
from ..controller.context import TopicPartition
from ..controller.topics import NewTopic
from ..handlers.services import Services
from .clock import AdjustableClock
from .faults import Faults
from .interception import Interception
from .kafka_versions import served_by
from .records import KafkaRecord, wait_for_records
from .requests import Requests

T = TypeVar("T")


class Broker:
    """A broker in a thread of its own, for ``with``; or ``start`` and ``stop``.

    ``data_dir`` None is a temporary folder that goes with the broker; ``listen`` is ``HOST:PORT``, where port 0 picks a free
    one; ``properties`` are Kafka's broker properties by name; ``version`` ("3.9") lets it serve the API versions of that
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
    ) -> None:
        self._arguments = (data_dir, listen, properties)
        self._served = served_by(version)
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._services: Services | None = None
        self._time = AdjustableClock()
        self._interception = Interception(self._run_soon)
        self.faults: Faults = self._interception.faults
        self.requests: Requests = self._interception.requests
        self.clock = BrokerClock(self)

    def start(self) -> Broker:
        """Start; returns when clients can connect. Raises StartError, SettingError."""
        self._thread = threading.Thread(target=self._run, name="ottla-broker", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop as SIGTERM does; returns when everything is flushed. Faults are removed."""
        if self._thread is None:
            return
        assert self._stop is not None
        self.faults.clear()
        self._run_soon(self._stop.set)
        self._thread.join()
        self._thread = None
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # What a test may ask for

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Make a topic; ``configs`` are Kafka's topic configs by name. Raises KafkaError."""
        outcome = self._call(
            lambda services: services.controller.create_topics([NewTopic(name, partitions, configs=configs or {})])
        )[name]
        if isinstance(outcome, KafkaError):
            raise outcome

    def delete_topic(self, name: str) -> None:
        """Delete a topic and all in it. Raises KafkaError."""
        outcome = self._call(lambda services: services.controller.delete_topics([name]))[name]
        if outcome is not None:
            raise outcome

    def records(self, topic: str, count: int = 0, timeout: float = 10.0) -> list[KafkaRecord]:
        """What a read_committed consumer would get of a topic from its beginning, by partition and offset.

        Waits, at most ``timeout`` seconds, until there are ``count``. Raises TimeoutError.
        """
        return self._call(lambda services: wait_for_records(services, topic, count, timeout))

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

        async def expire(services: Services) -> list[str]:
            await services.groups.wait_loaded(services.groups.partition_for(group))
            return services.groups.expire_sessions(group, member)

        return self._call(expire)

    # The loop

    def _run(self) -> None:
        try:
            trio.run(self._serve, clock=self._time)
        except BaseException as error:
            self._failure = error
        finally:
            self._services = None
            self._ready.set()

    async def _serve(self) -> None:
        data_dir, listen, properties = self._arguments
        self._token = trio.lowlevel.current_trio_token()
        self._stop = trio.Event()
        async with running_server(data_dir, listen, properties, clock=self._time, served=self._served) as server:
            assert server.assembly is not None
            self.__dict__.update(dataclasses.asdict(describe(server)))
            self._services = server.assembly.services
            self._interception.attach(self._services)
            self._ready.set()
            await self._stop.wait()

    def _run_soon(self, function: Callable[[], Any]) -> None:
        """Have ``function`` run in the broker's loop; at once when there is none."""
        if self._token is not None:
            with contextlib.suppress(trio.RunFinishedError):
                self._token.run_sync_soon(function)
                return
        function()

    def _call(self, function: Callable[[Services], Awaitable[T]]) -> T:
        """Run ``function`` in the broker's loop and wait for what it returns or raises."""
        services, token = self._services, self._token
        if services is None or token is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker is not running")
        future: concurrent.futures.Future[T] = concurrent.futures.Future()

        async def run() -> None:
            try:
                future.set_result(await function(services))
            except Exception as error:
                future.set_exception(error)
            finally:
                future.cancel()  # nothing happens when it has a result

        token.run_sync_soon(lambda: trio.lowlevel.spawn_system_task(run))
        return future.result()


class BrokerClock:
    """The time of one broker: its record timestamps, retention, group sessions and every other timer."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as the broker has it."""
        return self._broker._time.now_ms()

    def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        """Let that much time go by; returns when what fell due has happened, retention and expiry of offsets too.

        Nobody is heard meanwhile: sessions shorter than this end, and idle connections are closed. Clients keep their own
        time. Time does not go back. Raises ValueError.
        """
        total = seconds + 60 * minutes + 3600 * hours + 86_400 * days
        if total < 0:
            raise ValueError("time does not go back")

        async def advance(services: Services) -> None:
            await self._broker._time.advance(total)
            await services.logs.delete_old_segments()
            await services.groups.expire_offsets()

        self._broker._call(advance)
