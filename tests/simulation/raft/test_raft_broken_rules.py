"""The rules of Raft: a scenario for each, which nodes survive as they are, and do not survive without the rule."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ottla.controller.raft.follower import RaftFollower
from ottla.tests.simulation.raft.breakages import BREAKAGES
from ottla.tests.simulation.raft.stage import QuorumStage, RaftScript, perform_script
from ottla.tests.simulation.run import Violation


def a_voter_without_power(stage: QuorumStage) -> None:
    """A voter loses power while it writes down the vote that it was asked for, and is back."""
    stage.start(1, 2)
    stage.run(100)
    stage.never_syncs(2)
    stage.run(5000)
    stage.lose_power(2)
    stage.start(2)


def followers_that_do_not_sync(stage: QuorumStage) -> None:
    """A leader writes, and its followers' disks hang."""
    leader = stage.elect()
    stage.never_syncs(*stage.others(leader))
    stage.write(leader)
    stage.run(1000)


def a_leader_that_does_not_sync(stage: QuorumStage) -> None:
    """A leader writes, its disk hangs, and so does one follower's."""
    leader = stage.elect()
    stage.never_syncs(leader, stage.others(leader)[0])
    stage.write(leader)
    stage.run(1000)


def a_record_of_an_earlier_epoch(stage: QuorumStage) -> None:
    """A leader's record reaches a majority two epochs later, in which the leader has no record on a majority.

    Then it dies, and the leader of the epoch between is elected, whose log ends in a later epoch than the majority's.
    """
    first = stage.elect()
    stage.mute(first)
    stage.write(first, size=500)  # larger than a response, so that it travels alone
    stage.run(10)
    end = stage.end(first)
    stage.kill(first)
    second = stage.leader_of(stage.others(first), is_committed=False)
    stage.mute(second)
    stage.run(10)
    stage.kill(second)
    [third] = stage.others(first, second)
    stage.heal()
    stage.start(first)
    stage.until(lambda: stage.machines[first].is_leader)
    stage.until(lambda: stage.end(third) == end)
    stage.mute(first)
    stage.run(500)
    stage.kill(first)
    stage.heal()
    stage.start(second)
    stage.commit(stage.leader_of([second]))


def a_leader_that_forgets(stage: QuorumStage) -> None:
    """A leader's record is committed by its followers, while it has not synced it, loses power, and is back at once."""
    leader = stage.elect()
    stage.never_syncs(leader)
    stage.commit(leader)
    stage.lose_power(leader)
    stage.machines[leader].sync_ms = 0.5
    stage.start(leader)
    stage.commit(stage.leader_of(stage.machines))


def another_candidate_of_the_epoch(stage: QuorumStage) -> None:
    """A follower that has not fetched yet is asked for a vote in the epoch of its leader, for whom it has voted."""
    stage.start(1, 2)
    leader = stage.leader_of([1, 2], is_committed=False)
    follower = 3 - leader

    def follows() -> bool:
        node = stage.machines[follower].node
        return node is not None and isinstance(node.quorum.state, RaftFollower)

    stage.until(follows)
    stage.ask_for_vote(follower, 3, stage.epoch(leader))


def two_candidates(stage: QuorumStage) -> None:
    """A voter is asked for votes by two candidates of an epoch."""
    stage.start(3)
    stage.ask_for_vote(3, 1, 7)
    stage.ask_for_vote(3, 2, 7)


def a_candidate_that_lacks_records(stage: QuorumStage) -> None:
    """A node that was cut off while records were committed stands before the one that has them."""
    leader = stage.elect()
    other, alone = stage.others(leader)
    stage.cut_off(alone)
    stage.commit(leader)
    stage.kill(leader, other)
    stage.machines[other].change_rate(0.4)
    stage.heal()
    stage.start(other)
    stage.leader_of([other, alone])


def a_leader_that_comes_back_with_more(stage: QuorumStage) -> None:
    """A leader has a record that no other has, and dies; another one leads on, and then the first is back."""
    first = stage.elect()
    stage.mute(first)
    stage.write(first)
    stage.run(10)
    stage.kill(first)
    stage.heal()
    second = stage.leader_of(stage.others(first))
    stage.commit(second)
    stage.start(first)
    stage.commit(second)
    stage.until(lambda: stage.knows(first))


def voters_that_were_joined_by_others(stage: QuorumStage) -> None:
    """Two of three voters are away while the third goes on with two more, and all of these die.

    One of the two has heard of the first that was added, and not that this is committed.
    """
    leader = stage.elect()
    near, far = [each for each in (1, 2, 3) if each != leader]
    stage.cut_off(far)
    stage.add(leader, 4)
    stage.until(lambda: stage.end(near) == stage.end(leader))
    stage.kill(near)
    stage.add(leader, 5)
    stage.commit(leader)
    stage.kill(leader, 4, 5)
    stage.heal()
    stage.start(near)
    stage.run(10_000)


def two_removals(stage: QuorumStage) -> None:
    """A leader that nobody hears is asked to remove two voters."""
    leader = stage.elect()
    stage.mute(leader)
    first, second, *_ = stage.others(leader)
    stage.remove(leader, first)
    stage.remove(leader, second)
    stage.run(1)


def a_leader_that_is_removed(stage: QuorumStage) -> None:
    """A leader removes itself."""
    leader = stage.elect()
    stage.remove(leader, leader)
    stage.run(10_000)
    if stage.machines[leader].leads is not None:
        raise Violation("a leader that is no voter leads on")
    stage.commit(stage.leader_of(stage.others(leader)))


def a_removal_that_nobody_has_heard_of(stage: QuorumStage) -> None:
    """A leader of two removes itself, and dies before the other has heard. Then it is back."""
    leader = stage.elect()
    stage.mute(leader)
    stage.remove(leader, leader)
    stage.run(10)
    stage.kill(leader)
    stage.heal()
    stage.start(leader)
    [other] = stage.others(leader)
    stage.until(lambda: stage.machines[other].leads is not None, 3 * 10_000)
    stage.commit(other)


def a_leader_alone(stage: QuorumStage) -> None:
    """A leader is cut off from all others."""
    leader = stage.elect()
    stage.cut_off(leader)
    stage.run(8000)
    if stage.machines[leader].leads is not None:
        raise Violation("a leader whom nobody follows leads on")


def a_leader_by_itself(stage: QuorumStage) -> None:
    """The only voter leads for a while."""
    leader = stage.elect()
    epoch = stage.epoch(leader)
    stage.run(20_000)
    if stage.machines[leader].leads != epoch:
        raise Violation("the only voter does not lead on")


def a_leader_without_its_first_record(stage: QuorumStage) -> None:
    """A leader loses power before its first record is synced, and is asked for a vote in its epoch when it is back."""
    stage.start(1, 2)
    leader = stage.leader_of([1, 2], is_committed=False)
    epoch, disk = stage.epoch(leader), stage.machines[leader].disk
    stage.until(lambda: disk.election is not None and disk.election.leader_id == leader)
    stage.lose_power(leader)
    stage.start(leader)
    stage.ask_for_vote(leader, 3, epoch)


def a_follower_alone(stage: QuorumStage) -> None:
    """A follower is cut off for a while."""
    leader = stage.elect()
    epoch = stage.epoch(leader)
    stage.cut_off(stage.others(leader)[0])
    stage.run(8000)
    stage.heal()
    stage.run(4000)
    if stage.machines[leader].leads != epoch:
        raise Violation("a follower that comes back deposes the leader")


def losses_of_power(stage: QuorumStage) -> None:
    """All nodes lose power again and again, just after a commit."""
    stage.elect()
    for _ in range(6):
        stage.commit(stage.leader_of(stage.machines))
        for machine in stage.machines.values():
            machine.die(loses_power=True)
        stage.start(*stage.machines)
    stage.commit(stage.leader_of(stage.machines))


def losses_of_power_in_elections(stage: QuorumStage) -> None:
    """All nodes lose power again and again, just when one has been elected."""
    for _ in range(6):
        stage.start(*stage.machines)
        stage.leader_of(stage.machines, is_committed=False)
        for machine in stage.machines.values():
            machine.die(loses_power=True)
    stage.start(*stage.machines)
    stage.commit(stage.leader_of(stage.machines))


class RaftCase(NamedTuple):
    """A rule, the scenario that needs it, and the nodes in it."""

    breakage: str
    script: RaftScript
    voters: int = 3
    controllers: int = 0
    is_real: bool = False
    """Whether the product's own log is on their disks."""


CASES = [
    RaftCase("vote_before_sync", a_voter_without_power),
    RaftCase("fetch_before_flush", followers_that_do_not_sync),
    RaftCase("unflushed_leader_counts", a_leader_that_does_not_sync),
    RaftCase("watermark_of_earlier_epochs", a_record_of_an_earlier_epoch),
    RaftCase("no_resigned_start", a_leader_that_forgets),
    RaftCase("followers_vote", another_candidate_of_the_epoch),
    RaftCase("forgets_its_vote", two_candidates),
    RaftCase("votes_for_any_log", a_candidate_that_lacks_records),
    RaftCase("truncation_by_offset", a_leader_that_comes_back_with_more),
    RaftCase("voters_when_committed", voters_that_were_joined_by_others, controllers=2),
    RaftCase("voters_at_once", two_removals, voters=5),
    RaftCase("removed_leader_stays", a_leader_that_is_removed),
    RaftCase("removed_voters_never_stand", a_removal_that_nobody_has_heard_of, voters=2),
    RaftCase("no_check_quorum", a_leader_alone),
    RaftCase("single_voters_check_quorum", a_leader_by_itself, voters=1),
    RaftCase("old_leaders_vote", a_leader_without_its_first_record),
    RaftCase("no_pre_vote", a_follower_alone),
    RaftCase("name_not_synced", losses_of_power_in_elections, is_real=True),
    RaftCase("flush_of_nothing", losses_of_power, is_real=True),
]


def test_every_breakage_has_a_scenario() -> None:
    assert [case.breakage for case in CASES] == list(BREAKAGES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.script.__name__)
def test_nodes_survive(case: RaftCase) -> None:
    violation, happened = perform_script(case.script, case.voters, case.controllers, is_real=case.is_real)
    assert violation == "", "\n".join(happened[-200:])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.breakage)
def test_without_the_rule_they_do_not(case: RaftCase, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKAGES[case.breakage](monkeypatch)
    violation, _ = perform_script(case.script, case.voters, case.controllers, is_real=case.is_real)
    assert violation != ""
    assert "TypeError" not in violation and "AttributeError" not in violation, "it breaks more than a rule"
