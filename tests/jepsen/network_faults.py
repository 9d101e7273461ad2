"""Faults of the network: connections that are cut, and slow ones."""

from __future__ import annotations

from .fault import Fault, numbers
from .network import CLIENTS, both_ways
from .system import Machine, System


class Cut(Fault):
    """A fault that cuts connections between hosts."""

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return system.network.can_cut

    def end(self) -> None:
        self.network.heal()

    def others(self, machine: Machine) -> list[str]:
        """The hosts of the other brokers."""
        return [other.host for other in self.system.machines if other is not machine]


class CutBroker(Cut):
    name = "cut-one-broker"

    def begin(self) -> str:
        machine = self.machine()
        self.network.cut(both_ways([machine.host], [*self.coordination.hosts, CLIENTS, *self.others(machine)]))
        return f"broker {machine.number} cut from all"


class CutHalves(Cut):
    name = "cut-halves"

    def begin(self) -> str:
        hosts = [*self.coordination.hosts, *(machine.host for machine in self.system.machines)]
        self.rng.shuffle(hosts)
        one, other = hosts[:2], hosts[2:]
        self.network.cut(both_ways(one, other))
        return f"{' and '.join(one)} cut from {' and '.join(other)}, clients reach all"


class CutOneWay(Cut):
    name = "cut-one-way"

    def begin(self) -> str:
        machine, servers = self.machine(), self.coordination.hosts
        others = self.rng.choice((servers, self.others(machine), [*servers, *self.others(machine)]))
        if self.rng.random() < 0.5:
            self.network.cut((machine.host, other) for other in others)
            return f"nothing from broker {machine.number} to {' and '.join(others)}"
        self.network.cut((other, machine.host) for other in others)
        return f"nothing to broker {machine.number} from {' and '.join(others)}"


class CutFromZooKeeper(Cut):
    name = "cut-from-zookeeper"

    def begin(self) -> str:
        machines = self.some_machines()
        self.network.cut(both_ways(self.coordination.hosts, [machine.host for machine in machines]))
        return f"brokers {numbers(machines)} cut from ZooKeeper only"


class CutFollowers(Cut):
    name = "cut-followers"

    def begin(self) -> str:
        machine = self.machine()
        self.network.cut(both_ways([machine.host], self.others(machine)))
        return f"broker {machine.number} cut from the other brokers, not from ZooKeeper and clients"


class CutClients(Cut):
    name = "cut-from-clients"

    def begin(self) -> str:
        machine = self.machine()
        self.network.cut(both_ways([CLIENTS], [machine.host]))
        return f"broker {machine.number} cut from clients only"


class SlowLink(Fault):
    name = "slow-link"

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return system.network.can_slow

    def begin(self) -> str:
        machine = self.machine()
        self.network.slow([machine.host])
        return f"the link of broker {machine.number} is slow"

    def end(self) -> None:
        self.network.heal()
