"""Settings of the controller: defaults of new topics, leader rebalancing, and request limits."""

from __future__ import annotations

from ..base.settings import Settings, setting


class ControllerSettings(Settings):
    """Defaults of topics, leader election, and timeouts of the controller."""

    num_partitions: int = setting(
        "num.partitions", default=1, at_least=1, doc="Partitions of a new topic that names no number."
    )
    default_replication_factor: int = setting(
        "default.replication.factor",
        default=1,
        at_least=1,
        doc="Replicas of a new topic that names no number.",
    )
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable", default=True, doc="Whether a Metadata request for a missing topic creates it."
    )
    controller_socket_timeout_ms: int = setting(
        "controller.socket.timeout.ms",
        default=30000,
        at_least=1,
        doc="Time that the controller waits for a broker's response, before it connects again and repeats the request.",
    )
    auto_leader_rebalance_enable: bool = setting(
        "auto.leader.rebalance.enable",
        default=True,
        doc="Whether the controller moves leadership back to preferred replicas.",
    )
    leader_imbalance_check_interval_seconds: int = setting(
        "leader.imbalance.check.interval.seconds",
        default=300,
        at_least=1,
        doc="Interval at which the controller checks that preferred replicas lead; first 5 s after its election.",
    )
    leader_imbalance_per_broker_percentage: int = setting(
        "leader.imbalance.per.broker.percentage",
        default=10,
        at_least=0,
        doc="Percentage of a broker's preferred partitions that others may lead before they move back.",
    )
    delete_topic_enable: bool = setting("delete.topic.enable", default=True, doc="Whether topics can be deleted.")
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        default=2000,
        at_least=1,
        doc="Most partitions in a response of DescribeTopicPartitions.",
    )
