"""Faults of a quorum's controllers: the active one, or most of them, are killed, paused and cut off."""

from __future__ import annotations

from collections.abc import Sequence

from ottla.compat_tests.cut_network import both_ways, ways_to

from .fault import LONG_S, SHORT_S, Fault, kill, numbers
from .network_faults import Cut
from .quorum_coordination import QuorumCoordination
from .system import Machine, System


class QuorumFault(Fault):
    """A fault of a system whose controllers are a quorum."""

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return isinstance(system.coordination, QuorumCoordination)

    def controllers(self) -> list[Machine]:
        """Two of three: the active one, if there is one, and another."""
        all_of_them = [machine for machine in self.system.machines if machine.host in self.coordination.hosts]
        self.rng.shuffle(all_of_them)
        active = self.coordination.controller()
        return sorted(all_of_them, key=lambda machine: machine.number != active)[:2]


class KillController(QuorumFault):
    name = "kill-controller"
    lasts_s = SHORT_S

    def begin(self) -> str:
        machine = self.controllers()[0]
        kill([machine])
        return f"kill -9 of the active controller, {machine.number}"


class KillControllers(QuorumFault):
    """Without most of the controllers nobody leads the quorum."""

    name = "kill-controllers"
    lasts_s = LONG_S
    is_alone = True

    def begin(self) -> str:
        machines = self.controllers()
        kill(machines)
        return f"kill -9 of controllers {numbers(machines)}"


class PauseController(QuorumFault):
    name = "pause-controller"

    def begin(self) -> str:
        self._machines = [machine for machine in self.chosen() if machine.process.is_running]
        for machine in self._machines:
            machine.process.pause()
        return f"SIGSTOP to controllers {numbers(self._machines)}"

    def chosen(self) -> Sequence[Machine]:
        """Those that are paused."""
        return self.controllers()[:1]

    def end(self) -> None:
        for machine in self._machines:
            machine.process.resume()


class PauseControllers(PauseController):
    name = "pause-controllers"
    is_alone = True

    def chosen(self) -> Sequence[Machine]:
        return self.controllers()


class CutController(QuorumFault, Cut):
    """Between controllers, which are brokers, too: those go on replicating."""

    name = "cut-controller"

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return Cut.is_possible(system) and QuorumFault.is_possible(system)

    def begin(self) -> str:
        active, hosts, ports = self.controllers()[0], self.coordination.hosts, self.coordination.ports
        how = self.rng.choice(("nothing to", "nothing from", "nothing to and from"))
        if how == "nothing to":
            self.network.cut(ways_to(hosts, [active.host], ports))
        elif how == "nothing from":
            self.network.cut(ways_to([active.host], hosts, ports))
        else:
            self.network.cut(both_ways([active.host], hosts, ports))
        return f"{how} the active controller {active.number}, between controllers"


class CutFromActive(CutController):
    """Brokers find the active controller by the others, and cannot reach it."""

    name = "cut-from-active-controller"

    @classmethod
    def is_possible(cls, system: System) -> bool:
        return super().is_possible(system) and bool(cls._apart(system))

    @staticmethod
    def _apart(system: System) -> list[str]:
        """The hosts of brokers that are no controllers."""
        return [machine.host for machine in system.brokers if machine.host not in system.coordination.hosts]

    def begin(self) -> str:
        active, ports, apart = self.controllers()[0], self.coordination.ports, self._apart(self.system)
        self.network.cut(both_ways([active.host], apart, ports))
        return f"{' and '.join(apart)} cut from the active controller {active.number}, not from the others"
