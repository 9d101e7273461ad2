"""The rules by which a cluster is formed: scenarios, seeds, and what finds rules that were broken on purpose."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable

import pytest

from ottla.broker.formation.protocol import FormationStatement
from ottla.tests.broker.helpers.formation_breakages import FORMATION_BREAKAGES
from ottla.tests.broker.helpers.formation_seeds import find_broken, run_seed
from ottla.tests.broker.helpers.formation_world import BrokenRuleError, FormationHost, FormationWorld

THREE = ["h1", "h2", "h3"]


def world_of(*names: str) -> FormationWorld:
    return FormationWorld(names, random.Random(1))


def start_all(world: FormationWorld, names: list[str] = THREE) -> None:
    for place, name in enumerate(names, 1):
        world.start(name, place, names)


def cut_off(world: FormationWorld, name: str) -> None:
    """Nothing comes to or from a host."""
    for other in world.hosts:
        world.cut |= {(name, other), (other, name)}


def wipe(world: FormationWorld, name: str) -> None:
    world.kill(name)
    world.wipe(name)


# --- scenarios: each ends well, and badly without the rule that is named beside it ----------------------------------------


def a_late_decision(world: FormationWorld, *, h2_loses_power: bool = False) -> None:
    """h1 has decided and lost its disk, as h3 has, and a second cluster is decided, when what the first h1 said comes to h2."""
    start_all(world)
    world.may_die = lambda host: host.cluster_id is not None
    world.run(5000)
    first = world.hosts["h1"].record
    assert not world.hosts["h1"].is_up and first.promise is not None
    assert world.hosts["h2"].record.promise == world.hosts["h3"].record.promise == first.promise
    world.wipe("h1")
    wipe(world, "h3")
    late = FormationStatement(1, first.nodes, first.directory_id, first.promise)

    def second_is_decided(host: FormationHost) -> bool:
        if host.name == "h1" and host.cluster_id is not None:
            world.may_die = lambda host: False
            assert host.cluster_id != first.cluster_id
            if h2_loses_power:
                world.kill("h2", loses_power=True)
                world.start("h2", 2, THREE)
            world.say("h2", late)
            world.say("h2", dataclasses.replace(late, cluster_id=first.cluster_id))
        return False

    world.may_die = second_is_decided
    world.start("h3", 3, THREE)
    world.start("h1", 1, THREE)
    world.run(10_000)
    assert world.check_formed(THREE) != first.cluster_id


def a_disk_that_is_replaced_after_a_promise(world: FormationWorld) -> None:
    """h2 loses its disk after it has promised, while h3 is away, and is asked again."""
    start_all(world)
    world.may_die = lambda host: host.name == "h2"
    world.run(3000)
    world.may_die = lambda host: False
    assert not world.hosts["h2"].is_up
    world.wipe("h2")
    world.start("h2", 2, THREE)
    world.run(10_000)
    world.check_formed(THREE)


def a_minority_that_was_cut_off(world: FormationWorld) -> None:
    """h1 and h2 are there and h3 is cut off; then h1 has another disk, and h2 is cut off."""
    cut_off(world, "h3")
    start_all(world)
    world.run(5000)
    wipe(world, "h1")
    world.cut.clear()
    cut_off(world, "h2")
    world.start("h1", 1, THREE)
    world.run(5000)
    world.cut.clear()
    world.run(10_000)
    world.check_formed(THREE)


def two_lists(world: FormationWorld) -> None:
    """h1 and h4 both are the first of a list, whose others are the same nodes."""
    start_all(world)
    world.start("h4", 1, ["h4", "h2", "h3"])
    world.run(500)
    for name in ("h2", "h3"):
        for first in ("h4", "h1"):
            node = world.hosts[first].node
            if node is not None:
                world.say(name, node.statement)
    world.run(10_000)
    world.kill("h4")
    world.check_formed(THREE)


def a_promise_that_loses_power(world: FormationWorld) -> None:
    """The same, and h2 has lost power since it has promised the second cluster."""
    a_late_decision(world, h2_loses_power=True)


def a_coordinator_that_loses_its_disk(world: FormationWorld) -> None:
    """h1 decides, and its disk is replaced before others know."""
    start_all(world)
    world.may_die = lambda host: host.cluster_id is not None
    world.run(5000)
    world.may_die = lambda host: False
    assert not world.hosts["h1"].is_up
    world.wipe("h1")
    world.start("h1", 1, THREE)
    world.run(10_000)
    world.check_formed(THREE)


def a_lone_node(world: FormationWorld) -> None:
    """h1 starts, is alone for long, and gets another disk; then the others start, of whom one is not reached at first."""
    world.start("h1", 1, THREE)
    world.run(20_000)
    assert world.hosts["h1"].cluster_id is None
    world.start("h2", 2, THREE)
    world.start("h3", 3, THREE)
    world.run(10_000)
    world.check_formed(THREE)


SCENARIOS: dict[str, Callable[[FormationWorld], None]] = {
    "no_ballots": a_late_decision,
    "promises_for_any_directory": a_disk_that_is_replaced_after_a_promise,
    "a_majority_decides": a_minority_that_was_cut_off,
    "a_lone_node_decides": a_lone_node,
    "lists_are_not_compared": two_lists,
    "promises_are_not_on_disk": a_promise_that_loses_power,
    "any_word_of_a_cluster_counts": a_late_decision,
    "a_lost_coordinator_begins_anew": a_coordinator_that_loses_its_disk,
}
FOUND_BY_SEEDS = {
    "promises_for_any_directory": range(10),
    "a_majority_decides": range(5, 6),
    "a_lone_node_decides": range(1, 2),
    "lists_are_not_compared": range(63, 64),
    "promises_are_not_on_disk": range(351, 352),
    "a_lost_coordinator_begins_anew": range(34, 35),
}
"""The others take a coincidence of three lost disks, and have their scenarios."""


@pytest.mark.parametrize("scenario", dict.fromkeys(SCENARIOS.values()), ids=lambda scenario: scenario.__name__)
def test_nodes_form_one_cluster(scenario: Callable[[FormationWorld], None]) -> None:
    scenario(world_of("h1", "h2", "h3", "h4"))


@pytest.mark.parametrize("rule", SCENARIOS)
def test_a_rule_that_is_broken_is_found_out(rule: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        FORMATION_BREAKAGES[rule](patch)
        with pytest.raises((BrokenRuleError, AssertionError)):
            SCENARIOS[rule](world_of("h1", "h2", "h3", "h4"))


@pytest.mark.parametrize("rule", FOUND_BY_SEEDS)
def test_seeds_find_a_rule_that_is_broken(rule: str) -> None:
    assert find_broken(FORMATION_BREAKAGES[rule], FOUND_BY_SEEDS[rule]) is not None


@pytest.mark.parametrize("seed", range(40))
def test_a_cluster_is_formed_whatever_fails(seed: int) -> None:
    assert run_seed(seed) is None
