"""The version of the topics, which coordinators on several brokers compare."""

from __future__ import annotations

from ottla.group_coordinator.topics import TopicSizes
from ottla.metadata.delta import ClusterDelta, TopicDelta
from ottla.metadata.image import ClusterImage
from ottla.metadata.types import LogPosition

from ..helpers.told import led


def told(topics: TopicSizes, image: ClusterImage, offset: int, *deltas: TopicDelta) -> ClusterImage:
    """Changes of topics, up to an offset of the metadata log."""
    delta = ClusterDelta(-1, topics=deltas, position=LogPosition(offset, 1, 0))
    after = image.apply(delta)
    topics.publish(delta, after)
    return after


def topic(name: str, partitions: int = 1) -> TopicDelta:
    return led(name, name.encode().ljust(16, b"."), dict.fromkeys(range(partitions), 1))


def test_the_version_is_an_offset_of_the_metadata_log() -> None:
    follower = TopicSizes()
    image = told(follower, ClusterImage(), 10, topic("a"), topic("b"), topic("c"))
    assert (follower.version, follower.newest_topic_version) == (10, 10)
    loaded, started = TopicSizes(), TopicSizes(image)
    told(loaded, ClusterImage(), 11, topic("a"), topic("b"), topic("c"))
    assert (loaded.version, started.version) == (11, 10)
    told(follower, image, 12, topic("d"))
    assert follower.newest_topic_version > max(loaded.version, started.version), "nobody has looked at this topic"


def test_leaders_change_nothing() -> None:
    topics = TopicSizes()
    image = told(topics, ClusterImage(), 10, topic("a", 2))
    image = told(topics, image, 20, led("a", b"a".ljust(16, b"."), {0: 2, 1: 2}))
    assert topics.version == 10
    told(topics, image, 30, topic("a", 3))
    assert (topics.version, topics.newest_topic_version) == (30, 10)
