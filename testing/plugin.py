"""The pytest plugin that comes with the package (entry point pytest11): a Kafka broker for tests, and a cluster of them.

If a test adds a required fault, in any broker, and the fault never hits a request, the test fails when it ends. A session has one
``ottla_broker``, and one more for each set of options that tests are marked with (``marked_options``). A test whose
``ottla_broker_options`` are not those that its broker was started with fails in its setup.

Brokers run in a thread of the test process, so the fixtures serve synchronous tests and those of asyncio and trio. Neither the
broker nor trio is imported before a test uses one of the fixtures.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from . import marked_options

if TYPE_CHECKING:
    from .broker import Broker
    from .cluster import Cluster
    from .expected_records import Expected
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
    """A broker of the session, the options of marks, the ``ottla_broker_options``, and the test that asked first."""

    broker: Broker
    marked: dict[str, Any]
    options: dict[str, Any]
    test: str


_STARTED = pytest.StashKey[list[_Started]]()


def pytest_configure(config: pytest.Config) -> None:
    """Ignore kafka-python's warnings, and keep pytest from rewriting the broker's assertions.

    pytest rewrites the assertions of whatever is installed together with a plugin. That would double the time of the
    imports, and change the broker's own assertions. A public way to prevent it does not exist. If pytest keeps this set
    elsewhere one day, nothing but that time is lost.
    """
    config.stash[_STARTED] = []
    config.addinivalue_line(
        "markers",
        "ottla(**options): options of ottla.Broker (ottla.Cluster) for the ottla_broker (ottla_cluster) of the test",
    )
    for line in _WARNINGS_OF_KAFKA_PYTHON:
        config.addinivalue_line("filterwarnings", line)
    getattr(config.pluginmanager.rewrite_hook, "_must_rewrite", set()).discard("ottla")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give marked tests a broker with the options of their marks."""
    marked_options.parametrize(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Fail a test that has options for ``ottla_broker`` which it was not started with; also if they made the setup fail."""
    marked_options.check_marks(item)
    try:
        yield
    except marked_options.OptionsRefusedError as refusal:
        marked_options.fail(item, str(refusal))
    except Exception:
        _refuse_other_options(item)
        raise
    _refuse_other_options(item)


def _refuse_other_options(item: pytest.Item) -> None:
    # A fixture of the session is made once: pytest does not look at the options of a module that asks later.
    given = getattr(item, "funcargs", {})
    started = next((it for it in item.config.stash[_STARTED] if it.broker is given.get("ottla_broker")), None)
    if started is None:
        return
    options = given.get("ottla_broker_options", started.options)
    if options != started.options:
        pytest.fail(
            f"ottla_broker was started for {started.test}, with the options {started.options};"
            f" here ottla_broker_options are {options}.\n"
            "A session has one ottla_broker: define ottla_broker_options in the topmost conftest.py, or make a broker with"
            " other options by ottla_broker_factory",
            pytrace=False,
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that would have passed, but with faults that never hit a request."""
    try:
        yield
    except marked_options.OptionsRefusedError as refusal:  # of a fixture that the test asks for by ``request``
        marked_options.fail(item, str(refusal))
    missed = _take_never_hit()
    if missed:
        lines = [f"never hit a request: {fault.asked_for} ({fault.why_not()})" for fault in missed]
        pytest.fail("\n".join([*lines, "required=False is for a fault that may hit no request"]), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None]:
    """Forget the faults of a test that has failed by itself, and those added during the teardown."""
    try:
        yield
    finally:
        _take_never_hit()


def _take_never_hit() -> list[Fault]:
    faults = sys.modules.get("ottla.testing.faults")
    return [] if faults is None else faults.take_never_hit()


@pytest.fixture(scope="session")
def ottla_broker_options() -> dict[str, Any]:
    """Arguments of ``ottla.Broker`` for ``ottla_broker``; define a fixture of this name in conftest.py to give your own."""
    return {}


@pytest.fixture(scope="session")
def _ottla_brokers() -> Iterator[contextlib.ExitStack]:
    """The brokers of the session, which all run until its end: tests with other options come between those of one broker."""
    with contextlib.ExitStack() as brokers:
        yield brokers


@pytest.fixture(scope="session")
def ottla_broker(
    ottla_broker_options: dict[str, Any],
    _ottla_brokers: contextlib.ExitStack,
    request: pytest.FixtureRequest,
) -> Broker:
    """One broker for all tests of the session; clients connect to ``ottla_broker.bootstrap_servers``.

    Tests that are marked with options have another one, of all tests with the same options.
    """
    import ottla

    marked: dict[str, Any] = getattr(request, "param", {})
    brokers = request.config.stash[_STARTED]
    for started in brokers:
        if started.marked == marked:
            return started.broker
    broker = marked_options.start(ottla.Broker, ottla_broker_options, marked)
    _ottla_brokers.callback(broker.stop)
    test = os.environ.get("PYTEST_CURRENT_TEST", "").removesuffix(" (setup)")
    brokers.append(_Started(broker, marked, ottla_broker_options, test))
    return broker


@pytest.fixture
def ottla_broker_factory(request: pytest.FixtureRequest) -> Iterator[Callable[..., Broker]]:
    """Call it with the arguments of ``ottla.Broker`` for a broker that is this test's own; marks give others of them."""
    import ottla

    started: list[Broker] = []

    def start(**options: Any) -> Broker:
        __tracebackhide__ = True
        marked = marked_options.of_marks(request.node)
        started.append(ottla.Broker(**{**marked, **options}).start())
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
def ottla_cluster(ottla_cluster_options: dict[str, Any], request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster that is this test's own, to kill brokers of; clients connect to ``ottla_cluster.bootstrap_servers``.

    Marks of the test give options of ``ottla.Cluster``.
    """
    import ottla

    cluster = marked_options.start(ottla.Cluster, ottla_cluster_options, marked_options.of_marks(request.node))
    yield cluster
    cluster.stop()


@pytest.fixture
def kafka_topics(ottla_broker: Broker, request: pytest.FixtureRequest) -> Iterator[Callable[..., list[str]]]:
    """Call it with a number to create this number of topics for this test only; returns their names. They are deleted afterwards.

    ``partitions`` and ``configs`` are those of ``ottla.Broker.create_topic``.
    """
    from ..base.errors import KafkaError

    made: list[str] = []

    def make(
        count: int, partitions: int = 1, configs: Mapping[str, str | int | float | bool] | None = None
    ) -> list[str]:
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
    """Call it to read the records of ``kafka_topic``, or of ``topic=``; with a count it waits for that number of records."""

    def read(count: int = 0, *, topic: str | None = None, timeout: float = 10.0) -> list[KafkaRecord]:
        __tracebackhide__ = True
        return ottla_broker.records(topic or kafka_topic, count, timeout)

    return read


@pytest.fixture
def assert_topic(ottla_broker: Broker) -> Callable[..., None]:
    """``ottla_broker.assert_topic``: call it with a topic and the records that must be in it."""

    def check(topic: str, expected: Sequence[Expected], *, in_order: bool | None = None, timeout: float = 10.0) -> None:
        __tracebackhide__ = True
        ottla_broker.assert_topic(topic, expected, in_order=in_order, timeout=timeout)

    return check


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
