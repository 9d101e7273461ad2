"""The pytest plugin that comes with the package (entry point pytest11): a Kafka broker for tests, and a cluster of them.

Brokers run in a thread of the test process, so the fixtures serve synchronous tests and those of asyncio and trio.
Nothing of a broker, nor trio, is imported before a test asks for one of them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .broker import Broker
    from .cluster import Cluster
    from .faults import Faults
    from .records import KafkaRecord
    from .requests import Requests

# kafka-python reads its declarations of messages by a way that Python 3.11 and 3.12 advise against: two hundred warnings.
_WARNINGS_OF_KAFKA_PYTHON = (
    r"ignore:read_text is deprecated:DeprecationWarning:kafka\.protocol\.schemas\.load_json",
    r"ignore:open_text is deprecated:DeprecationWarning:importlib\.resources\._legacy",
)
_NOT_IN_TOPIC_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_topic_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Leave out kafka-python's warnings of itself, and import the broker as it is.

    pytest rewrites the assertions of whatever is installed together with a plugin. That would double the time of the
    imports, and change the broker's own assertions. pytest has no public way out of it; where it keeps this set elsewhere
    one day, nothing is lost but that time.
    """
    for line in _WARNINGS_OF_KAFKA_PYTHON:
        config.addinivalue_line("filterwarnings", line)
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("ottla")


@pytest.fixture(scope="session")
def ottla_broker_options() -> dict[str, Any]:
    """Arguments of ``ottla.Broker`` for ``ottla_broker``; define a fixture of this name to give your own."""
    return {}


@pytest.fixture(scope="session")
def ottla_broker(ottla_broker_options: dict[str, Any]) -> Iterator[Broker]:
    """One broker for all tests of the session; clients connect to ``ottla_broker.bootstrap_servers``."""
    import ottla

    with ottla.Broker(**ottla_broker_options) as broker:
        yield broker


@pytest.fixture
def ottla_broker_factory() -> Iterator[Callable[..., Broker]]:
    """Call it with the arguments of ``ottla.Broker`` for a broker that is this test's own."""
    import ottla

    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        started.append(ottla.Broker(**options).start())
        return started[-1]

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture(scope="session")
def ottla_cluster_options() -> dict[str, Any]:
    """Arguments of ``ottla.Cluster`` for ``ottla_cluster``; define a fixture of this name to give your own."""
    return {}


@pytest.fixture
def ottla_cluster(ottla_cluster_options: dict[str, Any]) -> Iterator[Cluster]:
    """A cluster that is this test's own, to kill brokers of; clients connect to ``ottla_cluster.bootstrap_servers``."""
    import ottla

    with ottla.Cluster(**ottla_cluster_options) as cluster:
        yield cluster


@pytest.fixture
def kafka_topic(ottla_broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic of one partition that is this test's own; it is deleted afterwards."""
    from ..base.errors import KafkaError

    test = _NOT_IN_TOPIC_NAMES.sub("-", request.node.name)[:150]
    name = f"{test}-{next(_topic_numbers)}"
    ottla_broker.create_topic(name)
    yield name
    try:
        ottla_broker.delete_topic(name)
    except KafkaError:
        pass  # the test has done so, or stopped the broker


@pytest.fixture
def kafka_records(ottla_broker: Broker, kafka_topic: str) -> Callable[..., list[KafkaRecord]]:
    """Call it for the records in ``kafka_topic``, or of ``topic=``; with a count it waits until so many are there."""

    def read(count: int = 0, *, topic: str | None = None, timeout: float = 10.0) -> list[KafkaRecord]:
        return ottla_broker.records(topic or kafka_topic, count, timeout)

    return read


@pytest.fixture
def kafka_faults(ottla_broker: Broker) -> Iterator[Faults]:
    """``ottla_broker.faults``; those that are left at the end of the test are removed."""
    yield ottla_broker.faults
    ottla_broker.faults.clear()


@pytest.fixture
def kafka_requests(ottla_broker: Broker) -> Iterator[Requests]:
    """``ottla_broker.requests``, recording for the length of the test."""
    ottla_broker.requests.clear()
    with ottla_broker.requests.recording():
        yield ottla_broker.requests
