"""Records are written, edited and sent again from a page as any client would write them, and errors are Kafka's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from kafka.partitioner.default import murmur2

from ottla.base.seams import InlineWorkers
from ottla.view.own.replica_log import ReplicaLog
from ottla.wire.records import Record

from .helpers.browsing import Browsing, Open, Page, browsing, on_both
from .helpers.form_reader import FormReader

OPEN = {"console_allow_writes": "true"}


@asynccontextmanager
async def writable(opened: Open, folder: Path) -> AsyncIterator[Browsing]:
    async with opened(folder, **OPEN) as browser:
        yield browser


def fields(page: Page) -> dict[str, str]:
    """What the page's form has in it, as a browser sends it."""
    return FormReader(page.html).fields


async def records(browser: Browsing, topic: str, number: int = 0) -> list[Record]:
    log = ReplicaLog(browser.partition(topic, number), InlineWorkers())
    found: list[Record] = []
    while len(found) < log.end:
        read = await log.read(len(found), log.end, 1 << 20)
        assert read is not None
        found += [record for batch in read.batches for record in batch.records()]
    return found


def same(record: Record) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    return record.key, record.value, record.headers


HARD = [
    Record(timestamp=1, key=b"k", value=b'{"a": 1}', headers=[("h", b"1"), ("h", None), ("h", b"\xff")]),
    Record(timestamp=1, key=None, value=b"\r\n\0<textarea>\n"),
    Record(timestamp=1, key=b"\n a \n", value=None),
    Record(timestamp=1, key=b"", value=bytes(range(256)) * 3, headers=[("a=b", b"hex:0"), ('"', b"\n")]),
    Record(timestamp=1, key=b"</textarea>", value=b"&amp;\n</textarea><b>"),
]


@on_both
async def test_edited_and_sent_again_without_an_edit(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("t")
        for record in HARD:
            browser.put("t", record)
        for offset in range(len(HARD)):
            target = (await browser.get(f"/topics/t/0/{offset}")).page.links["Edit and send again…"]
            page = (await browser.get(target)).page
            answer = await browser.post("/topics/t/produce", fields(page))
            assert answer.status == 200, answer.page.text
            assert f"t-0 at offset {len(HARD) + offset}" in answer.page.text
            assert (await browser.get(answer.page.links["The record"])).status == 200
        found = await records(browser, "t")
        assert [same(record) for record in found[len(HARD) :]] == [same(record) for record in HARD]


@on_both
async def test_a_new_record(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("t", 3)
        page = (await browser.get((await browser.get("/topics/t")).page.links["Write a record…"])).page
        typed = {
            **fields(page),
            "key_as": "text",
            "key": "customer",
            "value_as": "hex",
            "value": "00 ff",
            "headers": "a=1\na=",
        }
        answer = await browser.post("/topics/t/produce", typed)
        number = (murmur2(b"customer") & 0x7FFFFFFF) % 3
        assert f"t-{number} at offset 0" in answer.page.text
        assert "ottla produce -b test:9092 --json" in answer.page.text
        (record,) = await records(browser, "t", number)
        assert same(record) == (b"customer", b"\0\xff", [("a", b"1"), ("a", b"")])
        tombstone = {**typed, "value_as": "null", "value": "", "partition": "2"}
        assert "t-2 at offset" in (await browser.post("/topics/t/produce", tombstone)).page.text
        assert (await records(browser, "t", 2))[-1].value is None


@on_both
async def test_errors_are_kafkas_own_and_what_was_typed_stays(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("t", configs={"max.message.bytes": "200", "cleanup.policy": "delete"})
        await browser.create("compacted", configs={"cleanup.policy": "compact"})
        form = fields((await browser.get("/topics/t/produce")).page)
        for typed, status, why in (
            ({"value": "x" * 300}, 409, "MESSAGE_TOO_LARGE"),
            ({"to": "compacted", "value": "x"}, 409, "INVALID_RECORD"),
            ({"partition": "9", "value": "x"}, 409, "UNKNOWN_TOPIC_OR_PARTITION"),
            ({"to": "none", "value": "x"}, 404, "There is no topic none"),
            ({"value_as": "hex", "value": "x"}, 400, "not hexadecimal"),
            ({"value_as": "json", "value": "{x"}, 400, "not JSON"),
            ({"key_as": "null", "key": "k"}, 400, "is null, but"),
            ({"headers": "a=hex:x"}, 400, "not hexadecimal"),
            ({"partition": "x"}, 400, "x is not a partition"),
            ({"token": "x"}, 403, "not of this session"),
        ):
            answer = await browser.post("/topics/t/produce", {**form, **typed})
            assert answer.status == status, answer.page.text
            assert why in answer.page.text
            assert {name: fields(answer.page)[name] for name in typed if name != "token"} == {
                name: text for name, text in typed.items() if name != "token"
            }
            if status == 400:
                ((field, said),) = answer.page.problems().items()
                assert field == [*typed][-1]
                assert why in said
        assert await records(browser, "t") == []


@on_both
async def test_chosen_records_are_sent_to_another_topic(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("dead", 2)
        await browser.create("orders", 2)
        for number in (0, 1):
            browser.put("dead", *HARD, number=number)
        page = (await browser.get("/topics/dead/records?from=oldest")).page
        boxes = [
            element["value"] for tag, element in page.elements if tag == "input" and element.get("type") == "checkbox"
        ]
        assert sorted(map(str, boxes)) == [f"{number}:{offset}" for number in (0, 1) for offset in range(5)]
        page = (await browser.get("/topics/dead/send-again?record=0:4&record=0:1&record=1:0")).page
        assert "3 records" in page.text
        answer = await browser.post("/topics/dead/send-again", {**fields(page), "to": "orders", "keeps": "yes"})
        assert "3 records of dead sent again to orders." in answer.page.text, answer.page.text
        assert [same(record) for record in await records(browser, "orders", 0)] == [same(HARD[1]), same(HARD[4])]
        assert [same(record) for record in await records(browser, "orders", 1)] == [same(HARD[0])]


def _many(address: str, count: int) -> str:
    return f"{address}?{'&'.join(f'record=0:{offset}' for offset in range(count))}"


async def test_what_is_refused_ends_it_and_the_rest_stays_chosen(tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("dead")
        await browser.create("small", configs={"max.message.bytes": "200"})
        browser.put("dead", *[Record(timestamp=1, value=b"x" * size) for size in (10, 300, 20)])
        page = (await browser.get("/topics/dead/send-again?record=0:0&record=0:1&record=0:2")).page
        answer = await browser.post("/topics/dead/send-again", {**fields(page), "to": "small"})
        assert answer.status == 409
        assert "1 of 3 records sent; 0:1 was not. Kafka's answer" in answer.page.text
        assert "MESSAGE_TOO_LARGE" in answer.page.text
        assert fields(answer.page)["records"] == "0:1 0:2"
        assert len(await records(browser, "small")) == 1
        assert "At most 500 records" in (await browser.get(_many("/topics/dead/send-again", 501))).page.text
        nowhere = await browser.post("/topics/dead/send-again", {**fields(page), "to": ""})
        assert nowhere.page.problems() == {"to": "To which topic was not said."}
        assert fields(nowhere.page)["records"] == "0:0 0:1 0:2"
        for form, status in (
            ({"to": ""}, 400),
            ({"records": ""}, 400),
            ({"records": "x"}, 400),
            ({"records": "0:99", "to": "t"}, 404),
        ):
            assert (await browser.post("/topics/dead/send-again", {**fields(page), **form})).status == status


async def test_without_leave_to_write_there_is_nothing_of_it(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", Record(timestamp=1, value=b"x"))
        for address in ("/topics/t/produce", "/topics/t/0/0/edit", "/topics/t/send-again?record=0:0"):
            assert (await browser.get(address)).status == 404
        page = (await browser.get("/topics/t/records")).page
        assert not [element for tag, element in page.elements if element.get("type") == "checkbox"]
        assert "again" not in page.text
