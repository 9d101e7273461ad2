"""Whatever clients put into records, names and settings, a page has no element, attribute or direction of theirs."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlencode

from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.records import Record

from .helpers.browsing import Browsing, browsing
from .helpers.form_reader import FormReader
from .helpers.hostile import EVIL, UNSEEN, check_answer
from .test_pages import OFFSETS_AT_ONCE, ask, commit


async def check(browser: Browsing, target: str, *named: str) -> None:
    """The page shows what is named, and is made of the console's own elements only."""
    answer = await browser.get(target)
    assert answer.status in (200, 400, 404), target
    check_answer(answer, target)
    for text in named:
        assert text in answer.page.text, (target, text)


async def test_nothing_of_a_clients_gets_into_a_page(tmp_path: Path) -> None:
    evil = EVIL.encode()
    async with browsing(tmp_path, **OFFSETS_AT_ONCE) as browser:
        await browser.create("t")
        browser.put(
            "t",
            Record(timestamp=(1 << 63) - 1, key=evil, value=evil, headers=[(EVIL, evil), (EVIL, evil)]),
            Record(timestamp=-5, key=b"\xff\x00" + evil, value=bytes(range(256)), headers=[("\udcff", b"\xff")]),
            Record(timestamp=1, key=b"{" * 50_000, value=b'{"' + evil.replace(b'"', b"") + b'": 1}'),
            Record(timestamp=1, key=None, value=b"[" * 100_000),
        )
        await commit(browser, EVIL, "t", 1, EVIL)
        await ask(browser, ListGroupsRequest(), 4, EVIL)
        keeps_open = await browser.network.connect("test", 9092)
        query = urlencode(dict.fromkeys(("q", "sort", "page", "id", "key", "header", "contains", "x", EVIL), EVIL))
        shown = "alert(1)"
        of_topic = ("/topics/t", "/topics/t/0/log", "/topics/t/producers", "/topics/t/consumers")
        clusters = ("/transactions", "/acls", "/users", "/quotas", "/cluster")
        for target in ("/", "/topics", *of_topic, *clusters, "/connections"):
            await check(browser, target)
            await check(browser, f"{target}?{query}")
        await check(browser, "/groups", shown)
        for text in ("alert", EVIL, "x", ""):
            check_answer(await browser.get(f"/find?{urlencode({'q': text})}"), "find")
        await check(browser, f"/groups?{query}", shown)
        await check(browser, "/requests", shown)
        await check(browser, "/requests/1", shown)
        await check(browser, "/requests/slowest", shown)
        await check(browser, "/requests/errors", shown)
        await check(browser, f"/transaction?{query}", shown)
        await check(browser, f"/group/timeline?{query}", shown)
        await check(browser, f"/acls?topic={quote(EVIL)}")
        await check(browser, f"/group?{urlencode({'id': EVIL})}", shown, "\\u{202e}")
        await check(browser, f"/group?{urlencode({'id': EVIL + 'x'})}", shown)
        await check(browser, f"/topics/{EVIL.replace('/', '').encode().hex()}")
        for show in ("auto", "text", "json", "integer", "hex", "msgpack"):
            await check(browser, f"/topics/t/records?show={show}&keys={show}")
            for offset in range(4):
                await check(browser, f"/topics/t/0/{offset}?show={show}&keys={show}")
        await check(browser, "/topics/t/records", shown, "\\u{202e}")
        await check(browser, "/topics/t/0/0", shown, "\\0")
        await check(browser, f"/topics/t/records?{urlencode({'contains': EVIL})}", shown)
        for name in ("from", "show", "keys", "path", "at", "partition", "n", "rest"):
            await check(
                browser,
                f"/topics/t/records?{urlencode({name: EVIL, 'from': 'time'} if name != 'from' else {name: EVIL})}",
            )
        found = await browser.get(f"/topics/t/search?{urlencode({'contains': EVIL})}")
        check_answer(found, "search")
        assert not UNSEEN & set(found.body.decode())
        keeps_open.close()


async def test_nothing_of_a_clients_gets_into_a_form(tmp_path: Path) -> None:
    evil = EVIL.encode()
    async with browsing(tmp_path, console_allow_writes="true") as browser:
        await browser.create("t")
        browser.put(
            "t",
            Record(timestamp=1, key=evil, value=evil, headers=[(EVIL, evil), (EVIL, evil)]),
            Record(
                timestamp=1,
                key=b"</textarea><script>alert(1)</script>",
                value=b"</textarea><b>",
                headers=[("\udcff", None)],
            ),
        )
        await check(browser, "/topics/t/records")
        for offset in range(2):
            await check(browser, f"/topics/t/0/{offset}")
            await check(browser, f"/topics/t/0/{offset}/edit")
        for name in ("from", "record", "to"):
            await check(browser, f"/topics/t/produce?{urlencode({name: EVIL})}")
            await check(browser, f"/topics/t/send-again?{urlencode({'record': '0:0', name: EVIL})}")
        for name in (
            "to",
            "partition",
            "from",
            "at",
            "until",
            "key",
            "header",
            "contains",
            "path",
            "keeps",
            "rest",
            "range",
        ):
            check_answer(await browser.get(f"/topics/t/copy?{urlencode({'to': 't', name: EVIL})}"), f"copy, {name}")
        form = FormReader((await browser.get("/topics/t/copy?to=t&origin=yes")).page.html).fields
        for answer in (
            await browser.post("/topics/t/copy", {**form, "typed": EVIL}),
            await browser.post("/topics/t/copy", {**form, "to": EVIL, "rest": EVIL}),
            begun := await browser.post("/topics/t/copy", {**form, "typed": "t"}),
        ):
            check_answer(answer, "copy")
        await check(browser, begun.headers["location"])
        live = (await browser.get("/topics/t/tail?rest=0:0-0")).json["rows"]
        assert "<script" not in live
        assert "<b>" not in live
        exported = await browser.get("/topics/t/export?as=csv")
        assert exported.headers["content-disposition"].startswith("attachment")
        assert exported.headers["x-content-type-options"] == "nosniff"


async def test_a_record_of_ten_megabytes(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        await browser.create("t", configs={"max.message.bytes": "20000000"})
        browser.put("t", Record(timestamp=1, key=b"k", value=b"<b>" * 3_500_000))
        answer = await browser.get("/topics/t/records")
        assert len(answer.body) < 100_000
        assert "10.0 MiB" in answer.page.text
        assert len((await browser.get("/topics/t/0/0")).body) < 20_000_000
        assert len((await browser.get("/topics/t/0/0/value")).body) == 10_500_000


async def test_actions_show_what_they_are_given_and_no_more(tmp_path: Path) -> None:
    """Names in the address, in forms that are sent, in commands and in the errors that come back."""
    async with browsing(tmp_path, console_allow_writes="true", **OFFSETS_AT_ONCE) as browser:
        await browser.create("t")
        await browser.put_offset(EVIL, "t", 0, 0)
        names = (
            "id",
            "topics",
            "to",
            "at",
            "name",
            "partitions",
            "configs",
            "value",
            "peer",
            "topic",
            "partition",
            "offset",
        )
        query = urlencode(dict.fromkeys(names, EVIL))
        place = quote(EVIL.replace("/", ""), safe="")
        for target in (
            f"/create-topic?{query}",
            f"/create-topic?{urlencode({'name': 'a', 'configs': f'{EVIL}={EVIL}'.replace(chr(10), '')})}",
            f"/topics/t/configure?{urlencode({'name': EVIL, 'value': EVIL})}",
            f"/topics/t/add-partitions?{urlencode({'count': EVIL})}",
            f"/topics/{place}/delete",
            f"/reset-offsets?{query}",
            f"/reset-offsets?{urlencode({'id': EVIL, 'to': 'latest'})}",
            f"/delete-group?{urlencode({'id': EVIL})}",
            f"/abort-transaction?{query}",
            f"/disconnect?{query}",
            f"/end-session?{urlencode({'id': EVIL, 'member': EVIL})}",
        ):
            answer = await browser.get(target)
            assert answer.status in (200, 400, 404, 409), target
            check_answer(answer, target)
