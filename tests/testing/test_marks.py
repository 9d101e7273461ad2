"""Tests that are marked with options of their broker or cluster, run by a pytest of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

PLUGIN = ("-p", "no:ottla", "-p", "no:asyncio", "-p", "ottla.testing.plugin", "-p", "no:cacheprovider")

BROKERS = """
import pytest

pytestmark = pytest.mark.ottla(properties={"num.partitions": 2, "message.max.bytes": "5000"})


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
WRONG = """
import unittest

import pytest

pytestmark = pytest.mark.ottla(properties={"message.max.bytes": 5000})


@pytest.mark.ottla(versoin="3.9")
def test_unknown_option(ottla_broker):
    pass


@pytest.mark.ottla(version=3.9)
def test_number_as_version(ottla_broker):
    pass


@pytest.mark.ottla(brokers=5)
def test_option_of_a_cluster(ottla_broker):
    pass


@pytest.mark.ottla(broker=1)
def test_unknown_option_of_a_cluster(ottla_cluster):
    pass


@pytest.mark.ottla(brokers="5")
def test_text_as_number(ottla_cluster):
    pass


@pytest.mark.ottla(properties=["num.partitions=3"])
class TestProperties:
    def test_no_dict(self, ottla_broker):
        pass

    @pytest.mark.ottla(properties={"num.partitions": 3})
    def test_no_dict_below(self, ottla_broker):
        pass


@pytest.mark.ottla(properties={"num.partition": "3"})
def test_misspelt_property(ottla_broker):
    pass


@pytest.mark.ottla(properties={"num.partitions": "nope"})
def test_value_of_a_property(ottla_broker):
    pass


@pytest.mark.ottla(properties={"inter.broker.listener.name": "UNKNOWN"})
def test_refused_at_the_start(ottla_broker):
    pass


@pytest.mark.ottla(version="3.9")
def test_without_a_broker():
    pass


@pytest.mark.ottla("3.9")
def test_without_a_name(ottla_broker):
    pass


@pytest.mark.parametrize("name", [pytest.param("x", marks=pytest.mark.ottla(version="3.9"))])
def test_too_late(ottla_broker, name):
    pass


@pytest.mark.ottla(version="3.9")
class OfUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def broker(self, ottla_broker):
        self.broker = ottla_broker

    def test_ignored(self):
        pass


def test_the_others_run(ottla_broker):
    pass
"""
WHY = {
    8: "ottla_broker: ottla.Broker has no option versoin; did you mean version?",
    13: 'ottla_broker: version is 3.9 (float); it must be a str such as "3.9"',
    18: "ottla_broker: ottla.Broker has no option brokers; ottla.Cluster (fixture ottla_cluster) has it",
    23: "ottla_cluster: ottla.Cluster has no option broker; did you mean brokers?",
    28: "ottla_cluster: brokers is '5' (str); it must be a number of 1 or more (int)",
    35: "ottla_broker: properties is ['num.partitions=3'] (list); it must be a dict of Kafka's broker properties",
    38: "ottla_broker: properties is ['num.partitions=3'] (list); it must be a dict of Kafka's broker properties",
    43: "ottla_broker: Invalid value 3 for configuration num.partition: no such property; did you mean num.partitions?",
    48: "ottla_broker: Invalid value nope for configuration num.partitions: Not a number of type INT",
    53: "ottla_broker: Invalid value UNKNOWN for configuration inter.broker.listener.name: no such name is among the *",
    58: "test_without_a_broker has the mark ottla, but neither ottla_broker nor ottla_cluster",
    63: "the mark ottla takes keyword arguments, those of ottla.Broker",
    68: "the mark ottla has no effect in a pytest.param, or on a test that is collected: mark the function",
    79: "the mark ottla has no effect here: pytest gives no parameters to a unittest.TestCase: start an *",
}
"""The line of each wrong test or mark, and the sentence about it."""
FIXTURES = """
import pytest


@pytest.fixture(scope="session")
def ottla_broker_options():
    return {"users": ["alice"]}


@pytest.fixture(scope="session")
def ottla_cluster_options():
    pass


def test_one(ottla_broker):
    pass


def test_another(kafka_topic):
    pass


def test_by_request(request):
    request.getfixturevalue("ottla_cluster")


def test_factory(ottla_broker_factory):
    ottla_broker_factory(versoin="3.9")
"""


def test_options_of_marks(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    file = pytester.makepyfile(BROKERS)
    result = pytester.runpytest_subprocess(*PLUGIN, "-v", "--strict-markers")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines_random(
        [f"{file.name}::TestUsers::test_both[[]alice[]] PASSED*"]
    )  # the name stays as it is


def test_wrong_options_of_marks_have_a_place_and_a_sentence(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_wrong=WRONG)
    result = pytester.runpytest_subprocess(*PLUGIN, "-q")
    result.assert_outcomes(passed=1, errors=len(WHY))
    result.stdout.fnmatch_lines_random([f"test_wrong.py:{line}: {_literal(why)}" for line, why in WHY.items()])
    for part in ("*Traceback*", "E  *", "*During handling*", "*plugin.py*", "*Interrupted*"):
        result.stdout.no_fnmatch_line(part)


def test_wrong_options_of_fixtures_have_the_place_of_each_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_wrong=FIXTURES)
    result = pytester.runpytest_subprocess(*PLUGIN, "-q")
    result.assert_outcomes(failed=2, errors=2)
    users = _literal("ottla_broker: users is ['alice'] (list); it must be a dict of names and passwords")
    options = "ottla_cluster: ottla_cluster_options is None (NoneType); it must be a dict of options of ottla.Cluster"
    result.stdout.fnmatch_lines(
        [
            f"test_wrong.py:14: {users}",
            f"test_wrong.py:18: {users}",
            f"test_wrong.py:22: {options}",
            ">       ottla_broker_factory(versoin=*",
            "E       TypeError: ottla.Broker has no option versoin; did you mean version[?]",
            "test_wrong.py:27: TypeError",
        ]
    )
    result.stdout.no_fnmatch_line("*plugin.py*")


def _literal(text: str) -> str:
    """A pattern of fnmatch for a text, but for its asterisks."""
    return text.replace("[", "[[]").replace("?", "[?]")
