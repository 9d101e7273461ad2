"""Records in Debian's Chromium: watched as they come, filtered, taken home as files, written, edited and sent again."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from kafka import KafkaProducer

from .helpers.served import Served
from .helpers.windows import filter_records

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page
pytestmark = pytest.mark.slow
expect = playwright.expect


def send(served: Served, topic: str, *values: str) -> None:
    with KafkaProducer(bootstrap_servers=served.address) as producer:
        for value in values:
            producer.send(topic, value.encode(), key=b"k")


def asked(page: Page) -> list[str]:
    """The tails that the page asks for from now on."""
    found: list[str] = []
    page.on("request", lambda request: found.append(request.url) if "/tail?" in request.url else None)
    return found


def test_records_are_watched_as_they_come(context: BrowserContext, served: Served) -> None:
    page = context.new_page()
    topic = f"watched-{page.evaluate('innerWidth')}"
    send(served, topic, "first")
    page.goto(f"/topics/{topic}/records")
    page.get_by_label("From").select_option("live")
    filter_records(page, "value", "contains", "see-")
    expect(page.locator("#progress")).to_contain_text("Live")
    send(served, topic, "see-one", "hidden", "see-two")
    expect(page.locator("#rows")).to_contain_text("see-two")
    expect(page.locator("#rows")).to_contain_text("see-one")
    expect(page.locator("#rows")).not_to_contain_text("hidden")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#progress")).to_contain_text("Paused")
    before = page.locator("#rows tr").count()
    send(served, topic, "see-three")
    tails = asked(page)
    page.get_by_role("button", name="Go on").click()
    expect(page.locator("#rows")).to_contain_text("see-three")
    assert tails
    assert page.locator("#rows tr").count() == before + 1


def test_a_page_that_falls_behind_is_bounded_and_says_so(desk: BrowserContext, served: Served) -> None:
    page = desk.new_page()
    send(served, "flood", "x")
    page.goto("/topics/flood/records?from=live&n=500")
    expect(page.locator("#progress")).to_contain_text("Live")
    for _ in range(2):
        send(served, "flood", *[f"v{number}" for number in range(1500)])
    expect(page.locator("#progress")).to_contain_text("were not shown, for they came too fast")
    expect(page.locator("#rows")).to_contain_text("v1499")
    assert page.locator("#rows tr").count() <= 500


def test_seven_live_tabs(desk: BrowserContext, served: Served) -> None:
    """A browser has six connections for all tabs of a site: none of them may be kept."""
    send(served, "tabs", "before")
    pages = [desk.new_page() for _ in range(7)]
    for page in pages:
        page.goto("/topics/tabs/records?from=live")
    send(served, "tabs", "after")
    for page in pages:
        page.bring_to_front()
        expect(page.locator("#rows")).to_contain_text("after")


def test_a_hidden_tab_asks_for_nothing(desk: BrowserContext, served: Served) -> None:
    send(served, "tabs", "before")
    page = desk.new_page()
    page.add_init_script(
        "let gone = false; Object.defineProperty(document, 'hidden', {get: () => gone}); window.go = to => { gone = to; };"
    )
    page.clock.install()
    page.goto("/topics/tabs/records?from=live")
    with page.expect_response("**/tail?*"):
        page.clock.run_for(2_000)
    page.evaluate("go(true)")
    tails = asked(page)
    page.clock.run_for(10_000)  # ten times as long as it waits between two looks
    assert tails == []
    with page.expect_request("**/tail?*"):
        page.evaluate("go(false)")
        page.clock.run_for(2_000)


def test_a_json_path_and_what_it_finds_as_files(context: BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/topics/orders/records?n=5")
    filter_records(page, "$.total", "equals", str((1 << 63) - 1 - 77))
    expect(page.locator("#rows tr")).to_have_count(1)
    expect(page.locator("#rows")).to_contain_text("customer-77")
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON lines").click()
    assert download.value.suggested_filename == "orders.jsonl"
    (line,) = [json.loads(text) for text in download.value.path().read_text().splitlines()]
    assert line["value"] == {"order": 77, "total": str((1 << 63) - 1 - 77)}
    page.goto("/topics/orders/records?from=oldest&partition=0&n=5")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    with download.value.path().open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["key"] for row in rows][:120] == [f"customer-{number}" for number in range(120)]


def test_a_record_is_written_edited_and_sent_again(context: BrowserContext, served: Served) -> None:
    send(served, "written", "first")
    page = context.new_page()
    page.goto("/topics/orders/produce")
    page.get_by_label("Topic", exact=True).fill("written")
    page.get_by_label("Key as").select_option("text")
    page.get_by_label("Key", exact=True).fill("k1")
    page.get_by_label("Value as").select_option("json")
    page.get_by_label("Value", exact=True).fill('{\n"a": 1}')
    page.get_by_label("Headers").fill("trace=1\ntrace\nraw=hex:00ff")
    page.get_by_label("Partition").fill("0")
    page.get_by_role("button", name="Send record").click()
    expect(page.get_by_text("The record is in written-0 at offset")).to_be_visible()
    page.get_by_role("link", name="The record").click()
    expect(page.locator("main")).to_contain_text("00 ff")
    first = page.url
    page.get_by_role("link", name="Edit and send again").click()
    page.get_by_role("button", name="Send record").click()
    page.get_by_role("link", name="The record").click()
    assert page.url != first
    for what in ("key", "value"):
        one, other = (context.request.get(f"{url.split('?')[0]}/{what}").body() for url in (first, page.url))
        assert one == other
    expect(page.locator("main")).to_contain_text("00 ff")


def test_chosen_records_go_back_to_another_topic(context: BrowserContext, served: Served) -> None:
    send(served, "dead", "a", "b", "c")
    send(served, "alive", "first")
    page = context.new_page()
    page.goto("/topics/dead/records?n=3")
    page.locator("#rows input[type=checkbox]").nth(0).check()
    page.locator("#rows input[type=checkbox]").nth(2).check()
    page.get_by_role("button", name="Send chosen records again").click()
    expect(page.locator("main")).to_contain_text("2 records")
    page.get_by_label("To the topic").fill("alive")
    page.get_by_role("button", name="Send 2 records").click()
    expect(page.get_by_text("2 records of dead sent again to alive.")).to_be_visible()
    page.get_by_role("link", name="Records of alive").click()
    expect(page.locator("#rows tr").nth(0)).to_contain_text("c")
    expect(page.locator("#rows tr").nth(1)).to_contain_text("a")
    page.goto("/topics/dead/records?n=3")
    page.get_by_role("button", name="Choose all").click()
    assert page.locator("#rows input:checked").count() == 3
