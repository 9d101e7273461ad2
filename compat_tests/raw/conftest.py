"""Connections of the wire tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from ottla.compat_tests.wire_client import Connection, connect, describe


@pytest.fixture
def connections(bootstrap: str) -> Iterator[Callable[[], Connection]]:
    """Opens connections to the broker under test, closed after the test."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(connect(bootstrap))


@pytest.fixture
def wire(connections: Callable[[], Connection]) -> Connection:
    """One connection."""
    return connections()


@pytest.fixture
def leader(wire: Connection, topic: str) -> Iterator[Connection]:
    """A connection to the leader of the test's topic."""
    description = describe(wire, topic)
    leader_id = description.topics[0].partitions[0].leader_id
    (address,) = [f"{broker.host}:{broker.port}" for broker in description.brokers if broker.node_id == leader_id]
    with connect(address) as connection:
        yield connection
