"""The fixture for the secured broker, which these tests and those of Spark share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.compat_tests.security.broker import SecuredBroker, secured_broker


@pytest.fixture(scope="session")
def secured(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """The broker, of the kind that the run is for."""
    with secured_broker(request.config.getoption("--broker"), tmp_path_factory.mktemp("secured")) as broker:
        yield broker
