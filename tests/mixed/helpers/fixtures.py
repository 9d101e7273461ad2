"""Fixtures of tests of clusters with brokers of both kinds."""

from __future__ import annotations

import pytest


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test has."""
    return "".join(each if each.isalnum() else "-" for each in request.node.name)[:200]
