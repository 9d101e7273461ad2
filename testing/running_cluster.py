"""The brokers of a cluster with their controller, in the cluster's loop, and the calls that concern several brokers.

The state of a partition is what the controller has committed; brokers and clients are told of it some milliseconds later. Waits
poll every few milliseconds, because what they wait for is spread over the memory of the controller and of several brokers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import trio

from ..base.errors import ErrorCode, KafkaError
from ..handlers.services import Services
from ..metadata.delta import ClusterDelta
from ..metadata.types import PartitionRegistration
from ..replication.partition import Partition
from .cluster_controller import ClusterController
from .held_port import HeldPort
from .records import unknown_topic
from .restartable_broker import ClusterEnvironment, RestartableBroker

_LOOK_SECONDS = 0.005
_FIRST_LOOK_SECONDS = 0.0005


class RunningCluster:
    """The running brokers and their controller, for as long as ``serve`` runs."""

    def __init__(self, around: ClusterEnvironment) -> None:
        self._around = around
        self.controller: ClusterController = around.controller
        self._nursery: trio.Nursery | None = None
        self.members: dict[int, RestartableBroker] = {}

    def add_member(
        self,
        data_dir: Path,
        properties: Mapping[str, str],
        in_loop: Callable[[Callable[[], Any]], None],
        port: int = 0,
    ) -> RestartableBroker:
        """Add a broker with the next id, before ``serve``; its port is reserved from now on. Raises OSError where it is taken."""
        broker_id = len(self.members) + 1
        member = RestartableBroker(broker_id, data_dir, properties, self._around, in_loop, HeldPort(port))
        self.members[broker_id] = member
        return member

    async def serve(self, folder: Path, main: Callable[[], Awaitable[None]]) -> None:
        """Start the controller, with a folder in ``folder``, and the brokers, run ``main``, and kill those that still run.

        Raises StartError, SettingError, and what ended a broker.
        """
        failure: Exception | None = None
        self.controller.on_change = self.tell_of_controller
        self.controller.known_alive = lambda: [broker_id for broker_id, _ in self.in_reach()]
        async with trio.open_nursery() as self._nursery:
            try:
                failure = await self._start_all(folder)
                if failure is None:
                    await main()
            finally:
                with trio.CancelScope(shield=True):
                    await self._end_all()
                self._nursery.cancel_scope.cancel()
        for why in (failure, self.controller.failure, *(member.failure for member in self.members.values())):
            if why is not None:
                raise why

    async def _start_all(self, folder: Path) -> Exception | None:
        """Start the controller, and then every broker; returns the first error, if any."""
        assert self._nursery is not None
        failures: list[Exception] = []
        try:
            await self.controller.start(self._nursery, folder / "controller")
        except Exception as error:
            return error

        async def start(member: RestartableBroker) -> None:
            try:
                await self.start(member.broker_id)
            except Exception as error:
                failures.append(error)

        async with trio.open_nursery() as starts:
            for member in self.members.values():
                starts.start_soon(start, member)
        return failures[0] if failures else None

    async def stop_all(self) -> None:
        """Stop the brokers as SIGTERM does, all at once: logs are flushed, and the folders marked clean. Then the controller."""
        async with trio.open_nursery() as stops:
            for member in self.members.values():
                stops.start_soon(member.stop)
        await self.controller.stop()

    async def _end_all(self) -> None:
        async with trio.open_nursery() as ends:
            for member in self.members.values():
                ends.start_soon(member.kill)
        self.close()

    def close(self) -> None:
        """Release the ports; ``serve`` does it at its end."""
        for member in self.members.values():
            member.close()

    # --- brokers ------------------------------------------------------------------------------------------------------

    async def start(self, broker_id: int) -> None:
        """Start a broker; returns when the others know it, and it knows them. Raises StartError, SettingError, TimeoutError."""
        assert self._nursery is not None
        await self.members[broker_id].start(self._nursery)
        self.tell_of_controller()
        await self.until(self._all_met, 30, f"broker {broker_id} is not part of the cluster")

    def _all_met(self) -> bool:
        """Whether all running brokers that are neither paused nor isolated know each other, and the controller."""
        in_reach = {broker_id for broker_id, _ in self.in_reach()}
        return all(
            in_reach <= set(services.metadata.broker_ids()) and services.metadata.controller_id in in_reach
            for _, services in self.in_reach()
        )

    def in_reach(self) -> Iterator[tuple[int, Services]]:
        """The running brokers that are neither paused nor isolated."""
        for broker_id, member in self.members.items():
            if member.is_in_reach and member.services is not None:
                yield broker_id, member.services

    def tell_of_controller(self) -> None:
        """Have all brokers in reach tell clients of the same broker as the controller."""
        told = self.controller.notified_broker
        for _, services in self.in_reach():
            if told is not None and services.metadata.controller_id != told:
                services.metadata.publish(ClusterDelta(controller_id=told))

    # --- what the controller says -------------------------------------------------------------------------------------

    def partitions(self, topic: str) -> Mapping[int, PartitionRegistration]:
        """The partitions of a topic by number. Raises KafkaError."""
        found = self.controller.topic(topic)
        if found is None:
            raise unknown_topic(topic, list(self.controller.image.topics.newest()))
        return found.partitions

    def state(self, topic: str, number: int) -> PartitionRegistration:
        """The state of one partition. Raises KafkaError."""
        partitions = self.partitions(topic)
        if number not in partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{number} does not exist")
        return partitions[number]

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def until(self, is_so: Callable[[], bool], timeout: float, why_not: str) -> None:
        """Return once ``is_so``. Raises TimeoutError, with ``why_not``, after ``timeout`` seconds."""
        pause = _FIRST_LOOK_SECONDS
        with trio.move_on_after(timeout):
            while not is_so():
                await trio.sleep(pause)
                pause = min(_LOOK_SECONDS, 1.5 * pause)
            return
        raise TimeoutError(f"{why_not}, after {timeout:g} s")

    async def wait_known(self, topic: str, timeout: float) -> None:
        """Return once each partition has a leader, and every broker in reach knows it. Raises TimeoutError, KafkaError."""
        why_not = f"not every broker knows of the leaders of {topic}"
        await self.until(lambda: self._is_known(topic, self.partitions(topic)), timeout, why_not)

    async def wait_gone(self, topic: str, timeout: float) -> None:
        """Return once a deleted topic is gone from the metadata of all brokers in reach, and so from their folders.

        The other brokers delete their replicas when they are back.
        """

        def is_gone() -> bool:
            return all(services.metadata.topic(topic) is None for _, services in self.in_reach())

        await self.until(is_gone, timeout, f"{topic} is not gone")

    async def wait_in_sync(self, topic: str, timeout: float) -> None:
        """``wait_known``, and wait until the ISR of each partition is exactly its replicas that are in reach."""

        def is_in_sync() -> bool:
            partitions = self.partitions(topic)
            in_reach = {broker_id for broker_id, _ in self.in_reach()}
            return self._is_known(topic, partitions) and all(
                set(state.isr) == in_reach & set(state.replicas) for state in partitions.values()
            )

        await self.until(is_in_sync, timeout, f"the replicas of {topic} are not in sync")

    def _is_known(self, topic: str, partitions: Mapping[int, PartitionRegistration]) -> bool:
        for number, state in partitions.items():
            if self._led(topic, number, state) is None:
                return False
            for _, services in self.in_reach():
                known = services.metadata.partition(topic, number)
                if known is None or (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
                    return False
        return True

    async def leading(self, topic: str) -> list[Partition]:
        """The partitions of a topic at their leaders, once each has one. Raises KafkaError, ``unknown_topic`` too."""
        while True:
            states = self.partitions(topic)
            led = [self._led(topic, number, state) for number, state in states.items()]
            found = [partition for partition in led if partition is not None]
            if len(found) == len(states):
                return found
            await trio.sleep(_LOOK_SECONDS)

    def _led(self, topic: str, number: int, state: PartitionRegistration) -> Partition | None:
        """A partition at its leader, if that is in reach and knows that it leads."""
        services = dict(self.in_reach()).get(state.leader)
        if services is None:
            return None
        try:
            partition = services.replicas.partition(topic, number)
        except KafkaError:
            return None
        return partition if partition.is_leader and partition.leader_epoch == state.leader_epoch else None
