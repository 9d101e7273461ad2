"""Faults of the network: connections that are cut, and slow ones."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.compat_tests.cut_network import ALL_PORTS, CLIENTS, both_ways, ways_to

from .fault import Fault, numbers
from .system import Machine, System


class Cut(Fault):
    """A fault that cuts connections between hosts."""

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return system.network.can_cut

    def end(self) -> None:
        self.network.heal()

    def others(self, machine: Machine) -> list[str]:
        """The hosts of the other nodes."""
        return [other.host for other in self.system.machines if other is not machine]


class CutBroker(Cut):
    name = "cut-one-broker"

    def begin(self) -> str:
        machine = self.machine()
        self.network.cut(both_ways([machine.host], [*self.coordination.hosts, CLIENTS, *self.others(machine)]))
        return f"node {machine.number} cut from all"


class CutHalves(Cut):
    name = "cut-halves"

    def begin(self) -> str:
        hosts = list(dict.fromkeys([*self.coordination.hosts, *(machine.host for machine in self.system.machines)]))
        self.rng.shuffle(hosts)
        one, other = hosts[:2], hosts[2:]
        self.network.cut(both_ways(one, other))
        return f"{' and '.join(one)} cut from {' and '.join(other)}, clients reach all"


class CutOneWay(Cut):
    name = "cut-one-way"

    def begin(self) -> str:
        machine, agree = self.machine(), self.coordination
        servers, brokers = list(agree.hosts), self.others(machine)
        both = list(dict.fromkeys([*servers, *brokers]))
        others, ports = self.rng.choice(((servers, agree.ports), (brokers, agree.broker_ports), (both, ALL_PORTS)))
        what = f"{' and '.join(others)}{f' at the ports {ports}' if ports != ALL_PORTS else ''}"
        if self.rng.random() < 0.5:
            self.network.cut(ways_to([machine.host], others, ports))
            return f"nothing from node {machine.number} to {what}"
        self.network.cut(ways_to(others, [machine.host], ports))
        return f"nothing to node {machine.number} from {what}"


class CutFromCoordination(Cut):
    name = "cut-from-coordination"

    def begin(self) -> str:
        machines = self.some_machines()
        agree = self.coordination
        self.network.cut(both_ways(agree.hosts, [machine.host for machine in machines], agree.ports))
        return f"brokers {numbers(machines)} cut from what brokers agree by, {' and '.join(agree.hosts)}, only"


class CutOfBroker(Cut):
    def candidates(self) -> Sequence[Machine]:
        return self.system.brokers


class CutFollowers(CutOfBroker):
    name = "cut-followers"

    def begin(self) -> str:
        machine = self.machine()
        self.network.cut(both_ways([machine.host], self.others(machine), self.coordination.broker_ports))
        return f"broker {machine.number} cut from the other brokers, not from what they agree by, nor from clients"


class CutClients(CutOfBroker):
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
        return f"the link of node {machine.number} is slow"

    def end(self) -> None:
        self.network.heal()
