"""Fixtures for the clients of the secured broker that all these tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.compat_tests import record
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS
from ottla.compat_tests.security.broker import SecuredBroker
from ottla.compat_tests.security.fixtures import secured  # for pytest to find here
from ottla.compat_tests.session import ClientSession

__all__ = ["secured"]

OpenSession = Callable[..., ClientSession]


class Drivers:
    """One driver at a time: tests are in the order of clients and listeners, and a driver knows one address."""

    def __init__(self) -> None:
        self._where = ("", "")
        self._driver: model.Client | None = None

    def at(self, name: str, address: str) -> model.Client:
        """The driver of a client for the listener at an address."""
        if self._driver is None or self._where != (name, address) or self._driver.has_ended():
            self.close()
            self._where, self._driver = (name, address), CLIENTS[name].connect(address)
        return self._driver

    def close(self) -> None:
        """End the one that there is."""
        if self._driver is not None:
            self._driver.close()
        self._driver = None


@pytest.fixture(scope="session")
def secured_drivers() -> Iterator[Drivers]:
    drivers = Drivers()
    yield drivers
    drivers.close()


@pytest.fixture
def session(
    request: pytest.FixtureRequest,
    secured: SecuredBroker,
    secured_drivers: Drivers,
) -> Iterator[OpenSession]:
    """``session(client, protocol, how, wrong=False)``: a client that gets in so, for the length of the test."""
    made: list[ClientSession] = []

    def open_session(name: str, protocol: str, how: str | None, *, wrong: bool = False) -> ClientSession:
        driver = secured_drivers.at(name, secured.address(protocol, how))
        request.config.stash[record.KEY].versions[name] = driver.version()
        driver.secure(secured.way_in(protocol, how, wrong=wrong))
        made.append(ClientSession(name, driver))
        return made[-1]

    yield open_session
    for each in made:
        each.close()
