"""``python -m bench.consumer_groups``: consumer groups (KIP-848) on Ottla and Apache Kafka in turn, and a table.

The rows are 1,000 members with 10,000 partitions, and rebalances of 50 members. The brokers of a row run at once, with the same
members and an innocent producer (``group_members``, ``innocent_producer``), and one of them is under load at a time. A rebalance
takes from its cause until the broker calls the group stable and its members have all partitions.

With ``--steps`` it measures instead the steps of Ottla's loop meanwhile.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import trio
import typer
from confluent_kafka.admin import NewTopic

from ottla.tools.suite import speed

from .brokers import ApacheKafka, Kind, Ottla, RunningBroker
from .group_members import Members, all_joined, open_members
from .innocent_producer import InnocentProducer
from .many_and_large import admin_of, wait_for_leaders
from .report import Results, markdown_table
from .rows import Figure, Floor, at_least, at_most
from .usage import Span

_CONNECTIONS = 40
_IN_FLIGHT = 4
_INNOCENT, _WARM_UP = "innocent", "warm-up"
_PARTITIONS_A_REQUEST = 2000
_LIMIT_S = 600
_WARM_UP_MEMBERS, _WARM_UP_PARTITIONS, _WARM_UP_S = 200, 200, 6.0
_PAUSE_S = 2.0
"""Between two causes of rebalances: longer than a broker waits with the next assignment."""
_IDLE_S = 10.0
_AS_SOON = at_most(1.05)
"""A rebalance lasts as long as the slowest member waits for its next heartbeat, which comes at a random time."""
_SHORT_INTERVAL = {
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
}


class WithSettings:
    """A kind of broker with other settings than the default ones. With ``is_watched``, the steps of Ottla's loop are measured."""

    def __init__(self, kind: Kind, settings: Mapping[str, str], *, is_watched: bool = False) -> None:
        self.name = kind.name
        self.ports = kind.ports
        self._kind, self._settings, self._is_watched = kind, settings, is_watched

    def prepare(self, folder: Path, port: int) -> list[str]:
        command = self._kind.prepare(folder, port)
        settings = ["=".join(each) for each in self._settings.items()]
        if isinstance(self._kind, Ottla):
            command += [word for each in settings for word in ("--override", each)]
            if self._is_watched:
                command[:1] = [sys.executable, "-m", "bench.watched_broker", str(folder / "steps.json")]
            return command
        properties = folder / "server.properties"
        properties.write_text("\n".join([properties.read_text(), *settings]))
        return command


@dataclass(frozen=True)
class _Shape:
    """The topics, and how many of them each member reads."""

    topics: int
    partitions_each: int
    read: int

    @property
    def partitions(self) -> int:
        return self.topics * self.partitions_each

    def names(self) -> list[str]:
        return [f"topic-{number}" for number in range(self.topics)]

    def read_by(self, member: int) -> Sequence[str]:
        """Every member has its own choice, where it does not read all."""
        names = self.names()
        return names if self.read == self.topics else sorted(random.Random(member).sample(names, self.read))


class Group:
    """A group on a broker, and an innocent producer beside it."""

    def __init__(self, row: Row, broker: RunningBroker, members: Members, producer: InnocentProducer) -> None:
        self.title, self.broker, self.members = row.title, broker, members
        self._producer, self._shape = producer, row.shape
        self._count = 0

    def measured(self) -> AbstractContextManager[Span]:
        """The costs of the block."""
        return self.broker.measured(self.title, [self._producer.pid])

    def join(self) -> None:
        """One more member begins to join."""
        self.members.join(self._shape.read_by(self._count))
        self._count += 1

    async def join_many(self, count: int) -> None:
        """So many more at once."""
        for _ in range(count):
            self.join()

    async def leave(self) -> None:
        """The one that is there for longest leaves."""
        self.members.leave(self.members.present[0])

    async def restart(self, count: int) -> None:
        """So many leave one after the other; each comes back with a new id a second later, before the next one goes."""
        for _ in range(count):
            await self.leave()
            await trio.sleep(1)
            self.join()
            await all_joined(self.members.present[-1:])

    async def empty(self) -> None:
        """All leave, unmeasured."""
        await _all_leave(self.members)
        self._count = 0

    async def rebalance(self, cause: Callable[[], Awaitable[None]]) -> tuple[float, list[float], Span]:
        """Seconds until all have their partitions, the innocent producer's latencies meanwhile, and the costs."""
        self._producer.begin()
        with self.measured() as span:
            began = time.monotonic()
            await cause()
            await all_joined(self.members.present)
            await self.members.settled(self._shape.partitions)
            seconds = time.monotonic() - began
        return seconds, self._producer.end(), span

    async def idle(self) -> tuple[list[float], Span]:
        """The innocent producer's latencies beside a group in which nothing happens."""
        self._producer.begin()
        with self.measured() as span:
            await trio.sleep(_IDLE_S / 2)
        return self._producer.end(), span


def _create_topics(broker: RunningBroker, shape: _Shape) -> None:
    """In requests of a size that Kafka's controller takes."""
    admin = admin_of(broker)
    names = shape.names()
    at_once = max(_PARTITIONS_A_REQUEST // shape.partitions_each, 1)
    for start in range(0, len(names), at_once):
        topics = [NewTopic(name, shape.partitions_each, 1) for name in names[start : start + at_once]]
        for future in admin.create_topics(topics, request_timeout=_LIMIT_S, operation_timeout=_LIMIT_S).values():
            future.result(_LIMIT_S)
    wait_for_leaders(admin, shape.partitions)


@asynccontextmanager
async def _group(broker: RunningBroker, row: Row) -> AsyncIterator[Group]:
    """An empty group, on a broker that has served another one for some seconds."""
    with InnocentProducer(broker.bootstrap, _INNOCENT) as producer:
        producer.begin()
        await _warm_up(broker)
        producer.end()
        async with open_members("bench", broker.port, _CONNECTIONS) as members:
            yield Group(row, broker, members, producer)


async def _warm_up(broker: RunningBroker) -> None:
    async with open_members("warm-up", broker.port, _CONNECTIONS) as members:
        for _ in range(_WARM_UP_MEMBERS):
            members.join([_WARM_UP])
        await all_joined(members.present)
        await members.settled(_WARM_UP_PARTITIONS)
        await members.send_idle_heartbeats(_WARM_UP_S, _CONNECTIONS, _IN_FLIGHT)
        await _all_leave(members)


async def _all_leave(members: Members) -> None:
    for member in list(members.present):
        members.leave(member)
    while await members.state() != "Empty":
        await trio.sleep(0.1)


def _prepare(broker: RunningBroker, shape: _Shape) -> None:
    broker.create_topic(_WARM_UP, _WARM_UP_PARTITIONS)
    broker.create_topic(_INNOCENT, 1)
    _create_topics(broker, shape)


# Phases

Phase = Callable[[Group], Awaitable[list[Figure]]]


def _latencies(row: str, latencies: Sequence[float], span: Span, p99_floor: Floor | None) -> Iterator[Figure]:
    percentiles = statistics.quantiles(latencies, n=100, method="inclusive")
    yield Figure(row, "producer p50 ms", percentiles[49], None, span.noise)
    yield Figure(row, "producer p99 ms", percentiles[98], p99_floor, span.noise)
    yield Figure(row, "producer max ms", max(latencies), None, span.noise)


def _rebalance(what: str, cause: Callable[[Group], Awaitable[None]]) -> Phase:
    async def phase(group: Group) -> list[Figure]:
        await trio.sleep(_PAUSE_S)
        seconds, latencies, span = await group.rebalance(lambda: cause(group))
        row = f"{group.title}: {what}"
        return [
            Figure(row, "s until stable", seconds, _AS_SOON, span.noise),
            Figure(row, "CPU s", span.broker_cpu_s, None, span.noise),
            *_latencies(row, latencies, span, at_most(1)),
        ]

    return phase


async def _nothing_happens(group: Group) -> list[Figure]:
    await group.members.go_apart()
    latencies, span = await group.idle()
    return list(_latencies(f"{group.title}: nothing happens", latencies, span, None))


async def _idle_heartbeats(group: Group) -> list[Figure]:
    with group.measured() as span:
        rate = await group.members.send_idle_heartbeats(_IDLE_S, _CONNECTIONS, _IN_FLIGHT)
    row = f"{group.title}: idle heartbeats"
    return [
        Figure(row, "heartbeats/s", rate, at_least(0.6), span.noise),
        Figure(row, "CPU µs each", span.broker_cpu_s / (rate * span.wall_s) * 1e6, None, span.noise),
    ]


def _join(count: int) -> Callable[[Group], Awaitable[None]]:
    return lambda group: group.join_many(count)


_THOUSAND: list[Phase] = [
    _rebalance("all join", _join(1000)),
    _nothing_happens,
    _idle_heartbeats,
    _rebalance("one leaves", Group.leave),
    _rebalance("one joins", _join(1)),
    _rebalance("100 join", _join(100)),
]
_FIFTY: list[Phase] = [
    _rebalance("all join", _join(50)),
    _nothing_happens,
    *[_rebalance("the 51st joins", _join(1)), _rebalance("one leaves", Group.leave)] * 3,
    _rebalance("5 restart, one after the other", lambda group: group.restart(5)),
]


@dataclass(frozen=True)
class Row:
    """Phases on one group of each broker."""

    title: str
    shape: _Shape
    phases: Sequence[Phase]
    settings: Mapping[str, str] = field(default_factory=dict)


ROWS = [
    Row("1,000 members, 100 topics of 100", _Shape(100, 100, 100), _THOUSAND),
    Row("1,000 members, 10 topics of 1,000", _Shape(10, 1000, 10), _THOUSAND),
    Row("1,000 members, each reads 900 of 1,000 topics of 10", _Shape(1000, 10, 900), _THOUSAND),
    Row("50 members, a heartbeat every 5 s", _Shape(10, 50, 10), _FIFTY),
    Row("50 members, a heartbeat every 1 s", _Shape(10, 50, 10), _FIFTY, _SHORT_INTERVAL),
]


# A run


async def _take_turns(row: Row, brokers: Sequence[RunningBroker], turns: int, add: Callable[..., None]) -> None:
    """Phase by phase on one broker after the other: what else the machine does changes little meanwhile."""
    async with AsyncExitStack() as stack:
        groups = [await stack.enter_async_context(_group(broker, row)) for broker in brokers]
        for turn in range(turns):
            for number, phase in enumerate(row.phases):
                for group in groups:
                    add(group.broker.name, turn * len(row.phases) + number, await phase(group))
            for group in groups:
                await group.empty()


def _measure(row: Row, kinds: Sequence[Kind], turns: int, folder: Path, add: Callable[..., None]) -> None:
    with ExitStack() as stack:
        brokers = [
            stack.enter_context(RunningBroker(WithSettings(kind, row.settings), folder / str(number)))
            for number, kind in enumerate(kinds)
        ]
        for broker in brokers:
            _prepare(broker, row.shape)
        trio.run(_take_turns, row, brokers, turns, add)
        for broker in brokers:
            broker.kill()  # a clean stop with so many partitions takes minutes


async def _watch_steps(row: Row, broker: RunningBroker, add: Callable[..., None]) -> None:
    async with _group(broker, row) as group:
        for number, phase in enumerate(row.phases):
            file = broker.folder / "steps.json"
            file.unlink(missing_ok=True)
            broker.signal(signal.SIGUSR1)
            name = (await phase(group))[0].row
            broker.signal(signal.SIGUSR2)
            while not file.exists():
                await trio.sleep(0.01)
            found = json.loads(file.read_text())
            steps = [Figure(name, "longest step, CPU ms", found["steps"][0][0])]
            add(broker.name, number, [*steps, Figure(name, "longest collection, CPU ms", found["collection_ms"])])


def _measure_steps(row: Row, folder: Path, add: Callable[..., None]) -> None:
    with RunningBroker(WithSettings(Ottla(), row.settings, is_watched=True), folder / "watched") as broker:
        _prepare(broker, row.shape)
        trio.run(_watch_steps, row, broker, add)
        broker.kill()


def main(
    rows: Annotated[str, typer.Option(help="Regular expression: only rows whose titles match.")] = "",
    turns: Annotated[int, typer.Option(min=1, help="How often each phase is run on each broker.")] = 3,
    only_ottla: Annotated[
        bool, typer.Option("--only-ottla", help="Without Apache Kafka, and so without ratios.")
    ] = False,
    steps: Annotated[bool, typer.Option("--steps", help="Only Ottla, and the longest steps of its loop.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Folder for the data; a temporary one by default.")] = None,
) -> None:
    """Measure consumer groups of Ottla against those of Apache Kafka 4.3.1."""
    kinds: list[Kind] = [Ottla()] if only_ottla or steps else [Ottla(), ApacheKafka()]
    results = Results(kinds[0].name, kinds[1].name if len(kinds) > 1 else None)
    loads = []

    def add(name: str, pair: int, figures: Sequence[Figure]) -> None:
        loads.append(os.getloadavg()[0])
        shown = ", ".join(f"{figure.value:,.4g} {figure.unit}" for figure in results.add(name, pair, figures))
        print(f"{figures[0].row}, {name}: {shown}", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="ottla-bench-", dir=folder) as temporary:
        for row in ROWS:
            if re.search(rows, row.title):
                if steps:
                    _measure_steps(row, Path(temporary), add)
                else:
                    _measure(row, kinds, turns, Path(temporary), add)
    print(*markdown_table(results.header(), results.table()), sep="\n")
    print(f"\non {os.cpu_count()} cores, load average {min(loads):.1f} to {max(loads):.1f}; {turns} turns.")
    print(f"Ottla's Python is {speed.described(sys.executable)}.")


if __name__ == "__main__":
    typer.run(main)
