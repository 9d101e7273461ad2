"""What the brokers of a system agree by: the servers beside them or among them, where these are, and who is the controller.

A kind of system is a ``Kind``: how many brokers it has, which hosts beside theirs, and how its ``Coordination`` is made.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.compat_tests.brokers import BrokerProcess
from ottla.compat_tests.cut_network import ALL_PORTS, Network

from .clients import REPLICAS

SESSION_S = 6.0
"""After so long without a sign of life a broker counts as gone."""
VIEW_S = 2.0
"""How long a broker may take to say who is the controller."""


class Coordination(ABC):
    """Made, but not started. ``hosts`` are those of the servers by which brokers agree."""

    brokers: Sequence[BrokerProcess]
    """``brokers[0]`` is broker 1."""
    nodes: Sequence[BrokerProcess]
    """The brokers, then the controllers that are no brokers. Faults are for each of them."""
    hosts: Sequence[str]
    delicate_hosts: Sequence[str] = ()
    """Those whose disks and clocks are left as they are."""
    ports: Sequence[int] = ALL_PORTS
    """Those of its servers, if there are brokers on the same hosts."""
    broker_ports: Sequence[int] = ALL_PORTS
    """Those of the brokers, in the same case."""
    placement: Sequence[Sequence[int]] = ()
    """The brokers of each partition of the test's topics; empty if the cluster may choose."""

    @property
    @abstractmethod
    def bootstrap(self) -> str:
        """host:port of every broker."""

    @abstractmethod
    def start(self) -> None:
        """Start everything. Raises RuntimeError and AssertionError, as ``BrokerCluster.start``."""

    @abstractmethod
    def before_start(self, broker: BrokerProcess) -> None:
        """Wait for what a node's start needs, or prepare it."""

    @abstractmethod
    def controller(self) -> int | None:
        """The id of the controller, from a broker that can be reached."""

    @abstractmethod
    def depose_controller(self) -> bool:
        """Have another controller elected; False if that cannot be done now."""

    def what_is_not_whole(self) -> str | None:
        """Which of the servers, by which brokers agree, does not take part yet; None if all do."""
        return None

    def replicas(self, rng: random.Random) -> list[int]:
        """Brokers for a partition that is moved."""
        return rng.sample(range(1, len(self.brokers) + 1), REPLICAS)

    def stop(self, broker: BrokerProcess) -> None:
        """SIGTERM to a node. Raises AssertionError if that is not a clean end, TimeoutExpired if it takes too long."""
        broker.stop()

    @abstractmethod
    def administrators(self) -> Sequence[BrokerProcess]:
        """The brokers that take changes of the cluster: each is asked until one answers."""

    @abstractmethod
    def close(self) -> None:
        """End everything."""


class Kind(NamedTuple):
    """``count`` nodes, and ``own_hosts`` on which there are none."""

    count: int
    own_hosts: Sequence[str]
    make: Callable[[Path, Network], Coordination]


def host_of(number: int) -> str:
    """The name of a node's host."""
    return f"broker-{number}"
