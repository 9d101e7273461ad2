"""Record keys and values as text: strings, numbers, or the decoded records of coordinators and cluster metadata.

A decoder takes a record and gives the texts of key and value, None for what is not to be printed. Kafka names its decoders
by Java class; the ones that ship with it are known here by that name and by its last part.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from struct import Struct, error
from typing import Any

from ...base.errors import ProtocolError
from ...base.wording import meant
from ...wire.codec import decode
from ...wire.coordinator_records import (
    decode_coordinator_key,
    decode_coordinator_value,
    decode_share_key,
    decode_share_value,
    decode_transaction_key,
    decode_transaction_value,
)
from ...wire.kafka_json import kafka_json, kafka_json_text
from ...wire.messages.consumer_offsets import GroupMetadataValue
from ...wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from ...wire.metadata_records import decode_metadata_record
from ...wire.record_codec import Record
from ...wire.schema import Message
from .report import DumpError

Text = str | None
RecordDecoder = Callable[[Record], tuple[Text, Text]]
FieldDecoder = Callable[[bytes], str]
KeyReader = Callable[[bytes], Message | None]
ValueReader = Callable[[Message | None, bytes], Message | None]

DEFAULT_DECODER = "org.apache.kafka.tools.api.StringDecoder"
_PACKAGE = "org.apache.kafka.tools.api."
_PREFIX = Struct(">h")
_CONSUMER_PROTOCOL = "consumer"
_UPPER = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(layout: str) -> FieldDecoder:
    parse = Struct(layout)

    def number(data: bytes) -> str:
        try:
            return str(parse.unpack_from(data)[0])
        except error:
            raise DumpError(f"{len(data)} bytes are not a number of {parse.size}") from None

    return number


_FIELD_DECODERS: Mapping[str, FieldDecoder] = {
    "StringDecoder": _text,
    "LongDecoder": _number(">q"),
    "IntegerDecoder": _number(">i"),
}


def field_decoder(name: str) -> FieldDecoder:
    """The decoder of that class name. Raises DumpError for another than Kafka's own."""
    found = _FIELD_DECODERS.get(name.removeprefix(_PACKAGE))
    if found is None:
        close = meant(name, _FIELD_DECODERS)
        raise DumpError(f"there is no decoder {name}{close or ', only ' + ', '.join(sorted(_FIELD_DECODERS))}")
    return found


def plain_decoder(key_decoder: str, value_decoder: str) -> RecordDecoder:
    """Keys by one named decoder, values by another."""
    of_key, of_value = field_decoder(key_decoder), field_decoder(value_decoder)

    def both(record: Record) -> tuple[Text, Text]:
        key, value = record.key, record.value
        return None if key is None else of_key(key), None if value is None else of_value(value)

    return both


def decode_offsets_record(record: Record) -> tuple[Text, Text]:
    """A record of ``__consumer_offsets``. Raises DumpError when it has no key."""
    return _coordinator_record(record, decode_coordinator_key, decode_coordinator_value)


def decode_transaction_record(record: Record) -> tuple[Text, Text]:
    """A record of ``__transaction_state``. Raises DumpError when it has no key."""
    return _coordinator_record(record, decode_transaction_key, decode_transaction_value)


def decode_share_state_record(record: Record) -> tuple[Text, Text]:
    """A record of ``__share_group_state``. Raises DumpError when it has no key."""
    return _coordinator_record(record, decode_share_key, decode_share_value)


def decode_metadata_log_record(record: Record) -> tuple[Text, Text]:
    """A record of ``__cluster_metadata``, which has no key."""
    try:
        message, version = decode_metadata_record(record.value or b"")
    except (ProtocolError, ValueError) as failure:
        return f"Error at {record.offset}, skipping. {failure}", None
    name = _UPPER.sub("_", type(message).__name__).upper()
    return None, kafka_json_text({"type": name, "version": version, "data": kafka_json(message, version)})


def _coordinator_record(record: Record, read_key: KeyReader, read_value: ValueReader) -> tuple[Text, Text]:
    if record.key is None:
        raise DumpError(
            f"Failed to decode message at offset {record.offset} using the specified decoder (message had a missing key)"
        )
    try:
        key = read_key(record.key)
        if key is None:
            record_type = _PREFIX.unpack_from(record.key)[0]
            return f"Unknown record type {record_type} at offset {record.offset}, skipping.", None
        key_text = kafka_json_text({"type": str(key.api_key), "data": kafka_json(key, 0)})
        if record.value is None:
            return key_text, "<DELETE>"
        value = read_value(key, record.value)
        assert value is not None, "the key's type is known"
        version = _PREFIX.unpack_from(record.value)[0]
        return key_text, kafka_json_text({"version": str(version), "data": _value_json(value, version)})
    except (ProtocolError, ValueError) as failure:
        return f"Error at offset {record.offset}, skipping. {failure}", None


def _value_json(value: Message, version: int) -> dict[str, Any]:
    data = kafka_json(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == _CONSUMER_PROTOCOL:
        for member in data["members"]:
            member["subscription"] = _opened(member["subscription"], ConsumerProtocolSubscription)
            member["assignment"] = _opened(member["assignment"], ConsumerProtocolAssignment)
    return data


def _opened(text: str, message_class: type[Message]) -> Any:
    """What a member's bytes say, if they are what Java's consumers write there, else the base64 they came in."""
    data = base64.b64decode(text)
    try:
        version = _PREFIX.unpack_from(data)[0]
        return kafka_json(decode(message_class, version, data[_PREFIX.size :]), version)
    except (ProtocolError, ValueError, error):
        return text
