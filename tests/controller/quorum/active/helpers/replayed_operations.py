"""Ottla's operations as a captured file names them: by the API of a request.

Each takes the step's request and gives a result. The state of the cluster is the image that Kafka's own records make.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ottla.base.addresses import is_address
from ottla.base.config import Config
from ottla.base.errors import KafkaError
from ottla.compat_tests.kraft_cluster import CLUSTER_ID
from ottla.controller.configs.broker_configs import declared_settings
from ottla.controller.configs.unused_configs import UNUSED
from ottla.controller.quorum.active.acls import create_acls, delete_acls
from ottla.controller.quorum.active.configs import ConfigClient, ConfigRules, incremental_alter_configs, replace_configs
from ottla.controller.quorum.active.context import ActiveSettings, OperationContext
from ottla.controller.quorum.active.features import FeatureRules, update_features
from ottla.controller.quorum.active.producer_ids import allocate_producer_ids
from ottla.controller.quorum.active.quotas import alter_client_quotas
from ottla.controller.quorum.active.result import ControllerResult
from ottla.controller.quorum.active.scram import alter_scram_credentials
from ottla.controller.quorum.active.state import ControllerState
from ottla.controller.quorum.active.tokens import TokenRules, create_token, expire_token, renew_token
from ottla.controller.quorum.replay import RecordReplay
from ottla.controller.token_settings import DelegationTokenSettings
from ottla.group_coordinator.group_configs import check_group_configs
from ottla.log.settings import LogSettings
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition, VersionRange
from ottla.security.principal import parse_principal
from ottla.wire.api_keys import ApiKey
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.wire.messages.metadata_log_records import BeginTransactionRecord, EndTransactionRecord
from ottla.wire.registry import request_class, response_class

from .operations import TOKEN_SECRET, Names, load, replay_time

CONTROLLER = 3000
FED = {
    ApiKey.ALTER_PARTITION: "partitions",
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: "reassignments",
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: "directories",
    ApiKey.BROKER_HEARTBEAT: "brokers",
    ApiKey.BROKER_REGISTRATION: "brokers",
    ApiKey.CONTROLLER_REGISTRATION: "controllers",
    ApiKey.CREATE_PARTITIONS: "topics",
    ApiKey.CREATE_TOPICS: "topics",
    ApiKey.DELETE_TOPICS: "topics",
    ApiKey.ELECT_LEADERS: "elections",
    ApiKey.LIST_PARTITION_REASSIGNMENTS: "reassignments",
    ApiKey.UNREGISTER_BROKER: "brokers",
}
"""The APIs whose operations are held against the files in ``test_kafka_partitions.py``, with what they are about."""
_TOKENS = (ApiKey.CREATE_DELEGATION_TOKEN, ApiKey.RENEW_DELEGATION_TOKEN, ApiKey.EXPIRE_DELEGATION_TOKEN)
SUPPORTED = {
    "metadata.version": VersionRange(7, 30),
    "kraft.version": VersionRange(0, 1),
    "transaction.version": VersionRange(0, 2),
    "group.version": VersionRange(0, 1),
    "eligible.leader.replicas.version": VersionRange(0, 1),
    "share.version": VersionRange(0, 1),
    "streams.version": VersionRange(0, 1),
}
"""What the controller of Apache Kafka supports."""


class ReplayedStep:
    """A step of a file, and what Ottla's operation does with its request: None where there is none."""

    def __init__(self, step: Mapping[str, Any], result: ControllerResult[Any] | None, names: Names) -> None:
        self.number: int = step["step"]
        self.about: str = step["about"]
        self.api = ApiKey[step["api"]] if "api" in step else None
        self.expected_response = step.get("response")
        self.expected_records = step["records"]
        self.has_result = result is not None
        self.response = None if result is None else names.text(result.response, self.number)
        self.records = None if result is None else names.records(result.records, self.number)


class Replay:
    """One file from its beginning to its end."""

    def __init__(self, name: str) -> None:
        self._names = Names()
        self._image = ClusterImage()
        self._kraft_version = 0
        config = Config()
        for settings in (LogSettings, DelegationTokenSettings):
            config.settings(settings)
        check_group = partial(check_group_configs, config)
        known = {**UNUSED, **declared_settings(config)}
        self._config_rules = ConfigRules(CONTROLLER, [CONTROLLER], LogSettings(), known, check_group)
        self._token_rules = TokenRules(TOKEN_SECRET, DelegationTokenSettings().lifetimes)
        self.steps = [self._replayed(step) for step in load(name)["steps"]]

    def _replayed(self, step: Mapping[str, Any]) -> ReplayedStep:
        number = step["step"]
        result = None
        api = ApiKey[step["api"]] if "api" in step else None
        is_listeners = api in _TOKENS and "principal" not in step
        if api is not None and api not in FED and not is_listeners:
            if api in _TOKENS:
                self._names.nows[number] = replay_time(number)
            request = self._names.message(request_class(api), step["request"], number)
            result = self._operation(api, request, step)
        replayed = ReplayedStep(step, result, self._names)
        self._apply(step)
        if step.get("response"):
            self._names.message(response_class(ApiKey[step["api"]]), step["response"], number)
        return replayed

    def _apply(self, step: Mapping[str, Any]) -> None:
        """Take over Kafka's own records."""
        replay = RecordReplay(self._image)
        records = [record for record, _ in self._names.versioned(step["records"], step["step"])]
        transactions = (BeginTransactionRecord, EndTransactionRecord)
        replay.replay_all(record for record in records if not isinstance(record, transactions))
        if records:
            position = LogPosition(step["offset"] + len(records) - 1, 1, 0)
            self._image = self._image.apply(replay.delta(position))

    def _operation(self, api: ApiKey, request: Any, step: Mapping[str, Any]) -> ControllerResult[Any]:
        image = self._image
        match api:
            case ApiKey.INCREMENTAL_ALTER_CONFIGS:
                return incremental_alter_configs(image, request, self._config_rules, _client(step))
            case ApiKey.ALTER_CONFIGS:
                return replace_configs(image, request, self._config_rules, _client(step))
            case ApiKey.ALTER_CLIENT_QUOTAS:
                return alter_client_quotas(image, request, is_address)
            case ApiKey.CREATE_ACLS:
                return create_acls(image, request, self._names.new_uuid)
            case ApiKey.DELETE_ACLS:
                return delete_acls(image, request)
            case ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
                return alter_scram_credentials(image, request)
            case ApiKey.ALLOCATE_PRODUCER_IDS:
                return _allocated(
                    OperationContext(ControllerState.of(image), ActiveSettings(CONTROLLER, CLUSTER_ID)), request
                )
            case ApiKey.UPDATE_FEATURES:
                return self._updated(request, step["version"])
        return self._token_operation(api, request, step)

    def _token_operation(self, api: ApiKey, request: Any, step: Mapping[str, Any]) -> ControllerResult[Any]:
        now, principal = replay_time(step["step"]), parse_principal(step["principal"])
        if api is ApiKey.CREATE_DELEGATION_TOKEN:
            token_id = self._names.next_token_id()
            return create_token(self._image, request, principal, self._token_rules, token_id, now)
        change: Callable[..., ControllerResult[Any]] = renew_token
        if api is ApiKey.EXPIRE_DELEGATION_TOKEN:
            change = expire_token
        return change(self._image, request, principal, self._token_rules, now)

    def _updated(self, request: Any, version: int) -> ControllerResult[Any]:
        rules = FeatureRules(CONTROLLER, SUPPORTED, [CONTROLLER], self._kraft_version)
        result = update_features(self._image, request, version, rules)
        if result.response.kraft_version is not None and not request.validate_only:
            self._kraft_version = result.response.kraft_version
        return ControllerResult(result.records, result.response.response, result.is_atomic)


def _allocated(context: OperationContext, request: AllocateProducerIdsRequest) -> ControllerResult[Any]:
    try:
        return allocate_producer_ids(context, request)
    except KafkaError as error:
        return ControllerResult([], AllocateProducerIdsResponse(error_code=error.code))


def _client(step: Mapping[str, Any]) -> ConfigClient:
    return ConfigClient(lambda kind, name: None, is_forwarded="principal" in step)
