"""The brokers of a cluster with their store, in the cluster's loop, and the calls that concern several brokers.

The state of a partition is read from the store, where the controller and the leader write it; clients are told of it some
milliseconds later. Waits poll every few milliseconds, because what they wait for is spread over the store and the memory of
several brokers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import trio

from ..base.errors import ErrorCode, KafkaError
from ..controller.zookeeper.stored_cluster import StoredCluster, StoredPartition
from ..handlers.services import Services
from ..metadata.types import LeaderState
from ..replication.partition import Partition
from .cluster_member import Member, Surroundings
from .held_port import HeldPort
from .records import unknown_topic

T = TypeVar("T")

_LOOK_SECONDS = 0.005


class RunningCluster:
    """The running brokers and their store, for as long as ``serve`` runs."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._nursery: trio.Nursery | None = None
        self.members: dict[int, Member] = {}

    def add_member(
        self,
        data_dir: Path,
        properties: Mapping[str, str],
        in_loop: Callable[[Callable[[], Any]], None],
        port: int = 0,
    ) -> Member:
        """Add a broker with the next id, before ``serve``; its port is reserved from now on. Raises OSError where it is taken."""
        broker_id = len(self.members) + 1
        member = Member(broker_id, data_dir, properties, self._around, in_loop, HeldPort(port))
        self.members[broker_id] = member
        return member

    async def serve(self, main: Callable[[], Awaitable[None]]) -> None:
        """Start the brokers, run ``main``, and kill those that still run. Raises StartError, SettingError, and what ended one."""
        failure: Exception | None = None
        await self._around.store.open()
        self._stored = StoredCluster(self._around.store.session())
        async with trio.open_nursery() as self._nursery:
            self._nursery.start_soon(self._around.store.run)
            try:
                failure = await self._start_all()
                if failure is None:
                    await main()
            finally:
                with trio.CancelScope(shield=True):
                    await self._end_all()
                self._nursery.cancel_scope.cancel()
        for why in (failure, *(member.failure for member in self.members.values())):
            if why is not None:
                raise why

    async def _start_all(self) -> Exception | None:
        """Start every broker; returns the first error, if any."""
        failures: list[Exception] = []

        async def start(member: Member) -> None:
            try:
                await self.start(member.broker_id)
            except Exception as error:
                failures.append(error)

        async with trio.open_nursery() as starts:
            for member in self.members.values():
                starts.start_soon(start, member)
        return failures[0] if failures else None

    async def stop_all(self) -> None:
        """Stop the brokers as SIGTERM does, all at once: logs are flushed, and the folders marked clean."""
        async with trio.open_nursery() as stops:
            for member in self.members.values():
                stops.start_soon(member.stop)

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

    async def at_controller(self, function: Callable[[Services], Awaitable[T]], timeout: float) -> T:
        """Call ``function`` with the services of the controller, once there is one. Raises TimeoutError, KafkaError."""
        while True:
            active: list[Services] = []

            def look(found: list[Services] = active) -> bool:
                found[:] = [services for _, services in self.in_reach() if services.cluster.is_controller]
                return bool(found)

            await self.until(look, timeout, "there is no controller")
            try:
                return await function(active[0])
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    raise

    # --- what the store says ------------------------------------------------------------------------------------------

    async def controller_id(self) -> int | None:
        """The broker that is the controller."""
        return await self._stored.controller_id()

    async def partitions(self, topic: str) -> dict[int, StoredPartition]:
        """The partitions of a topic by number. Raises KafkaError."""
        found = await self._stored.partitions(topic)
        if not found:
            raise unknown_topic(topic, await self._stored.topics())
        return found

    async def state(self, topic: str, number: int) -> LeaderState | None:
        """The state of one partition. Raises KafkaError."""
        partitions = await self.partitions(topic)
        if number not in partitions:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{number} does not exist")
        return partitions[number].state

    # --- waiting ------------------------------------------------------------------------------------------------------

    async def until(self, is_so: Callable[[], bool], timeout: float, why_not: str) -> None:
        """Return once ``is_so``. Raises TimeoutError, with ``why_not``, after ``timeout`` seconds."""

        async def ask() -> bool:
            return is_so()

        await self.until_async(ask, timeout, why_not)

    async def until_async(self, is_so: Callable[[], Awaitable[bool]], timeout: float, why_not: str) -> None:
        with trio.move_on_after(timeout):
            while not await is_so():
                await trio.sleep(_LOOK_SECONDS)
            return
        raise TimeoutError(f"{why_not}, after {timeout:g} s")

    async def wait_known(self, topic: str, timeout: float) -> None:
        """Return once each partition has a leader, and every broker in reach knows it. Raises TimeoutError, KafkaError."""

        async def is_known() -> bool:
            return self._is_known(topic, await self.partitions(topic))

        await self.until_async(is_known, timeout, f"not every broker knows of the leaders of {topic}")

    async def wait_gone(self, topic: str, timeout: float) -> None:
        """Return once a deleted topic is gone from all brokers' metadata, and, if all its replicas are in reach, from the store.

        If they are not, the deletion is finished when they are back.
        """
        in_reach = {broker_id for broker_id, _ in self.in_reach()}
        try:
            partitions = await self.partitions(topic)
        except KafkaError:
            partitions = {}
        is_complete = all(in_reach.issuperset(assignment.replicas) for assignment, _ in partitions.values())

        async def is_gone() -> bool:
            if any(services.metadata.topic(topic) is not None for _, services in self.in_reach()):
                return False
            return not is_complete or not await self._stored.has_topic(topic)

        await self.until_async(is_gone, timeout, f"{topic} is not gone")

    async def wait_in_sync(self, topic: str, timeout: float) -> None:
        """``wait_known``, and wait until the ISR of each partition is exactly its replicas that are in reach."""

        async def is_in_sync() -> bool:
            partitions = await self.partitions(topic)
            in_reach = {broker_id for broker_id, _ in self.in_reach()}
            return self._is_known(topic, partitions) and all(
                nodes.state is not None and set(nodes.state.isr) == in_reach & set(nodes.assignment.replicas)
                for nodes in partitions.values()
            )

        await self.until_async(is_in_sync, timeout, f"the replicas of {topic} are not in sync")

    def _is_known(self, topic: str, partitions: Mapping[int, StoredPartition]) -> bool:
        for number, (_, state) in partitions.items():
            if state is None or self._led(topic, number, state) is None:
                return False
            for _, services in self.in_reach():
                known = services.metadata.partition(topic, number)
                if known is None or (known.leader, known.leader_epoch) != (state.leader, state.leader_epoch):
                    return False
        return True

    async def leading(self, topic: str) -> list[Partition]:
        """The partitions of a topic at their leaders, once each has one. Raises KafkaError, ``unknown_topic`` too."""
        while True:
            nodes = await self.partitions(topic)
            led = [self._led(topic, number, state) for number, (_, state) in nodes.items()]
            found = [partition for partition in led if partition is not None]
            if len(found) == len(nodes):
                return found
            await trio.sleep(_LOOK_SECONDS)

    def _led(self, topic: str, number: int, state: LeaderState | None) -> Partition | None:
        """A partition at its leader, if that is in reach and knows that it leads."""
        services = None if state is None else dict(self.in_reach()).get(state.leader)
        if state is None or services is None:
            return None
        try:
            partition = services.replicas.partition(topic, number)
        except KafkaError:
            return None
        return partition if partition.is_leader and partition.leader_epoch == state.leader_epoch else None
