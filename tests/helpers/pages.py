"""The programs shown in pages; runs those that are test modules in another process and folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent.parent
QUICKSTART_PAGES = (_ROOT / "README.md", _ROOT / "docs" / "quickstart.md")
_QUICKSTART = re.compile(r"<!-- quickstart: ([\w-]+) -->\n```(\w+)\n(.*?)```", re.DOTALL)


def quickstarts(*pages: Path) -> dict[str, tuple[str, str]]:
    """The quickstarts of these pages, by default of the README and docs/quickstart.md: language and code by name."""
    text = "".join(page.read_text() for page in pages or QUICKSTART_PAGES)
    return {name: (language, code) for name, language, code in _QUICKSTART.findall(text)}


def run_pytest(code: str, folder: Path, *arguments: str) -> dict[str, int]:
    """Run ``code`` as a test file; the outcomes with their counts. A file that fails is an AssertionError with its output.

    ``arguments`` are further ones of pytest.
    """
    (folder / "test_page.py").write_text(code)
    # The plugin is named by its module, whether or not the entry point is installed: pytest refuses to load a plugin twice.
    plugin = ["-p", "no:ottla", "-p", "no:asyncio", "-p", "ottla.testing.plugin"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, "-q", "-p", "no:cacheprovider", *arguments, "test_page.py"],
        capture_output=True,
        text=True,
        timeout=540,
        cwd=folder,
        env=os.environ | {"PYTEST_ADDOPTS": ""},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return outcomes(done.stdout)


def outcomes(printed: str) -> dict[str, int]:
    """The counts in the last line of pytest's output, warnings included."""
    counted = re.findall(r"(\d+) (\w+)", printed.splitlines()[-1].partition(" in ")[0])
    return {outcome: int(count) for count, outcome in counted}
