"""Rules of the members of share groups (KIP-932), each broken on purpose: the simulation must detect it.

`make simulate GROUP=1 SHARE=1 BREAK=full_heartbeats_tell_nothing` runs seeds with one of them until one detects it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.group_coordinator import share_heartbeat, share_state_requests
from ottla.group_coordinator.share_state_requests import ShareStateRequests


def _nothing(*arguments: object) -> None:
    pass


def full_heartbeats_tell_nothing(patch: pytest.MonkeyPatch) -> None:
    """A member that is not sure of the last response is told only of what is new."""
    complete = share_heartbeat.complete_heartbeat

    def only_new(shard: Any, heartbeat: Any, now: Any) -> Any:
        response = complete(shard, heartbeat, now)
        if heartbeat.request.member_epoch and response.assignment == share_heartbeat._assignment(heartbeat.before):
            response.assignment = None
        return response

    patch.setattr(share_heartbeat, "complete_heartbeat", only_new)


def new_coordinators_begin_no_sessions(patch: pytest.MonkeyPatch) -> None:
    """Members that are gone when the coordinator moves stay for ever."""
    patch.setattr(share_heartbeat, "resume", _nothing)


def partitions_are_given_unkept(patch: pytest.MonkeyPatch) -> None:
    """Members get partitions whose state nobody has been asked to keep."""

    async def initialize(self: ShareStateRequests, offsets: object, state_epoch: int) -> dict[Any, Any]:
        return {}

    patch.setattr(ShareStateRequests, "initialize", initialize)


def failed_partitions_are_not_asked_for_again(patch: pytest.MonkeyPatch) -> None:
    """Nobody is asked twice to keep the state of a partition."""
    patch.setattr(share_state_requests, "_no_longer_asked", _nothing)


BREAKAGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    function.__name__: function
    for function in (
        full_heartbeats_tell_nothing,
        new_coordinators_begin_no_sessions,
        partitions_are_given_unkept,
        failed_partitions_are_not_asked_for_again,
    )
}
