"""Every page, in Chromium, at two sizes, light and dark: what axe finds that keeps people out who see little, or use no mouse,
and whether each column of each table can be read whole."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from .helpers.alone_process import console_at
from .helpers.every_page import FIRST, FIRST_ELSEWHERE, FIRST_OF_CONNECT, every_page, kind_of
from .helpers.recorded_connect import recorded_connect
from .helpers.served import Served
from .helpers.windows import SIZES, log_in, window

pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
axe = pytest.importorskip("axe_playwright_python.base", reason="axe is not installed (tools/setup.sh test)")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page
pytestmark = pytest.mark.slow
FAILING = ("serious", "critical")
RUN = """new Promise(requestAnimationFrame).then(() => axe.run({resultTypes: ["violations"]})).then(found => found.violations.map(
    one => ({id: one.id, impact: one.impact, help: one.help, nodes: one.nodes.map(node => node.html).slice(0, 3)})))"""

WIDTHS = (1280, 420)
LONG = "orders_of_the_warehouse_in_eu_west_1_by_customer_and_day_of_the_week_dead_letters_v2"
LONG_PAGES = (
    *("/topics", "/groups", "/connections", "/applications", "/requests"),
    *(f"/topics/{LONG}{page}" for page in ("", "/records", "/producers", "/consumers", "/settings", "/0/0", "/0/log")),
    *(f"/group{page}?id={LONG}" for page in ("", "/timeline")),
)
CUT = """() => [...document.querySelectorAll(".wide table")].flatMap(table => {
    const place = table.closest(".wide").getBoundingClientRect();
    const heads = [...table.tHead.querySelectorAll("th")].map(head => head.textContent.trim());
    const cells = [...table.querySelectorAll("th, td")].filter(cell => cell.offsetParent !== null && cell.textContent.trim());
    return cells.filter(cell => {
        const {left, right} = cell.getBoundingClientRect();
        const inner = cell.querySelector("pre");
        const isScrolled = inner !== null && inner.classList.contains("hex"); // a dump has lines of one width
        return left < place.left - 1 || right > place.right + 1 || right > innerWidth + 1
            || (!isScrolled && cell.scrollWidth > cell.clientWidth + 1);
    }).map(cell => `${heads[cell.cellIndex] || cell.cellIndex}: ${cell.textContent.trim().slice(0, 40)}`);
})"""
"""The cells of which a part is outside of the table's place, or of the cell."""


@pytest.fixture
def outside(chromium: Browser, secured: Served) -> Iterator[BrowserContext]:
    """A window in which nobody has logged in."""
    yield from window(chromium, secured.console, *SIZES["desk"], expected="the server responded with a status of 4")


def test_of_a_brokers_own_console(desk: BrowserContext, served: Served) -> None:
    pages = every_page(served.console)
    assert {kind_of(address) for address in FIRST} <= pages.keys()
    nothing_serious(desk.new_page(), pages.values())


def test_of_the_console_of_any_kafka(chromium: Browser, served: Served) -> None:
    first = (*FIRST_OF_CONNECT, *FIRST_ELSEWHERE)
    with (
        recorded_connect() as connect,
        console_at(served.address, "--allow-writes", "--connect-url", connect.url) as console,
    ):
        connect.connectors[LONG] = long_connector()
        pages = every_page(console, first)
        assert {kind_of(address) for address in first} <= pages.keys()
        for opened in window(chromium, console, *SIZES["desk"]):
            nothing_serious(opened.new_page(), [*pages.values(), f"/connect/{LONG}"])


def long_connector() -> dict[str, Any]:
    """One whose names have no place to break."""
    part = {"state": "FAILED", "worker_id": f"{LONG}:8083", "trace": f"{LONG}: {LONG}\n\tat {LONG}"}
    config = {"connector.class": f"org.{LONG}.{LONG}", "topics": f"{LONG},{LONG}2", LONG: LONG * 3}
    status = {"connector": part, "tasks": [{"id": number, **part} for number in range(12)]}
    return {"info": {"config": config, "type": "sink"}, "status": status}


def test_of_the_log_in_and_what_a_user_may_not(outside: BrowserContext) -> None:
    page = outside.new_page()
    nothing_serious(page, ["/login"])
    log_in(page, "alice", "wrong")
    page.get_by_role("alert").wait_for()
    nothing_serious(page, [None])
    log_in(page, "alice", "alices-secret")
    page.wait_for_url("**/topics")
    nothing_serious(page, [None, "/groups", "/topics/hidden", "/topics/hidden/delete", "/create-topic?name=new"])


@pytest.fixture
def long_names(served: Served) -> Iterator[None]:
    """A topic, a group, a member and clients whose names have no place to break."""
    with closing(KafkaProducer(bootstrap_servers=served.address, client_id=LONG)) as producer:
        value = json.dumps({LONG: [LONG * 3]}).encode()
        producer.send(LONG, key=LONG.encode(), value=value, headers=[(LONG, LONG.encode())]).get(timeout=60)
        reader = KafkaConsumer(
            LONG, bootstrap_servers=served.address, client_id=LONG, group_id=LONG, group_instance_id=LONG
        )
        with closing(reader):
            while not reader.assignment():
                reader.poll(100)
            reader.commit({TopicPartition(LONG, 0): OffsetAndMetadata(0, "", -1)})
            yield


def test_no_column_is_cut_however_long_names_are(desk: BrowserContext, long_names: None) -> None:
    page = desk.new_page()
    found = []
    for address in LONG_PAGES:
        page.goto(address)
        found += cut(page)
    assert not found, "\n".join(found)


def cut(page: Page) -> list[str]:
    """The cells of the page that cannot be read whole, at each width."""
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        found += [f"{page.url} at {width}: {cell}" for cell in page.evaluate(CUT)]
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            found.append(f"{page.url} at {width}: the page is {wide} wide")
    return found


def nothing_serious(page: Page, addresses: Iterable[str | None]) -> None:
    """At each address, and where the page is for None, in both sizes."""
    found = []
    for address in addresses:
        if address is not None:
            page.goto(address)
        page.evaluate(axe.AXE_SCRIPT)
        for size, scheme in SIZES.values():
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            found += [
                f"{page.url} ({scheme}, {size['width']} wide): {one}"
                for one in page.evaluate(RUN)
                if one["impact"] in FAILING
            ]
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size["width"], f"{page.url} is {wide} wide"
        found += cut(page)
    assert not found, "\n".join(found)
