"""Steps with topics: created, with more partitions, and deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ottla.wire.api_keys import ApiKey

from .capture_kafka import Capture


def placed(name: str, *replicas: Sequence[int], configs: Mapping[str, str | None] | None = None) -> dict[str, Any]:
    """A topic whose replicas are named."""
    assignments = [{"partition_index": n, "broker_ids": list(ids)} for n, ids in enumerate(replicas)]
    given = [{"name": key, "value": value} for key, value in (configs or {}).items()]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": assignments}
    return {**topic, "configs": given} if given else topic


def sized(name: str, partitions: int, factor: int, **changed: Any) -> dict[str, Any]:
    """A topic whose replicas the controller places."""
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **changed}


def create(capture: Capture, about: str, *topics: Mapping[str, Any], version: int = 7, **more: Any) -> Any:
    return capture.call(about, ApiKey.CREATE_TOPICS, version, topics=list(topics), **more)


def created_topics(capture: Capture) -> None:
    """Topics a, b, c.d, e and one are there."""
    create(capture, "a topic of two partitions", placed("a", [1, 2, 3], [2, 3, 1]))
    create(
        capture,
        "a topic with configs",
        placed("b", [1, 2, 3], configs={"min.insync.replicas": "2", "retention.ms": "1000"}),
    )
    create(capture, "a fenced broker gets a replica, and is not in sync", placed("c.d", [4, 1], [2, 4]))
    create(capture, "by version 4", placed("e", [1, 2]), version=4)
    create(capture, "a topic of one replica", placed("one", [1]))
    create(capture, "nothing is made, only checked", placed("checked", [1, 2]), validate_only=True)
    create(capture, "no topics")
    create(
        capture,
        "one is made, and others are not",
        placed("f", [3, 2], configs={"cleanup.policy": "compact"}),
        placed("a", [1]),
        placed("twice", [1]),
        placed("twice", [2]),
    )
    for about, topic in {
        "a topic that exists": placed("a", [1]),
        "a name that collides": placed("c_d", [1]),
        "a name with a slash": placed("x/y", [1]),
        "an empty name": placed("", [1]),
        "a name that is too long": placed("n" * 250, [1]),
        "the topic of the metadata log": placed("__cluster_metadata", [1]),
        "an unknown config": placed("x", [1], configs={"nothing": "1"}),
        "a config of the wrong type": placed("x", [1], configs={"retention.ms": "soon"}),
        "a config that is too small": placed("x", [1], configs={"min.insync.replicas": "0"}),
        "a config without a value": placed("x", [1], configs={"retention.ms": None}),
        "replicas and a number of partitions": {**placed("x", [1]), "num_partitions": 1},
        "replicas and a replication factor": {**placed("x", [1]), "replication_factor": 1},
        "a replica on an unknown broker": placed("x", [1, 77]),
        "two replicas on one broker": placed("x", [1, 1]),
        "a partition without replicas": placed("x", []),
        "partitions with different numbers of replicas": placed("x", [1, 2], [1]),
        "only fenced brokers": placed("x", [4]),
        "a hole in the partitions": {**placed("x", [1]), "assignments": [{"partition_index": 1, "broker_ids": [1]}]},
        "a partition twice": {
            **placed("x", [1]),
            "assignments": [{"partition_index": 0, "broker_ids": [1]}, {"partition_index": 0, "broker_ids": [2]}],
        },
        "no partitions": sized("x", 0, 1),
        "fewer than no partitions": sized("x", -2, 1),
        "no replicas": sized("x", 1, 0),
        "more replicas than brokers": sized("x", 1, 5),
        "more partitions than an operation may make": sized("x", 10_001, 1),
    }.items():
        create(capture, f"refused: {about}", topic)


def _grow(capture: Capture, about: str, name: str, count: int, *replicas: Sequence[int], **more: Any) -> None:
    given = [{"broker_ids": list(each)} for each in replicas] or None
    topics = [{"name": name, "count": count, "assignments": given}]
    capture.call(about, ApiKey.CREATE_PARTITIONS, 3, topics=topics, timeout_ms=30_000, **more)


def created_partitions(capture: Capture) -> None:
    """Topic e has three partitions."""
    grow = partial(_grow, capture)
    grow("one more partition", "e", 2, [2, 3])
    grow("nothing is made, only checked", "e", 3, [2, 3], validate_only=True)
    grow("one more, with a fenced broker", "e", 3, [4, 1])
    grow("a topic with configs", "b", 2, [3, 2, 1])
    grow("refused: an unknown topic", "unknown", 2)
    grow("refused: as many as there are", "e", 3)
    grow("refused: fewer than there are", "e", 1)
    grow("refused: replicas for another number of partitions", "e", 5, [1, 2])
    grow("refused: another number of replicas", "e", 4, [1])
    grow("refused: an unknown broker", "e", 4, [1, 77])
    grow("refused: two replicas on one broker", "e", 4, [1, 1])
    grow("refused: only a fenced broker", "one", 2, [4])
    grow("refused: a partition without replicas", "e", 4, [])
    topic = {"name": "e", "count": 4, "assignments": [{"broker_ids": [1, 2]}]}
    capture.call("refused: a topic twice", ApiKey.CREATE_PARTITIONS, 3, topics=[topic, topic], timeout_ms=30_000)
    capture.call("no topics", ApiKey.CREATE_PARTITIONS, 3, topics=[])


def _delete(capture: Capture, about: str, *topics: Mapping[str, Any]) -> None:
    capture.call(about, ApiKey.DELETE_TOPICS, 6, topics=list(topics), timeout_ms=30_000)


def placed_topics(capture: Capture) -> None:
    """Topics whose replicas the controller places come and go, so another run has other records only in between."""
    create(capture, "the controller places", sized("random", 1, 1), varies="the replicas")
    create(capture, "the defaults of the controller", sized("default", -1, -1), varies="the replicas")
    _grow(capture, "the controller places another", "random", 2, varies="the replicas")
    _delete(capture, "a topic by its id", {"topic_id": capture.topic_id("default")})
    _delete(capture, "another one by its id", {"topic_id": capture.topic_id("random")})


def deleted_topics(capture: Capture) -> None:
    """Topics one and f are gone, with their configs, and f is there again."""
    delete = partial(_delete, capture)
    delete("a topic by its name", {"name": "one"})
    delete("a topic that is gone", {"name": "one"})
    delete("an unknown id", {"topic_id": "no topic"})
    delete("neither a name nor an id", {"name": None})
    delete("a name and an id", {"name": "a", "topic_id": capture.topic_id("a")})
    delete("a name twice", {"name": "a"}, {"name": "a"})
    delete("an id twice", {"topic_id": capture.topic_id("a")}, {"topic_id": capture.topic_id("a")})
    delete("a name and its id", {"name": "a"}, {"topic_id": capture.topic_id("a")})
    capture.call("a topic with configs, by version 5", ApiKey.DELETE_TOPICS, 5, topic_names=["f"], timeout_ms=30_000)
    delete("no topics")
    create(capture, "a topic of the same name", placed("f", [1]))
