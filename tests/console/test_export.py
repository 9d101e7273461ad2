"""What a search finds comes as a file: every byte of it safe with programs that round numbers, and with spreadsheets."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import h11
import pytest
import trio

from ottla.console import export
from ottla.console.decoding import Decoding
from ottla.console.export import content
from ottla.view import record_search as records_view
from ottla.view.record_search import Search
from ottla.wire.compression import ZSTD
from ottla.wire.control_records import ControlRecordType, EndTransactionMarker, build_end_marker_batch
from ottla.wire.records import Record, build_batch

from .helpers.browsing import Browsing, Open, browsing, on_both
from .test_record_pages import numbered


async def lines(browser: Browsing, query: str = "") -> list[dict[str, Any]]:
    answer = await browser.get(f"/topics/t/export?{query}")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["content-disposition"] == 'attachment; filename="t.jsonl"'
    return [json.loads(line) for line in answer.body.splitlines()]


async def rows(browser: Browsing, query: str = "") -> list[dict[str, str]]:
    answer = await browser.get(f"/topics/t/export?as=csv&{query}")
    assert answer.headers["content-type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))


@on_both
async def test_everything_that_a_search_finds(browsing: Open, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await numbered(browser, 700, partitions=2)
        assert [line["value"] for line in await lines(browser, "partition=1&key=k3&from=oldest")] == [
            f"v{number}." for number in range(3, 700, 10)
        ]
        found = await lines(browser)
        assert sorted(line["value"] for line in found) == sorted(f"v{number}." for number in range(700))
        newest = [line["value"] for line in await lines(browser, "from=newest&partition=0&n=3")]
        assert newest == ["v698.", "v696.", "v694."]
        assert len(await lines(browser, "n=30")) == 30
        assert len(await rows(browser, "from=oldest")) == 700
        page = (await browser.get("/topics/t/records?key=k3&n=5")).page
        assert len([json.loads(line) for line in (await browser.get(page.links["JSON lines"])).body.splitlines()]) == 70
        assert "100,000 records" in page.text


async def test_what_stands_in_a_line(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        big = {"id": (1 << 63) - 1, "n": 5, "x": 1.10, "exact": 0.1}
        browser.put(
            "t",
            Record(
                timestamp=1_700_000_000_000,
                key=b"k",
                value=json.dumps(big).encode(),
                headers=[("h", b"1"), ("h", None)],
            ),
            Record(timestamp=(1 << 63) - 1, key=None, value=None, headers=[("h", b"\xff")]),
            Record(timestamp=-1, key=b"\xff\0", value=b""),
            Record(timestamp=1, key=b"[1]", value=b'{"a": 1, "a": 2}'),
        )
        first, second, third, fourth = await lines(browser, "from=oldest")
        assert first == {
            "topic": "t",
            "partition": 0,
            "offset": "0",
            "timestamp": "1700000000000",
            "time": "2023-11-14T22:13:20.000Z",
            "key": "k",
            "key_as": "text",
            "value": {"id": "9223372036854775807", "n": 5, "x": 1.1, "exact": 0.1},
            "value_as": "json",
            "headers": [{"name": "h", "value": "1", "as": "text"}, {"name": "h", "value": None, "as": "null"}],
            "transaction": None,
        }
        assert (second["key"], second["value"], second["value_as"]) == (None, None, "null")
        assert (second["timestamp"], second["time"]) == ("9223372036854775807", None)
        assert second["headers"] == [{"name": "h", "value": "/w==", "as": "base64"}]
        assert (third["key"], third["key_as"]) == ("/wA=", "base64")
        assert (third["value"], third["value_as"]) == ("", "text"), "empty is not null"
        assert fourth["value_as"] == "text", "a name that comes twice would be lost"
        assert [line["value"] for line in await lines(browser, "from=oldest&show=hex")][2:3] == [""]


async def test_a_value_is_as_it_is_shown() -> None:
    decoding = Decoding()
    assert content(b"\0\0\0\0\0\0\0\5", "integer", decoding, "t") == ("integer", 5)
    assert content(b"\x7f" + b"\xff" * 7, "integer", decoding, "t") == ("integer", str((1 << 63) - 1))
    assert content(b"\x81\xa1a\xcf" + b"\xff" * 8, "msgpack", decoding, "t") == ("msgpack", {"a": str((1 << 64) - 1)})
    assert content(b"abc", "integer", decoding, "t") == ("text", "abc")
    assert content(b"5", "auto", decoding, "t") == ("text", "5")
    assert content(b"5", "json", decoding, "t") == ("json", 5)
    assert content(b'{"a": 5}', "text", decoding, "t") == ("text", '{"a": 5}')
    assert content(b"\xff", "hex", decoding, "t") == ("base64", "/w==")
    assert content(b"[" * 5000, "auto", decoding, "t").kind == "text"
    assert content(b"[" * 150 + b"]" * 150, "auto", decoding, "t").kind == "text"


async def test_a_spreadsheet_computes_nothing(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "'", "plain", 'a,"b"\n=c', "\uff1d1"]
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put(
            "t",
            *[Record(timestamp=1, key=text.encode(), value=text.encode(), headers=[("=h", b"=v")]) for text in texts],
        )
        browser.put("t", Record(timestamp=-1, value=None), Record(timestamp=1, value=b""))
        found = await rows(browser, "from=oldest")
        for text, row in zip(texts, found, strict=False):
            for cell in (row["key"], row["value"]):
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\uff1d"))
                assert cell.removeprefix("'") == text
            assert json.loads(row["headers"]) == [{"name": "=h", "value": "=v", "as": "text"}]
        assert [(row["value"], row["value_as"]) for row in found[-2:]] == [("", "null"), ("", "text")]
        assert found[-2]["timestamp"] == "-1"


async def test_markers_are_left_out_and_what_they_say_is_told(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        for sequence, kind in enumerate([ControlRecordType.ABORT, ControlRecordType.COMMIT]):
            batch = build_batch(
                [Record(timestamp=1, value=b"v")],
                producer_id=5,
                producer_epoch=0,
                base_sequence=sequence,
                is_transactional=True,
            )
            browser.partition("t").append(batch, now_ms=1, internal=True)
            marker = build_end_marker_batch(EndTransactionMarker(kind, 0), producer_id=5, producer_epoch=0, timestamp=1)
            browser.partition("t").append(marker, now_ms=1, internal=True)
        assert [line["transaction"] for line in await lines(browser, "from=oldest")] == ["aborted", "committed"]


async def test_large_values_are_whole_and_come_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_view, "MOST_KEPT_AT_ONCE", 20_000)
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        value = base64.b64encode(bytes(range(256)) * 30)
        for _ in range(5):
            records = [Record(timestamp=1, value=value) for _ in range(3)]
            browser.partition("t").append(build_batch(records, compression=ZSTD), now_ms=1, internal=True)
        for start in ("oldest", "newest"):
            found = await lines(browser, f"from={start}")
            assert len(found) == 15
            assert all(line["value"] == value.decode() for line in found)
            offsets = [int(line["offset"]) for line in found]
            assert offsets == sorted(offsets, reverse=start == "newest")


async def test_the_bound_of_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "MOST_BYTES", 10_000)
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        for _ in range(50):
            browser.put("t", Record(timestamp=1, value=b"x" * 20_000))
        assert 1 <= len(await lines(browser, "from=oldest")) < 50


async def test_what_cannot_be_read_cuts_the_file_off(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        bad = build_batch([Record(timestamp=1, value=b"x" * 100)])
        browser.put("t", Record(timestamp=1, value=b"good"))
        browser.partition("t").append(bad, now_ms=1, internal=True)
        file = next(tmp_path.glob("t-0/*.log"))
        data = bytearray(file.read_bytes())
        data[-5] ^= 1
        file.write_bytes(data)
        with pytest.raises(h11.RemoteProtocolError):
            await browser.get("/topics/t/export?from=oldest")


@pytest.mark.parametrize("query", ["as=xml", "path=x", "partition=9", "show=none"])
async def test_an_export_of_what_cannot_be(query: str, tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        assert (await browser.get(f"/topics/t/export?{query}")).status == 400


async def test_an_export_whose_reader_goes_away_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t")
        browser.put("t", Record(timestamp=1, value=b"x"))
        is_under_way, has_ended = trio.Event(), trio.Event()

        async def endless(search: Search) -> None:
            is_under_way.set()
            try:
                await trio.sleep_forever()
            finally:
                has_ended.set()

        monkeypatch.setattr(Search, "step", endless)
        stream, _ = await browser.open("/topics/t/export")
        with trio.fail_after(20):
            await is_under_way.wait()
            stream.close()
            await has_ended.wait()
