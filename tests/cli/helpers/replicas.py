"""What the cluster says of replicas: where they are, and what limits them while they move."""

from __future__ import annotations

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from ottla.cli.tools.client import Admin
from ottla.cli.tools.cluster_view import find_topics


def replicas_of(admin: Admin, name: str) -> dict[int, tuple[int, ...]]:
    (topic,) = find_topics(admin, [name])
    return {partition.number: partition.replicas for partition in topic.partitions}


def throttles(admin: KafkaAdminClient, name: str) -> dict[str, str]:
    """What limits replication: of the topic, and of broker 1."""
    asked = [ConfigResource(ConfigResourceType.TOPIC, name), ConfigResource(ConfigResourceType.BROKER, "1")]
    found: dict[str, str] = {}
    for by_name in admin.describe_configs(asked, config_filter="all").values():
        for entries in by_name.values():
            found |= {
                setting: entry["value"]
                for setting, entry in entries.items()
                if "replication.throttled" in setting and entry["config_source"].startswith("DYNAMIC")
            }
    return found
