"""Compaction against a model: whatever is produced, and whenever it is cleaned or started again, the rules hold."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ottla.log.log_cleaner import LogCleaner
from ottla.log.settings import LogCleanerSettings
from ottla.wire.records import Record

pytestmark = pytest.mark.computes

RETENTION_MS = 1000
SETTINGS = {
    "cleanup_policy": ("compact",),
    "index_interval_bytes": 50,
    "min_cleanable_dirty_ratio": 0.0,
    "delete_retention_ms": RETENTION_MS,
}
PAIR = st.tuples(st.sampled_from("abcdefg"), st.one_of(st.none(), st.integers(0, 40)))
STEP = st.one_of(
    st.tuples(st.just("produce"), st.lists(PAIR, min_size=1, max_size=5), st.integers(0, 4), st.booleans()),
    st.tuples(st.just("clean"), st.integers(0, 2 * RETENTION_MS)),
    st.tuples(st.just("restart"), st.booleans()),
)
STEPS = st.lists(st.one_of(STEP, STEP, STEP.filter(lambda step: step[0] == "produce")), min_size=10, max_size=50)


class Model:
    """All that was produced, by offset, and the first cleaning that covered each offset."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes | None]] = []
        self.cleaned_to = 0
        self.first_cleaned: dict[int, int] = {}
        self.sequence = 0

    def cleaned(self, end: int, now: int) -> None:
        self.cleaned_to = end
        for offset in range(end):
            self.first_cleaned.setdefault(offset, now)

    def check(self, found: dict[int, tuple[str, bytes | None]], end: int, now: int) -> None:
        assert end == len(self.records)
        assert all(self.records[offset] == record for offset, record in found.items()), "records never change"
        last = {key: offset for offset, (key, _) in enumerate(self.records[: self.cleaned_to])}
        for offset, (key, value) in enumerate(self.records):
            if offset >= self.cleaned_to:
                assert offset in found, "nothing is lost that was not cleaned"
            elif last[key] != offset:
                assert offset not in found, "of a key, the last record is left"
            elif value is not None:
                assert offset in found, "the last record of a key is never lost"
            elif now < self.first_cleaned[offset] + RETENTION_MS:
                assert offset in found, "a tombstone stays until its time is over"


async def run(world: Any, read_batches: Any, steps: list[Any], segment_bytes: int, map_bytes: int) -> None:
    chosen: dict[str, Any] = SETTINGS | {"segment_bytes": segment_bytes}
    model = Model()
    log = await world.log(**chosen)
    for kind, *arguments in steps:
        if kind == "produce":
            produce(world, log, model, *arguments)
        elif kind == "clean":
            world.clock.now += arguments[0]
            cleaner = LogCleaner(
                world.managers[-1].logs(), LogCleanerSettings({"log_cleaner_dedupe_buffer_size": map_bytes})
            )
            while await cleaner.clean_dirtiest():
                model.cleaned(log.cleaned_offset, world.clock.now)
            while log.folder.timers:
                log.folder.timers.pop()[2]()
        else:
            if arguments[0]:
                await world.managers[-1].stop()
            else:
                world.kill()
            log = await world.log(**chosen)
            log.high_watermark = log.log_end_offset
        records = [record for batch in read_batches(log) for record in batch.records()]
        found = {record.offset: (record.key.decode(), record.value) for record in records}
        assert list(found) == sorted(found)
        model.check(found, log.log_end_offset, world.clock.now)
        assert log.size == sum(segment.size for segment in log.segments)
    if model.sequence:
        (producer,) = log.active_producers()
        assert producer.last_sequence == model.sequence - 1


def produce(world: Any, log: Any, model: Model, pairs: list[Any], codec: int, idempotent: bool) -> None:
    header: dict[str, Any] = {"compression": codec}
    if idempotent:
        header |= {"producer_id": 7, "producer_epoch": 0, "base_sequence": model.sequence}
        model.sequence += len(pairs)
    records = [(key, None if length is None else b"%d" % len(model.records) + b"x" * length) for key, length in pairs]
    world.append(log, *[Record(key=k.encode(), value=v, timestamp=world.clock.now) for k, v in records], **header)
    model.records += records


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "os"])
def test_rules_hold(make_world, read_batches, kind):
    @settings(max_examples=40 if kind == "memory" else 15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(steps=STEPS, segment_bytes=st.sampled_from([400, 700, 2000]), map_bytes=st.sampled_from([96, 200, 1 << 20]))
    def check(steps, segment_bytes, map_bytes):
        trio.run(run, make_world(kind), read_batches, steps, segment_bytes, map_bytes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ottla.log.log_cleaner._MIN_MAP_BYTES", 0)
        check()
