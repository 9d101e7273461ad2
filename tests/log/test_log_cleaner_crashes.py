"""A crash at each operation of a cleaning, and of the start after it: every record is there as before, or as after."""

from __future__ import annotations

import random

import pytest

from ottla.base.errors import KafkaError
from ottla.log.log_directories import LogStartError
from ottla.log.memory_disk import MemoryDisk

pytestmark = pytest.mark.computes

SETTINGS = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 500,
    "index_interval_bytes": 0,
    "min_cleanable_dirty_ratio": 0.0,
}


class FailingDisk(MemoryDisk):
    """Every operation from the ``last``-th on fails, as after the process died."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.last: int | None = None

    def check(self, operation, path):
        self.count += 1
        if self.last is not None and self.count > self.last:
            raise OSError(5, f"{operation} after the end", path)
        super().check(operation, path)

    def fail_after(self, count):
        self.count, self.last = 0, count

    def crash_or_kill(self, rng, power_loss):
        self.last = None
        if power_loss:
            self.crash(rng)
        else:
            self.kill()


async def filled(make_world, disk):
    """A flushed log, once cleaned, with new records of old keys, tombstones and an aborted transaction."""
    world = make_world("memory")
    world.disk = disk
    log = await world.log(**SETTINGS)
    for n in range(50):
        value = None if n % 11 == 0 else f"{n}" + "x" * 30
        world.append(log, (f"k{n % 9}", value), compression=n % 5)
        if n == 20:
            await world.managers[-1].cleaner.clean_dirtiest()
        if n == 25:
            batch = world.batch(
                [("k1", "aborted")], producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True
            )
            log.append_as_leader(batch, 0, world.clock.now, internal=True)
            world.abort(log, 8)
    log.high_watermark = log.log_end_offset
    await log.flush()
    await world.managers[-1].write_checkpoints()
    return world, log


def contents(log, read_batches):
    records = [r for b in read_batches(log) for r in b.records() if not b.is_control]
    aborted = sorted({entry for segment in log.segments for entry in segment.aborted.entries()})
    return {(r.offset, r.key, r.value) for r in records}, aborted, log.log_end_offset


async def clean(world):
    while await world.managers[-1].cleaner.clean_dirtiest():
        pass


async def operations_of_a_cleaning(make_world):
    disk = FailingDisk()
    world, _ = await filled(make_world, disk)
    disk.fail_after(None)
    await clean(world)
    return disk.count


async def expected(make_world, read_batches):
    world, log = await filled(make_world, FailingDisk())
    before = contents(log, read_batches)
    await clean(world)
    return before, contents(log, read_batches)


def check(found, before, after):
    assert after[0] <= found[0] <= before[0]
    assert found[1] in (before[1], after[1])
    assert found[2] == before[2]


@pytest.mark.slow
@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
async def test_crash_at_every_operation(make_world, read_batches, power_loss):
    before, after = await expected(make_world, read_batches)
    assert len(after[0]) < len(before[0])
    count = await operations_of_a_cleaning(make_world)
    assert count > 40
    seen = set()
    for last in range(count + 1):
        disk = FailingDisk()
        world, _ = await filled(make_world, disk)
        disk.fail_after(last)
        await clean(world)
        disk.crash_or_kill(random.Random(last), power_loss)
        seen |= {name.rpartition(".")[2] for name in world.files()}
        log = await world.log(**SETTINGS)
        assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in world.files())
        check(contents(log, read_batches), before, after)
        log.high_watermark = log.log_end_offset
        await clean(world)
        assert contents(log, read_batches) == after, last
    assert {"cleaned", "swap", "deleted"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("power_loss", [False, True], ids=["kill", "power loss"])
async def test_crash_of_the_start_that_finishes_a_cleaning(make_world, read_batches, power_loss):
    before, after = await expected(make_world, read_batches)
    count = await operations_of_a_cleaning(make_world)
    rng = random.Random(power_loss)
    for last in range(10, count, 3):
        disk = FailingDisk()
        world, _ = await filled(make_world, disk)
        disk.fail_after(last)
        await clean(world)
        disk.crash_or_kill(rng, power_loss)
        disk.fail_after(rng.randrange(25))
        with pytest.raises((LogStartError, OSError, KafkaError)):
            log = await world.log(**SETTINGS)
            raise OSError("it got through")
        disk.crash_or_kill(rng, power_loss)
        log = await world.log(**SETTINGS)
        check(contents(log, read_batches), before, after)
        log.high_watermark = log.log_end_offset
        await clean(world)
        assert contents(log, read_batches) == after, last
