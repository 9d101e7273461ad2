"""Requests to a share coordinator (KIP-932) that Apache Kafka's own code answers alike, with the same records."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from ottla.base.errors import KafkaError
from ottla.base.seams import SimulatedClock
from ottla.compat_tests import toolchains
from ottla.compat_tests.java.tools import SHORT_LIVED, java_command
from ottla.share_coordinator.batches import merge
from ottla.share_coordinator.coordinator import ShareCoordinator
from ottla.share_coordinator.records import batches_of, written_batches
from ottla.share_coordinator.settings import ShareCoordinatorSettings
from ottla.share_coordinator.state import SharePartitionKey, StateBatch
from ottla.wire.coordinator_records import decode_share_key, decode_share_value, encode_coordinator_record
from ottla.wire.messages.share_group_state import ShareSnapshotValue, ShareUpdateValue
from ottla.wire.records import iter_batches

from ..helpers.memory_coordinator_log import MemoryLog

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).with_name("ShareStates.java")
TOPIC = bytes(range(16))
RUNS, REQUESTS = 200, 60
COLD = 200_000


class OnePartition(MemoryLog):
    """All share partitions are in partition 0."""

    def partition_count(self) -> int | None:
        return 1


class Ours:
    """What Ottla's coordinator answers, in the words of ``ShareStates.java``."""

    def __init__(self, clock: SimulatedClock) -> None:
        self._clock = clock
        self._log = OnePartition()
        self._coordinator: ShareCoordinator

    async def begin(self, limit: int) -> None:
        self._log = OnePartition()
        settings = ShareCoordinatorSettings({"share_coordinator_snapshot_update_records_per_snapshot": limit})
        self._coordinator = ShareCoordinator(
            self._log, settings, self._clock, lambda topic_id: 3 if topic_id == TOPIC else 0
        )
        await self._coordinator.load(0, 1)

    async def answer(self, line: str) -> str:
        name, *words = line.split("\t")
        if name == "limit":
            await self.begin(int(words[0]))
            return ""
        count = len(self._log.partitions.get(0, ()))
        if name == "cold":
            self._clock.start_ms += int(words[0])
            await self._coordinator.snapshot_cold_partitions()
            return self._records(count)
        try:
            told = self._ask(name, words)
        except KafkaError as error:
            told = {"read": f"{error.code} 0 0 ", "summary": f"{error.code} 0 0 0 -1"}.get(name, str(int(error.code)))
        return told + self._records(count)

    def _ask(self, name: str, words: list[str]) -> str:
        coordinator = self._coordinator
        key = SharePartitionKey("g", TOPIC, int(words[0]))
        if name == "initialize":
            coordinator.initialize(key, int(words[1]), int(words[2]))
        elif name == "read":
            state = coordinator.read(key, int(words[1])).result
            batches = ",".join(":".join(map(str, batch)) for batch in state.batches)
            return f"0 {state.state_epoch} {state.start_offset} {batches}"
        elif name == "write":
            written = [StateBatch(*map(int, word.split(":"))) for word in filter(None, words[5].split(","))]
            coordinator.write(key, *map(int, words[1:5]), written)
        elif name == "delete":
            coordinator.delete(key)
        else:
            return f"0 {' '.join(map(str, coordinator.summary(key).result))}"
        return "0"

    def _records(self, since: int) -> str:
        texts = [
            f" {(record.key or b'').hex()}={(record.value or b'').hex()}"
            for data in self._log.partitions.get(0, [])[since:]
            for batch in iter_batches(data)
            for record in batch.records()
        ]
        return "".join(sorted(texts))


def requests(chance: random.Random, limit: int) -> Iterator[str]:
    """Few share partitions and epochs, so that much is refused, and batches that overlap."""
    yield f"limit\t{limit}"
    begun: set[int] = set()
    for _ in range(REQUESTS):
        partition = chance.choice([0, 0, 0, 0, 1, 1, 2, 3, -1])
        match chance.choice("iirrwwwwwwwwdsc"):
            case "i":
                # A snapshot of Kafka's leaves the count of updates unless that has reached the limit.
                if limit in (0, 500) or partition not in begun:
                    yield f"initialize\t{partition}\t{chance.randrange(-1, 4)}\t{chance.choice([-1, 0, 5])}"
                begun.add(partition)
            case "r":
                yield f"read\t{partition}\t{chance.randrange(-1, 4)}"
            case "w":
                batches = ",".join(
                    f"{first}:{first + chance.randrange(6)}:{chance.choice([0, 2, 4])}:{chance.randrange(1, 4)}"
                    for first in (chance.randrange(20) for _ in range(chance.randrange(4)))
                )
                epochs = f"{chance.randrange(-1, 4)}\t{chance.randrange(-1, 4)}"
                yield f"write\t{partition}\t{epochs}\t{chance.choice([-1, 0, 4, 9])}\t{chance.randrange(-1, 9)}\t{batches}"
            case "d":
                if chance.random() < 0.3:
                    yield f"delete\t{partition}"
                    begun.discard(partition)
            case "s":
                yield f"summary\t{partition}"
            case _:
                if limit in (0, 500) and chance.random() < 0.5:
                    yield f"cold\t{chance.choice([0, COLD, 2 * COLD])}"


def joined(answer: str) -> str:
    """With neighbours in one state as one batch: Kafka leaves some of them apart, depending on what it has merged before."""
    words = answer.split(" ")
    for number, word in enumerate(words):
        key, _, value = word.partition("=")
        if value:
            decoded = decode_share_value(decode_share_key(bytes.fromhex(key)), bytes.fromhex(value))
            assert isinstance(decoded, ShareSnapshotValue | ShareUpdateValue)
            decoded.state_batches = written_batches(merge((), batches_of(decoded), -1))
            words[number] = f"{key}={encode_coordinator_record(decoded, 0).hex()}"
        elif ":" in word:
            batches = [StateBatch(*map(int, batch.split(":"))) for batch in word.split(",")]
            words[number] = ",".join(":".join(map(str, batch)) for batch in merge((), batches, -1))
    return " ".join(words)


async def test_answers_and_records_are_those_of_kafka(tmp_path: Path, autojump_clock: MockClock) -> None:
    chance = random.Random(20261126)
    lines = [line for number in range(RUNS) for line in requests(chance, (500, 0, 3)[number % 3])]
    toolchains.compile_java([SOURCE], toolchains.kafka_jars(), tmp_path)
    *java, jars = java_command(tmp_path, *SHORT_LIVED)
    done = subprocess.run(
        [*java, f"{tmp_path}:{jars}", "ShareStates"], input="\n".join(lines).encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    answers = done.stdout.decode().splitlines()
    ours = Ours(SimulatedClock(1_700_000_000_000 - int(trio.current_time() * 1000)))
    seen = set()
    for number, (line, answer) in enumerate(zip(lines, answers, strict=True)):
        assert await ours.answer(line) == joined(answer), lines[max(0, number - 70) : number + 1]
        seen.add((line.partition("\t")[0], answer.partition(" ")[0]))
    assert len(seen) >= 19, seen
