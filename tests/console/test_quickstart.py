"""The quickstart of docs/console.md as it stands there, in a shell; and in Chromium what it says is to be seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .helpers.served import Served

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (tools/setup.sh test)")
if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext
pytestmark = pytest.mark.slow
expect = playwright.expect
_PAGE = Path(__file__).resolve().parents[2] / "docs" / "console.md"
_BLOCK = re.compile(r"<!-- console: ([\w-]+) -->\n```sh\n(.*?)```", re.DOTALL)
_LIMIT_S = 300


def run(code: str, served: Served) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "OTTLA_BOOTSTRAP_SERVERS": served.address}
    done = subprocess.run(["sh", "-e", "-c", code], capture_output=True, text=True, timeout=_LIMIT_S, env=environment)
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_records_are_seen_and_read_again(desk: BrowserContext, served: Served) -> None:
    page_text = _PAGE.read_text()
    blocks = dict(_BLOCK.findall(page_text))
    records, group = re.findall(r"<http://127\.0\.0\.1:8080(/\S+)>", page_text)[:2]
    assert run(blocks["read"], served).splitlines()[-3:] == ["one", "two", "three"]
    page = desk.new_page()
    page.goto(records)
    for value in ("one", "two", "three"):
        expect(page.locator("#rows").get_by_text(value, exact=True)).to_be_visible()
    page.goto(group)
    lag = page.locator("dl div").filter(has=page.get_by_text("Lag", exact=True)).locator("dd").first
    expect(lag).to_have_text("0")
    run(blocks["again"], served)
    expect(lag).to_have_text("3")
    assert run(blocks["once-more"], served).splitlines()[-3:] == ["one", "two", "three"]
    expect(lag).to_have_text("0")
