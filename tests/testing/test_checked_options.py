"""What ``ottla.Broker`` and ``ottla.Cluster`` say of a wrong option: one sentence, from the constructor."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

import ottla
from ottla.base.settings import SettingError

NOT_A_DICT = "it must be a dict of Kafka's broker properties"
NO_NUMBER = "Invalid value nope for configuration num.partitions: Not a number of type INT"
OF_BROKERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"properties": ["num.partitions=3"]}, TypeError, f"properties is ['num.partitions=3'] (list); {NOT_A_DICT}"),
    ({"properties": {5: "3"}}, TypeError, "a name in properties is 5 (int); it must be a str"),
    (
        {"properties": {"num.partitions": None}},
        TypeError,
        "properties['num.partitions'] is None (NoneType); it must be a str, int, float or bool",
    ),
    (
        {"properties": {"ssl.key.password": [123]}},
        TypeError,
        "properties['ssl.key.password'] is [hidden] (list); it must be a str, int, float or bool",
    ),
    ({"properties": {"num.partitions": "nope"}}, SettingError, NO_NUMBER),
    ({"properties": {"num.partitions": True}}, SettingError, NO_NUMBER.replace("nope", "true")),
    (
        {"properties": {"num.partition": 3}},
        SettingError,
        "Invalid value 3 for configuration num.partition: no such property; did you mean num.partitions?",
    ),
    ({"users": ["alice"]}, TypeError, "users is ['alice'] (list); it must be a dict of names and passwords"),
    ({"users": {"alice": 123}}, TypeError, "users['alice'] is [hidden] (int); it must be a password (str)"),
    (
        {"users": {"alice": ""}},
        ValueError,
        "the password of 'alice' in users is empty; a user needs a name and a password",
    ),
    ({"users": {"": "x"}}, ValueError, "a name in users is empty; a user needs a name and a password"),
    ({"version": 3.9}, TypeError, 'version is 3.9 (float); it must be a str such as "3.9"'),
    ({"tls": "yes"}, TypeError, "tls is 'yes' (str); it must be True or False"),
    ({"listen": 9092}, TypeError, "listen is 9092 (int); it must be HOST:PORT (str)"),
    ({"listen": "9092"}, ValueError, "listen: '9092' is not HOST:PORT"),
    ({"data_dir": 5}, TypeError, "data_dir is 5 (int); it must be a directory (str or Path)"),
    ({"versoin": "3.9"}, TypeError, "ottla.Broker has no option versoin; did you mean version?"),
    (
        {"brokers": 5},
        TypeError,
        "ottla.Broker has no option brokers; ottla.Cluster (fixture ottla_cluster) has it",
    ),
    (
        {"acks": 1},
        TypeError,
        "ottla.Broker has no option acks; its options are data_dir, listen, properties, version, users, tls",
    ),
]
OF_CLUSTERS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"brokers": "5"}, TypeError, "brokers is '5' (str); it must be a number of 1 or more (int)"),
    ({"brokers": True}, TypeError, "brokers is True (bool); it must be a number of 1 or more (int)"),
    ({"brokers": 0}, ValueError, "brokers is 0; a cluster has one broker or more"),
    ({"broker": 5}, TypeError, "ottla.Cluster has no option broker; did you mean brokers?"),
    ({"tls": True}, TypeError, "ottla.Cluster has no option tls; ottla.Broker (fixture ottla_broker) has it"),
    ({"properties": {"num.partitions": "nope"}}, SettingError, NO_NUMBER),
    (
        {"broker_properties": ["r1"]},
        TypeError,
        "broker_properties is ['r1'] (list); it must be a dict of broker ids and dicts of Kafka's broker properties",
    ),
    (
        {"broker_properties": {"broker.rack": "r1"}},
        ValueError,
        "broker_properties has the broker 'broker.rack'; the ids of the brokers are 1 to 3",
    ),
    (
        {"brokers": 2, "broker_properties": {3: {}}},
        ValueError,
        "broker_properties has the broker 3; the ids of the brokers are 1 to 2",
    ),
    (
        {"broker_properties": {1: "r1"}},
        TypeError,
        f"broker_properties[1] is 'r1' (str); {NOT_A_DICT}",
    ),
    (
        {"broker_properties": {1: {"broker.rack": None}}},
        TypeError,
        "broker_properties[1]['broker.rack'] is None (NoneType); it must be a str, int, float or bool",
    ),
]
CALLS = [
    *((ottla.Broker, *case) for case in OF_BROKERS),
    *((ottla.Cluster, *case) for case in OF_CLUSTERS),
]


@pytest.mark.parametrize(
    ("make", "options", "kind", "sentence"), CALLS, ids=[f"{make.__name__} of {given}" for make, given, _, _ in CALLS]
)
def test_a_wrong_option_is_one_sentence(
    make: Callable[..., Any], options: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    with pytest.raises(kind, match=f"^{re.escape(sentence)}$") as refused:
        make(**options)
    assert type(refused.value) is kind
    # No more than the checks themselves: neither the broker's frames nor an error before it.
    text = "".join(traceback.format_exception(refused.value))
    assert "config_file.py" not in text and "During handling" not in text


def test_a_long_value_is_cut() -> None:
    wrong: Any = ["alice"] * 1000
    with pytest.raises(TypeError) as refused:
        ottla.Broker(users=wrong)
    assert len(str(refused.value)) < 250


def test_properties_of_one_broker_have_to_fit_those_of_all() -> None:
    """The interval is above the default of the highest, and not above the one that all brokers have."""
    common = {"group.consumer.max.heartbeat.interval.ms": 30_000}
    own = {1: {"group.consumer.heartbeat.interval.ms": 20_000}}
    ottla.Cluster(properties=common, broker_properties=own)
    with pytest.raises(SettingError, match=r"^Invalid value 20000 for .*\.heartbeat\.interval\.ms: must be less than "):
        ottla.Cluster(broker_properties=own)


def test_numbers_and_bools_are_written_as_kafka_writes_them() -> None:
    properties: dict[str, str | int | float | bool] = {
        "num.partitions": 3,
        "auto.create.topics.enable": False,
        "log.cleaner.min.cleanable.ratio": 0.25,
        "compression.type": "lz4",
    }
    with (
        ottla.Broker(properties=properties) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        asked = ConfigResource(ConfigResourceType.BROKER, str(broker.broker_id))
        (by_name,) = admin.describe_configs([asked], config_filter="all").values()
        (described,) = by_name.values()
    assert {name: described[name]["value"] for name in properties} == {
        "num.partitions": "3",
        "auto.create.topics.enable": "false",
        "log.cleaner.min.cleanable.ratio": "0.25",
        "compression.type": "lz4",
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[ottla.Cluster]:
    with ottla.Cluster(1) as running:
        yield running


@pytest.mark.parametrize("of", ["ottla_broker", "cluster"])
def test_configs_of_a_topic_may_be_numbers_and_bools(of: str, request: pytest.FixtureRequest) -> None:
    """A wrong one is refused in the caller's thread, and the controller runs on."""
    made = request.getfixturevalue(of)
    with pytest.raises(
        TypeError, match=r"^configs is \['retention\.ms=1'\] \(list\); it must be a dict of Kafka's topic"
    ):
        made.create_topic("refused", configs=["retention.ms=1"])
    with pytest.raises(
        TypeError, match=r"^configs\['retention\.ms'\] is None \(NoneType\); it must be a str, int, float or"
    ):
        made.create_topic("refused", configs={"retention.ms": None})
    made.create_topic("with-numbers", configs={"retention.ms": 1000, "preallocate": True})
    with KafkaAdminClient(bootstrap_servers=made.bootstrap_servers) as admin:
        asked = ConfigResource(ConfigResourceType.TOPIC, "with-numbers")
        (by_name,) = admin.describe_configs([asked], config_filter="all").values()
    described = by_name["with-numbers"]
    assert (described["retention.ms"]["value"], described["preallocate"]["value"]) == ("1000", "true")
    made.delete_topic("with-numbers")
