"""Shared by the tests in Chromium: one broker, one browser, and windows of two sizes.

Any message in the browser's console (an error, a refused script, a violation of the content security policy) fails the test.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from .served import Served, fill, serving, serving_users

CHROMIUM = shutil.which("chromium")
PATIENCE_MS = 120_000
"""How long a browser waits for each thing: it may run beside all else."""
SIZES = {"desk": ({"width": 1280, "height": 900}, "light"), "pocket": ({"width": 390, "height": 800}, "dark")}


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("console")) as running:
        fill(running.address)
        yield running


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One whose console asks who looks."""
    with serving_users(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A ``playwright.sync_api.Browser``. Its driver's asyncio loop runs in the process until the browser is closed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
    if CHROMIUM is None:
        pytest.skip("there is no chromium (tools/setup.sh browser installs Debian's)")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=SIZES)
def context(request: pytest.FixtureRequest, chromium: Any, served: Served) -> Iterator[Any]:
    """A ``BrowserContext`` of one window size; it fails the test if a page has complaints at the end."""
    yield from window(chromium, served.console, *SIZES[request.param])


@pytest.fixture
def desk(chromium: Any, served: Served) -> Iterator[Any]:
    """The same with the window size of a desktop."""
    yield from window(chromium, served.console, *SIZES["desk"])


def log_in(page: Any, user: str, password: str) -> None:
    """At the page to log in."""
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def window(chromium: Any, console: str, size: dict[str, int], scheme: str, expected: str = "") -> Iterator[Any]:
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
    assert [each for each in complaints if not expected or expected not in each] == []
    assert all(wide <= window for wide, window in widths), "no page is wider than its window"
