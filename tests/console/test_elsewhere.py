"""``ottla console``: pages of a cluster that is asked by requests."""

from __future__ import annotations

from pathlib import Path

from ottla.wire.records import Record

from .browsing import browsing_elsewhere
from .test_pages import OFFSETS_AT_ONCE, commit


async def test_pages_of_a_broker_that_is_asked(tmp_path: Path) -> None:
    async with browsing_elsewhere(tmp_path, **OFFSETS_AT_ONCE) as browser:
        await browser.create("orders", 2, {"retention.ms": "3600000"})
        browser.put("orders", *[Record(timestamp=1_700_000_000_000, value=b"v")] * 7)
        await commit(browser, "billing", "orders", 3)
        for place in ("/", "/topics", "/topics/orders", "/topics/orders/records", "/groups", "/group?id=billing"):
            answer = await browser.get(place)
            print(place, answer.status, answer.page.text)
