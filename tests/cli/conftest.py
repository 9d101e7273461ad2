"""The real command against a real broker: one broker for all tests of this folder, topics of their own."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import pytest

import ottla
from ottla.cli.tools.client import Admin

from .helpers.command import Command


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_commands() -> None:
    """A shell has what it runs in the background ignore SIGINT, and so would every process that is started here."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def broker() -> Iterator[ottla.Broker]:
    # Some records are of 1970, and must not go when the broker looks for old ones, for the first time 30 s after its start.
    with ottla.Broker(properties={"group.initial.rebalance.delay.ms": "0", "log.retention.ms": "-1"}) as running:
        yield running


@pytest.fixture
def servers(broker: ottla.Broker) -> str:
    """The bootstrap servers of ``command`` and ``admin``; a module with a cluster of its own has its own."""
    return broker.bootstrap_servers


@pytest.fixture
def command(servers: str) -> Command:
    return Command(servers)


@pytest.fixture
def admin(servers: str) -> Iterator[Admin]:
    with closing(Admin(bootstrap_servers=servers)) as client:
        yield client


_numbers = itertools.count()


@pytest.fixture
def new_topic(broker: ottla.Broker) -> Callable[..., str]:
    """Makes a topic of its own for the test; its name."""

    def create(partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
        name = f"topic-{next(_numbers)}"
        broker.create_topic(name, partitions, configs)
        return name

    return create


@pytest.fixture
def topic(new_topic: Callable[..., str]) -> str:
    """A topic with one partition."""
    return new_topic()
