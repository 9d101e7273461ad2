"""The JSON of Kafka's nodes, exactly as Kafka 3.9 wrote them, and of one of Ottla's own."""

from __future__ import annotations

import pytest

from ottla.controller.zookeeper.nodes import znodes
from ottla.metadata.types import AdvertisedListener, BrokerRegistration, LeaderState, ReplicaAssignment, TopicAssignment
from ottla.wire.schema import ZERO_UUID, uuid_from_text

TOPIC_ID = uuid_from_text("ITfn8P4ySKuqlF_K3yw_PQ")

BROKER = (
    b'{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
    b'"endpoints":["PLAINTEXT://127.0.0.1:29392"],"jmx_port":-1,"port":29392,"host":"127.0.0.1","version":5,'
    b'"timestamp":"1795207623743"}'
)
TOPIC = (
    b'{"partitions":{"0":[2,3,1],"1":[2,1,3]},"topic_id":"ITfn8P4ySKuqlF_K3yw_PQ","adding_replicas":{},'
    b'"removing_replicas":{"0":[1]},"version":3}'
)
STATE = b'{"controller_epoch":2,"leader":2,"version":1,"leader_epoch":5,"isr":[3,2]}'


def test_broker() -> None:
    registration = BrokerRegistration(1, (AdvertisedListener("PLAINTEXT", "127.0.0.1", 29392),))
    assert znodes.encode_broker(registration, 1795207623743) == BROKER
    assert znodes.decode_broker(1, BROKER) == registration


def test_broker_with_rack_several_listeners_and_ipv6() -> None:
    endpoints = (AdvertisedListener("IN", "::1", 9093, "SSL"), AdvertisedListener("OUT", "host.example", 9092))
    registration = BrokerRegistration(7, endpoints, "rack-a")
    data = znodes.encode_broker(registration, 5)
    assert b'"endpoints":["IN://[::1]:9093","OUT://host.example:9092"]' in data
    assert b'"port":9092,"host":"host.example"' in data
    assert znodes.decode_broker(7, data) == registration


def test_broker_with_a_malformed_endpoint() -> None:
    with pytest.raises(ValueError, match="is not an endpoint"):
        znodes.decode_broker(1, BROKER.replace(b"PLAINTEXT://127.0.0.1:29392", b"nonsense"))


def test_topic() -> None:
    partitions = {0: ReplicaAssignment((2, 3, 1), removing=(1,)), 1: ReplicaAssignment((2, 1, 3))}
    assert znodes.encode_topic(TopicAssignment(TOPIC_ID, partitions)) == TOPIC
    assert znodes.decode_topic(TOPIC) == TopicAssignment(TOPIC_ID, partitions)


def test_topic_of_an_old_kafka_has_no_id() -> None:
    decoded = znodes.decode_topic(b'{"version":1,"partitions":{"10":[1],"2":[1]}}')
    assert decoded.topic_id == ZERO_UUID
    assert list(decoded.partitions) == [2, 10]


def test_partition_state() -> None:
    assert znodes.encode_state(LeaderState(2, 5, (3, 2), 2)) == STATE
    assert znodes.decode_state(STATE) == LeaderState(2, 5, (3, 2), 2)


def test_controller() -> None:
    data = b'{"version":2,"brokerid":1,"timestamp":"1795207624232","kraftControllerEpoch":-1}'
    assert znodes.encode_controller(1, 1795207624232) == data
    assert znodes.decode_controller(data) == 1


def test_cluster_id() -> None:
    data = b'{"version":"1","id":"5PFQQV4rS9CcOzxExgYs7g"}'
    assert znodes.encode_cluster_id("5PFQQV4rS9CcOzxExgYs7g") == data
    assert znodes.decode_cluster_id(data) == "5PFQQV4rS9CcOzxExgYs7g"


def test_config_and_its_notification() -> None:
    data = b'{"version":1,"config":{"cleanup.policy":"compact"}}'
    assert znodes.encode_config({"cleanup.policy": "compact"}) == data
    assert znodes.decode_config(data) == {"cleanup.policy": "compact"}
    assert znodes.decode_config(b"") == {}
    change = b'{"version":2,"entity_path":"topics/t2"}'
    assert znodes.encode_config_change("topics/t2") == change
    assert znodes.decode_config_change(change) == "topics/t2"
    assert znodes.decode_config_change(b'{"version":1,"entity_type":"topics","entity_name":"t"}') == "topics/t"
    assert znodes.decode_config_change(b'{"version":3}') == ""


def test_producer_id_block() -> None:
    data = b'{"version":1,"broker":3,"block_start":"0","block_end":"999"}'
    assert znodes.encode_producer_id_block(3, 0, 999) == data
    assert znodes.decode_producer_id_block(data) == (0, 999)


def test_paths() -> None:
    assert znodes.state_path("t", 3) == "/brokers/topics/t/partitions/3/state"
    assert znodes.partition_path("t", 3) == "/brokers/topics/t/partitions/3"
    assert znodes.partitions_path("t") == "/brokers/topics/t/partitions"
    assert znodes.topic_config_path("t") == "/config/topics/t"
    assert znodes.delete_topic_path("t") == "/admin/delete_topics/t"
    assert znodes.broker_path(1) == "/brokers/ids/1"
    assert znodes.CONFIG_CHANGE_PREFIX == "/config/changes/config_change_"


def test_known_brokers() -> None:
    known = znodes.KnownRegistrations(7, {1: 25, 10: 4294967312})
    data = b'{"version":1,"controller_epoch":7,"brokers":{"1":25,"10":4294967312}}'
    assert znodes.encode_known_brokers(known) == data
    assert znodes.decode_known_brokers(data) == known
