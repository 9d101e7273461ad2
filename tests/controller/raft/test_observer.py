"""An observer's rules one by one: the answers are made by hand, and the disk can lose what was not synced."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from ottla.base.errors import KafkaError
from ottla.base.seams import InlineWorkers, SimulatedClock
from ottla.controller.raft.metadata_log import TOPIC, TOPIC_ID, MetadataLog
from ottla.controller.raft.observer import NO_LEADER, Observer, OutboundRequest
from ottla.controller.raft.settings import MetadataLogSettings
from ottla.controller.raft.voters import ControllerAddress
from ottla.log.log_folder import LogFolder
from ottla.log.memory_disk import MemoryDisk
from ottla.log.metadata_snapshots import SnapshotHead, SnapshotId, encode_snapshot
from ottla.wire.control_records import build_quorum_batch
from ottla.wire.messages import control_records, fetch, fetch_snapshot
from ottla.wire.messages.control_records import KRaftVersionRecord, VotersRecord
from ottla.wire.messages.setting_records import ProducerIdsRecord
from ottla.wire.metadata_records import encode_metadata_record
from ottla.wire.records import RecordsBuilder
from ottla.wire.schema import Message

FOLDER = "/data"
ADDRESSES = {1: ControllerAddress("one", 9093), 2: ControllerAddress("two", 9093)}


def records(base_offset: int, epoch: int, *producer_ids: int) -> bytes:
    """A batch with a record for each."""
    builder = RecordsBuilder(base_offset=base_offset, leader_epoch=epoch)
    for each in producer_ids:
        builder.append(None, encode_metadata_record(ProducerIdsRecord(next_producer_id=each), 0), 1_000)
    return bytes(builder.build())


def controls(base_offset: int, epoch: int, *messages: Message) -> bytes:
    batch = build_quorum_batch(
        [(each, 0) for each in messages], base_offset=base_offset, leader_epoch=epoch, timestamp=1_000
    )
    return bytes(batch)


def snapshot(*producer_ids: int) -> bytes:
    parts = [(ProducerIdsRecord(next_producer_id=each), 0) for each in producer_ids]
    return b"".join(encode_snapshot(SnapshotHead(0, 1, VotersRecord(version=0, voters=[])), parts, epoch=1, now_ms=1))


class Node:
    """An observer on a disk; ``start`` again is a restart."""

    def __init__(self) -> None:
        self.disk = MemoryDisk()
        self.disk.make_dir(FOLDER)
        self.observer: Observer

    async def start(self) -> Node:
        log = MetadataLog(LogFolder(self.disk, FOLDER, SimulatedClock(), InlineWorkers()), MetadataLogSettings())
        await log.open()
        self.observer = Observer(7, b"d" * 16, "cluster", log, [], ADDRESSES, "CONTROLLER", random.Random(1))
        return self

    @property
    def log(self) -> MetadataLog:
        return self.observer.log

    def take(self, asked: OutboundRequest, *, leader: int = 1, epoch: int = 1, **fields: object) -> bool:
        """Give the observer an answer to a Fetch."""
        known = fetch.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        given = {"high_watermark": 0, "records": b"", **fields}
        partition = fetch.PartitionData(partition_index=0, current_leader=known, **given)  # type: ignore[arg-type]
        topic = fetch.FetchableTopicResponse(topic=TOPIC, topic_id=TOPIC_ID, partitions=[partition])
        return self.observer.take_fetch(asked, fetch.FetchResponse(responses=[topic]))

    def fetched(self, data: bytes, high_watermark: int, *, epoch: int = 1) -> None:
        self.take(self.observer.next_request(), epoch=epoch, records=data, high_watermark=high_watermark)

    def elected(self, leader: int, epoch: int) -> None:
        self.take(self.observer.next_request(), leader=leader, epoch=epoch)

    def diverging(self, end_offset: int, epoch: int) -> None:
        """The leader's log has this epoch up to ``end_offset``."""
        known = self.observer.leadership
        found = fetch.EpochEndOffset(epoch=epoch, end_offset=end_offset)
        self.take(self.observer.next_request(), leader=known.leader_id, epoch=known.epoch, diverging_epoch=found)

    def sent_to_snapshot(self, end_offset: int, epoch: int = 1) -> None:
        wanted = fetch.SnapshotId(end_offset=end_offset, epoch=epoch)
        self.take(self.observer.next_request(), snapshot_id=wanted)

    def take_piece(
        self, asked: OutboundRequest, data: bytes, position: int, size: int, *, leader: int = 1, epoch: int = 1
    ) -> bool:
        """Give it a piece of a snapshot; whether that was the last one."""
        known = fetch_snapshot.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch)
        partition = fetch_snapshot.ResponsePartitionSnapshot(
            index=0, current_leader=known, size=size, position=position, unaligned_records=data
        )
        topic = fetch_snapshot.ResponseTopicSnapshot(name=TOPIC, partitions=[partition])
        found = self.observer.take_snapshot(asked, fetch_snapshot.FetchSnapshotResponse(topics=[topic]))
        if found is not None:
            self.observer.start_after(found.id, found.finish().head)
        return found is not None

    def committed(self) -> Sequence[Message]:
        return [record for batch in self.log.committed(self.log.start_offset) for record in batch.records]


async def following() -> Node:
    """One that has two records of epoch 1, of which the first is committed."""
    node = await Node().start()
    node.elected(1, 1)
    node.fetched(records(0, 1, 10) + records(1, 1, 11), 1)
    assert (node.log.end_offset, node.log.high_watermark) == (2, 1)
    return node


async def test_an_answer_to_what_is_no_question_any_more_is_dropped() -> None:
    node = await following()
    earlier = node.observer.next_request()
    node.fetched(records(2, 1, 12), 1)
    node.take(earlier, records=records(2, 1, 99), high_watermark=3)
    assert (node.log.end_offset, node.log.high_watermark) == (3, 1)
    of_the_epoch_before = node.observer.next_request()
    node.elected(2, 2)
    node.take(of_the_epoch_before, leader=1, epoch=1, records=records(3, 1, 99), high_watermark=4)
    assert node.observer.leadership == (2, 2)
    assert (node.log.end_offset, node.log.high_watermark) == (3, 1)


async def test_the_high_watermark_goes_forward_only() -> None:
    node = await following()
    node.fetched(b"", 2)
    for told in (1, -1):
        node.fetched(b"", told)
        assert (node.log.high_watermark, node.observer.high_watermark) == (2, 2)
    node = await Node().start()
    node.elected(1, 1)
    node.fetched(b"", -1)
    assert node.observer.high_watermark is None, "a leader that has none has told none"


async def test_where_logs_part_the_rest_is_cut_off_but_nothing_that_is_committed() -> None:
    node = await following()
    node.elected(2, 2)
    node.diverging(2, 1)
    assert node.log.end_offset == 2
    node.diverging(1, 1)
    assert (node.log.end_offset, node.log.high_watermark) == (1, 1)
    with pytest.raises(KafkaError, match="is committed"):
        node.diverging(0, 1)
    assert node.log.end_offset == 1
    assert node.committed() == [ProducerIdsRecord(next_producer_id=10)]


async def test_an_epoch_that_only_the_leader_knows_cuts_back_to_the_end_of_the_one_before() -> None:
    node = await following()
    node.elected(2, 3)
    node.fetched(records(2, 3, 12), 1, epoch=3)
    node.elected(1, 4)
    node.diverging(9, 2)  # the leader's epoch 2 ends at 9; here epoch 1 ends at 2
    assert node.log.end_offset == 2


async def test_voters_that_are_cut_off_are_not_the_voters() -> None:
    node = await following()
    assert node.log.quorum.kraft_version == 0
    node.fetched(controls(2, 1, KRaftVersionRecord(k_raft_version=1), VotersRecord(version=0, voters=[])), 1)
    assert (node.log.quorum.kraft_version, node.log.quorum.voters is None) == (1, False)
    node.elected(2, 2)
    node.diverging(2, 1)
    assert (node.log.quorum.kraft_version, node.log.quorum.voters) == (0, None)


async def test_a_voter_is_reached_at_the_listener_of_the_property_whichever_it_names_first() -> None:
    node = await following()
    endpoints = [
        control_records.Endpoint(name="OTHER", host="elsewhere", port=1),
        control_records.Endpoint(name="CONTROLLER", host="three", port=9093),
    ]
    voters = [
        control_records.Voter(voter_id=3, endpoints=endpoints),
        control_records.Voter(voter_id=2, endpoints=endpoints[:1]),
    ]
    node.fetched(controls(2, 1, KRaftVersionRecord(k_raft_version=1), VotersRecord(version=0, voters=voters)), 1)
    node.elected(3, 2)
    assert node.observer.next_request().address == node.observer.leader == ControllerAddress("three", 9093)
    assert node.observer.address_of(2) == ADDRESSES[2], (
        "what was told before counts where the voter has no such listener"
    )


async def test_who_gave_no_answer_is_asked_again_when_nobody_else_is_left() -> None:
    node = await following()
    node.elected(NO_LEADER, 2)

    def asked() -> set[ControllerAddress]:
        return {node.observer.next_request().address for _ in range(30)}

    def fails(number: int) -> None:
        node.observer.take_failure(node.observer.next_request()._replace(address=ADDRESSES[number]))

    assert asked() == {*ADDRESSES.values()}
    fails(1)
    assert asked() == {ADDRESSES[2]}
    fails(2)
    assert asked() == {*ADDRESSES.values()}
    fails(1)
    node.take(node.observer.next_request()._replace(address=ADDRESSES[1]), leader=NO_LEADER, epoch=2)
    assert asked() == {*ADDRESSES.values()}


async def test_a_leader_that_gave_no_answer_is_not_asked_when_it_leads_no_more() -> None:
    """Even if all others gave none either, long ago."""
    node = await following()
    node.observer.take_failure(node.observer.next_request()._replace(address=ADDRESSES[2]))
    node.observer.take_failure(node.observer.next_request())
    node.elected(NO_LEADER, 2)
    assert {node.observer.next_request().address for _ in range(30)} == {ADDRESSES[2]}


async def test_pieces_of_a_snapshot_count_only_where_they_are_due() -> None:
    node, data = await following(), snapshot(20, 21)
    node.sent_to_snapshot(5)
    asked = node.observer.next_request()
    assert isinstance(asked.request, fetch_snapshot.FetchSnapshotRequest)
    assert not node.take_piece(asked, data[:50], 0, len(data))
    assert not node.take_piece(asked, data[40:], 40, len(data))  # not where the first piece ended: it begins anew
    assert isinstance(node.observer.next_request().request, fetch.FetchRequest)
    node.sent_to_snapshot(5)
    asked = node.observer.next_request()
    assert not node.take_piece(asked, data[:50], 0, len(data))
    assert not node.take_piece(
        asked, data[50:], 50, len(data), leader=2, epoch=2
    )  # another leader's may be another one
    assert isinstance(node.observer.next_request().request, fetch.FetchRequest)
    assert (node.log.start_offset, node.log.end_offset) == (0, 2)


@pytest.mark.parametrize("seed", range(8))
async def test_a_snapshot_outlives_a_loss_of_power_and_the_log_begins_at_its_end(seed: int) -> None:
    node, data = await following(), snapshot(20, 21)
    node.sent_to_snapshot(5)
    assert node.take_piece(node.observer.next_request(), data, 0, len(data))
    assert (node.log.start_offset, node.log.end_offset, node.log.high_watermark) == (5, 5, 5)
    node.disk.crash(random.Random(seed))
    await node.start()
    assert node.log.newest_snapshot == SnapshotId(5, 1)
    assert (node.log.start_offset, node.log.end_offset) == (5, 5)


async def test_a_log_that_lost_its_end_goes_on_at_its_newest_snapshot() -> None:
    node = await following()
    node.disk.make_dir(node.log.directory)
    file = node.disk.open(f"{node.log.directory}/{SnapshotId(4, 1).file_name}", create=True)
    file.write(snapshot(20), 0)
    file.close()
    node.observer.close()
    await node.start()
    assert (node.log.end_offset, node.log.high_watermark, node.log.last_epoch) == (4, 4, 1)
