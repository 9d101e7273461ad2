"""The declarations of ``wire.messages`` against Kafka's message definitions, field by field and version by version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.wire.api_keys import FIRST_OF_OTTLA, NEVER_FLEXIBLE, ApiKey, flexible_from
from ottla.wire.coordinator_records import (
    OFFSETS_TOPIC_TYPES,
    SHARE_TOPIC_TYPES,
    offsets_topic_classes,
    share_topic_classes,
    transaction_topic_classes,
)
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.metadata_records import RECORD_TYPES, metadata_record_class
from ottla.wire.registry import request_class, response_class
from ottla.wire.schema import Array, Message, Primitive, WireType, parse_versions

NEWEST, OLDEST, COORDINATORS = "kafka-clients-4.4.0", "kafka-clients-3.9.2", "coordinators-4.3.1"

KAFKAS = [key for key in ApiKey if key < FIRST_OF_OTTLA]
API_CLASSES = {cls.__name__: cls for key in KAFKAS for cls in (request_class(key), response_class(key))}
PROTOCOL_CLASSES = {cls.__name__: cls for cls in (ConsumerProtocolSubscription, ConsumerProtocolAssignment)}
RECORD_CLASSES = {
    cls.__name__: cls
    for pair in (
        *map(offsets_topic_classes, OFFSETS_TOPIC_TYPES),
        transaction_topic_classes(0),
        *map(share_topic_classes, SHARE_TOPIC_TYPES),
    )
    for cls in pair
}
RECORD_CLASSES |= {cls.__name__: cls for cls in map(metadata_record_class, RECORD_TYPES)}

# What Kafka 4 calls otherwise than Kafka 3.9 did, with the same bytes. The declarations have the newer names.
RENAMED_MESSAGES = {
    "ListClientMetricsResourcesRequest": "ListConfigResourcesRequest",
    "ListClientMetricsResourcesResponse": "ListConfigResourcesResponse",
}
# Version 0 was unstable in Kafka 3.9, and got a field later.
UNSTABLE_IN_KAFKA_3 = {"ReadShareGroupStateSummaryResponse"}
RENAMED_FIELDS = {
    ("ListConfigResourcesResponse", "client_metrics_resources"): "config_resources",
    ("ListConfigResourcesResponse", "client_metrics_resources.name"): "config_resources.resource_name",
    ("TxnOffsetCommitRequest", "generation_id"): "generation_id_or_member_epoch",
    ("VoteRequest", "topics.partitions.candidate_epoch"): "topics.partitions.replica_epoch",
    ("VoteRequest", "topics.partitions.candidate_id"): "topics.partitions.replica_id",
    ("VoteRequest", "topics.partitions.candidate_directory_id"): "topics.partitions.replica_directory_id",
}
# Structs that would share a name inside one module, and the one case where Kafka renamed one.
RENAMED_STRUCTS = {
    "ResponsePartitionData": "PartitionData",
    "ResponseTopicData": "TopicData",
    "ResponseEntryData": "EntryData",
    "ResponsePartitionSnapshot": "PartitionSnapshot",
    "ResponseTopicSnapshot": "TopicSnapshot",
    "ResponseDirectoryData": "DirectoryData",
    "AssignedTopicPartition": "TopicPartition",
    "CurrentTaskIds": "TaskIds",
    "ConfigResource": "ClientMetricsResource",
}
ODD_NAMES = {
    "isKRaftController": "is_kraft_controller",
    "KRaftVersionFeature": "kraft_version_feature",
    "Enable2Pc": "enable_2pc",
}

Description = tuple[str, str, bool, Any, int | None, bool]


def snake_case(name: str) -> str:
    """Kafka's name of a field as the declarations spell it."""
    return ODD_NAMES.get(name) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def in_range(versions: str | None, version: int) -> bool:
    return versions not in (None, "none") and version in parse_versions(versions)


def default_of(field: dict[str, Any]) -> Any:
    """The default a definition gives, as Python has it; ``...`` for an empty list or struct."""
    kind, given = field["type"], field.get("default")
    text = "" if given is None else str(given).lower()
    if text == "null" or kind == "records":
        return None
    if kind.startswith("[]") or kind[0].isupper():
        return ...
    if kind == "bool":
        return text == "true"
    if kind == "string":
        return text
    if kind in ("bytes", "uuid"):
        return bytes(16 if kind == "uuid" else 0)
    return float(text or 0) if kind == "float64" else int(text or "0", 0)


def described(definition: dict[str, Any], version: int) -> list[Description]:
    """Every field a definition has in a version, nested ones behind their holder, tagged ones last and by tag."""
    structs = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", ())}

    def walk(fields: list[dict[str, Any]], path: str) -> Iterator[Description]:
        present = [field for field in fields if in_range(field.get("versions", field.get("taggedVersions")), version)]
        for field in sorted(present, key=tag_order):
            name = path + snake_case(field["name"])
            tag = int(field["tag"]) if in_range(field.get("taggedVersions"), version) else None
            nullable = in_range(field.get("nullableVersions"), version)
            ignorable = str(field.get("ignorable", "")).lower() == "true"
            yield name, field["type"], nullable, default_of(field), tag, ignorable
            nested = field.get("fields") or structs.get(field["type"].removeprefix("[]"), [])
            yield from walk(nested, f"{name}.")

    def tag_order(field: dict[str, Any]) -> int:
        return int(field["tag"]) if in_range(field.get("taggedVersions"), version) else -1

    return list(walk(definition["fields"], ""))


def type_name(wire_type: WireType) -> str:
    if isinstance(wire_type, Array):
        return "[]" + type_name(wire_type.element)
    return wire_type.name if isinstance(wire_type, Primitive) else wire_type.__name__


def declared(message_class: type[Message], version: int) -> list[Description]:
    """The same of a declaration."""

    def walk(struct: Any, path: str) -> Iterator[Description]:
        present = [spec for spec in struct.fields if version in spec.versions]
        for spec in sorted(present, key=lambda spec: -1 if spec.tag is None else spec.tag):
            default = spec.make_default()
            element = spec.type.element if isinstance(spec.type, Array) else spec.type
            if spec.is_optional_struct or (default is not None and not isinstance(spec.type, Primitive)):
                default = ...
            name = path + spec.name
            yield name, type_name(spec.type), version in spec.nullable, default, spec.tag, spec.ignorable
            if not isinstance(element, Primitive):
                yield from walk(element, f"{name}.")

    return list(walk(message_class, ""))


def plain_types(fields: list[Description]) -> list[Description]:
    """With the structs under Kafka's names."""
    result = []
    for name, kind, *rest in fields:
        prefix = "[]" if kind.startswith("[]") else ""
        base = kind.removeprefix("[]")
        result.append((name, prefix + RENAMED_STRUCTS.get(base, base), *rest))
    return result


def check(message_class: type[Message], definition: dict[str, Any], ignorable: dict[str, bool]) -> None:
    """``ignorable`` has what a newer release says about a field, by path: it is the one attribute they may differ in."""
    for version in parse_versions(definition["validVersions"]):
        expected = []
        for name, *rest, is_ignorable in described(definition, version):
            path = RENAMED_FIELDS.get((message_class.__name__, name), name)
            expected.append((path, *rest, ignorable.get(path, is_ignorable)))
        label = f"{message_class.__name__} v{version}"
        assert plain_types(declared(message_class, version)) == plain_types(expected), label
        assert (version in message_class.flexible_versions) == in_range(definition.get("flexibleVersions"), version), (
            label
        )


Releases = Callable[[str], Any]


@pytest.mark.parametrize("name", [*API_CLASSES, *PROTOCOL_CLASSES])
def test_declared_as_kafka_4(releases: Releases, name: str) -> None:
    definition = releases(NEWEST).definitions[name]
    message_class = (API_CLASSES | PROTOCOL_CLASSES)[name]
    if definition["validVersions"] != "none":
        check(message_class, definition, {})
    if name in API_CLASSES:
        assert message_class.api_key == definition["apiKey"]


def test_declared_as_kafka_3(releases: Releases) -> None:
    newer, checked = releases(NEWEST).definitions, set()
    for old_name, definition in releases(OLDEST).definitions.items():
        name = RENAMED_MESSAGES.get(old_name, old_name)
        message_class = (API_CLASSES | PROTOCOL_CLASSES).get(name)
        if message_class is not None and name not in UNSTABLE_IN_KAFKA_3:
            last = parse_versions(definition["validVersions"]).stop - 1
            same = newer[name] if newer[name]["validVersions"] != "none" else definition
            check(message_class, definition, {field[0]: field[-1] for field in described(same, last)})
            checked.add(name)
    assert len(checked) >= 2 * 70


@pytest.mark.parametrize("name", RECORD_CLASSES)
def test_records_declared_as_kafka(releases: Releases, name: str) -> None:
    definition = releases(COORDINATORS).definitions[name]
    check(RECORD_CLASSES[name], definition, {})
    assert RECORD_CLASSES[name].valid_versions == parse_versions(definition["validVersions"])
    assert RECORD_CLASSES[name].api_key == definition["apiKey"]


def test_every_record_is_declared(releases: Releases) -> None:
    assert set(releases(COORDINATORS).definitions) == set(RECORD_CLASSES)


def test_versions_are_those_of_both_releases(releases: Releases) -> None:
    for name, message_class in API_CLASSES.items():
        names = [name, *(old for old, new in RENAMED_MESSAGES.items() if new == name)]
        both = [releases(release).definitions.get(known) for release in (NEWEST, OLDEST) for known in names]
        ranges = [parse_versions(one["validVersions"]) for one in both if one and one["validVersions"] != "none"]
        first, stop = min(one.start for one in ranges), max(one.stop for one in ranges)
        assert message_class.valid_versions == range(first, stop), name


def test_api_keys_and_flexible_versions(releases: Releases) -> None:
    definitions = [one for one in releases(NEWEST).definitions.values() if one.get("type") == "request"]
    names = {
        re.sub(r"(?<!^)(?=[A-Z])", "_", one["name"].removesuffix("Request")).upper(): one["apiKey"]
        for one in definitions
    }
    assert names == {key.name: int(key) for key in KAFKAS}
    for definition in definitions:
        if definition["validVersions"] == "none":
            definition = releases(OLDEST).definitions[definition["name"]]
        flexible = definition["flexibleVersions"]
        expected = NEVER_FLEXIBLE if flexible == "none" else parse_versions(flexible).start
        assert flexible_from(definition["apiKey"]) == expected, definition["name"]


def test_clients_requests_to_brokers_are_declared(releases: Releases) -> None:
    """And what controllers say, those of Kafka 3.9 among them."""
    definitions = [one for one in releases(NEWEST).definitions.values() if one.get("type") == "request"]
    on_brokers = {one["apiKey"] for one in definitions if "broker" in one.get("listeners", ())}
    assert on_brokers <= set(KAFKAS)
    assert set(KAFKAS) - on_brokers == {4, 5, 6, 7, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82}
