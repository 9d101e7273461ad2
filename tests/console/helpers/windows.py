"""Windows of Chromium in which tests see pages, and the login page as a person fills it in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PATIENCE_MS = 120_000
"""How long a browser waits for each thing: it may run beside all else."""
SIZES = {"desk": ({"width": 1280, "height": 900}, "light"), "pocket": ({"width": 390, "height": 800}, "dark")}


def log_in(page: Page, user: str, password: str) -> None:
    """At the page to log in."""
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def open_pages(page: Page) -> None:
    """Call the side bar, where the window is too small to have it beside the page."""
    menu = page.get_by_role("link", name="Pages", exact=True)
    if menu.is_visible():
        menu.click()


def filter_records(page: Page, field: str, operator: str, value: str) -> None:
    """Fill in the empty row of the filter bar, and read."""
    page.get_by_label("Field", exact=True).last.fill(field)
    page.get_by_label("Operator", exact=True).last.select_option(operator)
    page.get_by_label("Value", exact=True).last.fill(value)
    page.get_by_role("button", name="Read", exact=True).click()


def window(
    chromium: Browser, console: str, size: dict[str, int], scheme: str, expected: str = ""
) -> Iterator[BrowserContext]:
    """``expected``: messages that the browser may have, because a response is a refusal."""
    made = chromium.new_context(
        viewport=size, color_scheme=scheme, base_url=console, timezone_id="Europe/Amsterdam", locale="en-GB"
    )
    made.set_default_timeout(PATIENCE_MS)
    complaints: list[str] = []
    made.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    made.on("weberror", lambda error: complaints.append(str(error.error)))
    made.on("dialog", lambda dialog: complaints.append(f"a dialog: {dialog.message}") or dialog.dismiss())
    yield made
    widths = [page.evaluate("[document.documentElement.scrollWidth, innerWidth]") for page in made.pages]
    made.close()
    unexpected = [each for each in complaints if not expected or expected not in each]
    assert unexpected == [], unexpected
    assert all(wide <= window for wide, window in widths), f"a page is wider than its window: {widths}"
