"""The rules that keep what was acknowledged: a scenario for each, which brokers survive, and do not survive without the rule."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import trio

from ottla.base.errors import ErrorCode
from ottla.base.partitions import NO_LEADER
from ottla.controller.zookeeper.nodes import znodes
from ottla.tests.simulation.cluster.breakages import BREAKAGES
from ottla.tests.simulation.cluster.moves import Mover
from ottla.tests.simulation.cluster.stage import NOTHING, PARTITION, TOPIC, Script, Stage, apart
from ottla.tests.simulation.cluster.store_stage import StoreStage, perform
from ottla.tests.simulation.run import Mode


async def a_leader_without_followers(stage: Stage) -> None:
    """A leader that no follower reaches gets a record, and dies."""
    writer, other = await stage.writer("w"), await stage.writer("x")
    await writer.write(5)
    stage.ways(cut=apart([1], [2, 3]))
    stage.nursery.start_soon(writer.write)
    await trio.sleep(0.3)
    stage.kill(1)
    await stage.forget(1)
    await stage.until(lambda: stage.leader == 2)
    stage.ways()
    await other.write()


async def a_leader_that_comes_back_with_more(stage: Stage) -> None:
    """A leader has a record that no other has, and dies; another one leads on, and then the first is back."""
    first, second = await stage.writer("a"), await stage.writer("b")
    await second.write(5)
    stage.ways(cut=apart([1], [2, 3]))
    with trio.move_on_after(0.3):
        await first.write()
    stage.kill(1)
    await stage.forget(1)
    await stage.until(lambda: stage.leader == 2)
    stage.ways()
    await second.write(3)
    await stage.start(1)
    await second.write(3)


async def a_follower_far_behind(stage: StoreStage) -> None:
    """A follower that was away has hardly begun to catch up when the two in sync die."""
    writer = await stage.writer("w")
    await writer.write(3)
    stage.kill(3)
    await stage.forget(3)
    await stage.until(lambda: stage.isr == {1, 2})
    await writer.write(5)
    stage.ways(choked=[(1, 3)])
    await stage.start(3)
    await trio.sleep(1)
    for broker_id in (1, 2):
        stage.kill(broker_id)
        await stage.forget(broker_id)
    await stage.until(lambda: stage.world.controller() == 3)
    await trio.sleep(0.5)


async def words_for_an_earlier_life(stage: StoreStage) -> None:
    """A leader loses power before it is told that it leads on, and is told so when it is back, without what it had."""
    writer = await stage.writer("w")
    await writer.write(10)
    stage.ways(cut=[(3, 1)])
    stage.kill(2)
    await stage.forget(2)
    await stage.until(lambda: stage.isr == {1, 3})
    await trio.sleep(0.1)
    await stage.bounce(1, unseen_by=3)
    stage.ways()
    await trio.sleep(1)
    stage.world.places[3].heal()
    await stage.until(lambda: stage.leader == 3)


async def a_controller_of_the_past(stage: StoreStage) -> None:
    """A controller is replaced while it deletes a topic, which its successor deletes, and a client makes again."""
    places = stage.world.places
    stage.nursery.start_soon(stage.delete_topic)
    await stage.until(lambda: stage.end_of(2) == NOTHING)
    stage.ways(cut=[(2, 3)])  # its answer is all that the controller waits for
    places[3].cut_from_store()
    places[2].cut_from_store()
    await stage.world.remove_controller()
    await stage.until(lambda: stage.world.controller() == 1)
    places[2].heal()
    await stage.until(lambda: not stage.has_node(znodes.topic_path(TOPIC)))
    stage.know_only(1)
    await stage.create_topic()
    writer = await stage.writer("w")
    await writer.write(5)
    stage.ways()
    await trio.sleep(0.3)
    places[3].heal()
    await trio.sleep(0.5)


async def an_answer_that_changed_on_its_way(stage: Stage) -> None:
    """A leader is to send a follower a piece of its log, and before it can has another leader's records there.

    The follower has a record of the old leader that the new one lacks, and has not been told of the new one yet.
    """
    first, second, third, fourth = [await stage.writer(name) for name in "abcd"]
    await third.write(3)
    _, end = stage.end_of(1)
    stage.ways(choked=[(1, 2)])
    with trio.move_on_after(0.2):
        await first.write()
    assert (stage.end_of(2), stage.end_of(3)) == ((0, end), (0, end + 1))
    stage.ways(choked=[(1, 2), (1, 3)])
    with trio.move_on_after(0.2):
        await second.write()
    stage.ways(cut=[(4, 3)], choked=[(1, 2), (1, 3)])
    await stage.forget(1)
    await stage.until(lambda: stage.leader == 2)
    stage.nursery.start_soon(third.write)
    stage.nursery.start_soon(fourth.write)
    await stage.until(lambda: stage.end_of(2) == (1, end + 2))
    stage.ways(cut=[(4, 3)], choked=[(1, 3)])
    await stage.until(lambda: stage.end_of(1) == (1, end + 2))
    stage.ways(cut=[(4, 3)])
    await trio.sleep(0.5)


async def a_topic_deleted_while_a_broker_is_dead(stage: StoreStage) -> None:
    """It is gone when the last broker that has it is back, and has deleted it."""
    writer = await stage.writer("w")
    await writer.write(3)
    stage.kill(3)
    await stage.forget(3)
    await stage.until(lambda: stage.isr == {1, 2})
    await stage.delete_topic()
    await trio.sleep(1)
    await stage.start(3)
    await stage.until(lambda: not stage.has_node(znodes.topic_path(TOPIC)))
    await trio.sleep(1)
    stage.history.sent.clear()


async def a_bounce_that_nobody_saw(stage: StoreStage) -> None:
    """A leader loses power and is back, without what it had, before the controller looks."""
    writer = await stage.writer("w")
    await writer.write(10)
    await stage.bounce(1, unseen_by=3)
    stage.world.places[3].heal()
    await trio.sleep(1)
    await writer.write()


async def a_move_to_a_replica_that_hears_nothing(stage: Stage) -> None:
    """A replica is added on a broker to which the leader cannot send yet, and the leader is to go."""
    writer = await stage.writer("w")
    await writer.write(5)
    stage.ways(choked=[(1, 4)])
    mover = Mover(stage.world, stage.history, "mover")
    assert await mover.move(PARTITION, [4, 2]) is ErrorCode.NONE
    await trio.sleep(1)
    stage.ways()
    await stage.until(lambda: not stage.world.moving())
    await writer.write(3)
    mover.check()


async def a_move_from_a_broker_that_is_dead(stage: Stage) -> None:
    """A replica on a dead broker is replaced; the broker is back when that has ended, under the next controller."""
    writer = await stage.writer("w")
    await writer.write(5)
    stage.kill(3)
    await stage.forget(3)
    await stage.until(lambda: stage.isr == {1, 2})
    mover = Mover(stage.world, stage.history, "mover")
    assert await mover.move(PARTITION, [1, 2, 4]) is ErrorCode.NONE
    await stage.until(lambda: not stage.world.moving())
    await stage.world.remove_controller()
    await writer.write(3)
    await stage.start(3)
    mover.check()


async def a_bounce_while_a_leader_asks(stage: StoreStage) -> None:
    """A leader asks for another replica in sync, and is back from a loss of power when that is written.

    Then the controller dies, before it looks.
    """
    writer = await stage.writer("w")
    stage.ways(cut=apart([1], [3]))
    await writer.write(10)
    await stage.until(lambda: stage.isr == {1, 2})
    stage.slow_store(4, 1.0)
    stage.ways()
    await stage.until(lambda: stage.is_expanding(1))
    await trio.sleep(0.1)
    await stage.bounce(1)
    assert stage.isr == {1, 2}
    await stage.until(lambda: stage.isr == {1, 2, 3})
    stage.kill(4)
    await stage.forget(4)
    await stage.until(lambda: stage.world.controller() in (1, 2, 3))
    await trio.sleep(1)
    await writer.write()


async def a_record_between_two_fetches(stage: Stage) -> None:
    """A leader gets a record when the followers' last fetches have been answered, and their next ones have not arrived."""
    writer = await stage.writer("w")
    await writer.write(3)
    stage.ways(choked=[(2, 1), (3, 1)])
    await trio.sleep(2)
    stage.nursery.start_soon(writer.write)
    await trio.sleep(0.2)
    stage.ways()
    await trio.sleep(2)
    if stage.end_of(2) != stage.end_of(1):
        stage.world.violate("a follower does not get what its leader has")


async def a_coordinator_of_the_past(stage: Stage) -> None:
    """A coordinator is replaced without hearing of it. Its producer begins at the next one, and goes on at the first."""
    producer = await stage.transactor()
    past = stage.coordinator_of(producer.name)
    hosts = {broker_id: place.host for broker_id, place in stage.world.places.items()}
    others = [broker_id for broker_id in hosts if broker_id != past]
    await producer.commit(await producer.begin())
    await trio.sleep(0.2)  # until it has ended, too
    stage.world.places[past].cut_from_store()
    stage.ways(cut=apart([past], others))
    await stage.forget(past)
    await stage.until(
        lambda: not {stage.takes_for_coordinator(other, producer.name) for other in others} & {past, NO_LEADER, None}
    )
    producer.know(*(hosts[other] for other in others))
    transaction = await producer.begin()
    producer.know(hosts[past])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(producer.commit, transaction)
        await trio.sleep(1)
        await stage.heal()
        producer.know(*hosts.values())
    await producer.init()


class Case(NamedTuple):
    """A rule and the scenario that needs it; ``controller`` is the broker that is it at first."""

    breakage: str
    script: Script[StoreStage]
    controller: int = 3
    mode: Mode = Mode.KILLS


CASES = [
    Case("watermark_past_the_isr", a_leader_without_followers),
    Case("no_epoch_truncation", a_leader_that_comes_back_with_more),
    Case("join_below_the_watermark", a_follower_far_behind, controller=2),
    Case("no_broker_epoch_check", words_for_an_earlier_life, mode=Mode.POWER_OF_ONE),
    Case("unfenced_controller_write", a_controller_of_the_past),
    Case("append_beyond_the_epoch", an_answer_that_changed_on_its_way, controller=4),
    Case("deletion_forgets_the_dead", a_topic_deleted_while_a_broker_is_dead, controller=2),
    Case("bounced_leader_goes_on", a_bounce_that_nobody_saw, mode=Mode.POWER_OF_ONE),
    Case("move_without_waiting", a_move_to_a_replica_that_hears_nothing, controller=4),
    Case("removed_replicas_stay", a_move_from_a_broker_that_is_dead, controller=4),
    Case("a_write_hides_a_bounce", a_bounce_while_a_leader_asks, controller=4, mode=Mode.POWER_OF_ONE),
    Case("news_forgets_a_partition", a_record_between_two_fetches),
    Case("coordinators_believe_themselves", a_coordinator_of_the_past, controller=4),
]


def test_every_breakage_has_a_scenario() -> None:
    assert [case.breakage for case in CASES] == list(BREAKAGES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script.__name__)
def test_brokers_survive(case: Case) -> None:
    result = perform(case.script, controller=case.controller, mode=case.mode)
    assert result.violations == [], "\n".join(result.events)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.breakage)
def test_without_the_rule_they_do_not(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[case.breakage](monkeypatch)
    violations = perform(case.script, controller=case.controller, mode=case.mode).violations
    assert violations != []
    assert [what for what in violations if "TypeError" in what or "AttributeError" in what] == [], (
        "it breaks more than a rule"
    )
