"""A broker's registration that changes while the broker runs."""

from __future__ import annotations

from typing import Any

import trio
from trio.testing import MockClock

from ottla.controller.quorum.channel import QuorumChannel
from ottla.controller.quorum.lifecycle import BrokerLifecycle, Directories, RegistrationPhase
from ottla.controller.quorum.settings import QuorumSettings
from ottla.metadata.types import AdvertisedListener, BrokerRegistration
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


class SlowController(QuorumChannel):
    """Takes a second for a registration. ``asked`` has the ports that it was told, one for each request that has arrived."""

    def __init__(self) -> None:
        super().__init__(lambda: None, lambda address: None)  # type: ignore[arg-type, return-value]
        self.asked: list[int] = []

    async def send(self, request: Any, **limits: Any) -> Any:
        if isinstance(request, BrokerRegistrationRequest):
            self.asked.append(request.listeners[0].port)
            await trio.sleep(1)
            return BrokerRegistrationResponse(broker_epoch=7)
        await trio.lowlevel.checkpoint()
        return BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False)

    async def wait_asked(self, *ports: int) -> None:
        with trio.fail_after(60):
            while self.asked != list(ports):
                await trio.sleep(0.01)


def at(port: int) -> BrokerRegistration:
    return BrokerRegistration(1, (AdvertisedListener("PLAINTEXT", "test", port, "PLAINTEXT"),), None)


async def test_a_change_while_another_is_under_way_is_told_as_well(autojump_clock: MockClock) -> None:
    controller = SlowController()
    lifecycle = BrokerLifecycle(
        "cluster",
        bytes(range(16)),
        controller,
        QuorumSettings({}),
        {},
        lambda: Directories([bytes(range(16))], []),
        lambda: 7,
        -1,
        lambda: 7,
    )
    lifecycle.registration = at(1)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lifecycle.run)
        await controller.wait_asked(1)
        await lifecycle.wait_until(RegistrationPhase.CAUGHT_UP)
        lifecycle.amend(at(2))
        await controller.wait_asked(1, 2)
        lifecycle.amend(at(3))  # before the response to the second one
        await controller.wait_asked(1, 2, 3)
        nursery.cancel_scope.cancel()
