"""A quorum of two brokers with consoles, and members of consumer groups (KIP-848) by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from ottla.base.errors import ErrorCode
from ottla.broker.controller_only import ControllerOnlyServer
from ottla.broker.server import BrokerServer
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest

from ...broker.helpers.controller_world import formed, until
from .browsing import Browsing
from .quorum_browsing import ConsoleWorld


class ConsumersWorld(ConsoleWorld):
    """Consoles may write, and a target assignment is made at once."""

    def make_server(self, node_id: int, **own: str) -> BrokerServer | ControllerOnlyServer:
        at_once = {
            "offsets_topic_replication_factor": "1",
            "share_coordinator_state_topic_replication_factor": "1",
            "group_consumer_assignment_interval_ms": "0",
        }
        return super().make_server(node_id, console_allow_writes="true", **at_once, **own)

    async def coordinator(self, group: str) -> int:
        """The broker that coordinates a group."""
        while True:
            response = await self.ask(1, FindCoordinatorRequest(key=group), 3)
            if response.error_code != ErrorCode.COORDINATOR_NOT_AVAILABLE:
                assert not response.error_code
                return int(response.node_id)


class Members:
    """The members of one group, each with a client of its own id."""

    def __init__(self, world: ConsumersWorld, group: str, node_id: int, topic: str = "t") -> None:
        self.world = world
        self.group = group
        self.node_id = node_id
        """The coordinator."""
        self._topic_id = world.services(node_id).metadata.image.topics[topic].topic_id

    async def __call__(
        self,
        member_id: str,
        epoch: int,
        owned: Iterable[int] | None = None,
        names: Iterable[str] = ("t",),
        **fields: Any,
    ) -> tuple[int, list[int] | None]:
        """A heartbeat: the epoch of the response, and the partitions of the topic if it tells them."""
        joins = epoch == 0
        given = None if owned is None else [TopicPartitions(topic_id=self._topic_id, partitions=list(owned))]
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=member_id,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=list(names) if joins else None,
            topic_partitions=[] if joins else given,
            **fields,
        )
        while True:
            response = await self.world.ask(self.node_id, request, 1)
            if response.error_code not in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
                break
            await trio.sleep(0.05)
        assert response.error_code == 0, response
        if response.assignment is None:
            return response.member_epoch, None
        return response.member_epoch, [n for each in response.assignment.topic_partitions for n in each.partitions]


@asynccontextmanager
async def consumers(group: str = "g", **roles: str) -> AsyncIterator[tuple[Members, Mapping[int, Browsing]]]:
    """A group of readers of a topic with four partitions, and a browser at each broker's console."""
    async with formed(ConsumersWorld, {1: "broker,controller", 2: "broker"}) as world:
        await world.create(1, "t", partitions=4)
        node_id = await world.coordinator(group)
        await until(lambda: "t" in world.services(node_id).metadata.image.topics)
        yield Members(world, group, node_id), {each: world.browsing(each) for each in (1, 2)}
