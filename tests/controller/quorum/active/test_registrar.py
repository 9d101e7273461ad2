"""The registration of a controller: repeated until the active controller takes it, and told of as far as it is of interest."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import ErrorCode
from ottla.controller.quorum.active.registrar import ControllerRegistrar
from ottla.controller.quorum.metadata_version import FEATURE, HIGHEST
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import FinalizedFeatures
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


@pytest.mark.parametrize(
    ("error", "level"),
    [(ErrorCode.NOT_CONTROLLER, logging.INFO), (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, logging.ERROR)],
    ids=["nobody is active yet", "a refusal"],
)
async def test_a_response_with_an_error(
    error: ErrorCode, level: int, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A node that begins with a snapshot finds that it is not registered before it knows who is active: no error."""
    caplog.set_level(logging.INFO)
    image = ClusterImage().apply(ClusterDelta(features=FinalizedFeatures(1, {FEATURE: HIGHEST})))
    sent: list[float] = []
    taken = trio.Event()

    async def send(request: ControllerRegistrationRequest) -> ControllerRegistrationResponse:
        sent.append(trio.current_time())
        if len(sent) == 3:
            taken.set()
            return ControllerRegistrationResponse()
        return ControllerRegistrationResponse(error_code=error)

    registrar = ControllerRegistrar(ControllerRegistrationRequest(controller_id=1), lambda: image, send)
    registrar.look()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(registrar.run)
        with trio.fail_after(10):
            await taken.wait()
        nursery.cancel_scope.cancel()
    assert sent[1] - sent[0] < sent[2] - sent[1], "it pauses for longer and longer"
    assert {each.levelno for each in caplog.records} == {level}
