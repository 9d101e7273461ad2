"""The console as a person uses it, in Debian's Chromium, at the size of a desk and of a pocket; and nothing in its console.

Whatever the browser says there (an error, a refused script, a violation of the content security policy) fails the test.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from kafka import KafkaConsumer, KafkaProducer

from ottla.compat_tests.wire_client import Connection
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.records import Record, build_batch

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium (tools/setup.sh test installs Debian's)"),
]

SIZES = {"desk": ({"width": 1280, "height": 900}, "light"), "pocket": ({"width": 390, "height": 800}, "dark")}
EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202e'
STOP_SECONDS = 60
MANY = 600_000
expect = playwright.expect
expect.set_options(timeout=30_000)


class Served:
    """A broker process and its console."""

    def __init__(self, folder: str) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ottla", "serve", "--listen", "127.0.0.1:0", "--console", "127.0.0.1:0"),
                *("--data-dir", folder, "--override", "group.initial.rebalance.delay.ms=0"),
                *("--override", "log.retention.ms=-1"),  # records of the test are old
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        line = ""
        while "the console is on" not in line:
            line = self.process.stderr.readline()
            assert line, "the broker has ended"
        self.console = line.split()[-1].rstrip("/")
        self.address = self.process.stdout.readline().split(" is ready on ")[1].split(",")[0]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    running = Served(str(tmp_path_factory.mktemp("console")))
    fill(running.address)
    yield running
    running.process.send_signal(signal.SIGTERM)
    running.process.communicate(timeout=STOP_SECONDS)


def fill(address: str) -> None:
    producer = KafkaProducer(bootstrap_servers=address, client_id="shop")
    for number in range(120):
        value = json.dumps({"order": number, "total": (1 << 63) - 1 - number})
        producer.send("orders", key=b"customer-%d" % number, value=value.encode(), headers=[("trace", b"%d" % number)])
    producer.send("evil", key=EVIL.encode(), value=EVIL.encode())
    producer.close()
    reader = KafkaConsumer(
        "orders", bootstrap_servers=address, group_id="billing", auto_offset_reset="earliest", max_poll_records=50
    )
    while not reader.poll(1000):
        pass
    reader.commit()
    reader.close()
    client = Connection(address)
    client.call(CreateTopicsRequest(topics=[CreatableTopic(name="many", num_partitions=1, replication_factor=1)]), 5)
    batch = build_batch([Record(timestamp=1_700_000_000_000, value=b"v%d" % number) for number in range(20_000)])
    for _ in range(MANY // 20_000):
        data = [PartitionProduceData(index=0, records=batch)]
        client.call(
            ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[TopicProduceData(name="many", partition_data=data)]),
            9,
        )
    client.close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[playwright.Browser]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=SIZES)
def context(
    request: pytest.FixtureRequest, chromium: playwright.Browser, served: Served
) -> Iterator[playwright.BrowserContext]:
    """Pages of a window of one size, none of which has anything to complain of at the end."""
    size, scheme = SIZES[request.param]
    made = chromium.new_context(
        viewport=size, color_scheme=scheme, base_url=served.console, timezone_id="Europe/Amsterdam", locale="en-GB"
    )
    made.set_default_timeout(30_000)
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    made.on("weberror", lambda error: complaints.append(str(error.error)))
    made.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}") or dialog.dismiss())
    yield made
    widths = [page.evaluate("[document.documentElement.scrollWidth, innerWidth]") for page in made.pages]
    made.close()
    assert complaints == []
    assert all(wide <= window for wide, window in widths), "no page is wider than its window"


def test_from_the_overview_to_a_record(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/")
    expect(page.get_by_text("Nothing is wrong.")).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(5)
    page.get_by_role("link", name="Topics", exact=True).click()
    page.keyboard.press("/")
    page.keyboard.type("ord")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="orders", exact=True).click()
    expect(page.get_by_role("heading", name="orders")).to_be_visible()
    page.get_by_role("link", name="Records", exact=True).click()
    expect(page.locator("#rows tr")).to_have_count(50)
    page.get_by_label("Value contains").fill('"order": 77,')
    page.get_by_role("button", name="Read").click()
    expect(page.locator("#rows tr")).to_have_count(1)
    expect(page.locator("#rows")).to_contain_text(str((1 << 63) - 1 - 77))
    shared = context.new_page()
    shared.goto(page.url)
    expect(shared.locator("#rows")).to_contain_text("customer-77")
    shared.locator("#rows").get_by_role("link").click()
    expect(shared.get_by_text('"order": 77')).to_be_visible()
    expect(shared.locator("time").first).to_have_attribute("title", re.compile("UTC$"))


def test_a_group_and_its_lag_follow_what_is_produced(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/groups")
    page.get_by_role("link", name="billing").click()
    lag = page.locator("dl").get_by_text(re.compile(r"^[\d,]+$")).nth(1)
    before = int(lag.inner_text().replace(",", ""))
    producer = KafkaProducer(bootstrap_servers=served.address)
    producer.send("orders", b"one more").get(timeout=30)
    producer.close()
    expect(lag).to_have_text(f"{before + 1:,}", timeout=30_000)


def test_a_long_search_tells_how_far_it_is_and_stops(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    page.goto("/topics/many/records?from=oldest&contains=nothing-like-it")
    expect(page.locator("#progress")).to_contain_text("records more looked at, 0 found so far")
    page.get_by_role("button", name="Stop").click()
    expect(page.locator("#progress")).to_contain_text("(stopped)")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_records_of_a_bad_mind_do_nothing(context: playwright.BrowserContext, served: Served) -> None:
    page = context.new_page()
    for address in ("/topics/evil/records", "/topics/evil/0/0", "/topics/evil/records?contains=script"):
        page.goto(address)
        expect(page.locator("main")).to_contain_text("alert(1)")
        assert page.locator("script:not([src]), img").count() == 0


def test_seven_tabs_and_the_other_colours(context: playwright.BrowserContext, served: Served) -> None:
    for _ in range(7):
        context.new_page().goto("/")
    page = context.new_page()
    page.goto("/topics")
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    colour = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(colour)
    page.get_by_role("button", name="Light or dark").click()
    after = page.evaluate(colour)
    assert after != before
    page.reload()
    assert page.evaluate(colour) == after
