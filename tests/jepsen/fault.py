"""The faults of the nemesis: each begins, lasts for a while, and ends; then the system can heal.

The broker is drawn from the seed, or it is the controller or a leader at that time. So a seed repeats the plan of a run, but
not every step: the timing of processes differs.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from .coordination import SESSION_S
from .system import Machine, System

SHORT_S = (2.0, 5.0)
LONG_S = (SESSION_S + 2, SESSION_S + 7)
"""Longer than the session time-out."""


class Fault(ABC):
    """One fault of one run."""

    name: ClassVar[str]
    lasts_s: ClassVar[tuple[float, float]] = LONG_S
    is_alone: ClassVar[bool] = False
    """Whether there must be no other fault meanwhile."""
    runs_whole: ClassVar[bool] = False
    """Whether it must begin when every replica is in sync."""

    def __init__(self, system: System, rng: random.Random) -> None:
        self.system = system
        self.rng = rng
        self.network = system.network
        self.coordination = system.coordination

    @classmethod
    def is_possible(cls, system: System) -> bool:
        """Whether it is possible on this machine."""
        return True

    @abstractmethod
    def begin(self) -> str:
        """Do it. Returns a description."""

    def end(self) -> None:
        """Undo it. The nemesis restarts brokers that have ended."""
        return None

    def candidates(self) -> Sequence[Machine]:
        """The brokers that it may affect."""
        return self.system.machines

    def machine(self) -> Machine:
        """One of them: any, the controller, or the leader of some partition."""
        role, choice = self.rng.choice(("any", "controller", "leader")), self.rng.random()
        wanted: list[int | None] = []
        if role == "controller":
            wanted = [self.coordination.controller()]
        elif role == "leader":
            wanted = [state.leader for state in self.system.any_partitions()]
        among = {machine.number: machine for machine in self.candidates()}
        numbers = [number for number in wanted if number in among] or list(among)
        return among[numbers[int(choice * len(numbers))]]

    def some_machines(self) -> list[Machine]:
        """One or more of the brokers."""
        return self.rng.sample(self.system.machines, self.rng.choice((1, 1, 2, len(self.system.machines))))


def kill(machines: Sequence[Machine]) -> None:
    """Send SIGKILL to those that run."""
    for machine in machines:
        if machine.process.is_running:
            machine.process.kill()


def numbers(machines: Sequence[Machine]) -> str:
    """Their ids as text."""
    return " and ".join(str(machine.number) for machine in machines) or "none"
