"""A broker in a separate thread, for tests of any program, with faults, recorded requests and a clock.

Everything that touches the broker's parts runs in the broker's loop, while the calling thread waits. No call needs a client, and
all may be made from synchronous code, from asyncio and from trio tasks: they take milliseconds, except for those that wait for
something.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..base.settings import SettingError
from ..broker.config_file import load_config
from ..broker.embedded import describe
from ..broker.server import StartError
from ..handlers.services import Services
from ..replication.partition import Partition
from ..share_partitions.led_partition import DeliveryEnd
from . import administration
from .broker_run import BrokerEnvironment, BrokerRun
from .broker_security import BrokerSecurity
from .checked_options import (
    TOPIC_CONFIGS,
    check_address,
    check_type,
    checked_properties,
    checked_users,
    named_options,
    written,
)
from .clock import AdjustableClock, BrokerClock
from .cluster_network import ClusterNetwork
from .controller_commands import ControllerCommands, wait_applied
from .expected_records import Expected
from .faults import Faults
from .held_port import HeldPorts
from .interception import Interception
from .kafka_versions import served_by
from .loop_thread import LoopThread
from .rebalance_hold import RebalanceHold
from .record_differences import check_records
from .records import KafkaRecord, unknown_topic, wait_for_records
from .requests import Requests

T = TypeVar("T")

__tracebackhide__ = True  # a failure points at the caller's line


class Broker:
    """A broker in a separate thread, for ``with``; or ``start`` and ``stop``.

    With ``users`` (names with passwords) clients have to log in by SASL with PLAIN or SCRAM; with ``tls``
    connections are encrypted. ``client_properties`` has the client's properties for both. Every user may do everything,
    unless the property ``authorizer.class.name`` names an authorizer.

    ``data_dir`` None is a temporary directory that is removed with the broker. ``listen`` is ``HOST:PORT``, where port
    0 picks a free one. ``properties`` are Kafka's broker properties by name. ``version`` ("3.9") limits the broker to the
    API versions of that release of Apache Kafka.

    Raises TypeError and ValueError for a wrong option, SettingError for a property that does not exist or has a wrong value.

    ``faults`` makes requests fail, ``requests`` records them, ``clock`` is the broker's time.
    """

    bootstrap_servers: str
    cluster_id: str
    broker_id: int
    data_dir: Path
    metrics_address: str | None

    @named_options
    def __init__(
        self,
        *,
        data_dir: str | Path | None = None,
        listen: str = "127.0.0.1:0",
        properties: Mapping[str, str | int | float | bool] | None = None,
        version: str | None = None,
        users: Mapping[str, str] | None = None,
        tls: bool = False,
    ) -> None:
        check_type("data_dir", data_dir, (str, os.PathLike, type(None)), "a directory (str or Path)")
        check_address("listen", listen)
        check_type("version", version, (str, type(None)), 'a str such as "3.9"')
        check_type("tls", tls, bool, "True or False")
        self._arguments = (data_dir, listen, checked_properties("properties", properties))
        self._access = BrokerSecurity(checked_users(users), tls)
        self._served = served_by(version)
        self._properties: dict[str, str] = {}
        self._broker_run: BrokerRun | None = None
        self._failure: Exception | None = None
        self._network = ClusterNetwork({})
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
        """Stop as SIGTERM does; returns when everything is flushed. Faults are removed. It cannot be started again.

        Raises the error of a broker that had ended by itself.
        """
        self.faults.clear()
        self._loop.stop()
        self._access.close()

    def restart(self) -> None:
        """Start again, with the same port and data. A running broker is stopped first, as SIGTERM does.

        Returns when clients can connect. Raises StartError; KafkaError when ``start`` was never called.
        """

        async def restart() -> None:
            await self._end()
            await self._begin()

        self._loop.call(restart)

    def kill(self) -> None:
        """End as SIGKILL does: connections are closed, nothing is flushed, and there is no mark of a clean stop.

        ``restart`` starts it again with what it had written. Does nothing if it does not run.
        """

        async def kill() -> None:
            if self._broker_run is not None:
                await self._broker_run.kill()

        self._loop.call(kill)

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has neither been stopped nor killed since, nor ended by itself."""
        return self._broker_run is not None and self._broker_run.services is not None

    def __enter__(self) -> Broker:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # What a test may ask for

    @property
    def ca_file(self) -> Path | None:
        """The certificate that clients have to trust, a PEM file that exists while the broker runs; None without TLS."""
        return self._access.ca_file

    def client_properties(self, user: str | None = None) -> dict[str, str]:
        """Kafka's client properties for a user, the first if none is named. Raises KeyError for an unknown user."""
        return {"bootstrap.servers": self.bootstrap_servers, **self._access.client_properties(user)}

    def create_topic(
        self, name: str, partitions: int = 1, configs: Mapping[str, str | int | float | bool] | None = None
    ) -> None:
        """Create a topic; ``configs`` are Kafka's topic configs by name. Raises KafkaError."""
        texts = written("configs", configs, TOPIC_CONFIGS)
        self._command(lambda controller: controller.create_topic(name, partitions, texts))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises KafkaError."""
        self._command(lambda controller: controller.delete_topic(name))

    def delete_group(self, group: str) -> None:
        """End the sessions of a consumer group's members, and delete it with the offsets it has committed. Raises KafkaError."""
        self._call(lambda services: administration.delete_group(services, group))

    def records(self, topic: str, count: int = 0, timeout: float = 10.0) -> list[KafkaRecord]:
        """The records that a read_committed consumer would get from the beginning, in the order of partitions and offsets.

        Waits, at most ``timeout`` seconds, until there are at least ``count``. Raises TimeoutError; KafkaError for a topic that
        does not exist, with the names of those that do.
        """

        async def read(services: Services) -> list[KafkaRecord]:
            async def find_partitions() -> list[Partition]:
                return _partitions(services, topic)

            return await wait_for_records(find_partitions, topic, count, timeout)

        return self._call(read)

    def assert_topic(
        self, topic: str, expected: Sequence[Expected], *, in_order: bool | None = None, timeout: float = 10.0
    ) -> None:
        """Check that the topic has the records that are expected, and no others. Raises AssertionError with the difference.

        Each is a value (``bytes``, ``str``, None for a tombstone; ``dict``, ``list`` and numbers for JSON), a pair of key and
        value, or an ``ExpectedRecord``. ``in_order`` None: in a topic with one partition. Waits at most ``timeout`` seconds until
        there are as many; for none at all it does not wait. Raises KafkaError for a topic that does not exist.
        """
        check_records(lambda count: self.records(topic, count, timeout), topic, expected, in_order)

    def move_leader(self, topic: str, partition: int = 0) -> int:
        """Move the partition's leadership, as clients see it. Returns the new leader epoch.

        Each client id gets NOT_LEADER_OR_FOLLOWER for Produce, Fetch and ListOffsets of this partition until it has
        asked for the topic's metadata. Raises KafkaError.
        """

        async def note(services: Services) -> None:
            self._interception.move_leader(topic, partition)
            services.replicas.partition(topic, partition).release_waiters()

        epoch = self._command(lambda controller: controller.lead(topic, partition, self.broker_id))
        self._call(note)
        return epoch

    def expire_session(self, group: str, member: str | None = None) -> list[str]:
        """End the session of a member as if it had sent no heartbeat for too long; of every member when ``member`` is None.

        ``member`` is a member id, a client id or a group.instance.id. Returns the ids of the members that are gone; a
        member that waits for a rebalance to end stays, as always. Raises KafkaError.
        """
        return self._call(lambda services: administration.expire_session(services, group, member))

    def hold_rebalance(self, group: str) -> RebalanceHold:
        """Keep rebalances of a group from ending, for ``with``; or until ``release`` of the returned hold. Raises KafkaError.

        Members of a group of KIP-848 continue with the present target assignment. Members of a classic group have joined, and
        wait for their assignments. ``wait`` returns once a rebalance waits. A broker that stops forgets it.
        """

        async def begin(services: Services) -> None:
            services.groups.holds.hold(group, hold.reached.set)

        async def release(services: Services) -> None:
            services.groups.holds.release(group)

        hold = RebalanceHold(lambda: self._call(release))
        self._call(begin)
        return hold

    def redeliver(self, group: str, topic: str, partition: int = 0, offset: int | None = None) -> list[int]:
        """Have a member of a share group lose the record at ``offset``, or all records of the partition when that is None.

        They are delivered again, as if the member had released them; after as many deliveries as there may be they are archived.
        What the member says of them later is refused with INVALID_RECORD_STATE. Returns their offsets. Raises KafkaError, also
        where no member has the record.
        """
        return self._end_deliveries(DeliveryEnd.RELEASED, group, topic, partition, offset)

    def expire_locks(self, group: str, topic: str, partition: int = 0, offset: int | None = None) -> list[int]:
        """As ``redeliver``, as if the member had not acknowledged the records before their acquisition locks ended."""
        return self._end_deliveries(DeliveryEnd.LOCK_EXPIRED, group, topic, partition, offset)

    def archive(self, group: str, topic: str, partition: int = 0, offset: int | None = None) -> list[int]:
        """Have a share group give up records, as at the last allowed delivery: no member gets them again.

        As ``redeliver``; records that wait for another delivery are archived, too.
        """
        return self._end_deliveries(DeliveryEnd.ARCHIVED, group, topic, partition, offset)

    def _end_deliveries(
        self, how: DeliveryEnd, group: str, topic: str, partition: int, offset: int | None
    ) -> list[int]:
        return self._call(
            lambda services: administration.end_deliveries(services, how, group, topic, partition, offset)
        )

    # The loop

    async def _serve(self) -> None:
        data_dir, listen, properties = self._arguments
        with contextlib.ExitStack() as stack:
            if data_dir is None:
                data_dir = stack.enter_context(tempfile.TemporaryDirectory(prefix="ottla-"))
            given = {
                **self._access.server_properties(listen),
                "log.dirs": str(data_dir),
                **properties,
            }
            ports = stack.enter_context(contextlib.closing(HeldPorts()))
            self._properties = ports.fill_in(given)
            async with trio.open_nursery() as self._nursery:
                try:
                    await self._begin()
                except (StartError, SettingError) as error:
                    self._failure = error
                else:
                    await self._loop.wait_stop()
                    await self._end()
            if self._failure is not None:
                raise self._failure

    async def _begin(self) -> None:
        if self._broker_run is not None:
            raise StartError("the broker is running")
        place = BrokerEnvironment(broker_id=0, network=self._network, clock=self._time, sharers=1)
        config = load_config(self._properties)
        life = BrokerRun(config, place, self._interception, on_end=self._ended, served=self._served)
        self._broker_run = life
        await life.begin(self._nursery)
        self.__dict__.update(dataclasses.asdict(describe(life.server)))
        if life.server.controller is not None:
            # Also while the clock is advanced, or the machine has no time for it.
            life.server.controller.node.controller.known_alive = lambda: [self.broker_id]
        await self._carried_out(lambda controller: controller.add_users(self._access.users))

    def _ended(self, life: BrokerRun) -> None:
        self._broker_run = None
        if life.services is not None and life.failure is not None:
            self._failure = self._failure or life.failure

    async def _end(self) -> None:
        if self._broker_run is not None:
            await self._broker_run.stop()

    async def _do_upkeep(self) -> None:
        await administration.do_upkeep(self._running())

    def _command(self, command: Callable[[ControllerCommands], Awaitable[T]]) -> T:
        """Have the node's controller do something; returns once the broker knows of it. Raises KafkaError."""
        return self._loop.call(lambda: self._carried_out(command))

    async def _carried_out(self, command: Callable[[ControllerCommands], Awaitable[T]]) -> T:
        services, life = self._running(), self._broker_run
        assert life is not None and life.server.controller is not None
        controller = life.server.controller.node
        result = await command(ControllerCommands(controller))
        await wait_applied(controller, services.metadata)
        return result

    def _running(self) -> Services:
        services = None if self._broker_run is None else self._broker_run.services
        if services is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker is not running")
        return services

    def _call(self, function: Callable[[Services], Awaitable[T]]) -> T:
        """Run ``function`` in the broker's loop and wait until it returns or raises."""

        async def run() -> T:
            return await function(self._running())

        return self._loop.call(run)


def _partitions(services: Services, topic: str) -> list[Partition]:
    known = services.metadata.topic(topic)
    if known is None:
        raise unknown_topic(topic, services.metadata.topics)
    return [services.replicas.partition(topic, number) for number in known.partitions]
