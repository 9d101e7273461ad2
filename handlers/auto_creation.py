"""Automatic topic creation: by Metadata, or by the first client that needs a coordinator.

An ordinary topic gets the broker's defaults. A coordinator's own topic is compacted and has the partitions, replicas and
segment size of the coordinator's settings, as in Kafka: until there are enough brokers it is not made, and there is no
coordinator. Only a broker that cannot have others beside it makes it with a single replica.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..controller.new_topics import Charge, NewTopic
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..group_coordinator.settings import GroupSettings
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..transaction_coordinator.settings import TransactionSettings
from .services import Services

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


def _new_topic(broker: Services, name: str) -> NewTopic:
    """What is made for a name: a coordinator's own topic, or one with the broker's defaults."""
    topics = coordinator_topics(broker.config, broker.cluster.most_brokers)
    return topics.get(name) or NewTopic(name)


def coordinator_topics(config: Config, most_replicas: int | None) -> dict[str, NewTopic]:
    """``__consumer_offsets`` and ``__transaction_state`` as they are made, with at most ``most_replicas`` if that is given."""
    groups = config.settings(GroupSettings)
    transactions = config.settings(TransactionSettings)
    offsets_replicas = groups.offsets_topic_replication_factor
    transaction_replicas = transactions.transaction_state_log_replication_factor
    if most_replicas is not None:
        offsets_replicas = min(offsets_replicas, most_replicas)
        transaction_replicas = min(transaction_replicas, most_replicas)
    offsets = NewTopic(
        OFFSETS_TOPIC,
        partition_count=groups.offsets_topic_num_partitions,
        replication_factor=offsets_replicas,
        configs={
            "compression.type": "producer",
            "cleanup.policy": "compact",
            "segment.bytes": str(groups.offsets_topic_segment_bytes),
        },
    )
    state = NewTopic(
        TRANSACTIONS_TOPIC,
        partition_count=transactions.transaction_state_log_num_partitions,
        replication_factor=transaction_replicas,
        configs={
            "compression.type": "uncompressed",
            "cleanup.policy": "compact",
            "segment.bytes": str(transactions.transaction_state_log_segment_bytes),
            "min.insync.replicas": str(min(transactions.transaction_state_log_min_isr, transaction_replicas)),
            "unclean.leader.election.enable": "false",
        },
    )
    return {OFFSETS_TOPIC: offsets, TRANSACTIONS_TOPIC: state}
