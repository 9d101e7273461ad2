"""Log lines about topics that the controller has created, enlarged or deleted."""

from __future__ import annotations

import logging

from ....base.wording import counted
from ....metadata.delta import ClusterDelta
from ....metadata.image import ClusterImage, TopicImage
from ....security.entities import TOPICS, Entity

logger = logging.getLogger(__name__)


def log_topics(before: ClusterImage, delta: ClusterDelta, after: ClusterImage) -> None:
    """Say which topics ``delta`` has made, deleted, or given more partitions."""
    known, present = before.topics.newest(), after.topics.newest()
    for name in dict.fromkeys(topic.name for topic in delta.topics):
        old, new = known.get(name), present.get(name)
        if old is not None and (new is None or new.topic_id != old.topic_id):
            logger.info("Deleted topic %s", name)
            old = None
        if new is None:
            continue
        if old is None:
            settings = delta.configs.get(Entity(TOPICS, name), {})
            shown = "".join(f", {key}={value}" for key, value in sorted(settings.items()))
            logger.info("Created topic %s with %s%s", name, _partitions(new), shown)
        elif len(new.partitions) > len(old.partitions):
            logger.info("Topic %s has %s now", name, _partitions(new))


def _partitions(topic: TopicImage) -> str:
    return counted(len(topic.partitions), "partition")
