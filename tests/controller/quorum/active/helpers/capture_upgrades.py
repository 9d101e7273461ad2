"""The script of ``kafka-4.3.1-upgrades.json``: a cluster of the oldest metadata.version is upgraded, level by level."""

from __future__ import annotations

from typing import Any

from ottla.wire.api_keys import ApiKey

from .capture_kafka import CONTROLLER, Capture
from .script_brokers import beat, feature_ranges, register
from .script_partitions import alter_partition
from .script_settings import BROKER, SET, TOPIC, alter, resource, update_features
from .script_topics import create, placed

ABOUT = (
    "A cluster of metadata.version 7 is upgraded to 30 by a controller of Apache Kafka 4.3.1; made by capture_kafka.py."
)
PROPERTIES: dict[str, str] = {}
FORMAT = ("-r", "3.3-IV3")
REGISTERS = False

_UPGRADE, _SAFE, _UNSAFE = 1, 2, 3


def _raise(capture: Capture, level: int, about: str = "", kind: int = _UPGRADE) -> None:
    about = f"metadata.version {level}{about}"
    update_features(capture, about, {"metadata.version": level}, kind)


def _credential(capture: Capture) -> None:
    fields = {
        "name": "u",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"salt".hex(),
        "salted_password": b"password".hex(),
    }
    about = "a credential, and the removal of another"
    deletions = [{"name": "v", "mechanism": 1}]
    capture.call(about, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, deletions=deletions, upsertions=[fields])


def _token(capture: Capture) -> None:
    nobody = {"owner_principal_type": None, "owner_principal_name": None}
    capture.call(
        "a token",
        ApiKey.CREATE_DELEGATION_TOKEN,
        3,
        principal="User:alice",
        now=lambda response: response.issue_timestamp_ms,
        **nobody,
        max_lifetime_ms=-1,
    )


def _shrink_and_expand(capture: Capture) -> None:
    leader = capture.partition("t").leader
    alter_partition(capture, "a replica leaves", "t", 0, leader, [leader])
    alter_partition(capture, "it returns", "t", 0, leader, [leader, 3 - leader])


def _cordon(capture: Capture) -> None:
    change = resource(BROKER, "1", ("cordoned.log.dirs", SET, ""))
    alter(capture, "cordoned directories of a broker", change)


def _registration(capture: Capture, broker_id: int, **more: Any) -> None:
    register(capture, f"broker {broker_id} is registered", broker_id, **more)
    beat(capture, f"broker {broker_id} is unfenced", broker_id)


def script(capture: Capture) -> None:
    only = dict.fromkeys(("group_version", "share_version", "streams_version"))
    old = feature_ranges(**only, metadata_version=(7, 21))
    register(capture, "broker 1, by version 0", 1, 0, log_dirs=[])
    beat(capture, "broker 1 is unfenced", 1, 0)
    _registration(capture, 2, features=old)
    create(capture, "topic t", placed("t", [1, 2]))
    _shrink_and_expand(capture)
    _credential(capture)
    _token(capture)
    _cordon(capture)
    fields = {"controller_id": CONTROLLER + 1, "incarnation_id": "incarnation of another controller"}
    capture.call(
        "a controller cannot be registered", ApiKey.CONTROLLER_REGISTRATION, 0, **fields, features=feature_ranges()
    )
    directory = {"id": "1a", "topics": [{"topic_id": capture.topic_id("t"), "partitions": [{"partition_index": 0}]}]}
    sender = {"broker_id": 1, "broker_epoch": capture.epochs[1]}
    capture.call("directories cannot be assigned", ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, **sender, directories=[directory])
    beat(capture, "broker 2 wants to stop", 2, want_shut_down=True)
    beat(capture, "broker 2 is fenced", 2, want_fence=True)
    beat(capture, "broker 2 is unfenced", 2)
    update_features(capture, "checked: metadata.version 8", {"metadata.version": 8}, validate_only=True)
    _raise(capture, 8)
    _registration(capture, 1)
    for level in (9, 10):
        _raise(capture, level)
    _raise(capture, 9, ", which changed no record", _SAFE)
    _raise(capture, 8, ", which changed no record", _UNSAFE)
    _raise(capture, 7, ", refused", _SAFE)
    _raise(capture, 11)
    _credential(capture)
    _shrink_and_expand(capture)
    _raise(capture, 12)
    _shrink_and_expand(capture)
    _raise(capture, 14)
    _token(capture)
    update_features(capture, "refused: eligible leader replicas", {"eligible.leader.replicas.version": 1})
    _raise(capture, 15)
    capture.wait("the controller registers itself")
    _registration(capture, 1)
    _raise(capture, 17)
    _registration(capture, 1)
    capture.call("directories can be assigned", ApiKey.ASSIGN_REPLICAS_TO_DIRS, 0, **sender, directories=[directory])
    register(capture, "refused: a broker without directories", 2, log_dirs=[])
    create(capture, "a topic with directories, and one replica in none", placed("d", [1, 2]))
    _registration(capture, 2, features=old)
    create(capture, "a topic with directories", placed("e", [2, 1]))
    _raise(capture, 21)
    _raise(capture, 18, ", which changed no record", _SAFE)
    _raise(capture, 16, ", refused", _SAFE)
    _raise(capture, 23, ", which broker 2 does not have")
    _registration(capture, 2)
    update_features(capture, "with 23 at once", {"metadata.version": 23, "eligible.leader.replicas.version": 1})
    update_features(capture, "eligible leader replicas off", {"eligible.leader.replicas.version": 0}, _SAFE)
    update_features(capture, "kraft.version", {"kraft.version": 1})
    _raise(capture, 25)
    update_features(capture, "group.version and transaction.version", {"group.version": 1, "transaction.version": 2})
    change = resource(BROKER, "1", ("min.insync.replicas", SET, "2"))
    alter(capture, "min.insync.replicas of a broker", change)
    update_features(capture, "eligible leader replicas", {"eligible.leader.replicas.version": 1})
    alter(capture, "min.insync.replicas", resource(TOPIC, "t", ("min.insync.replicas", SET, "2")))
    beat(capture, "broker 2 is fenced", 2, want_fence=True)
    beat(capture, "broker 2 is unfenced", 2)
    for level in (27, 29, 30):
        _raise(capture, level)
    update_features(capture, "share.version and streams.version", {"share.version": 1, "streams.version": 1})
    _cordon(capture)
    beat(capture, "broker 1 has no cordoned directory", 1, cordoned_log_dirs=[])
