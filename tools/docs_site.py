"""MkDocs hooks for the documentation: links out of ``docs/``, sections of the README, long names in tables.

mkdocs.yml names this file under ``hooks``.

Links in the pages are as a reader of the repository needs them: relative to the page, also where they leave ``docs/``. On
the site

- a link to a file or folder outside ``docs/`` leads into the repository that ``pyproject.toml`` names;
- a paragraph that is nothing but a link to a section of the README becomes that section, its headings one level below
  the heading that it stands under, so that what both say is written once;
- long names in the cells of tables may break behind a dot, a colon and the like.

What a link leads to has to be there: otherwise there is a warning, with which ``mkdocs build --strict`` fails.
"""

from __future__ import annotations

import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from markdown.extensions.toc import slugify

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]

_FENCE = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!\w+:|[#/])([^)\s#]+)(#[^)\s]*)?\)")
_SECTION_OF_README = re.compile(r"^\[[^\]]+\]\(\.\./README\.md#([^)\s]+)\)$", re.MULTILINE)
_HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
_CODE = re.compile(r"<code>[^<]{16,}</code>")
_BREAK = re.compile(r"(?<=\w[.,:_=/])(?=\w)")

log = logging.getLogger("mkdocs.hooks.docs_site")


def on_config(config: Any) -> Any:
    """Put the link to the repository at the foot of each page. MkDocs' own ``repo_url`` has browsers ask its API."""
    config.extra["social"] = [{"icon": "fontawesome/brands/git-alt", "link": REPOSITORY, "name": "Source"}]
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text as the site needs it."""
    name = page.file.src_path
    markdown = _SECTION_OF_README.sub(lambda found: _section(found, name), markdown)
    return _with_links(markdown, DOCS, name)


def on_page_content(html: str, **_: Any) -> str:
    """The page's HTML, with places where code in the cells of its tables may break."""
    return _CELL.sub(lambda cell: _CODE.sub(lambda code: _BREAK.sub("<wbr>", code[0]), cell[0]), html)


def _section(found: re.Match[str], page: str) -> str:
    """The section of the README that a paragraph names by its anchor, without the section's own heading."""
    readme = (ROOT / "README.md").read_text()
    for start, level, title in _headings(readme):
        if slugify(title, "-") == found[1]:
            body = readme[start:].partition("\n")[2]
            end = next((at for at, other, _ in _headings(body) if other <= level), len(body))
            above = [other for _, other, _ in _headings(found.string[: found.start()])][-1]
            return _with_links(_shifted(body[:end], above - level).strip(), ROOT, page)
    log.warning("%s takes a section '%s' from the README, which has none of that name", page, found[1])
    return ""


def _headings(text: str) -> list[tuple[int, int, str]]:
    """Position, level and title of each heading; what begins with # in a code block is none."""
    blank = _FENCE.sub(lambda fence: " " * len(fence[0]), text)
    return [(heading.start(), len(heading[1]), heading[2]) for heading in _HEADING.finditer(blank)]


def _shifted(text: str, levels: int) -> str:
    for start, level, _ in reversed(_headings(text)):
        text = text[:start] + "#" * (level + levels) + text[start + level :]
    return text


def _with_links(text: str, base: Path, page: str) -> str:
    """``text``, whose links are relative to ``base``, with links that are right on a page of the site."""
    parts = _FENCE.split(text)  # code stands at the odd places
    parts[::2] = [
        _LINK.sub(lambda link: f"]({_target(base, link[1], link[2] or '', page)})", part) for part in parts[::2]
    ]
    return "".join(parts)


def _target(base: Path, path: str, anchor: str, page: str) -> str:
    file = (base / path).resolve()
    if file.is_relative_to(DOCS):
        return os.path.relpath(file, DOCS) + anchor  # whether that is there, MkDocs looks itself
    if not file.exists():
        log.warning("%s links to %s, which is not there", page, path)
    kind = "tree" if file.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{file.relative_to(ROOT)}{anchor}"
