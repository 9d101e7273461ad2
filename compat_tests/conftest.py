"""Options, fixtures and marks of the suite.

The objects behind them are in ``brokers``, ``session`` and ``record``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from ottla.compat_tests import brokers, capabilities, clusters, programs, record, wire_client, xdist_groups
from ottla.compat_tests.client_properties import read_security
from ottla.compat_tests.clients import model
from ottla.compat_tests.clients.registry import CLIENTS, Entry
from ottla.compat_tests.clients.security import Security
from ottla.compat_tests.session import ClientSession
from ottla.compat_tests.wire_client import Operator
from ottla.compat_tests.zookeeper_fixtures import (  # fixtures, for pytest to find here
    zookeeper,
    zookeeper_chroot,
    zookeeper_server,
)

__all__ = ["zookeeper", "zookeeper_chroot", "zookeeper_server"]

MARKS = (
    "capability(name): the row of the table that a test belongs to, one of ``capabilities.GROUPS``",
    "client(name): the column of the table, for tests that take no client library",
    "one_broker(reason): there is nothing in it for a cluster, or it needs one broker to be everything",
    "restart: kills, restarts or sets up the broker, so it cannot run against one that runs already",
    "not_offered(reason): the client's public API has no way to ask for it",
    "since_spark(version): asks for what this release of Spark was the first to have",
    "xdist_group(name): pytest-xdist runs these tests in one process, one after the other",
    "until_spark(version, what): asks for something that has been released for Sparks up to this one",
)
STDERR_KEPT = 4_000
NOT_OURS = "kills, restarts or sets up the broker, which is not ours"
NO_CONSUMER_PROTOCOL = "groups of a cluster on ZooKeeper are classic"
_NOT_TOLD = "its tests don't tell it how to get in"
KNOWS_NO_WAY_IN = {
    **dict.fromkeys(("java-tools", "kafka-streams", "connect"), _NOT_TOLD),
    **dict.fromkeys(("rdkafka", "rskafka"), "built without OpenSSL"),
    "wire": "what it sends must not be changed on the way",
}
"""Clients that are left out where ``--command-config`` says how to get in, and why."""
TopicMaker = Callable[..., str]
OwnBrokers = Callable[..., contextlib.AbstractContextManager[brokers.Restartable]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The suite's own options."""
    group = parser.getgroup("kafka compatibility")
    group.addoption("--bootstrap-server", metavar="HOST:PORT", help="test this broker instead of starting one")
    group.addoption("--command-config", metavar="FILE", help="how clients get in at it: Kafka's client properties")
    group.addoption(
        "--broker", choices=("ottla", "kafka"), default="ottla", help="what to start: Ottla or Apache Kafka"
    )
    group.addoption(
        "--brokers",
        type=int,
        default=1,
        metavar="N",
        help="start a cluster of so many, on ZooKeeper, with three replicas",
    )
    group.addoption(
        "--whole-matrix",
        action="store_true",
        help="each client at each listener and with each mechanism, not only once",
    )
    group.addoption(
        "--client", action="append", metavar="NAME", help=f"only this client: {', '.join(programs.names())}"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Marks and the empty record."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    config.addinivalue_line(
        "filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning"
    )  # kafka-python
    config.stash[record.KEY] = record.Record()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with a ``client`` runs once for each client library that offers its capability.

    One that uses ``group_protocol`` runs once more for each client that has the consumer protocol; only for these, where its
    capability is one of KIP-848.
    """
    if "client_name" not in metafunc.fixturenames:
        return
    capability = capability_of(metafunc.definition)
    if "group_protocol" not in metafunc.fixturenames:
        names = [pytest.param(name, marks=_offered(entry, capability)) for name, entry in CLIENTS.items()]
        metafunc.parametrize("client_name", names, scope="session")
        return
    protocols = ("consumer",) if capability.startswith(capabilities.KIP_848) else ("classic", "consumer")
    pairs = [
        pytest.param(
            name,
            protocol,
            marks=_offered(entry, capabilities.of_protocol(capability, protocol)),
            id=name if protocol == "classic" else f"{name}-848",
        )
        for name, entry in CLIENTS.items()
        for protocol in protocols
        if protocol in entry.group_protocols
    ]
    metafunc.parametrize(("client_name", "group_protocol"), pairs, scope="session")


def _offered(entry: Entry, capability: str) -> pytest.MarkDecorator | tuple[()]:
    return pytest.mark.not_offered(entry.lacks[capability]) if capability in entry.lacks else ()


def capability_of(item: Any) -> str:
    """The row of a test."""
    mark = item.get_closest_marker("capability")
    assert mark is not None, f"{item.nodeid} has no capability mark"
    protocol = item.callspec.params.get("group_protocol", "classic") if hasattr(item, "callspec") else "classic"
    name = capabilities.of_protocol(str(mark.args[0]), protocol)
    if name not in capabilities.capabilities():
        raise pytest.UsageError(f"{item.nodeid}: {name!r} is in no group of capabilities.GROUPS")
    return name


def client_of(item: Any) -> str:
    """The column of a test."""
    if hasattr(item, "callspec") and "client_name" in item.callspec.params:
        return str(item.callspec.params["client_name"])
    mark = item.get_closest_marker("client")
    assert mark is not None, f"{item.nodeid} has neither a client fixture nor a client mark"
    name = str(mark.args[0])
    if name not in programs.names():
        raise pytest.UsageError(f"{item.nodeid}: no client is called {name!r}")
    return name


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Put the tests into groups, before pytest-xdist looks; leave out what is not run, after ``-k`` and Spark's conftest did."""
    for item in filter(is_ours, items):
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    yield
    dropped = left_out(config, filter(is_ours, items))
    if dropped:
        config.hook.pytest_deselected(items=[item for item in items if item in dropped])
        items[:] = [item for item in items if item not in dropped]
    if config.getoption("loadgroup", False):  # in a process of pytest-xdist
        assert all(item.nodeid.endswith(f"@{group_of(item)}") for item in items), "pytest-xdist does not see the groups"
        items.sort(key=lambda item: xdist_groups.order(group_of(item)))


def is_ours(item: pytest.Item) -> bool:
    """Whether a test is of this suite."""
    return Path(__file__).parent in item.path.parents


def group_of(item: pytest.Item) -> str:
    """Where pytest-xdist runs a test."""
    return xdist_groups.group(item.path, client_of(item))


def left_out(config: pytest.Config, items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Other clients' tests; and, kept in the record, what a client or this run has no way for."""
    wanted = config.getoption("--client")
    is_foreign = config.getoption("--bootstrap-server") is not None
    is_secured = config.getoption("--command-config") is not None
    is_cluster = config.getoption("--brokers") > 1
    kept = config.stash[record.KEY]
    dropped = set()
    for item in items:
        client, capability = client_of(item), capability_of(item)
        mark = item.get_closest_marker("not_offered")
        if wanted and client not in wanted:
            dropped.add(item)
        elif mark is not None:
            kept.add(record.Result(item.nodeid, client, capability, record.NOT_APPLICABLE, str(mark.args[0])))
            dropped.add(item)
        elif is_cluster and (why_not := why_not_on_cluster(item)) is not None:
            kept.add(record.Result(item.nodeid, client, capability, record.NOT_APPLICABLE, why_not))
            dropped.add(item)
        elif is_secured and client in KNOWS_NO_WAY_IN:
            kept.add(record.Result(item.nodeid, client, capability, record.NOT_RUN, KNOWS_NO_WAY_IN[client]))
            dropped.add(item)
        elif is_foreign and item.get_closest_marker("restart"):
            kept.add(record.Result(item.nodeid, client, capability, record.NOT_RUN, NOT_OURS))
            dropped.add(item)
    return dropped


def why_not_on_cluster(item: pytest.Item) -> str | None:
    """Why a test is not run on a cluster; None when it is."""
    mark = item.get_closest_marker("one_broker")
    if mark is not None:
        return str(mark.args[0])
    client = CLIENTS.get(client_of(item))
    capability = capability_of(item)
    if capabilities.group_of(capability) == capabilities.GROUPS_OF_KIP_848:
        return NO_CONSUMER_PROTOCOL
    return None if client is None else client.fails_on_clusters.get(capability)


def pytest_report_header(config: pytest.Config) -> str:
    """Which broker, and what is left out."""
    if config.getoption("--bootstrap-server") is None:
        count = config.getoption("--brokers")
        return f"broker: {config.getoption('--broker')}{f', {count} of them' if count > 1 else ''}, started by this run"
    return f"broker: {config.getoption('--bootstrap-server')} (tests that restart the broker are left out)"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Keep the record."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" or report.outcome != "passed":
        word = {"passed": record.PASS, "failed": record.FAIL, "skipped": record.SKIPPED}[report.outcome]
        result = record.Result(item.nodeid, client_of(item), capability_of(item), word)
        if call.excinfo is not None:
            # What drivers in other processes say before they die is on standard error.
            trace = f"{report.longreprtext}\n\n{report.capstderr[-STDERR_KEPT:]}" if word == record.FAIL else ""
            result = dataclasses.replace(result, reason=first_line(call.excinfo), trace=trace)
        item.config.stash[record.KEY].add(result)


def first_line(error: pytest.ExceptionInfo[BaseException]) -> str:
    """What an error says, in a line; the class only where it tells something."""
    text = str(error.value) or error.typename
    is_told = error.errisinstance((AssertionError, pytest.skip.Exception, pytest.fail.Exception))
    first = next(iter(text.strip().splitlines()), error.typename)
    return first if is_told else f"{error.typename}: {first}"


@pytest.fixture(scope="session")
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the broker under test, host:port."""
    given = request.config.getoption("--bootstrap-server")
    if given is not None:
        yield given
        return
    kind, folder = request.config.getoption("--broker"), tmp_path_factory.mktemp("broker")
    if request.config.getoption("--brokers") > 1:
        properties = {"zookeeper.session.timeout.ms": "18000"}  # no broker dies here, and the machine may be busy
        with clusters.cluster(kind, folder, request.config.getoption("--brokers"), properties=properties) as cluster:
            yield cluster.bootstrap
    else:
        with brokers.shared(kind, folder) as address:
            yield address


@pytest.fixture(scope="session")
def security(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Security:
    """How clients get in at the broker under test."""
    file = request.config.getoption("--command-config")
    found = Security() if file is None else read_security(Path(file), tmp_path_factory.mktemp("security"))
    wire_client.use(found)
    return found


@pytest.fixture
def own_brokers(request: pytest.FixtureRequest, tmp_path: Path) -> OwnBrokers:
    """``own_brokers(**properties)``: for a block, a broker of the test's own, or a cluster, whose leader a kill is of."""

    @contextlib.contextmanager
    def started(**properties: str) -> Iterator[brokers.Restartable]:
        kind, count = request.config.getoption("--broker"), request.config.getoption("--brokers")
        if count == 1:
            with brokers.process(kind, tmp_path, properties=brokers.QUICK_CONSUMER_GROUPS | properties) as broker:
                yield broker
            return
        with clusters.cluster(kind, tmp_path, count, properties=clusters.QUICK_TO_MISS | properties) as cluster:
            yield clusters.RestartableCluster(cluster)

    return started


@pytest.fixture
def broker_process(own_brokers: OwnBrokers) -> Iterator[brokers.Restartable]:
    """A broker of the test's own, which it may kill and restart; or a cluster, whose leader it kills."""
    with own_brokers() as broker:
        yield broker


@pytest.fixture(scope="session")
def drivers(
    request: pytest.FixtureRequest, bootstrap: str, security: Security
) -> Iterator[Callable[[str], model.Client]]:
    """The drivers of client libraries by name, bound to the broker under test."""
    made: dict[str, model.Client] = {}

    def driver(name: str) -> model.Client:
        if name in made and made[name].has_ended():
            # This costs a test, but not all that come after it.
            made.pop(name).close()
            raise RuntimeError(f"the driver of {name} has ended by itself")
        if name not in made:
            made[name] = CLIENTS[name].connect(bootstrap)
            if security.protocol != "PLAINTEXT":
                made[name].secure(security)
            request.config.stash[record.KEY].versions[name] = made[name].version()
        return made[name]

    yield driver
    for each in made.values():
        each.close()


@pytest.fixture
def topics_to_delete(operator: Operator) -> Iterator[list[str]]:
    """Names of topics that go when the test and its clients are done: clients that still ran would create them again."""
    names: list[str] = []
    yield names
    for name in names:
        operator.delete_topic(name)


@pytest.fixture
def sessions(
    drivers: Callable[[str], model.Client], topics_to_delete: list[str]
) -> Iterator[Callable[[str], ClientSession]]:
    """Clients by name, for the length of the test; they go before its topics do."""
    made: dict[str, ClientSession] = {}

    def session(name: str) -> ClientSession:
        if name not in made:
            made[name] = ClientSession(name, drivers(name))
        return made[name]

    yield session
    for each in made.values():
        each.close()


@pytest.fixture
def client(client_name: str, sessions: Callable[[str], ClientSession]) -> ClientSession:
    """The client library under test."""
    return sessions(client_name)


@pytest.fixture
def group_client(
    client: ClientSession,
    group_protocol: Literal["classic", "consumer"],
) -> ClientSession:
    """The client library under test, whose consumers are members of groups by one of its protocols."""
    client.group_protocol = group_protocol
    return client


@pytest.fixture(scope="session")
def fresh_name() -> Callable[[str], str]:
    """Names that no other run has used on this broker."""
    numbers = itertools.count(1)
    run = f"{os.getpid():x}{os.urandom(3).hex()}"

    def name(purpose: str) -> str:
        return f"compat-{run}-{next(numbers)}-{re.sub('[^A-Za-z0-9._-]+', '-', purpose)}"[:200]

    return name


@pytest.fixture(scope="session")
def operator(bootstrap: str, security: Security) -> Operator:
    """Prepares topics for all tests, and gets in as the clients do."""
    return Operator(bootstrap)


@pytest.fixture
def make_topic(
    operator: Operator, fresh_name: Callable[[str], str], topics_to_delete: list[str], request: pytest.FixtureRequest
) -> TopicMaker:
    """Creates topics, ready for use: ``make_topic(partitions=1, **{"max.message.bytes": "1000"})``."""

    def make(partitions: int = 1, **configs: str) -> str:
        name = fresh_name(request.node.name)
        topics_to_delete.append(name)
        operator.create_topic(name, partitions, configs)
        return name

    return make


@pytest.fixture
def topic(make_topic: TopicMaker) -> str:
    """A fresh topic of one partition."""
    return make_topic()


@pytest.fixture
def group_id(fresh_name: Callable[[str], str], request: pytest.FixtureRequest) -> str:
    """A group id that was never used."""
    return fresh_name("group-" + request.node.name)
