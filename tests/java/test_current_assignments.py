"""Steps of members of consumer groups (KIP-848) that Apache Kafka's own code takes, too."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.group_coordinator.consumer_group import NOBODY
from ottla.group_coordinator.consumer_group_member import (
    AssignedPartitions,
    ConsumerGroupMember,
    MemberState,
)
from ottla.group_coordinator.current_assignment import reconciled
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("CurrentAssignments.java")
CASES = 20_000
TOPICS = (1, 2, 3)

Pair = tuple[int, int]


class Case(NamedTuple):
    """The input of a step. Topics are numbers here."""

    member: ConsumerGroupMember
    target_epoch: int
    target: dict[bytes, set[int]]
    subscribed: list[int]
    has_subscription_changed: bool
    others: dict[Pair, int]
    owned: set[Pair] | None

    def line(self) -> str:
        topics = [TopicPartition(topic_id=topic, partitions=sorted(numbers)) for topic, numbers in self.target.items()]
        target = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
        owned = "null" if self.owned is None else ",".join(f"{topic}:{partition}" for topic, partition in self.owned)
        return "\t".join(
            (
                encode_bytes(self.member.current_assignment(), 0).hex(),
                encode_bytes(target, 0).hex(),
                str(self.target_epoch),
                ",".join(map(str, self.subscribed)),
                str(self.has_subscription_changed).lower(),
                ",".join(f"{topic}:{partition}:{epoch}" for (topic, partition), epoch in self.others.items()),
                owned,
            )
        )

    def step(self) -> ConsumerGroupMember | None:
        """None: fenced."""
        owners = dict.fromkeys(self.member.held(), self.member.epoch)
        owners |= {(topic_id(topic), partition): epoch for (topic, partition), epoch in self.others.items()}
        try:
            return reconciled(
                self.member,
                self.target_epoch,
                self.target,
                set(map(topic_id, self.subscribed)),
                lambda topic, partition: owners.get((topic, partition), NOBODY),
                None if self.owned is None else by_topic(self.owned),
                has_subscription_changed=self.has_subscription_changed,
            )
        except KafkaError as error:
            assert error.code is ErrorCode.FENCED_MEMBER_EPOCH
            return None

    @property
    def is_step_of_nothing(self) -> bool:
        """Kafka writes the member once more when it no longer reads any topic, although it has no partitions."""
        return self.has_subscription_changed and not self.subscribed and next(self.member.held(), None) is None


def topic_id(topic: int) -> bytes:
    return topic.to_bytes(8) * 2


def by_topic(pairs: Iterable[Pair]) -> dict[bytes, set[int]]:
    topics: dict[bytes, set[int]] = {}
    for topic, partition in pairs:
        topics.setdefault(topic_id(topic), set()).add(partition)
    return topics


def case(chance: random.Random) -> Case:
    """Sets that overlap often, and a member that is at the target's epoch often."""
    target_epoch = chance.randrange(1, 20)
    epoch = target_epoch if chance.random() < 0.4 else chance.randrange(target_epoch + 1)
    all_pairs = [(topic, partition) for topic in TOPICS for partition in range(4)]
    held = chance.sample(all_pairs, chance.randrange(6))
    pending = chance.sample(held, chance.randrange(len(held) + 1)) if chance.random() < 0.6 else []
    assigned = [pair for pair in held if pair not in pending]
    free = [pair for pair in all_pairs if pair not in held]

    def with_epochs(pairs: Iterable[Pair]) -> AssignedPartitions:
        epochs: dict[bytes, dict[int, int]] = {}
        for topic, partition in pairs:
            epochs.setdefault(topic_id(topic), {})[partition] = chance.randrange(epoch + 1)
        return AssignedPartitions(epochs)

    member = ConsumerGroupMember(
        "A",
        epoch=epoch,
        previous_epoch=chance.randrange(epoch + 1),
        state=chance.choice(list(MemberState)[:3] * 5 + [MemberState.UNKNOWN]),
        assigned=with_epochs(assigned),
        pending_revocation=with_epochs(pending),
    )
    return Case(
        member,
        target_epoch,
        by_topic(chance.choice([assigned, chance.sample(all_pairs, chance.randrange(8)), held])),
        chance.choice([list(TOPICS), list(TOPICS), chance.sample(TOPICS, chance.randrange(4))]),
        chance.random() < 0.4,
        {pair: chance.choice([-2, 0, 1, 5]) for pair in chance.sample(free, chance.randrange(4))},
        chance.choice([None, set(), set(assigned), set(held), set(chance.sample(all_pairs, 2))]),
    )


def test_steps_are_those_of_kafka(tmp_path: Path) -> None:
    chance = random.Random(20261126)
    cases = [case(chance) for _ in range(CASES)]
    toolchains.compile_java([SOURCE], toolchains.kafka_jars(), tmp_path)
    *java, jars = java_command(tmp_path, *SHORT_LIVED)
    lines = "\n".join(one.line() for one in cases).encode()
    done = subprocess.run(
        [*java, f"{tmp_path}:{jars}", "CurrentAssignments"], input=lines, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = done.stdout.decode().splitlines()
    states: set[Any] = set()
    for one, answer in zip(cases, answers, strict=True):
        ours, theirs = one.step(), None
        if answer != "fenced":
            value = decode(ConsumerGroupCurrentMemberAssignmentValue, 0, bytes.fromhex(answer))
            theirs = ConsumerGroupMember("A").with_current_assignment(value)
        if ours is one.member and one.is_step_of_nothing:
            ours = ours.moved(ours.epoch, ours.state, ours.assigned)
        assert ours == theirs, one
        states.add((one.member.state, None if ours is None else ours.state, ours is one.member))
    assert len(states) >= 10, states
