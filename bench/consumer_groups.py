"""Long benchmarks of consumer groups (KIP-848): 1,000 members with 10,000 partitions, and rebalances of 50 members.

They run when ``--rows`` names them: ``--rows group``. Each starts a broker of its own; the members and an innocent producer are
the same for both kinds (``group_members``, ``innocent_producer``). A rebalance takes from its cause until the broker calls the
group stable and its members have all partitions.
"""

from __future__ import annotations

import functools
import json
import random
import signal
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio
from confluent_kafka.admin import NewTopic

from .brokers import Kind, Ottla, RunningBroker
from .group_members import Members, all_joined, open_members
from .innocent_producer import InnocentProducer
from .many_and_large import admin_of, wait_for_leaders
from .rows import Figure, Floor, Lifecycle, at_least, at_most
from .usage import Span

_CONNECTIONS = 40
_IN_FLIGHT = 4
_INNOCENT = "innocent"
_PARTITIONS_A_REQUEST = 2000
_LIMIT_S = 600
_WARM_UP_MEMBERS, _WARM_UP_PARTITIONS, _WARM_UP_S = 200, 200, 6.0
_PAUSE_S = 2.0
"""Between two causes of rebalances: longer than a broker waits with the next assignment."""
_IDLE_S = 10.0
_MEMBERS = 1000
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

    name: str
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


class _Group:
    """A group on a broker, and an innocent producer beside it."""

    def __init__(
        self, broker: RunningBroker, members: Members, producer: InnocentProducer, shape: _Shape, phase: str
    ) -> None:
        self.members, self._phase = members, phase
        self._broker, self._producer, self._shape = broker, producer, shape
        self._count = 0

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

    async def rebalance(self, cause: Callable[[], Awaitable[None]]) -> tuple[float, list[float], Span]:
        """Seconds until all have their partitions, the innocent producer's latencies meanwhile, and what it has cost."""
        self._producer.take()
        with self._broker.measured(self._phase, [self._producer.pid]) as span:
            began = time.monotonic()
            await cause()
            await all_joined(self.members.present)
            await self.members.settled(self._shape.partitions)
            seconds = time.monotonic() - began
        return seconds, self._producer.take(), span

    async def idle(self) -> tuple[list[float], Span]:
        """The innocent producer's latencies beside a group in which nothing happens."""
        self._producer.take()
        with self._broker.measured(self._phase, [self._producer.pid]) as span:
            await trio.sleep(_IDLE_S / 2)
        return self._producer.take(), span


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
async def _group(broker: RunningBroker, shape: _Shape, phase: str) -> AsyncIterator[_Group]:
    """An empty group; the broker has served another one, and the producer, for some seconds."""
    with InnocentProducer(broker.bootstrap, _INNOCENT) as producer:
        await _warm_up(broker)
        async with open_members("bench", broker.port, _CONNECTIONS) as members:
            yield _Group(broker, members, producer, shape, phase)


async def _warm_up(broker: RunningBroker) -> None:
    async with open_members("warm-up", broker.port, _CONNECTIONS) as members:
        for _ in range(_WARM_UP_MEMBERS):
            members.join(["warm-up"])
        await all_joined(members.present)
        await members.settled(_WARM_UP_PARTITIONS)
        await members.send_idle_heartbeats(_WARM_UP_S, _CONNECTIONS, _IN_FLIGHT)
        for member in list(members.present):
            members.leave(member)
        while await members.state() != "Empty":
            await trio.sleep(0.1)


def _prepared(broker: RunningBroker, shape: _Shape) -> None:
    broker.create_topic("warm-up", _WARM_UP_PARTITIONS)
    broker.create_topic(_INNOCENT, 1)
    _create_topics(broker, shape)


# 1,000 members


def _latencies(row: str, latencies: Sequence[float], span: Span, p99_floor: Floor | None) -> Iterator[Figure]:
    percentiles = statistics.quantiles(latencies, n=100, method="inclusive")
    yield Figure(row, "producer p50 ms", percentiles[49], None, span.noise)
    yield Figure(row, "producer p99 ms", percentiles[98], p99_floor, span.noise)
    yield Figure(row, "producer max ms", max(latencies), None, span.noise)


def _rebalance_figures(row: str, result: tuple[float, list[float], Span]) -> Iterator[Figure]:
    seconds, latencies, span = result
    yield Figure(row, "s until stable", seconds, None, span.noise)
    yield Figure(row, "CPU s", span.broker_cpu_s, None, span.noise)
    yield from _latencies(row, latencies, span, at_most(1))


async def _measure_thousand(broker: RunningBroker, shape: _Shape) -> list[Figure]:
    title = f"{_MEMBERS:,} members, {shape.name}"
    async with _group(broker, shape, title) as group:
        found = [*_rebalance_figures(f"{title}: all join", await group.rebalance(lambda: group.join_many(_MEMBERS)))]
        await group.members.go_apart()
        found += _latencies(f"{title}: nothing happens", *await group.idle(), None)
        with broker.measured(title) as span:
            rate = await group.members.send_idle_heartbeats(_IDLE_S, _CONNECTIONS, _IN_FLIGHT)
        row = f"{title}: idle heartbeats"
        found.append(Figure(row, "heartbeats/s", rate, at_least(0.6), span.noise))
        found.append(Figure(row, "CPU µs each", span.broker_cpu_s / (rate * span.wall_s) * 1e6, None, span.noise))
        causes: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("one leaves", group.leave),
            ("one joins", functools.partial(group.join_many, 1)),
            ("100 join", functools.partial(group.join_many, 100)),
        ]
        for what, cause in causes:
            await trio.sleep(_PAUSE_S)
            found += _rebalance_figures(f"{title}: {what}", await group.rebalance(cause))
    return found


def _thousand(shape: _Shape, kind: Kind, folder: Path) -> Iterator[Figure]:
    with RunningBroker(kind, folder) as broker:
        _prepared(broker, shape)
        yield from trio.run(_measure_thousand, broker, shape)
        broker.kill()  # a clean stop with so many partitions takes minutes


# Steps of Ottla's loop


@dataclass
class _StepsOfPhases:
    """The longest steps of a watched broker, by phase."""

    broker: RunningBroker
    figures: list[Figure] = field(default_factory=list)

    async def of(self, row: str, phase: Awaitable[object]) -> None:
        """Await a phase, and add its steps."""
        file = self.broker.folder / "steps.json"
        file.unlink(missing_ok=True)
        self.broker.signal(signal.SIGUSR1)
        await phase
        self.broker.signal(signal.SIGUSR2)
        while not file.exists():
            await trio.sleep(0.01)
        found = json.loads(file.read_text())
        cpu_ms = found["steps"][0][0]
        print(f"{row}: {found}", file=sys.stderr)
        self.figures.append(Figure(f"{row}, longest step", "CPU ms", cpu_ms))
        self.figures.append(Figure(f"{row}, longest collection of garbage", "CPU ms", found["collection_ms"]))


async def _measure_steps(broker: RunningBroker, shape: _Shape) -> list[Figure]:
    title = f"{_MEMBERS:,} members, {shape.name}"
    async with _group(broker, shape, title) as group:
        steps = _StepsOfPhases(broker)
        await steps.of(f"{title}: all join", group.rebalance(lambda: group.join_many(_MEMBERS)))
        await group.members.go_apart()
        await steps.of(f"{title}: one leaves", group.rebalance(group.leave))
        await trio.sleep(_PAUSE_S)
        await steps.of(f"{title}: one joins", group.rebalance(lambda: group.join_many(1)))
        await trio.sleep(_PAUSE_S)
        await steps.of(f"{title}: 100 join", group.rebalance(lambda: group.join_many(100)))
    return steps.figures


def _steps(shape: _Shape, kind: Kind, folder: Path) -> Iterator[Figure]:
    """Of Ottla alone."""
    if not isinstance(kind, Ottla):
        return
    with RunningBroker(WithSettings(kind, {}, is_watched=True), folder) as broker:
        _prepared(broker, shape)
        yield from trio.run(_measure_steps, broker, shape)
        broker.kill()


# 50 members

_FEW = 50
_AS_SOON = at_most(1.05)
"""A rebalance lasts as long as the slowest member waits for its next heartbeat, which comes at a random time."""
_FEW_SHAPE = _Shape("10 topics of 50 partitions", 10, 50, 10)


async def _measure_fifty(broker: RunningBroker, title: str) -> list[Figure]:
    found = []
    async with _group(broker, _FEW_SHAPE, title) as group:
        await group.rebalance(lambda: group.join_many(_FEW))
        await group.members.go_apart()
        causes: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            ("the 51st joins", functools.partial(group.join_many, 1)),
            ("one leaves", group.leave),
            ("5 restart, one after the other", functools.partial(group.restart, 5)),
        ]
        for what, cause in causes:
            times = []
            for number in range(3):
                # Members send heartbeats all the time: the cause comes at no particular moment.
                await trio.sleep(_PAUSE_S + random.Random(number).random())
                seconds, _, span = await group.rebalance(cause)
                times.append(seconds)
            found.append(Figure(f"{title}: {what}", "s", statistics.median(times), _AS_SOON, span.noise))
    return found


def _fifty(settings: Mapping[str, str], kind: Kind, folder: Path) -> Iterator[Figure]:
    interval_s = int(settings.get("group.consumer.heartbeat.interval.ms", "5000")) // 1000
    with RunningBroker(WithSettings(kind, settings), folder) as broker:
        _prepared(broker, _FEW_SHAPE)
        yield from trio.run(_measure_fifty, broker, f"{_FEW} members, a heartbeat every {interval_s} s")
        broker.kill()


_SHAPES = [
    _Shape("100 topics of 100", 100, 100, 100),
    _Shape("10 topics of 1,000", 10, 1000, 10),
    _Shape("900 of 1,000 topics of 10", 1000, 10, 900),
]

CONSUMER_GROUPS = [
    *(
        Lifecycle(f"group of 1,000, {each.name}", functools.partial(_thousand, each), on_demand=True)
        for each in _SHAPES
    ),
    *(Lifecycle(f"group steps, {each.name}", functools.partial(_steps, each), on_demand=True) for each in _SHAPES),
    Lifecycle("group of 50, 5 s", functools.partial(_fifty, {}), on_demand=True),
    Lifecycle("group of 50, 1 s", functools.partial(_fifty, _SHORT_INTERVAL), on_demand=True),
]
