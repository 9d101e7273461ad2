"""Shared by the tests in Chromium: one broker, one browser, and windows of two sizes.

Any message in the browser's console (an error, a refused script, a violation of the content security policy) fails the test.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from .helpers.served import Served, fill, serving, serving_users
from .helpers.windows import PATIENCE_MS, SIZES, window

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

CHROMIUM = shutil.which("chromium")


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
def chromium() -> Iterator[Browser]:
    """The browser. Its driver's asyncio loop runs in the process until the browser is closed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
    if CHROMIUM is None:
        pytest.skip("there is no chromium (tools/setup.sh browser installs Debian's)")
    playwright.expect.set_options(timeout=PATIENCE_MS)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(params=SIZES)
def context(request: pytest.FixtureRequest, chromium: Browser, served: Served) -> Iterator[BrowserContext]:
    """A window of each size; it fails the test if a page has complaints at the end."""
    yield from window(chromium, served.console, *SIZES[request.param])


@pytest.fixture
def desk(chromium: Browser, served: Served) -> Iterator[BrowserContext]:
    """The same with the window size of a desktop."""
    yield from window(chromium, served.console, *SIZES["desk"])
