"""The delta between two metadata images.

A snapshot of the metadata log is a whole image. Publishers are told only what it changes of the image that they know, as if the
batches between had come one by one. The cost grows with what there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from .delta import ClusterDelta, TopicDelta
from .image import ClusterImage, TopicImage

K = TypeVar("K")
V = TypeVar("V")


def delta_between(before: ClusterImage, after: ClusterImage) -> ClusterDelta:
    """The delta with which ``before`` becomes equal to ``after``."""
    brokers = dict(before.brokers) != dict(after.brokers)
    return ClusterDelta(
        controller_id=None if before.controller_id == after.controller_id else after.controller_id,
        brokers=list(after.brokers.values()) if brokers else None,
        topics=[*_removed(before, after), *_changed(before, after)],
        configs=_differing(before.configs, after.configs, {}),
        quotas=_differing(before.quotas, after.quotas, {}),
        scram=_differing(before.scram, after.scram, {}),
        acls=_differing(before.acls, after.acls, frozenset()),
        tokens=_differing(before.tokens, after.tokens, None),
        features=after.features,
        next_producer_id=after.next_producer_id,
        quorum_brokers=_differing(before.quorum_brokers, after.quorum_brokers, None),
        quorum_controllers=_differing(before.quorum_controllers, after.quorum_controllers, None),
        acl_ids=_differing(before.acl_ids, after.acl_ids, None),
        position=after.position,
    )


def _differing(before: Mapping[K, V], after: Mapping[K, V], gone: Any) -> dict[K, Any]:
    """The values of the keys that differ; ``gone`` for those that are not there any more."""
    changes: dict[K, Any] = {key: gone for key in before if key not in after}
    changes.update({key: value for key, value in after.items() if before.get(key) != value})
    return changes


def _removed(before: ClusterImage, after: ClusterImage) -> Iterable[TopicDelta]:
    """Topics that are gone. One that was made again under its name is another one."""
    for topic_id, topic in before.topics_by_id.items():
        if topic_id not in after.topics_by_id:
            yield TopicDelta(topic.name, topic_id, dict.fromkeys(topic.partitions))


def _changed(before: ClusterImage, after: ClusterImage) -> Iterable[TopicDelta]:
    for topic_id, topic in after.topics_by_id.items():
        known = before.topics_by_id.get(topic_id, TopicImage(topic.name, topic_id, {}))
        partitions: dict[int, Any] = _differing(known.partitions, topic.partitions, None)
        if partitions:
            yield TopicDelta(topic.name, topic_id, partitions)
