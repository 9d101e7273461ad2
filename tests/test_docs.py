"""The pages don't point at what isn't there: links, and the names of functions and classes they are set on."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ottla
from ottla.broker.config_file import load_config, read_properties, warn_of_unused
from ottla.broker.settings import BrokerSettings
from ottla.tools import api_page

from .helpers.pages import quickstarts

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    path
    for folder in (".", "docs", "bench/results", "tests/jepsen", "tests/simulation")
    for path in sorted((ROOT / folder).glob("*.md"))
]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for text, target in LINK.findall(page.read_text()):
        if "://" in target:
            continue
        file = (page.parent / target).resolve()
        assert file.exists(), f"{page.name} links to {target}"
        name = text.strip("`")
        if text.startswith("`") and file.suffix == ".py" and "/" not in name:
            defined = rf"^\s*(?:(?:async )?def|class) {name.rpartition('.')[2]}\b|^{name} = "
            assert re.search(defined, file.read_text(), re.MULTILINE), f"{page.name}: no {name} in {target}"


def test_the_readme_is_short() -> None:
    """It has one quickstart and the two commands; docs/quickstart.md has the others."""
    readme = (ROOT / "README.md").read_text()
    assert len(readme.splitlines()) <= 120
    assert [*quickstarts(ROOT / "README.md")] == ["kafka-python"]
    assert "\nmake run " in readme and "\nmake test " in readme


def test_the_page_of_the_python_api_is_up_to_date() -> None:
    assert (ROOT / "docs" / "api.md").read_text() == api_page.page(), "run `make docs`"


def test_the_page_of_the_python_api_has_what_is_public() -> None:
    page = api_page.page()
    assert [name for name in ottla.__all__ if f"### ottla.{name}\n" not in page] == []
    undocumented = re.findall(r"^#### (\S+)\n\n```python\n[^`]*```\n\n\n", page, re.MULTILINE)
    assert undocumented == []


@pytest.mark.parametrize(("name", "folder"), [("operations", "/var/lib/ottla"), ("cluster", "/var/lib/ottla/1")])
def test_the_configuration_file_shown_is_taken_as_it_stands(
    name: str, folder: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    blocks = re.findall(r"```properties\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(), re.DOTALL)
    shown, *_ = [block for block in blocks if "log.dirs" in block]
    file = tmp_path / "server.properties"
    file.write_text(shown)
    properties = read_properties(file)
    warn_of_unused(properties)
    assert caplog.messages == []
    assert load_config(properties).settings(BrokerSettings).log_dirs == (folder,)


@pytest.mark.parametrize("name", ["operations", "cluster"])
def test_the_systemd_unit_shown_is_understood(name: str, tmp_path: Path) -> None:
    (shown,) = re.findall(r"```ini\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(), re.DOTALL)
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze")
    unit = tmp_path / "ottla@.service"
    unit.write_text(shown.replace("/opt/ottla/bin/ottla", sys.executable))  # which has to be there
    done = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
