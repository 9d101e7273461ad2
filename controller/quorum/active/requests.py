"""Requests to the active controller, each with the operation that executes it.

An operation is made of a request, who asks, and the rules that the controller's file gives. Registrations and heartbeats of
brokers are not among them: they are about sessions too, which ``ActiveController`` has (``register``, ``heartbeat``). Nor are
registrations of controllers, and producer ids: every start needs those, and nodes import the rest when they are asked for more.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from ....base.addresses import is_address
from ....base.errors import ErrorCode, KafkaError
from ....metadata.types import VersionRange
from ....wire.messages import alter_configs as legacy
from ....wire.messages.alter_client_quotas import AlterClientQuotasRequest
from ....wire.messages.alter_partition import AlterPartitionRequest
from ....wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ....wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from ....wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ....wire.messages.create_acls import CreateAclsRequest
from ....wire.messages.create_delegation_token import CreateDelegationTokenRequest
from ....wire.messages.create_partitions import CreatePartitionsRequest
from ....wire.messages.create_topics import CreatableTopicConfigs, CreateTopicsRequest
from ....wire.messages.delete_acls import DeleteAclsRequest
from ....wire.messages.delete_topics import DeleteTopicsRequest
from ....wire.messages.elect_leaders import ElectLeadersRequest
from ....wire.messages.expire_delegation_token import ExpireDelegationTokenRequest
from ....wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from ....wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ....wire.messages.renew_delegation_token import RenewDelegationTokenRequest
from ....wire.messages.unregister_broker import UnregisterBrokerRequest
from ....wire.messages.update_features import UpdateFeaturesRequest
from ....wire.schema import Message, uuid_to_text
from ...random_uuids import random_uuid
from .acls import create_acls, delete_acls
from .alter_partition import alter_partition
from .brokers import unregister_broker
from .configs import ConfigClient, ConfigRules, config_records, incremental_alter_configs, replace_configs
from .context import OperationContext
from .controller import Operation
from .directories import assign_replicas
from .elections import elect_leaders
from .features import FeatureRules, refused_update, update_features
from .partition_additions import create_partitions
from .quotas import alter_client_quotas
from .reassignments import alter_reassignments, list_reassignments
from .request_source import RequestSource
from .result import ControllerResult
from .scram import alter_scram_credentials
from .tokens import TokenRules, create_token, expire_token, renew_token
from .topic_deletions import DeletionRights, delete_topics
from .topics import TopicCreation, create_topics


@dataclasses.dataclass(frozen=True)
class ControllerRules:
    """What operations go by beside the cluster, as the controller's file says it."""

    configs: ConfigRules
    tokens: TokenRules
    supported: Mapping[str, VersionRange]
    """The levels of features that this controller supports."""
    describe_configs: Callable[[Mapping[str, str]], list[CreatableTopicConfigs]]
    may_delete_topics: bool = True
    min_insync_replicas: int = 1


class ControllerRequests:
    """``operation`` makes the operation of a request. The functions are called when one is carried out.

    ``raise_kraft_version`` has Raft finalize a level, or only look whether it would (True). It raises KafkaError.
    """

    def __init__(
        self,
        node_id: int,
        rules: ControllerRules,
        randomness: random.Random,
        voters: Callable[[], Collection[int]],
        kraft_version: Callable[[], int],
        raise_kraft_version: Callable[[int, bool], None],
    ) -> None:
        self._node_id = node_id
        self._rules = rules
        self._randomness = randomness
        self._voters = voters
        self._kraft_version = kraft_version
        self._raise_kraft_version = raise_kraft_version
        self._new_uuid = partial(random_uuid, randomness)
        self._makers: dict[type[Message], Callable[[Any, RequestSource, int], Operation[Any]]] = {
            **_PLAIN,
            CreateTopicsRequest: self._create_topics,
            CreatePartitionsRequest: self._create_partitions,
            DeleteTopicsRequest: self._delete_topics,
            IncrementalAlterConfigsRequest: self._alter_configs,
            legacy.AlterConfigsRequest: self._replace_configs,
            CreateAclsRequest: lambda request, source, now: (
                lambda context: create_acls(context.image, request, self._new_uuid)
            ),
            CreateDelegationTokenRequest: self._create_token,
            RenewDelegationTokenRequest: self._change_token,
            ExpireDelegationTokenRequest: self._change_token,
            UpdateFeaturesRequest: self._update_features,
        }

    def operation(self, request: Message, source: RequestSource, now_ms: int) -> Operation[Any]:
        """``now_ms`` by the wall clock. Raises KafkaError INVALID_REQUEST for a request that no controller carries out."""
        make = self._makers.get(type(request))
        if make is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{type(request).__name__} is not for a controller.")
        return make(request, source, now_ms)

    # --- topics -------------------------------------------------------------------------------------------------------

    def _create_topics(self, request: CreateTopicsRequest, source: RequestSource, now_ms: int) -> Operation[Any]:
        creation = TopicCreation(
            partial(config_records, self._rules.configs),
            self._rules.describe_configs,
            source.may_create,
            source.may_describe,
            source.charge,
            self._new_uuid,
            self._randomness,
        )
        return lambda context: create_topics(context, request, creation)

    def _create_partitions(
        self, request: CreatePartitionsRequest, source: RequestSource, now_ms: int
    ) -> Operation[Any]:
        return lambda context: create_partitions(context, request, source.may_alter, source.charge, self._randomness)

    def _delete_topics(self, request: DeleteTopicsRequest, source: RequestSource, now_ms: int) -> Operation[Any]:
        rights = DeletionRights(source.may_describe, source.may_delete)
        is_enabled = self._rules.may_delete_topics
        return lambda context: delete_topics(
            context, request, source.version, rights, source.charge, is_enabled=is_enabled
        )

    # --- settings -----------------------------------------------------------------------------------------------------

    def _alter_configs(
        self, request: IncrementalAlterConfigsRequest, source: RequestSource, now_ms: int
    ) -> Operation[Any]:
        client = ConfigClient(source.check_config_right, source.is_forwarded)
        return lambda context: incremental_alter_configs(context.image, request, self._config_rules(), client)

    def _replace_configs(
        self, request: legacy.AlterConfigsRequest, source: RequestSource, now_ms: int
    ) -> Operation[Any]:
        client = ConfigClient(source.check_config_right, source.is_forwarded)
        return lambda context: replace_configs(context.image, request, self._config_rules(), client)

    def _config_rules(self) -> ConfigRules:
        return dataclasses.replace(self._rules.configs, voters=self._voters())

    def _update_features(self, request: UpdateFeaturesRequest, source: RequestSource, now_ms: int) -> Operation[Any]:
        rules = self._rules

        def operation(context: OperationContext) -> ControllerResult[Any]:
            feature_rules = FeatureRules(
                self._node_id, rules.supported, self._voters(), self._kraft_version(), rules.min_insync_replicas
            )
            result = update_features(context.image, request, source.version, feature_rules)
            if result.response.kraft_version is not None:
                try:
                    self._raise_kraft_version(result.response.kraft_version, request.validate_only)
                except KafkaError as error:
                    return ControllerResult([], refused_update(error))
            return ControllerResult(result.records, result.response.response, result.is_atomic)

        return operation

    # --- delegation tokens --------------------------------------------------------------------------------------------

    def _create_token(
        self, request: CreateDelegationTokenRequest, source: RequestSource, now_ms: int
    ) -> Operation[Any]:
        token_id = uuid_to_text(random_uuid(self._randomness))
        rules = self._rules.tokens
        return lambda context: create_token(context.image, request, source.principal, rules, token_id, now_ms)

    def _change_token(
        self, request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest, source: RequestSource, now_ms: int
    ) -> Operation[Any]:
        rules = self._rules.tokens
        if isinstance(request, RenewDelegationTokenRequest):
            return lambda context: renew_token(context.image, request, source.principal, rules, now_ms)
        return lambda context: expire_token(context.image, request, source.principal, rules, now_ms)


_PLAIN: dict[type[Message], Callable[[Any, RequestSource, int], Operation[Any]]] = {
    AlterPartitionRequest: lambda request, source, now: (
        lambda context: alter_partition(context, request, source.version)
    ),
    AssignReplicasToDirsRequest: lambda request, source, now: lambda context: assign_replicas(context, request),
    ElectLeadersRequest: lambda request, source, now: lambda context: elect_leaders(context, request),
    AlterPartitionReassignmentsRequest: lambda request, source, now: (
        lambda context: alter_reassignments(context, request)
    ),
    ListPartitionReassignmentsRequest: lambda request, source, now: (
        lambda context: list_reassignments(context, request)
    ),
    UnregisterBrokerRequest: lambda request, source, now: lambda context: unregister_broker(context, request.broker_id),
    AlterClientQuotasRequest: lambda request, source, now: (
        lambda context: alter_client_quotas(context.image, request, is_address)
    ),
    DeleteAclsRequest: lambda request, source, now: lambda context: delete_acls(context.image, request),
    AlterUserScramCredentialsRequest: lambda request, source, now: (
        lambda context: alter_scram_credentials(context.image, request)
    ),
}
"""Requests that need nothing but the cluster."""
