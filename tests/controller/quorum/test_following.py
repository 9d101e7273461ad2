"""A broker follows a quorum's log: through elections, truncation, snapshots, silence and restarts."""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode
from ottla.controller.quorum.following import LoaderListener
from ottla.controller.quorum.loader import MetadataLoader
from ottla.controller.quorum.replay import ReplayError
from ottla.controller.raft.driver import RaftDriver
from ottla.controller.raft.effects import LeaderChanged
from ottla.controller.raft.election_file import ElectionState
from ottla.controller.raft.metadata_log import CommittedBatch
from ottla.controller.raft.settings import MetadataLogSettings
from ottla.controller.raft.voters import ControllerAddress
from ottla.log.checkpoints import CorruptFileError
from ottla.log.memory_disk import MemoryDisk
from ottla.metadata.delta import ClusterDelta
from ottla.metadata.types import LogPosition
from ottla.wire.messages.setting_records import FeatureLevelRecord
from ottla.wire.schema import Message

from .helpers.following_world import FEATURE, ids, running, settle
from .helpers.images import contents
from .helpers.record_walk import RecordWalk
from .helpers.scripted_quorum import HOST


async def test_what_is_committed_arrives_and_what_is_not_does_not(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        async with world.following():
            await world.sees_ids(1)
            world.quorum.append(ids(2), commits=False)
            await trio.testing.wait_all_tasks_blocked()
            assert world.image.next_producer_id == 1
            world.quorum.high_watermark = world.quorum.end_offset
            world.quorum.wake()
            await world.sees_ids(2)
        assert world.log.end_offset == world.log.high_watermark == 4


async def test_after_the_first_answers_only_the_leader_is_asked(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world, world.following():
        await world.sees_ids(1)
        world.quorum.asked.clear()
        for number in range(2, 8):
            world.quorum.append(ids(number))
            await world.sees_ids(number)
        assert set(world.quorum.asked) == {1}


async def test_a_leader_that_is_gone_is_left_alone_until_there_is_another(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world, world.following():
        await world.sees_ids(1)
        began = trio.current_time()
        world.quorum.silent.add(1)  # the others name it as the leader all the same
        await trio.sleep(2.9)
        world.quorum.elect(2)
        world.quorum.append(ids(2))
        await world.sees_ids(2)
        assert trio.current_time() - began < 3.0


async def test_a_leader_that_only_this_broker_cannot_reach_is_asked_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world, world.following():
        await world.sees_ids(1)
        world.quorum.silent.add(1)
        await trio.sleep(5.0)
        world.quorum.silent.clear()
        world.quorum.append(ids(2))
        began = trio.current_time()
        await world.sees_ids(2)
        assert trio.current_time() - began < 5.0


async def test_another_leader_is_followed_and_what_it_lacks_is_cut_off(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        async with world.following():
            await world.sees_ids(1)
            world.quorum.append(ids(2), commits=False)
            world.quorum.append(ids(3), commits=False)
            await trio.testing.wait_all_tasks_blocked()
            assert world.log.end_offset == 5
            world.quorum.elect(3, keeps=2)
            world.quorum.append(ids(4))
            await world.sees_ids(4)
            assert world.leadership == (2, 3)
        assert [delta.next_producer_id for delta in world.published if delta.next_producer_id] == [1, 4]
        assert world.log.last_epoch == 2


async def test_a_log_that_is_gone_comes_as_a_snapshot(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with running(tmp_path) as world:
        world.quorum.append(ids(2))
        world.quorum.take_snapshot([FEATURE, ids(2)])
        world.quorum.snapshot_piece = 50
        async with world.following():
            await world.sees_ids(2)
            assert len(world.published) == 1
            world.quorum.append(ids(3))
            await world.sees_ids(3)
        assert (world.log.start_offset, world.log.end_offset) == (4, 5)
        async with world.following():
            await world.sees_ids(3)
            assert len(world.published) == 1


@pytest.mark.parametrize("seed", range(6))
async def test_a_fetched_snapshot_outlives_a_loss_of_power(seed: int, autojump_clock: trio.testing.MockClock) -> None:
    disk = MemoryDisk()
    disk.make_dir("/data")
    async with running(Path("/data")) as world:
        world.disk = disk
        world.quorum.append(ids(2))
        world.quorum.take_snapshot([FEATURE, ids(2)])
        async with world.following():
            await world.sees_ids(2)
        disk.crash(random.Random(seed))
        async with world.following():
            assert world.log.newest_snapshot is not None
            await world.sees_ids(2)


async def test_a_snapshot_in_the_middle_of_the_run_publishes_only_what_is_new(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        records = list(RecordWalk(5).records(200))
        async with world.following():
            await world.sees_ids(1)
            world.quorum.is_silent = True
            for record in records:
                world.quorum.append(record)
            world.quorum.take_snapshot([*records, ids(9)])
            world.quorum.is_silent = False
            await world.sees_ids(9)
            assert contents(world.image) == contents(world.loader.image)
            assert world.image.position is not None
            assert world.image.position.offset == world.quorum.start_offset - 1


async def test_a_snapshot_that_is_replaced_while_it_is_fetched_is_begun_anew(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        world.quorum.take_snapshot([FEATURE, ids(2)])
        world.quorum.snapshot_piece = 20

        def replace(position: int) -> None:
            if position == 40 and world.quorum.start_offset == 3:
                world.quorum.append(ids(3))
                world.quorum.take_snapshot([FEATURE, ids(3)])

        world.quorum.before_piece = replace
        async with world.following():
            await world.sees_ids(3)
        assert [path.name for path in world.folder.rglob("*.checkpoint*")] == [world.log.snapshots[-1].file_name]


async def test_a_leader_that_is_silent_is_left_for_another(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world, world.following():
        await world.sees_ids(1)
        world.quorum.is_silent = True
        world.quorum.append(ids(2))
        await trio.sleep(10)
        assert world.image.next_producer_id <= 2
        world.quorum.is_silent = False
        world.quorum.elect(2)
        world.quorum.append(ids(3))
        await world.sees_ids(3)


async def test_a_restart_begins_with_what_it_has_and_publishes_once_it_knows_the_high_watermark(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        async with world.following():
            await world.sees_ids(1)
        world.quorum.append(ids(2))
        async with world.following():
            await world.sees_ids(2)
            assert [delta.next_producer_id for delta in world.published] == [2]
        world.quorum.is_silent = True
        async with world.following():
            await trio.sleep(10)
            assert world.published == []


async def test_a_restart_with_a_snapshot_of_all_there_is_publishes_it(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        world.settings = MetadataLogSettings({"record_bytes_between_snapshots": 1})
        async with world.following():
            await world.sees_ids(1)
            world.quorum.append(ids(2))
            await settle(world)
            assert world.log.snapshots[-1].end_offset == world.quorum.end_offset
        async with world.following():
            await world.sees_ids(2)


async def test_a_torn_end_is_fetched_again(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    async with running(tmp_path) as world:
        async with world.following():
            await world.sees_ids(1)
            world.quorum.append(ids(2))
            await world.sees_ids(2)
        segment = next(world.folder.rglob("*.log"))
        segment.write_bytes(segment.read_bytes()[:-5])
        async with world.following():
            await world.sees_ids(2)
            assert world.log.end_offset == 4


async def test_a_log_without_the_snapshot_that_it_begins_with_is_refused(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        world.quorum.take_snapshot([FEATURE, ids(2)])
        async with world.following():
            await world.sees_ids(2)
            world.quorum.append(ids(3))
            await world.sees_ids(3)
        next(world.folder.rglob("*.checkpoint")).unlink()
        with pytest.raises(CorruptFileError, match="begins at offset 3, and there is no snapshot"):
            async with world.following():
                pass


async def test_another_cluster_is_said_once_of_each_controller_and_asked_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as world:
        world.quorum.refusal = ErrorCode.INCONSISTENT_CLUSTER_ID
        async with world.following():
            await trio.sleep(10)
            said = [line for line in caplog.messages if "INCONSISTENT_CLUSTER_ID" in line]
            assert len(said) == len(set(said)) == len(world.quorum.ids)
            world.quorum.refusal = ErrorCode.NONE
            await world.sees_ids(1)


async def test_silence_is_said_once_of_each_controller_and_again_after_a_fetch(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as world, world.following():
        for number in (1, 2):
            await world.sees_ids(number)
            assert not caplog.messages
            world.quorum.is_silent = True
            await trio.sleep(60)
            said = [re.sub("no response to .*", "…", line) for line in set(caplog.messages)]
            assert set(said) == {f"No metadata from the controller at {HOST}:{node}: …" for node in world.quorum.ids}
            assert len(caplog.messages) == len(said) <= 6, "for each the connection and the fetch, at most"
            world.quorum.is_silent = False
            world.quorum.append(ids(number + 1))
            await world.sees_ids(number + 1)
            caplog.clear()


async def test_who_leads_and_what_is_fetched_is_said(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with running(tmp_path) as world:
        world.quorum.take_snapshot([FEATURE, ids(2)])
        async with world.following():
            await world.sees_ids(2)
        assert "Controller 1 leads the quorum in epoch 1" in caplog.messages
        assert any(
            re.match(r"Fetched the metadata snapshot \S+\.checkpoint, \d+ bytes$", line) for line in caplog.messages
        )
        caplog.clear()
        async with world.following():
            await world.sees_ids(2)
            assert not any("leads" in line for line in caplog.messages), "it has been said of this epoch"
            world.quorum.elect(3)
            world.quorum.append(ids(3))
            await world.sees_ids(3)
            assert "Controller 3 leads the quorum in epoch 2" in caplog.messages


async def test_a_controller_that_is_silent_holds_up_no_search_for_the_leader(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Each request to it would take its whole time: of a minute, it has no more than a third."""
    async with running(tmp_path) as world:
        world.quorum.leader_id = -1
        world.quorum.silent.add(2)
        async with world.following():
            await trio.sleep(60)
        assert set(world.quorum.asked) == {1, 3}
        assert len(world.quorum.asked) > 40 * 50, "every 20 ms in the other two thirds"


async def test_nothing_is_published_before_all_is_loaded_that_the_leader_has_committed(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """Though it comes in many pieces."""
    async with running(tmp_path) as world:
        for number in range(2, 200):
            world.quorum.append(ids(number))
        world.quorum.fetch_batches = 5
        async with world.following():
            await world.sees(lambda: bool(world.published))
            assert world.image.next_producer_id == 199
            assert len(world.published) == 1


async def test_static_voters_are_asked_where_there_are_no_bootstrap_servers(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        world.static_voters = {node: ControllerAddress(HOST, node) for node in world.quorum.ids}
        world.has_bootstrap_servers = False
        async with world.following():
            await world.sees_ids(1)
            world.quorum.elect(3)
            world.quorum.append(ids(2))
            await world.sees_ids(2)
        assert world.log.election == ElectionState(2, 3, voters=(1, 2, 3))


async def test_what_is_committed_is_never_taken_back(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    """A leader whose log lacks what was committed has lost it: nothing of this node's log follows it."""
    async with running(tmp_path) as world, world.following():
        await world.sees_ids(1)
        world.quorum.elect(2, keeps=1)
        world.quorum.append(ids(5))
        await trio.sleep(5)
        assert world.image.next_producer_id == 1
        assert world.log.end_offset == world.log.high_watermark == 3


async def test_a_record_that_is_unknown_stops_the_broker_loudly(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with running(tmp_path) as world:
        with pytest.RaisesGroup(ReplayError):
            async with world.following():
                await world.sees_ids(1)
                world.quorum.append(FeatureLevelRecord(name="metadata.version", feature_level=31))
                await trio.sleep(5)


class SlowListener(LoaderListener):
    """Waits for ``may_go_on`` before it takes anything of the log."""

    def __init__(self, driver: RaftDriver, loader: MetadataLoader) -> None:
        super().__init__(driver, loader)
        self.may_go_on = trio.Event()
        self.leaders: list[int] = []
        self.snapshots: list[LogPosition] = []

    def handle_leader_change(self, news: LeaderChanged) -> None:
        self.leaders.append(news.leader_id)

    async def take_snapshot(self, batches: Iterable[Sequence[Message]], position: LogPosition) -> None:
        self.snapshots.append(position)
        await super().take_snapshot(batches, position)

    async def handle_commit(self, batches: Iterator[CommittedBatch]) -> None:
        await self.may_go_on.wait()
        await super().handle_commit(batches)


async def test_each_of_two_listeners_follows_at_its_own_pace(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    """The other one finds the log at its end deleted, and a snapshot in its place."""
    images: list[ClusterDelta] = []
    other = MetadataLoader(images.append)
    slow: list[SlowListener] = []

    def made(driver: RaftDriver) -> SlowListener:
        slow.append(SlowListener(driver, other))
        return slow[0]

    async with running(tmp_path) as world:
        world.further = [made]
        world.settings = MetadataLogSettings(
            {"segment_bytes": 1500, "record_bytes_between_snapshots": 1000, "retention_bytes": 1}
        )
        async with world.following():
            for number in range(2, 60):
                world.quorum.append(ids(number))
                await settle(world)
            await trio.sleep(61)
            assert world.log.start_offset > 0
            world.quorum.elect(3)
            world.quorum.append(ids(60))
            await settle(world)
            assert (images, slow[0].leaders) == ([], [1]), "what comes later waits for what came before"
            slow[0].may_go_on.set()
            await trio.sleep(1)
            assert contents(other.image) == contents(world.image)
            assert [position.offset + 1 for position in slow[0].snapshots] == [world.log.snapshots[-1].end_offset]
            assert slow[0].leaders == [1, 3]
