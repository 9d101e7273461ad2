"""Records are read by offset, time and number, filtered and searched for, as their page's address says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import h11
import pytest
import trio
import trio.testing

from ottla.view.own.replica_log import ReplicaLog
from ottla.view.record_log import Batches
from ottla.view.record_search import Search
from ottla.wire.compression import ZSTD
from ottla.wire.records import Record, build_batch

from .helpers.browsing import Browsing, Open, Page, browsing, on_both


async def numbered(browser: Browsing, count: int, topic: str = "t", partitions: int = 1) -> None:
    """Records ``v0``, ``v1``, … with a key of ten and a header, a second apart, in turns on the partitions."""
    await browser.create(topic, partitions)
    for number in range(count):
        browser.put(
            topic,
            Record(
                timestamp=1_700_000_000_000 + number * 1000,
                key=b"k%d" % (number % 10),
                value=b"v%d." % number,
                headers=[("trace", b"%d" % number), ("all", None)],
            ),
            number=number % partitions,
        )


async def read(browser: Browsing, query: str, topic: str = "t") -> list[str]:
    """The values on a page, in its order."""
    answer = await browser.get(f"/topics/{topic}/records?{query}")
    assert answer.status == 200, answer.body
    return [word for word in answer.page.text.split() if word.startswith("v") and word.endswith(".")]


@on_both
async def test_where_a_page_begins(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 30)
        assert await read(browser, "n=3") == ["v29.", "v28.", "v27."]
        assert await read(browser, "from=oldest&n=2") == ["v0.", "v1."]
        assert await read(browser, "from=offset&at=7&n=2") == ["v7.", "v8."]
        assert await read(browser, "from=time&at=1700000012000&n=2") == ["v12.", "v13."]
        assert await read(browser, "from=time&at=2023-11-14T22:13:25Z&n=1") == ["v5."]
        assert await read(browser, "from=time&at=2023-11-14T23:13:25%2B01:00&n=1") == ["v5."]
        assert await read(browser, "from=time&at=2100-01-01") == []


@on_both
async def test_where_a_page_ends(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 30)
        assert await read(browser, "from=offset&at=7&until=9") == ["v7.", "v8."]
        assert await read(browser, "from=time&at=1700000012000&until=1700000014000") == ["v12.", "v13."]
        assert await read(browser, "until=2023-11-14T22:13:25Z&n=2") == ["v4.", "v3."]
        assert await read(browser, "from=oldest&until=1700000002000") == ["v0.", "v1."]
        assert await read(browser, "from=offset&at=28&until=99") == ["v28.", "v29."]
        assert await read(browser, "from=offset&at=9&until=7") == []
        assert await read(browser, "from=offset&at=0&until=20&contains=9.") == ["v9.", "v19."]
        for query in ("from=live&until=1", "until=x", "from=offset&until=x"):
            answer = await browser.get(f"/topics/t/records?{query}")
            assert [*answer.page.problems()] == ["until"], query
        exported = await browser.get("/topics/t/export?from=offset&at=7&until=9")
        assert len(exported.body.splitlines()) == 2


@pytest.mark.parametrize("start", ["newest", "oldest"])
@pytest.mark.parametrize("partitions", [1, 3])
@on_both
async def test_one_page_leads_to_the_next_and_nothing_is_left_out(
    browsing: Open, start: str, partitions: int, tmp_path: Path
) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 40, partitions=partitions)
        seen: list[str] = []
        target: str | None = f"/topics/t/records?from={start}&n=7"
        pages = 0
        while target is not None:
            page = (await browser.get(target)).page
            seen += [word for word in page.text.split() if word.startswith("v") and word.endswith(".")]
            target = page.links.get("Older ones", page.links.get("Newer ones"))
            pages += 1
        expected = [f"v{number}." for number in range(40)]
        assert seen == (expected[::-1] if start == "newest" else expected)
        assert pages == 6


@on_both
async def test_filters(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 30)
        assert await read(browser, "key=k3") == ["v23.", "v13.", "v3."]
        assert await read(browser, "key=hex:6b33&from=oldest") == ["v3.", "v13.", "v23."]
        assert await read(browser, "header=trace%3D17") == ["v17."]
        assert await read(browser, "header=nothing") == []
        assert len(await read(browser, "header=all")) == 30
        assert await read(browser, "contains=29") == ["v29."]
        assert await read(browser, "key=k3&contains=v1") == ["v13."]
        assert await read(browser, "partition=0&key=k3&n=1") == ["v23."]


def filters(page: Page) -> list[tuple[str | None, str | None]]:
    """The rows of the filter bar, as field and value, without the empty one at its end."""
    inputs = [each for tag, each in page.elements if tag == "input"]
    fields, operands = (
        [each.get("value") for each in inputs if each.get("name") == name] for name in ("field", "operand")
    )
    rows = list(zip(fields, operands, strict=True))
    assert rows[-1] == ("", "")
    return rows[:-1]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from=nowhere", "from"),
        ("show=xml", "show"),
        ("keys=xml", "keys"),
        ("partition=x", "partition"),
        ("n=-1", "n"),
        ("from=offset&at=x", "at"),
        ("from=offset&at=99999999999999999999", "at"),
        ("from=time", "at"),
        ("from=time&at=yesterday", "at"),
        ("from=time&at=99999999999999999", "at"),
        ("key=hex:zz", "key"),
        ("contains=hex:z", "contains"),
        ("header=a%3Dhex:z", "header"),
        ("path=$..v", "path"),
        ("rest=1-2", ""),
    ],
)
@on_both
async def test_what_cannot_be_is_said_at_its_field_and_the_form_stays(
    browsing: Open, query: str, field: str, tmp_path: Path
) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", Record(timestamp=1, value=b"v0."))
        kept = {"key": "k1", "header": "a=b", "contains": '"x"', "path": "$.v = <5>"}
        others = urlencode({name: value for name, value in kept.items() if name != field})
        answer = await browser.get(f"/topics/t/records?{query}&{others}")
        assert answer.status == 400
        page = answer.page
        assert "v0." not in page.text
        if field:
            ((wrong, why),) = page.problems().items()
            assert wrong == (field if field not in kept else "operand")
            assert why.endswith(".")
        else:
            assert "The rest of a search is PARTITION:LOW-HIGH." in page.text
        rows = {"key": ("key", "k1"), "header": ("header a", "b"), "contains": ("value", '"x"'), "path": ("$.v", "<5>")}
        rows |= {
            "key=hex:zz": ("key", "hex:zz"),
            "contains=hex:z": ("value", "hex:z"),
            "header=a%3Dhex:z": ("header a", "hex:z"),
        }
        rows["path=$..v"] = ("$..v", "")
        assert filters(page) == [rows[query if name == field else name] for name in kept]
        if field in ("at", "n"):
            values = {each.get("name"): each.get("value") for tag, each in page.elements if tag == "input"}
            assert values[field] == dict(parse_qsl(query)).get(field, "")
        assert (await browser.get(f"/topics/t/search?{query}")).status == 400


async def test_a_record_is_shown_where_it_cannot_be_shown_so(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", Record(timestamp=1, value=b"v0."))
        answer = await browser.get("/topics/t/0/0?show=xml")
        assert answer.status == 400
        assert "Records are shown as auto, text," in answer.page.text
        assert "v0." in answer.page.text


@on_both
async def test_numbers_far_out_are_an_empty_page(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 3)
        assert await read(browser, "from=offset&at=9223372036854775807") == []
        assert await read(browser, "from=time&at=9999999999999999") == []
        assert await read(browser, "rest=0:5-3.7:0-9.0:1-9223372036854775807&from=oldest") == ["v1.", "v2."]
        assert len(await read(browser, "n=9999999")) == 3


@on_both
async def test_one_record_with_all_of_its_bytes(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        value = json.dumps({"id": (1 << 63) - 1, "text": "ü" * 5000}, ensure_ascii=False).encode()
        record = Record(timestamp=1_700_000_000_000, key=b"\xff\x00", value=value, headers=[("h", b"1"), ("h", None)])
        browser.partition("t").append(build_batch([record], compression=ZSTD), now_ms=1, internal=True)
        page = (await browser.get("/topics/t/0/0")).page
        assert '"id": 9223372036854775807' in page.run_on
        assert "00000000 ff 00" in page.text
        assert "Compression zstd" in page.text
        assert "kafka-console-consumer.sh --bootstrap-server test:9092 --topic t --partition 0 --offset 0" in page.text
        assert (await browser.get("/topics/t/0/0?show=hex")).page.text.count("c3 bc") > 100
        downloaded = await browser.get("/topics/t/0/0/value")
        assert downloaded.body == value
        assert downloaded.headers["content-type"] == "application/octet-stream"
        assert downloaded.headers["content-disposition"].startswith("attachment")
        assert (await browser.get("/topics/t/0/0/key")).body == b"\xff\x00"
        assert (await browser.get("/topics/t/0/0/nothing")).status == 404
        assert (await browser.get("/topics/t/0/1")).status == 404


@on_both
async def test_tombstones_and_gaps_are_shown(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", Record(timestamp=1, key=b"k", value=None))
        records = [Record(timestamp=2, offset=0, value=b"v0."), Record(timestamp=3, offset=5, value=b"")]
        browser.partition("t").append(build_batch(records), now_ms=1, internal=True)
        page = (await browser.get("/topics/t/records?from=oldest&partition=0")).page
        assert "tombstone" in page.text
        assert "4 offsets without a record" in page.text
        assert "empty" in page.text


async def events(browser: Browsing, target: str) -> list[tuple[str, str]]:
    body = (await browser.get(target)).body.decode()
    found = []
    for event in body.split("\n\n")[:-1]:
        name, *data = event.split("\n")
        found.append((name.removeprefix("event: "), "\n".join(line.removeprefix("data: ") for line in data)))
    return found


@on_both
async def test_a_search_tells_what_it_finds_and_ends(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 30)
        *_, (rows, html), (done, told) = await events(browser, "/topics/t/search?key=k3&from=oldest")
        assert rows == "rows"
        assert [html.index(f"v{number}.") for number in (3, 13, 23)] == sorted(
            html.index(f"v{number}.") for number in (3, 13, 23)
        )
        assert done == "done"
        end = json.loads(told)
        assert end["more"] is None
        assert end["progress"] == {
            "records": "30",
            "bytes": end["progress"]["bytes"],
            "found": "3",
            "percent": 100,
            "problems": [],
        }
        *_, (_, told) = await events(browser, "/topics/t/search?key=k3&n=2")
        assert await read(browser, json.loads(told)["more"].partition("?")[2]) == ["v3."]


@on_both
async def test_a_search_whose_reader_goes_away_ends(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", *[Record(timestamp=1, value=b"x")] * 1000)
        searches = browser.console.view
        is_under_way = trio.Event()
        stepped = 0
        step = Search.step

        async def endless(search: Search) -> None:
            nonlocal stepped
            stepped += 1
            is_under_way.set()
            await trio.sleep(0.01)

        Search.step = endless  # type: ignore[method-assign]
        try:
            stream, protocol = await browser.open("/topics/t/search?contains=nothing")
            with trio.fail_after(20):
                await is_under_way.wait()
                while not isinstance(protocol.next_event(), h11.Response):
                    protocol.receive_data(await stream.receive())
                stream.close()
                before = -1
                while before != stepped:
                    before = stepped
                    await trio.sleep(0.3)
        finally:
            Search.step = step  # type: ignore[method-assign]
        assert searches.services is not None, "the broker goes on"
        assert (await browser.get("/topics/t")).status == 200


@on_both
async def test_a_json_path_filters(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        for number in range(30):
            value = json.dumps({"v": {"list": [number]}, "shown": f"v{number}."})
            browser.put("t", Record(timestamp=number, value=value.encode()))
        browser.put("t", Record(timestamp=1, value=b"{no json"), Record(timestamp=1, value=None))

        async def found(path: str, **others: str) -> list[str]:
            answer = await browser.get(f"/topics/t/records?{urlencode({'path': path, **others})}")
            assert answer.status == 200, answer.body
            return re.findall(r"v\d+\.", answer.page.text)

        assert await found("$.v.list[0] = 17") == ["v17."]
        assert len(await found("$.v['list'][0]")) == 30
        assert await found("$.v.list[1]") == []
        assert await found("$.v.list[0] = 3", contains="shown", **{"from": "oldest"}) == ["v3."]
        answer = await browser.get("/topics/t/records?path=$..v")
        assert answer.status == 400
        assert "$..v is no path of JSON: at character 3 a name should stand" in answer.page.problems()["operand"]
        assert await found("$.v.list[0] == 17") == ["v17."]
        assert await found("$.shown == 'v17.'") == ["v17."]


async def test_a_json_path_goes_through_large_batches_too(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        records = [Record(timestamp=1, value=b'{"n": %d, "v": "v%d."}' % (number, number)) for number in range(3000)]
        browser.partition("t").append(build_batch(records, compression=ZSTD), now_ms=1, internal=True)
        for start in ("oldest", "newest"):
            rows = [
                html
                for name, html in await events(browser, f"/topics/t/search?from={start}&path=$.n%3D2500")
                if name == "rows"
            ]
            assert re.findall(r"v\d+\.", "".join(rows)) == ["v2500."]


async def test_keys_and_values_are_decoded_as_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text('{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}')
    folder = tmp_path / "data"
    async with browsing(folder, console_avro_schemas=str(tmp_path / "order.avsc")) as browser:
        await browser.create("t")
        key = ((1 << 62) + 1).to_bytes(8, "big")
        browser.put("t", Record(timestamp=1, key=key, value=b"\x54"), Record(timestamp=1, key=key, value=b"\xff"))
        page = (await browser.get("/topics/t/records?show=avro&keys=integer&from=oldest")).page
        assert '"id": 42' in page.run_on
        assert page.text.count(str((1 << 62) + 1)) == 2
        assert "ff" in page.text
        assert "The record ends within a number." in page.text
        link = page.links["0"]
        assert '"id": 42' in (await browser.get(link)).page.run_on
        found = (await browser.get("/topics/t/records?show=avro&keys=integer&path=$.id%3D42")).page
        assert '"id": 42' in found.run_on
        assert "within a number" not in found.text


async def test_a_schema_for_exactly_this_topic_is_used_without_being_asked_for(tmp_path: Path) -> None:
    (tmp_path / "order.avsc").write_text('{"type": "record", "name": "O", "fields": [{"name": "id", "type": "long"}]}')
    (tmp_path / "any.avsc").write_text('"long"')
    schemas = f"orders={tmp_path / 'order.avsc'},{tmp_path / 'any.avsc'}"
    async with browsing(tmp_path / "data", console_avro_schemas=schemas) as browser:
        for topic in ("orders", "others"):
            await browser.create(topic)
            browser.put(topic, Record(timestamp=1, key=b"\x54", value=b"\x54", headers=[("h", b"\x54")]))
            browser.put(topic, Record(timestamp=1, value=b"v1."), Record(timestamp=1, key=b"gone", value=None))
        page = (await browser.get("/topics/orders/records?from=oldest")).page
        assert '"id": 42' in page.run_on
        assert "v1. 2 bytes follow the value" in page.text, "what the schema is not of is shown raw, with why"
        assert "tombstone" in page.text
        record = (await browser.get(page.links["0"])).page
        assert record.run_on.count('"id": 42') == 1, "it is the value's, not the key's"
        assert record.text.count("54") == 0
        found = (await browser.get("/topics/orders/records?path=$.id%3D42")).page
        assert '"id": 42' in found.run_on
        assert "1 found" in found.text
        line, *_ = [json.loads(line) for line in (await browser.get("/topics/orders/export")).body.splitlines()][::-1]
        assert (line["value"], line["value_as"], line["key"], line["key_as"]) == ({"id": 42}, "avro", "T", "text")
        assert '"id"' not in (await browser.get("/topics/orders/records?show=text")).page.text
        others = (await browser.get("/topics/others/records?from=oldest")).page
        assert " 42 " not in others.text, "a schema for all topics has to be asked for"
        assert "42" in (await browser.get("/topics/others/records?from=oldest&show=avro")).page.text


async def test_an_offset_without_a_record_leads_to_the_next_one(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        records = [Record(timestamp=2, offset=0, value=b"v0."), Record(timestamp=3, offset=5, value=b"v5.")]
        browser.partition("t").append(build_batch(records), now_ms=1, internal=True)
        answer = await browser.get("/topics/t/0/2")
        assert answer.status == 404
        assert "It was compacted away, or never existed." in answer.page.text
        assert "v5." in (await browser.get(answer.page.links["The next record, 5"])).page.text
        assert "ends before offset 6" in (await browser.get("/topics/t/0/9")).page.text
        browser.partition("t").log.delete_records_before(3)
        gone = (await browser.get("/topics/t/0/1")).page
        assert "begins at offset 3" in gone.text
        assert gone.links["The next record, 5"] == "/topics/t/0/5"
        assert "4 offsets" not in (await browser.get("/topics/t/records?partition=0")).page.text


async def test_a_page_is_made_of_its_first_window_however_long_that_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    reads = 0

    async def slow(log: ReplicaLog, start: int, end: int, max_bytes: int) -> Batches | None:
        nonlocal reads
        await trio.sleep(2)
        reads += 1
        return await read(log, start, end, max_bytes)

    async with browsing(tmp_path) as browser:
        await numbered(browser, 300)
        read = ReplicaLog.read
        monkeypatch.setattr(ReplicaLog, "read", slow)
        page = (await browser.get("/topics/t/records?contains=v29&n=50")).page
        assert "v299." in page.text
        assert reads == 1, "there was no time for more"
        assert [1 for _, attributes in page.elements if "data-search" in attributes], "which goes on by itself"
