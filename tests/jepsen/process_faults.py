"""Faults of processes: nodes are killed, stopped and paused; the controller changes."""

from __future__ import annotations

import time
from collections.abc import Sequence

from .clients import TOPICS, partitions_of
from .fault import LONG_S, SHORT_S, Fault, kill, numbers


class Kill(Fault):
    name = "kill"
    lasts_s = SHORT_S

    def begin(self) -> str:
        machine = self.machine()
        kill([machine])
        return f"kill -9 of node {machine.number}"


class KillLong(Kill):
    name = "kill-beyond-the-session"
    lasts_s = LONG_S


class KillSeveral(Fault):
    name = "kill-several"
    lasts_s = SHORT_S

    def begin(self) -> str:
        machines = self.some_machines()
        kill(machines)
        return f"kill -9 of nodes {numbers(machines)}"


class Stop(Fault):
    name = "stop"
    lasts_s = SHORT_S

    def begin(self) -> str:
        machine = self.machine()
        self.system.stop_node(machine)
        return f"SIGTERM to node {machine.number}"


class RollingRestart(Fault):
    name = "rolling-restart"
    lasts_s = (0.0, 1.0)
    is_alone = True

    def begin(self) -> str:
        machines = self.rng.sample(self.system.machines, len(self.system.machines))
        for machine in machines:
            if machine.process.is_running:
                self.system.stop_node(machine)
                self.system.start_node(machine)
            self.system.wait_whole(20.0)
        return f"restart of nodes {numbers(machines)}, one after the other"


class Pause(Fault):
    name = "pause"
    lasts_s = LONG_S

    def begin(self) -> str:
        self._machines = [machine for machine in self.some_machines() if machine.process.is_running]
        for machine in self._machines:
            machine.process.pause()
        return f"SIGSTOP to nodes {numbers(self._machines)}"

    def end(self) -> None:
        for machine in self._machines:
            machine.process.resume()


class PauseShort(Pause):
    name = "pause-within-the-session"
    lasts_s = SHORT_S


class ControllerChange(Fault):
    """The controller is deposed: another broker is elected, or, on ZooKeeper, perhaps the same one."""

    name = "controller-change"
    lasts_s = (0.5, 2.0)

    def begin(self) -> str:
        controller = self.coordination.controller()
        if self.coordination.depose_controller():
            return f"node {controller} is no longer the controller"
        return "nothing, for it cannot be deposed now"


class ControllerChangeWhileMoving(Fault):
    """A partition loses a replica and gets it back, and the controller changes during both (KIP-455)."""

    name = "controller-change-while-moving"
    lasts_s = SHORT_S
    is_alone = True
    runs_whole = True
    _PATIENCE_S = 40.0

    def begin(self) -> str:
        self._partition = self.rng.choice([each for topic in TOPICS for each in partitions_of(topic)])
        self._all = self.coordination.replicas(self.rng)
        return f"{self._partition} moves to {self._all[1:]}: {self._move(self._all[1:])}"

    def end(self) -> None:
        self.system.start_all()  # with a second controller killed nobody would lead a quorum
        self._move(self._all)

    def _move(self, replicas: Sequence[int]) -> str:
        """Move the partition, with a change of the controller meanwhile. Returns a description."""
        deadline = time.monotonic() + self._PATIENCE_S
        while (error := self.system.reassign(self._partition, replicas)) != "NONE":
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._partition} is not moved to {replicas}: {error}")
            time.sleep(0.5)
        if self.rng.random() < 0.5:
            self.coordination.depose_controller()
            what = "the controller is deposed"
        else:
            controller = self.coordination.controller()
            if controller is not None:
                kill([self.system.machines[controller - 1]])
            what = f"the controller, node {controller}, is killed"
        while self.system.is_moving() is not False:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self._partition} does not come to an end of its move to {replicas} after {what}")
            time.sleep(0.5)
            self.system.start_all()
        return f"{what}, and it is done"
