"""The table of docs/durability.md, "what is lost when", cell by cell.

A line of the table is how a producer and its topic are set, a column is what happens to the brokers of the topic's three
replicas. Where a cell says that records may be lost, some seed loses one that its producer took for written; where it does not,
no seed does. In either case what is left is sound, and the same on all replicas (``Stage.judge``).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import trio

from ottla.tests.simulation.cluster.stage import PARTITION, Stage, Writer, apart
from ottla.tests.simulation.cluster.store_stage import perform
from ottla.tests.simulation.network import Lost
from ottla.tests.simulation.readers import LATEST
from ottla.tests.simulation.run import Mode
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import build_batch

pytestmark = pytest.mark.computes

SEEDS_TO_LOSE = range(1, 9)
SEEDS_TO_KEEP = range(1, 4)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "durability.md"
CONTROLLER = 4
REPLICAS = (1, 2, 3)


class Setting(NamedTuple):
    """A line of the table."""

    acks: int
    min_isr: int
    unclean: bool

    @property
    def name(self) -> str:
        """As the page has it."""
        acks = "all" if self.acks == -1 else str(self.acks)
        least = str(self.min_isr) if self.acks == -1 else "any"
        return f"{acks}, {least}, {'yes' if self.unclean else 'no'}"


class Trial:
    """What a column's script does things with: a stage, and a producer's notion of what is written."""

    def __init__(self, stage: Stage, setting: Setting) -> None:
        self.stage = stage
        self._setting = setting
        self._unanswered: set[bytes] = set()
        self._writers = 0

    async def write(self, count: int = 2, writer: Writer | None = None) -> None:
        """Write records one by one; give up where that takes long, as with too few replicas in sync."""
        writer = writer or await self.writer()
        with trio.move_on_after(0.8):
            for _ in range(count):
                if self._setting.acks:
                    await writer.write()
                else:
                    await self._send(writer)

    async def writer(self) -> Writer:
        self._writers += 1
        writer = await self.stage.writer(f"w{self._writers}")
        if not self._setting.acks:  # what it cannot send for want of a leader it does not take for written
            wanted = ListOffsetsPartition(partition_index=PARTITION[1], timestamp=LATEST)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=PARTITION[0], partitions=[wanted])])
            await writer.insist(request, 5, lambda answer: [answer.topics[0].partitions[0].error_code])
        return writer

    async def _send(self, writer: Writer) -> None:
        """With acks=0 there is no answer: what was sent is written, as far as its producer knows."""
        record = writer.history.record(writer.name, PARTITION, writer.world.clock.now_ms())
        self._unanswered.add(record.name)
        data = PartitionProduceData(index=PARTITION[1], records=bytes(build_batch([record.as_record()])))
        request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name=PARTITION[0], partition_data=[data])])
        with trio.move_on_after(0.1):
            try:
                await writer.client.call(request, writer.produce_version)
            except Lost:
                pass

    async def lost(self) -> int:
        """How many records that were taken for written are not there."""
        stored = await self.stage.readers[0].read_all(PARTITION)
        there = {one.sent.name for one in stored if one.sent is not None}
        written = {sent.name for sent in self.stage.history.sent.values() if sent.offset is not None}
        return len((written | self._unanswered) - there)

    async def leave(self, *brokers: int, power_lost: bool = False) -> None:
        """These die, and are missed."""
        for broker_id in brokers:
            self.stage.kill(broker_id, power_lost=power_lost)
        for broker_id in brokers:
            await self.stage.forget(broker_id)

    async def come_back(self, *brokers: int) -> None:
        for broker_id in brokers:
            await self.stage.start(broker_id)

    async def have_one_in_sync(self) -> None:
        """The leader reaches no follower for so long that they are out of sync."""
        other = await self.writer()
        self.stage.ways(cut=apart([1], [2, 3]))
        await self.write(1, other)  # those who have everything are in sync however long they are silent
        await trio.sleep(1)
        await self.stage.until(lambda: self.stage.isr == {1})

    async def have_two_in_sync(self) -> None:
        """The third was away, is back, and does not reach those two."""
        await self.leave(3)
        await self.stage.until(lambda: self.stage.isr == {1, 2})

    async def separate_third(self) -> None:
        self.stage.ways(cut=apart([3], [1, 2]))
        await self.stage.start(3)
        await trio.sleep(0.5)


# --- what happens -----------------------------------------------------------------------------------------------------


async def another_leads(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.write(2, writer)
    await trio.sleep(0.5)
    await trial.stage.forget(1)
    await trial.stage.until(lambda: trial.stage.leader == 2)
    await trio.sleep(0.2)
    await trial.write(2, writer)


async def the_leader_dies_ahead(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.write(2, writer)
    trial.stage.ways(cut=apart([1], [2, 3]))
    await trial.write(2, writer)
    await trial.leave(1)
    trial.stage.ways()
    await trial.stage.until(lambda: trial.stage.leader == 2)
    await trial.come_back(1)


async def one_loses_power(trial: Trial) -> None:
    await trial.write(4)
    await trio.sleep(0.5)
    await trial.leave(1, power_lost=True)
    await trial.stage.until(lambda: trial.stage.leader == 2)
    await trial.come_back(1)


async def all_die(trial: Trial) -> None:
    await trial.write(4)
    await trio.sleep(0.5)
    await trial.leave(*REPLICAS)
    await trial.come_back(*REPLICAS)


async def the_only_one_in_sync_dies(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.have_one_in_sync()
    await trial.write(2, writer)
    await trial.leave(1)
    await trio.sleep(1)
    await trial.come_back(1)


async def all_in_sync_die(trial: Trial) -> None:
    await trial.have_two_in_sync()
    await trial.write(2)
    await trial.separate_third()
    await trial.leave(1, 2)
    await trio.sleep(1)
    await trial.come_back(1, 2)


async def the_only_one_in_sync_loses_power(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.have_one_in_sync()
    await trial.write(2, writer)
    await trial.leave(1, power_lost=True)
    await trial.come_back(1)


async def all_in_sync_lose_power(trial: Trial) -> None:
    await trial.have_two_in_sync()
    await trial.write(2)
    await trial.separate_third()
    await trial.leave(1, 2, power_lost=True)
    await trial.come_back(1, 2)


async def all_lose_power(trial: Trial) -> None:
    await trial.write(4)
    await trial.leave(*REPLICAS, power_lost=True)
    await trial.come_back(*REPLICAS)


EVENTS: list[Callable[[Trial], Awaitable[None]]] = [
    another_leads,
    the_leader_dies_ahead,
    one_loses_power,
    all_die,
    the_only_one_in_sync_dies,
    all_in_sync_die,
    the_only_one_in_sync_loses_power,
    all_in_sync_lose_power,
    all_lose_power,
]
"""The columns of the table, in their order."""

SETTINGS = [
    *(Setting(0, 2, unclean) for unclean in (False, True)),
    *(Setting(1, 2, unclean) for unclean in (False, True)),
    *(Setting(-1, least, unclean) for least in (1, 2, 3) for unclean in (False, True)),
]


AS_KILLED = {
    the_only_one_in_sync_loses_power: the_only_one_in_sync_dies,
    all_in_sync_lose_power: all_in_sync_die,
    all_lose_power: all_die,
}
"""Losses of power, and what they are like where everything is flushed before it is acknowledged."""


def lost(setting: Setting, event: Callable[[Trial], Awaitable[None]], seed: int, mode: Mode = Mode.POWER) -> int:
    """How many records one seed loses."""
    found = 0

    async def script(stage: Stage) -> None:
        nonlocal found
        trial = Trial(stage, setting)
        await event(trial)
        await stage.heal()
        found = await trial.lost()

    configs = {
        "min.insync.replicas": str(setting.min_isr),
        "unclean.leader.election.enable": str(setting.unclean).lower(),
    }
    result = perform(script, controller=CONTROLLER, mode=mode, seed=seed, acks=setting.acks, topic_configs=configs)
    assert result.violations == [], "\n".join([*result.events, *result.violations])
    return found


def cells() -> dict[str, list[str]]:
    """The lines of the page's table by their settings."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if re.match(r"\| (0|1|all), (any|[123]), (no|yes) \|", line):
            name, *rest = (cell.strip() for cell in line.strip("|").split("|"))
            found[name] = rest
    return found


def test_every_line_of_the_page_has_its_proof() -> None:
    found = cells()
    assert list(found) == [setting.name for setting in SETTINGS]
    assert {len(line) for line in found.values()} == {len(EVENTS)}
    assert {cell for line in found.values() for cell in line} == {"", "lost"}


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_line(setting: Setting) -> None:
    for event, cell in zip(EVENTS, cells()[setting.name], strict=True):
        if cell == "lost":
            assert any(lost(setting, event, seed) for seed in SEEDS_TO_LOSE), f"{event.__name__} loses nothing"
        else:
            assert [seed for seed in SEEDS_TO_KEEP if lost(setting, event, seed)] == [], event.__name__


@pytest.mark.slow
@pytest.mark.parametrize("setting", [one for one in SETTINGS if one.acks == -1], ids=lambda setting: setting.name)
def test_what_is_flushed_outlives_a_loss_of_power(setting: Setting) -> None:
    line = dict(zip(EVENTS, cells()[setting.name], strict=True))
    for power_lost, killed in AS_KILLED.items():
        if line[killed] == "":
            assert [seed for seed in SEEDS_TO_KEEP if lost(setting, power_lost, seed, Mode.POWER_WITH_FLUSH)] == []
