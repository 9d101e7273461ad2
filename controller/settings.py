"""Settings of the controller: what a topic gets when nobody says, and how long a broker may take to answer."""

from __future__ import annotations

from ..base.settings import Settings, setting


class ControllerSettings(Settings):
    """What a topic gets when nobody says, and how long a broker may take to answer."""

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
        doc="How long the controller waits for the answer of another broker, before it connects anew and asks again.",
    )
    delete_topic_enable: bool = setting("delete.topic.enable", default=True, doc="Whether topics can be deleted.")
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        default=2000,
        at_least=1,
        doc="The most partitions in one answer of DescribeTopicPartitions.",
    )
