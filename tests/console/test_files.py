"""The files of others are what their projects have published, with licence and version; pages load nothing from elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import ottla.console
from ottla.console.files import FOLDER

from .helpers.browsing import browsing

OWN = {"console.css", "console.js", "theme.js", "icon.svg", "vendored.json"}
PACKAGE = Path(ottla.console.__file__).parent


def test_what_is_vendored_is_as_it_was_published() -> None:
    """The checksums are those of the files in the packages htmx.org, uplot, @knadh/oat and lucide-static of npm."""
    vendored = json.loads((FOLDER / "vendored.json").read_text())
    named = {}
    for project in vendored:
        assert project["version"]
        assert project["licence"] in ("0BSD", "MIT", "ISC AND MIT")
        named |= project["files"]
        assert any("LICENSE" in file for file in project["files"])
    for file, checksum in named.items():
        assert hashlib.sha256((FOLDER / file).read_bytes()).hexdigest() == checksum, file
    assert {str(file.relative_to(FOLDER)) for file in FOLDER.rglob("*.*")} == OWN | named.keys()


def test_templates_have_nothing_in_line() -> None:
    for template in (PACKAGE / "templates").glob("*.html"):
        text = template.read_text()
        assert "<style" not in text, template.name
        assert not re.search(r"<script(?! src=)", text), template.name
        assert not re.search(r"\s(style|on[a-z]+|hx-on[^=]*)=", text), template.name
        assert "|safe" not in text, template.name
        assert "http://" not in text, template.name
        assert "https://" not in text, template.name


async def test_files_are_kept_for_ever_under_a_name_that_changes_with_them(tmp_path: Path) -> None:
    async with browsing(tmp_path) as browser:
        page = (await browser.get("/")).page
        files = [
            attributes.get("src") or attributes.get("href")
            for tag, attributes in page.elements
            if tag == "script" or (tag == "link" and attributes["rel"] != "x")
        ]
        assert len(files) == 8
        for file in files:
            assert file is not None
            answer = await browser.get(file)
            assert answer.status == 200, file
            assert "immutable" in answer.headers["cache-control"]
            assert file.split("/")[2] == hashlib.sha256(answer.body).hexdigest()[:16]
        assert (await browser.get("/static/../vendored.json")).status == 404
        assert (await browser.get("/static/%2e%2e/side.py")).status == 404
