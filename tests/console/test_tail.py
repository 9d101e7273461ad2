"""A live page gets what comes, in small answers from where it is; one that falls behind is told what it has missed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ottla.wire.records import Record, build_batch

from .helpers.browsing import Browsing, Open, Page, browsing, on_both


def put(browser: Browsing, *values: str, number: int = 0, key: bytes | None = None) -> None:
    browser.put("t", *[Record(timestamp=1, key=key, value=value.encode()) for value in values], number=number)


class Watched:
    """A page with ``from=live``, which asks again when the test says so."""

    def __init__(self, browser: Browsing, page: Page) -> None:
        (progress,) = [attributes for tag, attributes in page.elements if attributes.get("id") == "progress"]
        self._browser = browser
        self.next = progress["data-tail"] or ""

    async def look(self) -> tuple[list[str], Any]:
        answer = (await self._browser.get(self.next)).json
        self.next = answer["next"]
        rows = Page(f"<table>{answer['rows']}</table>").text.split()
        return [word for word in rows if word.startswith("v") and word.endswith(".")], answer


async def watch(browser: Browsing, query: str = "") -> tuple[list[str], Watched]:
    page = (await browser.get(f"/topics/t/records?from=live{query}")).page
    return [word for word in page.text.split() if word.startswith("v") and word.endswith(".")], Watched(browser, page)


@on_both
async def test_records_come_as_they_are_written(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t", 2)
        put(browser, "v0.", "v1.")
        seen, watched = await watch(browser)
        assert seen == ["v1.", "v0."]
        assert (await watched.look())[0] == []
        put(browser, "v2.")
        put(browser, "v3.", number=1)
        assert sorted((await watched.look())[0]) == ["v2.", "v3."]
        assert (await watched.look())[0] == []


async def test_one_partition_only(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t", 2)
        _, watched = await watch(browser, "&partition=1")
        put(browser, "v0.", number=0)
        put(browser, "v1.", number=1)
        assert (await watched.look())[0] == ["v1."]


@on_both
async def test_a_filter_holds_for_what_comes(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        _, watched = await watch(browser, "&contains=2&n=3")
        put(browser, *[f"v{number}." for number in range(30)])
        first, told = await watched.look()
        assert first == ["v20.", "v12.", "v2."]
        assert told["behind"] == "9"
        assert (await watched.look())[0] == ["v23.", "v22.", "v21."]
        seen = (await watched.look())[0] + (await watched.look())[0]
        assert sorted(seen) == [f"v{number}." for number in range(24, 30)]


async def test_what_comes_too_fast_is_counted(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t", 2)
        _, watched = await watch(browser, "&n=3")
        put(browser, *[f"v{number}." for number in range(30)])
        put(browser, "v100.", number=1)
        seen, told = await watched.look()
        assert len(seen) == 3
        assert told["missed"] == "28"
        assert (await watched.look())[1]["missed"] == "0"


async def test_markers_and_tombstones_and_a_log_that_was_cut(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        _, watched = await watch(browser)
        browser.put("t", Record(timestamp=1, key=b"k", value=None))
        assert "tombstone" in (await watched.look())[1]["rows"]
        put(browser, "v1.", "v2.")
        log = browser.partition("t").log
        log.delete_records_before(2)
        assert (await watched.look())[0] == ["v2."]
        far = watched.next.replace("3-3", "99-99")
        assert (await browser.get(far)).json["rows"] == ""


async def test_a_tail_of_what_cannot_be_is_a_problem(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        assert (await browser.get("/topics/t/tail?path=x")).status == 400
        assert (await browser.get("/topics/none/tail")).status == 404


async def test_batches_of_a_transaction_stand_with_what_became_of_it(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        _, watched = await watch(browser)
        batch = build_batch(
            [Record(timestamp=1, value=b"v0.")], producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True
        )
        browser.partition("t").append(batch, now_ms=1, internal=True)
        assert "open" in (await watched.look())[1]["rows"]
