"""The way to a share coordinator on the same broker, while it cannot answer."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.memory_network import MemoryNetwork
from ottla.replication.metadata_cache import MetadataCache
from ottla.replication.peers import Peers
from ottla.share_coordinator.client import ShareStateClient
from ottla.share_coordinator.settings import TOPIC as STATE_TOPIC

from ..helpers.told import alive, led, tell
from .conftest import KEY, Run, World

TOPIC_ID = bytes(15) + b"\7"


class Client(ShareStateClient):
    """Of broker 1, which leads every partition of a topic that it makes; ``refusals`` keep it from that."""

    def __init__(self, world: World) -> None:
        self.refusals: list[ErrorCode] = []
        self.created = 0
        self.metadata = MetadataCache()
        tell(self.metadata, brokers=alive(1))
        peers = Peers(MemoryNetwork(), 1, "PLAINTEXT", self.metadata)
        super().__init__(1, self.metadata, peers, world.coordinator, self._create)

    async def _create(self) -> None:
        self.created += 1
        await trio.sleep(0.01)
        if self.refusals:
            raise KafkaError(self.refusals.pop())
        self.lead(1)

    def lead(self, leader: int) -> None:
        tell(self.metadata, led(STATE_TOPIC, TOPIC_ID, dict.fromkeys(range(50), leader)), brokers=alive(1))


async def test_the_topic_is_made_once_and_asked_for_until_it_is_there(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        client = Client(world)
        client.refusals = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(client.initialize, KEY, 1, 0)
        assert client.created == 3
        assert await client.summary(KEY, -1) == (1, 0, 0, 0)

    await run(test)


async def test_a_coordinator_that_loads_is_waited_for(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        client = Client(world)
        await client.initialize(KEY, 1, 0)
        world.coordinator.unload(world.partition())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.read, KEY, -1)
            await trio.sleep(1.234)
            await world.coordinator.load(world.partition(), 2)
        assert trio.current_time() == pytest.approx(1.244), "it was asked again at once"

    await run(test)


async def test_a_broker_that_cannot_answer_is_asked_less_and_less(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        client = Client(world)
        await client.initialize(KEY, 1, 0)
        asked = 0

        def refuse(partition: int, batch: bytearray) -> int:
            nonlocal asked
            asked += 1
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)

        append, world.log.append = world.log.append, refuse  # type: ignore[method-assign]
        began = trio.current_time()
        with pytest.raises(KafkaError, match="NOT_COORDINATOR"):
            await client.write(KEY, 1, 0, 0, 0, ())
        assert 10 < trio.current_time() - began <= 15
        assert 5 < asked < 20
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.write, KEY, 1, 0, 5, 0, ())
            await trio.sleep(1)
            world.log.append = append  # type: ignore[method-assign]
        assert (await client.summary(KEY, -1))[2] == 5

    await run(test)


async def test_without_a_leader_the_client_gives_up(run: Run, autojump_clock: MockClock) -> None:
    async def test(world: World) -> None:
        client = Client(world)
        client.lead(-1)
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await client.read(KEY, -1)
        client.lead(2)  # which nobody reaches
        with pytest.raises(KafkaError, match="NETWORK_EXCEPTION"):
            await client.read(KEY, -1)
        assert 20 < trio.current_time() <= 30

    await run(test)
