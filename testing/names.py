"""Lookup of APIs and errors by Kafka's names, and of the topics in a decoded request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..base.errors import ErrorCode
from ..base.wording import meant
from ..handlers.call import Call
from ..wire.api_keys import ApiKey
from ..wire.messages.fetch import FetchRequest
from ..wire.messages.metadata import MetadataRequest
from ..wire.schema import ZERO_UUID, Struct
from .checked_options import check_type

_TOPIC_RESOURCE = 2
_API_KEYS = {key.name.replace("_", "").lower(): key for key in ApiKey}

__tracebackhide__ = True  # a failure points at the caller's line


def api_key(name: str) -> ApiKey:
    """``OffsetCommit``, ``OFFSET_COMMIT`` or ``offset_commit``. Raises ValueError; TypeError for what is no text."""
    check_type("api", name, str, "Kafka's name of an API (str)")
    try:
        return _API_KEYS[name.replace("_", "").lower()]
    except KeyError:
        close = meant(name.replace("_", ""), [api_name(key) for key in ApiKey])
        raise ValueError(f"Kafka has no API {name!r}{close}") from None


def error_code(name: str) -> ErrorCode:
    """``NOT_COORDINATOR``. Raises ValueError; TypeError for what is no text."""
    check_type("error", name, str, "Kafka's name of an error (str)")
    try:
        return ErrorCode[name]
    except KeyError:
        raise ValueError(f"Kafka has no error {name!r}{meant(name, ErrorCode.__members__)}") from None


def api_name(key: int) -> str:
    """``OffsetCommit``, as Kafka's documentation writes it."""
    return "".join(word.capitalize() for word in ApiKey(key).name.split("_"))


def topics_of(call: Call, request: Struct) -> frozenset[str]:
    """The topics that a request names by name or by id, those of its fetch session, and all for a Metadata request for all."""
    names = set(_names(call, request))
    if isinstance(request, FetchRequest):
        names |= {topic for topic, _, _ in fetched_partitions(call, request)}
    elif isinstance(request, MetadataRequest) and (
        request.topics is None or (call.version == 0 and not request.topics)
    ):
        names |= call.broker.metadata.topics.keys()
    return frozenset(names)


def topic_name(call: Call, topic: Any) -> str:
    """The name of a topic's struct in a request or response; empty for an id that no topic has."""
    name = getattr(topic, "name", None) or getattr(topic, "topic", None) or getattr(topic, "topic_name", None)
    if isinstance(name, str):
        return name
    topic_id = getattr(topic, "topic_id", ZERO_UUID)
    return call.broker.metadata.topic_name(topic_id) or "" if topic_id != ZERO_UUID else ""


def fetched_partitions(call: Call, request: FetchRequest) -> Iterator[tuple[str, bytes, int]]:
    """Topic, topic id and number of each partition that a fetch asks for or that its session has."""
    for topic in request.topics:
        for asked in topic.partitions:
            yield topic_name(call, topic), topic.topic_id, asked.partition
    for fetched in call.broker.fetch_sessions.partitions(request.session_id):
        name = fetched.topic or call.broker.metadata.topic_name(fetched.topic_id) or ""
        yield name, fetched.topic_id, fetched.number


def _names(call: Call, value: Struct) -> Iterator[str]:
    """Names in a message: topics are in lists whose field is named after topics, or are resources of type TOPIC."""
    for field in value.fields:
        items = getattr(value, field.name)
        if not isinstance(items, list):
            continue
        for item in items:
            if isinstance(item, str):
                if "topic" in field.name:
                    yield item
            elif isinstance(item, Struct):
                if "topic" in field.name and (name := topic_name(call, item)):
                    yield name
                elif getattr(item, "resource_type", None) == _TOPIC_RESOURCE:
                    yield item.resource_name  # type: ignore[attr-defined]
                yield from _names(call, item)
