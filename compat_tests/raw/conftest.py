"""Fixtures of the wire tests, whose connections all go to one broker.

In a cluster it is the controller. It leads the topics that ``make_topic`` makes, and coordinates the groups and transactions
whose names are from here: names are tried until one is of a partition that it leads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ottla.compat_tests.raw.requests import NewName, coordinated
from ottla.compat_tests.raw.transactional import GROUP, TRANSACTION
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator, cluster_view, connect


@pytest.fixture(scope="session")
def controller(bootstrap: str) -> tuple[int, str]:
    """The controller's id and address."""

    def known() -> tuple[int, str] | None:
        view = cluster_view(bootstrap)
        return None if view is None or view.controller < 0 else (view.controller, view.brokers[view.controller])

    found = eventually(known)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def address(controller: tuple[int, str]) -> str:
    """Where the broker is that is asked everything."""
    return controller[1]


@pytest.fixture(scope="session")
def operator(controller: tuple[int, str]) -> Operator:
    """Has that broker lead what it creates."""
    return Operator(controller[1], leader=controller[0])


@pytest.fixture
def connections(address: str) -> Iterator[Callable[[], Connection]]:
    """Opens connections to the broker, closed after the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connect(address))


@pytest.fixture
def wire(connections: Callable[[], Connection]) -> Connection:
    """One connection."""
    return connections()


@pytest.fixture
def leader(wire: Connection, topic: str) -> Connection:
    """The connection as one to the leader of the test's topic, which there is from now on."""
    return wire


@pytest.fixture
def new_transactional_id(wire: Connection, controller: tuple[int, str], fresh_name: Callable[[str], str]) -> NewName:
    """Names of transactions that the broker coordinates."""
    return lambda: coordinated(wire, TRANSACTION, lambda: fresh_name("txn"), controller[0])


@pytest.fixture
def new_group_id(
    wire: Connection, controller: tuple[int, str], fresh_name: Callable[[str], str], request: pytest.FixtureRequest
) -> NewName:
    """Names of groups that the broker coordinates."""
    return lambda: coordinated(wire, GROUP, lambda: fresh_name("group-" + request.node.name), controller[0])


@pytest.fixture
def group_id(new_group_id: NewName) -> str:
    """One of them."""
    return new_group_id()
