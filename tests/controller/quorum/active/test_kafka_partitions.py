"""Operations on brokers, topics and partitions write the records, and respond, as a controller of Apache Kafka 4.3.1 did.

Each step is done on the state that Kafka's own records make (``capture_kafka.py``). Where the controller places replicas, what
varies is left out of the comparison.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import pytest

from ottla.base.config import Config
from ottla.base.errors import KafkaError
from ottla.controller.configs.broker_configs import declared_settings
from ottla.controller.configs.unused_configs import UNUSED
from ottla.controller.quorum.active.activation import activate
from ottla.controller.quorum.active.alter_partition import alter_partition
from ottla.controller.quorum.active.broker_heartbeat import fence_stale_broker, process_heartbeat
from ottla.controller.quorum.active.brokers import register_broker, register_controller, unregister_broker
from ottla.controller.quorum.active.configs import ConfigRules, config_records
from ottla.controller.quorum.active.context import ActiveSettings, OperationContext
from ottla.controller.quorum.active.directories import assign_replicas
from ottla.controller.quorum.active.elections import balance_leaders, elect_leaders
from ottla.controller.quorum.active.heartbeats import BrokerHeartbeats
from ottla.controller.quorum.active.partition_additions import create_partitions
from ottla.controller.quorum.active.reassignments import alter_reassignments, list_reassignments
from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.active.state import ControllerState
from ottla.controller.quorum.active.topic_deletions import DeletionRights, delete_topics
from ottla.controller.quorum.active.topics import TopicCreation, create_topics
from ottla.controller.token_settings import DelegationTokenSettings
from ottla.group_coordinator.group_configs import check_group_configs
from ottla.log.settings import LogSettings
from ottla.metadata.types import LogPosition
from ottla.wire.api_keys import ApiKey
from ottla.wire.codec import decode, encode_bytes
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsRequest
from ottla.wire.messages.setting_records import FeatureLevelRecord
from ottla.wire.registry import request_class, response_class

from .helpers.operations import Names, load
from .helpers.world import anything

FILES = ("kafka-4.3.1-operations.json", "kafka-4.3.1-sessions.json", "kafka-4.3.1-upgrades.json")
_SETS = ("responses", "results", "topics", "replica_election_results", "directories", "partitions", "partition_result")
_VARYING = ("replicas", "isr", "leader", "directories")


class Compared(NamedTuple):
    """``kind`` is the API, or what the controller does of its own."""

    kind: str
    about: str
    got: Any
    expected: Any


class Replay:
    """One file, step by step: what Ottla does, and what Kafka did."""

    def __init__(self, name: str) -> None:
        file = load(name)
        properties = file["properties"]
        self._names = Names()
        self._state = ControllerState()
        self._end = 0
        self._now_ms = 0
        self._heartbeats = BrokerHeartbeats(int(properties["broker.session.timeout.ms"]))
        self._settings = ActiveSettings(
            node_id=3000,
            cluster_id=_cluster_id(file["steps"]),
            num_partitions=int(properties["num.partitions"]),
            default_replication_factor=int(properties["default.replication.factor"]),
            session_timeout_ms=int(properties["broker.session.timeout.ms"]),
        )
        config = Config()
        for settings in (LogSettings, DelegationTokenSettings):
            config.settings(settings)
        check_group = partial(check_group_configs, config)
        known = {**UNUSED, **declared_settings(config)}
        self._config_rules = ConfigRules(3000, [3000], LogSettings(), known, check_group)
        self.compared = [each for step in file["steps"] for each in self._replayed(step)]

    def _replayed(self, step: Mapping[str, Any]) -> list[Compared]:
        number = step["step"]
        api = ApiKey[step["api"]] if "api" in step else None
        compared = []
        shutting_down: int | None = None
        if api in OPERATIONS:
            request = self._names.message(request_class(api), step["request"], number)
            result, shutting_down = self._done(api, request, step)
            response = decode(type(result.response), step["version"], encode_bytes(result.response, step["version"]))
            got = self._comparable(step, result, self._names.text(response, number))
            compared.append(Compared(api.name.lower(), f"{number} {step['about']}", got, _comparable(step, step)))
        elif api is None and (own := self._of_its_own(step)) is not None:
            kind, result = own
            expected = _comparable(step, {**step, "response": None})
            compared.append(Compared(kind, f"{number} {step['about']}", self._comparable(step, result, None), expected))
        self._apply(step)
        if shutting_down is not None:
            self._heartbeats.begin_shutdown(shutting_down, self._end - 1)
        if step.get("response"):
            self._names.message(response_class(ApiKey[step["api"]]), step["response"], number)
        return compared

    def _comparable(self, step: Mapping[str, Any], result: ControllerResult[Any], response: Any) -> Any:
        records = self._names.records(result.records, step["step"])
        return _comparable(step, {"records": records, "response": response})

    def _of_its_own(self, step: Mapping[str, Any]) -> tuple[str, ControllerResult[Any]] | None:
        """What the controller does with time, or at its start."""
        context = OperationContext(self._state, self._settings)
        if "becomes active" in step["about"]:
            written = self._names.versioned(step["records"], step["step"])
            bootstrap = [each for each in written if isinstance(each[0], FeatureLevelRecord)]
            return "activation", activate(context, bootstrap)
        if "session" in step["about"]:
            gone = int(step["about"].split()[-2])
            self._now_ms += self._settings.session_timeout_ms + 1
            for broker_id, broker in self._state.image.quorum_brokers.items():
                if broker_id != gone and not broker.is_fenced:
                    self._heartbeats.track(broker_id, broker.epoch, self._now_ms)
            while not (result := fence_stale_broker(context, self._heartbeats, self._now_ms)).records:
                assert result.response, "somebody is fenced"
            return "session_end", result
        return ("balance", balance_leaders(context)) if "preferred leader" in step["about"] else None

    def _apply(self, step: Mapping[str, Any]) -> None:
        """Take over Kafka's own records."""
        records = [record for record, _ in self._names.versioned(step["records"], step["step"])]
        if records:
            self._end = step["offset"] + len(records)
            before = self._state
            self._state = before.apply(records, LogPosition(self._end - 1, 1, 0))
            self._heartbeats.follow(before.image.quorum_brokers, self._state.image.quorum_brokers)

    def _done(self, api: ApiKey, request: Any, step: Mapping[str, Any]) -> tuple[ControllerResult[Any], int | None]:
        """The result, and the broker that is in controlled shutdown from now on."""
        context = OperationContext(self._state, self._settings)
        try:
            if api is ApiKey.BROKER_HEARTBEAT:
                self._heartbeats.track(request.broker_id, request.broker_epoch, self._now_ms)
                beat = process_heartbeat(context, request, self._heartbeats)
                shutting_down = request.broker_id if beat.response.is_in_controlled_shutdown else None
                return ControllerResult(beat.records, beat.response.response), shutting_down
            return OPERATIONS[api](self, context, request, step), None
        except KafkaError as error:
            return ControllerResult([], _failed(api, request, error)), None

    def register_broker(self, context: OperationContext, request: Any, step: Mapping[str, Any]) -> Any:
        return register_broker(
            context,
            request,
            self._heartbeats,
            version=step["version"],
            next_offset=step.get("offset", self._end),
            kraft_version=0,
            now_ms=self._now_ms,
        )

    def create_topics(self, context: OperationContext, request: CreateTopicsRequest, step: Mapping[str, Any]) -> Any:
        creation = TopicCreation(
            lambda image, topic, configs: config_records(self._config_rules, image, topic, configs),
            lambda configs: [],
            may_create=anything,
            may_describe=anything,
            charge=uncharged,
            new_uuid=self._names.new_uuid,
            randomness=random.Random(1),
        )
        return create_topics(context, request, creation)


def uncharged(partitions: int) -> None:
    """A client without a quota."""


def _failed(api: ApiKey, request: Any, error: KafkaError) -> Any:
    """The response to a request of which nothing was done."""
    failed: Any = response_class(api)()
    if api is ApiKey.CREATE_TOPICS:
        failed.topics = [
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
        return failed
    failed.error_code = error.code
    if api is ApiKey.CONTROLLER_REGISTRATION:
        failed.error_message = "The version of API is not supported."  # of the code: Kafka's listener drops the reason
    elif hasattr(failed, "error_message"):
        failed.error_message = error.message
    return failed


Operation = Callable[[Replay, OperationContext, Any, Mapping[str, Any]], Any]
OPERATIONS: dict[ApiKey | None, Operation] = {
    ApiKey.ALTER_PARTITION: lambda replay, context, request, step: alter_partition(context, request, step["version"]),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: lambda replay, context, request, step: alter_reassignments(context, request),
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: lambda replay, context, request, step: assign_replicas(context, request),
    ApiKey.BROKER_HEARTBEAT: lambda replay, context, request, step: None,
    ApiKey.BROKER_REGISTRATION: Replay.register_broker,
    ApiKey.CONTROLLER_REGISTRATION: lambda replay, context, request, step: register_controller(context, request),
    ApiKey.CREATE_PARTITIONS: lambda replay, context, request, step: create_partitions(
        context, request, anything, uncharged, random.Random(1)
    ),
    ApiKey.CREATE_TOPICS: Replay.create_topics,
    ApiKey.DELETE_TOPICS: lambda replay, context, request, step: delete_topics(
        context, request, step["version"], DeletionRights(anything, anything), uncharged
    ),
    ApiKey.ELECT_LEADERS: lambda replay, context, request, step: elect_leaders(context, request),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: lambda replay, context, request, step: list_reassignments(context, request),
    ApiKey.UNREGISTER_BROKER: lambda replay, context, request, step: unregister_broker(context, request.broker_id),
}


def _cluster_id(steps: Sequence[Mapping[str, Any]]) -> str:
    return next(
        step["request"]["cluster_id"]
        for step in steps
        if step.get("api") == "BROKER_REGISTRATION" and not step["response"].get("error_code")
    )


def _comparable(step: Mapping[str, Any], done: Mapping[str, Any]) -> Any:
    """Records of one type that follow each other are a set, and so are the topics of a response."""
    left_out = _VARYING if "varies" in step else ()
    plain = [{name: value for name, value in record.items() if name not in left_out} for record in done["records"]]
    runs = itertools.groupby(plain, key=lambda record: record["type"])
    ordered = [each for _, run in runs for each in sorted(run, key=_as_text)]
    return {"records": ordered, "response": _sorted(done["response"])}


def _sorted(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_sorted, value))
    if not isinstance(value, dict):
        return value
    parts = {name: _sorted(part) for name, part in value.items() if name != "configs"}
    for name in _SETS:
        if name in parts:
            parts[name] = sorted(parts[name], key=_as_text)
    message = parts.get("error_message") or ""
    if message.startswith("Invalid value "):
        parts["error_message"] = message.rpartition(":")[0]  # why it is invalid is in Ottla's words
    return parts


def _as_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


@cache
def replay(name: str) -> Sequence[Compared]:
    return Replay(name).compared


def cases() -> list[Any]:
    return [
        pytest.param(name, kind, id=f"{name.removesuffix('.json').rpartition('-')[2]}-{kind}")
        for name in FILES
        for kind in sorted({compared.kind for compared in replay(name)})
    ]


@pytest.mark.parametrize(("name", "kind"), cases())
def test_records_and_responses_are_kafkas(name: str, kind: str) -> None:
    steps = [compared for compared in replay(name) if compared.kind == kind]
    assert {step.about: step.got for step in steps} == {step.about: step.expected for step in steps}
