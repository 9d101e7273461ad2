"""Settings of the controller: what a topic gets when nobody says."""

from __future__ import annotations

from ..base.settings import Settings, setting


class ControllerSettings(Settings):
    """What a topic gets when nobody says."""

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
    delete_topic_enable: bool = setting("delete.topic.enable", default=True, doc="Whether topics can be deleted.")
    max_request_partition_size_limit: int = setting(
        "max.request.partition.size.limit",
        default=2000,
        at_least=1,
        doc="The most partitions in one answer of DescribeTopicPartitions.",
    )
