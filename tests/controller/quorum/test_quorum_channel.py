"""The way of a broker to the active controller, where the one that was asked hangs and another takes over."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from ottla.base.memory_network import MemoryNetwork
from ottla.controller.quorum.channel import QuorumChannel
from ottla.controller.raft.voters import ControllerAddress
from ottla.replication.broker_client import BrokerClient
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse

from ...replication.helpers.scripted_peer import Peer

FIRST, SECOND = ControllerAddress("first", 9093), ControllerAddress("second", 9093)
KEYS = [ApiVersion(api_key=BrokerHeartbeatRequest.api_key, min_version=0, max_version=1)]
REQUEST_SECONDS = 20.0


class World:
    """Two controllers, of which the broker takes ``leader`` for the active one. ``asked`` has those that got a heartbeat."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.leader: ControllerAddress | None = FIRST
        self.silent: set[ControllerAddress] = set()
        self.asked: list[ControllerAddress] = []
        self.is_asked = trio.Event()
        self.channel = QuorumChannel(lambda: self.leader, self._connect)

    def _connect(self, address: ControllerAddress) -> BrokerClient:
        return BrokerClient(self.network, *address, "broker", timeout=REQUEST_SECONDS, max_in_flight=1)

    async def serve(self, address: ControllerAddress) -> None:
        listener = await self.network.listen(*address, 10)
        while True:
            peer = Peer(await listener.accept())
            header, request = await peer.request()
            assert isinstance(request, ApiVersionsRequest)
            await peer.answer(header, ApiVersionsResponse(api_keys=KEYS))
            header, request = await peer.request()
            self.asked.append(address)
            self.is_asked.set()
            if address not in self.silent:
                await peer.answer(header, BrokerHeartbeatResponse())

    def elect(self, leader: ControllerAddress | None) -> None:
        self.leader = leader
        self.channel.follow_leader()


async def test_a_request_to_one_that_hangs_goes_to_the_next_leader_at_once(autojump_clock: MockClock) -> None:
    world = World()
    world.silent = {FIRST}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.serve, FIRST)
        nursery.start_soon(world.serve, SECOND)

        async def elect() -> None:
            await world.is_asked.wait()
            world.elect(None)
            await trio.sleep(1)
            assert world.asked == [FIRST], "while nobody is known to lead the answer may still come"
            world.elect(SECOND)

        nursery.start_soon(elect)
        response = await world.channel.send(BrokerHeartbeatRequest())
        assert isinstance(response, BrokerHeartbeatResponse)
        assert world.asked == [FIRST, SECOND]
        assert trio.current_time() < REQUEST_SECONDS, "it did not wait until the first one's time was up"
        nursery.cancel_scope.cancel()


async def test_a_leader_that_is_elected_again_goes_on_with_its_request(autojump_clock: MockClock) -> None:
    world = World()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.serve, FIRST)
        world.elect(None)
        world.elect(FIRST)
        await world.channel.send(BrokerHeartbeatRequest())
        world.elect(FIRST)
        assert world.asked == [FIRST]
        nursery.cancel_scope.cancel()
