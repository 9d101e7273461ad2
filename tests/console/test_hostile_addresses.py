"""Every address of the application, from its own table, is given what no person's browser sends; none fails, none is fooled.

Addresses and the names of what is in their queries are found in the console itself, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

import ottla.console
from ottla.controller.quorum.snapshot_records import quota_record
from ottla.group_coordinator.committed_offsets import each_commit
from ottla.security.acl import CLUSTER_NAME, Operation, ResourceType
from ottla.security.entities import CLIENTS, Entity
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.records import Record

from .helpers.browsing import Browsing, Open, browsing, browsing_elsewhere
from .helpers.hostile import EVIL, check_answer
from .helpers.secured import WRITES, allow, log_in, set_password, write
from .test_admin_pages import TRANSACTIONS_AT_ONCE, began
from .test_inside_pages import client, join
from .test_pages import OFFSETS_AT_ONCE, ask

REFUSED = (303, 400, 403, 404, 405, 409)
NUMBERS = (
    "-1",
    "00",
    "9" * 18,
    str((1 << 63) - 1),
    str(1 << 63),
    str(1 << 64),
    "9" * 400,
    "1e999",
    "NaN",
    "\uff10",
    "\u0661",
)
TEXTS = (
    EVIL,
    "",
    "%",
    "..",
    "../../etc/passwd",
    "a" * 3000,
    "\ud800",
    "\r\nSet-Cookie: a=b",
    "{{7*7}}",
    "$.a[0]",
    "0:0-1",
    "0:0",
)
RAW = ("%ff%fe", "%00", "%c0%ae%c0%ae", "%2e%2e", "%0d%0aX:1", "%f0%9f", "%E2%80%AE", "%25%32%66")
"""Percent-encoded already: what is no UTF-8, and what is no character to show."""
QUERIES = 6
METHODS = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "evil")


def query_names() -> list[str]:
    """Whatever the console's code asks a query or a form for."""
    folder = Path(ottla.console.__file__).parent
    text = "".join(file.read_text() for file in sorted(folder.glob("*.py")))
    found = set(re.findall(r"""\.get(?:list)?\(\s*"([a-z_]+)\"""", text))
    assert {"id", "q", "sort", "rest", "record", "topics", "typed", "series"} <= found
    return sorted(found)


def paths(template: str) -> Iterator[str]:
    """What an address is with what is there, and with what is hostile."""
    yield made(template, "t", "0")
    for text in (quote(EVIL.replace("/", ""), safe=""), *RAW, "a" * 3000):
        if "{" in template:
            yield made(template, text, "0")
    for number in NUMBERS:
        if ":int}" in template:
            yield made(template, "t", quote(number))


def made(template: str, text: str, number: str) -> str:
    return re.sub(r"\{\w+:int\}", number, re.sub(r"\{\w+(:path)?\}", text, template))


def queries(seed: str, names: list[str]) -> Iterator[str]:
    """Some of all names, in combinations that are other ones for each address, and the same each time."""
    chance = random.Random(seed)
    values = [quote_plus(each, errors="surrogatepass") for each in (*NUMBERS, *TEXTS)] + list(RAW)
    for _ in range(QUERIES):
        some = chance.sample(names, len(names) // 3)
        yield "&".join(f"{name}={chance.choice(values)}" for name in some for _ in range(chance.choice((1, 1, 2))))


def addresses(browser: Browsing) -> list[tuple[str, frozenset[str]]]:
    """Those of the application's table, with their methods, and those of the log-in."""
    side = browser.alone or browser.console
    found = [(route.path, frozenset(route.methods or ())) for route in side.routes]
    assert len(found) > 25
    return [
        *found,
        ("/login", frozenset({"GET", "POST"})),
        ("/logout", frozenset({"POST"})),
        ("/nothing{what}", frozenset()),
    ]


async def fill(browser: Browsing) -> None:
    """Names that are markup, wherever names may be anything."""
    evil = EVIL.encode()
    await browser.create("t", configs={"max.message.bytes": "1000000"})
    browser.put(
        "t",
        Record(timestamp=(1 << 63) - 1, key=evil, value=evil, headers=[(EVIL, evil), (EVIL, evil)]),
        Record(timestamp=-5, key=b"\xff\x00" + evil, value=bytes(range(256)), headers=[("\udcff", b"\xff")]),
        Record(timestamp=1, key=None, value=None),
    )
    await browser.put_offset(EVIL, "t", 0, 1)
    await set_password(browser, EVIL, "secret")
    await write(browser, quota_record(Entity(CLIENTS, EVIL), "producer_byte_rate", 1e9))


async def look_everywhere(browser: Browsing) -> None:
    names = query_names()
    browser.renews = False
    for template, _ in addresses(browser):
        for path in paths(template):
            await look(browser, path)
        there = made(template, "t", "0")
        for query in (*queries(template, names), f"id={quote(EVIL)}", "&" * 50, "=".join("ab" * 50), "%"):
            await look(browser, f"{there}?{query}")


async def look(browser: Browsing, target: str) -> None:
    answer = await browser.get(target)
    assert answer.status in (200, *REFUSED), (answer.status, target)
    check_answer(answer, target)


@pytest.mark.parametrize("opened", [browsing, browsing_elsewhere], ids=["own", "elsewhere"])
async def test_whatever_is_asked_for_every_address_has_an_answer(opened: Open, tmp_path: Path) -> None:
    properties = {**OFFSETS_AT_ONCE, **TRANSACTIONS_AT_ONCE, "group_initial_rebalance_delay_ms": "0"}
    async with opened(tmp_path, **properties, console_allow_writes="true") as browser:
        await fill(browser)
        async with client(browser, EVIL) as connected:
            await began(browser, connected, EVIL, "t")
            await join(connected, f"{EVIL}2", {"t": [0]})
            await ask(browser, ListGroupsRequest(), 4, EVIL)
            await look_everywhere(browser)


async def test_the_same_of_one_who_has_logged_in(tmp_path: Path) -> None:
    async with browsing(tmp_path, WRITES) as browser:
        await log_in(browser, "admin")
        await fill(browser)
        await allow(browser, EVIL, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
        await allow(browser, EVIL, Operation.READ, ResourceType.GROUP, "<b>evil</b>".replace("/", ""))
        await allow(browser, EVIL, Operation.READ, ResourceType.TOPIC, "t")
        await look_everywhere(browser)
        for path in ("/acls", "/acls?topic=t", "/users", "/quotas", f"/group?id={quote(EVIL)}"):
            answer = await browser.get(path)
            assert "alert(1)" in answer.page.text, path
            check_answer(answer, path)
        stranger = browser.another()
        for template, _ in addresses(browser):
            answer = await stranger.get(made(template, "t", "0"))
            assert answer.status in (200, 303, 401, 404, 405), template
            assert answer.status != 200 or template in ("/login",), template
            check_answer(answer, template)


async def test_whoever_sends_it_what_is_not_asked_for_does_nothing(tmp_path: Path) -> None:
    """Other methods, other sites' pages and other names, at every address; with the token of a form, too."""
    async with browsing(tmp_path, console_allow_writes="true", **OFFSETS_AT_ONCE) as browser:
        await fill(browser)
        token = (await browser.get("/topics/t/delete")).page.button_form()
        form = {
            **token,
            "typed": "t",
            "name": "new",
            "partitions": "1",
            "id": EVIL,
            "to": "latest",
            "value": "v",
            "records": "0:0",
        }
        for template, methods in addresses(browser):
            path = made(template, "t", "0")
            for method in METHODS:
                if method not in methods:
                    answer = await browser.get(path, method=method, Origin="http://localhost:8080")
                    assert answer.status in (403, 404, 405), (method, path)
            for headers in (
                {"Host": "evil.example"},
                {"Origin": "https://evil.example"},
                {"Origin": "null"},
                {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
            ):
                for answer in (await browser.get(path, **headers), await browser.post(path, form, **headers)):
                    assert answer.status in (403, 421), (headers, path)
                    check_answer(answer, path)
            for wrong in ({**form, "token": "x"}, {**form, "token": EVIL}):
                assert (await browser.post(path, wrong)).status in (403, 404, 405), path
        assert [topic for topic in browser.services.metadata.topics.values() if topic.name == "new"] == []
        assert browser.partition("t").log.high_watermark == 3, "nothing was written"
        assert browser.services.metadata.image.topic_config("t") == {"max.message.bytes": "1000000"}
        group = browser.services.groups.find(EVIL)
        assert group is not None
        assert [found.value.offset for _, _, found in each_commit(group.offsets)] == [1]
