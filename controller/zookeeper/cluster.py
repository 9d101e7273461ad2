"""``ZooKeeperCluster``: the ``ClusterAccess`` interface in ZooKeeper mode, with the broker's membership and its controller.

Everything has one session at the store, and follows what others change there. When watches may have been lost, everything is
read again (``membership``).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import trio

from ...base.config import Config
from ...base.errors import ErrorCode, KafkaError
from ...base.partitions import TopicPartition
from ...base.seams import Clock
from ...log.settings import LogSettings
from ...metadata.delta import ClusterDelta
from ...metadata.rules.election import ElectionType
from ...metadata.types import BrokerRegistration, ReplicaAssignment
from ...replication.metadata_cache import MetadataCache
from ...security.entities import USERS, Entity
from ...security.principal import Principal
from ...security.quota_keys import render_limit
from ...security.scram import ScramCredential, ScramMechanism
from ...wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ...wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ...wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ..cluster import Transform
from ..new_topics import Charge, CreatedTopic, NewTopic
from ..producer_ids import ProducerIdSource
from ..token_settings import DelegationTokenSettings
from .active.controller import ZooKeeperController
from .active.controller_node import withdraw
from .config_store import ConfigStore
from .features import FeatureStore
from .membership import Membership
from .nodes import znodes
from .registration import report_log_dir_failure
from .store.cluster_store import SessionExpiredError, StoreError
from .store.session import BrokerSession
from .topic_writer import TopicWriter
from .unserved import unserved

if TYPE_CHECKING:
    from ...security.acl import AclBinding, AclFilter
    from ...security.delegation import DelegationToken
    from .acl_store import AclStore
    from .token_store import TokenStore

logger = logging.getLogger(__name__)

_CONFIG_SECONDS = 5.0
_EPOCH_SECONDS = 2.0
_LED_SECONDS = 2.0
"""How long a client waits for the leaders of a topic that the controller has not found in the store yet."""

_RESIGN_SECONDS = 2.0
"""How long a stop waits for the store to accept the resignation; the end of the broker's session resigns for it anyway."""


class ZooKeeperCluster:
    """A ``ClusterAccess``; ``start`` it once, then ``run`` it in a task of its own."""

    def __init__(
        self,
        broker_id: int,
        session: BrokerSession,
        metadata: MetadataCache,
        configs: ConfigStore,
        controller: ZooKeeperController,
        features: FeatureStore | None,
        config: Config,
        clock: Clock,
        randomness: random.Random,
        *,
        has_acls: bool,
    ) -> None:
        self._broker_id = broker_id
        self.session = session
        self._metadata = metadata
        self.configs = configs
        self.controller = controller
        self._features = features
        self._clock = clock
        self._config = config
        self._topic_writer = TopicWriter(session, config, randomness)
        self._acls = self._make_acls() if has_acls else None
        self._tokens = self._make_tokens()
        self._membership: Membership | None = None
        self.producer_ids: ProducerIdSource
        """Set before ``start``: where they come from another broker, its channel needs this cluster."""
        config.on_change.append(self._update_log_settings)

    def _make_acls(self) -> AclStore:
        from .acl_store import AclStore  # slow to import, and few brokers need it

        return AclStore(self.session, self._clock, self._metadata)

    def _make_tokens(self) -> TokenStore | None:
        settings = self._config.settings(DelegationTokenSettings)
        if settings.secret is None:
            return None
        from .token_store import TokenStore  # likewise

        return TokenStore(self.session, self._clock, settings, self._metadata)

    def _update_log_settings(self) -> None:
        self.controller.update_log_settings(self._config.settings(LogSettings))

    @property
    def broker_epoch(self) -> int:
        return -1 if self._membership is None else self._membership.broker_epoch

    @property
    def is_controller(self) -> bool:
        return self.controller.is_active

    @property
    def most_brokers(self) -> int | None:
        return None

    # --- life ---------------------------------------------------------------------------------------------------------

    async def start(self, registration: BrokerRegistration) -> None:
        """Join the cluster. Raises KafkaError, LogStartError."""
        try:
            await self.session.take_step(lambda: self._join(registration))
        except StoreError as error:
            raise unserved(error) from error

    async def _join(self, registration: BrokerRegistration) -> None:
        membership = Membership(self.session, registration, self.configs, self.controller, self._clock)
        self._membership = membership
        for follower in (self._features, self._acls, self._tokens):
            if follower is not None:
                membership.watch_losses.append(follower.resync)
        if self._acls is not None:
            await self._acls.start()
        await membership.join()
        if self._tokens is not None:
            await self._tokens.start()

    async def run(self) -> None:
        """Follow what others change, and be the controller when elected, until cancelled."""
        assert self._membership is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.configs.run)
            nursery.start_soon(self.controller.run)
            nursery.start_soon(self._membership.run)
            for follower in (self._features, self._tokens, self._acls, self.producer_ids):
                if follower is not None:
                    nursery.start_soon(follower.run)

    async def change_registration(self, registration: BrokerRegistration) -> None:
        """Advertise other addresses. If the store does not answer, the next registration has them."""
        assert self._membership is not None
        try:
            await self._membership.change(registration)
        except StoreError as error:
            logger.error("The cluster does not know this broker's listeners: %s", error)

    async def report_log_dir_failure(self) -> None:
        """Tell the controller that a log directory has failed (KIP-112)."""
        try:
            await report_log_dir_failure(self.session, self._broker_id)
        except SessionExpiredError:
            pass  # the controller finds out when the broker registers again: it then asks for all of its replicas
        except StoreError as error:
            logger.error("A failed log directory cannot be reported to the controller: %s", error)

    async def resign(self) -> None:
        """Let another broker become the controller at once, and not only when this one has flushed its logs."""
        with trio.move_on_after(_RESIGN_SECONDS):
            try:
                await self.controller.resign()
                await withdraw(self.session)
            except StoreError as error:
                logger.info("Another broker becomes the controller once this one has left: %s", error)

    # --- what only the controller does --------------------------------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, charge: Charge | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        return await self.controller.create_topics(topics, validate_only=validate_only, charge=charge)

    async def create_partitions(
        self,
        topic: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
    ) -> None:
        await self.controller.create_partitions(topic, count, assignments, validate_only=validate_only, charge=charge)

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        return await self.controller.delete_topics(names)

    async def elect_leaders(
        self, kind: ElectionType, keys: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        return await self.controller.elect_leaders(kind, keys)

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> dict[TopicPartition, KafkaError | None]:
        return await self.controller.reassign(wanted, factor_may_change=factor_may_change)

    def reassignments(self) -> list[tuple[TopicPartition, ReplicaAssignment]]:
        return self.controller.reassignments()

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        return await self.controller.alter_partition(request, version)

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse:
        return await self.controller.controlled_shutdown(request)

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
        response = await self.controller.allocate_producer_ids(request)
        if not response.error_code:
            end = response.producer_id_start + response.producer_id_len
            self._metadata.publish(ClusterDelta(next_producer_id=end))
        return response

    # --- what every broker does ---------------------------------------------------------------------------------------

    async def create_missing_topics(
        self, topics: Collection[NewTopic], charge: Charge | None = None
    ) -> dict[str, KafkaError | None]:
        if self.is_controller:
            made = await self.controller.create_topics(topics, charge=charge)
            return {name: result if isinstance(result, KafkaError) else None for name, result in made.items()}
        outcomes = await self._topic_writer.create(topics, charge)
        expected = [
            name
            for name, error in outcomes.items()
            if error is None or error.code is ErrorCode.TOPIC_ALREADY_EXISTS  # by another broker, just now
        ]
        with trio.move_on_after(_LED_SECONDS):
            await self._metadata.wait_until(lambda: all(name in self._metadata.topics for name in expected))
        return outcomes

    async def change_config(self, entity: Entity, transform: Transform) -> None:
        await self.configs.change(entity, transform)

    async def change_quotas(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        rendered = {key: None if limit is None else render_limit(key, limit) for key, limit in changes.items()}
        await self.configs.change(entity, lambda before: _without_none({**before, **rendered}))

    async def change_credentials(
        self, user: str, removed: Collection[ScramMechanism], added: Mapping[ScramMechanism, ScramCredential]
    ) -> None:
        rendered = {mechanism.sasl_name: credential.render() for mechanism, credential in added.items()}
        gone = dict.fromkeys(mechanism.sasl_name for mechanism in removed)

        def change(before: Mapping[str, str]) -> Mapping[str, str]:
            if not before.keys() >= gone.keys():
                why = "Attempt to delete a user credential that does not exist"
                raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, why)
            return _without_none({**before, **gone, **rendered})

        await self.configs.change(Entity(USERS, user), change)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        assert self._acls is not None, "there is an authorizer"
        return await self._acls.create(bindings)

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[list[tuple[AclBinding, KafkaError | None]]]:
        assert self._acls is not None, "there is an authorizer"
        return await self._acls.delete(filters)

    async def create_token(
        self, owner: Principal, requester: Principal, renewers: Iterable[Principal], wanted_lifetime_ms: int
    ) -> DelegationToken:
        assert self._tokens is not None, "there is a secret"
        return await self._tokens.create(owner, requester, renewers, wanted_lifetime_ms)

    async def renew_token(self, token_id: str, principal: Principal, period_ms: int) -> int:
        assert self._tokens is not None, "there is a secret"
        return await self._tokens.renew(token_id, principal, period_ms)

    async def expire_token(self, token_id: str, principal: Principal, period_ms: int) -> int:
        assert self._tokens is not None, "there is a secret"
        return await self._tokens.expire(token_id, principal, period_ms)

    async def next_producer_id(self) -> int:
        return await self.producer_ids.next_producer_id()

    async def leader_epoch(self, topic: str, partition: int) -> int | None:
        with trio.move_on_after(_EPOCH_SECONDS):
            try:
                node = await self.session.get(znodes.state_path(topic, partition))
                return znodes.decode_state(node.data).leader_epoch
            except StoreError:
                return None
        return None

    async def refresh_topic_configs(self, topics: Iterable[str]) -> None:
        """The broker that made a topic has written them to the store without telling the others (Kafka reads them there at the
        same points: ``ZkConfigRepository``, ``AdminZkClient.fetchEntityConfig``).
        """
        wanted = list(topics)
        if not wanted:
            return
        with trio.move_on_after(_CONFIG_SECONDS):
            try:
                await self.configs.load(wanted)
            except StoreError as error:
                logger.warning(
                    "The settings of %d topics cannot be read now; the last known ones apply: %s", len(wanted), error
                )


def _without_none(values: Mapping[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}
