"""The broker of these tests, whose groups are assigned at once and may have short sessions, and helpers that need it.

Groups get their times as their own settings (resource type GROUP), so a test holds an assignment back as long as it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from ottla.base.errors import ErrorCode
from ottla.compat_tests import brokers
from ottla.compat_tests.conftest import TopicMaker
from ottla.compat_tests.raw.consumer_groups.wire_group import Beat, WireGroup
from ottla.compat_tests.raw.transactional import GROUP, find_coordinator
from ottla.compat_tests.session import eventually
from ottla.compat_tests.wire_client import Connection, Operator
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

PROPERTIES = {
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "1",
}
"""One coordinator has all groups, so what it has told one of a new topic it knows of all."""
GROUP_RESOURCE = 32
Configure = Callable[..., None]
MakeGroup = Callable[..., WireGroup]


@pytest.fixture(scope="session")
def address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the broker is."""
    kind = request.config.getoption("--broker")
    with brokers.process(kind, tmp_path_factory.mktemp("groups"), properties=PROPERTIES) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def operator(address: str) -> Operator:
    """Makes topics there."""
    return Operator(address)


@pytest.fixture
def group_id(wire: Connection, fresh_name: Callable[[str], str], request: pytest.FixtureRequest) -> str:
    """A group id that was never used, and has a coordinator."""
    name = fresh_name("group-" + request.node.name)
    find_coordinator(wire, GROUP, name)
    return name


@pytest.fixture
def make_topic(make_topic: TopicMaker, wire: Connection, group_id: str) -> TopicMaker:
    """Topics that the coordinator knows of: it hears of them later than their leader."""

    def make(partitions: int = 1) -> str:
        name = make_topic(partitions)
        look = WireGroup(wire, f"{group_id}-looks", name).member("look")
        eventually(lambda: look.join(name) != Beat(2, {}))
        assert look.beat(-1) == Beat(-1)
        return name

    return make


@pytest.fixture
def make_group(wire: Connection, group_id: str) -> MakeGroup:
    """``make_group(*topics)``: the test's group, whose members read these topics."""
    return lambda *topics: WireGroup(wire, group_id, *topics)


@pytest.fixture
def configure(wire: Connection, group_id: str) -> Configure:
    """``configure(name=value)`` sets ``consumer.NAME`` of the test's group, with dots for underscores."""

    def set_all(**values: object) -> None:
        configs = [
            AlterableConfig(name="consumer." + name.replace("_", "."), config_operation=0, value=str(value))
            for name, value in values.items()
        ]
        resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=configs)
        (result,) = wire.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert result.error_code == ErrorCode.NONE, result.error_message

    return set_all
