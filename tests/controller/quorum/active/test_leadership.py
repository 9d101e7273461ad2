"""A broker asks the controller whether it still leads a partition, and nothing changes by that."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ottla.controller.quorum.active.alter_partition import alter_partition
from ottla.controller.quorum.leadership import confirmed_leader_epoch
from ottla.metadata.types import PartitionRegistration
from ottla.replication.broker_client import PeerUnavailableError
from ottla.wire.messages.alter_partition import AlterPartitionRequest

from .helpers.world import World


class Channel:
    """The way to the controller of a world, which may be cut."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.is_cut = False

    async def send(self, request: AlterPartitionRequest, **limits: Any) -> Any:
        if self.is_cut:
            raise PeerUnavailableError("no controller was found")
        return self._world.do(lambda context: alter_partition(context, request, 3))


def asked(world: World, channel: Channel, broker_id: int, known: PartitionRegistration) -> int | None:
    epoch, topic_id = world.broker(broker_id).epoch, world.image.topics["t"].topic_id
    return trio.run(confirmed_leader_epoch, channel, broker_id, epoch, topic_id, 0, known)


@pytest.fixture
def world() -> World:
    world = World(has_elr=True)
    world.start(1, 2, 3)
    world.topic("t", (1, 2, 3))
    return world


def test_who_leads_is_told_so(world: World) -> None:
    known = world.partition("t")
    world.taken()
    assert asked(world, Channel(world), 1, known) == known.leader_epoch
    assert world.taken() == []


def test_in_sync_replicas_that_have_changed_are_no_other_leader(world: World) -> None:
    known = world.partition("t")
    assert world.propose("t", 1, 2).error_code == 0
    assert asked(world, Channel(world), 1, known) == known.leader_epoch
    assert world.partition("t").isr == (1, 2)


def test_who_was_replaced_is_told_so(world: World) -> None:
    known = world.partition("t")
    world.kill(1)
    assert world.partition("t").leader == 2
    assert asked(world, Channel(world), 1, known) is None


def test_without_a_controller_nobody_knows(world: World) -> None:
    channel = Channel(world)
    channel.is_cut = True
    assert asked(world, channel, 1, world.partition("t")) is None
