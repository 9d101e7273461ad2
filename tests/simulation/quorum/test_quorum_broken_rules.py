"""The rules of KRaft that keep what was decided: a scenario for each, survived with the rule, and not without."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import trio

from ottla.tests.simulation.cluster.stage import TOPIC, Script
from ottla.tests.simulation.quorum.aimed import write_transaction
from ottla.tests.simulation.quorum.breakages import BREAKAGES
from ottla.tests.simulation.quorum.stage import QuorumClusterStage, perform_on_quorum
from ottla.tests.simulation.run import Mode
from ottla.wire.messages.topic_records import PartitionChangeRecord

Stage = QuorumClusterStage
Way = tuple[int, int]

_APART = [(1, 3), (3, 1)]
"""The leader and a follower."""


def around(stage: Stage, node_id: int) -> list[Way]:
    """The paths between a controller and the others."""
    return [
        way for other in stage.world.controllers if other != node_id for way in ((node_id, other), (other, node_id))
    ]


def to_controllers(stage: Stage, node_id: int) -> list[Way]:
    return [(node_id, controller) for controller in stage.world.controllers]


async def without(stage: Stage, broker_id: int) -> None:
    """A broker dies, and is fenced."""
    stage.kill(broker_id)
    await stage.forget(broker_id)


# --- the active controller and its log --------------------------------------------------------------------------------


async def a_decision_that_was_lost(stage: Stage) -> None:
    """A follower lags, and the leader has it removed from the ISR: by a controller that is cut from the others."""
    writer = await stage.writer("w")
    await writer.write(5)
    past = stage.active
    stage.ways(cut=_APART)
    await trio.sleep(1.5)
    stage.ways(cut=[*_APART, *around(stage, past)])
    stage.nursery.start_soon(writer.write)
    await stage.await_another(past)
    stage.ways()
    await trio.sleep(1)


async def two_are_fenced_at_a_slow_disk(stage: Stage) -> None:
    """Two of three brokers are silent, and the second one is fenced before it is committed that the first one is."""
    for node_id in stage.world.controllers:
        stage.slow_disk(node_id, 0.5)
    for broker_id in (2, 3):
        stage.world.places[broker_id].cut_from_store()
        stage.world.watched(stage.active).end_session(broker_id)
    await stage.until(lambda: stage.is_fenced(2) and stage.is_fenced(3))


async def a_change_that_nobody_knows_to_be_committed(stage: Stage) -> None:
    """A controller dies when the others have its last records, and before they hear that these are committed."""
    past = stage.active
    stage.world.places[3].cut_from_store()
    stage.world.watched(past).end_session(3)
    end = stage.end_of_metadata(past)
    await stage.until(lambda: all(stage.end_of_metadata(node_id) == end for node_id in stage.standbys))
    stage.kill(past)
    await stage.await_another(past)
    stage.world.places[3].heal()
    await trio.sleep(0.5)
    await stage.start(past)


async def a_transaction_without_end(stage: Stage) -> None:
    """A controller resigns in a metadata transaction; its successor has all of it."""
    topic = stage.world.image.topics[TOPIC]
    change = PartitionChangeRecord(topic_id=topic.topic_id, partition_id=0, leader=1)
    past = stage.active
    write_transaction(stage.world.watched(past), change, None)
    end = stage.end_of_metadata(past)
    await stage.until(lambda: all(stage.end_of_metadata(node_id) == end for node_id in stage.standbys))
    await stage.resign()
    await trio.sleep(1.5)


# --- brokers, as the controller knows them ----------------------------------------------------------------------------


async def a_broker_dies_with_the_controller(stage: Stage) -> None:
    """The next one has never heard of it."""
    stage.kill(1)
    past = stage.active
    stage.kill(past)
    await stage.await_another(past)
    await trio.sleep(7)


async def two_die_with_the_controller(stage: Stage) -> None:
    """The next one fences both in the same moment."""
    stage.kill(1)
    stage.kill(2)
    await stage.resign()
    await trio.sleep(7)


async def a_leader_dies(stage: Stage) -> None:
    await without(stage, 1)


async def a_broker_that_hears_late(stage: Stage) -> None:
    """A broker registers, of which the connection by which it follows the metadata log tells it late."""
    await without(stage, 3)
    before = stage.machine(3).server
    stage.machine(3).is_held = False
    await stage.until(lambda: stage.has_parts(3, before))
    stage.stall([(stage.active, 3)])
    await trio.sleep(1)
    stage.ways()
    await stage.start(3)


async def a_stop_of_which_one_has_not_heard(stage: Stage) -> None:
    """A leader is stopped while another broker hears nothing, which knew that it leads."""
    await stage.until(lambda: stage.knows_leader(2))
    stage.ways(choked=[(stage.active, 2)])
    lives = stage.machine(1).lives
    stage.machine(1).stop_soon()
    await trio.sleep(1)
    stage.ways()
    await stage.until(lambda: stage.machine(1).lives > lives)


async def a_bounce_in_a_session(stage: Stage) -> None:
    """A leader loses power, and is back at once, without what it had."""
    writer = await stage.writer("w")
    await writer.write(10)
    await stage.bounce(1)
    await trio.sleep(1)
    await writer.write()


async def an_eligible_one_loses_power(stage: Stage) -> None:
    """The ISR is the leader alone, and the other eligible replica is back without what it had."""
    writer = await stage.writer("w")
    await without(stage, 2)
    await writer.write(10)
    stage.kill(3, power_lost=True)
    await stage.forget(3)
    stage.ways(choked=[(1, 3)])
    await stage.start(3)
    await trio.sleep(0.5)


# --- partitions, as the controller decides on them --------------------------------------------------------------------


async def lag(stage: Stage) -> None:
    """A follower does not hear from the leader, which has it removed from the ISR. It catches up when the paths are open."""
    writer = await stage.writer("w")
    stage.ways(cut=_APART)
    await writer.write(10)
    assert stage.isr == {1, 2}


async def a_member_that_is_another(stage: Stage) -> None:
    """A follower has caught up, and loses power before the controller hears of it."""
    await lag(stage)
    stage.ways(choked=to_controllers(stage, 1))
    await stage.until(lambda: stage.is_expanding(1))
    stage.ways(choked=[*to_controllers(stage, 1), (1, 3)])
    stage.machine(3).may_lose_power = lambda: True  # it is not in sync
    await stage.bounce(3)
    await stage.start(3)
    stage.ways(choked=[(1, 3)])
    await trio.sleep(1)


async def a_member_that_is_fenced(stage: Stage) -> None:
    """A follower has caught up, and is fenced before the controller hears of it."""
    await lag(stage)
    stage.ways(choked=to_controllers(stage, 1))
    await stage.until(lambda: stage.is_expanding(1))
    stage.world.places[3].cut_from_store()
    await stage.forget(3)
    stage.ways()
    await trio.sleep(0.5)


async def a_proposal_from_long_ago(stage: Stage) -> None:
    """A leader's proposal is on its way to a controller that is replaced, and arrives when it is the active one again."""
    await lag(stage)
    first = stage.active
    stage.ways(cut=[(1, first)])
    await stage.until(lambda: stage.is_expanding(1))
    await stage.resign()
    await stage.until(lambda: stage.isr == {1, 2, 3})
    stage.ways(cut=[(1, first)], choked=[(1, 3)])
    await stage.forget(3)
    writer = await stage.writer("x")
    await writer.write(3)
    while stage.active != first:
        await stage.resign()
    await stage.until(lambda: not stage.is_fenced(3))
    stage.ways(choked=[(1, 3)])
    await trio.sleep(0.5)


async def an_eligible_one_is_left_behind(stage: Stage) -> None:
    """A follower is fenced, and the others, which are enough, go on."""
    writer = await stage.writer("w")
    stage.ways(cut=_APART)
    stage.world.places[3].cut_from_store()
    await stage.forget(3)
    await writer.write(3)
    await trio.sleep(0.2)
    stage.ways()


async def the_last_leader_is_back_first(stage: Stage) -> None:
    """All replicas go, one after the other. The last one comes back, and may have lost something."""
    writer = await stage.writer("w")
    for broker_id in (2, 3):
        await without(stage, broker_id)
    stage.nursery.start_soon(writer.write)
    await without(stage, 1)
    await stage.start(1)
    await trio.sleep(0.5)


# --- brokers ----------------------------------------------------------------------------------------------------------


async def records_that_will_be_cut_off(stage: Stage) -> None:
    """A controller that is cut from the others fences a broker, and the brokers have the records of that."""
    past = stage.active
    stage.ways(cut=around(stage, past))
    stage.world.places[3].cut_from_store()
    stage.world.watched(past).end_session(3)
    await trio.sleep(0.5)
    stage.world.places[3].heal()
    await stage.await_another(past)
    stage.ways()
    await trio.sleep(0.5)


async def a_follower_that_cannot_be_removed(stage: Stage) -> None:
    """A follower lags, and the leader cannot tell the controller of that."""
    writer = await stage.writer("w")
    await writer.write(3)
    stage.ways(cut=[*_APART, *to_controllers(stage, 1)])
    stage.nursery.start_soon(writer.write)
    await trio.sleep(4)
    stage.ways()


async def a_follower_that_is_in_already(stage: Stage) -> None:
    """A follower has caught up, and is in sync, of which the leader does not hear. Then it hears no more of the leader."""
    await lag(stage)
    writer = await stage.writer("x")
    stage.ways(choked=[(stage.active, 1)])
    await stage.until(lambda: stage.isr == {1, 2, 3})
    stage.ways(choked=[(stage.active, 1)], cut=_APART)
    stage.nursery.start_soon(writer.write)
    await trio.sleep(3)
    stage.ways()


class Case(NamedTuple):
    """A rule and the scenario that needs it."""

    breakage: str
    script: Script[Stage]
    mode: Mode = Mode.KILLS


CASES = [
    Case("responses_before_commit", a_decision_that_was_lost),
    Case("uncommitted_state_stays", a_decision_that_was_lost),
    Case("lost_operations_succeed", a_decision_that_was_lost),
    Case("operations_see_the_committed", two_are_fenced_at_a_slow_disk),
    Case("claim_before_applied", a_change_that_nobody_knows_to_be_committed),
    Case("transactions_stay_open", a_transaction_without_end),
    Case("controllers_apply_in_part", a_transaction_without_end),
    Case("sessions_end_with_the_controller", a_broker_dies_with_the_controller),
    Case("fencing_elects_nobody", a_leader_dies),
    Case("brokers_expire_together", two_die_with_the_controller),
    Case("unfenced_at_once", a_broker_that_hears_late),
    Case("let_go_before_others_know", a_stop_of_which_one_has_not_heard),
    Case("a_new_life_stays_in_sync", a_bounce_in_a_session, mode=Mode.POWER_OF_ONE),
    Case("eligible_after_an_unclean_stop", an_eligible_one_loses_power, mode=Mode.POWER_OF_ONE),
    Case("members_of_an_earlier_life", a_member_that_is_another, mode=Mode.POWER_OF_ONE),
    Case("fenced_members", a_member_that_is_fenced),
    Case("stale_proposals", a_proposal_from_long_ago),
    Case("eligible_for_ever", an_eligible_one_is_left_behind),
    Case("the_last_leader_is_good_enough", the_last_leader_is_back_first),
    Case("metadata_beyond_the_watermark", records_that_will_be_cut_off),
    Case("brokers_apply_in_part", a_transaction_without_end),
    Case("shrunk_when_asked", a_follower_that_cannot_be_removed),
    Case("expanded_when_answered", a_follower_that_is_in_already),
]
SCRIPTS = list({case.script: case for case in CASES}.values())
"""A case for each scenario."""


def test_every_breakage_has_a_scenario() -> None:
    assert [case.breakage for case in CASES] == list(BREAKAGES)


@pytest.mark.parametrize("case", SCRIPTS, ids=lambda case: case.script.__name__)
def test_the_cluster_survives(case: Case) -> None:
    result = perform_on_quorum(case.script, mode=case.mode)
    assert result.violations == [], "\n".join(result.events)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.breakage)
def test_without_the_rule_it_does_not(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[case.breakage](monkeypatch)
    violations = perform_on_quorum(case.script, mode=case.mode).violations
    assert violations != []
    assert [what for what in violations if "TypeError" in what or "AttributeError" in what] == [], (
        "it breaks more than a rule"
    )
