"""The fixture for Kafka's command-line tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.compat_tests.java.tools import KafkaTools


@pytest.fixture
def tools(bootstrap: str, tmp_path: Path) -> KafkaTools:
    """Kafka's command-line tools on the broker under test."""
    return KafkaTools(bootstrap, tmp_path)
