"""Target assignments of share groups (KIP-932), by their sizes as Apache Kafka's assignor ``simple`` makes them.

Kafka goes through hash tables, so which member has which partition differs. So does, now and then, whether a partition finds a
last reader: all members with room may have it already.
"""

from __future__ import annotations

import dataclasses
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.group_coordinator.assignors.assignor import Target, finished
from ottla.group_coordinator.assignors.simple import SimpleAssignor

from .test_assignments import SOURCE, Case, changed

pytestmark = pytest.mark.slow

CASES = 400
Sizes = tuple[list[int], list[int]]
"""Of all members, and the numbers of readers of all partitions, in order."""


@dataclasses.dataclass
class ShareCase(Case):
    """A share group before its next target."""

    def target(self) -> Target:
        assignable = {topic: frozenset(range(count)) for topic, count in self.counts.items()}
        alike = len({member.topic_ids for member in self.members.values()}) == 1
        return finished(SimpleAssignor().steps(self.members, assignable, subscribed_alike=alike))


def cases(chance: random.Random, *, has_same: bool) -> list[ShareCase]:
    topics = [number.to_bytes(16) for number in range(1, 6)]
    found: list[ShareCase] = []
    while len(found) < CASES:
        case = ShareCase("simple", {topic: chance.choice([1, 1, 2, 3, 6, 12]) for topic in topics}, {})
        for _ in range(chance.randrange(1, 12)):
            plain = changed(case, chance, has_same=has_same)
            case = ShareCase(plain.assignor, plain.counts, plain.members)
            found.append(case)
    return found[:CASES]


def sizes(parts: dict[str, dict[str, set[int]]], case: ShareCase) -> Sizes:
    """Partitions of topics that a member does not read count for nothing, in Kafka as well: its member is not given them."""
    read = {
        name: {topic for topic in topics if topic in set(map(written, case.members[name].topic_ids))}
        for name, topics in parts.items()
    }
    counts = Counter(
        (topic, number) for name, topics in read.items() for topic in topics for number in parts[name][topic]
    )
    held = [sum(len(parts[name][topic]) for topic in topics) for name, topics in read.items()]
    return sorted(held + [0] * (len(case.members) - len(held))), sorted(counts.values())


def written(topic: bytes) -> str:
    return f"{topic[:8].hex()}.{topic[8:].hex()}"


def read(answer: str) -> dict[str, dict[str, set[int]]]:
    """By member and topic. Kafka leaves topics with no partitions in."""
    parts: dict[str, dict[str, set[int]]] = {}
    for word in filter(None, answer.split("\t")):
        name, _, topics = word.partition("=")
        parts[name] = {}
        for item in filter(None, topics.split(" ")):
            topic, *numbers = item.split(":")
            parts[name][topic] = set(map(int, filter(None, numbers)))
    return parts


def test_assignments_have_the_sizes_of_kafkas(tmp_path: Path) -> None:
    chance = random.Random(932)
    made = [case for has_same in (True, False) for case in cases(chance, has_same=has_same)]
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
    same = 0
    for case, answer in zip(made, answers, strict=True):
        theirs, ours = sizes(read(answer), case), sizes(read(case.answer()), case)
        same += theirs == ours
        assert abs(sum(ours[0]) - sum(theirs[0])) <= 1, (case, theirs, ours)
        assert abs(max(ours[0]) - max(theirs[0])) <= 1, (case, theirs, ours)
    assert same > len(made) * 0.97, same
