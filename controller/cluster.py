"""The ``ClusterAccess`` interfaces, by which a broker changes the cluster's metadata in KRaft and in ZooKeeper mode alike.

What comes of a command is published like every other change (``MetadataCache.publish``). Which kind of cluster it is, and
whether this broker is the controller, the callers need not know.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from ..base.errors import KafkaError
from ..base.partitions import TopicPartition
from ..metadata.rules.election import ElectionType
from ..metadata.types import BrokerRegistration, ReplicaAssignment
from ..security.entities import Entity
from ..security.principal import Principal
from ..security.scram import ScramCredential, ScramMechanism
from ..wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ..wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from ..wire.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from .new_topics import Charge, CreatedTopic, NewTopic
from .producer_ids import ProducerIdSource

if TYPE_CHECKING:
    from ..security.acl import AclBinding, AclFilter
    from ..security.delegation import DelegationToken

Transform = Callable[[Mapping[str, str]], Mapping[str, str]]
"""From what is set on an entity to what is to be set; may be called more than once."""


class ClusterAccess(Protocol):
    """Every method raises KafkaError when nothing of what it was asked for can be done."""

    @property
    def broker_epoch(self) -> int:
        """That of this broker's present registration, -1 before the first (KIP-380)."""
        ...

    @property
    def is_controller(self) -> bool:
        """Whether this broker is the controller, and may act as such."""
        ...

    @property
    def most_brokers(self) -> int | None:
        """How many brokers the cluster can have; None where there is no limit."""
        ...

    async def create_missing_topics(
        self, topics: Collection[NewTopic], charge: Charge | None = None
    ) -> dict[str, KafkaError | None]:
        """Make topics that a client has named. Their metadata is here on return, unless that takes too long."""
        ...

    async def next_producer_id(self) -> int:
        """An id that no producer of the cluster had before."""
        ...

    async def leader_epoch(self, topic: str, partition: int) -> int | None:
        """The newest leader epoch of a partition, asked of whoever keeps the metadata; None if that does not answer."""
        ...

    async def refresh_topic_configs(self, topics: Iterable[str]) -> None:
        """Have the image show what is set on these topics now. If that cannot be found out it shows what was last known."""
        ...


class ClusterMember(ClusterAccess, Protocol):
    """The ``ClusterAccess`` of a broker, as whoever starts and stops the broker sees it; ``start`` it once, then ``run`` it."""

    producer_ids: ProducerIdSource

    async def start(self, registration: BrokerRegistration) -> None:
        """Join the cluster. Raises KafkaError, StoreError, LogStartError."""
        ...

    async def run(self) -> None:
        """What goes on until the broker stops."""
        ...

    async def change_registration(self, registration: BrokerRegistration) -> None:
        """Advertise other addresses."""
        ...

    async def report_log_dir_failure(self) -> None:
        """Tell the controller that a log directory has failed (KIP-112)."""
        ...

    async def resign(self) -> None:
        """Let another node become the controller, if this one is it."""
        ...


class ClusterCommands(Protocol):
    """The changes that clients ask a broker for, where it carries them out itself and does not forward them to a controller.

    Every method raises KafkaError when nothing of what it was asked for can be done.
    """

    # --- what only the controller does: NOT_CONTROLLER elsewhere ------------------------------------------------------

    async def create_topics(
        self, topics: Iterable[NewTopic], *, validate_only: bool = False, charge: Charge | None = None
    ) -> dict[str, CreatedTopic | KafkaError]:
        """The outcome by name; one topic's failure does not touch the others."""
        ...

    async def create_partitions(
        self,
        topic: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        charge: Charge | None = None,
    ) -> None:
        """Enlarge a topic to ``count`` partitions."""
        ...

    async def delete_topics(self, names: Iterable[str]) -> dict[str, KafkaError | None]:
        """The outcome by name; a topic with a replica on a dead broker is deleted when that is back."""
        ...

    async def elect_leaders(
        self, kind: ElectionType, keys: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """The outcome by partition; ``keys`` None stands for all partitions."""
        ...

    async def reassign(
        self, wanted: Mapping[TopicPartition, Sequence[int] | None], *, factor_may_change: bool = True
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to other replicas, or with None cancel a move; the outcome by partition."""
        ...

    def reassignments(self) -> list[tuple[TopicPartition, ReplicaAssignment]]:
        """The partitions whose replicas are being moved."""
        ...

    async def alter_partition(self, request: AlterPartitionRequest, version: int) -> AlterPartitionResponse:
        """Errors are in the response, as in those of the next two."""
        ...

    async def controlled_shutdown(self, request: ControlledShutdownRequest) -> ControlledShutdownResponse: ...

    async def allocate_producer_ids(self, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse: ...

    # --- what every broker does ---------------------------------------------------------------------------------------

    async def change_config(self, entity: Entity, transform: Transform) -> None:
        """Change what is set on a topic, or on one broker or all. Raises what ``transform`` raises."""
        ...

    async def change_quotas(self, entity: Entity, changes: Mapping[str, float | None]) -> None:
        """Set quotas by their keys, and remove those with None."""
        ...

    async def change_credentials(
        self, user: str, removed: Collection[ScramMechanism], added: Mapping[ScramMechanism, ScramCredential]
    ) -> None:
        """Raises KafkaError RESOURCE_NOT_FOUND, and changes nothing, if one to be removed does not exist."""
        ...

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[KafkaError | None]:
        """Why a rule was not added, in their order. One that is there already is added like any other."""
        ...

    async def delete_acls(self, filters: Sequence[AclFilter]) -> list[list[tuple[AclBinding, KafkaError | None]]]:
        """For each filter the rules that it was the first to match, each with the error if it stayed."""
        ...

    async def create_token(
        self, owner: Principal, requester: Principal, renewers: Iterable[Principal], wanted_lifetime_ms: int
    ) -> DelegationToken: ...

    async def renew_token(self, token_id: str, principal: Principal, period_ms: int) -> int:
        """When the token ends now, in ms since the epoch."""
        ...

    async def expire_token(self, token_id: str, principal: Principal, period_ms: int) -> int:
        """When the token ends now, in ms since the epoch; without delay where the period is negative."""
        ...
