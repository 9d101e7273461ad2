"""Settings of the controller: defaults of new topics, leader rebalancing, and request limits."""

from __future__ import annotations

from ..base.settings import Settings, setting


class ControllerSettings(Settings):
    """What a topic gets by default, and how long a broker may take to answer."""

    num_partitions: int = setting(
        "num.partitions", default=1, at_least=1, doc="Partitions of a topic created without a number of its own."
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        default=1,
        at_least=1,
        doc="Replicas of a topic created without a number of its own.",
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable", default=True, doc="Whether asking for the metadata of a missing topic creates it."
    )
    controller_socket_timeout_ms: int = setting(
        "controller.socket.timeout.ms",
        default=30000,
        at_least=1,
        doc="How long the controller waits for the answer of another broker, before it connects again and asks again.",
    )
    auto_leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable",
        default=True,
        doc="Whether the controller lets preferred replicas lead again, at intervals.",
    )
    leader_imbalance_check_interval_seconds: int = setting(
        "leader.imbalance.check.interval.seconds",
        default=300,
        at_least=1,
        doc="How often the controller checks whether preferred replicas lead; first 5 s after its election.",
    )
    leader_imbalance_per_broker_percentage: int = setting(
        "leader.imbalance.per.broker.percentage",
        default=10,
        at_least=0,
        doc="Percentage of the partitions a broker is preferred to lead that others may lead before they are given back to it.",
    )
    delete_topic_enable: bool = setting("delete.topic.enable", default=True, doc="Whether topics can be deleted.")
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        default=2000,
        at_least=1,
        doc="The most partitions in one answer of DescribeTopicPartitions.",
    )
