"""The pytest plugin that comes with the package (entry point pytest11): a Kafka broker for tests, and a cluster of them.

A required fault that was added during a test, in any broker, and never struck fails the test at its end. A session has one
``ottla_broker``, so a test whose ``ottla_broker_options`` are not those that it was started with fails in its setup.

Brokers run in a thread of the test process, so the fixtures serve synchronous tests and those of asyncio and trio. Neither the
broker nor trio is imported before a test uses one of the fixtures.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from .broker import Broker
    from .cluster import Cluster
    from .faults import Fault, Faults
    from .records import KafkaRecord
    from .requests import Requests

# kafka-python reads its declarations of messages with functions that are deprecated in Python 3.11 and 3.12: 200 warnings.
_WARNINGS_OF_KAFKA_PYTHON = (
    r"ignore:read_text is deprecated:DeprecationWarning:kafka\.protocol\.schemas\.load_json",
    r"ignore:open_text is deprecated:DeprecationWarning:importlib\.resources\._legacy",
)
_NOT_IN_TOPIC_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
_numbers = itertools.count(1)


class _Started(NamedTuple):
    """The session's broker, the options that it was started with, and the test that asked first."""

    broker: Broker
    options: dict[str, Any]
    test: str


_STARTED = pytest.StashKey[_Started]()


def pytest_configure(config: pytest.Config) -> None:
    """Ignore kafka-python's warnings, and keep pytest from rewriting the broker's assertions.

    pytest rewrites the assertions of whatever is installed together with a plugin. That would double the time of the
    imports, and change the broker's own assertions. pytest has no public way to prevent it; if it keeps this set elsewhere
    one day, nothing but that time is lost.
    """
    for line in _WARNINGS_OF_KAFKA_PYTHON:
        config.addinivalue_line("filterwarnings", line)
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("ottla")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Fail a test that has options for ``ottla_broker`` which it was not started with; also if they made the setup fail."""
    try:
        yield
    except Exception:
        _refuse_other_options(item)
        raise
    _refuse_other_options(item)


def _refuse_other_options(item: pytest.Item) -> None:
    # A fixture of the session is made once: pytest does not look at the options of a module that asks later.
    given = getattr(item, "funcargs", {})
    started = item.config.stash.get(_STARTED, None)
    if started is None or given.get("ottla_broker") is not started.broker:
        return
    options = given.get("ottla_broker_options", started.options)
    if options != started.options:
        pytest.fail(
            f"ottla_broker was started for {started.test}, with the options {started.options};"
            f" here ottla_broker_options are {options}\n"
            "a session has one ottla_broker: define ottla_broker_options in the topmost conftest.py, or make a broker with"
            " other options by ottla_broker_factory",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Fail a test that would have passed, but with faults that never struck."""
    yield
    missed = _take_never_struck()
    if missed:
        lines = [f"never struck: {fault.asked_for} ({fault.why_not()})" for fault in missed]
        pytest.fail("\n".join([*lines, "required=False is for a fault that need not strike"]), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """Forget the faults of a test that has failed by itself, and those added during the teardown."""
    try:
        yield
    finally:
        _take_never_struck()


def _take_never_struck() -> list[Fault]:
    faults = sys.modules.get("ottla.testing.faults")
    return [] if faults is None else faults.take_never_struck()


@pytest.fixture(scope="session")
def ottla_broker_options() -> dict[str, Any]:
    """Arguments of ``ottla.Broker`` for ``ottla_broker``; define a fixture of this name in conftest.py to give your own."""
    return {}


@pytest.fixture(scope="session")
def ottla_broker(ottla_broker_options: dict[str, Any], pytestconfig: pytest.Config) -> Iterator[Broker]:
    """One broker for all tests of the session; clients connect to ``ottla_broker.bootstrap_servers``."""
    import ottla

    with ottla.Broker(**ottla_broker_options) as broker:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (setup)")
        pytestconfig.stash[_STARTED] = _Started(broker, ottla_broker_options, test)
        yield broker


@pytest.fixture
def ottla_broker_factory() -> Iterator[Callable[..., Broker]]:
    """Call it with the arguments of ``ottla.Broker`` for a broker that is this test's own."""
    import ottla

    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        __tracebackhide__ = True
        started.append(ottla.Broker(**options).start())
        return started[-1]

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture(scope="session")
def ottla_cluster_options() -> dict[str, Any]:
    """Arguments of ``ottla.Cluster`` for ``ottla_cluster``; define a fixture of this name to give your own.

    One in a test module is for the tests of that module.
    """
    return {}


@pytest.fixture
def ottla_cluster(ottla_cluster_options: dict[str, Any]) -> Iterator[Cluster]:
    """A cluster that is this test's own, to kill brokers of; clients connect to ``ottla_cluster.bootstrap_servers``."""
    import ottla

    with ottla.Cluster(**ottla_cluster_options) as cluster:
        yield cluster


@pytest.fixture
def kafka_topics(ottla_broker: Broker, request: pytest.FixtureRequest) -> Iterator[Callable[..., list[str]]]:
    """Call it with a number to create so many topics for this test only; returns their names. They are deleted afterwards.

    ``partitions`` and ``configs`` are those of ``ottla.Broker.create_topic``.
    """
    from ..base.errors import KafkaError

    made: list[str] = []

    def make(count: int, partitions: int = 1, configs: Mapping[str, str] | None = None) -> list[str]:
        __tracebackhide__ = True
        names = [_own_name(request) for _ in range(count)]
        for name in names:
            ottla_broker.create_topic(name, partitions, configs)
            made.append(name)
        return names

    yield make
    for name in made:
        with contextlib.suppress(KafkaError):  # the test has deleted it, or killed the broker
            ottla_broker.delete_topic(name)


@pytest.fixture
def kafka_topic(kafka_topics: Callable[..., list[str]]) -> str:
    """The name of a topic with one partition, for this test only; it is deleted afterwards."""
    (name,) = kafka_topics(1)
    return name


@pytest.fixture
def kafka_group(ottla_broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    """The id of a consumer group, for this test only; the group is deleted afterwards, with its offsets."""
    from ..base.errors import KafkaError

    name = _own_name(request)
    yield name
    with contextlib.suppress(KafkaError):  # the test has not used it, or killed the broker
        ottla_broker.delete_group(name)


def _own_name(request: pytest.FixtureRequest) -> str:
    """A new name with the name of the test in it."""
    test = _NOT_IN_TOPIC_NAMES.sub("-", request.node.name)[:150]
    return f"{test}-{next(_numbers)}"


@pytest.fixture
def kafka_records(ottla_broker: Broker, kafka_topic: str) -> Callable[..., list[KafkaRecord]]:
    """Call it to read the records of ``kafka_topic``, or of ``topic=``; with a count it waits until there are so many."""

    def read(count: int = 0, *, topic: str | None = None, timeout: float = 10.0) -> list[KafkaRecord]:
        __tracebackhide__ = True
        return ottla_broker.records(topic or kafka_topic, count, timeout)

    return read


@pytest.fixture
def kafka_faults(ottla_broker: Broker) -> Iterator[Faults]:
    """``ottla_broker.faults``; at the end of the test all faults are removed."""
    yield ottla_broker.faults
    ottla_broker.faults.clear()


@pytest.fixture
def kafka_requests(ottla_broker: Broker) -> Iterator[Requests]:
    """``ottla_broker.requests``, recording for the length of the test."""
    ottla_broker.requests.clear()
    with ottla_broker.requests.recording():
        yield ottla_broker.requests
