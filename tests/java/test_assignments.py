"""Target assignments of consumer groups (KIP-848), as Apache Kafka's own assignors make them."""

from __future__ import annotations

import dataclasses
import random
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.group_coordinator.assignors.assignor import MemberSubscription, Target, finished, is_homogeneous
from ottla.group_coordinator.assignors.range import RangeAssignor
from ottla.group_coordinator.assignors.uniform import UniformAssignor

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("Assignments.java")
CASES = 400
KINDS = ("range, the same topics", "range", "uniform, the same topics", "uniform")
ASSIGNORS = {"range": RangeAssignor(), "uniform": UniformAssignor()}


@dataclasses.dataclass
class Case:
    """A group before its next target."""

    assignor: str
    counts: dict[bytes, int]
    members: dict[str, MemberSubscription]

    def line(self) -> str:
        kind = "homogeneous" if finished(is_homogeneous(self.members)) else "heterogeneous"
        counts = ",".join(f"{written(topic)}:{count}" for topic, count in self.counts.items())
        words = [self.assignor, kind, counts]
        for name, member in sorted(self.members.items()):
            words += [f"{name}:{member.instance_id or ''}", ",".join(map(written, sorted(member.topic_ids)))]
            words.append(partitions(member.target))
        return "\t".join(words)

    def answer(self) -> str:
        target = self.target()
        return "\t".join(f"{name}={partitions(target[name])}" for name in sorted(target) if target[name])

    def target(self) -> Target:
        return finished(ASSIGNORS[self.assignor].steps(self.members, self.counts))


def written(topic: bytes) -> str:
    return f"{topic[:8].hex()}.{topic[8:].hex()}"


def partitions(target: Mapping[bytes, frozenset[int]]) -> str:
    return " ".join(":".join((written(topic), *map(str, sorted(some)))) for topic, some in sorted(target.items()))


def some_topics(chance: random.Random, topics: list[bytes]) -> frozenset[bytes]:
    return frozenset(chance.sample(topics, chance.randrange(1, len(topics) + 1)))


def cases(kind: str, chance: random.Random) -> list[Case]:
    """Groups in their life: each case goes on from the target of the one before.

    Kafka's uniform assignor goes through the topics of a homogeneous group in the order of a HashSet. It is that of the ids where
    these are small numbers. Elsewhere the ids are random.
    """
    assignor, _, same = kind.partition(", ")
    numbers = list(range(1, 12)) if same else [chance.getrandbits(128) for _ in range(11)]
    topics = [number.to_bytes(16) for number in numbers]
    found = []
    while len(found) < CASES:
        case = Case(assignor, {topic: chance.choice([1, 3, 6, 6, 12, 50]) for topic in topics}, {})
        for _ in range(chance.randrange(1, 12)):
            case = changed(case, chance, has_same=bool(same))
            if bool(same) == finished(is_homogeneous(case.members)):
                found.append(case)
    return found[:CASES]


def changed(case: Case, chance: random.Random, *, has_same: bool) -> Case:
    target = case.target()
    members = {
        name: dataclasses.replace(member, target=target[name])
        for name, member in case.members.items()
        if chance.random() < 0.8
    }
    for _ in range(chance.choice([0, 1, 2, 9]) + (not members)):
        number = chance.randrange(10_000)
        instance_id = f"s{chance.randrange(100)}-{number}" if chance.random() < 0.3 else None
        members[f"m{number}"] = MemberSubscription(some_topics(chance, list(case.counts)), {}, instance_id)
    common = some_topics(chance, list(case.counts))
    if chance.random() < 0.6:
        common = next(iter(members.values())).topic_ids
    for name, member in members.items():
        topics = common if has_same else some_topics(chance, list(case.counts))
        if has_same or chance.random() < 0.1:
            members[name] = dataclasses.replace(member, topic_ids=topics)
    grown = {topic: count + chance.choice([0] * 9 + [1, 10]) for topic, count in case.counts.items()}
    return Case(case.assignor, grown, members)


def test_assignments_are_those_of_kafka(tmp_path: Path) -> None:
    chance = random.Random(848)
    made = [case for kind in KINDS for case in cases(kind, chance)]
    toolchains.compile_java([SOURCE], toolchains.kafka_jars(), tmp_path)
    *java, jars = java_command(tmp_path, *SHORT_LIVED)
    done = subprocess.run(
        [*java, f"{tmp_path}:{jars}", "Assignments"],
        input="\n".join(case.line() for case in made).encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = done.stdout.decode().splitlines()
    differing = [case for case, answer in zip(made, answers, strict=True) if case.answer() != answer]
    assert not differing, (len(differing), differing[0], differing[0].answer())
    assert sum(case.answer() != "" for case in made) > len(made) * 0.9
