"""A log against a plain model, under appends, rolls, truncation, retention, stops, kills and power failures.

The model is a list of batches. What was flushed must survive anything; what was written must survive a kill; what
survives a power failure must be a prefix of something that once was the log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from ottla.base.errors import KafkaError
from ottla.log.settings import LogSettings
from ottla.wire.records import Record, RecordBatch, build_batch, iter_batches

PICK = st.floats(0, 1)


@dataclass(frozen=True)
class Batch:
    """One batch of the model: (value, timestamp) of each record, and the producer's id and first sequence, or -1."""

    base: int
    records: tuple[tuple[str, int], ...]
    producer_id: int = -1
    sequence: int = -1

    @property
    def end(self) -> int:
        return self.base + len(self.records)


class LogMachine(RuleBasedStateMachine):
    make_world: Callable[[str], Any]
    kind: str

    def __init__(self) -> None:
        super().__init__()
        self.world = self.make_world(self.kind)
        self.batches: list[Batch] = []
        self.start = 0
        self.end = 0
        self.durable = 0
        self.history: set[Batch] = set()
        self.count = 0
        self.next_producer_id = 1
        self.settings: dict[str, Any] = {}

    # --- plumbing -----------------------------------------------------------------------------------------------------

    def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a plain or an async function inside trio."""

        async def main() -> Any:
            result = function(*args)
            return await result if hasattr(result, "__await__") else result

        return trio.run(main)

    @initialize(
        segment_bytes=st.sampled_from([300, 1000, 1 << 30]),
        interval=st.sampled_from([0, 200, 4096]),
    )
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.settings = {"segment_bytes": segment_bytes, "index_interval_bytes": interval, "retention_ms": -1}
        self.log = self.run(self.open)

    async def open(self) -> Any:
        return await self.world.log(**self.settings)

    def pick(self, fraction: float, low: int, high: int) -> int:
        return low + round(fraction * (high - low))

    def surviving_producer(self) -> Batch | None:
        return next((batch for batch in reversed(self.batches) if batch.producer_id >= 0), None)

    # --- what happens -------------------------------------------------------------------------------------------------

    @rule(
        count=st.integers(1, 4),
        length=st.sampled_from([0, 10, 150]),
        codec=st.integers(0, 4),
        idempotent=st.booleans(),
        step=st.integers(-20, 100),
        epoch=st.integers(0, 2),
    )
    def append(self, count: int, length: int, codec: int, idempotent: bool, step: int, epoch: int) -> None:
        self.count += 1
        now = self.world.clock.now
        records = tuple((f"{self.count}.{n}" + "x" * length, now + self.count * 10 + step - n) for n in range(count))
        header: dict[str, Any] = {"compression": codec}
        if idempotent:
            last = self.surviving_producer()
            if last is None:
                header |= {"producer_id": self.next_producer_id, "base_sequence": 0, "producer_epoch": 0}
                self.next_producer_id += 1
            else:
                sequence = last.sequence + len(last.records)
                header |= {"producer_id": last.producer_id, "base_sequence": sequence, "producer_epoch": 0}
        data = build_batch([Record(value=v.encode(), timestamp=t) for v, t in records], **header)
        leader_epoch = max(self.log.latest_epoch, epoch)
        if len(data) > self.settings["segment_bytes"]:
            with pytest.raises(KafkaError, match="RECORD_LIST_TOO_LARGE"):
                self.log.append_as_leader(data, leader_epoch, now)
            return
        result = self.run(self.log.append_as_leader, data, leader_epoch, now)
        assert (result.first_offset, result.last_offset) == (self.end, self.end + count - 1)
        assert not result.is_duplicate
        batch = Batch(self.end, records, header.get("producer_id", -1), header.get("base_sequence", -1))
        self.batches.append(batch)
        self.history.add(batch)
        self.end = self.log.high_watermark = batch.end

    @precondition(lambda self: self.surviving_producer() is not None)
    @rule()
    def send_again(self) -> None:
        last = self.surviving_producer()
        assert last is not None
        header = {"producer_id": last.producer_id, "base_sequence": last.sequence, "producer_epoch": 0}
        data = build_batch([Record(value=v.encode(), timestamp=t) for v, t in last.records], **header)
        result = self.run(self.log.append_as_leader, data, self.log.latest_epoch, self.world.clock.now)
        assert result.is_duplicate
        assert (result.first_offset, result.last_offset) == (last.base, last.end - 1)

    @precondition(lambda self: self.log.segments and self.log.segments[-1].size)
    @rule()
    def roll(self) -> None:
        self.run(self.log.roll)

    @rule(fraction=PICK)
    def truncate(self, fraction: float) -> None:
        offset = self.pick(fraction, 0, self.end)
        if offset == self.end:
            self.run(self.log.truncate_to, offset)
            return
        self.run(self.log.truncate_to, offset)
        offset = next((batch.base for batch in self.batches if batch.base < offset < batch.end), offset)
        self.batches = [batch for batch in self.batches if batch.end <= offset]
        self.durable = min(self.durable, offset)
        self.start = min(self.start, offset)
        self.end = offset
        if not self.log.segments[0].size:
            self.batches = []

    @rule(offset=st.integers(0, 60))
    def start_anew(self, offset: int) -> None:
        self.run(self.log.truncate_fully_and_start_at, offset)
        self.batches = []
        self.start = self.end = offset
        self.durable = 0

    @rule(fraction=PICK)
    def delete_records(self, fraction: float) -> None:
        offset = self.pick(fraction, 0, self.end)
        self.start = max(self.start, offset)
        assert self.run(self.log.delete_records_before, offset) == self.start

    @rule(fraction=PICK)
    def retain(self, fraction: float) -> None:
        size = self.pick(fraction, 0, self.log.size)
        self.log.update_settings(LogSettings({**self.settings, "retention_bytes": size}))
        self.run(self.log.delete_old_segments, self.world.clock.now)
        self.log.update_settings(LogSettings(self.settings))
        if self.log.segments:
            first = self.log.segments[0].base_offset
            self.start = max(self.start, first)
            self.batches = [batch for batch in self.batches if batch.base >= first]
        assert self.log.log_start_offset == self.start

    @rule()
    def flush(self) -> None:
        self.run(self.log.flush)
        assert self.log.recovery_point == self.end
        self.durable = self.end

    @rule()
    def checkpoint(self) -> None:
        self.run(self.world.managers[-1].write_checkpoints)

    # --- stops --------------------------------------------------------------------------------------------------------

    @rule()
    def stop(self) -> None:
        self.run(self.world.managers[-1].stop)
        self.reopen(start_is_kept=True)
        self.durable = self.end

    @rule()
    def kill(self) -> None:
        self.world.kill()
        self.reopen(start_is_kept=False)

    def reopen(self, *, start_is_kept: bool) -> None:
        """After a stop or a kill everything written is there; the start may have been forgotten."""
        self.log = self.run(self.open)
        last = self.batches[-1].end if self.batches else self.log.log_end_offset
        assert self.log.log_end_offset in (self.end, last, max(last, self.start))
        self.end = self.log.high_watermark = self.log.log_end_offset
        if start_is_kept:
            assert self.log.log_start_offset == min(self.start, self.end) or self.start > self.end
        else:
            assert self.log.log_start_offset <= self.start
        self.start = self.log.log_start_offset
        self.durable = min(self.durable, self.end)
        first = self.log.segments[0].base_offset if self.log.segments else 0
        assert all(batch.end <= self.start for batch in self.batches if batch.base < first)
        self.batches = [batch for batch in self.batches if batch.base >= first]

    @rule(seed=st.integers(0, 1 << 32))
    def lose_the_tail(self, seed: int) -> None:
        """The end of the active file is torn off, or followed by what was never written."""
        self.world.kill()
        rng = random.Random(seed)
        if self.log.segments:
            active = self.log.segments[-1]
            floor = active.position_of(max(self.durable, active.base_offset)) if active.size else 0
            if self.durable >= self.end:
                floor = active.size
            file = self.world.disk.open(active.path)
            cut = rng.randint(floor, active.size)
            file.truncate(cut)
            file.write(rng.choice([b"", bytes(100), rng.randbytes(80)]), cut)
            file.close()
            active.file.close()
        self.log = self.run(self.open)
        self.adopt()

    @precondition(lambda self: self.kind == "memory")
    @rule(seed=st.integers(0, 1 << 32))
    def lose_power(self, seed: int) -> None:
        self.world.disk.crash(random.Random(seed))
        self.log = self.run(self.open)
        self.adopt()

    def adopt(self) -> None:
        """Check that what is left is allowed, and go on from there."""
        log = self.log
        left = [self.known(batch) for batch in self.stored()]
        current = [batch for batch in self.batches if batch.end <= self.durable and batch.base >= log.log_start_offset]
        found = {batch.base: batch for batch in left}
        for batch in current:
            assert found.get(batch.base) == batch, f"{batch} was flushed, and is gone"
        self.batches = left
        self.start = log.log_start_offset
        self.end = log.high_watermark = log.log_end_offset
        self.durable = min(self.durable, self.end)

    def stored(self) -> list[RecordBatch]:
        """Every batch in the files, also below the log's start."""
        found: list[RecordBatch] = []
        for segment in self.log.segments:
            found += iter_batches(self.world.disk.read_file(segment.path))
        return found

    def known(self, stored: RecordBatch) -> Batch:
        """The batch that once was appended with these bytes."""
        stored.check_crc()
        records = tuple(((r.value or b"").decode(), r.timestamp) for r in stored.records())
        batch = Batch(stored.base_offset, records, stored.producer_id, stored.base_sequence)
        assert batch in self.history
        return batch

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def offsets_agree(self) -> None:
        if not hasattr(self, "log"):
            return
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.size == sum(segment.size for segment in self.log.segments)
        assert self.log.recovery_point <= self.end

    @invariant()
    def files_hold_the_model(self) -> None:
        if hasattr(self, "log"):
            assert [self.known(batch) for batch in self.stored()] == self.batches

    @rule(fraction=PICK, max_bytes=st.sampled_from([0, 1, 200, 1000, 1 << 20]), cap=PICK, at_least_one=st.booleans())
    def read(self, fraction: float, max_bytes: int, cap: float, at_least_one: bool) -> None:
        offset = self.pick(fraction, self.start, self.end)
        up_to = self.pick(cap, self.start, self.end)
        wanted = [batch for batch in self.batches if batch.end > offset and batch.end <= up_to]
        while True:  # as a consumer does, up to the cap
            piece = self.log.read(offset, max_bytes, up_to=up_to, at_least_one=at_least_one)
            if piece is None:
                assert not wanted or (max_bytes < 1 << 20 and not at_least_one)
                return
            data = piece.read()
            piece.release()
            found = [self.known(batch) for batch in iter_batches(data)]
            assert found
            assert found == wanted[: len(found)]
            assert len(data) <= max_bytes or (at_least_one and len(found) == 1)
            wanted = wanted[len(found) :]
            offset = found[-1].end

    @rule(fraction=PICK, cap=PICK)
    def look_up_a_time(self, fraction: float, cap: float) -> None:
        now = self.world.clock.now
        target = self.pick(fraction, now - 50, now + self.count * 10 + 100)
        up_to = self.pick(cap, self.start, self.end)
        found = self.run(self.log.offset_for_timestamp, target, up_to)
        wanted = next(
            (
                (batch.base + n, timestamp)
                for batch in self.batches
                for n, (_, timestamp) in enumerate(batch.records)
                if timestamp >= target and batch.base + n >= self.start
            ),
            (-1, -1),
        )
        assert found[:2] == (wanted if wanted[0] < up_to else (-1, -1))

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.world.kill()


@pytest.mark.parametrize("kind", ["memory", "os"])
def test_log_is_what_the_model_says(make_world, kind):
    machine = type("Machine", (LogMachine,), {"make_world": staticmethod(make_world), "kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=120 if kind == "memory" else 40,
            stateful_step_count=40,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
