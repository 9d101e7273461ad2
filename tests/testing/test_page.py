"""Every example of docs/testing.md, run as it stands there by a pytest of its own; those that fail: test_plugin_failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..helpers.pages import run_pytest

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "testing.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: ([\w-]+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
CONFTESTS = dict(re.findall(r"<!-- conftest: ([\w-]+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))
"""The ``conftest.py`` beside an example, by the example's name."""


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == PAGE.count("<!-- example:")
    assert len(EXAMPLES) + len(CONFTESTS) + PAGE.count("<!-- failing example:") == PAGE.count("```python")
    assert CONFTESTS.keys() <= EXAMPLES.keys()
    assert {"kafka-python", "confluent-kafka", "aiokafka"} <= EXAMPLES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTESTS.get(name, ""))
    assert run_pytest(EXAMPLES[name], tmp_path) == {"passed": EXAMPLES[name].count("def test_")}
