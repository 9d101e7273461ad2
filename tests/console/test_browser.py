"""The console as a person uses it, in Debian's Chromium, at the size of a desk and of a pocket (``conftest``)."""

from __future__ import annotations

import re
from contextlib import contextmanager

import pytest
from kafka import KafkaProducer

from .helpers.served import Served
from .helpers.windows import SIZES, filter_records, open_pages, window

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
pytestmark = pytest.mark.slow
expect = playwright.expect


def test_from_the_overview_to_a_record(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/")
    expect(page.get_by_text("No problem found. Checked: ")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(5)
    open_pages(page)
    page.get_by_role("link", name="Topics", exact=True).click()
    page.keyboard.press("/")
    page.keyboard.type("ord")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.get_by_role("heading", name="orders")).to_be_visible()
    page.get_by_role("link", name="Records", exact=True).click()
    expect(page.locator("#rows tr")).to_have_count(50)
    filter_records(page, "value", "contains", '"order": 77,')
    expect(page.locator("#rows tr")).to_have_count(1)
    expect(page.locator("#rows")).to_contain_text(str((1 << 63) - 1 - 77))
    shared = context.new_page()
    shared.goto(page.url)
    expect(shared.locator("#rows")).to_contain_text("customer-77")
    shared.get_by_role("button", name="Open 0:77").click()
    expect(shared.locator("tr.opened .json")).to_contain_text('"order": 77')
    expect(shared.locator("tr.opened .chip")).to_have_text("trace 77")
    shared.get_by_role("button", name="Open 0:77").click()
    expect(shared.locator("tr.opened")).to_have_count(0)
    shared.locator("#rows").get_by_role("link", name="77", exact=True).click()
    expect(shared.locator("#record .json")).to_contain_text('"order": 77')
    expect(shared.locator("time").first).to_have_attribute("title", re.compile("UTC$"))


@pytest.mark.parametrize("size", SIZES)
def test_a_filter_that_is_none_is_said_at_its_field(chromium: playwright.Browser, served: Served, size: str) -> None:
    with contextmanager(window)(chromium, served.console, *SIZES[size], expected="status of 400") as context:
        page = context.new_page()
        page.goto("/topics/orders/records")
        page.get_by_label("From").select_option("oldest")
        filter_records(page, "key", "equals", "customer-77")
        expect(page.locator("#rows tr")).to_have_count(1)
        filter_records(page, "$.order", "equals", "= 77")
        value = page.get_by_label("Value", exact=True).nth(1)
        expect(value).to_have_attribute("aria-invalid", "true")
        expect(page.get_by_role("alert")).to_contain_text("there is no comparison but = and ==")
        expect(value).to_have_value("= 77")
        expect(page.get_by_label("Value", exact=True).first).to_have_value("customer-77")
        expect(page.get_by_label("From")).to_have_value("oldest")
        value.fill("77")
        page.get_by_role("button", name="Read", exact=True).click()
        expect(page.locator("#rows tr")).to_have_count(1)


def test_a_chart_has_a_dot_for_what_stands_between_two_gaps(desk: playwright.BrowserContext) -> None:
    page = desk.new_page()
    page.goto("/")
    assert page.evaluate("alone([null, 3, null, 4, 5, null, 6])") == [1, 6]


def test_a_group_and_its_lag_follow_what_is_produced(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/groups")
    page.get_by_role("link", name="billing").click()
    lag = page.locator("dl").get_by_text(re.compile(r"^[\d,]+$")).nth(1)
    before = int(lag.inner_text().replace(",", ""))
    producer = KafkaProducer(bootstrap_servers=served.address)
    producer.send("orders", b"one more").get(timeout=30)
    producer.close()
    expect(lag).to_have_text(f"{before + 1:,}")


def test_a_long_search_tells_how_far_it_is_and_stops(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/topics/many/records?from=oldest&contains=nothing-like-it")
    expect(page.locator("#progress")).to_contain_text("more records read, 0 found so far")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#progress")).to_contain_text("(stopped)")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_records_of_a_bad_mind_do_nothing(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    for address in ("/topics/evil/records", "/topics/evil/0/0", "/topics/evil/records?contains=script"):
        page.goto(address)
        expect(page.locator("main")).to_contain_text("alert(1)")
        assert page.locator("script:not([src]), img").count() == 0


def test_seven_tabs_and_the_other_colours(desk: playwright.BrowserContext, served: Served) -> None:
    for _ in range(7):
        desk.new_page().goto("/")
    page = desk.new_page()
    page.goto("/topics")
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    after = page.evaluate(colour)
    assert after != before
    page.reload()
    assert page.evaluate(colour) == after


def test_times_are_in_the_browsers_zone_with_utc_when_pointed_at(
    desk: playwright.BrowserContext, chromium: playwright.Browser, served: Served
) -> None:
    elsewhere = chromium.new_context(base_url=served.console, timezone_id="Asia/Kolkata")
    for context, shown in ((desk, "2023-11-14 23:13:20.000"), (elsewhere, "2023-11-15 03:43:20.000")):
        page = context.new_page()
        page.goto("/topics/many/0/0")
        time = page.locator("main time").first
        expect(time).to_have_text(shown)
        expect(time).to_have_attribute("title", "2023-11-14 22:13:20.000 UTC")
    elsewhere.close()


def test_keys_alone_lead_to_every_part(desk: playwright.BrowserContext) -> None:
    page = desk.new_page()
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.url.endswith("#main")
    for key, place in (("t", "/topics"), ("g", "/groups"), ("c", "/connections"), ("r", "/requests"), ("o", "/")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(re.compile(f"{place}$"))
