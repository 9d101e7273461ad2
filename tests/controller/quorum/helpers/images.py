"""Everything that an image has, in plain values that can be compared."""

from __future__ import annotations

import dataclasses
from typing import Any

from ottla.metadata.image import ClusterImage


def contents(image: ClusterImage) -> dict[str, Any]:
    """The fields, without what is empty; topics with their partitions."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(image):
        value = getattr(image, field.name)
        if field.name in ("topics", "topics_by_id"):
            value = {key: (topic.name, topic.topic_id, dict(topic.partitions)) for key, topic in value.items()}
        elif hasattr(value, "items"):
            value = dict(value.items())
        found[field.name] = value
    return found
