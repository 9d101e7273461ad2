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
from ottla.cli.help_page import commands
from ottla.tools import api_page

from .helpers.pages import quickstarts

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    path
    for folder in (".", "docs", "bench/results", "tests/jepsen", "tests/simulation")
    for path in sorted((ROOT / folder).glob("*.md"))
]
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```\w*\n(.*?)```|`([^`]+)`", re.DOTALL)
COMMAND = re.compile(r"""(?<![\w/.@-])ottla ((?:[^|;&\n#`"'()]|"[^"\n]*"|'[^'\n]*')*)""")
OF_OTHERS = {
    *("--rows", "--pairs", "--scale", "--profile", "--pages", "--search", "--open"),  # benchmarks
    *("--verify", "--describe", "--delete", "--delete-offsets", "--reset-offsets", "--metadata", "--group-protocol"),
    *("--bootstrap-controller", "--replica-alter-log-dirs-throttle"),  # Kafka's tools, and those above
    *("--tb", "--show-capture"),  # pytest
}
"""Options that the pages name without their command."""


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


def test_options_shown_exist() -> None:
    """Those of a command are its own, or of all commands; one by itself is of some command."""
    of_command = {
        declared.words: {name for option in declared.command.params for name in (*option.opts, *option.secondary_opts)}
        for declared in commands()
        if not declared.is_group and declared.command.add_help_option  # compat hands its own to pytest
    }
    of_all = {"--bootstrap-server", "--command-config", "--command-property", "--debug", "--help", "--version"}
    some = of_all.union(OF_OTHERS, *of_command.values())
    strange = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for block, span in CODE.findall(page.read_text().replace("\\\n", " ")):
            code = block or " ".join(span.split())
            for shown in COMMAND.findall(code):
                words = tuple(re.sub(r"^(-\S+ \S+ )+", "", shown).split())
                known = of_command.get(words[:2]) or of_command.get(words[:1])
                if known is not None:
                    strange += [(page.name, shown, name) for name in options(shown) if name not in known | of_all]
            if span.startswith("--"):
                strange += [(page.name, span, name) for name in options(code) if name not in some]
    assert strange == []


def options(shown: str) -> list[str]:
    """The long options of a command that are not in quotes."""
    return re.findall(r"(?<!\S)--[a-z][\w-]*", re.sub(r"\"[^\"]*\"|'[^']*'", "", shown))


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
