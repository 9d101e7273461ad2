"""Faults of a machine: disk, clock, file descriptors."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Sequence

from .fault import SHORT_S, Fault, kill
from .system import Machine, System


class MachineFault(Fault):
    """A fault of a machine that is not a delicate one."""

    def candidates(self) -> Sequence[Machine]:
        return [machine for machine in self.system.machines if machine.host not in self.coordination.delicate_hosts]


class FullDisk(MachineFault):
    name = "full-disk"
    lasts_s = SHORT_S

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return system.has_small_disks

    def begin(self) -> str:
        self._machine = self.machine()
        self._machine.may_end()
        self._machine.fill_disk()
        return f"the disk of node {self._machine.number} is full"

    def end(self) -> None:
        self._machine.free_disk()


class EmptyDisk(MachineFault):
    """A node that comes back with an empty disk. The others have its data: they are in sync everywhere, and it is nowhere.

    A broker that is in sync is assumed to have everything, in Kafka, too; so first it has to be out of sync everywhere. A
    controller that has lost its votes is another voter: it has the one that it was removed, and itself added (KIP-853).
    """

    name = "empty-disk"
    lasts_s = SHORT_S
    is_alone = True
    runs_whole = True
    _PATIENCE_S = 30.0

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return system.has_small_disks

    def begin(self) -> str:
        machine = self.machine()
        kill([machine])
        others = [other for other in self.system.brokers if other is not machine]
        deadline = time.monotonic() + self._PATIENCE_S
        while time.monotonic() < deadline:
            if not machine.is_broker or all(
                self._are_alone(other, [each.number for each in others]) for other in others
            ):
                machine.empty_disk()
                return f"node {machine.number} gets an empty disk"
            time.sleep(0.5)
        return f"node {machine.number} is killed, and keeps its disk, for the others are not in sync"

    def _are_alone(self, asked: Machine, numbers: Sequence[int]) -> bool:
        states = self.system.partitions(asked)
        return states is not None and all(set(state.in_sync) == set(state.replicas) & set(numbers) for state in states)


class Tampered(MachineFault):
    """A fault that needs ``tampering``."""

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return all(machine.tampering is not None for machine in system.machines)

    def tell(self, *, clock_s: float = 0.0, fsync_s: float = 0.0) -> None:
        """Change the clock or disk of the node's process."""
        assert self._machine.tampering is not None
        self._machine.tampering.tell(clock_s=clock_s, fsync_s=fsync_s)

    def begin(self) -> str:
        self._machine = self.machine()
        return self.tamper()

    @abstractmethod
    def tamper(self) -> str:
        """``begin``, for the chosen broker."""

    def end(self) -> None:
        self.tell()


class SlowFsync(Tampered):
    name = "slow-fsync"

    def candidates(self) -> Sequence[Machine]:
        return self.system.machines

    def tamper(self) -> str:
        self.tell(fsync_s=0.5)
        return f"each fsync of node {self._machine.number} takes 0.5 s longer"


class ClockJump(Tampered):
    name = "clock-jump"

    def tamper(self) -> str:
        seconds = self.rng.choice((-1, 1)) * self.rng.choice((5, 60, 3600))
        self.tell(clock_s=seconds)
        return f"the clock of node {self._machine.number} jumps by {seconds} s, and back later"


class NoDescriptors(MachineFault):
    name = "no-descriptors"

    def begin(self) -> str:
        self._machine = self.machine()
        if not self._machine.process.is_running:
            return "nothing, for that node does not run"
        self._machine.may_end()
        self._machine.limit_descriptors()
        return f"node {self._machine.number} has no file descriptors left"

    def end(self) -> None:
        self._machine.free_descriptors()
