"""What the nemesis does to a system: each fault begins, lasts a while, and ends; after that everything may heal.

Which broker is meant is drawn from the seed, or it is the controller's, or a leader's, as the system says at that moment. So a
seed repeats the plan of a run, not its every step: processes have their own time.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from .system import BROKERS, SESSION_S, Machine, System

SHORT_S = (2.0, 5.0)
LONG_S = (SESSION_S + 2, SESSION_S + 7)
"""Longer than a session lasts."""


class Fault(ABC):
    """One fault of one run."""

    name: ClassVar[str]
    lasts_s: ClassVar[tuple[float, float]] = LONG_S
    is_alone: ClassVar[bool] = False
    """Whether nothing else may go wrong meanwhile."""
    runs_whole: ClassVar[bool] = False
    """Whether it begins when every replica is in sync, and not before."""

    def __init__(self, system: System, rng: random.Random) -> None:
        self.system = system
        self.rng = rng
        self.network = system.network

    @classmethod
    def is_possible(cls, system: System) -> bool:
        """Whether it can be had here."""
        return True

    @abstractmethod
    def begin(self) -> str:
        """Do it; says what was done, and to whom."""

    def end(self) -> None:
        """Undo it. Brokers that have ended are started by the nemesis."""
        return None

    def machine(self) -> Machine:
        """One of the brokers: any, the controller's, or the leader of some partition."""
        role, choice = self.rng.choice(("any", "controller", "leader")), self.rng.random()
        number = int(choice * BROKERS) + 1
        if role == "controller":
            number = self.system.controller() or number
        elif role == "leader":
            leaders = [state.leader for state in self.system.any_partitions() if state.leader > 0]
            number = leaders[int(choice * len(leaders))] if leaders else number
        return self.system.machines[number - 1]

    def some_machines(self) -> list[Machine]:
        """One to all of the brokers."""
        return self.rng.sample(self.system.machines, self.rng.choice((1, 1, 2, BROKERS)))


def kill(machines: Sequence[Machine]) -> None:
    """SIGKILL, to those that run."""
    for machine in machines:
        if machine.broker.is_running:
            machine.broker.kill()


def stop(machine: Machine) -> None:
    """SIGTERM, if it runs, and wait for its end. AssertionError where that is not a clean one."""
    if machine.broker.is_running:
        machine.broker.stop()


def numbers(machines: Sequence[Machine]) -> str:
    """Their ids, in words."""
    return " and ".join(str(machine.number) for machine in machines) or "none"
