"""Random messages out of Kafka's own serializers: decoding gives Kafka's values, encoding gives Kafka's bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from ottla.wire.api_keys import FIRST_OF_OTTLA, ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.coordinator_records import (
    OFFSETS_TOPIC_TYPES,
    SHARE_TOPIC_TYPES,
    offsets_topic_classes,
    share_topic_classes,
    transaction_topic_classes,
)
from ottla.wire.headers import request_header_version, response_header_version
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ottla.wire.metadata_records import RECORD_TYPES, metadata_record_class
from ottla.wire.registry import request_class, response_class
from ottla.wire.schema import Array, Message, Primitive, Struct, WireType, uuid_to_text

API_CLASSES = {
    cls.__name__: cls for key in ApiKey if key < FIRST_OF_OTTLA for cls in (request_class(key), response_class(key))
}
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
CLASSES = API_CLASSES | PROTOCOL_CLASSES | RECORD_CLASSES
CLASSES["ListClientMetricsResourcesRequest"] = CLASSES["ListConfigResourcesRequest"]
CLASSES["ListClientMetricsResourcesResponse"] = CLASSES["ListConfigResourcesResponse"]

# Names of Kafka 3.9 that Kafka 4 changed, without case and underscores.
RENAMED = {
    ("TxnOffsetCommitRequest", "generationid"): "generationidormemberepoch",
    ("ListConfigResourcesResponse", "clientmetricsresources"): "configresources",
    ("ConfigResource", "name"): "resourcename",
    ("PartitionData", "candidateepoch"): "replicaepoch",
    ("PartitionData", "candidateid"): "replicaid",
    ("PartitionData", "candidatedirectoryid"): "replicadirectoryid",
}
ABSENT = object()


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def differences(value: Any, json: Any, wire_type: WireType, version: int, path: str) -> list[str]:
    """Where a decoded value is not what Kafka's JSON says; at most a handful of lines of text."""
    if json is None or value is None:
        return [] if json is value else [f"{path}: {value!r} is not {json!r}"]
    if isinstance(wire_type, Array):
        if len(value) != len(json):
            return [f"{path}: {len(value)} elements, not {len(json)}"]
        pairs = enumerate(zip(value, json, strict=True))
        return [
            line
            for i, (one, other) in pairs
            for line in differences(one, other, wire_type.element, version, f"{path}[{i}]")
        ]
    if not isinstance(wire_type, Primitive):
        return struct_differences(value, json, version, path)
    expected = json
    if wire_type.name == "uuid":
        value = uuid_to_text(value)
    elif wire_type.name == "bytes":
        expected = base64.b64decode(json)
    elif wire_type.name == "records":
        value = len(value)
    same = value == expected and type(value) is type(expected)
    return [] if same else [f"{path}: {value!r} is not {expected!r}"]


def struct_differences(value: Struct, json: dict[str, Any], version: int, path: str) -> list[str]:
    class_name = type(value).__name__
    by_name = {RENAMED.get((class_name, plain(name)), plain(name)): one for name, one in json.items()}
    lines = []
    for spec in type(value).fields:
        decoded = getattr(value, spec.name)
        name = plain(spec.name)
        given = by_name.pop(name, ABSENT)
        if given is ABSENT:
            # Kafka gives the size of records, and leaves out tagged fields with their default and fields of other versions.
            given = by_name.pop(f"{name}sizeinbytes", ABSENT)
        if given is ABSENT:
            unset = spec.tag is not None or version not in spec.versions
            if not unset or decoded != spec.make_default():
                lines.append(f"{path}.{spec.name}: {decoded!r}, but Kafka has nothing")
        else:
            lines += differences(decoded, given, spec.type, version, f"{path}.{spec.name}")
    return lines + [f"{path}: Kafka's {name} is not declared" for name in by_name]


def problems(sample: Any, message_class: type[Message]) -> list[str]:
    label = f"{sample.name} v{sample.version}"
    message = decode(message_class, sample.version, sample.body)
    lines = struct_differences(message, sample.value, sample.version, label)
    encoded = encode_bytes(message, sample.version)
    if encoded != sample.body:
        lines.append(f"{label}: encoded as {encoded.hex()}, not {sample.body.hex()}")
    return lines


Releases = Callable[[str], Any]


@pytest.mark.parametrize("release_name", ["kafka-clients-4.4.0", "kafka-clients-3.9.2", "coordinators-4.3.1"])
def test_kafkas_messages(releases: Releases, release_name: str) -> None:
    release = releases(release_name)
    unstable = {"ReadShareGroupStateSummaryResponse"} if release_name == "kafka-clients-3.9.2" else set()
    names = [
        name
        for name, one in release.definitions.items()
        if name in CLASSES and name not in unstable and one["validVersions"] != "none"
    ]
    samples, headers = release.run_samples(names)
    assert {sample.name for sample in samples} == set(names)

    found = [line for sample in samples for line in problems(sample, CLASSES[sample.name])]
    assert not found, "\n".join(found[:20])

    for key, version, request_header, response_header in headers:
        expected = (request_header, response_header)
        assert (request_header_version(key, version), response_header_version(key, version)) == expected, (key, version)
