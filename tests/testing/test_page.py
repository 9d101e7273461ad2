"""Every example of docs/testing.md, run as it stands there by a pytest of its own; those that fail: test_plugin_failures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ..pages import run_pytest

PAGE = (Path(__file__).resolve().parent.parent.parent / "docs" / "testing.md").read_text()
EXAMPLES = dict(re.findall(r"<!-- example: ([\w-]+) -->\n```python\n(.*?)```", PAGE, re.DOTALL))


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == PAGE.count("<!-- example:")
    assert len(EXAMPLES) + PAGE.count("<!-- failing example:") == PAGE.count("```python")
    assert {"kafka-python", "confluent-kafka", "aiokafka"} <= EXAMPLES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    assert run_pytest(EXAMPLES[name], tmp_path) == {"passed": EXAMPLES[name].count("def test_")}
