"""Tests that are marked with options of their broker or cluster, run by a pytest of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "no:ottla", "-p", "no:asyncio", "-p", "ottla.testing.plugin", "-p", "no:cacheprovider")

BROKERS = """
import pytest

pytestmark = pytest.mark.ottla(properties={"num.partitions": "2", "message.max.bytes": "5000"})


@pytest.fixture(scope="session")
def address(ottla_broker):
    return ottla_broker.bootstrap_servers


def test_of_the_module(ottla_broker, address, seen):
    seen.append(ottla_broker)
    assert address == ottla_broker.bootstrap_servers
    assert ottla_broker._properties["num.partitions"] == "2"


@pytest.mark.ottla(users={"alice": "secret"}, properties={"num.partitions": "3"})
class TestUsers:
    @pytest.mark.parametrize("name", ["alice"])
    def test_both(self, ottla_broker, address, kafka_topic, seen, name):
        seen.append(ottla_broker)
        assert address == ottla_broker.bootstrap_servers
        assert name in ottla_broker.client_properties(name)["sasl.jaas.config"]
        assert ottla_broker._properties["num.partitions"] == "3"
        assert ottla_broker._properties["message.max.bytes"] == "5000"

    @pytest.mark.ottla(properties={"num.partitions": "4"})
    def test_closest(self, ottla_broker):
        assert ottla_broker._properties["num.partitions"] == "4"


def test_the_same_again(ottla_broker, seen):
    assert ottla_broker is seen[0] and len({id(each) for each in seen}) == 2


def test_factory(ottla_broker_factory):
    assert ottla_broker_factory(listen="127.0.0.1:0")._properties["num.partitions"] == "2"


@pytest.mark.ottla(brokers=1)
def test_cluster(ottla_cluster):
    assert list(ottla_cluster.brokers) == [1]
"""
CONFTEST = """
import pytest


@pytest.fixture(scope="session")
def seen():
    return []
"""
OPTIONS = """
import unittest

import pytest


@pytest.mark.ottla(versoin="3.9")
def test_unknown_option(ottla_broker):
    pass


@pytest.mark.ottla(version="2.7")
def test_unknown_version(ottla_broker):
    pass


@pytest.mark.ottla(broker=1)
def test_unknown_option_of_a_cluster(ottla_cluster):
    pass


@pytest.mark.ottla(version="3.9")
class OfUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def broker(self, ottla_broker):
        self.broker = ottla_broker

    def test_ignored(self):
        pass
"""


def test_options_of_marks(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    file = pytester.makepyfile(BROKERS)
    result = pytester.runpytest_subprocess(*PLUGIN, "-v", "--strict-markers")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines_random(
        [f"{file.name}::TestUsers::test_both[[]alice[]] PASSED*"]
    )  # the name stays as it is


def test_marks_that_cannot_have_an_effect(pytester: pytest.Pytester) -> None:
    mark = "import pytest\n\n\n@pytest.mark.ottla({})\ndef test_it():\n    pass\n"
    pytester.makepyfile(
        test_options=OPTIONS, test_nothing=mark.format('version="3.9"'), test_place=mark.format('"3.9"')
    )
    result = pytester.runpytest_subprocess(*PLUGIN, "-q", "--continue-on-collection-errors")
    result.assert_outcomes(errors=6)
    result.stdout.fnmatch_lines_random(
        [
            "test_nothing.py:4: test_it has the mark ottla, but neither ottla_broker nor ottla_cluster",
            "test_place.py:4: the mark ottla takes keyword arguments, those of ottla.Broker",
            "test_options.py:6: ottla.Broker has no option versoin; did you mean version?",
            "test_options.py:16: ottla.Cluster has no option broker; did you mean brokers?",
            "ottla.Broker: the API versions of Kafka '2.7' are not known; there are *",
            "test_options.py:*: pytest gives no parameters to a unittest.TestCase*",
        ]
    )
    result.stdout.no_fnmatch_line("*During handling*")
