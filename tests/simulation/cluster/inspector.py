"""Inspects all brokers of a cluster, repeatedly during the faults, and at the end.

Invariants at any time, if nothing may be lost:

- a partition has one leader in each leader epoch;
- what is below any replica's high watermark is the same bytes on all replicas, for ever (``committed``);
- an in-sync replica has everything up to the highest watermark that any leader has had, unless it has just lost it;
- so has an eligible leader replica (KIP-966);
- a leader that was replaced commits nothing that its successor did not begin with;
- no transaction is open in a replica in sync that began below the last stable offset of any leader.

Invariants at any time, whatever may be lost:

- a running broker has accepted no records of a leader epoch that it does not know (KAFKA-18723);
- no controller has written a partition's state after the next one was elected.

At the end, when everything is healed, no replicas are being moved, replicas are equal in every byte, partitions have their
preferred leaders, and nothing is left of topics that were deleted, or of replicas that were moved elsewhere.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator

import trio

from ottla.log.files import METADATA_PARTITION_DIR
from ottla.replication.partition import Partition
from ottla.wire.records import iter_complete_batches

from ..clients import PARTITIONS
from ..history import TopicPartition
from ..machine import DATA, Machine
from .machines import SimulatedCluster

LOOK_SECONDS = 0.1
_LOG_FOLDER = re.compile(r".*-[0-9]+")
_WHOLE = [partition for partition in PARTITIONS if partition[0] == "plain"]
"""The partitions in which replicas do not remove records on their own, by compaction or age."""


@dataclasses.dataclass
class _Committed:
    """What was committed in one partition: ``batches`` by base offset, all of them below ``end``."""

    batches: dict[int, tuple[int, bytes]] = dataclasses.field(default_factory=dict)
    end: int = 0


class Inspector:
    """``run`` is to be started as a task."""

    def __init__(self, world: SimulatedCluster) -> None:
        self._world = world
        self._leaders: dict[tuple[bytes, TopicPartition, int], int] = {}
        self._watermarks: dict[TopicPartition, int] = {}
        self._stable: dict[TopicPartition, int] = {}
        self._committed = {partition: _Committed() for partition in _WHOLE}
        self._verified: dict[tuple[int, int, TopicPartition], int] = {}
        """Up to which offset a replica was compared, by broker and life."""
        self._found_epochs: dict[tuple[int, int, TopicPartition], int] = {}
        """The newest epoch in a replica's log when it was first inspected, by broker and life."""

    async def run(self) -> None:
        while True:
            await trio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        """Check the present state."""
        world = self._world
        found = [
            (broker_id, partition, (partition.topic, partition.log.partition))
            for broker_id in world.machines
            for partition in self.partitions(broker_id)
        ]
        for broker_id, partition, key in found:
            self._check_leader(broker_id, partition, key)
            self._check_epoch(broker_id, partition, key)
        world.check_writes()
        if world.mode.may_lose:
            return
        for broker_id, partition, key in found:
            if key in self._committed and not world.damage.has(broker_id, key):
                self._check_committed(broker_id, partition, key)
        self._check_replaced(found)
        states = world.states()
        for broker_id, partition, key in found:
            if broker_id in world.eligible(key) and partition.log.log_end_offset < self._watermarks.get(key, 0):
                world.violate(f"{key} is committed up to {self._watermarks[key]}, and {broker_id} of its ELR has less")
            if key in states and broker_id in states[key].isr and not world.damage.has(broker_id, key):
                end, committed = partition.log.log_end_offset, self._watermarks.get(key, 0)
                if end < committed:
                    world.violate(f"{key} is committed up to {committed}, and {broker_id} in its ISR ends at {end}")
                open_from, stable = next(iter(partition.log.producer_state.ongoing), end), self._stable.get(key, 0)
                if open_from < stable:
                    world.violate(
                        f"{key} is stable up to {stable}; in {broker_id} of its ISR it is open from {open_from}"
                    )

    def partitions(self, broker_id: int) -> Iterator[Partition]:
        """The replicas of a running broker."""
        machine = self._world.machines[broker_id]
        assembly = None if machine.server is None else machine.server.assembly
        if machine.is_serving and not machine.disk.is_dead and not machine.is_faulty and assembly is not None:
            services = getattr(assembly, "services", None)
            if services is not None:
                yield from services.replicas.partitions()

    def _check_leader(self, broker_id: int, partition: Partition, key: TopicPartition) -> None:
        if partition.leader is None:
            return
        leader = self._leaders.setdefault((partition.topic_id, key, partition.leader_epoch), broker_id)
        if leader != broker_id:
            self._world.violate(f"{key} has two leaders in epoch {partition.leader_epoch}: {leader} and {broker_id}")
        self._watermarks[key] = max(self._watermarks.get(key, 0), partition.log.high_watermark)
        if partition.log.high_watermark >= partition.leader.epoch_start_offset:
            # Before that it may know from a snapshot that a transaction has ended, but not that its end marker is committed.
            committed = partition.log.high_watermark
            unstable = partition.log.producer_state.first_unstable_offset(committed)
            stable = committed if unstable is None else min(unstable, committed)
            self._stable[key] = max(self._stable.get(key, 0), stable)

    def _check_replaced(self, found: list[tuple[int, Partition, TopicPartition]]) -> None:
        """A fenced broker that leads on acknowledges nothing with acks=all that the new leader lacks."""
        newest: dict[TopicPartition, Partition] = {}
        for _, partition, key in found:
            if partition.leader is not None and (
                key not in newest or newest[key].leader_epoch < partition.leader_epoch
            ):
                newest[key] = partition
        for broker_id, partition, key in found:
            new = newest.get(key)
            if partition.leader is None or new is None or new.leader is None or new.topic_id != partition.topic_id:
                continue
            begins, committed = new.leader.epoch_start_offset, partition.log.high_watermark
            if partition.leader_epoch < new.leader_epoch and committed > begins:
                self._world.violate(f"{broker_id}, replaced in {key}, commits up to {committed}, not {begins}")

    def _check_epoch(self, broker_id: int, partition: Partition, key: TopicPartition) -> None:
        newest, told = partition.log.latest_epoch, partition.leader_epoch
        place = (broker_id, self._world.machines[broker_id].lives, key)
        if newest > max(told, self._found_epochs.setdefault(place, newest)):
            self._world.violate(f"{broker_id} has records of epoch {newest} of {key}, and was told of {told}")

    # --- what is committed --------------------------------------------------------------------------------------------

    def _check_committed(self, broker_id: int, partition: Partition, key: TopicPartition) -> None:
        """Compare what a replica has committed since the last look with the other replicas."""
        machine = self._world.machines[broker_id]
        place = (broker_id, machine.lives, key)
        verified, up_to = self._verified.get(place, 0), partition.log.high_watermark
        if verified >= up_to:
            return
        committed = self._committed[key]
        for base, end, data in batches(machine, key, verified, up_to):
            if base < committed.end:
                known = committed.batches.get(base)
                if known is not None and known != (end, data):
                    self._world.violate(f"{broker_id} has other bytes at {base} of {key}, below its watermark {up_to}")
                elif known is None:
                    self._world.violate(f"{broker_id} has a batch at {base} of {key} where none was committed")
            elif end > committed.end:
                committed.batches[base] = (end, data)
                committed.end = end
            verified = end
        self._verified[place] = verified

    # --- in the end ---------------------------------------------------------------------------------------------------

    def unsettled(self) -> str | None:
        """Why the cluster has not yet recovered completely; None if it has."""
        world = self._world
        for machine in world.machines.values():
            if not machine.ready.is_set():
                return f"{machine.name} does not serve"
        if world.controller() is None:
            return "there is no controller"
        if unfinished := world.unfinished():
            return unfinished
        if moving := world.moving():
            return f"replicas are being moved: {moving}"
        for (topic, number), state in world.states().items():
            replicas = world.assignment(topic)[number]
            if state.leader not in replicas:
                return f"{topic}-{number} is led by {state.leader}"
            if set(state.isr) != set(replicas):
                return f"{topic}-{number} has the ISR {state.isr} of {replicas}"
        ends: dict[TopicPartition, set[tuple[int, int]]] = {}
        states = world.states()
        for broker_id in world.machines:
            for partition in self.partitions(broker_id):
                state = states.get((partition.topic, partition.log.partition))
                known = partition.leader_id, partition.leader_epoch
                if state is None or known != (state.leader, state.leader_epoch):
                    return f"{broker_id} knows leader and epoch {known} of {partition.log}, and the store has {state}"
                where = partition.log.log_end_offset, partition.log.high_watermark
                ends.setdefault((partition.topic, partition.log.partition), set()).add(where)
        for key, found in ends.items():
            if len(found) > 1 or any(end != watermark for end, watermark in found):
                return f"{key} has (end, watermark) {sorted(found)}"
        return None

    def unbalanced(self) -> str | None:
        """A partition that is not led by its preferred leader, as text; None if there is none."""
        for (topic, number), state in self._world.states().items():
            preferred = self._world.assignment(topic)[number][0]
            if state.leader != preferred:
                return f"{topic}-{number} is led by {state.leader}, not {preferred}"
        return None

    def check_equal(self) -> None:
        """All replicas of each partition have the same bytes, from the highest of their log start offsets on."""
        for key in _WHOLE:
            logs: dict[int, list[tuple[int, int, bytes]]] = {}
            starts = []
            for broker_id, machine in self._world.machines.items():
                for partition in self.partitions(broker_id):
                    if (partition.topic, partition.log.partition) == key:
                        starts.append(partition.log.log_start_offset)
                        logs[broker_id] = list(batches(machine, key, 0, partition.log.log_end_offset))
            if not logs:
                continue
            start = max(starts)
            contents = {i: [batch for batch in log if batch[1] > start] for i, log in logs.items()}
            first, *others = contents
            for other in others:
                if contents[other] != contents[first]:
                    self._world.violate(f"{key} is not the same on {first} and {other}")

    def check_strays(self) -> None:
        """No broker has a log of a partition that is not in the cluster, or of which it has no replica (any more)."""
        world = self._world
        for broker_id, machine in world.machines.items():
            known = {f"{t}-{number}" for t, number in world.states() if broker_id in world.assignment(t)[number]}
            folders = {path.split("/")[2] for path in machine.disk.paths() if path.startswith(f"{DATA}/")}
            for folder in sorted(folders - known - {METADATA_PARTITION_DIR}):
                if _LOG_FOLDER.fullmatch(folder):
                    world.violate(f"{machine.name} has a log {folder}, of which it is no replica")


def batches(machine: Machine, partition: TopicPartition, start: int, end: int) -> Iterator[tuple[int, int, bytes]]:
    """Base offset, next offset and bytes of the batches on a machine's disk from ``start`` on that end by ``end``."""
    folder = f"{DATA}/{partition[0]}-{partition[1]}"
    paths = [path for path in machine.disk.paths_in(folder) if path.endswith(".log")]
    bases = [int(path.rsplit("/", 1)[1].removesuffix(".log")) for path in paths]
    for at, path in enumerate(paths):
        if at + 1 < len(paths) and bases[at + 1] <= start:
            continue
        for batch in iter_complete_batches(machine.disk.content(path)):
            if batch.base_offset >= start and batch.next_offset <= end:
                yield batch.base_offset, batch.next_offset, bytes(batch.view)
