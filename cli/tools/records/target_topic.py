"""The topic that a command is about to write to: whether it is there, before the first record is sent.

A producer asks for the metadata of an absent topic again and again, in the hope that brokers create it, for 15 to 60 s. Here it
costs one connection and one request to say at once that no broker will; only for an absent topic, a setting is asked for.
"""

from __future__ import annotations

from contextlib import closing

import kafka.errors
from kafka.admin import ConfigResource, ConfigResourceType

from ..client import UNANSWERED, Admin, ClusterConnection
from ..nearest import no_topic, tell_of_like, topic_names

_AUTO_CREATE = "auto.create.topics.enable"


def check_target(connection: ClusterConnection, name: str) -> None:
    """Raises ToolError for a topic that is absent and that brokers do not create.

    If they create it, the standard error has an existing name that is nearly the same. If the brokers do not tell, for want of
    rights or of an answer, nothing is said here: the producer meets the reason.
    """
    try:
        with closing(connection.admin()) as admin:
            (found,) = admin.describe_topics([name])
            if found["error_code"] != kafka.errors.UnknownTopicOrPartitionError.errno:
                return
            names = topic_names(admin)
            is_created = _is_created_automatically(admin)
    except (*UNANSWERED, kafka.errors.KafkaError):
        return
    if not is_created:
        raise no_topic(name, names)
    tell_of_like(f"topic {name} yet", name, names)


def _is_created_automatically(admin: Admin) -> bool:
    """Raises KafkaError. True where the broker does not tell its settings."""
    broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
    described = admin.describe_configs([ConfigResource(ConfigResourceType.BROKER, broker)], config_filter="all")
    entry = described.get("broker", {}).get(broker, {}).get(_AUTO_CREATE)
    return entry is None or entry["value"] != "false"
