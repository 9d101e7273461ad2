"""The step of one member towards its target (KIP-848): each rule, and random walks of whole groups that find a broken one."""

from __future__ import annotations

import random
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.group_coordinator import current_assignment
from ottla.group_coordinator.consumer_group import NOBODY, ConsumerGroupState
from ottla.group_coordinator.consumer_group_member import (
    AssignedPartitions,
    ConsumerGroupMember,
    MemberState,
)
from ottla.group_coordinator.current_assignment import reconciled

from .helpers.consumer_groups import Answer, Heartbeats, replayed, topic_id

T, U = topic_id("t"), topic_id("u")
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def member_at(
    epoch: int,
    state: MemberState = STABLE,
    assigned: dict[bytes, dict[int, int]] | None = None,
    pending: dict[bytes, dict[int, int]] | None = None,
) -> ConsumerGroupMember:
    return ConsumerGroupMember(
        "A",
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=AssignedPartitions(assigned or {}),
        pending_revocation=AssignedPartitions(pending or {}),
    )


def step(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: dict[bytes, set[int]],
    owned: dict[bytes, set[int]] | None = None,
    *,
    others: dict[tuple[bytes, int], int] | None = None,
    subscribed: set[bytes] | None = None,
    has_subscription_changed: bool = False,
) -> ConsumerGroupMember:
    held = dict.fromkeys(member.held(), member.epoch) | (others or {})
    return reconciled(
        member,
        target_epoch,
        target,
        {T, U} if subscribed is None else subscribed,
        lambda topic, partition: held.get((topic, partition), NOBODY),
        owned,
        has_subscription_changed=has_subscription_changed,
    )


def told(member: ConsumerGroupMember) -> tuple[object, ...]:
    found: tuple[object, ...] = (member.epoch, member.previous_epoch, member.state, dict(member.assigned.epochs))
    return (*found, dict(member.pending_revocation.epochs)) if member.pending_revocation else found


def test_nothing_to_do_is_the_same_member() -> None:
    settled = member_at(5, STABLE, {T: {0: 3}})
    assert step(settled, 5, {T: {1}}) is settled
    assert step(settled, 5, {T: {1}}, has_subscription_changed=True) is settled
    waits = member_at(5, UNREVOKED, {T: {0: 3}}, {T: {1: 3}})
    for owned in (None, {T: {1}}, {T: {0, 1}, U: {4}}):
        assert step(waits, 6, {T: {0}}, owned) is waits


def test_partitions_that_are_free_come_at_once() -> None:
    member = member_at(5, STABLE, {T: {0: 3}})
    assert told(step(member, 7, {T: {0, 1}, U: {2}})) == (7, 5, STABLE, {T: {0: 3, 1: 7}, U: {2: 7}})


def test_partitions_of_others_are_waited_for() -> None:
    member = member_at(5, STABLE, {T: {0: 3}})
    waits = step(member, 7, {T: {0, 1, 2}}, others={(T, 1): 6})
    assert told(waits) == (7, 5, UNRELEASED, {T: {0: 3, 2: 7}})
    again = step(waits, 7, {T: {0, 1, 2}}, others={(T, 1): 6})
    assert told(again) == (7, 7, UNRELEASED, {T: {0: 3, 2: 7}})
    assert step(again, 7, {T: {0, 1, 2}}, others={(T, 1): 6}) == again, "it is written no more"
    assert told(step(again, 7, {T: {0, 1, 2}})) == (7, 7, STABLE, {T: {0: 3, 1: 7, 2: 7}})
    assert told(step(again, 9, {T: {0, 1}})) == (7, 7, UNREVOKED, {T: {0: 3}}, {T: {2: 7}})
    assert told(step(member, 7, {T: {0, 1}}, others={(T, 1): 0})) == (7, 5, UNRELEASED, {T: {0: 3}})
    assert told(step(member, 7, {T: {0, 1}}, others={(T, 1): -2})) == (7, 5, UNRELEASED, {T: {0: 3}})


def test_partitions_are_given_up_at_the_old_epoch() -> None:
    member = member_at(5, STABLE, {T: {0: 3, 1: 4}})
    for owned in (None, {T: {0, 1}}):
        gives_up = step(member, 7, {T: {0}, U: {2}}, owned)
        assert told(gives_up) == (5, 5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}})
    assert told(step(gives_up, 8, {T: {0}, U: {2}}, {T: {0}})) == (8, 5, STABLE, {T: {0: 3}, U: {2: 8}})
    assert told(step(gives_up, 8, {U: {2}}, {T: {0}})) == (5, 5, UNREVOKED, {}, {T: {0: 3}}), "more is to be given up"
    assert told(step(member, 7, {T: {0}}, {T: {0}})) == (7, 5, STABLE, {T: {0: 3}}), "it does not read it any more"


def test_a_partition_given_up_may_come_back() -> None:
    member = member_at(5, UNREVOKED, {T: {0: 3}}, {T: {1: 4}})
    assert told(step(member, 7, {T: {0, 1}}, {T: {0}})) == (7, 5, STABLE, {T: {0: 3, 1: 7}})


def test_topics_that_are_no_longer_read_are_not_taken_from_an_old_target() -> None:
    member = member_at(5, STABLE, {T: {0: 3}, U: {1: 4}})
    assert told(step(member, 7, {T: {0}, U: {1}}, subscribed={T})) == (5, 5, UNREVOKED, {T: {0: 3}}, {U: {1: 4}})
    assert told(step(member_at(0), 7, {T: {0}, U: {1}}, subscribed={U})) == (7, 0, STABLE, {U: {1: 7}})


def test_topics_that_are_no_longer_read_go_without_a_new_target() -> None:
    member = member_at(5, STABLE, {T: {0: 3}, U: {1: 4}})
    changed = {"subscribed": {T}, "has_subscription_changed": True}
    assert told(step(member, 5, {}, **changed)) == (5, 5, UNREVOKED, {T: {0: 3}}, {U: {1: 4}})
    assert told(step(member, 5, {}, {T: {0}}, **changed)) == (5, 5, STABLE, {T: {0: 3}})
    gives_up = member_at(5, UNREVOKED, {T: {0: 3}, U: {1: 4}}, {U: {2: 4}})
    assert told(step(gives_up, 6, {}, **changed)) == (5, 5, UNREVOKED, {T: {0: 3}}, {U: {1: 4, 2: 4}})
    assert step(gives_up, 6, {}, subscribed={T, U}, has_subscription_changed=True) is gives_up


@pytest.mark.parametrize("owned", [None, {T: {0}}])
def test_a_member_in_an_unknown_state_is_fenced(owned) -> None:
    with pytest.raises(KafkaError) as fenced:
        step(member_at(5, MemberState.UNKNOWN, {T: {0: 3}}), 7, {T: {0}}, owned)
    assert fenced.value.code is ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_in_an_unknown_state_that_has_nothing_starts_anew() -> None:
    member = member_at(5, MemberState.UNKNOWN, {T: {0: 3, 1: 3}})
    assert told(step(member, 7, {T: {0, 2}}, {})) == (7, 5, STABLE, {T: {0: 3, 2: 7}})


class RuleBrokenError(Exception):
    """A walk has found it."""


@dataclass
class Client:
    """A consumer: it reads ``owned``, and takes its time to stop reading what it was told to give up."""

    member_id: str
    instance_id: str | None
    names: list[str]
    epoch: int = 0
    owned: set[tuple[bytes, int]] = field(default_factory=set)
    to_stop: set[tuple[bytes, int]] = field(default_factory=set)
    reported: set[tuple[bytes, int]] = field(default_factory=set)
    is_full: bool = True
    """Whether the next request has all fields: the first one, and those after a response was lost."""
    lost: int = 0
    """Responses in a row that it did not get."""
    is_resubscribed: bool = False
    """Whether it has changed what it reads since it last came to a target."""
    runs: int = 1

    def stop_reading(self) -> None:
        self.owned -= self.to_stop
        self.to_stop.clear()

    def start_anew(self) -> None:
        self.epoch, self.is_full, self.lost = 0, True, 0
        self.owned.clear()
        self.to_stop.clear()

    def take(self, answer: Answer) -> None:
        if 0 < answer.epoch < self.epoch:
            raise RuleBrokenError(f"{self.member_id} goes back from epoch {self.epoch} to {answer.epoch}")
        self.epoch, self.is_full, self.lost = answer.epoch, False, 0
        if answer.assigned is not None:
            assigned = {(topic, partition) for topic, numbers in answer.assigned.items() for partition in numbers}
            self.to_stop = self.owned - assigned
            self.owned |= assigned


class Walk:
    """A group whose clients come, go, lose requests and responses, and change what they read."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.beat = Heartbeats({"t": 5, "u": 3})
        self.clients = {
            name: Client(f"{name}1", "i" if name in "DE" else None, ["t"]) for name in "ABCDE"[: 2 + seed % 4]
        }
        for client in self.clients.values():
            if client.instance_id:
                client.instance_id += client.member_id

    def run(self, steps: int) -> None:
        for _ in range(steps):
            client = self.chance.choice(list(self.clients.values()))
            self.beat.is_interval_over = self.chance.random() < 0.6
            action = self.chance.random()
            if action < 0.15:
                client.stop_reading()
            elif action < 0.20:
                self._end(client)
            elif action < 0.27:
                client.names = self.chance.choice([["t"], ["u"], ["t", "u"], []])
                client.is_full = client.is_resubscribed = True
            else:
                self._send(client, self.chance.choices(("ok", "request lost", "response lost"), (8, 1, 2))[0])
            self._check()

    def settle(self) -> None:
        """Without faults and changes every member reaches the target."""
        self.beat.is_interval_over = True
        for _ in range(8):
            for client in self.clients.values():
                client.stop_reading()
                self._send(client, "ok")
                self._check()
        group = self.beat.group
        if group.state is not ConsumerGroupState.STABLE or group.target.epoch != group.epoch:
            raise RuleBrokenError(f"the group is {group.state} at the end")
        for client in self.clients.values():
            target = group.target.of(client.member_id)
            if client.owned != {(topic, partition) for topic, numbers in target.items() for partition in numbers}:
                raise RuleBrokenError(f"{client.member_id} does not have what the target gives it")

    def _send(self, client: Client, fate: str) -> None:
        if fate == "request lost":
            client.is_full = True
            return
        is_told = client.is_full or client.owned != client.reported
        owned: dict[bytes, set[int]] | None = {} if is_told else None
        for topic, partition in client.owned if owned is not None else ():
            owned.setdefault(topic, set()).add(partition)
        names = client.names if client.is_full else None
        before = self.beat.group.members.get(client.member_id)
        try:
            answer = self.beat(client.member_id, client.epoch, owned, names, client.instance_id, is_full=client.is_full)
        except KafkaError as error:
            if client.lost < 2:
                raise RuleBrokenError(f"{client.member_id} at {client.epoch} gets {error.code!r}") from error
            client.start_anew()
            return
        self._check_step(client, before, self.beat.group.members[client.member_id])
        if fate == "response lost":
            client.lost += 1
            client.is_full = True
        else:
            client.reported = set(client.owned)
            client.take(answer)

    def _end(self, client: Client) -> None:
        """A process ends; the next one has another member id."""
        client.start_anew()
        if client.member_id in self.beat.group.members:
            if client.instance_id is not None and self.chance.random() < 0.7:
                self.beat(client.member_id, -2, instance_id=client.instance_id)
            else:
                self.beat.expire(client.member_id)
        client.runs += 1
        client.member_id = f"{client.member_id[0]}{client.runs}"

    def _check_step(self, client: Client, before: ConsumerGroupMember | None, member: ConsumerGroupMember) -> None:
        target_epoch = self.beat.group.target.epoch
        target = self.beat.group.target.of(member.member_id)
        if member.epoch == target_epoch and member.state is not UNREVOKED:
            client.is_resubscribed = client.is_resubscribed and self.beat.group.epoch > target_epoch
        subscribed = {topic_id(name) for name in member.topic_names}
        held = set(member.assigned)
        if not {topic for topic, _ in held} <= subscribed:
            raise RuleBrokenError(f"{member.member_id} is given a topic that it does not read")
        if member.epoch == target_epoch and not client.is_resubscribed:
            wanted = {(topic, partition) for topic, numbers in target.items() for partition in numbers}
            if member.pending_revocation or not held <= wanted:
                raise RuleBrokenError(f"{member.member_id} is at the epoch of the target before it has come there")
            if member.state is STABLE and held != wanted:
                raise RuleBrokenError(f"{member.member_id} is stable without all that the target gives it")
        for topic, partition in held if before is not None else ():
            since = member.assigned.of(topic)[partition]
            if since != before.assigned.of(topic).get(partition, member.epoch):
                raise RuleBrokenError(f"{member.member_id} has a partition since epoch {since}, which is not true")

    def _check(self) -> None:
        group = self.beat.group
        for partition, owners in group.owners.items():
            if len(owners) != 1:
                raise RuleBrokenError(f"{partition} has the owners {owners}")
        reading: dict[tuple[bytes, int], str] = {}
        for client in self.clients.values():
            for partition in client.owned:
                other = reading.setdefault(partition, client.member_id)
                if other != client.member_id:
                    raise RuleBrokenError(f"{partition} is read by {other} and by {client.member_id}")


def walk(seed: int) -> Walk:
    group = Walk(seed)
    group.run(120)
    group.settle()
    return group


@pytest.mark.parametrize("seeds", [range(start, start + 25) for start in range(0, 100, 25)], ids=str)
def test_walks_of_a_group(seeds: range) -> None:
    for seed in seeds:
        walked = walk(seed).beat
        cut = random.Random(seed).randrange(len(walked.log))
        assert replayed(walked.log) == replayed(walked.log, replayed(walked.log[:cut])) == walked.group


_moved = ConsumerGroupMember.moved


def _moved_without_previous_epoch(member, *step):
    return replace(_moved(member, *step), previous_epoch=member.previous_epoch)


def _moved_to_the_next_epoch_too_early(member, epoch, state, *partitions):
    return _moved(member, epoch + (state is UNREVOKED), state, *partitions)


def _moved_as_if_stable(member, epoch, state, *partitions):
    return _moved(member, epoch, STABLE if state is UNRELEASED else state, *partitions)


def _moved_with_new_epochs(member, epoch, state, assigned, *pending):
    return _moved(member, epoch, state, assigned.at_epoch(epoch), *pending)


def _held_without_pending(member, topic_id: bytes) -> AbstractSet[int]:
    return member.assigned.of(topic_id).keys()


def _all_are_free(member, topic_id: bytes, partitions: AbstractSet[int], *_) -> list[int]:
    return list(partitions)


def _without_a_list_all_is_given_up(owned, partitions, ask=current_assignment._still_has) -> bool:
    return owned is not None and ask(owned, partitions)


BROKEN: dict[str, tuple[str, object, str, Callable[..., object]]] = {
    "a revocation is not waited for": ("is read by", current_assignment, "_still_has", lambda *_: False),
    "no list means that all is given up": (
        "is read by",
        current_assignment,
        "_still_has",
        _without_a_list_all_is_given_up,
    ),
    "partitions of others are taken": ("has the owners", current_assignment, "_free", _all_are_free),
    "pending partitions have no owner": ("is read by", ConsumerGroupMember, "held_of", _held_without_pending),
    "the previous epoch is not kept": (
        "FENCED_MEMBER_EPOCH",
        ConsumerGroupMember,
        "moved",
        _moved_without_previous_epoch,
    ),
    "the epoch changes before the revocation": (
        "before it has come there",
        ConsumerGroupMember,
        "moved",
        _moved_to_the_next_epoch_too_early,
    ),
    "what others have is not waited for": (
        "stable without all",
        ConsumerGroupMember,
        "moved",
        _moved_as_if_stable,
    ),
    "kept partitions get new epochs": ("is not true", ConsumerGroupMember, "moved", _moved_with_new_epochs),
    "topics that are not read any more stay": (
        "it does not read",
        current_assignment,
        "_without_unsubscribed",
        lambda member, *_: member,
    ),
}
"""Rule -> what the walk says of it, and how it is broken."""


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_rule_is_found(monkeypatch, rule: str) -> None:
    finding, *place, broken = BROKEN[rule]
    monkeypatch.setattr(*place, broken)
    with pytest.raises(RuleBrokenError, match=finding):
        for seed in range(100):
            walk(seed)
