"""One seed of a consumer group of KIP-848: members and one coordinator at a time, faults for a while, then a time without any.

When faults end the group becomes stable within a bounded time: each partition of each topic that a member reads is assigned to
one of them, and each client has exactly what the group says. After that nothing is written any more.

In half of the seeds targets are made in steps, as those of large groups are, with other requests between the steps.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from ottla.group_coordinator import expression_refresh, target_assignment, target_assignments
from ottla.group_coordinator.classic_group import ClassicGroup
from ottla.group_coordinator.consumer_group import ConsumerGroup
from ottla.group_coordinator.consumer_group_settings import ConsumerGroupSettings
from ottla.group_coordinator.embedded_protocol import partitions_by_id, read_assignment

from ..checkers import may_be_last
from ..history import History
from ..outcome import Result, play
from .consumer import GroupConsumer, GroupKnowledge
from .convergence import GroupView, MemberView, unconverged
from .membership import Subscription
from .world import GROUP, HEARTBEAT_MS, SESSION_MS, CoordinatorLife, GroupWorld

SECONDS_OF_FAULTS = (10.0, 40.0)
SETTLED_WITHIN_SECONDS = 40.0
_REFRESH_SECONDS = 2.0
"""The shortest time between two looks at the topics of regular expressions."""
_QUIET_SECONDS = 4.0
_SUBSCRIPTIONS = (
    Subscription(("t",)),
    Subscription(("t",)),
    Subscription(("t", "u")),
    Subscription(("u", "v")),
    Subscription(("v",)),
    Subscription(()),
    Subscription((), "t|w.*"),
    Subscription(("u",), "w.*"),
)


def simulate_group(seed: int) -> Result:
    """Run one seed."""
    rng = random.Random(f"{seed} group")
    is_lenient = rng.random() < 0.3
    is_stepwise = rng.random() < 0.5
    settings = ConsumerGroupSettings(
        {
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "assignment_interval_ms": rng.choice((0, 0, 1000, 2500)),
            "regex_refresh_interval_ms": 600_000,
        }
    )
    replaced: dict[tuple[Any, str], Any] = {(expression_refresh, "SHORTEST_INTERVAL_MS"): _REFRESH_SECONDS * 1000}
    turns = Turns(rng)
    if is_stepwise:
        replaced |= steps(rng, turns)
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in replaced.items():
            patch.setattr(module, name, value)
        return play(
            seed,
            lambda: GroupWorld(seed, is_lenient=is_lenient, settings=settings),
            lambda world: GroupSimulation(world, turns, is_stepwise=is_stepwise).run(),
        )


class Turns:
    """Turns of others while a target is made. They take their time as long as there are faults."""

    def __init__(self, rng: random.Random) -> None:
        self.are_long = True
        self._rng = rng

    async def one(self) -> None:
        await trio.sleep(self._rng.choice((0, 0, 0.01, 0.1)) if self.are_long else 0)


def steps(rng: random.Random, turns: Turns) -> dict[tuple[Any, str], Any]:
    """Parts of the product so that targets are made in small steps, with turns of others between them."""
    return {
        (target_assignments, "MOST_AT_ONCE"): rng.choice((0, 0, 12)),
        (target_assignments, "_STEP_SECONDS"): -1.0,
        (target_assignments, "_PARTITIONS_PER_BATCH"): rng.choice((1, 4)),
        (target_assignments, "trio"): SimpleNamespace(
            **{**vars(trio), "lowlevel": SimpleNamespace(checkpoint=turns.one)}
        ),
        (target_assignment, "_MEMBERS_OF_A_STEP"): rng.choice((1, 3)),
    }


class GroupSimulation:
    """The members of one group, and the faults."""

    def __init__(self, world: GroupWorld, turns: Turns, *, is_stepwise: bool) -> None:
        self.world = world
        self._turns = turns
        self._rng = rng = world.random_for("simulation")
        self._over = trio.Event()
        self._inspector = world.inspector
        self._inspector.is_stepwise = is_stepwise
        self.history = History()
        self.knowledge = GroupKnowledge(GROUP, world.violate)
        self._inspector.on_new_era = self._begin_era
        self.knowledge.has_overlaps = not world.is_lenient
        subscriptions = rng.sample(_SUBSCRIPTIONS, rng.randint(1, 4))
        classic = world.random_for("classic")
        self._classic_share = classic.choice((0, 0, 0, 0.3, 0.6))
        is_cooperative = classic.random() < 0.5
        assignors = rng.choice(((None,), (None, "range"), ("uniform", "range")))
        statics = rng.choice((0, 0, 1, 3))
        self._inspector.consumers = [
            GroupConsumer(
                world,
                self.history,
                f"c{number}",
                self.knowledge,
                subscriptions,
                world.topic_names.get,
                lambda: world.topics,
                classic_share=self._classic_share,
                is_cooperative=is_cooperative,
                instance_id=f"i{number}" if number < statics else None,
                assignors=assignors,
            )
            for number in range(rng.choice((1, 2, 3, 3, 4, 5, 7)))
        ]
        world.log("world", f"lenient: {world.is_lenient}, stepwise: {is_stepwise}, {statics} static, {subscriptions}")
        world.log("world", f"{self._classic_share} of the processes are classic, cooperative: {is_cooperative}")

    def _begin_era(self) -> None:
        self.knowledge.era += 1

    async def run(self) -> None:
        """Run everything of this seed."""
        world = self.world
        for name, count in (("t", 4), ("u", 2), ("w1", 1)):
            world.set_topic(name, count)
        async with trio.open_nursery() as nursery:
            world.nursery = nursery
            await world.begin_life()
            for consumer in self._inspector.consumers:
                nursery.start_soon(consumer.run, self._over)
            await self._make_trouble()
            await self._heal()
            await self._settle()
            self._judge()
            nursery.cancel_scope.cancel()

    # --- trouble ------------------------------------------------------------------------------------------------------

    async def _make_trouble(self) -> None:
        world, rng = self.world, self._rng
        world.trouble = rng.choice((0, 0.05, 0.2))
        world.refusals = rng.choice((0, 0, 0.05, 0.3))
        world.delay_seconds = rng.choice((0, 0, 0.1, 1.5))
        pause = rng.choice((0.5, 2, 5))
        if world.life is not None:
            world.obey(world.life)
        kinds: list[Callable[[], Awaitable[None]]] = [
            self._move,
            self._move,
            self._elect_again,
            self._change_topic,
            self._change_topic,
            self._change_network,
            self._compare,
            self._jump,
        ]
        deadline = trio.current_time() + rng.uniform(*SECONDS_OF_FAULTS)
        while trio.current_time() < deadline:
            await trio.sleep(rng.expovariate(1 / pause))
            await rng.choice(kinds)()
            self._inspector.check_readers()

    async def _move(self) -> None:
        await self.world.move(is_killed=self._rng.random() < 0.5)

    async def _elect_again(self) -> None:
        await self.world.elect_again()

    async def _change_topic(self) -> None:
        world, rng = self.world, self._rng
        name = rng.choice(("t", "u", "v", "w1", "w2"))
        size = world.topics.get(name)
        if size is None:
            world.set_topic(name, rng.randint(1, 4))
        elif rng.random() < 0.5:
            world.set_topic(name, size.partition_count + rng.randint(1, 3))
        elif name != "t" and not self._classic_share:
            world.set_topic(name, None)

    async def _change_network(self) -> None:
        """Everything is lost for a while, or nothing is."""
        world, rng = self.world, self._rng
        before, world.trouble = world.trouble, rng.choice((0, 0.5, 1))
        await trio.sleep(rng.choice((0.5, 3.0, 8.0)))
        world.trouble = before

    async def _jump(self) -> None:
        """The clock of the present broker is set wrong, or right again. That of the next one is right."""
        self.world.has_jumped = True
        if (life := self.world.life) is not None:
            life.clock.jump(self._rng.choice((-3_600_000, -2000, 2000, 3_600_000)))

    async def _compare(self) -> None:
        if (life := self.world.serving) is not None:
            self._inspector.compare(life)

    async def _heal(self) -> None:
        world = self.world
        world.trouble = world.refusals = world.delay_seconds = 0.0
        self._turns.are_long = False
        for consumer in self._inspector.consumers:
            consumer.calm = True
        if world.life is not None:
            world.obey(world.life)
        world.log("world", "no more faults")

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Wait until the group is stable, and see that it stays so."""
        world = self.world
        deadline = trio.current_time() + SETTLED_WITHIN_SECONDS
        while world.late:
            await trio.sleep(0.1)
        for consumer in self._inspector.consumers:
            consumer.tell_all()  # a request that was late may have said otherwise
        while (why := self.unsettled()) is not None:
            if trio.current_time() > deadline:
                world.violate(f"after {SETTLED_WITHIN_SECONDS} s without faults {why}")
                return
            await trio.sleep(0.5)
        await trio.sleep(2 * _REFRESH_SECONDS)
        before = self._inspector.writes
        await trio.sleep(_QUIET_SECONDS)
        if self._inspector.writes != before:
            world.violate("the group is stable, and records are written for it")
        if (why := self.unsettled()) is not None:
            world.violate(f"it was stable, and then {why}")

    def unsettled(self) -> str | None:
        """Why the group is not where it is to be."""
        life = self.world.serving
        if life is None:
            return "nobody serves the group"
        return unconverged(view_of(life), self._inspector.consumers, self.world.topics)

    def _judge(self) -> None:
        """The state is that of the log, and acknowledged commits are there."""
        world = self.world
        life = world.serving
        assert life is not None
        self._inspector.compare(life)
        if world.is_lenient:
            return
        for (_, (topic, number)), commits in sorted(self.history.commits.items()):
            if topic in world.deleted or topic not in world.topics:
                continue
            allowed = {commit.offset for commit in commits if may_be_last(commit, commits)}
            if all(commit.answered is None for commit in commits):
                allowed.add(-1)
            found = self._inspector.records.offsets.get((topic, number), -1)
            if found not in allowed:
                world.violate(f"the group is at {found} in {topic}-{number}, not at one of {sorted(allowed)}")


def view_of(life: CoordinatorLife) -> GroupView | None:
    """The group as its coordinator has it."""
    found = life.groups.find(GROUP)
    group = None if found is None else found.group
    members = {}
    if isinstance(group, ConsumerGroup):
        for member in group.members.newest().values():
            members[member.member_id] = MemberView(member.epoch, frozenset(member.held()))
    elif isinstance(group, ClassicGroup):
        for member_id in group.live.members:
            given = group.assignment_of(member_id)
            parts = partitions_by_id(read_assignment(given).assigned_partitions, life.topics) if given else {}
            owned = frozenset((topic_id, number) for topic_id, numbers in parts.items() for number in numbers)
            members[member_id] = MemberView(group.epoch, owned)
    else:
        return None
    return GroupView(group.type_name, group.state_name, group.epoch, members)
