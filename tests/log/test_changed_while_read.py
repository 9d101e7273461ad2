"""Logs that are truncated, or go, while something reads them: the move to another folder, the look-up of a time."""

from __future__ import annotations

import pytest

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import InlineWorkers
from ottla.log.follower_append import append_as_follower
from ottla.log.log_copy import LogCopy
from ottla.wire.records import Record, build_batch

TOPIC_ID = bytes(range(16))


@pytest.fixture
def two_in_memory(memory_world):
    """A world with two log directories."""
    memory_world.more_paths = ["second"]
    return memory_world


async def moved(copy: LogCopy) -> None:
    """Fill a future log to the end."""
    while await copy.step():
        pass
    assert copy.finish()


def batch_of(offset: int, epoch: int, value: str) -> bytes:
    return bytes(build_batch([Record(timestamp=1, value=value.encode())], base_offset=offset, leader_epoch=epoch))


@pytest.mark.parametrize(
    ("truncated_to", "epochs"),
    [(2, (3, 3, 3)), (1, (3, 4)), (0, (3, 3, 3, 3)), (3, (3,)), (1, (1, 1)), (2, ())],
)
async def test_move_goes_on_after_a_truncation_that_was_before_the_restart(
    two_in_memory, read_values, truncated_to, epochs
):
    """A follower's log may have got other records where the future log, filled before, has those of an old leader."""
    manager = await two_in_memory.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for offset, epoch in enumerate((0, 1, 2, 2)):
        append_as_follower(log, batch_of(offset, epoch, f"{offset} of {epoch}"), epoch)
    future = manager.create_future(log, manager.folders[1])
    copy = LogCopy(log, future)
    while await copy.step():
        pass
    log.truncate_to(truncated_to)
    for offset, epoch in enumerate(epochs, truncated_to):
        append_as_follower(log, batch_of(offset, epoch, f"{offset} of {epoch}"), epoch)
    expected = read_values(log)
    await moved(LogCopy(log, future))
    assert read_values(future) == expected
    assert future.leader_epochs.entries() == log.leader_epochs.entries()


@pytest.mark.parametrize("goes_on", [False, True])
async def test_move_goes_on_when_a_follower_truncates_while_it_is_read(two_in_memory, read_values, goes_on):
    manager = await two_in_memory.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    for offset in range(3):
        append_as_follower(log, batch_of(offset, 1, f"{offset} of 1"), 1)

    class Truncating(InlineWorkers):
        async def run(self, function, *arguments):
            log.folder.workers = InlineWorkers()
            log.truncate_to(1)
            if goes_on:
                append_as_follower(log, batch_of(1, 2, "a longer one of 2"), 2)
            return function(*arguments)

    log.folder.workers = Truncating()
    future = manager.create_future(log, manager.folders[1])
    await moved(LogCopy(log, future))
    assert read_values(future) == read_values(log)
    assert future.log_end_offset == (2 if goes_on else 1)


async def test_log_that_is_deleted_while_a_time_is_looked_up_is_no_failure_of_the_folder(two_in_memory):
    world = two_in_memory
    manager = await world.start()
    log = manager.get_or_create("t", 0, TOPIC_ID)
    world.append(log, "a")
    log.roll()
    world.append(log, "b")
    newest = log.segments[-1].indexes.largest_timestamp()

    class Deleting(InlineWorkers):
        async def run(self, function, *arguments):
            found = function(*arguments)
            manager.delete("t", 0)
            world.disk.remove_dir(log.directory)
            return found

    log.segments[0].indexes.max_timestamp = newest + 1  # so that it is read, and nothing found in it
    log.folder.workers = Deleting()
    with pytest.raises(KafkaError) as error:
        await log.offset_for_timestamp(newest + 1, log.log_end_offset)
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not log.folder.is_offline
