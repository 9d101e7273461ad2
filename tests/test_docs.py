"""The pages don't point at what isn't there: links, and the names of functions and classes they are set on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
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
