"""Every example of the pages about testing, run as it stands there by a pytest of its own; failing ones: test_plugin_failures."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..helpers.pages import run_pytest

_DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGES = {name: (_DOCS / f"{name}.md").read_text() for name in ("testing", "testing-frameworks")}
_EXAMPLE = re.compile(r"<!-- example: ([\w-]+) -->\n```python\n(.*?)```", re.DOTALL)
EXAMPLES = {name: code for page in PAGES.values() for name, code in _EXAMPLE.findall(page)}
CONFTESTS = dict(re.findall(r"<!-- conftest: ([\w-]+) -->\n```python\n(.*?)```", PAGES["testing"], re.DOTALL))
"""The ``conftest.py`` beside an example, by the example's name."""


def test_no_example_is_left_out() -> None:
    together = "".join(PAGES.values())
    assert len(EXAMPLES) == together.count("<!-- example:")
    assert len(EXAMPLES) + len(CONFTESTS) + together.count("<!-- failing example:") == together.count("```python")
    assert CONFTESTS.keys() <= EXAMPLES.keys()
    assert {"kafka-python", "confluent-kafka", "aiokafka", "unittest", "pytest-asyncio"} <= EXAMPLES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTESTS.get(name, ""))
    plugins = ("-p", "pytest_asyncio.plugin") if "asyncio" in name else ()
    assert run_pytest(EXAMPLES[name], tmp_path, *plugins) == {"passed": EXAMPLES[name].count("def test_")}


@pytest.mark.slow
def test_example_of_unittest_without_pytest(tmp_path: Path) -> None:
    (tmp_path / "orders.py").write_text(EXAMPLES["unittest"])
    done = subprocess.run([sys.executable, "orders.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (0, "OK"), done.stderr
