"""Many open pages, and browsers that do not read: clients are answered, and the broker ends, as it does without them."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

from .helpers.browsing import browsing
from .test_pages import ask

_PAGES = ["/"] * 20 + ["/topics/t/0/0/value"] * 170 + ["/topics/t/search?contains=nothing"] * 10
"""Small ones, those of which a browser does not read the end, and two searches more than there may be at a time."""
_MOMENT = 1.0
"""Seconds of simulated time; a reader that stalls would hold up others for 20."""


async def test_200_stalled_browsers_hold_up_neither_a_producer_nor_the_end(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", Record(timestamp=1, value=b"x" * 1_000_000))
        open_pages = [await browser.open(target) for target in _PAGES]
        began = trio.current_time()
        for _ in range(20):
            data = [PartitionProduceData(index=0, records=build_batch([Record(timestamp=1, value=b"x")]))]
            topics = [TopicProduceData(name="t", partition_data=data)]
            await ask(browser, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), 8)
        assert browser.partition("t").log.high_watermark == 21
        assert (await browser.get("/topics")).status == 200
        assert trio.current_time() - began < _MOMENT
        began = trio.current_time()
    assert trio.current_time() - began < _MOMENT
    for stream, _ in open_pages:
        stream.close()
