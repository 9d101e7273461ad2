"""Automatic topic creation: by Metadata, or by the first client that needs a coordinator.

An ordinary topic gets the broker's defaults. A coordinator's own topic has the partitions, replicas and segment size of the
coordinator's settings, as in Kafka: until there are enough brokers it is not made, and there is no coordinator. Only a broker
that cannot have others beside it makes it with a single replica. ``__share_group_state``, whose coordinator deletes what is
outdated, is not compacted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..controller.new_topics import Charge, NewTopic
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..group_coordinator.settings import GroupSettings
from ..share_coordinator.settings import TOPIC as SHARE_STATE_TOPIC
from ..share_coordinator.settings import ShareCoordinatorSettings
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..transaction_coordinator.settings import TransactionSettings
from .services import Services

logger = logging.getLogger(__name__)

_BEING_MADE = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER)


async def create_missing(broker: Services, names: Iterable[str], charge: Charge | None = None) -> dict[str, ErrorCode]:
    """Make topics that do not exist; returns the error code for each: NONE once its metadata is here.

    LEADER_NOT_AVAILABLE asks the client to try again: the topic is being made or deleted just now.
    """
    outcomes = await create(broker, names, charge)
    return {name: ErrorCode.NONE if error is None else _told(error.code) for name, error in outcomes.items()}


def _told(code: ErrorCode) -> ErrorCode:
    return ErrorCode.LEADER_NOT_AVAILABLE if code in _BEING_MADE else code


async def create(broker: Services, names: Iterable[str], charge: Charge | None = None) -> dict[str, KafkaError | None]:
    """Make topics that do not exist; returns by name why that failed, or None.

    The metadata of new topics is here on return, unless that takes too long.

    ``charge`` counts the partitions in a client's quota.
    """
    topics = [_new_topic(broker, name) for name in names]
    try:
        return await broker.cluster.create_missing_topics(topics, charge)
    except KafkaError as error:
        return {topic.name: error for topic in topics}


async def create_coordinator_topic(broker: Services, topic: str, charge: Charge | None = None) -> None:
    """Make a coordinator's own topic. KafkaError COORDINATOR_NOT_AVAILABLE where that is not possible now."""
    error = (await create(broker, [topic], charge))[topic]
    if error is not None and error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        # While brokers are missing, clients ask again and again.
        level = logging.INFO if error.code is ErrorCode.INVALID_REPLICATION_FACTOR else logging.WARNING
        if broker.absent_topics.is_first(topic, str(error), level):
            logger.log(level, "%s could not be created: %s", topic, error)
        raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)


def _new_topic(broker: Services, name: str) -> NewTopic:
    """What is made for a name: a coordinator's own topic, or one with the broker's defaults."""
    topics = coordinator_topics(broker.config, broker.cluster.most_brokers)
    return topics.get(name) or NewTopic(name)


def coordinator_topics(config: Config, most_replicas: int | None) -> dict[str, NewTopic]:
    """The coordinators' own topics as they are made, with at most ``most_replicas`` if that is given."""
    topics = (
        _offsets_topic(config.settings(GroupSettings), most_replicas),
        _transactions_topic(config.settings(TransactionSettings), most_replicas),
        _share_state_topic(config.settings(ShareCoordinatorSettings), most_replicas),
    )
    return {topic.name: topic for topic in topics}


def _at_most(replicas: int, most_replicas: int | None) -> int:
    return replicas if most_replicas is None else min(replicas, most_replicas)


def _offsets_topic(settings: GroupSettings, most_replicas: int | None) -> NewTopic:
    return NewTopic(
        OFFSETS_TOPIC,
        partition_count=settings.offsets_topic_num_partitions,
        replication_factor=_at_most(settings.offsets_topic_replication_factor, most_replicas),
        configs={
            "compression.type": "producer",
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        },
    )


def _transactions_topic(settings: TransactionSettings, most_replicas: int | None) -> NewTopic:
    replicas = _at_most(settings.transaction_state_log_replication_factor, most_replicas)
    return NewTopic(
        TRANSACTIONS_TOPIC,
        partition_count=settings.transaction_state_log_num_partitions,
        replication_factor=replicas,
        configs={
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.transaction_state_log_segment_bytes),
            "min.insync.replicas": str(min(settings.transaction_state_log_min_isr, replicas)),
            "unclean.leader.election.enable": "false",
        },
    )


def _share_state_topic(settings: ShareCoordinatorSettings, most_replicas: int | None) -> NewTopic:
    replicas = _at_most(settings.share_coordinator_state_topic_replication_factor, most_replicas)
    return NewTopic(
        SHARE_STATE_TOPIC,
        partition_count=settings.share_coordinator_state_topic_num_partitions,
        replication_factor=replicas,
        configs={
            "compression.type": "producer",
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
            "min.insync.replicas": str(min(settings.share_coordinator_state_topic_min_isr, replicas)),
        },
    )
