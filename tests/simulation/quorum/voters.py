"""Changes the voters of a quorum while everything else goes on (KIP-853): adds, removes, and replaces a machine's disk.

A controller may lose its disk once its removal is committed: it is another voter then, with another directory id. Without an
answer to its removal it keeps the disk, because it may still be a voter.
"""

from __future__ import annotations

import trio

from ottla.base.errors import ErrorCode, KafkaError, known_code
from ottla.controller.quorum.active.request_source import RequestSource
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

from ...controller.quorum.active.helpers.controller_server import LISTENER, ControllerServer
from ..faults import Crashed
from .world import QuorumClusterWorld

_PATIENCE_SECONDS = 5.0
_PAUSES = (0.3, 1.0, 3.0)
_NEWEST = 1
"""Of AddRaftVoter's versions."""


class VoterChanges:
    """``run`` it in a task, beside the faults. ``least`` voters are left."""

    def __init__(self, world: QuorumClusterWorld, least: int) -> None:
        self._world = world
        self._least = least
        self._rng = world.random_for("voters")

    async def run(self, until: trio.Event) -> None:
        while not until.is_set():
            await trio.sleep(self._rng.choice(_PAUSES) * self._rng.uniform(0.5, 1.5))
            active = self._world.active
            if active is not None:
                await self._change(active)

    async def _change(self, active: ControllerServer) -> None:
        servers = self._world.quorum.servers
        voters = active.node.driver.node.quorum.voters.ids
        joining = [node_id for node_id in servers if node_id not in voters]
        if joining and (len(voters) <= self._least or self._rng.random() < 0.6):
            await self._add(active, self._rng.choice(joining))
        elif len(voters) > self._least:
            await self._remove(active, self._rng.choice(voters))

    async def _add(self, active: ControllerServer, node_id: int) -> None:
        joining = self._world.quorum.servers[node_id]
        endpoint = joining.endpoint
        request = AddRaftVoterRequest(
            cluster_id=self._world.quorum.cluster_id,
            timeout_ms=int(_PATIENCE_SECONDS * 1000),
            voter_id=node_id,
            voter_directory_id=joining.key.directory_id,
            listeners=[Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)],
        )
        await self._ask(active, request, f"voter {node_id} is added")

    async def _remove(self, active: ControllerServer, node_id: int) -> None:
        leaving = self._world.quorum.servers[node_id]
        request = RemoveRaftVoterRequest(
            cluster_id=self._world.quorum.cluster_id,
            voter_id=node_id,
            voter_directory_id=active.node.driver.node.quorum.voters.voters[node_id].key.directory_id,
        )
        code = await self._ask(active, request, f"voter {node_id} is removed")
        is_gone = request.voter_directory_id == leaving.key.directory_id and code is ErrorCode.NONE
        if is_gone and self._rng.random() < 0.5:
            self._world.log("quorum", f"controller-{node_id} has an empty disk")
            await self._world.controllers[node_id].replace_disk()

    async def _ask(
        self, active: ControllerServer, request: AddRaftVoterRequest | RemoveRaftVoterRequest, about: str
    ) -> ErrorCode | None:
        """The error code; None if there is no response."""
        code = None
        version = _NEWEST if isinstance(request, AddRaftVoterRequest) else 0
        with trio.move_on_after(_PATIENCE_SECONDS):
            try:
                response = await active.node.ask(request, RequestSource(version), LISTENER)
                code = known_code(response.error_code)
            except KafkaError as error:
                code = error.code
            except Crashed:
                code = None  # the controller has died while it wrote this down
        self._world.log("quorum", f"{about}: {'no answer' if code is None else code.name}")
        return code


__all__ = ["VoterChanges"]
