"""Records are copied into another topic: just those that were shown, once each, and a copy that ends says where it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import trio
import trio.testing

from ottla.base.errors import ErrorCode, KafkaError
from ottla.base.seams import SimulatedClock
from ottla.console import copy_reading, copying
from ottla.security.acl import Operation, ResourceType
from ottla.wire.messages.end_txn import EndTxnRequest
from ottla.wire.records import Record

from .helpers.browsing import Answer, Browsing, Open, Page, browsing, on_both
from .helpers.secured import WRITES, allow, forbid, log_in
from .test_admin_pages import TRANSACTIONS_AT_ONCE, began
from .test_inside_pages import Client, client
from .test_sending import HARD, fields, records, same, writable

DAY = 86_400_000
NOON = 1_790_000_000_000 // DAY * DAY + DAY // 2
OP, TOPIC = Operation, ResourceType.TOPIC


async def preview(browser: Browsing, topic: str = "orders", **given: str) -> Answer:
    return await browser.get(f"/topics/{topic}/copy?{urlencode({'from': 'oldest', **given})}")


async def copied(browser: Browsing, topic: str = "orders", typed: str = "", **given: str) -> Page:
    """The page of a copy at its end, of what was shown before."""
    shown = await preview(browser, topic, **given)
    assert shown.status == 200, shown.page.text
    form = fields(shown.page)
    assert form, shown.page.text
    return await ended(browser, await browser.post(f"/topics/{topic}/copy", {**form, "typed": typed}))


async def ended(browser: Browsing, begun: Answer) -> Page:
    """The page of a copy that has begun, at its end."""
    assert begun.status == 303, begun.page.text
    with trio.fail_after(30):
        while "so far" in (page := await progress(browser, begun)).text:
            await trio.sleep(0.01)
    return page


async def progress(browser: Browsing, begun: Answer) -> Page:
    return (await browser.get(begun.headers["location"])).page


async def values(browser: Browsing, topic: str, number: int = 0) -> list[bytes | None]:
    return [record.value for record in await records(browser, topic, number)]


def told(page: Page) -> str:
    """The page's text as it is read."""
    return " ".join(page.run_on.split())


class Gate:
    """What stands before a copy's batches."""

    def __init__(self) -> None:
        self.reached, self.opens = trio.Event(), trio.Event()


@contextmanager
def gated(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[Gate]:
    """Copies wait with each batch after the first ones, of all copies together."""
    gate, produce, count = Gate(), copying.produce_batch, 0

    async def waits(*given: Any) -> int:
        nonlocal count
        count += 1
        if count > after:
            gate.reached.set()
            await gate.opens.wait()
        return await produce(*given)

    with monkeypatch.context() as patch:
        patch.setattr(copying, "produce_batch", waits)
        yield gate


def some(*texts: str, timestamp: int = 1) -> list[Record]:
    return [Record(timestamp=timestamp, key=text.encode(), value=text.encode()) for text in texts]


@on_both
async def test_records_are_copied_as_they_are(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders", 2)
        await browser.create("again", 2)
        for number in (0, 1):
            browser.put("orders", *HARD, number=number)
        assert "/topics/orders/copy" in str((await browser.get("/topics/orders")).page.links["Copy records…"])
        shown = (await preview(browser, to="again", keeps="yes")).page
        assert "10 records of orders" in shown.text
        assert "0 0 5 5" in shown.row_texts()
        assert "Copy 10 records" in shown.text
        page = await copied(browser, to="again", keeps="yes")
        assert "10 records of orders were written to again" in page.text
        assert "That is all of it." in page.text
        assert "1 5 0 4" in page.row_texts()
        for number in (0, 1):
            found = await records(browser, "again", number)
            assert [same(record) for record in found] == [same(record) for record in HARD]
            assert {record.timestamp for record in found} == {1}


@on_both
async def test_by_key_at_the_present_time_and_with_the_origin(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again", 3)
        browser.put("orders", *some(*(f"k{number % 7}" for number in range(70))))
        await copied(browser, to="again", time="now", origin="yes")
        found = [await records(browser, "again", number) for number in range(3)]
        assert sum(map(len, found)) == 70
        assert not {record.key for record in found[0]} & {record.key for record in found[1]}
        assert sum(bool(each) for each in found) > 1
        for each in found:
            origins = [dict(record.headers)["copied-from"] for record in each]
            offsets = [int(origin.rpartition(b":")[2]) for origin in origins if origin is not None]
            assert offsets == sorted(offsets), "the order of a partition stays"
            assert all(origin is not None and origin.startswith(b"orders:0:") for origin in origins)
            assert all(record.timestamp > NOON - 100 * DAY for record in each)


@on_both
async def test_yesterday_is_a_button(browsing: Open, tmp_path: Path) -> None:
    clock = SimulatedClock(NOON - int(trio.current_time() * 1000))
    async with browsing(tmp_path, console_allow_writes="true", clock=clock) as browser:
        await browser.create("orders")
        await browser.create("again")
        for days in (2, 1, 0):
            browser.put("orders", *some(f"{days}a", f"{days}b", timestamp=NOON - days * DAY))
        for page in ("records", "copy"):
            moved = await browser.get(f"/topics/orders/{page}?range=yesterday&to=again")
            assert moved.status == 303
            asked = parse_qs(urlsplit(moved.headers["location"]).query)
            assert asked["from"] == ["time"]
            assert asked["until"][0].endswith("T00:00:00Z")
            found = await browser.get(moved.headers["location"])
            if page == "records":
                shown = [each["aria-label"] for _, each in found.page.elements if each.get("name") == "record"]
                assert sorted(map(str, shown)) == ["Choose 0:2", "Choose 0:3"]
        assert "2 records of orders" in found.page.text
        await ended(browser, await browser.post("/topics/orders/copy", fields(found.page)))
        assert await values(browser, "again") == [b"1a", b"1b"]
        assert (await browser.get("/topics/orders/records?range=tomorrow")).status == 400


@on_both
async def test_only_what_is_committed(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path, console_allow_writes="true", **TRANSACTIONS_AT_ONCE) as browser:
        await browser.create("orders")
        await browser.create("again")
        async with client(browser, "writer") as writer:
            await ended_transaction(browser, writer, "aborted", committed=False)
            await ended_transaction(browser, writer, "committed", committed=True)
            browser.put("orders", Record(timestamp=1, value=b"plain"))
            await began(browser, writer, "open", "orders")
            browser.put("orders", Record(timestamp=1, value=b"behind"))
            shown = (await preview(browser, to="again")).page
            assert "2 records of orders" in shown.text
            assert "2 offsets are left out: a transaction is open" in shown.text
            await copied(browser, to="again", origin="yes")
            origins = [dict(record.headers)["copied-from"] for record in await records(browser, "again")]
            assert origins == [b"orders:0:2", b"orders:0:4"], "offsets 0, 1 and 3 are of the aborted one, and markers"


async def ended_transaction(browser: Browsing, writer: Client, name: str, *, committed: bool) -> None:
    """A record in a transaction, and its marker."""
    producer_id, epoch = await began(browser, writer, name, "orders")
    request = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=committed)
    assert (await writer.ask(request, 3)).error_code == 0
    log = browser.partition("orders").log
    with trio.fail_after(30):
        while log.last_stable_offset < log.high_watermark or log.high_watermark % 2:
            await trio.sleep(0.01)


@on_both
async def test_offsets_and_filters(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders", 2)
        await browser.create("again")
        for number in (0, 1):
            browser.put("orders", *some(*(f"v{number}{place}" for place in range(10))), number=number)
        page = (await browser.get("/topics/orders/records?from=offset&at=2&until=9&partition=1&contains=v1")).page
        assert page.rows() == 1 + 7
        address = page.links["Copy records…"]
        page = (await browser.get(f"{address}&to=again")).page
        assert "7 records of orders" in page.text
        await copied(
            browser,
            **{name: text[0] for name, text in parse_qs(urlsplit(address).query).items()},
            to="again",
            key="v15",
        )
        assert await values(browser, "again") == [b"v15"]


async def test_the_command_says_the_same(tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again")
        browser.put("orders", *some("a"))
        consume = "ottla consume -b test:9092 {} -e --isolation-level read_committed --json orders |{}"
        consume += " ottla produce -b test:9092 --json again"
        for given, where, jq in (
            ({"keeps": "yes"}, "-o start", ""),
            ({}, "-o start", " jq -c 'del(.partition)' |"),
            ({"keeps": "yes", "from": "offset", "at": "0", "until": "5", "partition": "0"}, "-p 0 -o 0:5", ""),
            (
                {"keeps": "yes", "from": "time", "at": "0", "until": "2026-11-27T00:00+01:00"},
                "-o @1970-01-01T00:00:00.000Z:2026-11-26T23:00:00.000Z",
                "",
            ),
            (
                {"keeps": "yes", "key": "a", "time": "now"},
                "-o start",
                """ jq -c 'select(.key == "a") | del(.timestamp)' |""",
            ),
        ):
            shown = (await preview(browser, **{"to": "again", **given})).page
            assert consume.format(where, jq) in shown.text
        assert "In a terminal" not in (await preview(browser, to="again", key="hex:61")).page.text


async def test_the_topic_itself_only_if_its_name_is_typed(tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        browser.put("orders", *some("a", "b"))
        form = fields((await preview(browser, to="orders")).page)
        refused = await browser.post("/topics/orders/copy", {**form, "typed": "order"})
        assert refused.page.problems() == {"typed": "Nothing was done: the typed name is another one."}
        assert await values(browser, "orders") == [b"a", b"b"]
        await copied(browser, to="orders", typed="orders")
        assert await values(browser, "orders") == [b"a", b"b", b"a", b"b"]


@on_both
async def test_a_target_that_is_not_there(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders", 3)
        browser.put("orders", *some("a"), number=2)
        shown = (await preview(browser, to="new", keeps="yes")).page
        assert "There is no topic new: it is created, with 3 partitions" in told(shown)
        assert "Create new, and copy 1 record" in told(shown)
        assert (await browser.get("/topics/new")).status == 404, "a look creates nothing"
        refused = await browser.post("/topics/orders/copy", {**fields(shown), "create": "no"})
        assert refused.status == 404
        assert (await browser.get("/topics/new")).status == 404
        await ended(browser, await browser.post("/topics/orders/copy", fields(shown)))
        assert await values(browser, "new", 2) == [b"a"]


async def test_what_cannot_be_is_said_at_its_field(tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders", 3)
        await browser.create("again", 2)
        browser.put("orders", *some("a"), number=2)
        for given, field in (
            ({"keeps": "yes"}, "keeps"),
            ({"keeps": "x"}, "keeps"),
            ({"time": "x"}, "time"),
            ({"from": "time", "at": "x"}, "at"),
            ({"until": "x"}, "until"),
            ({"partition": "x"}, "partition"),
        ):
            answer = await preview(browser, **{"to": "again", **given})
            assert answer.status == 400
            assert [*answer.page.problems()] == [field], given
            assert not fields(answer.page), "there is no button"
        assert "There is no such record" in (await preview(browser, to="again", partition="0")).page.text
        assert (await preview(browser, to="a/b")).status == 409
        for topic in ("__consumer_offsets",):
            await browser.put_offset("g", "orders", 0, 0)
            answer = await preview(browser, to=topic)
            assert "the brokers' own" in answer.page.text
        form = fields((await preview(browser, to="again")).page)
        for changed, status in (({"rest": ""}, 400), ({"rest": "x"}, 400), ({"token": "x"}, 403), ({"to": ""}, 400)):
            assert (await browser.post("/topics/orders/copy", {**form, **changed})).status == status


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of at most 30 records, in batches of 10."""
    monkeypatch.setattr(copy_reading, "MOST_RECORDS", 30)
    monkeypatch.setattr(copying, "_AT_ONCE", 10)


@on_both
async def test_what_is_too_much_for_one_copy_goes_on_in_the_next(small: None, browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders", 2)
        await browser.create("again", 2)
        for number in (0, 1):
            browser.put("orders", *some(*(f"{number}:{place}" for place in range(40))), number=number)
        shown = (await preview(browser, to="again", keeps="yes")).page
        assert "30 records of orders" in shown.text
        assert "There are more" in shown.text
        page = await copied(browser, to="again", keeps="yes")
        seen = [told(page)]
        while form := fields(page):
            page = await ended(browser, await browser.post("/topics/orders/copy", form))
            seen.append(told(page))
        assert [re.findall(r"\d+ records", text)[0] for text in seen] == ["30 records", "30 records", "20 records"]
        assert "orders-0 from offset 30 until 40" in seen[0]
        assert "ottla consume -b test:9092 -p 0 -o 30:40" in seen[0]
        assert "That is all of it." in seen[-1]
        for number in (0, 1):
            assert await values(browser, "again", number) == [b"%d:%d" % (number, place) for place in range(40)]


@on_both
async def test_bytes_are_bounded_too(browsing: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_reading, "MOST_BYTES", 1000)
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again")
        browser.put("orders", *[Record(timestamp=1, value=b"%d" % number * 400) for number in range(5)])
        page = await copied(browser, to="again")
        assert "3 records of orders were written to again" in page.text
        await ended(browser, await browser.post("/topics/orders/copy", fields(page)))
        assert await values(browser, "again") == [b"%d" % number * 400 for number in range(5)]


@on_both
async def test_a_failure_in_the_midst_says_how_many_were_written_and_where_it_goes_on(
    small: None, browsing: Open, tmp_path: Path
) -> None:
    """By key, so that of one batch of the source some records are written and some are not."""
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again", 2, configs={"max.message.bytes": "300"})
        texts = [f"k{number}" for number in range(25)]
        browser.put("orders", *some(*texts[:17]), Record(timestamp=1, key=b"k17", value=b"x" * 400), *some(*texts[18:]))
        page = await copied(browser, to="again")
        assert "The copy has ended: Kafka's answer:" in told(page)
        assert "orders-0 at offset 17 was not written. (MESSAGE_TOO_LARGE)" in told(page)
        count = int(re.findall(r"(\d+) records of orders were written", told(page))[0])
        written = [*await values(browser, "again", 0), *await values(browser, "again", 1)]
        assert 10 <= count == len(written) < 25
        left = re.findall(r"orders-0 from offset (\d+) until (\d+)", told(page))
        offsets = {offset for low, high in left for offset in range(int(low), int(high))}
        assert {texts[offset].encode() for offset in offsets} == {text.encode() for text in texts} - {*written}
        await configure(browser, "again", "max.message.bytes", "100000")
        page = await ended(browser, await browser.post("/topics/orders/copy", fields(page)))
        assert "That is all of it." in page.text
        for number in (0, 1):
            keys = [record.key for record in await records(browser, "again", number)]
            assert keys == sorted(keys, key=lambda key: int(str(key, "ascii")[1:])), "in order"
            assert len(keys) == len({*keys})
        assert sum([len(await records(browser, "again", number)) for number in (0, 1)]) == 25


async def configure(browser: Browsing, topic: str, name: str, value: str) -> None:
    done = await browser.do(f"/topics/{topic}/configure?{urlencode({'name': name, 'value': value})}")
    assert done.status == 200, done.page.text


@on_both
async def test_batches_that_are_too_large_are_split(browsing: Open, tmp_path: Path) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again", configs={"max.message.bytes": "400"})
        texts = [f"{number}" * 50 for number in range(10, 40)]
        browser.put("orders", *some(*texts))
        page = await copied(browser, to="again")
        assert "30 records of orders were written" in page.text
        assert await values(browser, "again") == [text.encode() for text in texts]


async def test_a_batch_whose_answer_did_not_come_is_in_doubt(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce, count = copying.produce_batch, 0

    async def is_cut_off(*given: Any) -> int:
        nonlocal count
        count += 1
        if count == 2:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the connection was closed")
        return await produce(*given)

    monkeypatch.setattr(copying, "produce_batch", is_cut_off)
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again")
        browser.put("orders", *some(*(f"v{number}" for number in range(25))))
        page = await copied(browser, to="again")
        assert "10 records of orders were written" in page.text
        assert "Of 10 more, from orders-0 at offset 10 on, it is not known whether they were written" in told(page)
        assert "orders-0 from offset 10 until 25" in told(page)


async def test_a_copy_is_stopped(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again")
        browser.put("orders", *some(*(f"v{number}" for number in range(25))))
        with gated(monkeypatch, 1) as gate:
            shown = await preview(browser, to="again")
            begun = await browser.post("/topics/orders/copy", fields(shown.page))
            await gate.reached.wait()
            page = await progress(browser, begun)
            assert "10 records of orders written to again so far" in page.text
            stopped = await browser.post(begun.headers["location"], fields(page))
            assert stopped.status == 303
            gate.opens.set()
            page = await ended(browser, begun)
        assert "20 records of orders were written to again" in page.text
        assert "It was stopped." in page.text
        assert "orders-0 from offset 20 until 25" in told(page)
        assert len(await records(browser, "again")) == 20


async def test_so_many_copies_at_a_time(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with writable(browsing, tmp_path) as browser:
        await browser.create("orders")
        await browser.create("again")
        browser.put("orders", *some(*(f"v{number}" for number in range(25))))
        form = fields((await preview(browser, to="again")).page)
        with gated(monkeypatch, 0) as gate:
            begun = [await browser.post("/topics/orders/copy", form) for _ in range(2)]
            refused = await browser.post("/topics/orders/copy", form)
            assert refused.status == 409
            assert "2 copies are under way" in refused.page.text
            gate.opens.set()
            for each in begun:
                await ended(browser, each)
        for _ in range(30):
            await ended(browser, await browser.post("/topics/orders/copy", form))
        assert (await browser.get(begun[0].headers["location"])).status == 404, "the last ones are kept"


async def test_rights_are_those_of_a_client(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders")
        await browser.create("again")
        browser.put("orders", Record(timestamp=1, value=b"secret"))
        await log_in(browser, "alice")
        await allow(browser, "alice", OP.WRITE, TOPIC, "again")
        refused = await preview(browser, to="again")
        assert refused.status == 403, "she may not read the source"
        assert "secret" not in refused.page.text
        await allow(browser, "alice", OP.READ, TOPIC, "orders")
        for target in ("orders", "new"):
            answer = await preview(browser, to=target)
            assert answer.status == 403, "she may not write the target"
            assert "TOPIC_AUTHORIZATION_FAILED" in answer.page.text
        page = await copied(browser, to="again")
        assert "1 record of orders was written to again" in page.text
        assert await values(browser, "again") == [b"secret"]
        await allow(browser, "alice", OP.WRITE, TOPIC, "new")
        refused = await preview(browser, to="new")
        assert refused.status == 403, "she may not create it"
        await allow(browser, "alice", OP.CREATE, TOPIC, "new")
        form = fields((await preview(browser, to="new")).page)
        begun = await browser.post("/topics/orders/copy", form)
        await ended(browser, begun)
        assert await values(browser, "new") == [b"secret"]
        other = browser.another()
        await log_in(other, "admin")
        assert (await other.get(begun.headers["location"])).status == 404, "a copy is its visitor's"
        form = fields((await preview(browser, to="again")).page)
        await forbid(browser, TOPIC, "again")
        assert (await browser.post("/topics/orders/copy", form)).status == 403


@pytest.mark.parametrize("way", ["the session", "the right to read"])
async def test_a_copy_ends_with(small: None, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await browser.create("orders", 3)
        await browser.create("again")
        for number in range(3):
            browser.put("orders", *some(*(f"v{place}" for place in range(10))), number=number)
        await log_in(browser, "alice")
        await allow(browser, "alice", OP.READ, TOPIC, "orders")
        await allow(browser, "alice", OP.WRITE, TOPIC, "again")
        form = fields((await preview(browser, to="again")).page)
        with gated(monkeypatch, 1) as gate:
            begun = await browser.post("/topics/orders/copy", form)
            await gate.reached.wait()
            if way == "the session":
                page = (await browser.get("/topics")).page
                await browser.post("/logout", page.button_form())
                await log_in(browser, "alice")
            else:
                await forbid(browser, TOPIC, "orders")
                await allow(browser, "alice", OP.DESCRIBE, TOPIC, "orders")
            gate.opens.set()
            await trio.testing.wait_all_tasks_blocked(0.1)
        await allow(browser, "alice", OP.READ, TOPIC, "orders")
        page = await ended(browser, begun)
        why = "The session has ended." if way == "the session" else "Kafka's answer: Topic authorization failed."
        assert f"The copy has ended: {why}" in told(page)
        assert len(await records(browser, "again")) <= 20


async def test_without_leave_to_write_there_is_nothing_of_it(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("orders")
        browser.put("orders", *some("a"))
        for address in ("/topics/orders/copy?to=again", "/topics/orders/copies/1"):
            assert (await browser.get(address)).status == 404
        for address in ("/topics/orders", "/topics/orders/records"):
            assert "Copy records" not in (await browser.get(address)).page.text
