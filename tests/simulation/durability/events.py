"""What the columns of docs/durability.md's table "what is lost when" have happen, and how many records it costs.

An event is a script for any cluster: it does not know who keeps the metadata. The producer counts what it takes for written, and
what is not there in the end is lost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

import trio

from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import build_batch

from ..cluster.stage import PARTITION, Stage, Writer, apart
from ..network import Lost
from ..readers import LATEST

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

    @property
    def topic_configs(self) -> dict[str, str]:
        return {
            "min.insync.replicas": str(self.min_isr),
            "unclean.leader.election.enable": str(self.unclean).lower(),
        }


class Trial:
    """What an event does things with: a stage, and a producer's notion of what is written."""

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
                    self._unanswered.add(await self._send(writer))

    async def write_everywhere(self, count: int = 4, writer: Writer | None = None) -> None:
        """Write records, and leave the followers the time to fetch them."""
        await self.write(count, writer)
        await trio.sleep(0.5)

    async def writer(self) -> Writer:
        self._writers += 1
        writer = await self.stage.writer(f"w{self._writers}")
        if not self._setting.acks:  # what it cannot send for want of a leader it does not take for written
            wanted = ListOffsetsPartition(partition_index=PARTITION[1], timestamp=LATEST)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=PARTITION[0], partitions=[wanted])])
            await writer.insist(request, 5, lambda answer: [answer.topics[0].partitions[0].error_code])
        return writer

    async def _send(self, writer: Writer) -> bytes:
        """Send a record with acks=0, and return its name: it is written, as far as its producer knows."""
        record = writer.history.record(writer.name, PARTITION, writer.world.clock.now_ms())
        data = PartitionProduceData(index=PARTITION[1], records=bytes(build_batch([record.as_record()])))
        request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name=PARTITION[0], partition_data=[data])])
        with trio.move_on_after(0.1):
            try:
                await writer.client.call(request, writer.produce_version)
            except Lost:
                pass
        return record.name

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

    async def have_leader_alone(self) -> None:
        """The followers fall out of sync one after the other: first the one that is first to be elected without having it all."""
        await self.have_in_sync(1, 3)
        await self.have_in_sync(1)

    async def have_in_sync(self, *brokers: int) -> None:
        """Those in sync get some records, and then these reach the others no more, until the others are out of sync."""
        writer = await self.writer()
        await self.write_everywhere(writer=writer)
        self.stage.ways(cut=apart(brokers, others_than(brokers)))
        await self._send(writer)  # those who have everything are in sync however long they are silent
        await trio.sleep(1)
        await self.stage.until(lambda: self.stage.isr == set(brokers))


def others_than(brokers: Collection[int]) -> list[int]:
    return [replica for replica in REPLICAS if replica not in brokers]


Event = Callable[[Trial], Awaitable[None]]


async def another_leads(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.write_everywhere(2, writer)
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
    await trial.write_everywhere()
    await trial.leave(1, power_lost=True)
    await trial.stage.until(lambda: trial.stage.leader == 2)
    await trial.come_back(1)


async def all_die(trial: Trial) -> None:
    await trial.write_everywhere()
    await trial.leave(*REPLICAS)
    await trial.come_back(*REPLICAS)


async def the_only_one_in_sync_dies(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.have_leader_alone()
    await trial.write(2, writer)
    await trial.leave(1)
    await trio.sleep(1)
    await trial.come_back(1)


async def all_in_sync_die(trial: Trial) -> None:
    await trial.have_in_sync(1, 2)
    await trial.write_everywhere(2)
    await trial.leave(1, 2)
    await trio.sleep(1)
    await trial.come_back(1, 2)


async def the_only_one_in_sync_loses_power(trial: Trial) -> None:
    writer = await trial.writer()
    await trial.have_leader_alone()
    await trial.write(2, writer)
    await trial.leave(1, power_lost=True)
    await trial.come_back(1)


async def all_in_sync_lose_power(trial: Trial) -> None:
    await trial.have_in_sync(1, 2)
    await trial.write_everywhere(2)
    await trial.leave(1, 2, power_lost=True)
    await trial.come_back(1, 2)


async def all_lose_power(trial: Trial) -> None:
    await trial.write(4)
    await trial.leave(*REPLICAS, power_lost=True)
    await trial.come_back(*REPLICAS)


EVENTS: list[Event] = [
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

AS_KILLED = {
    the_only_one_in_sync_loses_power: the_only_one_in_sync_dies,
    all_in_sync_lose_power: all_in_sync_die,
    all_lose_power: all_die,
}
"""Losses of power, and what they are like where everything is flushed before it is acknowledged."""
