"""The documentation as a site: it builds without a warning, fetches nothing, and what leads nowhere stops the build."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ottla.compat_tests import toolchains

ROOT = Path(__file__).resolve().parent.parent
LIMIT_S = 120

pytestmark = pytest.mark.slow


def build(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        toolchains.missing("no mkdocs with its material theme (tools/setup.sh docs)")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(site),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Addresses(HTMLParser):
    """What a page has a browser load, and what it links to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "link":
            self.loaded.append(given["href"])
        elif "src" in given:
            self.loaded.append(given["src"])


def test_every_page_is_built_and_loads_only_what_the_site_has(site: Path) -> None:
    built = {page.stem for page in site.glob("*.html")} - {"404"}
    assert built == {page.stem for page in (ROOT / "docs").glob("*.md")}
    for page in site.glob("*.html"):
        loaded = Addresses(page).loaded
        assert loaded and not [address for address in loaded if "//" in address], page.name
    styles = "".join(style.read_text() for style in site.rglob("*.css"))
    assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", styles)


def test_links_out_of_docs_lead_into_the_repository(site: Path) -> None:
    links = Addresses(site / "architecture.html").links
    assert not [link for link in links if link.startswith("../")]
    repository = "https://github.com/ottla/ottla/blob/main/"
    paths = [link.removeprefix(repository).partition("#")[0] for link in links if link.startswith(repository)]
    assert "log/partition_log.py" in paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_sections_of_the_readme_stand_in_pages(site: Path) -> None:
    home, quickstart = (site / "index.html").read_text(), (site / "quickstart.html").read_text()
    for page in (home, quickstart):
        assert "auto_offset_reset" in page and "README.md#" not in page
    assert 'href="share-groups.html"' in home  # in the README it is docs/share-groups.md
    assert re.search(r'<h3 id="pyspark">', quickstart)


# What a page says, and what the build complains of.
LEADING_NOWHERE = {
    "[none](none.md)": "'none.md'",
    "[none](#none)": "'#none'",
    "[none](../log/none.py)": "../log/none.py",
    "[`x`](/log/disk.py)": "/log/disk.py",
    "[none](../README.md#none)": "'none'",
}


def test_what_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Page\n\n" + "\n\n".join(LEADING_NOWHERE))
    (docs / "site.css").touch()
    config = tmp_path / "mkdocs.yml"
    config.write_text(
        f"INHERIT: {ROOT / 'mkdocs.yml'}\ndocs_dir: docs\nnav: [index.md]\nhooks: [{ROOT / 'tools' / 'docs_site.py'}]\n"
    )
    done = build(config, tmp_path / "site")
    assert done.returncode == 1
    warnings = [line for line in done.stderr.splitlines() if line.startswith("WARNING")]
    for complaint in LEADING_NOWHERE.values():
        assert len([warning for warning in warnings if complaint in warning]) == 1, (complaint, warnings)
    assert f"Aborted with {len(LEADING_NOWHERE)} warnings in strict mode" in done.stdout + done.stderr
