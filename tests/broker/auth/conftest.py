"""An identity provider for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..helpers.identity_provider import Provider, serving


@pytest.fixture
def provider() -> Iterator[Provider]:
    with serving(Provider()) as server:
        yield server
