"""One run of a seed: its mode, its randomness, and the log of what happened in it.

What may be lost depends on the ``Mode``: nothing when processes are killed, or when power is lost while every record is
flushed before it is acknowledged. In a cluster nothing is lost either when power is lost without a flush, as long as
another replica in sync survives. With any other loss of power only a prefix of each log need survive.
"""

from __future__ import annotations

import enum
import hashlib
import random

import trio


class Mode(enum.Enum):
    """How machines fail, and therefore what may be lost. ``POWER_OF_ONE`` is for clusters."""

    KILLS = "kills"
    POWER_WITH_FLUSH = "power+flush"
    POWER_OF_ONE = "power of one"
    POWER = "power"

    @property
    def may_lose(self) -> bool:
        """Whether acknowledged records may be lost, as Kafka allows when no replica with them is left."""
        return self is Mode.POWER


class Violation(AssertionError):
    """An invariant does not hold."""


class Run:
    """See the module. Every random choice comes from ``seed``, by ``random_for``."""

    def __init__(self, seed: int, mode: Mode) -> None:
        self.seed = seed
        self.mode = mode
        self.events: list[str] = []
        self.violations: list[str] = []
        self.lives = 0
        """How many times brokers have started."""
        self._digest = hashlib.sha256()

    def random_for(self, what: str) -> random.Random:
        return random.Random(f"{self.seed} {what}")

    def log(self, who: str, what: str) -> None:
        line = f"{trio.current_time():9.3f} {who:12} {what}"
        self.events.append(line)
        self._digest.update(line.encode())

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def violate(self, what: str) -> None:
        """Note that an invariant does not hold."""
        self.log("VIOLATION", what)
        self.violations.append(what)
