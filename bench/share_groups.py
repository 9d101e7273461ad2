"""``python -m bench.share_groups``: share groups (KIP-932) on Ottla and Apache Kafka in turn, and a table.

A row is a million records of 100 bytes, read by ten consumers of one share group, which begins with the first record. Consumers
are Java's KafkaShareConsumer, ten in one JVM (``ShareReaders.java``), or do as little as they can (``share_readers``). They have
joined and have their partitions when the time begins; it ends when they have read all records together. Each turn has a group of
its own; the first one is not counted. The brokers of a row run at once, and one is under load at a time.

With ``--steps`` it measures instead the steps of Ottla's loop meanwhile, with ``--profile`` where its CPU time goes.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ottla.base.errors import ErrorCode
from ottla.compat_tests.wire_client import connect
from ottla.tools.suite import speed
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

from .brokers import ApacheKafka, Kind, Ottla, ProfiledOttla, RunningBroker
from .consumer_groups import WithSettings
from .java import java_command
from .report import Results, markdown_table, profile_table
from .rows import Figure, at_least
from .usage import Span

_ROOT = Path(__file__).resolve().parent.parent
TOPIC = "records"
_RECORDS, _CONSUMERS, _VALUE_BYTES = 1_000_000, 10, 100
_WARM_UP = "warm-up"
_GROUP_RESOURCE = 32
_PRODUCE_VERSION = 9
_IN_FLIGHT = 5
_AS_PRODUCERS_DO = 151
"""Records in a batch of 16 KiB, which is the ``batch.size`` of Kafka's producer."""


def _java(broker: RunningBroker) -> list[str]:
    return java_command(str(_ROOT / "bench" / "ShareReaders.java"), broker.bootstrap, str(_CONSUMERS), heap="1G")


def _wire(broker: RunningBroker) -> list[str]:
    return [sys.executable, "-m", "bench.share_readers", broker.bootstrap, str(_CONSUMERS)]


@dataclass(frozen=True)
class Row:
    """One topic on each broker, and a client."""

    title: str
    command: Callable[[RunningBroker], list[str]]
    batch: int
    """Records in each batch."""
    partitions: int


_BATCHES = {_AS_PRODUCERS_DO: "batches of 16 KiB", 10: "batches of 10 records"}
ROWS = [
    Row(f"{client}, {_BATCHES[batch]}", command, batch, 10)
    for batch in _BATCHES
    for client, command in (("Java", _java), ("light", _wire))
]


class Readers:
    """The consumers of a row, in a process of their own."""

    def __init__(self, broker: RunningBroker, row: Row) -> None:
        self._broker, self._row = broker, row

    def __enter__(self) -> Readers:
        command = self._row.command(self._broker)
        with (self._broker.folder / "consumers.log").open("w") as log:
            self._process = subprocess.Popen(
                command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def read(self, group_id: str, records: int) -> tuple[float, float, Span]:
        """Seconds in which a new group reads so many records, CPU seconds of the consumers, and what it costs."""
        begin_with_the_first_record(self._broker.bootstrap, group_id)
        self._ask("join", group_id, TOPIC)
        with self._broker.measured(self._row.title, [self._process.pid]) as span:
            seconds, cpu_s, _ = self._ask("read", str(records)).split()
        return float(seconds), float(cpu_s), span

    def _ask(self, *words: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(*words, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            log = (self._broker.folder / "consumers.log").read_text()
            raise RuntimeError(f"the consumers of {self._row.title} have ended: {log[-2000:]}")
        return answer


def begin_with_the_first_record(bootstrap: str, group_id: str) -> None:
    """Configure a group before it begins. RuntimeError where that is refused."""
    config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group_id, configs=[config])
    with connect(bootstrap) as wire:
        (result,) = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    if result.error_code != ErrorCode.NONE:
        raise RuntimeError(f"{group_id} was not configured: {result.error_message}")


def fill(bootstrap: str, row: Row, records: int) -> None:
    """Write the records, evenly over the partitions. RuntimeError where one is refused."""
    with connect(bootstrap) as wire:
        waiting = 0
        for request in _requests(row, records // row.partitions):
            wire.send(request, _PRODUCE_VERSION)
            waiting += 1
            if waiting == _IN_FLIGHT:
                _check(wire.receive())
                waiting -= 1
        for _ in range(waiting):
            _check(wire.receive())


def _requests(row: Row, left: int) -> Iterator[ProduceRequest]:
    record = Record(value=b"x" * _VALUE_BYTES, timestamp=time.time_ns() // 1_000_000)
    full = build_batch([record] * row.batch)
    while left > 0:
        batch = full if left >= row.batch else build_batch([record] * left)
        left -= row.batch
        partitions = [PartitionProduceData(index=number, records=batch) for number in range(row.partitions)]
        topic = TopicProduceData(name=TOPIC, partition_data=partitions)
        yield ProduceRequest(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=[topic])


def _check(response: object) -> None:
    for topic in response.responses:  # type: ignore[attr-defined]
        for partition in topic.partition_responses:
            if partition.error_code != ErrorCode.NONE:
                raise RuntimeError(f"Produce returned {ErrorCode(partition.error_code).name}")


# A run


def _figures(row: Row, records: int, seconds: float, clients_s: float, span: Span) -> list[Figure]:
    return [
        Figure(row.title, "records/s", records / seconds, at_least(0.7), span.noise),
        Figure(row.title, "CPU s", span.broker_cpu_s, None, span.noise),
        Figure(row.title, "consumers' CPU s", clients_s, None, span.noise),
        Figure(row.title, "consumers' cores", clients_s / seconds, None, span.noise),
    ]


@contextmanager
def _running(
    kinds: Sequence[Kind], row: Row, folder: Path, records: int
) -> Iterator[list[tuple[RunningBroker, Readers]]]:
    with ExitStack() as stack:
        running = []
        for number, kind in enumerate(kinds):
            broker = stack.enter_context(RunningBroker(kind, folder / str(number)))
            broker.create_topic(TOPIC, row.partitions)
            fill(broker.bootstrap, row, records)
            running.append((broker, stack.enter_context(Readers(broker, row))))
        for _, readers in running:
            readers.read(_WARM_UP, records)
        yield running


def _measure(
    row: Row, kinds: Sequence[Kind], turns: int, folder: Path, records: int, add: Callable[..., None]
) -> Mapping[str, Counter[str]]:
    with _running(kinds, row, folder, records) as running:
        for turn in range(turns):
            for broker, readers in running:
                add(broker.name, turn, _figures(row, records, *readers.read(f"group-{turn}", records)))
        return running[0][0].profiles


def _measure_steps(row: Row, folder: Path, records: int, add: Callable[..., None]) -> None:
    kind = WithSettings(Ottla(), {}, is_watched=True)
    with _running([kind], row, folder, records) as ((broker, readers),):
        file = broker.folder / "steps.json"
        file.unlink(missing_ok=True)
        broker.signal(signal.SIGUSR1)
        readers.read("group", records)
        broker.signal(signal.SIGUSR2)
        while not file.exists():
            time.sleep(0.01)
        found = json.loads(file.read_text())
        print(found["steps"], file=sys.stderr)
        steps = [Figure(row.title, "longest step, CPU ms", found["steps"][0][0])]
        add(broker.name, 0, [*steps, Figure(row.title, "longest collection, CPU ms", found["collection_ms"])])


def main(
    rows: Annotated[str, typer.Option(help="Regular expression: only rows whose titles match.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="How often each row is run on each broker.")] = 3,
    records: Annotated[int, typer.Option(min=1000, help="How many records each turn reads.")] = _RECORDS,
    only_ottla: Annotated[
        bool, typer.Option("--only-ottla", help="Without Apache Kafka, and so without ratios.")
    ] = False,
    steps: Annotated[bool, typer.Option("--steps", help="Only Ottla, and the longest steps of its loop.")] = False,
    profile: Annotated[bool, typer.Option("--profile", help="Only Ottla, and where its CPU time goes.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Folder for the data; a temporary one by default.")] = None,
) -> None:
    """Measure share groups of Ottla against those of Apache Kafka 4.3.1."""
    kinds: list[Kind] = [ProfiledOttla()] if profile else [Ottla()]
    if not (only_ottla or steps or profile):
        kinds.append(ApacheKafka())
    results = Results(kinds[0].name, kinds[1].name if len(kinds) > 1 else None)
    loads = []
    profiles: dict[str, Counter[str]] = {}

    def add(name: str, pair: int, figures: Sequence[Figure]) -> None:
        loads.append(os.getloadavg()[0])
        shown = ", ".join(f"{figure.value:,.4g} {figure.unit}" for figure in results.add(name, pair, figures))
        print(f"{figures[0].row}, {name}: {shown}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="ottla-bench-", dir=folder) as temporary:
        for row in ROWS:
            if re.search(rows, row.title):
                if steps:
                    _measure_steps(row, Path(temporary), records, add)
                else:
                    profiles.update(_measure(row, kinds, turns, Path(temporary), records, add))
    print(*markdown_table(results.header(), results.table()), sep="\n")
    if profile:
        print("", *profile_table(profiles), sep="\n")
    print(f"\non {os.cpu_count()} cores, load average {min(loads):.1f} to {max(loads):.1f}; {turns} turns.")
    print(f"Ottla's Python is {speed.described(sys.executable)}.")


if __name__ == "__main__":
    typer.run(main)
