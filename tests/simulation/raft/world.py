"""A simulated world of machines of a quorum: time, the network between them, and what is counted.

No loop and no threads: the world is a queue of what happens when, and everything in it is decided by a seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from typing import Any

from ottla.controller.raft import effects, events
from ottla.controller.raft.log_outline import QuorumEntry
from ottla.controller.raft.settings import RaftTimes
from ottla.controller.raft.voter_set import QuorumVoter, VoterSet
from ottla.controller.raft.voters import ControllerAddress
from ottla.log.metadata_snapshots import BOOTSTRAP_ID
from ottla.tests.simulation.raft.inspector import QuorumInspector
from ottla.tests.simulation.raft.machine import RaftMachine, encode_model_snapshot, endpoint_of, key_of
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.schema import ZERO_UUID, Message

TIMES = RaftTimes(fetch_max_bytes=400, fetch_snapshot_max_bytes=150)


class QuorumWorld:
    """See the module. ``voters`` are the ids of the first voters, ``controllers`` of those that may become some.

    With ``is_static`` the voters are those of ``controller.quorum.voters``, until
    ``kraft.version`` is raised. With ``is_real`` the product's
    own log is on their disks, instead of a model of it.
    """

    def __init__(
        self,
        seed: int,
        voters: Iterable[int],
        controllers: Iterable[int] = (),
        brokers: Iterable[int] = (),
        *,
        is_static: bool = False,
        is_real: bool = False,
        is_verbose: bool = False,
        times: RaftTimes = TIMES,
    ) -> None:
        self.seed = seed
        self.random = random.Random(f"{seed} world")
        self.now_ms = 0.0
        self.is_verbose = is_verbose
        self.events: list[str] = []
        self.inspector = QuorumInspector()
        self.steps = self.elections = self.crashes = 0
        self.times = times
        self.is_static = is_static
        self.loss = 0.0
        self.doubled = 0.0
        self.delay_ms = 1.0
        self.power = 0.5
        """The share of deaths that are losses of power."""
        self.is_encoded = False
        """Whether messages are encoded and decoded on their way."""
        self.cut: set[tuple[int, int]] = set()
        self._queue: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        first = [*voters]
        self.machines = {node_id: RaftMachine(self, node_id, True, is_real) for node_id in (*first, *controllers)}
        self.machines.update({node_id: RaftMachine(self, node_id, False, is_real) for node_id in brokers})
        self.bootstrap = [ControllerAddress(*endpoint_of(node_id)[1:]) for node_id in (*first, *controllers)]
        members = [QuorumVoter(key_of(node_id), (endpoint_of(node_id),), 0, 1) for node_id in first]
        self.static_voters = VoterSet()
        if is_static:
            self.static_voters = VoterSet(
                QuorumVoter(each.key._replace(directory_id=ZERO_UUID), each.endpoints) for each in members
            )
        else:
            snapshot = encode_model_snapshot(QuorumEntry(-1, 1, VoterSet(members)), BOOTSTRAP_ID, b"")
            for node_id in first:
                self.machines[node_id].disk.snapshots[BOOTSTRAP_ID] = snapshot

    # --- time ---------------------------------------------------------------------------------------------------------

    def at(self, time_ms: float, happen: Callable[..., None], *arguments: Any) -> None:
        self._count += 1
        heapq.heappush(self._queue, (time_ms, self._count, happen, arguments))

    def after(self, delay_ms: float, happen: Callable[..., None], *arguments: Any) -> None:
        self.at(self.now_ms + delay_ms, happen, *arguments)

    def run(self, until_ms: float, is_done: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass; True as soon as ``is_done`` holds."""
        while not is_done():
            if not self._queue or self._queue[0][0] > until_ms:
                self.now_ms = until_ms
                return is_done()
            self.now_ms, _, happen, arguments = heapq.heappop(self._queue)
            happen(*arguments)
        return True

    def log(self, who: str, what: str) -> None:
        if self.is_verbose:
            self.events.append(f"{self.now_ms:12.3f} {who:10} {what}")

    # --- machines -----------------------------------------------------------------------------------------------------

    def start(self, node_id: int) -> None:
        machine = self.machines[node_id]
        if machine.node is None:
            machine.start(self.times, self.bootstrap, self.static_voters)

    def loses_power(self) -> bool:
        return self.random.random() < self.power

    def reordered(self, new: list[effects.RaftEffect]) -> list[effects.RaftEffect]:
        """The effects of a step in the order in which a driver performs them."""
        return new

    @property
    def leader(self) -> RaftMachine | None:
        """The machine with the active controller of the highest epoch."""
        leading = [machine for machine in self.machines.values() if machine.leads is not None]
        return max(leading, key=lambda machine: machine.leads or 0, default=None)

    # --- the network --------------------------------------------------------------------------------------------------

    def send(self, machine: RaftMachine, receiver: int, sender: tuple[int, int, int], request: Message) -> None:
        request = self._on_the_wire(request)
        for delay in self._deliveries(machine.node_id, receiver):
            self.after(delay, self._deliver, receiver, sender, request)

    def _deliver(self, receiver: int, sender: tuple[int, int, int], request: Message) -> None:
        self.machines[receiver].receive(sender, request)

    def _on_the_wire(self, message: Message) -> Message:
        if not self.is_encoded:
            return message
        version = message.valid_versions[-1]
        return decode(type(message), version, encode_bytes(message, version))

    def answer(self, machine: RaftMachine, sender: tuple[int, int, int], response: Message) -> None:
        response = self._on_the_wire(response)
        for delay in self._deliveries(machine.node_id, sender[0]):
            self.after(delay, self._take, sender, events.ResponseReceived(sender[2], response))

    def fail(self, sender: tuple[int, int, int]) -> None:
        """A connection was refused."""
        self.after(1.0, self._take, sender, events.RequestFailed(sender[2], is_refused=True))

    def _take(self, sender: tuple[int, int, int], event: events.RaftEvent) -> None:
        node_id, life, _ = sender
        if node_id < 0:  # a client of the cluster
            if isinstance(event, events.ResponseReceived):
                self.log("client", repr(event.response))
                self.answered(event.response)
        elif self.machines[node_id].life == life:
            self.machines[node_id].step(event)

    def answered(self, response: Message) -> None:
        """A client has got a response."""

    def _deliveries(self, source: int, target: int) -> list[float]:
        """After how long a message arrives: not at all, once, or twice."""
        if (source, target) in self.cut or (self.loss and self.random.random() < self.loss):
            return []
        delays = [self.random.expovariate(1 / self.delay_ms)]
        if self.doubled and self.random.random() < self.doubled:
            delays.append(self.random.expovariate(1 / (10 * self.delay_ms)))
        return delays

    def ask(self, node_id: int, request: Message) -> None:
        """A client sends a request."""
        self._deliver(node_id, (-1, 0, 0), request)
