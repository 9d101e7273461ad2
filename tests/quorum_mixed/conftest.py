"""The cluster of KRaft that the tests share, with nodes of Apache Kafka and brokers of Ottla."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..mixed.helpers.fixtures import topic  # for pytest to find here
from ..mixed.test_mixed_coordinators import GROUP, TRANSACTION, coordinator
from .helpers.on_quorum import QuorumMixed, running

__all__ = ["topic"]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuorumMixed]:
    with running(tmp_path_factory.mktemp("quorum-mixed")) as mixed:
        mixed.wait_all_listed()
        for key_type in (GROUP, TRANSACTION):  # while all brokers run, so that each coordinates some
            coordinator(mixed, key_type, "any")
        yield mixed


@pytest.fixture
def mixed(shared: QuorumMixed) -> Iterator[QuorumMixed]:
    """A mixed cluster. All brokers run before and after the test, and none of them has logged an error."""
    yield shared
    shared.quorum.start()
    assert shared.troubles() == []


@pytest.fixture
def controller(mixed: QuorumMixed) -> int:
    """The id of the active controller, a node of Apache Kafka."""
    return mixed.active()
