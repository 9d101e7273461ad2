"""Topics made because somebody asked for them: by Metadata, or by the first client that needs a coordinator.

An ordinary topic gets the broker's defaults. A coordinator's own topic is compacted and has the partitions, replicas (all
brokers where there are fewer) and segment size of the coordinator's settings, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..base.config import Config
from ..base.errors import ErrorCode, KafkaError
from ..controller.topics import NewTopic
from ..group_coordinator.settings import TOPIC as OFFSETS_TOPIC
from ..group_coordinator.settings import GroupSettings
from ..transaction_coordinator.settings import TOPIC as TRANSACTIONS_TOPIC
from ..transaction_coordinator.settings import TransactionSettings
from .services import Services

_BEING_MADE = (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NOT_CONTROLLER)


async def create_missing(broker: Services, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Make topics that do not exist, and say what a client is told of each: NONE once its metadata is here.

    LEADER_NOT_AVAILABLE asks the client to try again: somebody else is making or deleting the topic right now.
    """
    try:
        results = await broker.controller.create_topics([new_topic(broker, name) for name in names])
    except KafkaError as error:
        return {name: _told(error.code) for name in names}
    return {
        name: _told(result.code) if isinstance(result, KafkaError) else ErrorCode.NONE
        for name, result in results.items()
    }


def _told(code: ErrorCode) -> ErrorCode:
    return ErrorCode.LEADER_NOT_AVAILABLE if code in _BEING_MADE else code


def new_topic(broker: Services, name: str) -> NewTopic:
    """What is made for a name: a coordinator's own topic, or one with the broker's defaults."""
    brokers = len(list(broker.metadata.broker_ids()))
    return coordinator_topics(broker.config, brokers).get(name) or NewTopic(name)


def coordinator_topics(config: Config, brokers: int) -> dict[str, NewTopic]:
    """``__consumer_offsets`` and ``__transaction_state`` as they are made in a cluster of so many brokers."""
    groups = config.settings(GroupSettings)
    transactions = config.settings(TransactionSettings)
    transaction_replicas = min(transactions.transaction_state_log_replication_factor, brokers)
    offsets = NewTopic(
        OFFSETS_TOPIC,
        partition_count=groups.offsets_topic_num_partitions,
        replication_factor=min(groups.offsets_topic_replication_factor, brokers),
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
