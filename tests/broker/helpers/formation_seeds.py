"""Random formations, each decided by its seed: one to five nodes, one more that joins later, and faults until they are healed.

``python -m ottla.tests.broker.helpers.formation_seeds 1000-1999`` runs seeds, ``… 7`` shows the events of one, and ``--break
RULE`` runs seeds with a rule of ``formation_breakages`` broken until one is found out.
"""

from __future__ import annotations

import argparse
import random
import sys
import time

import pytest

from ottla.tests.broker.helpers.formation_world import BrokenRuleError, FormationWorld

FAULTS_MS = 30_000.0
HEALED_MS = 30_000.0


class SeededFormation:
    """One seed. Half of them have faults that come together: late messages of a process whose disk is lost when it has
    promised or decided.
    """

    def __init__(self, seed: int) -> None:
        self.randomness = random.Random(f"formation {seed}")
        roll = self.randomness
        count = roll.choice((1, 2, 3, 3, 3, 3, 4, 5))
        self.names = [f"h{number}" for number in range(1, count + 1)]
        self.all_names = [*self.names, f"h{count + 1}"]
        self.world = FormationWorld(self.all_names, random.Random(f"world {seed}"))
        self.is_harsh = roll.random() < 0.5
        self.has_wrong_lists = count > 1 and roll.random() < 0.3
        self.wrong_list = roll.choice((self.names[:-1], self.all_names, [self.all_names[-1], *self.names[1:]]))
        """By mistake: shorter, longer, or with another node in the first one's place."""

    def run(self) -> None:
        """Raises BrokenRuleError."""
        world, roll = self.world, self.randomness
        world.loss = roll.choice((0.0, 0.05, 0.3))
        world.doubles = roll.choice((0.0, 0.2))
        world.lateness = 0.3 if self.is_harsh else roll.choice((0.0, 0.05))
        if self.is_harsh:
            world.may_die = lambda host: roll.random() < 0.3
        world.on_death = self._died
        for name in self.all_names:
            world.at(roll.uniform(0, 10_000 if roll.random() < 0.5 else 500), lambda name=name: self._start(name))
        for _ in range(roll.randint(4, 30) if self.is_harsh else roll.randint(0, 6)):
            world.at(roll.uniform(0, FAULTS_MS), self._fault)
        world.run(FAULTS_MS)
        self._heal()
        world.run(HEALED_MS)
        world.check_formed(self.all_names)

    def _start(self, name: str) -> None:
        if self.world.hosts[name].is_up:
            return
        if self.randomness.random() < 0.3:
            self.world.hosts[name].disk.steps = self.randomness.randint(0, 60)
        self._raise_with(name, self._list_of(name))

    def _list_of(self, name: str) -> list[str]:
        roll, host = self.randomness, self.world.hosts[name]
        if host.cluster_id is not None and host.nodes:
            return [each.host for each in host.nodes]
        if not self.has_wrong_lists or roll.random() < 0.5:
            return self.names
        return self.wrong_list

    def _raise_with(self, name: str, names: list[str]) -> None:
        own = names.index(name) + 1 if name in names else len(names) + 1 + self.all_names.index(name)
        self.world.start(name, own, names)

    def _fault(self) -> None:
        world, roll = self.world, self.randomness
        name = roll.choice(self.all_names)
        host = world.hosts[name]
        kind = roll.choice(("kill", "power", "wipe", "pause", "cut", "heal", "die"))
        if kind in ("kill", "power", "wipe") and host.is_up:
            world.kill(name, loses_power=kind == "power")
            self._died(name, is_wiped=kind == "wipe")
        elif kind == "pause":
            host.is_paused = True
            world.at(roll.uniform(100, 8000), lambda: self._wake(name))
        elif kind == "cut":
            world.cut.add((name, roll.choice(self.all_names)))
        elif kind == "heal":
            world.cut.clear()
        else:
            host.disk.steps = roll.randint(0, 12)

    def _died(self, name: str, *, is_wiped: bool | None = None) -> None:
        """Maybe replace the disk; start the process again, soon or late."""
        world, roll = self.world, self.randomness
        if (roll.random() < 0.4 if is_wiped is None else is_wiped) and world.may_wipe(name):
            world.wipe(name)
        world.at(roll.choice((1.0, 300.0, 5000.0)), lambda: self._start(name))

    def _wake(self, name: str) -> None:
        self.world.hosts[name].is_paused = False

    def _heal(self) -> None:
        world = self.world
        world.note("everything is healed")
        world.loss = world.doubles = world.lateness = 0.0
        world.cut.clear()
        world.may_die = lambda host: False
        self.has_wrong_lists = False
        for name, host in world.hosts.items():
            host.is_paused, host.disk.steps = False, None
            if host.is_up and not host.is_formatted and self._is_wrong(name):
                world.kill(name)
            if not host.is_up:
                self._raise_with(name, self._list_of(name))
            if host.refusal is not None:
                self._do_as_refused(name)

    def _do_as_refused(self, name: str) -> None:
        """What the refusal asks its user for."""
        host = self.world.hosts[name]
        first = [each.host for each in host.record.nodes]
        if any(self.world.hosts[each].cluster_id is not None for each in first):
            self._raise_with(name, first)
        else:
            self.world.wipe(name)
            self._raise_with(name, self.names)

    def _is_wrong(self, name: str) -> bool:
        host = self.world.hosts[name]
        return host.cluster_id is None and [each.host for each in host.nodes] != self.names


def run_seed(seed: int) -> str | None:
    """What a checker has found."""
    try:
        SeededFormation(seed).run()
    except BrokenRuleError as error:
        return str(error)
    return None


def find_broken(breakage: object, seeds: range) -> int | None:
    """The first seed that finds a rule broken, and none without it."""
    for seed in seeds:
        with pytest.MonkeyPatch.context() as patch:
            breakage(patch)  # type: ignore[operator]
            found = run_seed(seed)
        if found is not None and run_seed(seed) is None:
            return seed
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds")
    parser.add_argument("--break", dest="breakage")
    asked = parser.parse_args()
    first, dash, last = asked.seeds.partition("-")
    seeds = range(int(first), int(last) + 1) if dash else range(int(first), int(first) + 1)
    if asked.breakage:
        from ottla.tests.broker.helpers.formation_breakages import FORMATION_BREAKAGES

        seed = find_broken(FORMATION_BREAKAGES[asked.breakage], seeds)
        print(f"{asked.breakage}: {'not found' if seed is None else f'seed {seed}'}")
        return 1 if seed is None else 0
    began, failed = time.monotonic(), 0
    for seed in seeds:
        formation = SeededFormation(seed)
        try:
            formation.run()
        except BrokenRuleError as error:
            failed += 1
            print(f"seed {seed}: {error}")
        if len(seeds) == 1:
            print("\n".join(formation.world.events))
    print(f"{len(seeds)} seeds, {failed} failed, {time.monotonic() - began:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
