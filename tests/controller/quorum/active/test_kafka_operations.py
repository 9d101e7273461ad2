"""Operations write the records, and respond, as a controller of Apache Kafka 4.3.1 did (``capture_kafka.py``).

Ids and times have names, and the order within a set is not compared: of records of one type that follow each other, and of the
parts of some responses.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import pytest

from ottla.base.config import Config
from ottla.controller.quorum.replay import BROKER_CONFIG
from ottla.handlers.config_entries import topic_entries
from ottla.wire.api_keys import ApiKey

from .helpers.operations import load
from .helpers.replayed_operations import FED, Replay, ReplayedStep

FILES = ("kafka-4.3.1-operations.json", "kafka-4.3.1-upgrades.json", "kafka-4.3.1-sessions.json")
_SETS = ("entity", "entries", "matching_acls", "responses", "results")
_IN_ORDER = (ApiKey.CREATE_ACLS,)
_OTHER_WORDS = {
    "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId": (
        "Invalid quota entity combination, IP entity should not be used with user/client ID entity."
    ),
}
"""Kafka's messages that Ottla says otherwise."""
_OTHER_ERRORS = {
    "refused: any type": "Invalid resourceType ANY",
    "refused: any pattern": "Invalid patternType ANY",
    "refused: a pattern to match": "Invalid patternType MATCH",
    "refused: any operation": "Invalid operation ANY",
    "refused: any permission": "Invalid permissionType ANY",
}
"""Steps that Kafka responds to with UNKNOWN_SERVER_ERROR, and Ottla with INVALID_REQUEST and this message."""


@cache
def replay(name: str) -> Sequence[ReplayedStep]:
    return Replay(name).steps


def cases() -> list[Any]:
    return [
        pytest.param(name, api, id=f"{name.removesuffix('.json').rpartition('-')[2]}-{api.name.lower()}")
        for name in FILES
        for api in sorted({step.api for step in replay(name) if step.has_result and step.api is not None})
    ]


@pytest.mark.parametrize(("name", "api"), cases())
def test_records_and_responses_are_kafkas(name: str, api: ApiKey) -> None:
    steps = [step for step in replay(name) if step.api is api and step.has_result]
    expected = {f"{step.number} {step.about}": _kafkas(step) for step in steps}
    got = {f"{step.number} {step.about}": _comparable(api, step.records, step.response) for step in steps}
    assert got == expected


def test_every_step_is_compared_or_named() -> None:
    """A step without an API is a thing that time does, or the start of the controller."""
    left_out = {
        step.api
        for name in FILES
        for step in replay(name)
        if step.api is not None and not step.has_result and step.api not in FED
    }
    assert left_out <= {ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN}, "the listener decides these"
    assert FED.keys() == {step.api for name in FILES for step in replay(name) if step.api in FED}


@pytest.mark.parametrize("name", FILES)
def test_the_configs_of_a_new_topic_are_told_as_kafka_does(name: str) -> None:
    """Which there are, their values, and where these come from: the topic, all brokers, or nobody."""
    compared = 0
    for step, brokers_configs in _created_topics(name):
        config = Config()
        config.change_dynamic(brokers_configs, {})
        given = {topic.get("name"): topic.get("configs", ()) for topic in step["request"].get("topics", ())}
        for topic in step["response"].get("topics", ()):
            if "configs" in topic:
                overrides = {each["name"]: each["value"] for each in given[topic["name"]]}
                entries = [(each.name, each.value or "", each.source) for each in topic_entries(config, overrides)]
                kafkas = [(each["name"], each.get("value", ""), each["config_source"]) for each in topic["configs"]]
                assert entries == kafkas, f"{step['step']} {step['about']}: {topic['name']}"
                compared += 1
    assert compared


def _created_topics(name: str) -> Iterator[tuple[Mapping[str, Any], Mapping[str, str]]]:
    """The steps that create topics, and what is set on all brokers then."""
    set_on_all: dict[str, str] = {}
    for step in load(name)["steps"]:
        if step.get("api") == ApiKey.CREATE_TOPICS.name:
            yield step, dict(set_on_all)
        for record in step["records"]:
            if record["type"] == "ConfigRecord" and record["resource_type"] == BROKER_CONFIG:
                if "resource_name" not in record and record["value"] is None:
                    set_on_all.pop(record["name"], None)
                elif "resource_name" not in record:
                    set_on_all[record["name"]] = record["value"]


def _kafkas(step: ReplayedStep) -> Any:
    assert step.api is not None
    response = step.expected_response
    if step.about in _OTHER_ERRORS:
        result = {"error_code": "INVALID_REQUEST", "error_message": _OTHER_ERRORS[step.about]}
        response = {"results": [result]}
    return _comparable(step.api, step.expected_records, response)


def _comparable(api: ApiKey, records: Sequence[Mapping[str, Any]] | None, response: Any) -> Any:
    assert records is not None
    runs = itertools.groupby(records, key=lambda record: record["type"])
    ordered = [each for _, run in runs for each in sorted(map(_sorted, run), key=json.dumps)]
    return {"records": ordered, "response": response if api in _IN_ORDER else _sorted(response)}


def _sorted(value: Any) -> Any:
    """A value whose parts that are sets are in some order, and whose messages are those of both."""
    if isinstance(value, list):
        return list(map(_sorted, value))
    if not isinstance(value, dict):
        return value
    parts = {name: _sorted(part) for name, part in value.items()}
    for name in _SETS:
        if name in parts:
            parts[name] = sorted(parts[name], key=lambda part: json.dumps(part, sort_keys=True))
    message = parts.get("error_message")
    if isinstance(message, str):
        parts["error_message"] = _message(message)
    return parts


def _message(message: str) -> str:
    return _OTHER_WORDS.get(message, message)
