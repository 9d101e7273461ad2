"""Connectors of a worker of Apache Kafka's Connect, in Chromium: why one fails, and what its buttons do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.compat_tests.java.connect import Worker, sink, source

from .helpers.alone_process import console_at
from .helpers.served import serving
from .helpers.windows import SIZES, window

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page
expect = playwright.expect
pytestmark = pytest.mark.slow

SETTINGS = {
    "group.id": "connect",
    **{f"{kind}.storage.topic": f"connect-{kind}" for kind in ("config", "offset", "status")},
    **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "offset", "status")},
    "offset.storage.partitions": "1",
    "status.storage.partitions": "1",
    "scheduled.rebalance.max.delay.ms": "0",
}
REFRESHED = """() => !document.querySelector("#live").dispatchEvent(
    new CustomEvent("htmx:beforeRequest", {bubbles: true, cancelable: true}))"""
"""Whether the page would not ask for its live part now."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The source has ten lines; the folder that the sink writes into is not there yet."""
    (tmp_path / "in.txt").write_text("".join(f"line {number}\n" for number in range(10)))
    return tmp_path


@pytest.fixture
def connected(chromium: Browser, folder: Path) -> Iterator[BrowserContext]:
    """A console of a broker and a distributed worker with a source, and a sink that fails."""
    data = folder / "data"
    data.mkdir()
    with serving(data) as served, closing(Worker(folder, served.address, SETTINGS)) as worker:
        worker.start_distributed()
        worker.put("lines-source", source(folder / "in.txt", "lines") | {"database.password": "hunter2"})
        worker.put("lines-sink", sink(folder / "later" / "out.txt", "lines"))
        with console_at(served.address, "--allow-writes", "--connect-url", worker.address) as console:
            yield from window(chromium, console, *SIZES["desk"])


def test_a_connector_that_fails_is_restarted_paused_and_stopped(connected: BrowserContext, folder: Path) -> None:
    page = connected.new_page()
    page.goto("/")
    page.get_by_role("link", name="lines-sink").click()  # the overview is drawn anew until it has failed
    expect(page.get_by_role("heading", level=1)).to_have_text("lines-sink")
    trace = page.locator("details.trace")
    expect(trace.locator("summary")).to_contain_text("ConnectException: Couldn't find or create file")
    assert page.evaluate(REFRESHED) is False
    trace.locator("summary").click()
    expect(trace.locator("pre")).to_contain_text("Caused by: java.nio.file.NoSuchFileException")
    page.get_by_role("heading", level=1).click()
    assert page.evaluate(REFRESHED) is True, "what is read stays open"
    (folder / "later").mkdir()
    do(page, "Restart failed parts…", "Restart", "The failed parts of the connector lines-sink are being restarted.")
    fact(page, "Tasks running", "1 of 1")
    do(page, "Pause…", "Pause", "The connector lines-sink is being paused.")
    fact(page, "State", "PAUSED")
    do(page, "Resume…", "Resume", "The connector lines-sink is being resumed.")
    fact(page, "State", "RUNNING")
    fact(page, "Tasks running", "1 of 1")
    do(page, "Restart task…", "Restart", "Task 0 of the connector lines-sink is being restarted.")
    fact(page, "Tasks running", "1 of 1")
    page.get_by_role("link", name="connect-lines-sink").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("connect-lines-sink")
    page.go_back()
    do(page, "Stop…", "Stop", "The connector lines-sink is being stopped.")
    fact(page, "State", "STOPPED")
    expect(page.get_by_text("A connector that is stopped has none.")).to_be_visible()
    page.goto("/connect?q=lines-source")
    expect(page.get_by_role("row").filter(has_text="lines-source")).to_contain_text("FileStreamSource")
    page.get_by_role("link", name="lines-source").click()
    expect(page.get_by_role("row").filter(has_text="database.password")).to_contain_text("hidden")
    assert "hunter2" not in page.content()
    page.get_by_role("link", name="lines", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("lines")


def do(page: Page, button: str, verb: str, told: str) -> None:
    """Press a button, and that of the plan; then the page that it leads to."""
    page.get_by_role("link", name=button, exact=True).click()
    page.get_by_role("button", name=verb, exact=True).click()
    expect(page.locator("p[role=status]")).to_contain_text(told)
    page.get_by_role("link", name="lines-sink").click()


def fact(page: Page, name: str, value: str) -> None:
    """Waits until the page, which is drawn anew, says so."""
    place = page.locator("dl.facts div").filter(has=page.get_by_text(name, exact=True))
    expect(place.locator("dd")).to_have_text(re.compile(f"^{re.escape(value)}$"))
